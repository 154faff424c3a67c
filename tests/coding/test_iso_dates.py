"""Which columns of text hold dates, at once and in parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding.iso_dates import combined, dates_of, offsets_of, parsed

pd = pytest.importorskip("pandas")


def series(values):
    return pd.Series(values, dtype=object)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-05-01", None, "2024-05-01 13:30", "2024-05-01T13:30:00.25"], {False}),
        (["2024-05-01T13:30:00+02:00", "2024-05-01T13:30Z"], {True}),
        (["2024-05-01", "2024-05-01T13:30Z"], {False, True}),
        ([None, np.nan], set()),
        (["2024-05-01", "never"], None),
        (["2024-05-01", 20240501], None),
        (["2024-02-30"], None),  # there is no such day
        (["9999-01-01"], None),  # beyond nanoseconds
        (["2024-5-1"], None),
        (["\u0662024-05-01"], None),  # a digit of another script
    ],
)
def test_offsets(values, expected):
    assert offsets_of(series(values)) == expected


@pytest.mark.parametrize("value", ["2024-02-30", "9999-01-01", "9999-01-01T00:00Z"])
def test_no_dates_where_no_such_day_is(value):
    assert dates_of(series(["2024-05-01" + value[10:], value])) is None


def test_dates_are_parsed_once(monkeypatch):
    times = []
    to_datetime = pd.to_datetime
    monkeypatch.setattr(pd, "to_datetime", lambda *a, **k: times.append(1) or to_datetime(*a, **k))
    found = dates_of(series(["2024-05-01", None, "2024-05-01 13:30"]))
    assert found.notna().tolist() == [True, False, True]
    assert len(times) == 1


def test_numbers_are_no_dates():
    assert offsets_of(pd.Series([1.0, 2.0])) is None
    assert offsets_of(pd.Series([np.nan, np.nan])) == set()


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([{False}, set(), {False}], False),
        ([{True}], True),
        ([{True}, {False}], None),
        ([{True}, None], None),
        ([set(), set()], None),
        ([], None),
    ],
)
def test_combined(parts, expected):
    assert combined(parts) is expected


VALUES = st.sampled_from(
    [None, "2024-05-01", "2023-12-31 23:59", "2024-05-01T01:00+02:00", "2024-05-01T01:00Z", "word"]
)


@given(st.lists(st.lists(VALUES, max_size=3), min_size=1, max_size=4))
def test_parts_are_what_the_whole_is(parts):
    whole = dates_of(series([value for part in parts for value in part]))
    utc = combined(offsets_of(series(part)) for part in parts)
    assert (whole is None) == (utc is None)
    if utc is not None:
        found = pd.concat([parsed(series(part), utc=utc) for part in parts], ignore_index=True)
        pd.testing.assert_series_equal(found, whole)
