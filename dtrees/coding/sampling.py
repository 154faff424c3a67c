"""Samples of rows, and the cuts that a sample gives.

A row is sampled when its hash, a draw of (seed, row id), is among the smallest: "bottom k". So
samples of parts merge to that of the table, however the rows were cut into parts.

Quantile cuts are exact quantiles of the sample: with m sampled values in ascending order, cut k of
K stands at value number ``ceil(k m / K)``, counted from 1. Equal cuts are one. A row of weight w
counts as w rows (`dtrees.coding.target.cut_weights`); which rows are sampled, weights do not say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from dtrees._forks import cached_property
from dtrees._random import SAMPLE_ROWS, keyed_uint64
from dtrees.coding._binning import quantile_codes


@dataclass(frozen=True, kw_only=True)
class CutRules:
    """Limits of codes, and the rows that cuts are read from.

    Parameters
    ----------
    max_bins : int or None, default=None
        None: one code per distinct value, always.
    sample_rows : int, default=200_000
    seed : int, default=0
    """

    max_bins: int | None = None
    sample_rows: int = 200_000
    seed: int = 0


def bottom(hashes: np.ndarray, k: int) -> np.ndarray:
    """Positions of the k smallest hashes, ascending; all that equal the k-th are in."""
    if len(hashes) <= k:
        return np.arange(len(hashes))
    # a bound that more than k hashes meet with near certainty, so that few are partitioned
    expected = int((k + 8 * k**0.5 + 8) / len(hashes) * 2**64)
    if expected < 2**64:
        positions = np.flatnonzero(hashes <= np.uint64(expected))
        if len(positions) >= k:
            kept = hashes[positions]
            return positions[kept <= np.partition(kept, k - 1)[k - 1]]
    return np.flatnonzero(hashes <= np.partition(hashes, k - 1)[k - 1])


def codes_of_sample(
    values: np.ndarray, weights: np.ndarray | None, max_bins: int, zeros: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """`quantile_codes` of sampled values in any order."""
    if weights is None:
        return quantile_codes(np.sort(values), max_bins, zeros)
    order = np.argsort(values)
    return quantile_codes(values[order], max_bins, zeros, weights[order])


def hash_bound(k: int, n_rows: int, times: float = 2.0) -> int | None:
    """A hash that about `times` k of so many rows do not exceed; None where every row counts.

    Rows of larger hashes are not looked at where a part of a table is summarized: with a few
    missing values, k of the others are below the bound all the same.
    """
    bound = int((times * k + 8 * k**0.5 + 8) / max(1, n_rows) * 2**64)
    return bound if bound < 2**64 else None


def sampled_rows(
    rules: CutRules, first_row: int, n_rows: int, bound: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose hashes are at most the bound, counted from the first one, and their hashes.

    None where every value has a code. O(n_rows), 2 ns a row.
    """
    n_hashes = 0 if rules.max_bins is None else n_rows
    hashes = keyed_uint64(rules.seed, SAMPLE_ROWS, first_row, n_hashes)
    if bound is None:
        return np.arange(len(hashes)), hashes
    rows = np.flatnonzero(hashes <= np.uint64(bound))
    return rows, hashes[rows]


class Sample:
    """The rows that cuts are read from; found at the first column that needs them.

    `n_rows` are those of the table. `weights` are those of the rows that there are, None: each
    counts once. `hashes`, uint64, are those of the rows that there are, in their order; None: all
    rows.
    """

    rows: np.ndarray | None

    def __init__(
        self,
        rules: CutRules,
        n_rows: int,
        weights: np.ndarray | None = None,
        hashes: np.ndarray | None = None,
    ) -> None:
        self.rules = rules
        self.weights = weights
        self.n_rows = n_rows if hashes is None else len(hashes)  # of those that there are
        self.rows = None
        self._given = hashes
        if rules.max_bins is not None and n_rows > max(rules.max_bins, rules.sample_rows):
            self.rows = bottom(self._all_hashes(), rules.sample_rows)

    def _all_hashes(self) -> np.ndarray:
        if self._given is not None:
            return self._given
        return keyed_uint64(self.rules.seed, SAMPLE_ROWS, 0, self.n_rows)

    @cached_property
    def hashes(self) -> np.ndarray:
        """Hashes of all rows, uint64; kept once a column with missing values has asked for them."""
        return self._all_hashes()

    @cached_property
    def is_in(self) -> np.ndarray:
        """Tell whether each row is sampled in columns without missing values, bool."""
        is_in = np.zeros(self.n_rows, dtype=bool)
        is_in[self.rows] = True
        return is_in

    def rows_of(self, values: np.ndarray) -> np.ndarray:
        """Rows that are sampled in a column with missing values, (n_rows,), of many rows."""
        present = np.flatnonzero(~np.isnan(values))
        return present[bottom(self.hashes[present], self.rules.sample_rows)]

    def codes_of_sparse(
        self, matrix: scipy.sparse.csc_array, column: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """`quantile_codes` of a column of which more values than `max_bins` are distinct."""
        assert self.rules.max_bins is not None
        stored = slice(matrix.indptr[column], matrix.indptr[column + 1])
        values, rows = matrix.data[stored] + matrix.data.dtype.type(0), matrix.indices[stored]
        missing = np.isnan(values)
        if self.rows is None or not missing.any():
            kept = ~missing if self.rows is None else self.is_in[rows]
            total = self.total - self._weight(rows[missing])
        else:
            present = np.ones(self.n_rows, dtype=bool)
            present[rows[missing]] = False
            chosen = np.flatnonzero(present)
            chosen = chosen[bottom(self.hashes[chosen], self.rules.sample_rows)]
            kept = np.isin(rows, chosen)
            total = self._weight(chosen)
        values, rows = values[kept], rows[kept]
        weights = None if self.weights is None else self.weights[rows]
        zeros = total - self._weight(rows)
        return codes_of_sample(values, weights, self.rules.max_bins, zeros)

    @cached_property
    def total(self) -> int:
        """Weight of the rows that are sampled in columns without missing values."""
        return self._weight(slice(None) if self.rows is None else self.rows)

    def _weight(self, rows: Any) -> int:
        """Weight of some rows; how many they are, where each counts once."""
        if self.weights is not None:
            return int(self.weights[rows].sum())
        return self.n_rows if isinstance(rows, slice) else len(rows)
