"""A forest made ready to walk, and rows coded for it.

Rows walk down many trees, so it pays to code them first: by what the forest asks of them, and not
by the codebook. A *slot* is what a coded row holds of a column, at most two of them::

    numbers of column 3    0.5 | 1.25 | 7.0     all thresholds of the forest; a slot holds how many
                                                of them are below the number
    categories of column 5 red blue ...         a slot holds the code of the category

    row of a mixed table   [ 2  0  65535  4  1 ]   uint16

A forest with too many columns, or thresholds in a column, is packed in parts: trees that follow
each other, each part with slots of its own. `_packed_forest` packs inner nodes, thresholds and the
values of leaves; `_walk` has the codes of what is missing or not there at fit, and the walk.

What has to be found out about a column before rows walk is found out once for all trees of a call:
which numbers it holds, and for labels, which code and which number each *distinct* label is
(`CodeBook.read_labels`)::

    column of labels     rows     [ 2  0  0 -1  2 ]       numbers of the labels, -1 missing
                         labels   [ red  7.5  blue ]
                         codes    [  4    3    2  | 0 ]   by label, and missing at the end
                         numbers  [ nan  7.5  nan | nan ]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from dtrees._forks import cached_property
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict._packed_forest import (
    CATEGORY,
    MISSING,
    MOST_CODES,
    MOST_SLOTS,
    UNSEEN,
    GrownTrees,
    PackedTrees,
    are_dense,
    fill_leaves,
    fill_nodes,
    set_limits,
)
from dtrees.core.predict._walk import (
    add_numbers,
    code_numbers,
    code_sparse,
    walk_leaves,
    walk_sparse,
    walk_values,
)
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.coding import CodeBook
    from dtrees.coding.coded import CodedMatrix
    from dtrees.coding.tables import Table

MOST_THRESHOLDS = 65_532  # of a slot
WORD_LIMIT = 2**32  # words of all subsets
WORD_BITS = 64  # codes of a subset that fits into a rule
FEW_ROWS = 64  # that cost the calls, not the cells
PACKING_TASKS = 8  # of slots, and as many of trees
NOWHERE = -1  # slot of a column that is not in the row


def slots_of(columns: np.ndarray, n_columns: int) -> np.ndarray:
    """Where each column of the table stands among `columns`, int32 (n_columns,)."""
    slot = np.full(n_columns, NOWHERE, dtype=np.int32)
    slot[columns] = np.arange(len(columns))
    return slot


@dataclass(frozen=True, eq=False)
class LabelCells:
    """A column of labels."""

    column: int
    rows: np.ndarray  # integers (n_rows,): place of each row's label; -1 is missing
    # uint32 (n_labels + 1,): of each label, as `CodeBook.read_labels`; 0 at the end, where -1 leads
    codes: np.ndarray
    numbers: np.ndarray  # float64 (n_labels + 1,): nan for what is no number, and at the end


class RawCells:
    """A table that ``book.check`` returned, as the book reads it, for all trees of a call."""

    def __init__(self, book: CodeBook, table: Table) -> None:
        self.book = book
        self.table = table
        self._labels: dict[int, LabelCells] = {}

    @cached_property
    def sparse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of a sparse table: int64 ``indptr``, int32 rows, and values of 32 or 64 bits."""
        matrix = self.table.sparse
        assert matrix is not None
        numbers = np.result_type(matrix.dtype, np.float32)  # as in numpy: of 16 bits, float32
        return (
            matrix.indptr.astype(np.int64, copy=False),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data.astype(numbers, copy=False),
        )

    def numbers(self, slot: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Blocks of numbers that hold wanted columns; `slot` is -1 for those that are not wanted.

        Yields the numbers, (n_rows, k), and the wanted columns of the block and in the table, both
        int64 (n_wanted,).
        """
        for block in self.table.numbers:
            inside = np.flatnonzero(slot[block.columns] != NOWHERE)
            if len(inside):
                yield block.values, inside, block.columns[inside]

    def labels(self, slot: np.ndarray) -> Iterator[LabelCells]:
        """Wanted columns of labels; each is read when it is first asked for.

        Raises UnseenCategoryError with ``book.handle_unknown == "error"``.
        """
        for column in self.table.labels:
            j = column.column
            if slot[j] == NOWHERE:
                continue
            found = self._labels.get(j)
            if found is None:
                codes, numbers = self.book.read_labels(column, self.table.name(j))
                found = self._labels[j] = LabelCells(
                    j, column.codes, np.append(codes, np.uint32(0)), np.append(numbers, np.nan)
                )
            yield found


@dataclass(frozen=True, eq=False)
class PackedForest:
    """Trees of a forest made ready to walk on coded rows."""

    book: CodeBook | CodedMatrix  # whose columns the trees test
    trees: PackedTrees
    number_columns: np.ndarray  # int64 (n_number_slots,): column of each slot of numbers
    # number_slot, code_slot: int32 (n_columns,): slot of a column's numbers, and of its categories;
    # -1: none
    number_slot: np.ndarray
    code_slot: np.ndarray
    thresholds: np.ndarray  # float64: of each slot of numbers, ascending, one slot behind the other
    first: np.ndarray  # int64 (n_number_slots + 1,): slots of numbers come first

    def rows_of(self, cells: RawCells) -> DenseReader | SparseReader:
        """The rows of a table, ready to be coded."""
        if cells.table.sparse is None:
            return DenseReader(self, cells)
        return SparseReader(self, cells.sparse)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.trees.n_trees)

    @property
    def has_numbers_only(self) -> bool:
        """Whether no slot is one of categories."""
        return bool(self.trees.n_slots == len(self.number_columns))

    def label_codes(self, cells: LabelCells) -> np.ndarray:
        """Codes of labels in their column's slot of categories; uint16 (n_labels + 1,)."""
        shift = max(0, int(self.book.n_ordered[cells.column]) - 1)
        codes = cells.codes.astype(np.int64)
        return np.maximum(codes - shift, codes > 0).astype(np.uint16)

    def label_numbers(self, cells: LabelCells) -> np.ndarray:
        """Codes of the numbers of labelled cells, in their slot."""
        slot = self.number_slot[cells.column]
        thresholds = self.thresholds[self.first[slot] : self.first[slot + 1]]
        below = np.searchsorted(thresholds, cells.numbers)
        is_new = cells.codes > self.book.n_codes[cells.column]
        other = np.where(cells.codes == 0, MISSING, np.where(is_new, UNSEEN, CATEGORY))
        return np.where(np.isnan(cells.numbers), other, below).astype(np.uint16)


class DenseReader:
    """The rows of a table, coded a stretch at a time; any thread may ask."""

    def __init__(self, packed: PackedForest, cells: RawCells) -> None:
        self._packed = packed
        self._numbers: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._whether: list[tuple[np.ndarray, int]] = []  # columns of numbers, slots of categories
        self._labels: list[tuple[np.ndarray, np.ndarray, int]] = []  # labels, their codes, slot
        block = cells.table.block
        if block is not None and packed.has_numbers_only and is_walkable(block):
            slots = np.arange(len(packed.number_columns))
            self._numbers.append((block, packed.number_columns, slots))
            return
        for values, inside, columns in cells.numbers(packed.number_slot):
            if not is_walkable(values):
                values, inside = values[:, inside[0] : inside[-1] + 1], inside - inside[0]
            slots = packed.number_slot[columns].astype(np.int64)
            self._numbers.append((values, inside, slots))
        for values, inside, columns in cells.numbers(packed.code_slot):
            for k, column in zip(inside, columns, strict=True):
                self._whether.append((values[:, k], packed.code_slot[column]))
        for found in cells.labels(np.maximum(packed.number_slot, packed.code_slot)):
            for slot, code in (
                (packed.code_slot[found.column], packed.label_codes),
                (packed.number_slot[found.column], packed.label_numbers),
            ):
                if slot != NOWHERE:
                    self._labels.append((found.rows, code(found), slot))

    def code(self, first: int, end: int) -> np.ndarray:
        """Codes of a stretch of rows, uint16 (end - first, n_slots)."""
        packed = self._packed
        rows = np.empty((end - first, packed.trees.n_slots), dtype=np.uint16)
        for values, inside, slots in self._numbers:
            numbers = values[first:end]
            if not is_walkable(numbers):
                numbers = numbers.astype(np.float64)
            code_numbers(packed.trees, numbers, inside, slots, rows)
        for numbers, slot in self._whether:
            rows[:, slot] = numbers[first:end] == numbers[first:end]
        for labels, codes, slot in self._labels:
            rows[:, slot] = codes[labels[first:end]]
        return rows

    def add_values(self, first: int, end: int, total: np.ndarray, tree: int) -> None:
        """Add the values of the leaves of a stretch of rows; `tree` is the number of the first one.

        total : float64 (end - first, n_outputs), IN and OUT; trees of one value have one in turn
        """
        walk_values(self._packed.trees, self.code(first, end), total, tree)

    def find_leaves(self, first: int, end: int, leaves: np.ndarray) -> None:
        """Leaves of a stretch of rows, OUT int32 (n_trees, end - first)."""
        walk_leaves(self._packed.trees, self.code(first, end), leaves)


class SparseReader:
    """The rows of a sparse table, coded a stretch at a time; any thread may ask.

    Parameters
    ----------
    packed : PackedForest
    table : tuple of arrays
        Compressed columns: where each begins, rows, and numbers or codes.
    place, fill : arrays, optional
        As for `code_sparse`.
    """

    def __init__(
        self,
        packed: PackedForest,
        table: tuple[np.ndarray, np.ndarray, np.ndarray],
        place: np.ndarray | None = None,
        fill: np.ndarray | None = None,
    ) -> None:
        self._trees, self._table = packed.trees, table
        self._place = place
        self._fill = None if fill is None else fill[packed.number_columns]

    def add_values(self, first: int, end: int, total: np.ndarray, tree: int) -> None:
        """As for dense tables."""
        self._walk(first, end, None, total, tree)

    def find_leaves(self, first: int, end: int, leaves: np.ndarray) -> None:
        """As for dense tables."""
        self._walk(first, end, leaves, None, 0)

    def _walk(
        self,
        first: int,
        end: int,
        leaves: np.ndarray | None,
        total: np.ndarray | None,
        tree: int,
    ) -> None:
        rows = code_sparse(self._trees, *self._table, first, end, self._place, self._fill)
        walk_sparse(self._trees, *rows, leaves, total, tree)


def is_walkable(block: np.ndarray) -> bool:
    """Whether the kernels read this memory as it is: native float32 or float64."""
    return block.dtype.char in "fd" and block.dtype.isnative and block.flags.aligned


def add_few_rows(forest: Forest, book: CodeBook, table: Table, total: np.ndarray) -> bool:
    """Add the values of the leaves of few rows of numbers; whether that is what the table is.

    A shorter way: one call for each part of the forest codes the rows and walks.

    total : float64 (n_rows, n_outputs), IN and OUT, as `DenseReader.add_values`
    """
    block = table.block if table.n_rows <= FEW_ROWS else None
    if block is None or not is_walkable(block):
        return False
    parts = pack_forest(forest, book)
    packed = [part for part in parts if isinstance(part, PackedForest) and part.has_numbers_only]
    if len(packed) < len(parts):
        return False
    tree = 0
    for part in packed:
        add_numbers(part.trees, block, total, tree)
        tree += part.n_trees
    return True


Parts = Sequence[PackedForest | Tree]  # trees that follow each other
_packed: WeakKeyDictionary[Forest | Tree, tuple[CodeBook, Parts]] = WeakKeyDictionary()


def pack_forest(forest: Forest | Tree, book: CodeBook, run: Runner = serial) -> Parts:
    """The trees made ready, remembered as long as they live.

    In as many parts as it takes for each to have few enough columns, and each column of it few
    enough thresholds. A tree that is too large is a part by itself, as it is: one of more columns,
    thresholds of a column or categories than 16 bits number.

    O(nodes + codes of all subsets) at the first use; slots and trees are the tasks of the runner.
    """
    known = _packed.get(forest)
    if known is None or known[0] is not book:
        trees = forest.trees if isinstance(forest, Forest) else (forest,)
        parts = pack_trees(trees, book, run)
        if parts and parts[0] is forest:
            parts = ()  # or the tree would keep itself alive
        known = _packed[forest] = (book, parts)
    return known[1] or ((forest,) if isinstance(forest, Tree) else ())


def pack_trees(trees: Sequence[Tree], book: CodeBook | CodedMatrix, run: Runner = serial) -> Parts:
    """Trees made ready, as by `pack_forest`."""
    for tree in trees:
        if tree.n_columns != book.n_columns:
            raise ValueError(
                f"The tree has {tree.n_columns} columns, its codebook {book.n_columns}."
            )
    grown = GrownTrees(trees, book.n_columns)
    number_columns = np.flatnonzero(grown.n_compared)
    code_columns = np.flatnonzero(grown.n_subsets)
    if (book.n_ordered[number_columns] == 0).any():
        raise ValueError("The tree is broken: a node compares what is not a number.")
    if (book.n_ordered[code_columns] >= book.n_codes[code_columns]).any():
        raise ValueError("The tree is broken: a node has a subset of numbers.")
    n_slots = len(number_columns) + len(code_columns)
    if n_slots >= MOST_SLOTS:
        return _halves(trees, book, run)
    # what many nodes ask for stands together
    number_columns = number_columns[np.argsort(-grown.n_compared[number_columns], kind="stable")]
    number_slot = slots_of(number_columns, book.n_columns)
    code_slot = slots_of(code_columns, book.n_columns)
    code_slot[code_columns] += len(number_columns)
    largest = book.n_codes[code_columns] - np.maximum(0, book.n_ordered[code_columns] - 1) + 1
    is_hybrid = book.n_ordered[number_columns] < book.n_codes[number_columns]
    n_words = None
    with_other = bool(is_hybrid.any() or grown.with_above or largest.max(initial=0) >= WORD_BITS)
    if len(code_columns) or with_other:
        n_words = int(((largest // 64 + 1) * grown.n_subsets[code_columns]).sum())
    if largest.max(initial=0) >= MOST_CODES or (n_words or 0) >= WORD_LIMIT:
        return _halves(trees, book, run)

    packed = PackedTrees(grown, max(1, n_slots), n_words, with_other)
    begins = np.append(0, np.cumsum(grown.n_compared[number_columns]))
    compared = np.empty(begins[-1])
    node_of = np.empty(begins[-1], dtype=np.int64)
    columns = np.column_stack([number_slot, code_slot, book.n_codes, book.n_ordered])
    fill_nodes(packed, grown, columns.astype(np.int64), begins[:-1].copy(), compared, node_of)
    n_distinct = np.zeros(len(number_columns), dtype=np.int64)

    def rank(begin: int, end: int) -> np.ndarray:
        """Tell the nodes of some slots what goes left; returns the distinct thresholds."""
        own = slice(begins[begin], begins[end])
        slot = np.repeat(np.arange(end - begin, dtype=np.uint16), np.diff(begins[begin : end + 1]))
        order = compared[own].argsort()
        order = order[slot[order].argsort(kind="stable")]  # by slots, and by values within them
        values, slot = compared[own][order], slot[order]
        is_new = np.ones(len(order), dtype=bool)
        is_new[1:] = (values[1:] != values[:-1]) | (slot[1:] != slot[:-1])
        n_distinct[begin:end] = np.bincount(slot[is_new], minlength=end - begin)
        n_upto = np.cumsum(n_distinct[begin:end])[slot]
        n = n_distinct[begin:end][slot]
        set_limits(packed, node_of[own][order], np.cumsum(is_new) - (n_upto - n), n)
        return values[is_new]

    leaves = partial(fill_leaves, packed, grown, are_dense(grown))
    some_slots = _stretches(begins)
    found = run(
        [partial(rank, begin, end) for begin, end in some_slots]
        + [partial(leaves, begin, end) for begin, end in _stretches(grown.first_leaf)]
    )
    if n_distinct.max(initial=0) > MOST_THRESHOLDS:
        return _halves(trees, book, run)
    first = np.append(0, np.cumsum(n_distinct))
    thresholds = np.concatenate([*found[: len(some_slots)], [np.nan]])
    packed.set_thresholds(number_columns, thresholds, first, book.n_columns)
    slots = number_columns, number_slot, code_slot
    return [PackedForest(book, packed, *slots, thresholds, first)]


def _halves(trees: Sequence[Tree], book: CodeBook | CodedMatrix, run: Runner) -> Parts:
    """The trees in two parts, or more; one tree as it is."""
    half = len(trees) // 2
    if half == 0:
        return trees
    left, right = run([partial(pack_trees, some, book) for some in (trees[:half], trees[half:])])
    return [*left, *right]


def _stretches(begins: np.ndarray) -> list[tuple[int, int]]:
    """Some of the numbers of ``begins[:-1]`` each, which together hold about as much."""
    wanted = np.linspace(0, begins[-1], PACKING_TASKS + 1)
    bounds = np.unique([0, *np.searchsorted(begins, wanted[1:-1]), len(begins) - 1])
    return list(pairwise(bounds.tolist()))
