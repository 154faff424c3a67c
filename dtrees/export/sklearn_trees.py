"""A model as an estimator of scikit-learn, for tools that read its ``tree_``.

scikit-learn's trees are imported when a model is written, so that other imports stay light.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtrees.constraints import IntegerIn, Nothing, checked
from dtrees.export.model_nodes import ModelNodes, TreeNodes

NO_THRESHOLD = -2.0  # of leaves
# that both know
CRITERIA = ("gini", "entropy", "log_loss", "squared_error", "absolute_error", "poisson")


@checked(tree=(IntegerIn(0), Nothing()))
def to_sklearn(model: Any, *, tree: int | None = None) -> Any:
    """Return a fitted estimator of scikit-learn that predicts as a model of dtrees.

    It is for tools that read ``tree_`` or know estimators by their class: shap, dtreeviz,
    supertree, and others.

    Parameters
    ----------
    model : tree or forest of dtrees, or TreeView
        Fitted to columns of numbers and bools. Of a boosted model, give one `tree`.
    tree : int, default=None
        Number of one tree, which is returned alone. None: the model.

    Returns
    -------
    sklearn.tree.DecisionTreeClassifier, DecisionTreeRegressor, \
sklearn.ensemble.RandomForestClassifier or RandomForestRegressor
        Forests of all kinds become random forests. A tree of a boosted model becomes a regressor
        of the steps that it adds to an output. Parameters are scikit-learn's defaults,
        and the criterion where it has the model's.

    Raises
    ------
    TypeError
        It is no model of dtrees, or a boosted one of which no `tree` is chosen.
    ValueError
        A column that is tested holds categories, dates or time spans, or numbers that float32 does
        not tell apart; or there is no tree of this number.
    sklearn.exceptions.NotFittedError
        The model has not been fitted.

    Notes
    -----
    scikit-learn rounds tables to float32, in `predict` as in `fit`. Rows of float32 come to the
    same leaves in both if the model was fitted on float32, too. Fitted on float64:

    - A row may go another way where float32 rounds its number and a threshold to the same, and
      nowhere else. Numbers that bins end at stay on their side: their thresholds are moved.
    - A column is refused where thresholds prove that float32 is too coarse: no float32 is left for
      a leaf, or a threshold is due to whole numbers beyond 2**24 that float32 does not hold.
    - What thresholds do not prove, rows show: compare `apply` of both models.

    scikit-learn refuses numbers beyond float32. Missing values take the sides of the model.

    O(nodes x classes).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.export import to_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> to_sklearn(tree)
    DecisionTreeClassifier()
    >>> to_sklearn(tree).tree_.threshold.round(2).tolist()
    [2.45, -2.0, 1.75, -2.0, -2.0]
    """
    view = ModelNodes.of(model).of_one_target("to_sklearn")
    why = "scikit-learn's trees know numbers only. to_onnx writes all columns."
    view.refuse("to_sklearn", np.flatnonzero(view.kinds != "number"), why)
    numbers = np.arange(view.trees[0].n_values)
    if tree is not None or not hasattr(model, "forest_"):
        labels = numbers if view.classes is None else view.classes
        return _decision_tree(view, view.tree(tree or 0), labels)
    if view.start is not None:
        raise TypeError(
            f"The trees of {type(model).__name__} add up, with a start and a link that "
            "scikit-learn's forests have not. to_lightgbm and to_onnx write such models. One tree "
            "is to_sklearn(model, tree=0)."
        )
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if view.classes is None else RandomForestClassifier
    forest = _described(kind(n_estimators=len(view.trees)), view, view.classes)
    # scikit-learn's forests have their trees know numbers of classes
    forest.estimators_ = [_decision_tree(view, each, numbers) for each in view.trees]
    forest.estimator_ = forest.estimator
    return forest


def _decision_tree(view: ModelNodes, tree: TreeNodes, labels: np.ndarray) -> Any:
    """The estimator of one tree."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
    from sklearn.tree._tree import Tree

    is_regression = tree.is_regression
    estimator = DecisionTreeRegressor() if is_regression else DecisionTreeClassifier()
    if tree.criterion in CRITERIA:
        estimator.set_params(criterion=tree.criterion)
    estimator = _described(estimator, view, None if is_regression else labels)
    n_classes = np.array([tree.n_values], dtype=np.intp)
    estimator.tree_ = Tree(view.n_columns, n_classes, 1)
    estimator.tree_.__setstate__(_state_of(view, tree))
    estimator.max_features_ = view.n_columns
    return estimator


def _described(estimator: Any, view: ModelNodes, labels: np.ndarray | None) -> Any:
    """The estimator with the attributes of a fitted one; `labels` None: of numbers."""
    estimator.n_features_in_, estimator.n_outputs_ = view.n_columns, 1
    if view.book is not None and view.book.feature_names is not None:
        estimator.feature_names_in_ = np.array(view.column_names, dtype=object)
    if labels is not None:
        estimator.classes_, estimator.n_classes_ = labels, len(labels)
    return estimator


def _state_of(view: ModelNodes, tree: TreeNodes) -> dict[str, Any]:
    """What scikit-learn's Tree holds."""
    from sklearn.tree._tree import NODE_DTYPE

    nodes = np.zeros(tree.n_nodes, dtype=NODE_DTYPE)
    nodes["left_child"], nodes["right_child"] = tree.left, tree.right
    nodes["feature"] = tree.column
    nodes["threshold"] = np.where(tree.is_leaf, NO_THRESHOLD, _cuts(view, tree))
    nodes["missing_go_to_left"] = tree.missing_left
    nodes["impurity"] = tree.impurity
    nodes["n_node_samples"] = tree.n_samples
    nodes["weighted_n_node_samples"] = tree.weight
    return {
        "max_depth": int(tree.depth.max()),
        "node_count": tree.n_nodes,
        "nodes": nodes,
        "values": np.ascontiguousarray(tree.value[:, np.newaxis, :]),
    }


def _cuts(view: ModelNodes, tree: TreeNodes) -> np.ndarray:
    """Thresholds for numbers that were rounded to float32."""
    cuts, book = tree.threshold.copy(), view.book
    if book is None or book.low.dtype == np.float32:
        return cuts
    inner = np.flatnonzero(~tree.is_leaf)
    column, threshold = tree.column[inner], cuts[inner]
    is_middle = book.exact[column]  # of two numbers of the table; bins end at one, which passes
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
    cuts[inner] = np.where(is_middle, threshold, np.maximum(threshold, nearest))
    below = np.where(nearest > cuts[inner], np.nextafter(nearest, np.float32(-np.inf)), nearest)
    middle = below.astype(np.float64) / 2 + np.nextafter(below, np.float32(np.inf)) / np.float64(2)
    of_float32 = (threshold == nearest) | is_middle & (threshold == middle)
    size, twice = np.abs(threshold), 2 * threshold
    is_whole = (size > 2**24) & (size < 2**53) & (np.rint(twice) == twice)
    why = (
        "scikit-learn's trees read float32, which does not tell its numbers apart. Fit on float32, "
        "or use to_onnx or to_lightgbm, which write float64."
    )
    wrong = (is_whole & ~of_float32) | _repeats(tree, inner, below)
    view.refuse("to_sklearn", column[wrong], why)
    return cuts


def _repeats(tree: TreeNodes, inner: np.ndarray, cut: np.ndarray) -> np.ndarray:
    """Whether a node tests what a node above it tests, with another threshold but the same cut."""
    column, threshold = tree.column[inner], tree.threshold[inner]
    found = np.zeros(len(inner), dtype=bool)
    order = np.lexsort((threshold, cut, column))
    is_same = [values[order][1:] == values[order][:-1] for values in (column, cut, threshold)]
    first = np.flatnonzero(is_same[0] & is_same[1] & ~is_same[2])
    near = np.unique(order[np.append(first, first + 1)])  # few, in most models
    cuts = np.full(tree.n_nodes, np.nan, dtype=cut.dtype)
    cuts[inner] = cut
    above = tree.parent[inner[near]]
    while len(near):
        near, above = near[above >= 0], above[above >= 0]
        found[near] |= (tree.column[above] == column[near]) & (cuts[above] == cut[near])
        above = tree.parent[above]
    return found
