"""What a codebook has to know of a column, in a form that merges.

A summary of some rows and one of other rows give that of all of them, in any order and any
grouping, so a codebook does not depend on how the rows were cut into chunks:

    distinct values   the union, given up for good once there are more than `max_codes`
    sample            of the rows that have a value, those with the smallest hashes ("bottom k");
                      hash = draw of (seed, row id)
    categories        the union
    missing           a sum

The sample is the same set of rows for every column without missing values. Quantile cuts are exact
quantiles of it: with m sampled values in ascending order, cut k of K stands at value number
``ceil(k m / K)``, counted from 1. Equal cuts are one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dtrees._random import SAMPLE_ROWS, keyed_uint64
from dtrees.coding.kinds import Columns


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
    ordered: np.ndarray, max_codes: int, n_zeros: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest value of every code, from a sample.

    Parameters
    ----------
    ordered : float (m,)
        Sampled values, ascending, without NaN.
    max_codes : int
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
    high = np.unique(at((np.arange(1, max_codes + 1) * m + max_codes - 1) // max_codes - 1))
    # the place behind the last value that is at most high[c]
    stored = np.searchsorted(ordered, high, side="right")
    begin = np.concatenate([[0], (stored + n_zeros * (high >= 0))[:-1]]) if n_zeros else (
        np.concatenate([[0], stored[:-1]])
    )  # fmt: skip
    return at(begin), high


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
        Of the sampled rows, which have a value; in no order.
    sample : float64, as hashes
        Their values.
    n_rows, n_missing : int
    """

    cap: int
    sample_rows: int
    distinct: np.ndarray | None
    hashes: np.ndarray
    sample: np.ndarray
    n_rows: int
    n_missing: int

    @classmethod
    def of(
        cls, values: np.ndarray, *, cap: int, sample_rows: int, seed: int, first_row: int
    ) -> OrderedSummary:
        """The summary of values that begin at row ``first_row`` of the whole table."""
        values = values.astype(np.float64) + 0.0
        present = values[~np.isnan(values)]
        distinct: np.ndarray | None = np.unique(present)
        if distinct is not None and len(distinct) > cap:
            distinct = None
        hashes = row_hashes(first_row, len(values), seed)[~np.isnan(values)]
        rows = bottom(hashes, sample_rows)
        n_missing = len(values) - len(present)
        return cls(
            cap, sample_rows, distinct, hashes[rows], present[rows], len(values), n_missing
        )  # fmt: skip

    def merge(self, other: OrderedSummary) -> OrderedSummary:
        """The summary of both parts."""
        assert (self.cap, self.sample_rows) == (other.cap, other.sample_rows)
        distinct = None
        if self.distinct is not None and other.distinct is not None:
            distinct = np.union1d(self.distinct, other.distinct)
            distinct = distinct if len(distinct) <= self.cap else None
        hashes = np.concatenate([self.hashes, other.hashes])
        sample = np.concatenate([self.sample, other.sample])
        rows = bottom(hashes, self.sample_rows)
        return OrderedSummary(
            self.cap,
            self.sample_rows,
            distinct,
            hashes[rows],
            sample[rows],
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
        )

    def codes(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Least and greatest value of every code, and whether the codes are exact."""
        if self.distinct is not None:
            return self.distinct, self.distinct, True
        return (*quantile_codes(np.sort(self.sample), self.cap), False)


@dataclass(frozen=True, eq=False)
class CategorySummary:
    """Labels of one column: how often each was seen."""

    counts: dict[object, int]
    n_rows: int
    n_missing: int

    def merge(self, other: CategorySummary) -> CategorySummary:
        """The summary of both parts."""
        counts = dict(self.counts)
        for label, count in other.counts.items():
            counts[label] = counts.get(label, 0) + count
        return CategorySummary(
            counts, self.n_rows + other.n_rows, self.n_missing + other.n_missing
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class TableSummary:
    """Summaries of the columns of a table: numbers, labels, or (hybrid) both."""

    ordered: tuple[OrderedSummary | None, ...]
    categories: tuple[CategorySummary | None, ...]

    @classmethod
    def of(
        cls,
        columns: Columns,
        n_columns: int,
        *,
        max_codes: int | None = None,
        sample_rows: int = 200_000,
        seed: int = 0,
        first_row: int = 0,
    ) -> TableSummary:
        """The summary of the rows ``first_row ..`` of a table whose columns were sorted by kind."""
        cap = sys.maxsize if max_codes is None else max_codes
        ordered: list[OrderedSummary | None] = [None] * n_columns
        categories: list[CategorySummary | None] = [None] * n_columns
        for block in columns.ordered:
            for j, values in zip(block.columns.tolist(), block.values.T, strict=True):
                ordered[j] = OrderedSummary.of(
                    values, cap=cap, sample_rows=sample_rows, seed=seed, first_row=first_row
                )
        for block in columns.named:
            for j, values in zip(block.columns.tolist(), block.values.T, strict=True):
                missing = np.isnan(values.astype(np.float64))
                found, counts = np.unique(values[~missing], return_counts=True)
                labels = dict(zip(found.tolist(), counts.tolist(), strict=True))
                categories[j] = CategorySummary(labels, len(values), int(missing.sum()))
        for named in columns.categories:
            codes = named.labels.codes
            counts = np.bincount(codes[codes >= 0], minlength=len(named.labels.labels))
            labels = {
                label: int(count)
                for label, count, place in zip(
                    named.labels.labels, counts, named.place, strict=True
                )
                if place
            }
            n_missing = int(np.count_nonzero(codes < 0))
            categories[named.labels.column] = CategorySummary(labels, len(codes), n_missing)
        return cls(tuple(ordered), tuple(categories))

    def merge(self, other: TableSummary) -> TableSummary:
        """The summary of both parts."""
        assert len(self.ordered) == len(other.ordered)
        pairs = zip(self.ordered, other.ordered, strict=True)
        labels = zip(self.categories, other.categories, strict=True)
        return TableSummary(
            tuple(a.merge(b) if a and b else a or b for a, b in pairs),
            tuple(a.merge(b) if a and b else a or b for a, b in labels),
        )

    @staticmethod
    def merge_all(summaries: list[TableSummary]) -> TableSummary:
        """The summary of all parts."""
        return reduce(TableSummary.merge, summaries)
