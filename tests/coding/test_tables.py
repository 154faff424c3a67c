"""The front door: every kind of table in memory, and what it refuses."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from dtrees.coding import CodeBook, tables
from dtrees.coding.coded import digest_of_rows
from dtrees.coding.tables import check_shape, read_table, row_values
from dtrees.exceptions import StatisticsOverflowError
from tests.coding.examples import code_column, frame


def test_fixed_width_strings():
    assert code_column(np.array([["b"], ["a"], ["b"]])) == ([2, 1, 2], 0, 2)
    assert code_column(np.array([["10"], ["9"], ["9.0"]])) == ([2, 1, 1], 2, 2)
    text = np.array([["b"], ["a"]], dtype=np.dtypes.StringDType())
    assert code_column(text) == ([2, 1], 0, 2)


@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "i8", "u1", "bool", "M8[D]", "m8[s]", "O", "U3", "T"]
)
def test_masked_cells_are_missing(dtype):
    cells = np.array([1, 0, 1, 0]).astype("i8" if dtype == "M8[D]" else dtype).astype(dtype)
    X = np.ma.array(cells, mask=[False, True, False, False])[:, None]
    assert code_column(X) == ([2, 0, 2, 1], 2, 2)
    assert code_column(np.ma.array(cells)[:, None]) == ([2, 1, 2, 1], 2, 2)
    assert np.array_equal(X.mask[:, 0], [False, True, False, False])


def test_array_likes():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0], [2.0]])

    class Sub(np.ndarray):
        pass

    assert code_column(Wrapped()) == ([1, 2], 2, 2)
    assert code_column(np.array([[1.0], [2.0]]).view(Sub)) == ([1, 2], 2, 2)


def test_units_of_booleans():
    for table in (np.array([[True], [False]]), frame([True, False], "boolean")):
        book, _ = CodeBook.fit_encode(table)
        assert book.unit(0) == "bool"


rng = np.random.default_rng(3)


@pytest.mark.one_of(5)
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
    as_list = pd.Index.tolist
    monkeypatch.setattr(pd.Index, "tolist", lambda index: read.append(len(index)) or as_list(index))
    for row in (0, 1234, 2999, -1):
        few = of_many(labels, [row])[form]
        read.clear()
        assert book.encode(few).column(0).tolist() == [whole.column(0)[row]]
        assert max(read) <= 1
    few = of_many(labels, ROWS_OF_MANY)[form]
    assert book.encode(few).column(0).tolist() == whole.column(0)[ROWS_OF_MANY].tolist()
    assert max(read) <= 4


@pytest.mark.one_of(8)
@pytest.mark.parametrize("labels", [MANY, NUMBERED], ids=["strings", "numbers"])
@pytest.mark.parametrize("form", FORMS_OF_MANY)
@pytest.mark.parametrize("options", [{}, {"categorical_features": [0]}])
@pytest.mark.parametrize("limit", [0, 3000])
def test_categories_in_no_row_mean_nothing(form, labels, options, limit, monkeypatch):
    """Of a type that lists more of them than there are rows, or only those there are."""
    monkeypatch.setattr(tables, "FEW_LABELS", limit)
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


@pytest.mark.parametrize("protocol", [4, 5])
def test_columns_of_a_pickled_frame_are_one_view(protocol):
    X = rng.normal(size=(50, 4))
    table = pd.DataFrame(X, columns=list("abcd")).assign(kind="x")
    table = pickle.loads(pickle.dumps(table, protocol)).iloc[7:9]
    (block,) = read_table(table).numbers
    assert np.array_equal(block.values, X[7:9])
    for name in "abcd":
        assert np.shares_memory(block.values, table[name].to_numpy())


@pytest.mark.filterwarnings("ignore:X has several columns of the name")
def test_numbers_of_few_rows_are_a_block_for_each_type(monkeypatch):
    X = pd.DataFrame(rng.normal(size=(600, 30)), columns=[f"x{j}" for j in range(30)])
    X = X.assign(x3=np.arange(600), x7=np.arange(600) % 7, x11=["a", "b"] * 300, x12=True)
    X = X.assign(x20=pd.Timestamp("2020-01-01")).rename(columns={"x9": "x8"})  # a name twice
    book, coded = CodeBook.fit_encode(X)
    made, of_rows = [], tables._series
    monkeypatch.setattr(tables, "_series", lambda X: made.append(X.shape[1]) or of_rows(X))
    for n_rows in (1, 500):
        table = read_table(X.iloc[:n_rows])
        assert made[-1] == 3  # strings, booleans and dates
        assert [len(block.columns) for block in table.numbers[:2]] == [25, 2]
        codes = book.encode(X.iloc[:n_rows])
        for j in range(30):
            assert np.array_equal(codes.column(j), coded.column(j)[:n_rows])
    numbers = X.drop(columns=["x11", "x12", "x20"]).iloc[:1]
    assert read_table(numbers).units.tolist() == read_table(numbers.to_numpy()).units.tolist()
    assert made[-1] == 0


def test_rows_of_a_table():
    table = pd.DataFrame({"x": np.arange(6.0), "s": list("ababcc")})
    for given, rows in ((table, [5, 2, 2]), (sp.csc_array(np.eye(6)), [5, 2, 2])):
        book, coded = CodeBook.fit_encode(given)
        checked = book.check(given)
        for found, own in ((checked.rows(2, 5), [2, 3, 4]), (checked.take(np.array(rows)), rows)):
            part = book.encode(found)
            assert part.n_rows == 3
            for j in range(2):
                assert np.array_equal(part.column(j), coded.column(j)[own])


def test_tables_are_equal_where_their_cells_are():
    """Of any types, in any form; the forms of mixed tables are those of copies of rows of a fit."""
    cells = np.array([[1.0, np.nan], [0.0, 3.0]])
    forms = [cells, sp.csr_array(cells), cells.astype(object), [["x", 1.0], ["y", 2.0]]]
    forms += [cells[:1], cells[:, :1], cells + 1, sp.csc_array(cells + 1), [["x", 1.0], ["y", 3.0]]]
    tables_ = [read_table(each) for each in forms]
    for i, one in enumerate(tables_):
        for j, other in enumerate(tables_):
            assert one.equals(other) == (i == j or max(i, j) < 3 or {i, j} == {6, 7})
    named = [read_table(pd.DataFrame(cells, columns=list(names))) for names in ("ab", "ac")]
    assert named[0].equals(tables_[0])
    assert not named[0].equals(named[1])


def test_sparse_frame():
    table = pd.DataFrame.sparse.from_spmatrix(sp.csc_matrix([[0.0, 1], [2, 0]]), columns=["a", "b"])
    read = read_table(table)
    assert read.sparse is not None
    assert read.names.tolist() == ["a", "b"]
    table["c"] = [1.0, 2.0]
    assert read_table(table).sparse is None
    assert CodeBook.fit_encode(table)[0].n_codes.tolist() == [2, 2, 2]


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
        (TypeError, r"dtype \|S1", np.array([[b"a"]])),
        (TypeError, "np.matrix is not supported", np.array([[1.0]]).view(np.matrix)),
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


@pytest.mark.parametrize("values", [None, [1, "a"], (1, 2), 0.5, pd.DataFrame({"a": [1]})])
def test_what_is_no_column_stays(values):
    assert row_values(values) is values


def test_arrays_and_series_stay_themselves():
    for values in (np.arange(3), np.array(["a", None], dtype=object), pd.Series([1], index=[7])):
        assert row_values(values) is values


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [([1, 2], np.int64), ([True, False], bool), ([0.5, 2.0], float), ([np.int8(1)] * 2, np.int8)],
)
def test_objects_of_one_type_of_numbers_are_of_that_type(cells, dtype):
    values = np.array(cells, dtype=object)
    assert row_values(values).dtype == dtype
    series = row_values(pd.Series(values, index=[3, 4]))
    assert series.dtype == dtype
    assert series.index.tolist() == [3, 4]


@pytest.mark.parametrize("cells", [[1, None], [1, 2.5], ["a", "b"], [2**70, 1], []])
def test_other_objects_stay(cells):
    values = np.array(cells, dtype=object)
    assert row_values(values) is values


def test_strings_of_variable_width_are_objects():
    found = row_values(np.array(["a", "bc"], dtype=np.dtypes.StringDType()))
    assert found.dtype == object
    assert found.tolist() == ["a", "bc"]


def test_columns_of_pandas_are_arrays():
    for values in (pd.Index(["a", "b"]), pd.Categorical(["a", "b"])):
        found = row_values(values)
        assert type(found) is np.ndarray
        assert found.tolist() == ["a", "b"]


def test_too_many_rows():
    check_shape((2**31 - 1, 1))
    with pytest.raises(StatisticsOverflowError, match=r"2147483648 rows.*at most 2\*\*31 - 1"):
        check_shape((2**31, 1))
