"""Sparse columns: stored values to codes; all rows that are not stored hold zero."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from dtrees.coding._binning import STATUS_TOO_MANY, cut_column, cut_sparse, rank_sparse
from dtrees.coding._cells import compact_values
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.dense_columns import SMALL_TABLE, TASKS, OrderedValues, tile_type
from dtrees.coding.sampling import CutRules, Sample
from dtrees.coding.tables import Table
from dtrees.typing import Runner

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook


class SparseCodes:
    """Codes of the stored values of a canonical CSC matrix of float32 or float64.

    Attributes
    ----------
    codes : uint32 (nnz,)
    low : float32 or float64 (nnz + n_columns,)
        Distinct values of column j from ``indptr[j] + j`` on, until `values_in_order`.
    n_codes, status : int64, uint8 (n_columns,)
    fill : uint32 (n_columns,)
        The code of zero; 0 when zero is no value of the column.
    """

    def __init__(self, matrix: scipy.sparse.csc_array, max_bins: int | None) -> None:
        n_rows, n_columns = matrix.shape
        self.matrix = matrix
        self.indptr = matrix.indptr.astype(np.int64)
        self.limit = n_rows if max_bins is None else min(n_rows, max_bins)
        self.codes = np.empty(len(matrix.data), dtype=np.uint32)
        self.low = np.empty(len(matrix.data) + n_columns, dtype=matrix.dtype)
        self.start = self.indptr + np.arange(n_columns + 1)
        self.n_codes = np.zeros(n_columns, dtype=np.int64)
        self.fill = np.zeros(n_columns, dtype=np.uint32)
        self.status = np.zeros(n_columns, dtype=np.uint8)

    def rank(self, first: int, last: int) -> None:
        """Code the columns ``first .. last - 1`` by their distinct values."""
        n_rows = self.matrix.shape[0]
        rank_sparse(self.matrix.data, self.indptr, first, last, n_rows, self.limit, self)

    def values_in_order(self) -> np.ndarray:
        """Distinct values, one column behind the other."""
        return self.low[: compact_values(self.low, self.start[:-1], self.n_codes)]

    def cut(self, sample: Sample) -> OrderedValues:
        """Cut the columns of too many values; the same cuts as of the equal dense column."""
        exact = self.status != STATUS_TOO_MANY
        lows = [self.low[a : a + c] for a, c in zip(self.start[:-1], self.n_codes, strict=True)]
        highs = list(lows)
        data = self.matrix.data
        for j in np.flatnonzero(~exact).tolist():
            stored = slice(self.indptr[j], self.indptr[j + 1])
            lows[j], highs[j] = sample.codes_of_sparse(self.matrix, j)
            cuts = highs[j][:-1]
            cut_column(data[stored] + data.dtype.type(0), cuts, self.codes[stored])
            is_full = stored.stop - stored.start == self.matrix.shape[0]
            self.fill[j] = 0 if is_full else 1 + np.searchsorted(cuts, 0.0)
            self.n_codes[j] = len(highs[j])
            self.status[j] = 0
        columns = np.arange(len(exact))
        return OrderedValues(
            columns, self.n_codes, np.concatenate(lows), np.concatenate(highs), exact
        )


def code_sparse(
    matrix: scipy.sparse.csc_array, rules: CutRules, run: Runner, weights: np.ndarray | None = None
) -> tuple[CodedMatrix, OrderedValues, np.ndarray]:
    """Codes of all columns, their values, and the status of each, uint8 (n_columns,)."""
    n_rows, n_columns = matrix.shape
    found = SparseCodes(matrix, rules.max_bins)
    work = found.start
    n_tasks = 1 if work[-1] <= SMALL_TABLE else TASKS
    bounds = np.unique(np.searchsorted(work, np.linspace(0, work[-1], n_tasks + 1)))
    bounds[-1] = n_columns
    if len(bounds) > 2:
        run([partial(found.rank, a, b) for a, b in pairwise(bounds)])
    else:
        found.rank(0, n_columns)
    exact = found.status != STATUS_TOO_MANY
    if exact.all():
        low = found.values_in_order()
        values = OrderedValues(np.arange(n_columns), found.n_codes, low, low[:0], exact)
    else:
        values = found.cut(Sample(rules, n_rows, weights))
    n_codes = found.n_codes
    coded = CodedMatrix.sparse(
        n_rows, found.indptr, matrix.indices, found.codes, n_codes, n_codes, found.fill
    )
    return coded, values, found.status


def encode_sparse(
    book: CodeBook, matrix: scipy.sparse.csc_array, wanted: np.ndarray
) -> CodedMatrix:
    """Codes of the stored values of the wanted columns, bool (n_columns,), by a book."""
    columns = np.flatnonzero(wanted & (book.n_ordered > 0))
    indptr = matrix.indptr.astype(np.int64)
    cuts = [book.cuts(j) for j in columns]
    cut_start = np.concatenate([[0], np.cumsum([len(c) for c in cuts], dtype=np.int64)])
    stored = np.zeros(book.n_columns, dtype=np.int64)
    stored[columns] = np.diff(indptr)[columns]
    target = np.concatenate([[0], np.cumsum(stored)])
    codes = np.zeros(target[-1], dtype=np.uint32)
    fill = np.zeros(book.n_columns, dtype=np.uint32)
    filled = np.zeros(len(columns), dtype=np.uint32)
    all_cuts = np.concatenate([*cuts, np.empty(0)])
    cut_sparse(matrix.data, indptr, columns, all_cuts, cut_start, target[columns], codes, filled)
    fill[columns] = filled
    rows = [matrix.indices[indptr[j] : indptr[j + 1]] for j in columns]
    indices = np.concatenate([*rows, np.empty(0, dtype=np.int32)]).astype(np.int32)
    return CodedMatrix.sparse(
        matrix.shape[0],
        target,
        indices,
        codes,
        np.where(wanted, book.n_codes, 0),
        np.where(wanted, book.n_ordered, 0),
        fill,
    )


def read_sparse(table: Table) -> scipy.sparse.csc_array:
    """The sparse block of a table, as float32 or float64."""
    matrix = table.sparse
    assert matrix is not None
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(tile_type(matrix.dtype))
    return matrix
