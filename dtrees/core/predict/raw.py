"""Raw rows to leaves.

A tree's tests are on the user's values: numbers are compared with thresholds, categories are looked
up in subsets. So prediction codes as little as it can, and copies less:

    table                                     what walks
    one block of float32 or float64,          the user's own memory, whatever its strides
      every used column ordered
    a sparse matrix                           a few rows at a time in a dense block of used columns
    anything else                             a few thousand rows at a time, used columns only:
                                              numbers as float64 and, where columns have
                                              categories, codes beside them

    row of a mixed table        numbers  [  37.0   nan  -2.5 ]    ordered and hybrid columns
                                codes    [     3     1       ]    categorical and hybrid columns

In a hybrid column the code says whether the cell is missing, a category or a number; the number
itself is compared raw. A table's labels are coded once per distinct label, column and call
(`dtrees.core.predict.raw_cells`), not per row or tree. Forests code the rows of a table for all of
their trees at once (`dtrees.core.predict.packed_forest`), unless columns of numbers are so many and
trees so few that walking these one by one takes less.

What a category does that was not there at fit is said by the codebook: it is missing (code 0), it
follows the heavier child (a code above all others), or it was an error before anything walked.

Rows do not depend on each other: blocks of them are the tasks of the runner, and their kernels
release the GIL. Memory above the table: the answer and one block per thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_matrix

from dtrees._forks import cached_property
from dtrees.coding.tables import Table
from dtrees.core.model.tree import LEAF, Forest, Tree
from dtrees.core.predict._raw import PackedTree, walk_mixed, walk_numbers, walk_sparse
from dtrees.core.predict.means import add_up, mean_of_sums
from dtrees.core.predict.packed_forest import (
    CodedStretches,
    SparseStretches,
    add_few_rows,
    is_walkable,
    pack_forest,
)
from dtrees.core.predict.raw_cells import RawCells, parts_of
from dtrees.core.predict.used_columns import NOWHERE, slots_of, sparse_block, used_columns
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from dtrees.coding import CodeBook

TASK_ROWS = 32_768  # a task of the runner: some milliseconds
FOREST_ROWS = 4_096  # the same for many trees
GATHER_ROWS = 2_048  # rows of used columns that are gathered at a time
TESTS_OF_CODE = 4  # of numbers: what a row passes in the time that it takes to code one of them

Leaves = Callable[[int, int, np.ndarray], None]  # (first row, end, OUT leaves of these rows)


@dataclass(frozen=True, eq=False)
class Packed:
    """A tree made ready to walk on tables of one codebook.

    Attributes
    ----------
    book : CodeBook
    numbers : int64 (n_numbers,)
        Used columns that hold numbers, ascending: a gathered row of numbers.
    codes : int64 (n_code_columns,)
        Used columns that hold categories.
    gathered : PackedTree
        Places are those in gathered rows.
    whole : PackedTree or None
        Places are column numbers; None where codes are needed.
    """

    book: CodeBook
    numbers: np.ndarray
    codes: np.ndarray
    gathered: PackedTree
    whole: PackedTree | None


_packed: WeakKeyDictionary[Tree, Packed] = WeakKeyDictionary()


def apply(tree: Tree, book: CodeBook, X: Any, run: Runner = serial) -> np.ndarray:
    """Leaf of every row.

    Parameters
    ----------
    tree : Tree
    book : CodeBook
        Of the same fit.
    X : table of shape (n_rows, n_columns)
        As at fit; or what ``book.check`` made of it, which is not checked again.
    run : Runner, default=serial
        Gets a task per block of rows when there are many.

    Returns
    -------
    leaves : intp (n_rows,)
        Node numbers.

    Raises
    ------
    ValueError
        The table does not fit the codebook, the tree not the codebook, or the tree is broken.
    UnseenCategoryError
        A column that the tree uses holds a new category and ``book.handle_unknown`` is "error".

    Notes
    -----
    O(n_rows x depth of the leaves); a tree is packed at its first use, O(nodes).
    """
    table = X if isinstance(X, Table) else book.check(X, run=run)
    return _leaves(tree, RawCells(book, table), run)


def forest_apply(forest: Forest, book: CodeBook, X: Any, run: Runner = serial) -> np.ndarray:
    """Leaf of every row in every tree; intp (n_rows, n_trees). As `apply`."""
    table = X if isinstance(X, Table) else book.check(X, run=run)
    leaves = np.empty((len(forest), table.n_rows), dtype=np.int32)
    stretches = _stretches(forest, RawCells(book, table), run)

    def block(first: int, end: int) -> None:
        tree = 0
        for n_trees, rows in stretches:
            found = np.empty((n_trees, end - first), dtype=np.int32)
            rows.find_leaves(first, end, found)
            leaves[tree : tree + n_trees, first:end] = found
            tree += n_trees

    _in_blocks(block, table.n_rows, run, FOREST_ROWS)
    return leaves.T.astype(np.intp)


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


def sums_of_values(
    forest: Forest, book: CodeBook, table: Table, run: Runner, total: np.ndarray
) -> None:
    """Add the values of every row's leaves to ``total``, IN and OUT float64 (n_rows, n_outputs).

    There are as many outputs as a leaf has values. Or leaves have one, and each tree has an output
    in turn: tree 0 the first.
    """
    if add_few_rows(forest, book, table, total):
        return
    stretches = _stretches(forest, RawCells(book, table), run)

    def block(first: int, end: int) -> None:
        tree = 0
        for n_trees, rows in stretches:
            rows.add_values(first, end, total[first:end], tree)
            tree += n_trees

    _in_blocks(block, table.n_rows, run, FOREST_ROWS)


def forest_blocks(
    forest: Forest,
    book: CodeBook,
    X: Any,
    run: Runner,
    see: Callable[[int, int, np.ndarray], None],
) -> None:
    """Show the first value of every row's leaf in every tree, for some rows at a time.

    ``see(first, end, values)`` gets float64 (end - first, n_trees), on any thread.
    """
    table = X if isinstance(X, Table) else book.check(X, run=run)
    stretches = _stretches(forest, RawCells(book, table), run)
    of_trees = [tree.value[:, 0] for tree in forest.trees]

    def block(first: int, end: int) -> None:
        values, tree = np.empty((end - first, len(forest))), 0
        for n_trees, rows in stretches:
            found = np.empty((n_trees, end - first), dtype=np.int32)
            rows.find_leaves(first, end, found)
            for number, leaves in enumerate(found, start=tree):
                values[:, number] = of_trees[number].take(leaves)
            tree += n_trees
        see(first, end, values)

    _in_blocks(block, table.n_rows, run, FOREST_ROWS)


def leaves_by_tree(trees: Sequence[Tree], book: CodeBook, table: Table, run: Runner) -> Iterator:
    """Leaves of all rows of a checked table in one tree after the other: intp (n_rows,) each.

    As `forest_apply`, but the leaves of one tree at a time are held.
    """
    cells = RawCells(book, table)
    for tree in trees:
        yield _leaves(tree, cells, run)


class UncodedStretches:
    """The rows of a table for a forest whose trees are walked one by one."""

    def __init__(self, forest: Forest, cells: RawCells) -> None:
        self._forest = forest
        self._walks = [_walker(tree, cells) for tree in forest.trees]

    @cached_property
    def _values(self) -> list[np.ndarray]:
        return [tree.value for tree in self._forest.trees]

    def _by_tree(self, first: int, end: int) -> Iterator[np.ndarray]:
        """Leaves in one tree after the other, in the same array."""
        leaves = np.empty(end - first, dtype=np.intp)
        for walk in self._walks:
            walk(first, end, leaves)
            yield leaves

    def add_values(self, first: int, end: int, total: np.ndarray, tree: int) -> None:
        """Add the values of the leaves of a stretch of rows; see `CodedStretches.add_values`."""
        outputs = np.split(total, total.shape[1] // self._forest[0].n_values, axis=1)
        walked = zip(self._by_tree(first, end), self._values, strict=True)
        for number, (leaves, values) in enumerate(walked, start=tree):
            add_up(outputs[number % len(outputs)], values.take(leaves, axis=0))

    def find_leaves(self, first: int, end: int, leaves: np.ndarray) -> None:
        """Leaves of a stretch of rows, OUT int32 (n_trees, end - first)."""
        for own, found in zip(leaves, self._by_tree(first, end), strict=True):
            own[:] = found


Stretches = CodedStretches | SparseStretches | UncodedStretches


def _stretches(forest: Forest, cells: RawCells, run: Runner) -> list[tuple[int, Stretches]]:
    """The rows of a table for trees that follow each other, and how many trees these are."""
    if _is_wide(forest, cells):
        return [(len(forest), UncodedStretches(forest, cells))]
    found: list[tuple[int, Stretches]] = []
    for part in pack_forest(forest, cells.book, run) or ():
        rows = part.rows_of(cells)
        if rows is None:
            return [(len(forest), UncodedStretches(forest, cells))]
        found.append((part.n_trees, rows))
    return found or [(len(forest), UncodedStretches(forest, cells))]


def _is_wide(forest: Forest, cells: RawCells) -> bool:
    """Whether rows of numbers pass few trees sooner than their many columns are coded."""
    block = cells.table.block
    if block is None or not is_walkable(block) or cells.book.categories:
        return False
    n_nodes = [tree.node_count for tree in forest.trees]
    n_columns = min(cells.table.n_columns, sum(n_nodes) // 2)
    return sum(map(math.log2, n_nodes)) < TESTS_OF_CODE * n_columns


def _in_blocks(
    block: Callable[[int, int], None], n_rows: int, run: Runner, rows: int = TASK_ROWS
) -> None:
    """Call `block` for stretches of rows, as tasks when there are several."""
    if n_rows <= rows:
        block(0, n_rows)
    else:
        bounds = pairwise([*range(0, n_rows, rows), n_rows])
        run([partial(block, first, end) for first, end in bounds])


def _leaves(tree: Tree, cells: RawCells, run: Runner) -> np.ndarray:
    """Leaf of every row, intp (n_rows,)."""
    n_rows = cells.table.n_rows
    leaves = np.empty(n_rows, dtype=np.intp)
    walk = _walker(tree, cells)
    _in_blocks(lambda first, end: walk(first, end, leaves[first:end]), n_rows, run)
    return leaves


def _walker(tree: Tree, cells: RawCells) -> Leaves:
    """How rows of a table walk through a tree."""
    packed = pack(tree, cells.book)
    table = cells.table
    block = table.block
    if table.sparse is not None:
        return _of_sparse(packed, table.sparse)
    if packed.whole is not None and block is not None and is_walkable(block):
        whole = packed.whole
        return lambda first, end, leaves: walk_numbers(whole, block[first:end], leaves)
    return _of_gathered(packed, cells)


def decision_path(tree: Tree, leaves: np.ndarray) -> csr_matrix:
    """The nodes that rows pass, as scikit-learn gives them.

    Parameters
    ----------
    tree : Tree
    leaves : int (n_rows,)
        What `apply` returned.

    Returns
    -------
    csr_matrix (n_rows, n_nodes), int64
        1 where a row passes a node, root and leaf included. O(n_rows x depth of their leaves).
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


def pack(tree: Tree, book: CodeBook) -> Packed:
    """The tree made ready to walk; remembered as long as the tree lives."""
    packed = _packed.get(tree)
    if packed is None or packed.book is not book:
        packed = _packed[tree] = _pack(tree, book)
    return packed


def _pack(tree: Tree, book: CodeBook) -> Packed:
    n_columns = tree.n_columns
    if n_columns != book.n_columns:
        raise ValueError(f"The tree has {n_columns} columns, its codebook {book.n_columns}.")
    used = used_columns(tree)
    if len(used) and not 0 <= used[0] <= used[-1] < n_columns:
        raise ValueError(f"The tree tests column {used[-1]} of a table of {n_columns}.")
    numbers = used[book.n_ordered[used] > 0]
    codes = used[book.n_ordered[used] < book.n_codes[used]]
    walk = partial(PackedTree, tree, n_codes=book.n_codes, n_ordered=book.n_ordered)
    nowhere = slots_of(codes[:0], n_columns)
    gathered = walk(slots_of(numbers, n_columns), slots_of(codes, n_columns))
    whole = None if gathered.with_rules else walk(np.arange(n_columns, dtype=np.int32), nowhere)
    return Packed(book, numbers, codes, gathered, whole)


def _of_sparse(packed: Packed, table: csc_array) -> Leaves:
    """How rows of a sparse table walk: used columns only, in a block of few rows."""
    indptr, rows, data = parts_of(table[:, packed.numbers])

    def leaves_of(first: int, end: int, leaves: np.ndarray) -> None:
        block = sparse_block(len(packed.numbers), data.dtype)
        walk_sparse(packed.gathered, indptr, rows, data, block, first, leaves)

    return leaves_of


def _of_gathered(packed: Packed, cells: RawCells) -> Leaves:
    """How rows of any other table walk: used columns only, a few thousand rows at a time."""
    n_columns = cells.table.n_columns
    number_slot = slots_of(packed.numbers, n_columns)
    code_slot = slots_of(packed.codes, n_columns)
    columns = []  # (values (n_rows,), their slot) of columns of numbers
    whether = []  # the same of hybrid columns that hold numbers only
    for values, inside, found in cells.numbers(number_slot):
        for k, column in zip(inside, found, strict=True):
            columns.append((values[:, k], number_slot[column]))
            if code_slot[column] != NOWHERE:
                whether.append((number_slot[column], code_slot[column]))
    labels = list(cells.labels(code_slot))

    def leaves_of(first: int, end: int, leaves: np.ndarray) -> None:
        height = min(GATHER_ROWS, end - first)
        if packed.gathered.with_rules:
            numbers = np.empty((height, len(packed.numbers)))
        else:
            numbers = np.empty((len(packed.numbers), height)).T
        codes = np.empty((height, len(packed.codes)), dtype=np.uint32)
        for start in range(first, end, GATHER_ROWS):
            stop = min(start + GATHER_ROWS, end)
            n = stop - start
            for values, slot in columns:
                numbers[:n, slot] = values[start:stop]
            for slot, code in whether:
                codes[:n, code] = ~np.isnan(numbers[:n, slot])
            for column in labels:
                here, slot = column.rows[start:stop], number_slot[column.column]
                codes[:n, code_slot[column.column]] = column.codes[here]
                if slot != NOWHERE:
                    numbers[:n, slot] = column.numbers[here]
            out = leaves[start - first : stop - first]
            if packed.gathered.with_rules:
                walk_mixed(packed.gathered, numbers[:n], codes[:n], out)
            else:
                walk_numbers(packed.gathered, numbers[:n], out)

    return leaves_of
