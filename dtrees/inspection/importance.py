"""Which columns a model lives on, from its trees alone.

The importance of column j is the weighted impurity decrease of all nodes that test it::

    importance[j] = sum of gain[t] over nodes t with feature[t] == j   /   weight of the root

where the gain of a node is weight x impurity minus that of its two children. It is cheap, as the
tree knows it already, and it is about the training rows: columns with many values get more than
their due. ``sklearn.inspection.permutation_importance`` on held-out rows does not have that bias.

A forest has the mean of its trees' shares. A boosted model has the sum of its trees' gains, which
are what splits take off the loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dtrees.constraints import Boolean, InstanceOf, checked
from dtrees.core.model.gains import SMALL, relative_gains
from dtrees.core.model.tree import LEAF, Tree
from dtrees.inspection.alignment import trees_of
from dtrees.inspection.tree_formatter import parts_of


@checked(
    tree=(InstanceOf(Tree, "dtrees.core.model.tree.Tree, such as tree_.model"),),
    normalize=(Boolean(),),
)
def impurity_importances(tree: Tree, *, normalize: bool = True) -> np.ndarray:
    """Compute the total impurity decrease by column.

    Parameters
    ----------
    tree : Tree
    normalize : bool, default=True
        Divide by the total, so that the importances sum to one, whatever the unit of the target.

    Returns
    -------
    importances : float64 (n_columns,)
        Not negative. All zero when the tree is a single leaf, or its splits gain nothing.
        O(nodes + columns).

    Raises
    ------
    TypeError
        `tree` is no tree on codes. Of a model, take its ``feature_importances_``.
    """
    importances = _by_column(tree, relative_gains(tree) if normalize else tree.gain)
    return normalized(importances) if normalize else importances


def _by_column(tree: Tree, gains: np.ndarray) -> np.ndarray:
    """Sums of the gains of nodes that test a column, divided by the weight of the root."""
    inner = tree.test != LEAF
    sums = np.bincount(tree.feature[inner], weights=gains[inner], minlength=tree.n_columns)
    found: np.ndarray = sums / tree.weighted_n_node_samples[0]
    return found


def mean_importances(trees: Iterable[Tree]) -> np.ndarray | None:
    """Mean of the importances of trees that split, float64 (n_columns,); None where none does."""
    shares = [impurity_importances(tree) for tree in trees if tree.node_count > 1]
    return normalized(np.mean(shares, axis=0)) if shares else None


def summed_importances(trees: Iterable[Tree]) -> np.ndarray:
    """Shares of the columns in what the splits of all trees gain, float64 (n_columns,).

    Of trees that add up: a tree that gains little counts for little.
    """
    trees = list(trees)
    if max(tree.gain.max() for tree in trees) >= SMALL:
        return normalized(np.sum([_by_column(tree, tree.gain) for tree in trees], axis=0))
    units = np.array([tree.unit for tree in trees])
    times = (units / units.max()) ** 2
    pairs = zip(trees, times, strict=True)
    return normalized(np.sum([_by_column(tree, relative_gains(tree) * t) for tree, t in pairs], 0))


def split_counts(model: Any) -> np.ndarray:
    """Count the nodes that test each column.

    Parameters
    ----------
    model : tree, forest or boosted model of dtrees, TreeView or Tree
        Fitted.

    Returns
    -------
    int64 (n_columns,)
        Sum over all trees. O(nodes).

    Raises
    ------
    TypeError
        `model` is no tree, forest or boosted model of dtrees.
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import GradientBoostingClassifier
    >>> from dtrees.inspection import split_counts
    >>> model = GradientBoostingClassifier(max_iter=5).fit(*load_iris(return_X_y=True))
    >>> int(split_counts(model).sum()) == sum(tree.n_leaves - 1 for tree in model.forest_.trees)
    True
    """
    trees = [parts_of(tree)[0] for tree in trees_of(model)]
    tested = np.concatenate([tree.feature[tree.test != LEAF] for tree in trees])
    return np.bincount(tested, minlength=trees[0].n_columns)


def normalized(importances: np.ndarray) -> np.ndarray:
    """Importances that sum to one, or are all zero."""
    total = importances.sum()
    return importances / total if total > 0.0 else importances
