"""Tables that are collections: lengths of their parts, and what belongs to their rows."""

import dask
import dask.array as da
import numpy as np
import pytest

from dtrees.coding.group_keys import group_keys
from dtrees.coding.tables import read_table
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.partitions import (
    PartitionedTable,
    admitted,
    check_lengths,
    delayed_parts,
    known_length,
    lazy_keys,
    rows_as_array,
    rows_here,
)
from tests.estimators.forest_cases import mixed_table

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

ROWS = np.arange(30.0).reshape(10, 3)
FRAME = pd.DataFrame(ROWS, columns=list("abc"))


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def unknown(array):
    """The same rows in blocks of unknown lengths."""
    return array[array[:, 0] > -1]


TABLES = {
    "blocks": lambda: da.from_array(ROWS, chunks=((4, 0, 1, 5), 3)),
    "unknown blocks": lambda: unknown(da.from_array(ROWS, chunks=((4, 1, 5), 3))),
    "frame": lambda: dd.from_pandas(FRAME, npartitions=3),
    "filtered frame": lambda: dd.from_pandas(FRAME, npartitions=5).query("a != 3"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_parts_are_the_rows_in_their_order(kind):
    lazy = TABLES[kind]()
    expected = lazy.compute()
    X, y = admitted(lazy, {"y": None})
    assert y is None
    assert X.shape == (len(X), 3) == expected.shape
    assert X.names is None if kind.endswith("blocks") else X.names.tolist() == ["a", "b", "c"]
    parts = X.parts()
    assert sum(length for _, _, length in parts) == len(X)
    for part, start, length in parts:
        assert length > 0
        np.testing.assert_array_equal(part.compute(), expected[start : start + length])
    assert len(delayed_parts(lazy)) == len(X.lengths)


def test_values_of_rows_are_fetched_in_the_order_of_the_call():
    y, weights = np.arange(10), np.linspace(0, 1, 10)
    lazy_y = da.from_array(y, chunks=3)
    lazy_weights = dd.from_pandas(pd.Series(weights), npartitions=2)
    stats = FitStatistics()
    X, *found = admitted(
        TABLES["blocks"](), {"y": lazy_y, "groups": None, "w": lazy_weights, "v": y}, stats
    )
    assert isinstance(X, PartitionedTable)
    np.testing.assert_array_equal(found[0], y)
    assert found[1] is None
    np.testing.assert_array_equal(found[2], weights)
    assert found[3] is y


def test_a_table_in_memory_is_left_alone():
    X, y = admitted(ROWS, {"y": [1] * 10})
    assert X is ROWS
    assert y == [1] * 10
    X, y = admitted(ROWS, {"y": da.arange(10, chunks=3)})
    assert X is ROWS
    np.testing.assert_array_equal(y, np.arange(10))


def test_rows_cannot_be_taken():
    (X,) = admitted(TABLES["blocks"](), {})
    with pytest.raises(TypeError, match="cannot be taken by number"):
        X[[1, 2]]


@pytest.mark.parametrize(
    ("X", "columns", "error", "words"),
    [
        (lambda: da.zeros(5), {}, ValueError, "Expected 2D array, got 1D array"),
        (lambda: da.zeros((5, 2), dtype=complex), {}, ValueError, "Complex data not supported"),
        (lambda: dask.delayed(ROWS), {}, TypeError, "is a Dask collection of type Delayed"),
        (lambda: da.zeros((0, 2)), {}, ValueError, r"0 sample\(s\)"),
        (lambda: unknown(da.zeros((5, 2))).T, {}, ValueError, "number of columns of X is not"),
        (lambda: da.zeros((5, 2)), {"y": [1] * 4}, ValueError, "5 rows, y has 4 values"),
        (lambda: ROWS, {"y": dask.delayed([1])}, TypeError, "y is a dask.delayed value"),
    ],
)
def test_what_is_no_table(X, columns, error, words):
    with pytest.raises(error, match=words):
        admitted(X(), columns)


def test_chunks_along_columns_are_joined_with_a_warning():
    with pytest.warns(UserWarning, match=r"chunks along columns \(3 of them\)"):
        (X,) = admitted(da.from_array(ROWS, chunks=(4, 1)), {})
    assert X.collection.numblocks == (3, 1)


@pytest.mark.parametrize(
    ("values", "length"),
    [
        (ROWS, 10),
        ([1, 2], 2),
        (da.zeros(7), 7),
        (lambda: 1, None),
        (None, None),
        (np.float64(1), None),
        (dask.delayed([1, 2]), None),
    ],
    ids=["array", "list", "collection", "function", "none", "scalar", "delayed"],
)
def test_lengths_that_are_known(values, length):
    assert known_length(values) == length


def test_lengths_are_compared_where_they_are_known():
    check_lengths(3, {"y": [1, 2, 3], "w": None, "v": dask.delayed([1])})
    with pytest.raises(ValueError, match="X has 3 rows, w has 2 values"):
        check_lengths(3, {"y": [1, 2, 3], "w": [1, 2]})


def test_rows_as_an_array_of_known_blocks():
    known = TABLES["blocks"]()
    assert rows_as_array(known, 10) is known
    (X,) = admitted(known, {})
    assert rows_as_array(X, 10) is known
    (X,) = admitted(TABLES["unknown blocks"](), {})
    assert rows_as_array(X, 10).chunks == ((4, 1, 5), (3,))
    assert_same(rows_as_array(X, 10), ROWS)
    assert_same(rows_as_array(ROWS, 10), ROWS)


def assert_same(array, values):
    np.testing.assert_array_equal(array.compute(scheduler="sync"), values)
    assert array.dtype == values.dtype


def test_rows_of_frames_as_an_array():
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9) % 2 == 0, "c": np.arange(9)})
    (X,) = admitted(dd.from_pandas(frame, npartitions=2).query("a != 4"), {})
    assert_same(rows_as_array(X, 8), frame.query("a != 4").to_numpy(dtype=float))
    for other in (frame.assign(c="x"), frame.astype({"a": "Float64"})):  # no numbers of NumPy
        (X,) = admitted(dd.from_pandas(other, npartitions=2), {})
        found = rows_as_array(X, 9)
        assert found.chunks == ((5, 4), (3,))
        assert_same(found, np.zeros((9, 3)))
    assert_same(rows_as_array([["a"], ["b"]], 2), np.zeros((2, 1)))
    assert_same(rows_as_array(np.array([["a"], ["b"]]), 2), np.zeros((2, 1)))


def test_nothing_is_computed_to_have_rows_as_an_array():
    def fail(block):
        raise AssertionError("it was computed")

    table = da.ones((10, 3), chunks=4).map_blocks(fail, dtype=float, meta=np.empty((0, 3)))
    assert rows_as_array(PartitionedTable(table, np.array([4, 4, 2]), 3, None), 10) is table


@pytest.mark.parametrize("kind", [da.from_array, dd.from_pandas], ids=["array", "series"])
def test_keys_of_labels_are_made_where_the_labels_are(kind):
    labels = np.array(["b", "a", "b", "c"])
    given = pd.Series(labels) if kind is dd.from_pandas else labels
    keys = lazy_keys(kind(given, 2))
    assert keys.dtype == np.uint64
    np.testing.assert_array_equal(keys.compute(), group_keys(labels))
    for other in (labels, None, dask.delayed(labels), da.zeros((2, 2))):
        assert lazy_keys(other) is other


@pytest.mark.one_of(3)
@pytest.mark.parametrize("asked", [[], [0, 4, 9], range(10)], ids=str)
@pytest.mark.parametrize("kind", TABLES)
def test_some_rows_come_here(kind, asked):
    (table,) = admitted(TABLES[kind](), {})
    rows = np.array([row for row in asked if row < table.n_rows], dtype=np.int64)
    found, numbers = rows_here(table, rows, FitStatistics())
    assert numbers.tolist() == rows.tolist()
    np.testing.assert_array_equal(found, np.asarray(table.collection.compute())[rows])


def test_rows_that_come_here_have_each_label():
    table, _ = mixed_table(60)
    table["hybrid"] = table["hybrid"].astype(str)  # as Dask does
    (lazy,) = admitted(dd.from_pandas(table, npartitions=3), {})
    found, numbers = rows_here(lazy, np.array([7, 31]), FitStatistics())
    assert {7, 31} <= set(numbers.tolist())
    assert read_table(found).equals(read_table(table.iloc[numbers]))
    for name in ("letter", "hybrid"):
        assert set(found[name]) == set(table[name])
