"""Summaries of sparse tables, which merge.

Sampled rows are kept as they are, with their hashes; rows that store nothing cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from dtrees.coding._rank_columns import STATUS_INFINITE, STATUS_TOO_MANY
from dtrees.coding.ordered import OrderedValues
from dtrees.coding.ordered_summary import joined_weights
from dtrees.coding.sampling import CutRules, Sample, row_hashes, sampled_rows
from dtrees.coding.sparse_columns import SparseCodes


@dataclass(frozen=True, eq=False)
class SparseSummary:
    """All columns of a sparse table.

    Attributes
    ----------
    rules : CutRules
    n_rows : int
    start : int64 (n_columns + 1,)
        Where the distinct values of each column begin.
    distinct : float64 (start[-1],)
        Ascending in a column; with zero, where a row holds it. None of columns that have too many.
    has_too_many, is_infinite : bool (n_columns,)
    n_stored, n_missing : int64 (n_columns,)
    hashes : uint64 (n_kept,)
        Of the rows that may be sampled. Empty where every value is kept.
    weights : int64 (n_kept,) or None
        What they count for; None: each counts once.
    kept : csc_array (n_kept, n_columns)
        These rows.
    """

    rules: CutRules
    n_rows: int
    start: np.ndarray
    distinct: np.ndarray
    has_too_many: np.ndarray
    is_infinite: np.ndarray
    n_stored: np.ndarray
    n_missing: np.ndarray
    hashes: np.ndarray
    weights: np.ndarray | None
    kept: scipy.sparse.csc_array

    @classmethod
    def of(
        cls,
        matrix: scipy.sparse.csc_array,
        rules: CutRules,
        first_row: int = 0,
        bound: int | None = None,
        weights: np.ndarray | None = None,
    ) -> SparseSummary:
        """The summary of the rows from ``first_row`` on: canonical, float32 or float64."""
        n_rows, n_columns = matrix.shape
        codes = SparseCodes(matrix, rules.max_bins)
        codes.rank(0, n_columns)
        codes.n_codes[codes.status != 0] = 0
        indptr = codes.indptr
        missing = np.concatenate([[0], np.cumsum(np.isnan(matrix.data))])
        hashes = row_hashes(first_row, 0 if rules.max_bins is None else n_rows, rules.seed)
        rows, hashes = sampled_rows(hashes, bound)
        return cls(
            rules,
            n_rows,
            np.concatenate([[0], np.cumsum(codes.n_codes)]),
            codes.values_in_order().astype(np.float64),
            codes.status == STATUS_TOO_MANY,
            codes.status == STATUS_INFINITE,
            np.diff(indptr),
            np.diff(missing[indptr]),
            hashes,
            None if weights is None else weights[rows],
            matrix if len(rows) == n_rows else scipy.sparse.csc_array(matrix.tocsr()[rows]),
        )

    @classmethod
    def merge_all(cls, parts: Sequence[SparseSummary]) -> SparseSummary:
        """The summary of all parts."""
        rules = parts[0].rules
        columns = np.concatenate([part._columns() for part in parts])
        values = np.concatenate([part.distinct for part in parts])
        order = np.lexsort((values, columns))
        columns, values = columns[order], values[order]
        is_new = np.ones(len(values), dtype=bool)
        is_new[1:] = (columns[1:] != columns[:-1]) | (values[1:] != values[:-1])
        has_too_many = np.any([part.has_too_many for part in parts], axis=0)
        counts = np.bincount(columns[is_new], minlength=len(has_too_many))
        if rules.max_bins is not None:
            has_too_many |= counts > rules.max_bins
        is_new &= ~has_too_many[columns]
        counts[has_too_many] = 0
        return cls(
            rules,
            sum(part.n_rows for part in parts),
            np.concatenate([[0], np.cumsum(counts)]),
            values[is_new],
            has_too_many,
            np.any([part.is_infinite for part in parts], axis=0),
            np.sum([part.n_stored for part in parts], axis=0),
            np.sum([part.n_missing for part in parts], axis=0),
            np.concatenate([part.hashes for part in parts]),
            joined_weights([part.weights for part in parts]),
            scipy.sparse.csc_array(
                scipy.sparse.vstack([part.kept for part in parts], format="csc")
            ),
        )

    @property
    def has_enough(self) -> bool:
        """Whether the samples are those of all rows."""
        cut = np.flatnonzero(self.has_too_many)
        if len(cut) == 0 or len(self.hashes) == self.n_rows:
            return True
        kept = self.kept
        missing = [np.isnan(kept.data[kept.indptr[j] : kept.indptr[j + 1]]).sum() for j in cut]
        wanted = np.minimum(self.rules.sample_rows, self.n_rows - self.n_missing[cut])
        return bool(np.all(len(self.hashes) - np.array(missing) >= wanted))

    def values(self) -> OrderedValues:
        """Least and greatest value of every code of every column, float64."""
        sample = Sample(self.rules, self.n_rows, self.weights, self.hashes)
        lows = np.split(self.distinct, self.start[1:-1])
        highs = list(lows)
        for j in np.flatnonzero(self.has_too_many).tolist():
            lows[j], highs[j] = sample.codes_of_sparse(self.kept, j)
        n_codes = np.array([len(low) for low in lows], dtype=np.int64)
        columns = np.arange(len(n_codes))
        return OrderedValues(
            columns,
            n_codes,
            np.concatenate(lows).astype(np.float64),
            np.concatenate(highs).astype(np.float64),
            ~self.has_too_many,
        )

    def _columns(self) -> np.ndarray:
        """The column of each distinct value."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
