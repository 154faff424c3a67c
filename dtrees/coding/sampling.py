"""Which rows are sampled, and the cuts that a sample gives.

A row is sampled when its hash, a draw of (seed, row id), is among the smallest: "bottom k". So
samples of parts merge to that of the table, however the rows were cut into parts.

Quantile cuts are exact quantiles of the sample: with m sampled values in ascending order, cut k of
K stands at value number ``ceil(k m / K)``, counted from 1. Equal cuts are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from dtrees._random import SAMPLE_ROWS, keyed_uint64


@dataclass(frozen=True, kw_only=True)
class CutRules:
    """How many codes, and which rows the cuts are read from.

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


def row_hashes(first_row: int, n_rows: int, seed: int) -> np.ndarray:
    """The sampling hash of rows ``first_row ..``, uint64 (n_rows,). O(n_rows), 2 ns a row."""
    return keyed_uint64(seed, SAMPLE_ROWS, first_row, n_rows)


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


def quantile_codes(
    ordered: np.ndarray, max_bins: int, n_zeros: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest value of every code, from a sample.

    Parameters
    ----------
    ordered : float (m,)
        Sampled values, ascending, without NaN.
    max_bins : int
    n_zeros : int, default=0
        Zeros that were sampled beside these values (rows that a sparse column does not store).

    Returns
    -------
    low, high : same type (n_codes,)
        A value x has the first code with ``x <= high[code - 1]``; the last when there is none.
    """
    n_below = int(np.searchsorted(ordered, 0.0)) if n_zeros else 0

    def at(positions: np.ndarray) -> np.ndarray:
        shifted = np.where(positions < n_below, positions, np.maximum(positions - n_zeros, n_below))
        inside = (positions >= n_below) & (positions < n_below + n_zeros)
        values = ordered[np.minimum(shifted, len(ordered) - 1)] if len(ordered) else 0.0 * positions
        return np.where(inside, ordered.dtype.type(0), values).astype(ordered.dtype, copy=False)

    m = len(ordered) + n_zeros
    high = np.unique(at((np.arange(1, max_bins + 1) * m + max_bins - 1) // max_bins - 1))
    # the position behind the last value that is at most high[c]
    stored = np.searchsorted(ordered, high, side="right")
    begin = np.concatenate([[0], (stored + n_zeros * (high >= 0))[:-1]]) if n_zeros else (
        np.concatenate([[0], stored[:-1]])
    )  # fmt: skip
    return at(begin), high


def hash_bound(k: int, n_rows: int, times: float = 2.0) -> int | None:
    """A hash that about `times` k of so many rows do not exceed; None where every row counts.

    Rows of larger hashes are not looked at where a part of a table is summarized: with a few
    missing values, k of the others are below the bound all the same.
    """
    bound = int((times * k + 8 * k**0.5 + 8) / max(1, n_rows) * 2**64)
    return bound if bound < 2**64 else None


def sampled_rows(hashes: np.ndarray, bound: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows whose hashes are at most the bound, and their hashes."""
    if bound is None:
        return np.arange(len(hashes)), hashes
    rows = np.flatnonzero(hashes <= np.uint64(bound))
    return rows, hashes[rows]


class Sample:
    """The rows that cuts are read from; found at the first column that needs them.

    Parameters
    ----------
    rules : CutRules
    n_rows : int
        Of the table.
    hashes : uint64 (n_kept,), default=None
        Of the rows that there are, in their order; None: all rows of the table.
    """

    rows: np.ndarray | None

    def __init__(self, rules: CutRules, n_rows: int, hashes: np.ndarray | None = None) -> None:
        self.rules = rules
        self.n_rows = n_rows if hashes is None else len(hashes)  # of those that there are
        self.rows = None
        self._given = hashes
        if rules.max_bins is not None and n_rows > max(rules.max_bins, rules.sample_rows):
            self.rows = bottom(self._all_hashes(), rules.sample_rows)

    def _all_hashes(self) -> np.ndarray:
        if self._given is not None:
            return self._given
        return row_hashes(0, self.n_rows, self.rules.seed)

    @cached_property
    def hashes(self) -> np.ndarray:
        """Of all rows, uint64; kept once a column with missing values has asked for them."""
        return self._all_hashes()

    @cached_property
    def is_in(self) -> np.ndarray:
        """Whether each row is sampled in columns without missing values, bool."""
        is_in = np.zeros(self.n_rows, dtype=bool)
        is_in[self.rows] = True
        return is_in

    def of(self, values: np.ndarray) -> np.ndarray:
        """The sampled values of a column, (n_rows,), ascending and without NaN."""
        sample = values if self.rows is None else values[self.rows]
        if self.rows is not None and np.isnan(values.min(initial=0)):
            # a sample of the rows that have a value
            present = np.flatnonzero(~np.isnan(values))
            sample = values[present[bottom(self.hashes[present], self.rules.sample_rows)]]
        return np.sort(sample[~np.isnan(sample)])

    def codes_of_sparse(
        self, matrix: scipy.sparse.csc_array, column: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """`quantile_codes` of a column of which more values than `max_bins` are distinct."""
        assert self.rules.max_bins is not None
        stored = slice(matrix.indptr[column], matrix.indptr[column + 1])
        values = matrix.data[stored] + matrix.data.dtype.type(0)
        kept, n_zeros = self._of_sparse(values, matrix.indices[stored], matrix.shape[0])
        return quantile_codes(np.sort(kept), self.rules.max_bins, n_zeros)

    def _of_sparse(
        self, values: np.ndarray, rows: np.ndarray, n_rows: int
    ) -> tuple[np.ndarray, int]:
        """The sampled values of those that a column stores, and how many zeros are beside them."""
        if self.rows is None:
            return values[~np.isnan(values)], n_rows - len(rows)
        if not np.isnan(values).any():
            kept = values[self.is_in[rows]]
            return kept, int(np.count_nonzero(self.is_in)) - len(kept)
        present = np.ones(n_rows, dtype=bool)
        present[rows[np.isnan(values)]] = False
        chosen = np.flatnonzero(present)
        chosen = chosen[bottom(self.hashes[chosen], self.rules.sample_rows)]
        kept = values[np.isin(rows, chosen)]
        return kept, len(chosen) - len(kept)
