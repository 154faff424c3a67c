"""Coded rows to leaves.

The rows that a tree is grown from are there as codes, and need not be read again to walk down it:
``value <= Tree.threshold`` is ``code <= Tree.code`` for every row of the fit
(`CodeBook.thresholds`)::

    value     -2.0   0.5   1.25   7.0   nan     value <= 1.25
    code         1     2      3     4     0     code  <= 3

Codes are read where they are (`dtrees.core.predict._binned`), so rows that are not asked for cost
nothing. In tables of sparse columns a code walks as the number that it is, less the fill code, and
missing (code 0) as nan. What is stored of the columns that a tree tests is taken from all rows, or,
where that is less, what is stored of the rows that are asked for: the codes are then held by row as
well, if trees have looked at as many cells in vain as there are. Many regression trees together
have what they test as a dense table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
from scipy.sparse import csc_array, csr_array

from dtrees._forks import cached_property
from dtrees.coding.coded import SPARSE, WIDTHS, CodedMatrix, storage_for
from dtrees.core.model.tree import Tree
from dtrees.core.predict._binned import find_leaves, find_means
from dtrees.core.predict._raw import PackedTree, walk_sparse
from dtrees.core.predict._reached_leaves import ReachedLeaves
from dtrees.core.predict.raw_cells import parts_of
from dtrees.core.predict.used_columns import slots_of, sparse_block, used_columns
from dtrees.typing import Runner

FLOAT_CODES = 2**24  # largest code that float32 holds exactly
BY_ROW = 1  # times the stored cells: what it costs to hold them by row
OF_A_TREE = 16_000  # cells that are copied in the time that a tree of a sparse table takes
MOST_CELLS = 2**22
DEARER = 2  # a cell that is held by row
TREES_AT_ONCE = 32  # whose leaves are held

Asked = tuple[Sequence[Tree], np.ndarray]  # trees of a model, and numbers of rows


class Walked(Protocol):
    """Rows of a table, wherever they come from."""

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, intp (n,)."""
        ...


class LeafLookup(Walked, Protocol):
    """The rows of a coded table, wherever its codes are."""

    @property
    def is_here(self) -> bool:
        """Whether the codes are in this process, and rows may walk on any thread."""
        ...

    def bring(self, asked: Sequence[Asked]) -> None:
        """Get the leaves ready that rows will be asked for, in each of the trees of a model."""
        ...

    def bring_values(self, asked: Sequence[Asked]) -> None:
        """Get the sums ready that will be asked for."""
        ...

    def sums(self, trees: Sequence[Tree], rows: np.ndarray, run: Runner) -> np.ndarray:
        """Values of the leaves of some rows, added up in the order of the trees."""
        ...


class CodedRows:
    """A coded table, made ready to walk down the trees that are grown from it.

    Parameters
    ----------
    coded : CodedMatrix
        Not copied; of a sparse table, the codes are held once more, as numbers, once rows walk.
    """

    def __init__(self, coded: CodedMatrix) -> None:
        self._coded = coded
        exact = coded.n_codes.max(initial=0) < FLOAT_CODES
        self._dtype = np.dtype(np.float32 if exact else np.float64)
        is_sparse = coded.n_columns > 0 and bool((coded.storage == SPARSE).all())
        self._n_passed = 0
        self._is_sparse = is_sparse and bool((coded.n_ordered == coded.n_codes).all())

    @property
    def is_here(self) -> bool:
        """Codes are in this process."""
        return True

    def bring(self, asked: Sequence[Asked]) -> None:
        """There is nothing to fetch."""

    def bring_values(self, asked: Sequence[Asked]) -> None:
        """There is nothing to fetch."""

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, intp (n,); on any thread.

        O(nodes + n x depth), and for sparse tables O(stored codes of used columns, or of the rows).
        Rows that ascend are found in the caches.
        """
        return self._leaves_of((tree,), rows)[0]

    def means(self, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray:
        """As `means_of_leaves`."""
        coded: CodedMatrix | None = self._coded
        if self._is_sparse:
            wanted, place = np.unique(rows, return_inverse=True)
            coded = self._dense(trees, wanted)
            if coded is None:
                return np.array([tree.value_of(self.leaves(tree, rows))[:, 0] for tree in trees])
            rows = place
        means = np.empty((len(trees), len(rows)))
        find_means(trees, coded, np.ascontiguousarray(rows, dtype=np.int64), means)
        return means

    def sums(self, trees: Sequence[Tree], rows: np.ndarray, run: Runner) -> np.ndarray:
        """Values of the leaves of some rows, float64 (n, n_values)."""
        n = len(rows)
        total = np.zeros((n, trees[0].n_values))
        for start in range(0, len(trees), TREES_AT_ONCE):
            some = trees[start : start + TREES_AT_ONCE]
            halves = [half for half in (some[: len(some) // 2], some[len(some) // 2 :]) if half]
            reached = run([partial(self._reached_by, half, rows) for half in halves])
            ends = [(0, n // 2), (n // 2, n)]
            run([partial(_add_up, reached, total, begin, end) for begin, end in ends])
        return total

    def _leaves_of(self, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray:
        if self._is_sparse:
            return np.array([self._sparse_leaves(tree, rows) for tree in trees])
        leaves = np.empty((len(trees), len(rows)), dtype=np.intp)
        find_leaves(trees, self._coded, np.ascontiguousarray(rows, dtype=np.int64), leaves)
        return leaves

    def _reached_by(self, trees: Sequence[Tree], rows: np.ndarray) -> ReachedLeaves:
        return ReachedLeaves(trees, self._leaves_of(trees, rows))

    def _dense(self, trees: Sequence[Tree], rows: np.ndarray) -> CodedMatrix | None:
        """Codes of some rows, ascending, of the columns that some trees test, as a dense table.

        None where trees cost less one by one, or there are many cells.
        """
        coded = self._coded
        columns = np.unique(np.concatenate([used_columns(tree) for tree in trees]))
        first, end = coded.sparse_indptr[columns], coded.sparse_indptr[columns + 1]
        counts, n_cells = end - first, len(rows) * len(columns)
        if counts.sum() + n_cells > OF_A_TREE * len(trees) or n_cells > MOST_CELLS:
            return None
        at = np.repeat(end - np.cumsum(counts), counts) + np.arange(counts.sum())
        place = np.full(coded.n_rows, -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        numbers = place[coded.sparse_rows[at]]
        kept = numbers >= 0
        cells = np.repeat(np.arange(len(columns)), counts)[kept], numbers[kept]
        codes = np.repeat(coded.fill_code[columns, None], len(rows), axis=1)
        codes[cells] = coded.sparse_codes[at[kept]]
        storage = np.full(coded.n_columns, SPARSE, dtype=np.uint8)
        storage[columns] = stores = storage_for(coded.n_codes[columns])
        blocks = [codes[stores == store].astype(width).T for store, width in enumerate(WIDTHS)]
        return CodedMatrix.dense(len(rows), coded.n_codes, coded.n_ordered, storage, blocks)

    def _stored(self, columns: np.ndarray) -> csc_array:
        """Codes of some columns less the fill code of their column, which is then zero."""
        coded = self._coded
        first, end = coded.sparse_indptr[columns], coded.sparse_indptr[columns + 1]
        indptr = np.concatenate([[0], np.cumsum(end - first)])
        if indptr[-1] <= np.iinfo(np.int32).max:  # or SciPy copies the rows as numbers of 64 bits
            indptr = indptr.astype(np.int32)
        rows, found = coded.sparse_rows, coded.sparse_codes
        if len(columns) < coded.n_columns:
            stored = [slice(0), *map(slice, first.tolist(), end.tolist())]
            rows = np.concatenate([rows[of_column] for of_column in stored])
            found = np.concatenate([found[of_column] for of_column in stored])
        codes = found.astype(self._dtype)
        codes -= np.repeat(coded.fill_code[columns].astype(self._dtype), end - first)
        codes[found == 0] = np.nan
        return csc_array((codes, rows, indptr), shape=(coded.n_rows, len(columns)))

    @cached_property
    def _stored_by_row(self) -> csr_array:
        return self._stored(np.arange(self._coded.n_columns)).tocsr()

    def _stored_in(self, columns: np.ndarray, rows: np.ndarray) -> csc_array | None:
        """Codes of some columns and rows; None where taking them from all rows costs less.

        The codes are held by row once trees have looked at more cells of other rows than that
        costs.
        """
        coded, n_stored = self._coded, len(self._coded.sparse_codes)
        of_columns = (coded.sparse_indptr[columns + 1] - coded.sparse_indptr[columns]).sum()
        if DEARER * n_stored * len(rows) >= of_columns * coded.n_rows:
            return None
        self._n_passed += int(of_columns) + coded.n_rows
        if self._n_passed < BY_ROW * n_stored:
            return None
        return self._stored_by_row[rows][:, columns].tocsc()

    def _sparse_leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of rows of a sparse table; see `dtrees.core.predict._raw.walk_sparse`."""
        coded, used = self._coded, used_columns(tree)
        fill = coded.fill_code[np.maximum(tree.feature, 0)].astype(np.float64)
        packed = PackedTree(
            replace(tree, threshold=tree.code - fill),
            slots_of(used, coded.n_columns),
            slots_of(used[:0], coded.n_columns),
            coded.n_codes,
            coded.n_ordered,
        )
        own = self._stored_in(used, rows)
        cells = self._stored(used) if own is None else own
        leaves = np.empty(cells.shape[0], dtype=np.intp)
        walk_sparse(packed, *parts_of(cells), sparse_block(len(used), self._dtype), 0, leaves)
        return leaves[rows] if own is None else leaves


def _add_up(reached: Sequence[ReachedLeaves], total: np.ndarray, begin: int, end: int) -> None:
    for of_trees in reached:  # in their order, as in a prediction
        of_trees.add_to(total, begin, end)


def means_of_leaves(walked: Walked, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray:
    """Means of the leaves of some rows, of regression trees, float64 (n_trees, n)."""
    if isinstance(walked, CodedRows):
        return walked.means(trees, rows)
    return np.array([tree.value_of(walked.leaves(tree, rows))[:, 0] for tree in trees])
