"""Codes by row, in blocks of columns."""

import numpy as np
import pytest

from dtrees.coding.coded import CodedMatrix
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks, histogram_of

RNG = np.random.default_rng(0)


def coded_of(n_codes, n_rows=200):
    columns = [RNG.integers(0, k + 1, n_rows) for k in n_codes]
    return columns, CodedMatrix.from_columns(columns, n_codes, n_codes)


@pytest.mark.parametrize(
    ("n_codes", "n_threads", "n_blocks"),
    [
        ([3], 1, 1),
        ([3], 9, 1),
        ([3] * 8, 1, 1),
        ([3] * 8, 2, 2),
        ([3] * 9, 1, 2),
        ([3] * 9, 4, 2),
        ([255] * 16, 1, 2),
        ([255] * 16, 3, 3),
        ([255] * 16, 8, 4),
        ([7] * 17, 1, 3),
        ([7] * 17, 2, 4),
        ([3, 300, 4, 70_000], 1, 3),
        ([300, 70_000], 2, 2),
    ],
)
@pytest.mark.parametrize("some", [False, True])
def test_cells_have_the_sums_of_their_rows(n_codes, n_threads, n_blocks, some):
    columns, coded = coded_of(n_codes)
    blocks = ColumnBlocks(coded, n_threads=n_threads)
    assert (blocks.n_rows, blocks.n_blocks) == (200, n_blocks)
    assert blocks.n_cells == sum(n_codes) + len(n_codes)
    rows = np.flatnonzero(RNG.random(200) < 0.4).astype(np.uint32) if some else None
    gradient, hessian = RNG.integers(-99, 99, 200), RNG.integers(0, 99, 200)
    packed = (gradient << 32 | hessian).view(np.uint64)
    own = slice(None) if rows is None else rows
    for j, codes in enumerate(columns):
        found = histogram_of(blocks, j, rows, packed)
        for column, values in enumerate((np.ones(200, dtype=int), hessian, gradient)):
            wanted = np.bincount(codes[own], values[own], minlength=n_codes[j] + 1)
            np.testing.assert_array_equal(found[:, column], wanted)


def test_sparse_columns():
    indptr, rows, codes = [0, 2, 3], [1, 4, 0], [2, 3, 1]
    coded = CodedMatrix.sparse(
        5, np.array(indptr), np.array(rows), np.array(codes), [3, 2], [3, 2], [1, 2]
    )
    blocks = ColumnBlocks(coded)
    packed = np.ones(5, dtype=np.uint64)
    np.testing.assert_array_equal(histogram_of(blocks, 0, None, packed)[:, 0], [0, 3, 1, 1])
    some = np.array([0, 4], dtype=np.uint32)
    np.testing.assert_array_equal(histogram_of(blocks, 1, some, packed)[:, 0], [0, 1, 1])
