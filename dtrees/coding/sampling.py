"""Which rows are sampled, and the cuts that a sample gives.

A row is sampled when its hash, a draw of (seed, row id), is among the smallest: "bottom k". The
sample of a table is therefore made from those of its parts, however the rows were cut into parts.

Quantile cuts are exact quantiles of the sample: with m sampled values in ascending order, cut k of
K stands at value number ``ceil(k m / K)``, counted from 1. Equal cuts are one.
"""

from __future__ import annotations

import numpy as np

from dtrees._random import SAMPLE_ROWS, keyed_uint64


def row_hashes(first_row: int, n_rows: int, seed: int) -> np.ndarray:
    """The sampling hash of rows ``first_row ..``, uint64 (n_rows,). O(n_rows), 2 ns a row."""
    return keyed_uint64(seed, SAMPLE_ROWS, first_row, n_rows)


def bottom(hashes: np.ndarray, k: int) -> np.ndarray:
    """Places of the k smallest hashes, ascending; all that equal the k-th are in."""
    if len(hashes) <= k:
        return np.arange(len(hashes))
    # a bound that more than k hashes meet with near certainty, so that few are partitioned
    expected = int((k + 8 * k**0.5 + 8) / len(hashes) * 2**64)
    if expected < 2**64:
        places = np.flatnonzero(hashes <= np.uint64(expected))
        if len(places) >= k:
            kept = hashes[places]
            return places[kept <= np.partition(kept, k - 1)[k - 1]]
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

    def at(places: np.ndarray) -> np.ndarray:
        shifted = np.where(places < n_below, places, np.maximum(places - n_zeros, n_below))
        inside = (places >= n_below) & (places < n_below + n_zeros)
        values = ordered[np.minimum(shifted, len(ordered) - 1)] if len(ordered) else 0.0 * places
        return np.where(inside, ordered.dtype.type(0), values).astype(ordered.dtype, copy=False)

    m = len(ordered) + n_zeros
    high = np.unique(at((np.arange(1, max_bins + 1) * m + max_bins - 1) // max_bins - 1))
    # the place behind the last value that is at most high[c]
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
