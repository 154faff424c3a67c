"""Dates and time spans are nanoseconds."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dtrees.coding import CodeBook
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
