"""Coded rows to leaves.

The rows that a tree is grown from are there as codes, and need not be read again to walk down it:
``value <= Tree.threshold`` is ``code <= Tree.code`` for every row of the fit
(`CodeBook.thresholds`)::

    value     -2.0   0.5   1.25   7.0   nan     value <= 1.25
    code         1     2      3     4     0     code  <= 3

Codes are read where they are (`dtrees.core.predict._walk`), so rows that are not asked for cost
nothing. In tables of sparse columns a code walks as the number that it is, and missing (code 0) as
nan, as rows of a raw sparse table down a forest (`dtrees.core.predict.packed_forest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dtrees.coding.coded import SPARSE, CodedMatrix
from dtrees.core.model.tree import Tree
from dtrees.core.predict._packed_forest import add_leaves
from dtrees.core.predict._walk import find_leaves
from dtrees.core.predict.packed_forest import PackedForest, SparseReader, pack_trees
from dtrees.typing import Runner

TREES_AT_ONCE = 32  # whose leaves are held
MAPPED_AT_ONCE = 2**16  # rows that walk, where codes are in files

Asked = tuple[Sequence[Tree], np.ndarray]  # trees of a model, and numbers of rows


class LeafLookup:
    """The rows of a table, wherever its codes or values are."""

    is_here = True  # whether these are in this process, and rows may walk on any thread

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, intp (n,)."""
        raise NotImplementedError

    def bring(self, asked: Sequence[Asked], starts: Sequence[float | None] | None = None) -> None:
        """Fetch the leaves that will be asked for, in each of the trees of a model.

        Or the sums of their values, of those that have a start, with which they begin.
        """

    def sums(
        self, trees: Sequence[Tree], rows: np.ndarray, run: Runner, start: float = 0.0
    ) -> np.ndarray:
        """Values of the leaves of some rows, added up in the order of the trees to `start`."""
        total = np.full((len(rows), trees[0].n_values), start)
        for tree in trees:
            total += tree.value_of(self.leaves(tree, rows))
        return total

    def means(self, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray:
        """Means of the leaves of some rows: float64 (n_trees * n_outputs, n)."""
        return np.concatenate([tree.value_of(self.leaves(tree, rows)).T for tree in trees])


class CodedRows(LeafLookup):
    """A coded table, not copied, made ready to walk down the trees that are grown from it."""

    def __init__(self, coded: CodedMatrix) -> None:
        self._coded = coded
        is_sparse = coded.n_columns > 0 and bool((coded.storage == SPARSE).all())
        self._is_sparse = is_sparse and bool((coded.n_ordered == coded.n_codes).all())

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, intp (n,); on any thread.

        O(nodes + n x depth), and for sparse tables O(stored codes of used columns + n_rows). Rows
        that ascend are found in the caches.
        """
        return self._leaves_of((tree,), rows)[0].astype(np.intp)

    def means(self, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray:
        """Means of the leaves of some rows: float64 (n_trees * n_outputs, n)."""
        leaves = zip(trees, self._leaves_of(trees, rows), strict=True)
        return np.concatenate([tree.value_of(own).T for tree, own in leaves])

    def sums(
        self, trees: Sequence[Tree], rows: np.ndarray, run: Runner, start: float = 0.0
    ) -> np.ndarray:
        """Values of the leaves of some rows, float64 (n, n_values)."""
        total = np.full((len(rows), trees[0].n_values), start)
        self.add_values(trees, rows, total, run)
        return total

    def add_values(
        self, trees: Sequence[Tree], rows: np.ndarray, total: np.ndarray, run: Runner
    ) -> None:
        """Add the values of the leaves of some rows, in the order of the trees.

        total : float64 (n, n_values), IN and OUT
        """
        n = len(rows)
        for start in range(0, len(trees), TREES_AT_ONCE):
            some = trees[start : start + TREES_AT_ONCE]
            halves = [half for half in (some[: len(some) // 2], some[len(some) // 2 :]) if half]
            leaves = np.concatenate(run([partial(self._leaves_of, half, rows) for half in halves]))
            ends = [(0, n // 2), (n // 2, n)]
            run([partial(add_leaves, some, leaves, total, begin, end) for begin, end in ends])

    def _leaves_of(self, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray:
        """Leaves of some rows, int32 (n_trees, n)."""
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        found = self._sparse_leaves(trees, rows) if self._is_sparse and len(rows) else None
        if found is None:
            found = np.empty((len(trees), len(rows)), dtype=np.int32)
            if not self._coded.is_mapped:
                find_leaves(trees, self._coded, rows, found)
                return found
            for start in range(0, len(rows), MAPPED_AT_ONCE):
                some = slice(start, start + MAPPED_AT_ONCE)
                own = np.empty((len(trees), len(rows[some])), dtype=np.int32)
                find_leaves(trees, self._coded, rows[some], own)
                found[:, some] = own
                self._coded.let_go()
        return found

    def _sparse_leaves(self, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray | None:
        """Leaves of rows of a sparse table, int32 (n_trees, n); None where a tree is too large."""
        coded = self._coded
        by_codes = [replace(tree, threshold=tree.code.astype(np.float64)) for tree in trees]
        parts = [part for part in pack_trees(by_codes, coded) if isinstance(part, PackedForest)]
        if sum(part.n_trees for part in parts) < len(trees):
            return None
        wanted, place_of = np.unique(rows, return_inverse=True)
        first, end = int(wanted[0]), int(wanted[-1]) + 1
        place = np.full(end - first, -1, dtype=np.int32)
        place[wanted - first] = np.arange(len(wanted), dtype=np.int32)
        table = coded.sparse_indptr, coded.sparse_rows, coded.sparse_codes
        leaves = np.empty((len(trees), len(wanted)), dtype=np.int32)
        tree = 0
        for part in parts:
            found = leaves[tree : tree + part.n_trees]
            SparseReader(part, table, place, coded.fill_code).find_leaves(first, end, found)
            tree += part.n_trees
        return leaves.take(place_of, axis=1)
