"""Raw predictions of a boosted model: sums of steps, class by class.

The trees stand iteration by iteration, and within an iteration class by class::

    trees    0   1   2 | 3   4   5 | ...        three classes
    adds to  0   1   2   0   1   2

The steps of a class are added to what all rows begin with, in the order of the trees: the bits are
those of the fit, and do not depend on blocks or threads. Rows are coded once for all trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.coding.tables import Table
from dtrees.core.model.tree import Forest
from dtrees.core.predict.raw import leaves_by_tree, sums_of_values
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.coding import CodeBook


def raw_predictions(
    forest: Forest, initial: np.ndarray, book: CodeBook, X: Any, run: Runner = serial
) -> np.ndarray:
    """Raw predictions of all rows.

    Parameters
    ----------
    forest : Forest
    initial : float64 (n_values,)
        Of all rows, before the first tree.
    book : CodeBook
        Of the same fit.
    X : table of shape (n_rows, n_columns)
        As at fit; or what ``book.check`` made of it.
    run : Runner, default=serial

    Returns
    -------
    float64 (n_rows, n_values)
        The values of a class stand side by side. O(rows x trees x depth).
    """
    table = X if isinstance(X, Table) else book.check(X, run=run)
    n_rows = table.n_rows
    raw = initial[:, None].repeat(n_rows, axis=1).T if n_rows > 1 else initial[None].copy()
    if forest.trees:  # before the first iteration there are none
        sums_of_values(forest, book, table, run, raw)
    return raw


def staged_raw_predictions(
    forest: Forest, initial: np.ndarray, book: CodeBook, table: Table, run: Runner = serial
) -> Iterator[np.ndarray]:
    """Raw predictions after each iteration, float64 (n_rows, n_values), copied."""
    raw = np.repeat(initial[None, :], table.n_rows, axis=0)
    for number, leaves in enumerate(leaves_by_tree(forest.trees, book, table, run)):
        k = number % len(initial)
        raw[:, k] += forest[number].value_of(leaves)[:, 0]
        if k == len(initial) - 1:
            yield raw.copy()
