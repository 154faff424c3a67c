"""SHAP values of many rows and trees: blocks of rows are tasks, and trees follow each other.

The kernel of one tree is `dtrees.core.predict._shap`. A block of rows is read once for all trees::

    table ──TestedColumns──▶ numbers, codes (columns, rows) ──ShapTree by ShapTree──▶ values

Values of a row are summed in the order of the trees, so their bits depend on no block or thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise

import numpy as np
from scipy.special import gammaln, roots_legendre

from dtrees.coding.codebook import CodeBook
from dtrees.coding.tables import Table
from dtrees.core.model.tree import Tree
from dtrees.core.predict._shap import ShapTree, add_parted, add_shap
from dtrees.core.predict.packed_forest import RawCells
from dtrees.core.predict.raw import TestedColumns
from dtrees.typing import Runner

BLOCK_ROWS = 256  # at most
COMPANY = 32  # rows that go down a tree together
BLOCKS = 8  # that few rows are divided into, for threads


@cache
def rule_of(n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights that integrate polynomials of degree n_columns - 1 over [0, 1]."""
    points, weights = roots_legendre(max(1, (n_columns + 1) // 2))
    return (points + 1) / 2, weights / 2


def parting_weights(n_columns: int) -> np.ndarray:
    """Weights of columns where two rows part: i!(j - 1)!/(i + j)!, float64 (n + 1, n + 1)."""
    i, j = np.mgrid[: n_columns + 1, : n_columns + 1]
    found = np.zeros(i.shape)
    found[:, 1:] = np.exp(gammaln(i + 1) + gammaln(np.maximum(j, 1)) - gammaln(i + j + 1))[:, 1:]
    return found


class _Rows:
    """The rows of a table in the columns that trees test."""

    def __init__(self, trees: Sequence[Tree], book: CodeBook, table: Table) -> None:
        self._columns = TestedColumns(trees, RawCells(book, table))
        self.slot = self._columns.slot
        self._has_categories = bool((self.slot[list(book.categories)] >= 0).any())

    def block(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Numbers, and codes where columns have categories, both (n_slots, end - first)."""
        numbers = self._columns.numbers(first, end)
        codes = None
        if self._has_categories:
            codes = np.ascontiguousarray(self._columns.codes(first, end, numbers).T)
        return np.ascontiguousarray(numbers.T), codes


def contributions(
    trees: Sequence[Tree],
    values: Sequence[np.ndarray],
    book: CodeBook,
    table: Table,
    run: Runner,
    *,
    n_outputs: int,
    background: Table | None = None,
    interactions: bool = False,
    add_first: bool = False,
) -> tuple[np.ndarray, np.ndarray | None]:
    """What each column adds to the sum of the values of a row's leaves.

    Parameters
    ----------
    trees : sequence of Tree
    values : sequence of float64 (n_nodes, n)
        Of each tree. Those of ``n == n_outputs`` add to all outputs; with ``n == 1`` tree t adds to
        output ``t % n_outputs``.
    book : CodeBook
    table : Table
        What ``book.check`` returned.
    run : Runner
    n_outputs : int
    background : Table or None, default=None
        Rows that stand for columns that are not known (interventional values). None: columns that
        are not known take both sides of a test, as the training weight did (path-dependent).
    interactions : bool, default=False
        Of path-dependent values.
    add_first : bool, default=False
        An output that is not among `values`, such that all sum to 0, comes before the others.

    Returns
    -------
    phi : float64 (n_rows, n_columns, n_outputs + add_first)
    pairs : float64 (n_rows, n_columns, n_columns, n_outputs + add_first) or None
        Interactions; the diagonal has what is left of `phi`.

    Notes
    -----
    O(n_rows x nodes x columns of a path) path-dependent, O(n_rows x background rows x nodes that
    two rows pass) interventional, and O(columns of a path) times as much with interactions.
    """
    shap_trees = [
        ShapTree(tree, book.n_columns, np.ascontiguousarray(value), book.n_codes)
        for tree, value in zip(trees, values, strict=True)
    ]
    rows = _Rows(trees, book, table)
    others: tuple = ()
    if background is not None:
        others = _Rows(trees, book, background).block(0, background.n_rows)
    phi = np.zeros((table.n_rows, book.n_columns, add_first + n_outputs))
    pairs = None
    if interactions:
        pairs = np.zeros((table.n_rows, book.n_columns, book.n_columns, add_first + n_outputs))

    def block(first: int, end: int) -> None:
        numbers, codes = rows.block(first, end)
        for number, tree in enumerate(shap_trees):
            if tree.n_places == 0:
                continue
            n = tree.n_values
            begin = add_first + (0 if n == n_outputs else number % n_outputs)
            own = slice(begin, begin + n)
            if background is not None:
                part = np.zeros((end - first, tree.n_places, n))
                gain = parting_weights(tree.most_columns)
                add_parted(tree, numbers, codes, *others, rows.slot, gain, part)
                phi[first:end, tree.columns, own] += part / background.n_rows
                continue
            found = np.zeros((tree.n_places, n, end - first))
            both = np.zeros((tree.n_places, *found.shape)) if interactions else None
            add_shap(tree, numbers, codes, rows.slot, *rule_of(tree.most_columns), found, both)
            phi[first:end, tree.columns, own] += found.transpose(2, 0, 1)
            if pairs is not None and both is not None:
                half = 0.5 * both.transpose(3, 0, 1, 2)
                outputs = range(begin, begin + n)
                some = np.ix_(range(first, end), tree.columns, tree.columns, outputs)
                pairs[some] += half + half.swapaxes(1, 2)
        for array in (phi, pairs) if add_first else ():
            if array is not None:
                array[first:end, ..., 0] = 0.0 - array[first:end, ..., 1:].sum(axis=-1)

    companies = max(1, -(-table.n_rows // (BLOCKS * COMPANY)))
    bounds = [*range(0, table.n_rows, min(BLOCK_ROWS, COMPANY * companies)), table.n_rows]
    run([partial(block, first, end) for first, end in pairwise(bounds)])
    if pairs is not None:
        columns = np.arange(book.n_columns)
        pairs[:, columns, columns] = phi - pairs.sum(axis=2)
    return phi, pairs
