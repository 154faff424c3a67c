"""The nodes of a model as a data frame, in the columns of LightGBM's function of this name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees._extras import extra
from dtrees.export.model_nodes import TESTS, ModelNodes

if TYPE_CHECKING:
    import pandas as pd

SIDES = np.array(["right", "left"], dtype=object)
SIGNS = np.array(list(TESTS.values()), dtype=object)


def trees_to_dataframe(model: Any) -> pd.DataFrame:
    """Return the nodes of a fitted model as a data frame.

    Parameters
    ----------
    model : tree, forest or boosted model of dtrees, TreeView or Tree
        Fitted. A tree on codes has codes for categories.

    Returns
    -------
    pandas.DataFrame
        A row per node, tree by tree and in preorder. The columns are those of LightGBM's
        ``Booster.trees_to_dataframe``, and two more. What is said of tests is missing in
        leaves (None or nan, by the type of the column).

        - ``tree_index``, int64: tree t of a boosted model of K outputs adds to output ``t % K``
        - ``node_depth``, int64: 1 of a root
        - ``node_index``, ``left_child``, ``right_child``, ``parent_index``, str: tree, "S" for a
          split or "L" for a leaf, and the node's number as in ``apply``: "0-S0". A root has no
          parent.
        - ``split_feature``, str, and ``split_gain``, float64
        - ``threshold``, float64, dates or time spans, object where there are several of these:
          missing for sets; inf: all numbers pass
        - ``decision_type``, "<=", ">" or "in": rows that pass go left. LightGBM's "==" is "in".
        - ``categories``, tuple: labels that pass the test of a set; not in LightGBM's frame
        - ``missing_direction``, ``unseen_direction``, "left" or "right": side of missing values,
          and of categories that were not there at fit (missing in columns of numbers; not in
          LightGBM's frame)
        - ``missing_type``, "NaN"
        - ``value``, float64: mean, or step of a boosted model with its learning rate. Trees and
          forests of classes have the share of each class instead: ``value_<label>``. Of several
          targets, ``value_<target>``, or ``value_<target>: <label>``.
        - ``weight``, float64: of the training rows. (LightGBM's is a sum of second derivatives.)
        - ``count``, int64: training rows of positive weight

    Raises
    ------
    ImportError
        pandas is not installed.
    TypeError, sklearn.exceptions.NotFittedError
        It is no model of dtrees, or not fitted.

    Notes
    -----
    About a microsecond for each node, and O(categories) for each test of a set.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import GradientBoostingClassifier
    >>> from dtrees.export import trees_to_dataframe
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GradientBoostingClassifier(max_iter=2, max_leaf_nodes=3).fit(X, y)
    >>> frame = trees_to_dataframe(model)
    >>> frame.loc[0, ["node_index", "left_child", "split_feature"]].tolist()
    ['0-S0', '0-L1', 'petal length (cm)']
    """
    pandas = extra("pandas", of="pandas", for_="trees_to_dataframe")
    view = ModelNodes.of(model)
    parts = [_columns_of(view, number) for number in range(len(view.trees))]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    frame: pd.DataFrame = pandas.DataFrame(columns)
    return frame


def _columns_of(view: ModelNodes, number: int) -> dict[str, np.ndarray]:
    """The columns of one tree, each with a value per node."""
    tree = view.trees[number]
    inner, n = np.flatnonzero(~tree.is_leaf), tree.n_nodes

    def none_in_leaves(of_inner: Any) -> np.ndarray:
        of_nodes = np.full(n, None, dtype=object)
        of_nodes[inner] = of_inner
        return of_nodes

    is_leaf = tree.is_leaf.tolist()
    ids = np.array([f"{number}-{'SL'[leaf]}{i}" for i, leaf in enumerate(is_leaf)], dtype=object)
    threshold = tree.threshold
    if "time" in view.kinds:
        threshold = threshold.astype(object)
        for node in inner.tolist():
            threshold[node] = view.in_units(node, tree)
    sets = np.full(n, None, dtype=object)
    for node in np.flatnonzero(tree.is_set).tolist():
        sets[node] = view.labels_left(node, tree)
    names = (
        [""]
        if tree.is_regression and tree.n_values == 1
        else [f"_{label}" for label in view.value_labels]
    )
    column, unseen = tree.column[inner], SIDES[tree.unseen_left[inner].astype(int)]
    return {
        "tree_index": np.full(n, number, dtype=np.int64),
        "node_depth": tree.depth + 1,
        "node_index": ids,
        "left_child": none_in_leaves(ids[tree.left[inner]]),
        "right_child": none_in_leaves(ids[tree.right[inner]]),
        "parent_index": np.where(tree.parent < 0, None, ids[tree.parent]),
        "split_feature": none_in_leaves(np.array(view.column_names, dtype=object)[column]),
        "split_gain": np.where(tree.is_leaf, np.nan, tree.gain),
        "threshold": threshold,
        "decision_type": SIGNS[tree.test],
        "categories": sets,
        "missing_direction": none_in_leaves(SIDES[tree.missing_left[inner].astype(int)]),
        "unseen_direction": none_in_leaves(np.where(view.has_categories[column], unseen, None)),
        "missing_type": none_in_leaves("NaN"),
        **{f"value{name}": value for name, value in zip(names, tree.value.T, strict=True)},
        "weight": tree.weight,
        "count": tree.n_samples.astype(np.int64),
    }
