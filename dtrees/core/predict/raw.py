"""Raw rows to leaves.

A tree's tests are on the user's values: numbers are compared with thresholds, categories are looked
up in subsets. So prediction codes as little as it can, and copies less. Three readers bring rows
down trees:

    trees and table                           reader
    one tree, or few of many columns, that    `RawReader`: the user's own memory, whatever its
      compare numbers                         strides, where it is one block of float32 or float64;
                                              otherwise a few thousand rows at a time, used columns
                                              only
    anything else                             `DenseReader` and `SparseReader`: rows are coded once
                                              for all trees (`dtrees.core.predict.packed_forest`)
    a tree that is too large for such codes   `RawReader`; where it has subsets, level by level

A table's labels are coded once per distinct label, column and call (`RawCells`), not per row or
tree. What a category does that was not there at fit is said by the codebook: it is missing (code
0), it follows the heavier child (a code above all others), or it was an error before anything
walked.

Boosted models add steps: trees stand iteration by iteration, and within one class by class. The
steps of a class are added to what all rows begin with, in the order of the trees, so the bits are
those of the fit::

    trees    0   1   2 | 3   4   5 | ...        three classes
    adds to  0   1   2   0   1   2

Rows do not depend on each other: blocks of them are the tasks of the runner, and their kernels
release the GIL. Memory above the table: the answer and one block per thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_matrix

from dtrees._forks import cached_property
from dtrees.coding.tables import Table
from dtrees.core.model.tree import ABOVE, IN_SUBSET, LEAF, Forest, Tree, mean_of_sums
from dtrees.core.predict._walk import PackedTree, walk_numbers
from dtrees.core.predict.packed_forest import (
    DenseReader,
    PackedForest,
    RawCells,
    SparseReader,
    add_few_rows,
    is_walkable,
    pack_forest,
    slots_of,
)
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.coding import CodeBook

TASK_ROWS = 32_768  # a task of the runner: some milliseconds
FOREST_ROWS = 4_096  # the same for many trees
GATHER_ROWS = 2_048  # rows of used columns that are gathered at a time
TESTS_OF_CODE = 4  # of numbers: what a row passes in the time that it takes to code one of them
TREES_AT_ONCE = 32  # whose leaves are held


def apply(tree: Tree, book: CodeBook, X: Any, run: Runner = serial) -> np.ndarray:
    """Leaf of every row: node numbers, intp (n_rows,).

    `book` is of the same fit. `X` is a table as at fit; or what ``book.check`` made of it, which is
    not checked again. `run` gets a task per block of rows when there are many. Raises ValueError
    where the table or the tree does not fit the codebook, or the tree is broken; and
    UnseenCategoryError where a column that the tree uses holds a new category and
    ``book.handle_unknown`` is "error".

    O(n_rows x depth of the leaves); a tree is packed at its first use, O(nodes).
    """
    leaves: np.ndarray = leaves_of_cells(tree, _cells_of(book, X, run), run)[0].astype(np.intp)
    return leaves


def forest_apply(forest: Forest, book: CodeBook, X: Any, run: Runner = serial) -> np.ndarray:
    """Leaf of every row in every tree; intp (n_rows, n_trees). As `apply`."""
    leaves: np.ndarray = leaves_of_cells(forest, _cells_of(book, X, run), run).T.astype(np.intp)
    return leaves


def _cells_of(book: CodeBook, X: Any, run: Runner) -> RawCells:
    """The cells of a table that may be checked already."""
    return RawCells(book, X if isinstance(X, Table) else book.check(X, run=run))


def leaves_of_cells(model: Forest | Tree, cells: RawCells, run: Runner) -> np.ndarray:
    """Leaf of every row in every tree, of cells that are kept; int32 (n_trees, n_rows)."""
    readers = _readers(model, cells, run)
    n_rows = cells.table.n_rows
    n_trees = len(model) if isinstance(model, Forest) else 1
    leaves = np.empty((n_trees, n_rows), dtype=np.int32)

    def block(first: int, end: int) -> None:
        _find_leaves(readers, first, end, leaves[:, first:end])

    _in_blocks(block, n_rows, run, TASK_ROWS if isinstance(model, Tree) else FOREST_ROWS)
    return leaves


def leaves_by_tree(trees: Sequence[Tree], book: CodeBook, table: Table, run: Runner) -> Iterator:
    """Leaves of all rows of a checked table in one tree after the other: integers (n_rows,) each.

    As `forest_apply`, but the leaves of a few trees at a time are held.
    """
    cells = RawCells(book, table)
    for first in range(0, len(trees), TREES_AT_ONCE):
        yield from leaves_of_cells(Forest(tuple(trees[first : first + TREES_AT_ONCE])), cells, run)


def forest_values(forest: Forest, book: CodeBook, X: Any, run: Runner = serial) -> np.ndarray:
    """Mean of the values of every row's leaves; float64 (n_rows, n_classes or 1).

    Summed in the order of the trees, so the bits do not depend on blocks or threads.
    """
    table = X if isinstance(X, Table) else book.check(X, run=run)
    total = np.zeros((table.n_rows, forest[0].n_values))
    sums_of_values(forest, book, table, run, total)
    if not forest.has_bounded_sums:
        return mean_of_sums(total, len(forest), forest.offsets)
    total /= len(forest)  # one row costs the calls
    return total


def raw_predictions(
    forest: Forest,
    initial: np.ndarray,
    book: CodeBook,
    table: Table,
    run: Runner = serial,
    offset: np.ndarray | None = None,
) -> np.ndarray:
    """Raw predictions of a boosted model for all rows of a table that ``book.check`` returned.

    `initial`, float64 (n_values,), is there before the first tree, and `offset`, float64 (n_rows,
    n_values), is added to it. Returns float64 (n_rows, n_values), in which the values of a class
    stand side by side. O(rows x trees x depth).
    """
    raw = raw_before(initial, table.n_rows, offset)
    if forest.trees:  # before the first iteration there are none
        if forest[0].n_values > 1:  # which are added to at once
            raw = np.ascontiguousarray(raw)
        sums_of_values(forest, book, table, run, raw)
    return raw


def raw_before(initial: np.ndarray, n_rows: int, offset: np.ndarray | None) -> np.ndarray:
    """Raw predictions before the first tree, float64 (n_rows, n_values), to be added to."""
    if offset is not None:
        return np.asfortranarray(initial + offset)
    return initial[:, None].repeat(n_rows, axis=1).T if n_rows != 1 else initial[None].copy()


def staged_raw_predictions(
    forest: Forest,
    initial: np.ndarray,
    book: CodeBook,
    table: Table,
    run: Runner = serial,
    offset: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Raw predictions after each iteration, float64 (n_rows, n_values), copied."""
    raw = raw_before(initial, table.n_rows, offset)
    for number, leaves in enumerate(leaves_by_tree(forest.trees, book, table, run)):
        values = forest[number].value_of(leaves)
        n_values = values.shape[1]
        first = number * n_values % len(initial)
        raw[:, first : first + n_values] += values
        if first + n_values == len(initial):
            yield raw.copy()


def sums_of_values(
    forest: Forest, book: CodeBook, table: Table, run: Runner, total: np.ndarray
) -> None:
    """Add the values of every row's leaves to ``total``, IN and OUT float64 (n_rows, n_outputs).

    There are as many outputs as a leaf has values. Or leaves have one, and each tree has an output
    in turn: tree 0 the first.
    """
    if add_few_rows(forest, book, table, total):
        return
    readers = _readers(forest, RawCells(book, table), run)

    def block(first: int, end: int) -> None:
        tree = 0
        for n_trees, reader in readers:
            reader.add_values(first, end, total[first:end], tree)
            tree += n_trees

    _in_blocks(block, table.n_rows, run)


def forest_blocks(
    forest: Forest,
    book: CodeBook,
    table: Table,
    run: Runner,
    see: Callable[[int, int, np.ndarray], None],
    of_nodes: Sequence[np.ndarray] | None = None,
) -> None:
    """Show the first value of every row's leaf in every tree, for some rows at a time.

    ``see(first, end, values)`` gets float64 (end - first, n_trees), on any thread. `of_nodes` are
    other values of the nodes of each tree.
    """
    of_trees = [tree.value[:, 0] for tree in forest.trees] if of_nodes is None else of_nodes

    def see_leaves(first: int, end: int, found: np.ndarray) -> None:
        values = np.empty((end - first, len(forest)))
        for number, leaves in enumerate(found):
            values[:, number] = of_trees[number].take(leaves)
        see(first, end, values)

    leaf_blocks(forest, book, table, run, see_leaves)


def leaf_blocks(
    forest: Forest,
    book: CodeBook,
    table: Table,
    run: Runner,
    see: Callable[[int, int, np.ndarray], None],
) -> None:
    """Show the leaves of some rows at a time.

    ``see(first, end, leaves)`` gets int32 (n_trees, end - first), on any thread.
    """
    readers = _readers(forest, RawCells(book, table), run)

    def block(first: int, end: int) -> None:
        found = np.empty((len(forest), end - first), dtype=np.int32)
        _find_leaves(readers, first, end, found)
        see(first, end, found)

    _in_blocks(block, table.n_rows, run)


def _in_blocks(
    block: Callable[[int, int], None], n_rows: int, run: Runner, rows: int = FOREST_ROWS
) -> None:
    """Call `block` for stretches of rows, as tasks when there are several."""
    if n_rows <= rows:
        block(0, n_rows)
    else:
        bounds = pairwise([*range(0, n_rows, rows), n_rows])
        run([partial(block, first, end) for first, end in bounds])


class RawReader:
    """The rows of a table for trees that are walked one by one; any thread may ask."""

    def __init__(self, trees: Sequence[Tree], cells: RawCells) -> None:
        self._trees = trees
        self._walks = [_walk_of(tree, cells) for tree in trees]

    @cached_property
    def _values(self) -> list[np.ndarray]:
        return [tree.value for tree in self._trees]

    def add_values(self, first: int, end: int, total: np.ndarray, tree: int) -> None:
        """Add the values of the leaves of a stretch of rows; see `DenseReader.add_values`."""
        outputs = np.split(total, total.shape[1] // self._trees[0].n_values, axis=1)
        leaves = np.empty(end - first, dtype=np.int32)
        with np.errstate(over="ignore", invalid="ignore"):  # see `mean_of_sums`
            for number, walk in enumerate(self._walks):
                walk(first, end, leaves)
                values = self._values[number].take(leaves, axis=0)
                outputs[(tree + number) % len(outputs)] += values

    def find_leaves(self, first: int, end: int, leaves: np.ndarray) -> None:
        """Leaves of a stretch of rows, OUT int32 (n_trees, end - first)."""
        for walk, own in zip(self._walks, leaves, strict=True):
            walk(first, end, own)


Readers = Sequence[tuple[int, DenseReader | SparseReader | RawReader]]


def _readers(model: Forest | Tree, cells: RawCells, run: Runner) -> Readers:
    """Readers of a table's rows for trees that follow each other, and how many trees these are."""
    if _walks_raw(model, cells):
        trees = model.trees if isinstance(model, Forest) else (model,)
        return [(len(trees), RawReader(trees, cells))]
    return [
        (part.n_trees, part.rows_of(cells))
        if isinstance(part, PackedForest)
        else (1, RawReader([part], cells))
        for part in pack_forest(model, cells.book, run)
    ]


def _walks_raw(model: Forest | Tree, cells: RawCells) -> bool:
    """Whether rows of numbers pass the trees sooner than their many columns are coded."""
    book, block = cells.book, cells.table.block
    if isinstance(model, Tree):
        is_dense = cells.table.sparse is None
        return is_dense and (not book.categories or pack(model, book) is not None)
    if block is None or not is_walkable(block) or book.categories:
        return False
    n_nodes = [tree.node_count for tree in model.trees]
    n_columns = min(cells.table.n_columns, sum(n_nodes) // 2)
    return sum(map(math.log2, n_nodes)) < TESTS_OF_CODE * n_columns


def _find_leaves(readers: Readers, first: int, end: int, found: np.ndarray) -> None:
    """Leaves of a stretch of rows in all trees, OUT int32 (n_trees, end - first)."""
    tree = 0
    for n_trees, reader in readers:
        reader.find_leaves(first, end, found[tree : tree + n_trees])
        tree += n_trees


def _walk_of(tree: Tree, cells: RawCells) -> Callable[[int, int, np.ndarray], None]:
    """How rows walk down a tree: a call gets their first, their end, and OUT int32 leaves."""
    packed, block = pack(tree, cells.book), cells.table.block
    if packed is not None and block is not None and is_walkable(block):
        return lambda first, end, leaves: walk_numbers(packed, block[first:end], leaves)
    columns = TestedColumns(np.unique(tree.feature[tree.test != LEAF]), cells)
    own = None if packed is None else PackedTree(tree, columns.slot)

    def walk(first: int, end: int, leaves: np.ndarray) -> None:
        for start in range(first, end, GATHER_ROWS):
            stop = min(start + GATHER_ROWS, end)
            some = leaves[start - first : stop - first]
            if own is not None:
                walk_numbers(own, columns.numbers(start, stop), some)
            else:
                _walk_by_levels(tree, columns, start, stop, some)

    return walk


class TestedColumns:
    """What rows of any table hold in the columns that trees test, which are given ascending.

    Attributes
    ----------
    slot : int32 (n_columns,)
        Place of a column in a gathered row; -1: none.
    """

    def __init__(self, columns: np.ndarray, cells: RawCells) -> None:
        table = cells.table
        self.book, self.slot = cells.book, slots_of(columns, table.n_columns)
        self._n_columns = len(columns)
        self._sparse = None if table.sparse is None else table.sparse[:, columns].tocsr()
        self._numbers = [
            (values[:, k], self.slot[column])
            for values, inside, found in cells.numbers(self.slot)
            for k, column in zip(inside, found, strict=True)
        ]
        self._labels = [(column, self.slot[column.column]) for column in cells.labels(self.slot)]

    def numbers(self, first: int, end: int) -> np.ndarray:
        """Numbers of some rows, nan where there is none; float64 (end - first, n)."""
        if self._sparse is not None:
            return self._sparse[first:end].toarray().astype(np.float64)
        numbers = np.empty((self._n_columns, end - first)).T
        for values, slot in self._numbers:
            numbers[:, slot] = values[first:end]
        for column, slot in self._labels:
            numbers[:, slot] = column.numbers[column.rows[first:end]]
        return numbers

    def codes(self, first: int, end: int, numbers: np.ndarray) -> np.ndarray:
        """Codes of some rows, of which 0 is missing and any number is 1; int64 (n_rows, n)."""
        codes = (~np.isnan(numbers)).astype(np.int64)
        for column, slot in self._labels:
            codes[:, slot] = column.codes[column.rows[first:end]]
        return codes


def _walk_by_levels(
    tree: Tree, columns: TestedColumns, first: int, end: int, leaves: np.ndarray
) -> None:
    """OUT leaves of some rows, which go one level down at a time."""
    numbers = columns.numbers(first, end)
    codes = columns.codes(first, end, numbers)
    weight = tree.weighted_n_node_samples
    rows = np.arange(end - first)
    leaves[:] = 0
    while len(rows := rows[tree.test[leaves[rows]] != LEAF]):
        node = leaves[rows]
        column, test = tree.feature[node], tree.test[node]
        left, right = tree.children_left[node], tree.children_right[node]
        number, code = numbers[rows, columns.slot[column]], codes[rows, columns.slot[column]]
        is_new = code > columns.book.n_codes[column]
        goes_left = np.where(
            test == ABOVE, number > tree.threshold[node], number <= tree.threshold[node]
        )
        asked = np.flatnonzero((test == IN_SUBSET) & ~is_new)
        words = tree.subset_words[tree.subset_offset[node[asked]] + (code[asked] >> 6)]
        goes_left[asked] = (words >> (code[asked] & 63).astype(np.uint64)) & np.uint64(1) > 0
        goes_left = np.where(is_new, weight[left] > weight[right], goes_left)
        goes_left = np.where(code == 0, tree.missing_go_to_left[node] > 0, goes_left)
        leaves[rows] = np.where(goes_left, left, right)


def decision_path(tree: Tree, leaves: np.ndarray) -> csr_matrix:
    """The nodes that rows pass, as scikit-learn gives them; `leaves` are as from `apply`.

    int64 (n_rows, n_nodes): 1 where a row passes a node, root and leaf included. O(n_rows x depth
    of their leaves).
    """
    depth = tree.depth
    inner = np.flatnonzero(tree.test != LEAF)
    parent = np.zeros(tree.node_count, dtype=np.intp)
    parent[tree.children_left[inner]] = inner
    parent[tree.children_right[inner]] = inner
    indptr = np.concatenate([[0], np.cumsum(depth[leaves] + 1)])
    indices = np.empty(indptr[-1], dtype=np.intp)
    rows, node, at = np.arange(len(leaves)), np.asarray(leaves), indptr[1:] - 1
    while len(rows):
        indices[at] = node
        below = node > 0
        rows, at, node = rows[below], at[below] - 1, parent[node[below]]
    ones = np.ones(len(indices), dtype=np.int64)
    return csr_matrix((ones, indices, indptr), shape=(len(leaves), tree.node_count))


_packed: WeakKeyDictionary[Tree, tuple[CodeBook, PackedTree | None]] = WeakKeyDictionary()


def pack(tree: Tree, book: CodeBook) -> PackedTree | None:
    """The tree made ready to walk on rows of numbers; None where it asks for categories.

    It is remembered as long as the tree lives.
    """
    known = _packed.get(tree)
    if known is None or known[0] is not book:
        if tree.n_columns != book.n_columns:
            raise ValueError(
                f"The tree has {tree.n_columns} columns, its codebook {book.n_columns}."
            )
        packed = None
        if not np.isin(tree.feature, list(book.categories)).any():
            packed = PackedTree(tree, np.arange(tree.n_columns, dtype=np.int32))
        known = _packed[tree] = (book, packed)
    return known[1]
