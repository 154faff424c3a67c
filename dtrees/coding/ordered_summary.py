"""Summaries of columns of numbers, which merge: distinct values, or a sample.

The sample is that of the rows with the smallest hashes (`dtrees.coding.sampling`). It is the same
set of rows for every column without missing values.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrees.coding._rank_columns import STATUS_INFINITE, STATUS_TOO_MANY, distinct_values
from dtrees.coding.sampling import bottom, codes_of_sample

EVERY = sys.maxsize  # distinct values, where all are kept

# By the hashes of parts: which of them are kept (None: all), and the hashes and weights that are
Sampled = dict[tuple[int, ...], tuple[np.ndarray | None, np.ndarray, np.ndarray | None]]


@dataclass(frozen=True, eq=False)
class OrderedSummary:
    """Numbers of one column.

    Attributes
    ----------
    cap, sample_rows : int
        Most distinct values that are kept; most rows that are sampled.
    distinct : float64 (at most cap,) or None
        Ascending; None when there are more than ``cap``.
    hashes : uint64 (at most sample_rows,)
        Of the sampled rows, which have a value; in no order. Empty where every value is kept.
    weights : int64, as hashes, or None
        What they count for; None: each counts once.
    sample : float64, as hashes
        Their values.
    n_rows, n_missing : int
    is_infinite : bool
        Whether one of the values is.
    cuts : (float64, float64) or None
        Least and greatest value of every code, once the sample is known to be that of all rows; the
        sample is gone then.
    """

    cap: int
    sample_rows: int
    distinct: np.ndarray | None
    hashes: np.ndarray
    weights: np.ndarray | None
    sample: np.ndarray
    n_rows: int
    n_missing: int
    is_infinite: bool = False
    cuts: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(
        cls,
        values: np.ndarray,
        cap: int,
        sample_rows: int,
        rows: np.ndarray,
        hashes: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> OrderedSummary:
        """The summary of values: float32 or float64 (n_rows,), contiguous, -0.0 as 0.0.

        ``rows`` are the numbers of those that may be sampled, with their hashes and weights.
        O(n_rows), and one sort of the distinct values.
        """
        distinct, is_infinite = _distinct(values, cap)
        n_missing = int(np.count_nonzero(values != values))
        sample = values[rows].astype(np.float64)
        if n_missing:
            present = ~np.isnan(sample)
            hashes, weights, sample = hashes[present], _of(weights, present), sample[present]
        kept = bottom(hashes, sample_rows)
        if len(kept) < len(hashes):
            hashes, weights, sample = hashes[kept], _of(weights, kept), sample[kept]
        found = distinct, hashes, weights, sample
        return cls(cap, sample_rows, *found, len(values), n_missing, is_infinite)

    @property
    def n_values(self) -> int:
        """Rows that have a value."""
        return self.n_rows - self.n_missing

    @property
    def has_enough(self) -> bool:
        """Whether the sample is that of all rows."""
        if self.distinct is not None or self.cuts is not None:
            return True
        return len(self.hashes) >= min(self.sample_rows, self.n_values)

    def settled(self) -> OrderedSummary:
        """The summary of all rows without the sample, which has been read. It merges no more."""
        cuts = None
        if self.distinct is None and self.has_enough:
            cuts = self.codes()[:2]
        nothing = self.hashes[:0].copy()
        return replace(self, hashes=nothing, weights=None, sample=self.sample[:0].copy(), cuts=cuts)

    @classmethod
    def merge_all(
        cls, parts: Sequence[OrderedSummary], sampled: Sampled | None = None
    ) -> OrderedSummary:
        """The summary of all parts.

        Columns without missing values sample the same rows: those of the columns that were merged
        before are in `sampled`, and are not chosen, or kept, once more.
        """
        sampled = {} if sampled is None else sampled
        cap, sample_rows = parts[0].cap, parts[0].sample_rows
        assert all((part.cap, part.sample_rows) == (cap, sample_rows) for part in parts)
        kept = [part.distinct for part in parts if part.distinct is not None]
        distinct = np.unique(np.concatenate(kept)) if len(kept) == len(parts) else None
        if distinct is not None and len(distinct) > cap:
            distinct = None
        sample = np.concatenate([part.sample for part in parts])
        key = tuple(id(part.hashes) for part in parts)
        if key not in sampled:
            hashes = np.concatenate([part.hashes for part in parts])
            weights = joined_weights([part.weights for part in parts])
            rows = bottom(hashes, sample_rows)
            sampled[key] = None, hashes, weights
            if len(rows) < len(hashes):
                sampled[key] = rows, hashes[rows], _of(weights, rows)
        chosen, hashes, weights = sampled[key]
        if chosen is not None:
            sample = sample[chosen]
        return cls(
            cap,
            sample_rows,
            distinct,
            hashes,
            weights,
            sample,
            sum(part.n_rows for part in parts),
            sum(part.n_missing for part in parts),
            any(part.is_infinite for part in parts),
        )

    def codes(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Least and greatest value of every code, and whether the codes are exact."""
        if self.distinct is not None:
            return self.distinct, self.distinct, True
        if self.cuts is not None:
            return (*self.cuts, False)
        return (*codes_of_sample(self.sample, self.weights, self.cap), False)


def joined_weights(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """The weights of all parts, of which all have some, or none has."""
    given = [part for part in parts if part is not None]
    assert len(given) in (0, len(parts))
    return np.concatenate(given) if given else None


def _of(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weights is None else weights[rows]


def _distinct(values: np.ndarray, cap: int) -> tuple[np.ndarray | None, bool]:
    """Distinct values as float64 (None: more than ``cap``), and whether one is infinite."""
    if len(values) == 0:
        return np.empty(0), False
    found, status = distinct_values(values, cap)
    if status == STATUS_TOO_MANY:
        return None, bool(np.isinf(values).any())
    return found.astype(np.float64), status == STATUS_INFINITE
