"""Dates and time spans are nanoseconds; dates in text are told, at once and in parts."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.coding.times import (
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
from tests.coding.examples import frame

DATES = ["2020-01-01", None, "2020-01-03", "2020-01-02"]

TIMES = {
    "numpy": np.array([["2020-01-01"], ["NaT"], ["2020-01-03"], ["2020-01-02"]], dtype="M8[D]"),
    "pandas": frame(pd.to_datetime(DATES)),
    "pandas seconds": frame(pd.to_datetime(DATES).astype("datetime64[s]")),
    "pandas zone": frame(pd.to_datetime(DATES).tz_localize("UTC")),
    "pandas Arrow": frame(pd.to_datetime(DATES), pd.ArrowDtype(pa.timestamp("ms"))),
    "pandas Arrow date": frame(pd.to_datetime(DATES).date, pd.ArrowDtype(pa.date32())),
    "polars": pl.DataFrame({"a": pl.Series(DATES).str.to_date()}),
    "polars time": pl.DataFrame({"a": pl.Series(DATES).str.to_date().cast(pl.Datetime("ms"))}),
    "arrow": pa.table({"a": pa.array(pd.to_datetime(DATES)).cast(pa.timestamp("s"))}),
}


@pytest.mark.parametrize("name", TIMES)
def test_dates_are_ordered_nanoseconds(name):
    book, coded = CodeBook.fit_encode(TIMES[name])
    assert coded.column(0).tolist() == [1, 0, 3, 2]
    assert book.unit(0) == "datetime64[ns]"
    first = np.datetime64("2020-01-01", "ns").astype(np.int64)
    assert book.low[0] == first
    threshold, code = book.thresholds([0], [1], [2])
    assert threshold[0] == first + 12 * 3600 * 10**9
    assert code.tolist() == [1]
    assert np.array_equal(book.encode(TIMES[name]).column(0), coded.column(0))


@pytest.mark.parametrize(
    "table",
    [
        np.array([[1], [3], ["NaT"], [2]], dtype="m8[s]"),
        frame(pd.to_timedelta([1, 3, None, 2], unit="s")),
        pl.DataFrame({"a": pl.Series([1, 3, None, 2]).cast(pl.Duration("ms"))}),
        pa.table({"a": pa.array([1, 3, None, 2], pa.duration("ms"))}),
    ],
)
def test_time_spans(table):
    book, coded = CodeBook.fit_encode(table)
    assert coded.column(0).tolist() == [1, 3, 0, 2]
    assert book.unit(0) == "timedelta64[ns]"
    assert (book.low == np.array([1, 2, 3]) * book.low[0]).all()


ZONE = datetime.timezone(datetime.timedelta(hours=1))  # which there was in the year 1500, too


def tables_of(times):
    """A column of numpy dates or time spans as a table of every kind."""
    spans = times.dtype.kind == "m"
    unit = np.datetime_data(times.dtype)[0]
    kinds = {"numpy": times[:, None], "arrow": pa.table({"a": pa.array(times)})}
    if unit != "D":
        series = pd.Series(times)
        kinds["pandas"] = pd.DataFrame({"a": series})
        kinds["pandas arrow"] = pd.DataFrame(
            {"a": series.astype(pd.ArrowDtype(pa.array(times).type))}
        )
        if not spans:
            kinds["pandas zone"] = pd.DataFrame({"a": series.dt.tz_localize(ZONE)})
    if unit not in ("D", "s"):
        kinds["polars"] = pl.DataFrame({"a": times})
    return kinds.values()


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us"])
@pytest.mark.parametrize("date", ["1500-01-01", "1677-09-20", "2262-04-13", "9999-12-31"])
def test_dates_that_nanoseconds_do_not_reach(date, unit):
    for table in tables_of(np.array(["2020-01-01", "NaT", date], dtype=f"M8[{unit}]")):
        with pytest.raises(ValueError, match=r"Column .* of X holds dates outside of 1677"):
            CodeBook.fit_encode(table)


@pytest.mark.parametrize("days", [-(10**6), 10**6])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_time_spans_that_nanoseconds_do_not_reach(days, unit):
    times = np.array([1, "NaT", days], dtype="m8[D]").astype(f"m8[{unit}]")
    for table in tables_of(times):
        with pytest.raises(ValueError, match=r"Column .* of X holds time spans outside of -292"):
            CodeBook.fit_encode(table)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "s", "us", "ns", "25s", "ps", "fs"])
def test_dates_of_every_unit(unit):
    dates = ["1969-11-01", "NaT", "1970-02-01"]
    if unit not in ("ps", "fs"):
        dates = ["1678-01-01", "NaT", "2262-01-01"]
    if unit == "fs":
        dates = ["1969-12-31T23:00", "NaT", "1970-01-01T01"]
    times = np.array(dates, dtype="M8[m]").astype(f"M8[{unit}]")
    _, coded = CodeBook.fit_encode(times[:, None])
    assert coded.column(0).tolist() == [1, 0, 2]


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
