"""The coded table: storage, columns, rows taken out of it."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook, CodedMatrix
from dtrees.coding.coded import ROWS, digest_of_rows
from tests.coding.examples import coded_columns, coded_csc

rng = np.random.default_rng(1)


def mixed():
    counts = [3, 300, 70_000, 255, 65_535]
    columns = [rng.integers(0, k + 1, 50) for k in counts]
    return columns, counts, coded_columns(columns, counts, [3, 0, 70_000, 100, 65_535])


def test_columns_lie_in_the_narrowest_block():
    columns, counts, coded = mixed()
    assert coded.storage.tolist() == [0, 1, 2, 0, 1]
    assert coded.slot.tolist() == [0, 0, 0, 1, 1]
    assert (coded.u8.shape, coded.u16.shape, coded.u32.shape) == ((50, 2), (50, 2), (50, 1))
    assert coded.n_codes.tolist() == counts
    for j, column in enumerate(columns):
        assert np.array_equal(coded.column(j), column)
    assert coded.nbytes >= 50 * (2 + 4 + 4)


def test_arrays_are_read_only():
    *_, coded = mixed()
    for name in ("u8", "u16", "u32", "n_codes", "storage", "sparse_rows"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(coded, name)[...] = 0
    with pytest.raises(AttributeError):
        coded.n_rows = 3


def test_from_sparse_keeps_stored_fill_codes():
    codes = sp.csc_array(
        (np.array([2, 1, 3], dtype=np.uint32), np.array([0, 2, 1]), np.array([0, 2, 3])),
        shape=(3, 2),
    )
    coded = coded_csc(codes, [2, 3], [2, 3], [1, 2])
    assert coded.column(0).tolist() == [2, 1, 1]
    assert coded.column(1).tolist() == [2, 3, 2]


def test_stored_columns_are_those_of_a_row_by_row_matrix():
    dense = np.where(rng.random((50, 9)) < 0.3, rng.integers(1, 3, (50, 9)), 0).astype(float)
    _, coded = CodeBook.fit_encode(sp.csc_array(dense))
    start, column = coded.stored_columns()
    assert (start.dtype, column.dtype) == (np.int64, np.int32)
    by_row = sp.csr_array(dense)
    np.testing.assert_array_equal(start, by_row.indptr)
    np.testing.assert_array_equal(column, by_row.indices)


def test_rows_of_each_part_are_those_that_are_taken_alone():
    stored = sp.random_array((30, 4), density=0.4, rng=2, format="csc")
    stored.data = np.ceil(3 * stored.data)
    for matrix in (mixed()[-1], coded_csc(stored, [3] * 4, [3] * 4, [0, 1, 0, 2])):
        parts = [
            np.array([3, 1, 29, 3]),
            np.arange(matrix.n_rows) % 2 == 0,
            np.array([], dtype=int),
        ]
        for rows, part in zip(parts, matrix.take_each(parts), strict=True):
            alone = matrix.take(rows)
            for j in range(matrix.n_columns):
                np.testing.assert_array_equal(part.column(j), matrix.column(j)[rows])
                np.testing.assert_array_equal(alone.column(j), part.column(j))
            for name in ("sparse_indptr", "sparse_rows", "sparse_codes"):
                one, other = getattr(alone, name), getattr(part, name)
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)


def test_missing_columns_are_those_that_have_missing_values():
    codes = sp.csc_array(
        (np.array([2, 0, 3], dtype=np.uint32), np.array([0, 1, 2]), np.array([0, 0, 1, 3])),
        shape=(3, 3),
    )
    sparse = coded_csc(codes, [3, 3, 3], [3, 3, 3], [1, 1, 0])
    assert sparse.missing_columns().tolist() == [False, False, True]
    full = mixed()[-1]
    assert full.missing_columns().tolist() == [full.has_missing(j) for j in range(5)]


class TestGiveUpNarrow:
    def test_the_memory_of_narrow_columns_is_given_away(self):
        columns, _, coded = mixed()
        taken = coded.give_up_narrow()
        np.testing.assert_array_equal(taken, np.concatenate([columns[0], columns[3]]))
        taken[:] = 7  # it may be written to
        assert coded.u8.shape == (50, 0)
        np.testing.assert_array_equal(coded.column(1), columns[1])
        with pytest.raises(IndexError):
            coded.column(0)

    @pytest.mark.parametrize("own", ["read only", "part of another", "bytes", "columns of another"])
    def test_what_others_own_stays(self, own):
        columns, _, coded = mixed()
        codes = np.asfortranarray(np.stack([columns[0], columns[3], columns[0]]).astype(np.uint8).T)
        if own == "bytes":
            codes = np.frombuffer(codes.tobytes("F"), np.uint8).reshape((50, 3), order="F")
        elif own == "read only":
            codes = codes[:, :2].copy("F")
            codes.flags.writeable = False
        other = dataclasses.replace(coded, u8=codes[:, :2])
        if own == "columns of another":
            codes = np.stack([columns[0], columns[3]]).astype(np.uint8)
            other = dataclasses.replace(coded, u8=codes.T)
        assert other.give_up_narrow() is None
        np.testing.assert_array_equal(other.column(3), columns[3])


COUNTS = [3, 300, 70_000]


def coded(codes):
    return coded_columns(list(codes.T), COUNTS, COUNTS)


def tables(n_rows):
    return st.lists(
        st.tuples(*(st.integers(0, count) for count in COUNTS)), min_size=n_rows, max_size=n_rows
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
