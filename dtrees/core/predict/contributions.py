"""SHAP values of many rows and trees: blocks of rows are tasks, and trees follow each other.

The kernel of one tree is `dtrees.core.predict._shap`. A block of rows is read once for all trees::

    trees ──prepare_trees──▶ ShapTree, ...
    table ──TestedColumns──▶ numbers, codes (columns, rows) ──ShapTree by ShapTree──▶ values

Values of a row are summed in the order of the trees, so their bits depend on no block or thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise

import numpy as np
from scipy.special import beta, roots_legendre

from dtrees.coding.codebook import CodeBook
from dtrees.coding.tables import Table
from dtrees.core.model.tree import Tree
from dtrees.core.predict._packed_forest import GrownTrees
from dtrees.core.predict._shap import (
    BATCH_ROWS,
    ShapTree,
    add_interventional,
    add_path_dependent,
)
from dtrees.core.predict.packed_forest import RawCells, slots_of
from dtrees.core.predict.raw import TestedColumns
from dtrees.typing import Runner

BLOCK_ROWS = 256  # at most
BLOCKS = 8  # that few rows are divided into, for threads


@cache
def rule_of(n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights that integrate polynomials of degree n_columns - 1 over [0, 1]."""
    points, weights = roots_legendre(max(1, (n_columns + 1) // 2))
    return (points + 1) / 2, weights / 2


@cache
def interventional_weights(n_columns: int) -> np.ndarray:
    """Weights of columns where two rows part: i!j!/(i + j + 1)!, float64 (n_columns, n_columns)."""
    i, j = np.ogrid[1 : n_columns + 1, 1 : n_columns + 1]
    weights: np.ndarray = beta(i, j)
    return weights


class _Rows:
    """The rows of a table in the columns that trees test."""

    def __init__(self, slot: np.ndarray, book: CodeBook, table: Table) -> None:
        self._columns = TestedColumns(np.flatnonzero(slot >= 0), RawCells(book, table))
        self._has_categories = bool((slot[list(book.categories)] >= 0).any())

    def block(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Numbers, and codes where columns have categories, both (n_slots, end - first)."""
        numbers = self._columns.numbers(first, end)
        codes = None
        if self._has_categories:
            codes = np.ascontiguousarray(self._columns.codes(first, end, numbers).T)
        return np.ascontiguousarray(numbers.T), codes


def prepare_trees(
    trees: Sequence[Tree], values: Sequence[np.ndarray], book: CodeBook, run: Runner
) -> tuple[ShapTree, ...]:
    """Trees made ready for `contributions`, with values of nodes, float64 (n_nodes, n) each.

    O(nodes x depth); trees are the tasks of the runner.
    """
    grown = GrownTrees(tuple(trees), book.n_columns)
    slot = slots_of(np.flatnonzero(grown.n_compared + grown.n_subsets), book.n_columns)
    pairs = zip(trees, map(np.ascontiguousarray, values), strict=True)
    return tuple(run([partial(ShapTree, tree, slot, value, book.n_codes) for tree, value in pairs]))


def outputs_of(tree: ShapTree, number: int, n_outputs: int) -> slice:
    """The outputs that a tree adds to; `number` is its place among the trees."""
    n, at = tree.values.shape[1], number % n_outputs
    return slice(n) if n == n_outputs else slice(at, at + n)


def contributions(
    trees: Sequence[ShapTree],
    book: CodeBook,
    table: Table,
    run: Runner,
    *,
    n_outputs: int,
    background: Table | None = None,
    interactions: bool = False,
    add_first: bool = False,
    phi: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """What each column adds to the sum of the values of a row's leaves.

    Parameters
    ----------
    trees : sequence of ShapTree
        Those with `n_outputs` values add to all outputs; of one value, tree t adds to output
        ``t % n_outputs``.
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
        An output that the trees do not have, such that all sum to 0, comes before the others.
    phi : float64 (n_columns, n_outputs + add_first, n_rows), IN and OUT, default=None
        Zeros, where the values shall stand, rows side by side. None: a new array.

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
    slot = trees[0].slot
    rows = _Rows(slot, book, table)
    others: tuple = ()
    if background is not None:
        others = _Rows(slot, book, background).block(0, background.n_rows)
    n_columns, all_outputs = book.n_columns, add_first + n_outputs
    if phi is None:
        phi = np.zeros((n_columns, all_outputs, table.n_rows))
    pairs = _new_pairs((n_columns**2, all_outputs, table.n_rows)) if interactions else None
    tested = np.flatnonzero(slot >= 0)

    def block(first: int, end: int) -> None:
        numbers, codes = rows.block(first, end)
        for number, tree in enumerate(trees):
            own, rule = outputs_of(tree, number, n_outputs), rule_of(tree.most_columns)
            here = phi[:, add_first:][:, own, first:end]
            if background is not None:
                weights = interventional_weights(tree.most_columns)
                add_interventional(tree, numbers, codes, *others, weights, here)
            elif pairs is not None:
                both = pairs[:, add_first:][:, own, first:end]
                add_path_dependent(tree, numbers, codes, *rule, here, both)
            else:
                add_path_dependent(tree, numbers, codes, *rule, here)
        if background is not None:
            phi[tested, :, first:end] /= background.n_rows
        if add_first:
            phi[tested, 0, first:end] = 0.0 - phi[tested, 1:, first:end].sum(axis=1)
            if pairs is not None:
                pairs[:, 0, first:end] = 0.0 - pairs[:, 1:, first:end].sum(axis=1)

    batches = max(1, -(-table.n_rows // (BLOCKS * BATCH_ROWS)))
    bounds = [*range(0, table.n_rows, min(BLOCK_ROWS, BATCH_ROWS * batches)), table.n_rows]
    run([partial(block, first, end) for first, end in pairwise(bounds)])
    if pairs is None:
        return phi.transpose(2, 0, 1), None
    pairs = pairs.reshape(n_columns, *phi.shape)
    columns = np.arange(n_columns)
    pairs[columns, columns] = phi - pairs.sum(axis=1)
    return phi.transpose(2, 0, 1), pairs.transpose(3, 0, 1, 2)


def _new_pairs(shape: tuple[int, ...]) -> np.ndarray:
    """Interactions before there are any; ValueError where they would not fit."""
    try:
        return np.zeros(shape)
    except MemoryError as error:
        raise ValueError(
            f"Interactions of {shape[-1]} rows and {math.isqrt(shape[0])} columns take "
            f"{8 * math.prod(shape) / 2**30:,.0f} GiB, more than there is: give fewer rows, or fit "
            "a model of fewer columns."
        ) from error
