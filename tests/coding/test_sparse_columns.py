"""Sparse tables have the codes of the equal dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from dtrees.coding import CodeBook
from tests.coding.examples import assert_exact, sparse_table


@pytest.mark.one_of(14)
@pytest.mark.parametrize("density", [0.0, 0.01, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("options", [{}, {"max_bins": 12}, {"max_bins": 12, "sample_rows": 150}])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_sparse_equals_dense(density, options, form):
    X = sparse_table(60 if form == "dia" else 600, 17, density, seed=3)
    S = sp.csr_array(X).asformat(form)
    book, coded = CodeBook.fit_encode(S, **options)
    dense_book, dense_coded = CodeBook.fit_encode(X, **options)
    for name in ("n_codes", "n_ordered", "offsets", "low", "high", "exact"):
        assert np.array_equal(getattr(book, name), getattr(dense_book, name)), name
    for j in range(X.shape[1]):
        assert np.array_equal(coded.column(j), dense_coded.column(j))
    assert (coded.storage == 3).all()
    again = book.encode(S)
    for j in range(X.shape[1]):
        assert np.array_equal(again.column(j), coded.column(j))


def test_fill_code_is_the_code_of_zero():
    X = np.array([[0, 1, -1, 2], [0, 2, -2, 0], [3, 3, 0, -1]], dtype=float)
    book, coded = CodeBook.fit_encode(sp.csr_matrix(X))
    assert coded.fill_code.tolist() == [1, 0, 3, 2]
    assert book.n_codes.tolist() == [2, 3, 3, 3]
    assert coded.sparse_rows.dtype == np.int32
    assert coded.sparse_indptr.dtype == np.int64


def test_explicit_zeros_duplicates_and_unsorted_indices():
    data = np.array([2.0, 0.0, 1.0, 4.0, -0.0, 3.0])
    rows = np.array([3, 1, 3, 0, 0, 2])
    columns = np.array([0, 0, 0, 0, 1, 1])
    S = sp.csc_matrix((4, 2))
    S.indptr = np.array([0, 4, 6])
    S.indices = rows
    S.data = data
    before = (S.data.copy(), S.indices.copy(), S.indptr.copy())
    book, coded = CodeBook.fit_encode(S)
    assert coded.column(0).tolist() == [3, 1, 1, 2]
    assert coded.column(1).tolist() == [1, 1, 2, 1]
    for array, old in zip((S.data, S.indices, S.indptr), before, strict=True):
        assert np.array_equal(array, old)
    C = sp.coo_array((data, (rows, columns)), shape=(4, 2))
    again, coded_again = CodeBook.fit_encode(C)
    assert np.array_equal(book.low, again.low)
    assert np.array_equal(coded_again.column(0), coded.column(0))


def test_int64_indices_and_integer_data():
    X = sparse_table(50, 6, 0.4, seed=5)
    X = np.nan_to_num(np.round(X)).astype(np.int64)
    S = sp.csr_array(X)
    S.indices = S.indices.astype(np.int64)
    S.indptr = S.indptr.astype(np.int64)
    assert_exact(X, *CodeBook.fit_encode(S))
    assert_exact(X != 0, *CodeBook.fit_encode(sp.csc_array(X != 0)))


def test_column_without_entries_has_the_one_code_of_zero():
    book, coded = CodeBook.fit_encode(sp.csr_array((5, 3)))
    assert book.n_codes.tolist() == [1, 1, 1]
    assert book.low.tolist() == [0.0, 0.0, 0.0]
    assert coded.column(1).tolist() == [1] * 5


def test_column_whose_stored_values_are_all_missing():
    S = sp.csc_array(np.array([[np.nan, np.nan], [np.nan, 0.0]]))
    book, coded = CodeBook.fit_encode(S)
    assert book.n_codes.tolist() == [0, 1]
    assert coded.column(0).tolist() == [0, 0]
    assert coded.column(1).tolist() == [0, 1]
