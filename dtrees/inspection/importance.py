"""Importances of columns, from the trees of a model alone.

The importance of column j is the weighted impurity decrease of all nodes that test it::

    importance[j] = sum of gain[t] over nodes t with feature[t] == j   /   weight of the root

where the gain of a node is weight x impurity minus that of its two children. It is cheap, as the
tree knows it already, and it is about the training rows: columns with many values get more than
their due.

A forest has the mean of its trees' shares. A boosted model has the sum of its trees' gains, which
are what splits take off the loss.

Rows that did not choose the splits do not flatter any column (Li, Wang, Basu, Kumbier, Yu 2019;
Loecher 2022). With the values v of nodes, which are those of the rows that did choose::

    importance[j] = mean of v[child] (y - mean of y at t) over rows that did not choose, at nodes t
                    with feature[t] == j

The mean of y at t is that of these rows, too. So a split counts as far as what it told of the
others holds for them, in units of a squared error (classes: of the Brier score). A column that
tells nothing of the target has zero on average, and is above or below by chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from dtrees.coding.labels import is_missing
from dtrees.coding.sparse_positions import check_sparse
from dtrees.coding.tables import row_values
from dtrees.coding.target import check_finite, check_weights, real_numbers
from dtrees.constraints import ARRAY, ROWS, Boolean, InstanceOf, checked
from dtrees.core.model.flat import Shape
from dtrees.core.model.tree import LEAF, SMALL, Tree, relative_gains
from dtrees.export.model_nodes import ModelNodes

OF_A_SPLIT = (
    "A model of a split that has grown with others wants all rows of the table, with a "
    "sample_weight of 0 for those that it was not fitted to and of 1 for the others."
)


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
    if trees[0].n_outputs > 1 or max(tree.gain.max() for tree in trees) >= SMALL:
        return normalized(np.sum([_by_column(tree, tree.gain) for tree in trees], axis=0))
    units = np.array([tree.unit for tree in trees])
    times = (units / units.max()) ** 2
    pairs = zip(trees, times, strict=True)
    return normalized(np.sum([_by_column(tree, relative_gains(tree) * t) for tree, t in pairs], 0))


def importances_of(view: ModelNodes) -> np.ndarray:
    """Share of every column in what a model has learned, float64 (n_columns,)."""
    trees = [tree.coded_tree for tree in view.trees]
    if view.start is not None:
        return summed_importances(trees)
    mean = mean_importances(trees)
    return np.zeros(view.n_columns) if mean is None else mean


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
    view = ModelNodes.of(model)
    tested = np.concatenate([tree.column[~tree.is_leaf] for tree in view.trees])
    return np.bincount(tested, minlength=view.n_columns)


@checked(X=ARRAY, y=ARRAY, sample_weight=ROWS, bootstrap_groups=ROWS, normalize=(Boolean(),))
def oob_importances(
    forest: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    bootstrap_groups: Any = None,
    normalize: bool = True,
) -> np.ndarray:
    """Decrease of the squared error of rows out of the bags, by column.

    Parameters
    ----------
    forest : forest or bagging of dtrees
        Fitted with ``bootstrap=True``. It need not have been fitted with `oob_score`.
    X : table of shape (n_rows, n_columns)
        The table of the fit, with its rows in their order; a Dask collection, too.
    y : array-like of shape (n_rows,)
        The target of the fit.
    sample_weight, bootstrap_groups : array-like of shape (n_rows,), default=None
        Those of the fit.
    normalize : bool, default=True
        As for `held_out_importances`.

    Returns
    -------
    importances : float64 (n_columns,)
        Mean over the trees, each by the rows out of its bag. Columns that tell nothing have about
        zero, and may be below it. The same bits on any number of threads.

    Raises
    ------
    ValueError
        The forest has no bags, or they are not those of these rows, weights and groups; or other
        rows than these have come to the leaves of a tree, as of rows in another order.
    sklearn.exceptions.NotFittedError
        The forest has not been fitted.

    Notes
    -----
    Takes a prediction of `X`, and 8 bytes per row and tree. For a model of `cross_validate`, give
    all rows of the table, with a `sample_weight` of 0 for those of its test side and of 1 for the
    others.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import RandomForestClassifier
    >>> from dtrees.inspection import oob_importances
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> int(oob_importances(forest, X, y).argmax())
    3
    """
    ModelNodes.of(forest, "forest").of_one_target("oob_importances")
    if not hasattr(forest, "_rows_by_bag"):
        raise ValueError(
            f"forest must be a forest with bags. Got {type(forest).__name__} instead. "
            "held_out_importances asks rows that a model was not fitted to."
        )
    check_sparse(X=X, y=y, sample_weight=sample_weight, bootstrap_groups=bootstrap_groups)
    y = np.asarray(row_values(y)).ravel()
    weight, bags = forest._rows_by_bag(y, row_values(sample_weight), bootstrap_groups)
    return _importances(forest, X, y, weight, bags, normalize)


@checked(X=ARRAY, y=ARRAY, sample_weight=ROWS, normalize=(Boolean(),))
def held_out_importances(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, normalize: bool = True
) -> np.ndarray:
    """Decrease of the squared error of rows that a model was not fitted to, by column.

    Parameters
    ----------
    model : tree or forest of dtrees
        Fitted.
    X : table of shape (n_rows, n_columns)
        Rows that the model was not fitted to, with its columns; a Dask collection, too.
    y : array-like of shape (n_rows,)
        Their targets.
    sample_weight : array-like of shape (n_rows,), default=None
        What each row counts, not negative; None: one.
    normalize : bool, default=True
        Divide by the sum of all columns, where it is positive. Otherwise the unit is that of the
        squared error (numbers) or of the Brier score (classes), per row.

    Returns
    -------
    importances : float64 (n_columns,)
        Mean over the trees. Columns that tell nothing have about zero, and may be below it.

    Raises
    ------
    ValueError
        There is not one value of `y` per row, or it has a class that the model does not know.
    TypeError
        The model is no tree and no forest; boosted models are none.
    sklearn.exceptions.NotFittedError
        The model has not been fitted.
    """
    view = ModelNodes.of(model)
    if view.start is None:  # others are refused whatever their targets
        view.of_one_target("held_out_importances")
    check_sparse(X=X, y=y, sample_weight=sample_weight)
    y = np.asarray(row_values(y)).ravel()
    if sample_weight is not None:
        sample_weight = check_weights(row_values(sample_weight), len(y))
    every = itertools.repeat((slice(None), None))
    return _importances(model, X, y, sample_weight, every, normalize)


def _importances(
    model: Any, X: Any, y: Any, weight: Any, bags: Iterable[Any], normalize: bool
) -> np.ndarray:
    """Mean over the trees of what rows say that did not choose their splits.

    `bags` are these rows of each tree, and what its bag makes of all rows, None: it is not known.
    """
    view = ModelNodes.of(model)
    trees = [tree.coded_tree for tree in view.trees]
    if view.start is not None:
        raise TypeError(
            f"model must be a tree or a forest. Got {type(model).__name__} instead, whose trees "
            "add up."
        )
    if not hasattr(model, "classes_"):
        y = real_numbers(y, "y")
        check_finite(y, "y")
    elif any(map(is_missing, y.tolist())):
        raise ValueError("y must have a label in every row: one is missing.")
    else:
        known = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
        if not (model.classes_[known] == y).all():
            raise ValueError("y must hold labels that the model was fitted to: it has others.")
        y = known
    leaves = np.asarray(model.apply(X))  # of a Dask collection, too
    leaves = leaves.reshape(len(leaves), len(trees))
    if len(leaves) != len(y):
        raise ValueError(f"X has {len(leaves)} rows, y has {len(y)} values.")
    found = []
    for tree, of_rows, (some, bag) in zip(trees, leaves.T, bags, strict=False):
        if bag is not None and not _has_grown_from(tree, of_rows, y, bag):
            raise ValueError(
                "The forest was not fitted to these rows: others have come to the leaves of its "
                "trees. Give X and y of the fit: the same values, in the order of the fit. "
                f"{OF_A_SPLIT}"
            )
        own = None if weight is None else weight[some]
        found.append(unseen_importances(tree, of_rows[some], y[some], own))
    mean = np.mean(found, axis=0)
    return normalized(mean) if normalize else mean


def unseen_importances(
    tree: Tree, leaves: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Decrease of the squared error of rows that did not choose the splits, by column.

    leaves : intp (n,), where the rows are. y : codes of classes, or float64. weight : float64 (n,)
    or None, each row counts once. Returns float64 (n_columns,), per row; all zero without a row
    that counts. O(nodes x classes + n).
    """
    inner = np.flatnonzero(tree.test != LEAF)
    n = np.ones(len(leaves)) if weight is None else np.asarray(weight, dtype=np.float64)
    value, sums = _values_and_sums(tree, leaves, y, n)
    last = Shape(tree.test != LEAF, np.array([tree.node_count])).last

    def of_branches(of_leaves: np.ndarray) -> np.ndarray:
        ends = np.cumsum(of_leaves, axis=0)
        return ends[last] - ends + of_leaves

    count, sums = of_branches(np.bincount(leaves, n, tree.node_count)), of_branches(sums)
    decrease = np.zeros(len(inner))
    mean = sums[inner] / np.maximum(count[inner], 1e-300)[:, None]  # 0 of no rows
    for child in (tree.children_left[inner], tree.children_right[inner]):
        away = sums[child] - count[child, None] * mean
        decrease += ((value[child] - value[inner]) * away).sum(axis=1)
    found = np.bincount(tree.feature[inner], decrease, tree.n_columns).astype(np.float64)
    return found / count[0] if count[0] > 0 else found


def _values_and_sums(
    tree: Tree, leaves: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values of all nodes, and sums of targets in leaves, both float64 (n_nodes, n_values).

    Numbers are told from the mean of the root, so that few digits cancel.
    """
    value = tree.value
    if tree.is_regression:
        start = value[0, 0]
        return value - start, np.bincount(leaves, weight * (y - start), tree.node_count)[:, None]
    places = leaves * tree.n_values + y
    sums = np.bincount(places, weight, tree.node_count * tree.n_values)
    return value, sums.reshape(value.shape)


def _has_grown_from(tree: Tree, leaves: np.ndarray, y: np.ndarray, bag: np.ndarray) -> bool:
    """Tell if rows of these weights in the bag are as many in each leaf, and have its value."""
    ends = tree.test == LEAF
    in_bag = np.bincount(leaves[bag > 0], minlength=tree.node_count)
    if not np.array_equal(in_bag[ends], tree.n_node_samples[ends]):
        return False
    value, sums = _values_and_sums(tree, leaves, y, bag)
    mean = sums[ends] / np.bincount(leaves, bag, tree.node_count)[ends, None]
    rounding = 1e-9
    if tree.is_regression:  # of targets in fixed point, whose sums have 62 bits, and of sums here
        largest = np.abs(y - tree.value[0, 0]).max()
        rounding = largest * (2.0**-46 + len(y) * 2.0**-51) + np.abs(y).max() * 2.0**-50
    return bool((np.abs(mean - value[ends]) <= rounding).all())


def normalized(importances: np.ndarray) -> np.ndarray:
    """Importances that sum to one, or are all zero."""
    total = importances.sum()
    return importances / total if total > 0.0 else importances
