"""A forest made ready to walk, and rows coded for it.

Rows walk down many trees, so it pays to code them first: by what the forest asks of them, and not
by the codebook. A *slot* is what a coded row holds of a column, at most two of them::

    numbers of column 3    0.5 | 1.25 | 7.0     all thresholds of the forest; a slot holds how many
                                                of them are below the number
    categories of column 5 red blue ...         a slot holds the code of the category

    row of a mixed table   [ 2  0  65535  4  1 ]   uint16

A forest with too many thresholds in a column is packed in parts: trees that follow each other, each
part with slots of its own.

`dtrees.core._forest` has the codes of what is missing or not there at fit, and the walk. Which code
a label has is found once for each distinct label of a call (`dtrees.core.raw_cells`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from dtrees.core._forest import (
    CODE_LIMIT,
    GONE,
    NEW,
    NO_NUMBER,
    SLOT_LIMIT,
    THRESHOLD_LIMIT,
    ForestNodes,
    code_numbers,
    slot_subsets,
)
from dtrees.core.model import ABOVE, AT_MOST, IN_SUBSET, LEAF, Forest, Tree
from dtrees.core.raw_cells import LabelCells, RawCells
from dtrees.core.used_columns import NOWHERE, places_of

if TYPE_CHECKING:
    from dtrees.coding import CodeBook

WORD_LIMIT = 2**32  # words of all subsets


@dataclass(frozen=True, eq=False)
class PackedForest:
    """Trees of a forest made ready to walk on coded rows.

    Attributes
    ----------
    book : CodeBook
    n_trees : int
    nodes : ForestNodes
    number_slot, code_slot : int32 (n_columns,)
        Slot of a column's numbers, and of its categories; -1: none.
    thresholds : float64
        Of each slot of numbers, ascending, one slot behind the other.
    first : int64 (n_number_slots + 1,)
        Slots of numbers come first.
    """

    book: CodeBook
    n_trees: int
    nodes: ForestNodes
    number_slot: np.ndarray
    code_slot: np.ndarray
    thresholds: np.ndarray
    first: np.ndarray

    def rows_of(self, cells: RawCells) -> CodedStretches:
        """The rows of a dense table, ready to be coded."""
        return CodedStretches(self, cells)

    def label_codes(self, cells: LabelCells) -> np.ndarray:
        """Codes of labels in their column's slot of categories; uint16 (n_labels + 1,)."""
        shift = max(0, int(self.book.n_ordered[cells.column]) - 1)
        codes = cells.codes.astype(np.int64)
        return np.maximum(codes - shift, codes > 0).astype(np.uint16)

    def label_numbers(self, cells: LabelCells) -> np.ndarray:
        """The same in the slot of numbers."""
        slot = self.number_slot[cells.column]
        thresholds = self.thresholds[self.first[slot] : self.first[slot + 1]]
        below = np.searchsorted(thresholds, cells.numbers)
        is_new = cells.codes > self.book.n_codes[cells.column]
        other = np.where(cells.codes == 0, GONE, np.where(is_new, NEW, NO_NUMBER))
        return np.where(np.isnan(cells.numbers), other, below).astype(np.uint16)


class CodedStretches:
    """The rows of a table, coded a stretch at a time; any thread may ask."""

    def __init__(self, packed: PackedForest, cells: RawCells) -> None:
        self._packed = packed
        self._numbers: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._whether: list[tuple[np.ndarray, int]] = []  # columns of numbers, slots of categories
        self._labels: list[tuple[np.ndarray, np.ndarray, int]] = []  # labels, their codes, slot
        for values, inside, columns in cells.numbers(packed.number_slot):
            if not is_walkable(values):
                values, inside = values[:, _stretch(inside)], inside - inside[0]
            slots = packed.number_slot[columns].astype(np.int64)
            self._numbers.append((values, inside, slots))
        for values, inside, columns in cells.numbers(packed.code_slot):
            for k, column in zip(inside, columns, strict=True):
                self._whether.append((values[:, k], packed.code_slot[column]))
        self._missing = False
        for found in cells.labels(np.maximum(packed.number_slot, packed.code_slot)):
            for slot, code in (
                (packed.code_slot[found.column], packed.label_codes),
                (packed.number_slot[found.column], packed.label_numbers),
            ):
                if slot != NOWHERE:
                    self._labels.append((found.rows, code(found), slot))
                    self._missing = True

    def code(self, first: int, end: int) -> tuple[np.ndarray, bool]:
        """Codes of a stretch of rows, uint16 (end - first, n_slots), and whether any is missing."""
        packed, missing = self._packed, self._missing
        rows = np.empty((end - first, packed.nodes.n_slots), dtype=np.uint16)
        for values, inside, slots in self._numbers:
            numbers = values[first:end]
            if not is_walkable(numbers):
                numbers = numbers.astype(np.float64)
            missing |= code_numbers(numbers, inside, slots, packed.thresholds, packed.first, rows)
        for numbers, slot in self._whether:
            rows[:, slot] = numbers[first:end] == numbers[first:end]
        for labels, codes, slot in self._labels:
            rows[:, slot] = codes[labels[first:end]]
        return rows, missing


def is_walkable(block: np.ndarray) -> bool:
    """Whether the kernels read this memory as it is."""
    return block.dtype in (np.float32, np.float64) and block.dtype.isnative and block.flags.aligned


def _stretch(inside: np.ndarray) -> slice:
    return slice(int(inside[0]), int(inside[-1]) + 1)


Parts = tuple[PackedForest, ...]  # trees that follow each other
_packed_forests: WeakKeyDictionary[Forest, tuple[CodeBook, Parts | None]] = WeakKeyDictionary()


def pack_forest(forest: Forest, book: CodeBook) -> Parts | None:
    """The forest made ready, remembered as long as it lives; None where it is too large for it.

    In as many parts as it takes for each column of each to have few enough thresholds. Too large is
    one with more columns, thresholds of a column in one tree or categories than 16 bits number;
    None, too, for one that is broken in a way that walking its trees one by one tells.

    O(nodes * log nodes + codes of all subsets) at the first use.
    """
    known = _packed_forests.get(forest)
    if known is None or known[0] is not book:
        known = _packed_forests[forest] = (book, _pack_trees(forest.trees, book))
    return known[1]


def _pack_trees(trees: Sequence[Tree], book: CodeBook) -> Parts | None:
    names = ("feature", "test", "threshold", "missing_go_to_left", "subset_offset")
    together = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in names}
    feature, test = together["feature"], together["test"]
    n_nodes = len(test)
    inner = np.flatnonzero(test != LEAF)
    tested = feature[inner]
    if (
        any(len(array) != n_nodes for array in together.values())
        or any(tree.n_columns != book.n_columns for tree in trees)
        or test.max() > IN_SUBSET
        or (len(inner) and not 0 <= tested.min() <= tested.max() < book.n_columns)
    ):
        return None
    in_subset = test == IN_SUBSET
    numbers = np.flatnonzero((test == AT_MOST) | (test == ABOVE))
    number_columns, number_of = np.unique(feature[numbers], return_inverse=True)
    code_columns = np.unique(feature[in_subset]).astype(np.intp)
    slots = len(number_columns) + len(code_columns)
    shift = np.maximum(0, book.n_ordered[code_columns] - 1)
    largest = book.n_codes[code_columns] - shift + 1
    if (
        (book.n_ordered[number_columns] == 0).any()
        or (book.n_ordered[code_columns] >= book.n_codes[code_columns]).any()
        or slots >= SLOT_LIMIT
        or largest.max(initial=0) >= CODE_LIMIT
    ):
        return None

    slot = np.zeros(n_nodes, dtype=np.uint16)
    limit = np.zeros(n_nodes, dtype=np.uint16)
    low = np.zeros(n_nodes, dtype=np.uint16)
    order = np.argsort(number_of, kind="stable")
    bounds = np.searchsorted(number_of[order], np.arange(len(number_columns) + 1))
    thresholds = []
    for begin, end in pairwise(bounds):
        nodes = numbers[order[begin:end]]
        distinct, rank = np.unique(together["threshold"][nodes], return_inverse=True)
        if len(distinct) > THRESHOLD_LIMIT:
            half = len(trees) // 2
            halves = [_pack_trees(some, book) for some in (trees[:half], trees[half:]) if half]
            left, right = halves or (None, None)
            return left + right if left and right else None
        thresholds.append(distinct)
        below = rank + 1
        above = test[nodes] == ABOVE
        low[nodes] = np.where(above, below, 0)
        limit[nodes] = np.where(above, len(distinct) + 1 - below, below)
    slot[numbers] = number_of
    code_slot = places_of(code_columns, book.n_columns)
    code_slot[code_columns] += len(number_columns)
    slot[in_subset] = code_slot[feature[in_subset]]

    is_hybrid = test == ABOVE
    is_hybrid[numbers] |= book.n_ordered[feature[numbers]] < book.n_codes[feature[numbers]]
    rules = None
    if in_subset.any() or is_hybrid.any():
        largest = np.concatenate([np.zeros(len(number_columns), np.int64), largest])
        rules = _rules(trees, book, low, in_subset, is_hybrid, largest, largest[slot[in_subset]])
        if rules is None:
            return None
    nodes = ForestNodes(
        slot,
        limit,
        together["missing_go_to_left"],
        np.concatenate([tree.children_left for tree in trees]),
        np.concatenate([tree.children_right for tree in trees]),
        np.cumsum([0, *(tree.node_count for tree in trees)]),
        np.concatenate([tree.value for tree in trees]),
        max(1, slots),
        rules,
    )
    first = np.cumsum([0, *map(len, thresholds)])
    flat = np.concatenate([*thresholds, [np.nan]])
    number_slot = places_of(number_columns.astype(np.intp), book.n_columns)
    return (PackedForest(book, len(trees), nodes, number_slot, code_slot, flat, first),)


def _rules(
    trees: Sequence[Tree],
    book: CodeBook,
    low: np.ndarray,
    in_subset: np.ndarray,
    is_hybrid: np.ndarray,
    largest: np.ndarray,
    of_subsets: np.ndarray,
) -> tuple[Any, ...] | None:
    """What `ForestNodes` wants where tests are not all `<=`; None where it cannot be numbered.

    Parameters
    ----------
    low : uint16 (n_nodes,)
    in_subset, is_hybrid : bool (n_nodes,)
        Whether the test is a subset, or a comparison in a column that has categories, too.
    largest : int64 (n_slots,)
    of_subsets : int64 (n_subsets,)
        The largest code of each node with a subset.
    """
    n_words = int((of_subsets // 64 + 1).sum())
    if n_words >= WORD_LIMIT:
        return None
    words = np.zeros(n_words + 1, dtype=np.uint64)
    word = np.zeros(len(low), dtype=np.uint32)
    unseen_left = np.zeros(len(low), dtype=np.uint8)
    n_codes, n_ordered = book.n_codes, book.n_ordered
    at = node = 0
    for tree in trees:
        own = slice(node, node + tree.node_count)
        inner = np.flatnonzero(tree.test != LEAF)
        left, right = tree.children_left[inner], tree.children_right[inner]
        if len(inner) and not (
            min(left.min(), right.min()) >= 0 and max(left.max(), right.max()) < tree.node_count
        ):
            return None
        weight = tree.weighted_n_node_samples
        unseen_left[own][inner] = weight[left] > weight[right]
        at = slot_subsets(
            tree.test,
            tree.feature,
            tree.subset_offset,
            tree.subset_words,
            tree.missing_go_to_left,
            unseen_left[own],
            n_codes,
            n_ordered,
            at,
            word[own],
            words,
        )
        node = own.stop
    flags = in_subset.view(np.uint8), unseen_left, is_hybrid.view(np.uint8)
    return word, low, *flags, words, largest
