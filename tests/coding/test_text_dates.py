"""Which columns of text hold dates, at once and in parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding.text_dates import (
    DAY_FIRST,
    ISO,
    MONTH_FIRST,
    NO_ORDER,
    DateForm,
    are_dates,
    combined,
    dates_of,
    forms_of,
    look_like_dates,
    parsed,
)

pd = pytest.importorskip("pandas")


BARE, ZONED = DateForm(ISO, False, False), DateForm(ISO, True, False)


def series(values):
    return pd.Series(values, dtype=object)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-05-01", None, "2024-05-01 13:30", "2024-05-01T13:30:00.25"], {BARE}),
        (["2024-05-01T13:30:00+02:00", "2024-05-01T13:30Z"], {ZONED}),
        (["2024-05-01", "2024-05-01T13:30Z"], {BARE, ZONED}),
        ([None, np.nan], set()),
        (["2024-05-01", "never"], None),
        (["2024-05-01", 20240501], None),
        (["2024-02-30"], None),  # there is no such day
        (["9999-01-01"], None),  # beyond nanoseconds
        (["2024-5-1"], None),
        (["\u0662024-05-01"], None),  # a digit of another script
    ],
)
def test_forms(values, expected):
    assert forms_of(series(values)) == expected


VALUES = st.sampled_from(
    [
        *(None, "word", "2024-05-01", "2023-12-31 23:59", "2024-05-01T01:00+02:00"),
        *("2024-05-01T01:00Z", "31.12.2024", "12/31/2024", "2/3/2024", "1.2.2024 12:30"),
    ]
)


@given(st.lists(st.lists(VALUES, max_size=3), min_size=1, max_size=4))
def test_parts_are_what_the_whole_is(parts):
    whole = dates_of(series([value for part in parts for value in part]))
    form = combined(forms_of(series(part)) for part in parts)
    assert form == (whole and whole[1])
    if form is not None:
        found = pd.concat([parsed(series(part), form) for part in parts], ignore_index=True)
        pd.testing.assert_series_equal(found, whole[0])


@pytest.mark.parametrize(
    ("values", "dayfirst", "expected"),
    [
        (["31.12.2024", None, "1.2.2024"], False, ["2024-12-31", None, "2024-02-01"]),
        (["31.12.2024 13:30"], True, ["2024-12-31 13:30"]),
        (["12/31/2024", "1/2/2024"], False, ["2024-12-31", "2024-01-02"]),
        (["31/12/2024", "1/2/2024"], True, ["2024-12-31", "2024-02-01"]),
        (["31-12-2024 1:02:03"], True, ["2024-12-31 01:02:03"]),
        (["31/12/2024", "1/2/2024"], False, None),
        (["12/31/2024", "1/2/2024"], True, None),
        (["31.12.2024", "12/31/2024"], False, None),
        (["31.12.2024", "31.12.2024 13:30"], False, None),
        (["2024-12-31", "31.12.2024"], False, None),
        (["1.2.3"], False, None),
        (["31.12/2024"], False, None),
        (["29.02.2023"], False, None),
    ],
)
def test_orders_of_days_and_months(values, dayfirst, expected):
    found = dates_of(series(values), dayfirst=dayfirst)
    assert (found is None) == (expected is None)
    if expected is not None:
        expected = pd.to_datetime(pd.Series(expected), format=ISO).dt.as_unit("ns")
        pd.testing.assert_series_equal(found[0], expected)


@pytest.mark.parametrize(
    ("values", "dayfirst", "order", "is_open"),
    [
        (["2/3/2024", None, "12/12/2024"], False, MONTH_FIRST, True),
        (["2-3-2024 13:30"], True, DAY_FIRST, True),
        (["2/3/2024", "2/13/2024"], False, MONTH_FIRST, False),
        (["2/3/2024", "13/2/2024"], True, DAY_FIRST, False),
        (["2.3.2024"], False, NO_ORDER, False),
        (["2024-02-03"], True, NO_ORDER, False),
    ],
)
def test_what_the_other_order_could_read(values, dayfirst, order, is_open):
    _, form = dates_of(series(values), dayfirst=dayfirst)
    assert (form.order, form.is_open) == (order, is_open)
    assert is_open == (
        order != NO_ORDER and dates_of(series(values), dayfirst=not dayfirst) is not None
    )


def test_which_values_are_dates():
    values = series(["31/12/2024", "2024-05-01", None, "30.02.2024", "word", "5/6/2024"])
    assert are_dates(values).tolist() == [False, True, False, False, False, True]
    assert are_dates(values, dayfirst=True).tolist() == [True, True, False, False, False, True]
    assert not are_dates(series(["word"])).any()


def test_most_of_a_sample_look_like_dates():
    days = pd.date_range("1999-01-01", periods=1_000).strftime("%m/%d/%Y").to_numpy(dtype=object)
    assert look_like_dates(days)
    assert look_like_dates(days[:1])
    assert not look_like_dates(days[:0])
    assert not look_like_dates(np.where(np.arange(1_000) < 505, "Monday", days))
    assert look_like_dates(np.where(np.arange(1_000) < 485, "Monday", days))
