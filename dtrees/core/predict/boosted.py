"""Raw predictions of a boosted model: sums of steps, class by class.

The trees stand iteration by iteration, and within an iteration class by class::

    trees    0   1   2 | 3   4   5 | ...        three classes
    adds to  0   1   2   0   1   2

Each class is a forest of its own, whose steps are added to what all rows begin with, in the order
of the trees: the bits are those of the fit, and do not depend on blocks or threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from dtrees.coding.tables import Table
from dtrees.core.model.tree import Forest
from dtrees.core.predict.raw import leaves_by_tree, sums_of_values
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.coding import CodeBook

_of_class: WeakKeyDictionary[Forest, tuple[Forest, ...]] = WeakKeyDictionary()


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
        O(rows x trees x depth), and the rows are coded once for each value.
    """
    table = X if isinstance(X, Table) else book.check(X, run=run)
    raw = np.empty((table.n_rows, len(initial)))
    for k, own in enumerate(forests_by_class(forest, len(initial))):
        total = np.full((table.n_rows, 1), initial[k])
        if own.trees:  # before the first iteration there are none
            sums_of_values(own, book, table, run, total)
        raw[:, k] = total[:, 0]
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


def forests_by_class(forest: Forest, n_values: int) -> tuple[Forest, ...]:
    """The trees of each class, remembered as long as the forest lives."""
    if n_values == 1:
        return (forest,)
    known = _of_class.get(forest)
    if known is None:
        known = tuple(Forest(forest.trees[k::n_values]) for k in range(n_values))
        _of_class[forest] = known
    return known
