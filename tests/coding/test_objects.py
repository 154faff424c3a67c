"""Dates, time spans and exact numbers as Python objects: ordered as what they are."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dtrees import DecisionTreeRegressor, RandomForestClassifier
from dtrees.coding import CodeBook
from dtrees.export import load, save
from dtrees.parallel import admitted, encode_partitions

DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=3 * i) for i in range(30)]
TIMES = [dt.datetime(2024, 1, 1, 12) + dt.timedelta(hours=7 * i) for i in range(30)]
BERLIN = [pd.Timestamp(each, tz="Europe/Berlin") for each in TIMES]
SPANS = [dt.timedelta(minutes=i) for i in range(30)]
OF_DAY = [dt.time(i % 24, 59 - i, i, 10 * i) for i in range(30)]
SINCE_MIDNIGHT = [dt.datetime.combine(DAYS[0], t) - dt.datetime(2024, 1, 1) for t in OF_DAY]
AS_NUMPY = {
    "date": (DAYS, np.array(DAYS, dtype="M8[D]")),
    "datetime": (TIMES, np.array(TIMES, dtype="M8[us]")),
    "date and datetime": ([*DAYS[:9], *TIMES], np.array([*DAYS[:9], *TIMES], dtype="M8[us]")),
    "Timestamp": ([pd.Timestamp(t) for t in TIMES], np.array(TIMES, dtype="M8[ns]")),
    "with a zone": (BERLIN, pd.DatetimeIndex(BERLIN).tz_convert(None).to_numpy()),
    "zones of Python": ([t.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))) for t in TIMES],
                        np.array(TIMES, dtype="M8[us]") - np.timedelta64(1, "h")),
    "datetime64": (list(np.array(DAYS, dtype="M8[D]")), np.array(DAYS, dtype="M8[D]")),
    "timedelta": (SPANS, np.array(SPANS, dtype="m8[us]")),
    "Timedelta": ([pd.Timedelta(s) for s in SPANS], np.array(SPANS, dtype="m8[ns]")),
    "timedelta64": (list(np.array(SPANS, dtype="m8[s]")), np.array(SPANS, dtype="m8[s]")),
    "time": (OF_DAY, np.array(SINCE_MIDNIGHT, dtype="m8[us]")),
    "time and timedelta": ([*OF_DAY, *SPANS], np.array([*SINCE_MIDNIGHT, *SPANS], dtype="m8[us]")),
}  # fmt: skip
FORMS = {
    "objects": lambda cells: column(cells),
    "pandas": lambda cells: pd.DataFrame({"a": cells}),
    "arrow of pandas": lambda cells: pd.DataFrame({"a": pd.array(cells, pd.ArrowDtype(TIME64))}),
    "polars": lambda cells: pl.DataFrame({"a": cells}),
    "arrow": lambda cells: pa.table({"a": cells}),
    "seconds of arrow": lambda cells: pa.table({"a": pa.array(cells).cast(pa.time32("s"), False)}),
    "Dask": lambda cells: dd.from_pandas(pd.DataFrame({"a": cells}), npartitions=3),
}
TIME64 = pa.time64("ns")


def column(cells):
    found = np.empty((len(cells), 1), dtype=object)
    found[:, 0] = cells
    return found


@pytest.mark.parametrize("gap", [None, np.nan, pd.NaT, np.datetime64("NaT", "ns")], ids=repr)
@pytest.mark.parametrize("case", AS_NUMPY)
def test_times_are_those_of_numpy(case, gap):
    cells, times = AS_NUMPY[case]
    book, codes = CodeBook.fit_encode(column([*cells, gap]))
    same, expected = CodeBook.fit_encode(np.append(times, np.array("NaT", times.dtype))[:, None])
    assert book.unit(0) == same.unit(0) in ("datetime64[ns]", "timedelta64[ns]")
    assert book.low.tolist() == same.low.tolist()
    assert codes.column(0).tolist() == expected.column(0).tolist()
    assert codes.column(0)[-1] == 0


@pytest.mark.parametrize("form", FORMS)
def test_times_of_day_through_a_model(form, tmp_path):
    cells = [t.replace(microsecond=0) for t in OF_DAY]
    y = np.array([t >= dt.time(12, 30) for t in cells])
    with dask.config.set({"dataframe.convert-string": False}):
        model = RandomForestClassifier(3, bootstrap=False, max_features=None)
        model.fit(FORMS[form]([*cells, None]), [*y, False])
        assert model.codebook_.unit(0) == "timedelta64[ns]"
        save(model, tmp_path / "model")
        for fitted in (model, load(tmp_path / "model")):
            found = np.asarray(fitted.predict(FORMS[form]([None, *cells])))
            np.testing.assert_array_equal(found, [False, *y])


def test_times_of_day_have_no_zone():
    with pytest.raises(ValueError, match=r"Column 0 of X holds .*, a time of day with a time zone"):
        CodeBook.fit_encode(column([dt.time(1, tzinfo=dt.UTC)]))


@pytest.mark.parametrize("form", ["objects", "pandas", "polars objects", "polars", "arrow", "Dask"])
def test_dates_through_a_model(form, tmp_path):
    forms = {
        "objects": lambda: column(DAYS),
        "pandas": lambda: pd.DataFrame({"a": pd.Series(DAYS, dtype=object)}),
        "polars objects": lambda: pl.DataFrame({"a": pl.Series(DAYS, dtype=pl.Object)}),
        "polars": lambda: pl.DataFrame({"a": pl.Series(DAYS, dtype=pl.Date)}),
        "arrow": lambda: pa.table({"a": pa.array(DAYS)}),
    }
    y = np.arange(30.0)
    with dask.config.set({"dataframe.convert-string": False}):
        X = dd.from_pandas(forms["pandas"](), chunksize=7) if form == "Dask" else forms[form]()
        tree = DecisionTreeRegressor().fit(X, y)
        assert np.asarray(tree.predict(X)).tolist() == y.tolist()
    save(tree, tmp_path / "tree")
    again = load(tmp_path / "tree")
    for other in ("objects",) if form == "objects" else ("pandas", "polars objects", "polars"):
        assert again.predict(forms[other]()).tolist() == y.tolist()
    if form != "objects":
        later = pd.DataFrame({"a": pd.to_datetime(DAYS)})
        assert again.predict(later).tolist() == y.tolist()


@pytest.mark.parametrize(
    ("message", "cells"),
    [
        ("Column 0 of X holds 'x' of type str in row 2, among dates: .* a date", [*DAYS[:2], "x"]),
        ("Column 0 of X holds '7' of type int in row 1, among dates", [DAYS[0], 7, *DAYS[:2]]),
        ("Column 0 of X holds '2024-01-01' of type date in row 1, among", [1, DAYS[0], "x", None]),
        ("Column 0 of X holds \"b'x'\" of type bytes: .*, for example bytes to str", [b"x", 1]),
        (r"Column 0 of X holds '\(1,\)' of type tuple: .* Convert the column\.$", [(1,), 2]),
        ("Column 0 of X holds '2024-01-01' of type date", [DAYS[0], 3]),
        ("Column 0 of X holds '1:00:00' of type timedelta", [3, dt.timedelta(hours=1)]),
        ("Column 0 of X holds .* of type", [DAYS[0], dt.timedelta(hours=1)]),
        ("Column 0 of X holds times with a time zone beside", [TIMES[0], BERLIN[0]]),
        ("Column 0 of X holds dates outside of 1677", [dt.date(1, 1, 1), None]),
        ("Column 0 of X holds dates outside of 1677", [dt.datetime(9999, 1, 1)]),
        ("Column 0 of X holds (.*no time in UTC|dates outside of)", [dt.datetime.min.replace(
            tzinfo=dt.timezone(dt.timedelta(hours=5)))]),
        ("Column 0 of X holds time spans outside of", [dt.timedelta.max]),
        (r"infinity .*\(column 0\)", [10**400, 1]),
        (r"infinity .*\(column 0\)", [-(10**400), 1, "a"]),
        (r"infinity .*\(column 0\)", [Decimal("Infinity"), 1]),
        ("Column 0 of X holds 1E.999999, a Decimal that is too large", [Decimal("1e999999"), None]),
        ("Column 0 of X holds 1000.*, a Fraction that is too large", [Fraction(10**400, 3), 1]),
        ("Column 0 of X holds 'sNaN' of type Decimal", [Decimal("sNaN"), 1]),
    ],
)  # fmt: skip
def test_what_is_refused_names_its_column(message, cells):
    with pytest.raises((ValueError, TypeError), match=message):
        CodeBook.fit_encode(column(cells))
    frame = pd.DataFrame({"price": pd.Series(column(cells)[:, 0], dtype=object)})
    with pytest.raises((ValueError, TypeError), match=message.replace("olumn 0", "olumn 'price'")):
        CodeBook.fit_encode(frame)
    book, _ = CodeBook.fit_encode(np.arange(3.0)[:, None])
    with pytest.raises((ValueError, TypeError), match="0"):
        book.check(column(cells))


def test_huge_integers_are_categories(tmp_path):
    cells = [10**400, 10**400 + 1, "a", None, 3] * 5
    y = [0, 1, 2, 3, 4] * 5
    model = RandomForestClassifier(9, categorical_features=[0], bootstrap=False, random_state=0)
    model.fit(column(cells), y)
    assert model.predict(column(cells)).tolist() == y
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").predict(column(cells)).tolist() == y


EXACT = [Decimal("0.1"), Decimal("1.10"), Decimal("-2"), None, Fraction(1, 3), Decimal("NaN"), 7]


def test_exact_numbers_are_the_nearest_float64():
    book, codes = CodeBook.fit_encode(column(EXACT))
    assert book.low.tolist() == [-2.0, 0.1, 1 / 3, 1.1, 7.0]
    assert codes.column(0).tolist() == [2, 4, 1, 0, 3, 0, 5]
    close = column([Decimal("0.1"), Decimal("0.10000000000000000001"), Decimal("0.2")])
    assert CodeBook.fit_encode(close)[0].n_codes.tolist() == [2]
    named, codes = CodeBook.fit_encode(column([*EXACT, "a"]), categorical_features=[0])
    assert named.categories[0].tolist() == [-2, 0.1, 1 / 3, 1.1, 7, "a"]
    floats = named.encode(np.array([[0.1], [1.1], [-2.0]]))
    assert floats.column(0).tolist() == [2, 4, 1]


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_partitions_of_objects(chunk):
    frame = pd.DataFrame({"a": column(EXACT)[:, 0], "b": column([*DAYS[:5], None, DAYS[6]])[:, 0]})
    book, codes = CodeBook.fit_encode(frame)
    with dask.config.set({"dataframe.convert-string": False}):
        (table,) = admitted(dd.from_pandas(frame, chunksize=chunk), {})
        found, same = encode_partitions(table)
    assert found.low.tolist() == book.low.tolist()
    assert found.units.tolist() == book.units.tolist()
    for j in range(2):
        assert same.column(j).tolist() == codes.column(j).tolist()


def test_decimals_of_polars_and_arrow():
    values = [Decimal("0.1"), Decimal("2.5"), None, Decimal("-1.0")]
    of_arrow = pd.array(values, dtype=pd.ArrowDtype(pa.decimal128(5, 2)))
    tables = [pl.DataFrame({"a": values}), pa.table({"a": pa.array(values)})]
    for X in [*tables, pd.DataFrame({"a": of_arrow})]:
        assert CodeBook.fit_encode(X)[0].low.tolist() == [-1.0, 0.1, 2.5]
