"""What a codebook has to know of a table, in a form that merges.

Summaries of parts merge to that of all rows, in any order and any grouping. So a codebook does not
depend on how the rows were cut into parts:

    distinct values   the union; None once there are more than `max_bins`
    sample            of the rows that have a value, those with the smallest hashes
                      (`dtrees.coding.sampling`); none where every value is kept
    categories        the union
    missing           a sum
    type of a column  the type that holds the values of both; labels, where one part has labels

In a part of a large table only rows of small hashes are looked at (`hash_bound`). These may be too
few where most values of a column are missing. `TableSummary.has_enough` is False then, and the
summary has to be made anew from all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from dtrees.coding.column_types import (
    Columns,
    category_array,
    columns_by_type,
    refuse_sparse_categories,
)
from dtrees.coding.labels import sort_labels
from dtrees.coding.ordered import OrderedValues
from dtrees.coding.ordered_summary import EVERY, OrderedSummary, Sampled
from dtrees.coding.sampling import CutRules, row_hashes, sampled_rows
from dtrees.coding.sparse_columns import read_sparse
from dtrees.coding.sparse_summary import SparseSummary
from dtrees.coding.tables import Table
from dtrees.coding.tiles import load, tile_type, tiles
from dtrees.coding.times import DATETIME, NUMBER, TIMEDELTA


@dataclass(frozen=True, eq=False)
class CategorySummary:
    """Labels of one column: how often each was seen."""

    counts: dict[object, int]
    n_rows: int
    n_missing: int

    @classmethod
    def merge_all(cls, parts: Sequence[CategorySummary]) -> CategorySummary:
        """The summary of all parts."""
        counts: dict[object, int] = {}
        for part in parts:
            for label, count in part.counts.items():
                counts[label] = counts.get(label, 0) + count
        n_missing = sum(part.n_missing for part in parts)
        return cls(counts, sum(part.n_rows for part in parts), n_missing)


@dataclass(frozen=True, eq=False)
class TableSummary:
    """Summaries of the columns of a table: numbers, labels, or (hybrid) both.

    Attributes
    ----------
    n_rows : int
    ordered : tuple of OrderedSummary or None, of length n_columns
    categories : tuple of CategorySummary or None, of length n_columns
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
    categories: tuple[CategorySummary | None, ...]
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
            What these rows count for in cuts (`dtrees.coding.weights.cut_weights`).
        """
        n_columns = table.n_columns
        none = np.zeros(n_columns, dtype=bool)
        nothing = (None,) * n_columns
        if table.sparse is not None:
            refuse_sparse_categories(table, mask)
            matrix = read_sparse(table)
            sparse = SparseSummary.of(matrix, rules, first_row, bound, weights)
            dtypes = (table.sparse.dtype,) * n_columns
            return cls(table.n_rows, nothing, nothing, dtypes, table.units, ~none, none, sparse)
        columns = columns_by_type(table, mask)
        cap = EVERY if rules.max_bins is None else rules.max_bins
        hashes = row_hashes(first_row, 0 if cap == EVERY else table.n_rows, rules.seed)
        rows, hashes = sampled_rows(hashes, bound)
        weights = None if weights is None else weights[rows]
        how = rules.sample_rows, rows, hashes, weights
        ordered: list[OrderedSummary | None] = list(nothing)
        for block in columns.ordered:
            for some in tiles(block):
                tile = load(block.values[:, some])
                for j, values in zip(block.columns[some].tolist(), tile, strict=True):
                    ordered[j] = OrderedSummary.of(values, cap, *how)
        return cls(
            table.n_rows,
            tuple(ordered),
            _categories(columns, n_columns),
            _dtypes(table),
            table.units,
            _has_values(table),
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
        merge_samples = partial(OrderedSummary.merge_all, sampled=sampled)
        return TableSummary(
            sum(part.n_rows for part in parts),
            _merged(merge_samples, [part.ordered for part in parts]),
            _merged(CategorySummary.merge_all, [part.categories for part in parts]),
            tuple(reduce(_wider, of) for of in zip(*(part.dtypes for part in parts), strict=True)),
            units,
            np.any([part.has_values for part in parts], axis=0),
            clashes,
            SparseSummary.merge_all(sparse) if sparse else None,
        )

    def of_columns(self, first: int, last: int) -> TableSummary:
        """The summary of the columns ``first .. last - 1`` of a dense table, for `beside`."""
        assert self.sparse is None
        some = slice(first, last)
        return TableSummary(
            self.n_rows,
            self.ordered[some],
            self.categories[some],
            self.dtypes[some],
            self.units[some],
            self.has_values[some],
            self.clashes[some],
        )

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
        """Whether the samples are those of all rows."""
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
            part is not None and dtype is not None and bool({np.inf, -np.inf} & part.counts.keys())
            for part, dtype in zip(self.categories, self.dtypes, strict=True)
        ]
        return np.array(ordered, dtype=bool) | np.array(labels, dtype=bool)

    def ordered_values(self) -> list[OrderedValues]:
        """Values of the ordered codes, column by column; a sparse table's all at once.

        Float32 where the columns of the whole table would be coded as such.
        """
        if self.sparse is not None:
            dtype = self.dtypes[0]
            return [_as_type(self.sparse.values(), np.float64 if dtype is None else dtype)]
        found = []
        for j, (part, dtype) in enumerate(zip(self.ordered, self.dtypes, strict=True)):
            labels = self.categories[j]
            if part is None or (part.n_values == 0 and labels is not None and labels.counts):
                continue
            low, high, is_exact = part.codes()
            values = OrderedValues(
                np.array([j]), np.array([len(low)]), low, high, np.array([is_exact])
            )
            found.append(_as_type(values, np.float64 if dtype is None else dtype))
        return found

    def labels(self) -> dict[int, np.ndarray]:
        """The categories of every column that has some, in the order of their codes."""
        found = {}
        for j, (part, dtype) in enumerate(zip(self.categories, self.dtypes, strict=True)):
            if part is None or not part.counts:
                continue
            found[j] = category_array(sort_labels(part.counts), dtype)
        return found


def _categories(columns: Columns, n_columns: int) -> tuple[CategorySummary | None, ...]:
    """Labels of the columns that have categories."""
    found: list[CategorySummary | None] = [None] * n_columns
    for block in columns.numeric_categories:
        for j, values in zip(block.columns.tolist(), block.values.T, strict=True):
            found[j] = _of_numbers(values)
    for named in columns.categories:
        codes = named.labels.codes
        counts = np.bincount(codes[codes >= 0], minlength=len(named.labels.labels))
        labels = {
            label: int(count)
            for label, count, rank in zip(named.labels.labels, counts, named.rank, strict=True)
            if rank
        }
        n_missing = int(np.count_nonzero(codes < 0))
        found[named.labels.column] = CategorySummary(labels, len(codes), n_missing)
    return tuple(found)


def _of_numbers(values: np.ndarray) -> CategorySummary:
    """Numbers that are categories, distinct as they are when they are coded."""
    loaded = load(values[:, None])[0]
    present = loaded[~np.isnan(loaded)]
    found, counts = np.unique(present, return_counts=True)
    is_kept = np.isfinite(found).all() and values.dtype.itemsize <= 8
    names = found.astype(values.dtype) if is_kept else found
    labels = dict(zip(names.tolist(), counts.tolist(), strict=True))
    return CategorySummary(labels, len(values), len(values) - len(present))


def _dtypes(table: Table) -> tuple[np.dtype | None, ...]:
    """Types of the columns of a dense table."""
    found: list[np.dtype | None] = [None] * table.n_columns
    for block in table.numbers:
        for j in block.columns.tolist():
            found[j] = block.values.dtype
    return tuple(found)


def _has_values(table: Table) -> np.ndarray:
    """Columns of a dense table that are not all missing, bool (n_columns,)."""
    found = np.zeros(table.n_columns, dtype=bool)
    for block in table.numbers:
        is_float = block.values.dtype.kind == "f"
        found[block.columns] = not is_float or (block.values == block.values).any(axis=0)
    for column in table.labels:
        found[column.column] = column.present().any()
    return found


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


def _merged(
    merge_all: Callable[[Sequence[Any]], Any], parts: Sequence[Sequence[Any]]
) -> tuple[Any, ...]:
    """Column by column, the summary of those parts that have one."""
    found = []
    for of_column in zip(*parts, strict=True):
        there = [part for part in of_column if part is not None]
        found.append(merge_all(there) if there else None)
    return tuple(found)


def _as_type(values: OrderedValues, dtype: np.dtype | type) -> OrderedValues:
    """The same values as columns of a type are coded with."""
    narrow: Any = tile_type(np.dtype(dtype))
    return replace(values, low=values.low.astype(narrow), high=values.high.astype(narrow))
