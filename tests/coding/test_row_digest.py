"""The number that tells rows and their order."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodedMatrix
from dtrees.coding.row_digest import ROWS, digest_of_rows

COUNTS = [3, 300, 70_000]


def coded(codes):
    return CodedMatrix.from_columns(list(codes.T), COUNTS, COUNTS)


def tables(n_rows):
    return st.lists(
        st.tuples(*(st.integers(0, count) for count in COUNTS)),
        min_size=n_rows,
        max_size=n_rows,
    ).map(np.array)


def by_hand(codes):
    """The same in whole numbers of Python."""

    def mixed(word):
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        return word ^ (word >> 31)

    total = 0
    for number, row in enumerate(codes.tolist()):
        of_row = sum(code * mixed(column + 1) for column, code in enumerate(row))
        total += mixed((number * 0x9E3779B97F4A7C15 + of_row) % 2**64)
    return total % 2**64


@given(tables(12))
def test_by_hand(codes):
    assert digest_of_rows(coded(codes)) == by_hand(codes)


@given(tables(12), st.lists(st.integers(0, 12), max_size=4).map(sorted))
def test_parts_add_up(codes, cuts):
    ends = [0, *cuts, 12]
    parts = [
        digest_of_rows(coded(codes[first:last]), first)
        for first, last in pairwise(ends)
        if last > first
    ]
    assert sum(parts) % 2**64 == digest_of_rows(coded(codes))


@given(tables(8), st.integers(0, 7), st.integers(0, 7))
def test_rows_that_change_places(codes, one, other):
    turned = codes.copy()
    turned[[one, other]] = codes[[other, one]]
    same = np.array_equal(turned, codes)
    assert (digest_of_rows(coded(turned)) == digest_of_rows(coded(codes))) == same


@given(tables(8), st.integers(0, 7), st.integers(0, 2), st.integers(0, 3))
def test_a_cell_that_changes(codes, row, column, code):
    other = codes.copy()
    other[row, column] = code
    same = np.array_equal(other, codes)
    assert (digest_of_rows(coded(other)) == digest_of_rows(coded(codes))) == same


@given(tables(9), st.integers(0, 3), st.lists(st.integers(0, 8)))
def test_sparse_columns(codes, fill, stored_too):
    """Fill codes that are stored, and not, are the same."""
    fills = np.array([fill, 0, 17])
    is_stored = codes != fills
    is_stored[stored_too] = True
    rows, columns = np.nonzero(is_stored)
    # explicit cells, sorted by column and row
    order = np.lexsort((rows, columns))
    indptr = np.concatenate([[0], np.cumsum(is_stored.sum(axis=0))])
    sparse = CodedMatrix.sparse(
        9, indptr, rows[order], codes[rows, columns][order], COUNTS, COUNTS, fills
    )
    for j in range(3):
        assert np.array_equal(sparse.column(j), codes[:, j])
    assert digest_of_rows(sparse, 5) == digest_of_rows(coded(codes), 5)


def test_more_rows_than_are_looked_at_together():
    codes = np.random.default_rng(0).integers(0, 4, (2 * ROWS + 3, 3))
    halves = digest_of_rows(coded(codes[:ROWS])) + digest_of_rows(coded(codes[ROWS:]), ROWS)
    assert halves % 2**64 == digest_of_rows(coded(codes))
    assert digest_of_rows(coded(codes[:0])) == 0


def test_tables_of_both_kinds_of_columns():
    dense = np.random.default_rng(0).integers(0, 4, (30, 3))
    sparse = CodedMatrix.from_sparse(
        sp.csc_array(dense.astype(np.uint32)), [3] * 3, [3] * 3, [0] * 3
    )
    assert digest_of_rows(sparse) == digest_of_rows(
        CodedMatrix.from_columns(list(dense.T), [3] * 3, [3] * 3)
    )
