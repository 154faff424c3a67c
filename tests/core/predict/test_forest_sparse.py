"""Sparse rows down packed forests: leaves and values are those of the same dense rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from dtrees import RandomForestClassifier, RandomForestRegressor
from dtrees.coding import CodeBook
from dtrees.core.predict import packed_forest, raw
from dtrees.core.predict._forest_sparse import code_sparse
from dtrees.parallel import threaded
from tests.core.predict.test_packed_forest import check, random_forest
from tests.core.predict.test_raw import SEEDS, numbers


def sparse_numbers(n_rows: int, n_columns: int, seed: int, share: float) -> np.ndarray:
    """Numbers of both signs, some missing, most of them zero."""
    X = numbers(n_rows, n_columns, seed)
    X[np.random.default_rng(seed).random(X.shape) >= share] = 0
    return X


@given(
    seed=SEEDS,
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    made=st.sampled_from([scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array]),
)
def test_rows_are_those_of_dense_tables(seed, share, dtype, made):
    X = sparse_numbers(70, 9, seed, 0.5).astype(dtype)
    book, _ = CodeBook.fit_encode(X)
    forest = random_forest(book, seed, n_trees=15)
    other = sparse_numbers(40, 9, seed + 1, share).astype(dtype)
    check(forest, book, made(other), other.astype(float).tolist())
    np.testing.assert_array_equal(
        raw.forest_values(forest, book, made(other)), raw.forest_values(forest, book, other)
    )


def test_zeros_that_are_stored():
    X = sparse_numbers(200, 5, 1, 0.5)
    book, _ = CodeBook.fit_encode(X)
    table = scipy.sparse.csr_array(np.where(X == 0, 7.0, X))
    table.data[table.data == 7.0] = 0.0
    check(random_forest(book, seed=2), book, table, X.tolist())


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool"])
def test_other_types(dtype):
    X = np.abs(np.nan_to_num(sparse_numbers(200, 5, 3, 0.3))).astype(dtype)
    book, _ = CodeBook.fit_encode(X)
    table = scipy.sparse.csr_array(X)
    check(random_forest(book, seed=4), book, table, X.astype(float).tolist())


def test_many_rows_threads_and_parts(monkeypatch):
    X = sparse_numbers(raw.FOREST_ROWS + 300, 12, 5, 0.2)
    book, _ = CodeBook.fit_encode(X[:500])
    monkeypatch.setattr(packed_forest, "MOST_SLOTS", 9)
    forest = random_forest(book, seed=6, n_trees=6, n_leaves=9)
    assert len(packed_forest.pack_forest(forest, book)) > 1
    check(forest, book, scipy.sparse.csc_array(X), X.tolist(), threaded(2))


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_fitted_forests(kind):
    X = sparse_numbers(400, 30, 7, 0.1)
    y = (X[:, :3].sum(axis=1) > 0) + 2 * (np.nan_to_num(X[:, 4]) > 0)
    forest = kind(30, random_state=0, n_jobs=2).fit(X, y)
    table = scipy.sparse.csr_matrix(X)
    np.testing.assert_array_equal(forest.predict(table), forest.predict(X))
    np.testing.assert_array_equal(forest.apply(table), forest.apply(X))


def test_codes_of_a_stretch():
    table = scipy.sparse.csc_array(np.array([[0, 5.0], [2.0, 0], [np.nan, -3.0], [1.0, 0]]))
    columns, thresholds = np.array([1, 0]), np.array([-1.0, 1.5, np.nan])
    args = table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data
    bounds = np.array([0, 1, 2])
    first, cells, zeros, missing = code_sparse(*args, columns, thresholds, bounds, 1, 4)
    assert first.tolist() == [0, 1, 3, 3]  # 1.0 has the code of zero
    assert cells.tolist() == [1 << 16 | 1, 0, 1 << 16 | 65_535]
    assert zeros.tolist() == [1, 0]
    assert missing


def test_broken_tables():
    table = scipy.sparse.csc_array(np.eye(3))
    indptr = np.array([0, 2, 1, 3])
    rest = np.arange(3), np.array([np.nan]), np.zeros(4, dtype=np.int64), 0, 3
    with pytest.raises(ValueError, match="indptr does not ascend"):
        code_sparse(indptr, table.indices.astype(np.int32), table.data, *rest)
