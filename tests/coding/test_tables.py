"""The front door: every kind of table in memory, and what it refuses."""

import datetime
import subprocess
import sys
from datetime import time
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from dtrees.coding import CodeBook
from dtrees.coding.kinds import sort_columns
from dtrees.coding.row_digest import digest_of_rows
from dtrees.coding.tables import read_table

rng = np.random.default_rng(3)


def code_column(column, **options):
    """Codes, number of ordered codes, number of codes of a one-column table."""
    book, coded = CodeBook.fit_encode(column, **options)
    return coded.column(0).tolist(), int(book.n_ordered[0]), int(book.n_codes[0])


def frame(values, dtype=None):
    return pd.DataFrame({"a": pd.array(values, dtype=dtype) if dtype else values})


ORDERED = ([2, 0, 1, 1], 2, 2)
NUMBERS = {
    "numpy": np.array([[3.5], [np.nan], [-1.0], [-1.0]]),
    "numpy objects": np.array([[3.5], [None], [-1], [-1.0]], dtype=object),
    "numpy strings": np.array([["3.5"], [None], ["-1"], [" -1.0"]], dtype=object),
    "list": [[3.5], [float("nan")], [-1], [-1]],
    "list of objects": [["3.5"], [None], ["-1"], [-1]],
    "pandas": frame([3.5, np.nan, -1, -1]),
    "pandas float32": frame(np.array([3.5, np.nan, -1, -1], dtype=np.float32)),
    "pandas Float64": frame([3.5, None, -1, -1], "Float64"),
    "pandas Int64": frame([3, None, -1, -1], "Int64"),
    "pandas boolean": frame([True, None, False, False], "boolean"),
    "pandas Arrow double": frame([3.5, None, -1, -1], "double[pyarrow]"),
    "pandas Arrow int": frame([3, None, -1, -1], "int64[pyarrow]"),
    "pandas Arrow bool": frame([True, None, False, False], "bool[pyarrow]"),
    "pandas Arrow decimal": frame([3, None, 1, 1], pd.ArrowDtype(pa.decimal128(5, 2))),
    "pandas string numbers": frame(["3.5", None, "-1", "-1.0"]),
    "pandas objects": frame(np.array([3.5, pd.NA, -1, "-1"], dtype=object)),
    "polars": pl.DataFrame({"a": [3.5, None, -1, -1]}, strict=False),
    "polars int": pl.DataFrame({"a": [3, None, -1, -1]}),
    "polars bool": pl.DataFrame({"a": [True, None, False, False]}),
    "polars decimal": pl.DataFrame({"a": pl.Series([3, None, 1, 1]).cast(pl.Decimal(10, 2))}),
    "polars string numbers": pl.DataFrame({"a": ["3.5", None, "-1", "-1.0"]}),
    "arrow": pa.table({"a": [3.5, None, -1.0, -1.0]}),
    "arrow int": pa.table({"a": pa.array([3, None, -1, -1], pa.int32())}),
    "arrow bool": pa.table({"a": [True, None, False, False]}),
    "arrow decimal": pa.table({"a": pa.array([3, None, 1, 1], pa.decimal128(5, 2))}),
    "arrow batch": pa.RecordBatch.from_pydict({"a": [3.5, None, -1.0, -1.0]}),
    "sparse": sp.csr_array(np.array([[3.5], [np.nan], [-1.0], [-1.0]])),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_ordered(name):
    assert code_column(NUMBERS[name]) == ORDERED


CATEGORICAL = ([2, 0, 1, 2], 0, 2)
ARROW_DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
STRINGS = {
    "numpy objects": np.array([["b"], [None], ["a"], ["b"]], dtype=object),
    "list": [["b"], [None], ["a"], ["b"]],
    "pandas str": frame(["b", None, "a", "b"]),
    "pandas object": frame(np.array(["b", np.nan, "a", "b"], dtype=object)),
    "pandas string": frame(["b", None, "a", "b"], "string"),
    "pandas Arrow string": frame(["b", None, "a", "b"], pd.ArrowDtype(pa.string())),
    "pandas Arrow dictionary": frame(["b", None, "a", "b"], ARROW_DICTIONARY),
    "pandas category": frame(pd.Categorical(["b", None, "a", "b"], categories=["c", "b", "a"])),
    "polars string": pl.DataFrame({"a": ["b", None, "a", "b"]}),
    "polars categorical": pl.DataFrame(
        {"a": pl.Series(["b", None, "a", "b"]).cast(pl.Categorical)}
    ),
    "polars enum": pl.DataFrame(
        {"a": pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["c", "b", "a"]))}
    ),
    "polars object": pl.DataFrame({"a": pl.Series(["b", None, "a", "b"], dtype=pl.Object)}),
    "arrow": pa.table({"a": ["b", None, "a", "b"]}),
    "arrow large": pa.table({"a": pa.array(["b", None, "a", "b"], pa.large_string())}),
    "arrow view": pa.table({"a": pa.array(["b", None, "a", "b"], pa.string_view())}),
    "arrow dictionary": pa.table({"a": pa.array(["b", None, "a", "b"]).dictionary_encode()}),
    "arrow chunks": pa.table({"a": pa.chunked_array([["b", None], ["a", "b"]])}),
    "arrow dictionary chunks": pa.table(
        {
            "a": pa.chunked_array(
                [
                    pa.array(["b", None]).dictionary_encode(),
                    pa.array(["a", "b"]).dictionary_encode(),
                ]
            )
        }
    ),
}


@pytest.mark.parametrize("name", STRINGS)
def test_strings_are_categories(name):
    assert code_column(STRINGS[name]) == CATEGORICAL
    book, coded = CodeBook.fit_encode(STRINGS[name])
    assert book.decode(0, coded.column(0)).tolist() == ["b", None, "a", "b"]
    assert book.categories[0].tolist() == ["a", "b"]
    assert np.array_equal(book.encode(STRINGS[name]).column(0), coded.column(0))


def test_fixed_width_strings():
    assert code_column(np.array([["b"], ["a"], ["b"]])) == ([2, 1, 2], 0, 2)
    assert code_column(np.array([["10"], ["9"], ["9.0"]])) == ([2, 1, 1], 2, 2)
    text = np.array([["b"], ["a"]], dtype=np.dtypes.StringDType())
    assert code_column(text) == ([2, 1], 0, 2)


def test_category_of_numbers_stays_categorical():
    for values in ([10, 2, None, 10], ["10", "2", None, "10"]):
        codes, n_ordered, n_codes = code_column(frame(pd.Categorical(values)))
        assert (n_ordered, n_codes) == (0, 2)
        assert codes[2] == 0
        assert codes[0] == codes[3]


def test_hybrid_column():
    table = frame(np.array(["2", 10, "B", None, "1e1", "A", "nan", "", True], dtype=object))
    book, coded = CodeBook.fit_encode(table)
    # numbers 1, 2, 10; then '', 'A', 'B', 'nan': no string names a number that is not finite
    assert coded.column(0).tolist() == [2, 3, 6, 0, 3, 5, 7, 4, 1]
    assert (book.n_ordered[0], book.n_codes[0]) == (3, 7)
    assert book.categories[0].tolist() == ["", "A", "B", "nan"]
    assert book.decode(0, coded.column(0)).tolist() == [2, 10, "B", None, 10, "A", "nan", "", 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda cells: np.array(cells)[:, None],
        lambda cells: np.array(cells, dtype=object)[:, None],
        lambda cells: np.array(cells, dtype=np.dtypes.StringDType())[:, None],
        lambda cells: [[cell] for cell in cells],
        lambda cells: frame(cells, "string"),
        lambda cells: frame(cells),
        lambda cells: pl.DataFrame({"a": cells}),
        lambda cells: pa.table({"a": cells}),
    ],
)
def test_what_strings_are_numbers(make):
    assert code_column(make(["1_2", "1_3", "1_2"])) == ([1, 2, 1], 0, 2)
    assert code_column(make(["1_2", "12", "13"])) == ([3, 1, 2], 2, 3)
    assert code_column(make(["007", "7", "+7.0 ", "1e2"])) == ([1, 1, 1, 2], 2, 2)
    assert code_column(make(["007", "7", "x"])) == ([1, 1, 2], 1, 2)
    assert code_column(make(["007", "7"]), categorical_features=[0]) == ([1, 2], 0, 2)
    book, _ = CodeBook.fit_encode(make(["1", "2"]))
    with pytest.raises(ValueError, match="could not convert string to float: '1_2'"):
        book.check(make(["1", "1_2"]))


@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "i8", "u1", "bool", "M8[D]", "m8[s]", "O", "U3", "T"]
)
def test_masked_cells_are_missing(dtype):
    cells = np.array([1, 0, 1, 0]).astype("i8" if dtype == "M8[D]" else dtype).astype(dtype)
    X = np.ma.array(cells, mask=[False, True, False, False])[:, None]
    assert code_column(X) == ([2, 0, 2, 1], 2, 2)
    assert code_column(np.ma.array(cells)[:, None]) == ([2, 1, 2, 1], 2, 2)
    assert np.array_equal(X.mask[:, 0], [False, True, False, False])


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
    assert book.describe_value(0, book.low[0]) == "2020-01-01"
    threshold, code = book.thresholds([0], [1], [2])
    assert book.describe_value(0, threshold[0]) == "2020-01-01T12:00:00"
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
    assert "nanoseconds" in book.describe_value(0, 1e6)


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


@pytest.mark.parametrize(
    "table",
    [
        np.full((3, 1), np.nan),
        np.full((3, 1), None),
        frame([None, None, None]),
        pl.DataFrame({"a": [None, None, None]}),
        pa.table({"a": pa.nulls(3)}),
        frame(pd.Categorical([None, None, None], categories=["a"])),
    ],
)
def test_all_missing_has_no_codes(table):
    assert code_column(table) == ([0, 0, 0], 0, 0)


def test_categories_that_are_all_missing_have_no_codes():
    table = frame(pd.Categorical([None, None, None], categories=["a", "b"]))
    table["b"] = pd.Categorical([None] * 3)
    table["c"] = ["u", "v", "u"]
    for mask in (None, np.ones(3, dtype=bool)):
        columns = sort_columns(read_table(table), mask)
        assert [block.columns.tolist() for block in columns.ordered] == [[0], [1]]  # all get codes
    for options in ({}, {"categorical_features": ["a", "b", "c"]}):
        book, coded = CodeBook.fit_encode(table, **options)
        assert [coded.column(j).tolist() for j in range(3)] == [[0, 0, 0], [0, 0, 0], [1, 2, 1]]
        assert book.n_codes.tolist() == [0, 0, 2]
        assert book.encode(table).column(0).tolist() == [0, 0, 0]


def test_units_of_booleans():
    for table in (np.array([[True], [False]]), frame([True, False], "boolean")):
        book, _ = CodeBook.fit_encode(table)
        assert book.unit(0) == "bool"
        assert book.describe_value(0, 1.0) == "True"


def test_mixed_frame_and_its_names():
    table = pd.DataFrame(
        {"x": rng.normal(size=20), "i": np.arange(20) % 3, "s": ["u", "v"] * 10, "y": np.zeros(20)}
    )
    for X in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
        book, coded = CodeBook.fit_encode(X)
        assert book.feature_names.tolist() == ["x", "i", "s", "y"]
        assert book.n_codes.tolist() == [20, 3, 2, 1]
        assert book.n_ordered.tolist() == [20, 3, 0, 1]
        assert coded.n_columns == 4


def test_names_that_are_no_strings():
    assert read_table(pd.DataFrame(np.zeros((2, 2)))).names is None
    with pytest.raises(TypeError, match="Feature names are only supported if all input features"):
        read_table(pd.DataFrame(np.zeros((2, 2)), columns=["a", 1]))


def test_blocks_are_views():
    X = rng.normal(size=(50, 4)).astype(np.float32)
    assert np.shares_memory(read_table(X).block, X)
    assert read_table(X).block.dtype == np.float32
    table = pd.DataFrame(X)
    assert np.shares_memory(read_table(table).block, table.to_numpy())
    assert read_table(pd.DataFrame({"a": [1.0], "s": ["x"]})).block is None


def test_large_frames_are_joined_without_a_copy(monkeypatch):
    from dtrees.coding import tables

    monkeypatch.setattr(tables, "SMALL_FRAME", 0)
    X = rng.normal(size=(50, 4))
    for table in (pd.DataFrame(X), pd.DataFrame({k: X[:, i] for i, k in enumerate("abcd")})):
        read = read_table(table)
        assert len(read.numbers) == 1
        assert np.array_equal(read.block, X)
        for j in range(4):
            assert np.shares_memory(read.block, table.iloc[:, j].to_numpy())
    parts = pd.concat([pd.DataFrame(X[:, :2]), pd.DataFrame(X[:, 2:])], axis=1)
    blocks = read_table(parts).numbers
    assert np.array_equal(np.hstack([b.values for b in blocks]), X)


def test_rows_of_a_table():
    table = pd.DataFrame({"x": np.arange(6.0), "s": list("ababcc")})
    book, coded = CodeBook.fit_encode(table)
    part = book.encode(book.check(table).rows(2, 5))
    assert part.n_rows == 3
    for j in range(2):
        assert np.array_equal(part.column(j), coded.column(j)[2:5])


def test_sparse_frame():
    table = pd.DataFrame.sparse.from_spmatrix(sp.csc_matrix([[0.0, 1], [2, 0]]), columns=["a", "b"])
    read = read_table(table)
    assert read.sparse is not None
    assert read.names.tolist() == ["a", "b"]
    table["c"] = [1.0, 2.0]
    assert read_table(table).sparse is None
    assert CodeBook.fit_encode(table)[0].n_codes.tolist() == [2, 2, 2]


@pytest.mark.parametrize("fill", [np.nan, None, 0, 1])
def test_sparse_frames_that_leave_out_any_value(fill):
    values = np.array([[0.0, 1], [2, np.nan], [1, 0]])
    frame = pd.DataFrame(values, columns=["a", "b"])
    kind = pd.SparseDtype(float, fill)
    for columns in (["a"], ["a", "b"]):
        table = read_table(frame[columns].astype(kind))
        assert table.names.tolist() == columns
        assert (table.sparse is not None) == (fill == 0)
        numbers = [part.values for part in table.numbers]
        whole = table.sparse.toarray() if fill == 0 else np.hstack(numbers)
        assert np.array_equal(whole, values[:, : len(columns)], equal_nan=True)


def damaged(make, **attributes):
    """A sparse matrix with other attributes than it was made with."""
    matrix = make(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0], [0, 0, 5]]))
    for name, value in attributes.items():
        setattr(matrix, name, value)
    return matrix


def lil(**attributes):
    matrix = damaged(sp.lil_array)
    for name, value in attributes.items():
        getattr(matrix, name)[0] = value
    return matrix


ints = partial(np.array, dtype=np.int32)
DAMAGED = {
    "csr index too large": damaged(sp.csr_array, indices=ints([0, 2, 1, 0, 3])),
    "csr index negative": damaged(sp.csr_array, indices=ints([0, 2, 1, -1, 2])),
    "csr too few indices": damaged(sp.csr_array, indices=ints([0, 2, 1, 0])),
    "csr indptr falls": damaged(sp.csr_array, indptr=ints([0, 4, 3, 4, 5])),
    "csr indptr too far": damaged(sp.csr_array, indptr=ints([0, 2, 3, 4, 500])),
    "csr indptr not from 0": damaged(sp.csr_array, indptr=ints([-1, 2, 3, 4, 5])),
    "csr indptr too short": damaged(sp.csr_array, indptr=ints([0, 2, 5])),
    "csc index too large": damaged(sp.csc_array, indices=ints([0, 2, 1, 0, 10**9])),
    "csc matrix": damaged(sp.csc_matrix, indices=ints([0, 2, 1, 0, 4])),
    "bsr index too large": damaged(partial(sp.bsr_array, blocksize=(2, 3)), indices=ints([0, 1])),
    "bsr blocks": damaged(partial(sp.bsr_array, blocksize=(2, 3)), data=np.ones((2, 3, 3))),
    "coo": damaged(sp.coo_array, coords=(ints([0, 0, 1, 2, 4]), ints([0, 2, 1, 0, 2]))),
    "coo lengths": damaged(sp.coo_array, coords=(ints([0, 0, 1, 2]), ints([0, 2, 1, 0, 2]))),
    "dia": damaged(sp.dia_array, offsets=ints([0, 1])),
    "lil index": lil(rows=[0, 3]),
    "lil lengths": lil(data=[1.0]),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_sparse_tables_are_refused(name):
    book, _ = CodeBook.fit_encode(np.ones((4, 3)))
    for read in (CodeBook.fit_encode, book.check, book.encode):
        with pytest.raises(ValueError, match=r"that is damaged: .*\. Build it anew"):
            read(DAMAGED[name])


def test_sparse_tables_of_every_format():
    X = np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0], [0, 0, 5]])
    for name in ("csr", "csc", "bsr", "coo", "lil", "dok", "dia"):
        for matrix in (sp.csr_array(X).asformat(name), sp.csr_matrix(X).asformat(name)):
            assert np.array_equal(read_table(matrix).sparse.toarray(), X)


def test_array_likes():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0], [2.0]])

    class Sub(np.ndarray):
        pass

    assert code_column(Wrapped()) == ([1, 2], 2, 2)
    assert code_column(np.array([[1.0], [2.0]]).view(Sub)) == ([1, 2], 2, 2)


@pytest.mark.parametrize(
    ("error", "message", "X"),
    [
        (
            ValueError,
            r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1",
            np.empty((0, 3)),
        ),
        (ValueError, r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1", np.empty((4, 0))),
        (ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\)", sp.csr_array((0, 3))),
        (ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)", pd.DataFrame({"a": []})),
        (ValueError, r"0 feature\(s\) \(shape=\(2, 0\)\)", pd.DataFrame(index=[0, 1])),
        (ValueError, r"0 sample\(s\)", pl.DataFrame({"a": []})),
        (ValueError, r"0 sample\(s\)", pa.table({"a": pa.array([], pa.int64())})),
        (
            ValueError,
            "Expected 2D array, got 1D array instead(.|\n)*Reshape your data",
            np.arange(3),
        ),
        (ValueError, "Expected 2D array, got 1D array instead", []),
        (ValueError, "Expected 2D array, got 1D array instead", pd.Series([1, 2])),
        (ValueError, "Expected 2D array, got scalar array instead", 3),
        (ValueError, "Expected 2D array, got a str", "abc"),
        (ValueError, "Expected 2D array, got a dict instead: {'a': .*Give an array", {"a": [1]}),
        (ValueError, "Expected 2D array, got a NoneType", None),
        (ValueError, "Found array with dim 3, while dim <= 2 is required", np.zeros((2, 2, 2))),
        (ValueError, "does not form a 2D array", [[1, 2], [3]]),
        (ValueError, "Complex data not supported", np.array([[1j]])),
        (ValueError, "Complex data not supported", np.array([[1j, "a"]], dtype=object)),
        (ValueError, "Complex data not supported", sp.csr_array([[1j]])),
        (ValueError, "Complex data not supported: column 'a'", pd.DataFrame({"a": [1j], "b": [1]})),
        (
            TypeError,
            "argument must be a string or a real number",
            np.array([[{}], [1]], dtype=object),
        ),
        (
            TypeError,
            "Column 1 of X holds .* of type tuple",
            np.array([[1, None], [1, (1,)]], dtype=object),
        ),
        (TypeError, "of type bytes", np.array([[1, b"x"]], dtype=object)),
        (TypeError, "of type time", np.array([[time(1)]], dtype=object)),
        (TypeError, r"dtype \|S1", np.array([[b"a"]])),
        (TypeError, "np.matrix is not supported", np.matrix([[1.0]])),
        (TypeError, "LazyFrame", pl.LazyFrame({"a": [1]})),
        (TypeError, "polars type List", pl.DataFrame({"a": [[1]]})),
        (TypeError, "Arrow type list", pa.table({"a": [[1]]})),
        (
            TypeError,
            "Column 'a' of X has dtype period",
            pd.DataFrame({"a": pd.period_range("2020", periods=2, freq="D")}),
        ),
    ],
)
def test_refused(error, message, X):
    with pytest.raises(error, match=message):
        CodeBook.fit_encode(X)


def test_dask_collections_are_refused():
    array = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="Dask collection"):
        read_table(array.zeros((2, 2)))


def test_import_brings_in_no_data_frames():
    program = (
        "import sys, dtrees.coding as c, numpy as np; c.CodeBook.fit_encode(np.ones((2, 2)));"
        "print([m for m in ('pandas','polars','pyarrow','sklearn','dask','matplotlib') "
        "if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("form", ["numpy", "object", "pandas", "category", "polars"])
def test_a_hundred_thousand_categories(form):
    n = 120_000
    labels = np.char.add(
        "c", np.concatenate([np.arange(100_000), rng.integers(0, 100_000, n - 100_000)]).astype(str)
    )
    X = {
        "numpy": lambda: labels[:, None],
        "object": lambda: labels.astype(object)[:, None],
        "pandas": lambda: pd.DataFrame({"a": labels}),
        "category": lambda: pd.DataFrame({"a": pd.Categorical(labels)}),
        "polars": lambda: pl.DataFrame({"a": labels}),
    }[form]()
    book, coded = CodeBook.fit_encode(X)
    categories, inverse = np.unique(labels, return_inverse=True)
    assert book.n_codes.tolist() == [100_000]
    assert np.array_equal(coded.column(0), inverse + 1)
    assert book.categories[0].tolist() == categories.tolist()
    assert coded.storage[0] == 2
    assert np.array_equal(coded.order32[:, 0], np.argsort(inverse, kind="stable"))
    assert np.array_equal(book.encode(X).column(0), coded.column(0))


MANY = [f"c{number:05d}" for number in range(3000)]
NUMBERED = [2999 - number for number in range(3000)]


def of_many(labels, rows):
    """The same rows of a column of these categories, in every form that lists them in its type."""
    column = pd.Categorical.from_codes(rows, labels)
    arrow = pa.DictionaryArray.from_arrays(
        pa.array([None if row < 0 else row for row in rows], pa.int32()), pa.array(labels)
    )
    half = len(rows) // 2
    return {
        "pandas": pd.DataFrame({"a": column}),
        "pandas, ordered": pd.DataFrame({"a": column.as_ordered()}),
        "pandas, Arrow": pd.DataFrame({"a": pd.Series(arrow, dtype=pd.ArrowDtype(arrow.type))}),
        "arrow": pa.table({"a": arrow}),
        "arrow chunks": pa.table({"a": pa.chunked_array([arrow[:half], arrow[half:]])}),
    }


FORMS_OF_MANY = of_many(MANY, [0])
ROWS_OF_MANY = [2998, 5, -1, 2998, 0, 17]


@pytest.mark.parametrize("labels", [MANY, NUMBERED], ids=["strings", "numbers"])
@pytest.mark.parametrize("form", FORMS_OF_MANY)
def test_a_row_costs_the_labels_that_it_holds(form, labels, monkeypatch):
    book, whole = CodeBook.fit_encode(of_many(labels, [*range(3000), -1])[form])
    read = []
    read_labels = CodeBook.read_labels
    monkeypatch.setattr(
        CodeBook,
        "read_labels",
        lambda book, column, name: (
            read.append(len(column.labels)) or read_labels(book, column, name)
        ),
    )
    iterate = pd.Index.__iter__
    monkeypatch.setattr(
        pd.Index, "__iter__", lambda index: read.append(len(index)) or iterate(index)
    )
    for row in (0, 1234, 2999, -1):
        few = of_many(labels, [row])[form]
        read.clear()
        assert book.encode(few).column(0).tolist() == [whole.column(0)[row]]
        assert max(read) <= 1
    few = of_many(labels, ROWS_OF_MANY)[form]
    assert book.encode(few).column(0).tolist() == whole.column(0)[ROWS_OF_MANY].tolist()
    assert max(read) <= 4


@pytest.mark.parametrize("labels", [MANY, NUMBERED], ids=["strings", "numbers"])
@pytest.mark.parametrize("form", FORMS_OF_MANY)
@pytest.mark.parametrize("options", [{}, {"categorical_features": [0]}])
def test_categories_in_no_row_mean_nothing(form, labels, options):
    """Of a type that lists more of them than there are rows, or only those there are."""
    book, coded = CodeBook.fit_encode(of_many(labels, ROWS_OF_MANY)[form], **options)
    here = sorted({row for row in ROWS_OF_MANY if row >= 0})
    few = [-1 if row < 0 else here.index(row) for row in ROWS_OF_MANY]
    plain, expected = CodeBook.fit_encode(
        of_many([labels[row] for row in here], few)[form], **options
    )
    assert coded.column(0).tolist() == expected.column(0).tolist()
    assert digest_of_rows(coded) == digest_of_rows(expected)
    assert repr(book.categories[0].tolist()) == repr(plain.categories[0].tolist())
    assert book.categories[0].dtype == plain.categories[0].dtype
    assert book.n_codes.tolist() == plain.n_codes.tolist() == [4]
