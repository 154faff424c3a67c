"""Summaries of a table, which merge: all that a codebook has to know of it.

Summaries of parts merge to that of all rows, in any order and any grouping. So a codebook does not
depend on how the rows were cut into parts:

    distinct values   the union; None once there are more than `max_bins`
    sample            of the rows that have a value, those with the smallest hashes
                      (`dtrees.coding.sampling`); none where every value is kept
    categories        the union
    missing           a sum
    type of a column  the type that holds the values of both; labels, where one part has labels

The sample is the same set of rows for every column without missing values. Of sparse tables the
sampled rows are kept as they are; rows that store nothing cost nothing.

In a part of a large table only rows of small hashes are looked at (`hash_bound`). These may be too
few where most values of a column are missing. `TableSummary.has_enough` is False then, and the
summary has to be made anew from all rows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse

from dtrees.coding._binning import STATUS_INFINITE, STATUS_TOO_MANY, distinct_values
from dtrees.coding.column_types import (
    Columns,
    category_array,
    columns_by_type,
    columns_with_values,
    refuse_sparse_categories,
)
from dtrees.coding.dense_columns import OrderedValues, load, tile_type, tiles
from dtrees.coding.labels import sort_labels
from dtrees.coding.sampling import (
    CutRules,
    Sample,
    bottom,
    codes_of_sample,
    sampled_rows,
)
from dtrees.coding.sparse_columns import SparseCodes, read_sparse
from dtrees.coding.tables import Table
from dtrees.coding.times import DATETIME, NUMBER, TIMEDELTA

BY_COLUMN = ("ordered", "categories", "dtypes", "units", "has_values", "clashes")  # of a summary
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
        # some partitions of a collection have no rows
        found, status = distinct_values(values, cap) if len(values) else (np.empty(0), 0)
        distinct = None if status == STATUS_TOO_MANY else found.astype(np.float64)
        is_infinite = status == STATUS_INFINITE or (distinct is None and np.isinf(values).any())
        n_missing = int(np.count_nonzero(values != values))
        sample = values[rows].astype(np.float64)
        if n_missing:
            present = ~np.isnan(sample)
            hashes, weights, sample = hashes[present], _of(weights, present), sample[present]
        kept = bottom(hashes, sample_rows)
        if len(kept) < len(hashes):
            hashes, weights, sample = hashes[kept], _of(weights, kept), sample[kept]
        return cls(
            *(cap, sample_rows, distinct, hashes, weights, sample),
            n_rows=len(values),
            n_missing=n_missing,
            is_infinite=bool(is_infinite),
        )

    @property
    def has_enough(self) -> bool:
        """Tell whether the sample is that of all rows."""
        if self.distinct is not None or self.cuts is not None:
            return True
        return len(self.hashes) >= min(self.sample_rows, self.n_rows - self.n_missing)

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
        rows, hashes = sampled_rows(rules, first_row, n_rows, bound)
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
        lengths = [np.diff(part.start) for part in parts]
        columns = np.concatenate([np.repeat(np.arange(len(each)), each) for each in lengths])
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
        """Tell whether the samples are those of all rows."""
        cut = np.flatnonzero(self.has_too_many)
        if len(cut) == 0 or len(self.hashes) == self.n_rows:
            return True
        kept = self.kept
        missing = [np.isnan(kept.data[kept.indptr[j] : kept.indptr[j + 1]]).sum() for j in cut]
        wanted = np.minimum(self.rules.sample_rows, self.n_rows - self.n_missing[cut])
        return bool(np.all(len(self.hashes) - np.array(missing) >= wanted))

    def values(self, kind: Any) -> OrderedValues:
        """Least and greatest value of every code of every column, in a type."""
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
            np.concatenate(lows).astype(kind),
            np.concatenate(highs).astype(kind),
            ~self.has_too_many,
        )


@dataclass(frozen=True, eq=False)
class TableSummary:
    """Summaries of the columns of a table: numbers, labels, or (hybrid) both.

    Attributes
    ----------
    n_rows : int
    ordered : tuple of OrderedSummary or None, of length n_columns
    categories : tuple of tuple, of length n_columns
        Distinct labels; none of columns without categories.
    dtypes : tuple of dtype or None, of length n_columns
        None: labels.
    units : uint8 (n_columns,)
        Positions in `dtrees.coding.times.UNITS`.
    has_values : bool (n_columns,)
    clashes : bool (n_columns,)
        Dates or time spans in some rows, and something else in others.
    sparse : SparseSummary or None
        Then there are no other columns.
    """

    n_rows: int
    ordered: tuple[OrderedSummary | None, ...]
    categories: tuple[tuple[Any, ...], ...]
    dtypes: tuple[np.dtype | None, ...]
    units: np.ndarray
    has_values: np.ndarray
    clashes: np.ndarray
    sparse: SparseSummary | None = None

    def __sizeof__(self) -> int:
        """With the samples of dense columns: Dask asks for it, to know what to spill."""
        there = [part for part in self.ordered if part is not None]
        arrays = {id(array): array for part in there for array in (part.hashes, part.sample)}
        distinct = [part.distinct for part in there if part.distinct is not None]
        n_bytes = sum(array.nbytes for array in (*arrays.values(), *distinct))
        return object.__sizeof__(self) + n_bytes

    @classmethod
    def of(
        cls,
        table: Table,
        mask: np.ndarray | None = None,
        *,
        rules: CutRules,
        first_row: int = 0,
        bound: int | None = None,
        weights: np.ndarray | None = None,
    ) -> TableSummary:
        """The summary of the rows ``first_row ..`` of a table.

        Parameters
        ----------
        table : Table
            Some rows of the table, at least one.
        mask : bool (n_columns,) or None, default=None
            As for `columns_by_type`.
        rules : CutRules
        first_row : int, default=0
            Number of the first of these rows within the table.
        bound : int or None, default=None
            Rows of larger hashes are not sampled.
        weights : int64 (n_rows,) or None, default=None
            What these rows count for in cuts (`dtrees.coding.target.cut_weights`).
        """
        n_columns = table.n_columns
        none = np.zeros(n_columns, dtype=bool)
        if table.sparse is not None:
            refuse_sparse_categories(table, mask)
            matrix = read_sparse(table)
            sparse = SparseSummary.of(matrix, rules, first_row, bound, weights)
            dtypes = (table.sparse.dtype,) * n_columns
            nothing = (None,) * n_columns, ((),) * n_columns
            return cls(table.n_rows, *nothing, dtypes, table.units, ~none, none, sparse)
        columns = columns_by_type(table, mask)
        cap = EVERY if rules.max_bins is None else rules.max_bins
        rows, hashes = sampled_rows(rules, first_row, table.n_rows, bound)
        weights = None if weights is None else weights[rows]
        how = rules.sample_rows, rows, hashes, weights
        ordered: list[OrderedSummary | None] = [None] * n_columns
        for block in columns.ordered:
            for some in tiles(block):
                tile = load(block.values[:, some])
                for j, values in zip(block.columns[some].tolist(), tile, strict=True):
                    ordered[j] = OrderedSummary.of(values, cap, *how)
        return cls(
            table.n_rows,
            tuple(ordered),
            _categories(columns, n_columns),
            tuple(table.dtypes()),
            table.units,
            columns_with_values(table),
            none,
        )

    @staticmethod
    def merge_all(parts: Sequence[TableSummary]) -> TableSummary:
        """The summary of all parts, in the order of the rows."""
        sparse = [part.sparse for part in parts if part.sparse is not None]
        if 0 < len(sparse) < len(parts):
            raise ValueError(
                "Some blocks of X are sparse and others are dense. Make them all of one kind, for "
                "example with X.map_blocks(scipy.sparse.csr_array)."
            )
        units, clashes = _units(parts)
        sampled: Sampled = {}  # columns sample the same rows, for the most part
        ordered: list[OrderedSummary | None] = []
        for of_column in zip(*(part.ordered for part in parts), strict=True):
            there = [part for part in of_column if part is not None]
            ordered.append(OrderedSummary.merge_all(there, sampled) if there else None)
        labels = zip(*(part.categories for part in parts), strict=True)
        return TableSummary(
            sum(part.n_rows for part in parts),
            tuple(ordered),
            tuple(tuple(dict.fromkeys(chain(*of_column))) for of_column in labels),
            tuple(reduce(_wider, of) for of in zip(*(part.dtypes for part in parts), strict=True)),
            units,
            np.any([part.has_values for part in parts], axis=0),
            clashes,
            SparseSummary.merge_all(sparse) if sparse else None,
        )

    def of_columns(self, first: int, last: int) -> TableSummary:
        """The summary of the columns ``first .. last - 1`` of a dense table, for `beside`."""
        assert self.sparse is None
        found: dict[str, Any] = {name: getattr(self, name)[first:last] for name in BY_COLUMN}
        return replace(self, **found)

    @staticmethod
    def beside(parts: Sequence[TableSummary]) -> TableSummary:
        """The summary of all columns, of those of stretches of columns, in their order."""
        return TableSummary(
            parts[0].n_rows,
            tuple(found for part in parts for found in part.ordered),
            tuple(found for part in parts for found in part.categories),
            tuple(found for part in parts for found in part.dtypes),
            np.concatenate([part.units for part in parts]),
            np.concatenate([part.has_values for part in parts]),
            np.concatenate([part.clashes for part in parts]),
        )

    def settled(self) -> TableSummary:
        """The summary of all rows without its samples, which have been read. It merges no more."""
        ordered = tuple(None if part is None else part.settled() for part in self.ordered)
        return replace(self, ordered=ordered)

    @property
    def has_enough(self) -> bool:
        """Tell whether the samples are those of all rows."""
        if self.sparse is not None:
            return self.sparse.has_enough
        return all(part is None or part.has_enough for part in self.ordered)

    @property
    def infinite(self) -> np.ndarray:
        """Columns that hold an infinity, bool (n_columns,)."""
        if self.sparse is not None:
            return self.sparse.is_infinite
        ordered = [part is not None and part.is_infinite for part in self.ordered]
        labels = [
            dtype is not None and not {np.inf, -np.inf}.isdisjoint(known)
            for known, dtype in zip(self.categories, self.dtypes, strict=True)
        ]
        return np.array(ordered, dtype=bool) | np.array(labels, dtype=bool)

    def ordered_values(self) -> list[OrderedValues]:
        """Values of the ordered codes, column by column; a sparse table's all at once.

        Float32 where the columns of the whole table would be coded as such.
        """
        kinds: list[Any] = [np.float64 if each is None else tile_type(each) for each in self.dtypes]
        if self.sparse is not None:
            return [self.sparse.values(kinds[0])]
        found = []
        for j, (part, kind) in enumerate(zip(self.ordered, kinds, strict=True)):
            if part is None or (part.n_missing == part.n_rows and self.categories[j]):
                continue
            low, high, is_exact = part.codes()
            of_codes = np.array([j]), np.array([len(low)]), low.astype(kind), high.astype(kind)
            found.append(OrderedValues(*of_codes, np.array([is_exact])))
        return found

    def labels(self) -> dict[int, np.ndarray]:
        """The categories of every column that has some, in the order of their codes."""
        known = enumerate(zip(self.categories, self.dtypes, strict=True))
        return {j: category_array(sort_labels(own), dtype) for j, (own, dtype) in known if own}


def _categories(columns: Columns, n_columns: int) -> tuple[tuple[Any, ...], ...]:
    """Labels of the columns that have categories; numbers as they are when they are coded."""
    found: list[tuple[Any, ...]] = [()] * n_columns
    for block in columns.numeric_categories:
        for j, values in zip(block.columns.tolist(), block.values.T, strict=True):
            loaded = load(values[:, None])[0]
            distinct = np.unique(loaded[~np.isnan(loaded)])
            if np.isfinite(distinct).all() and values.dtype.itemsize <= 8:
                distinct = distinct.astype(values.dtype)
            found[j] = tuple(distinct.tolist())
    for named in columns.categories:
        ranked = zip(named.labels.labels, named.rank, strict=True)
        found[named.labels.column] = tuple(label for label, rank in ranked if rank)
    return tuple(found)


def _wider(a: np.dtype | None, b: np.dtype | None) -> np.dtype | None:
    """The type of a column whose parts are of these types."""
    if a is None or b is None:
        return None
    return a if a == b else np.result_type(a, b)


def _units(parts: Sequence[TableSummary]) -> tuple[np.ndarray, np.ndarray]:
    """Units of columns, and those whose parts cannot be of one column."""
    units = np.array([part.units for part in parts])
    tells = np.array([part.has_values for part in parts])
    tells[:, ~tells.any(axis=0)] = True
    least = np.where(tells, units, 255).min(axis=0)
    differs = least != np.where(tells, units, 0).max(axis=0)
    of_time = np.any(tells & np.isin(units, (DATETIME, TIMEDELTA)), axis=0)
    clashes = np.any([part.clashes for part in parts], axis=0) | (differs & of_time)
    return np.where(differs, NUMBER, least).astype(np.uint8), clashes
