"""Fitted models as LightGBM's text, which LightGBM, shap, treelite and others read.

The text has a head, and a part for each tree: an array for each property of its inner nodes, and
of its leaves. What ours say otherwise is said in LightGBM's way::

    start of a boosted model        added to the leaves of the first tree of each output
    mean over the trees             values of leaves are divided by the number of trees
                                    (`average_output` would leave contributions as sums)
    shares of three classes         a tree for each class, with the same tests
    missing values of categories    always go right: where ours go left, the sides change places
    categories                      positions in the list that the text ends with, or whole numbers
    weights                         counts, from which LightGBM computes contributions
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.constraints import InstanceOf, Nothing, checked
from dtrees.export.model_nodes import ModelNodes, TreeNodes

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

OBJECTIVES = {
    "identity": "regression",
    "log": "poisson",
    "logit": "binary sigmoid:1",
    "softmax": "multiclass num_class:{}",
}
IS_CATEGORY, MISSING_LEFT, MISSING_IS_NAN = 1, 2, 8  # bits of a type of decision
MOST_CATEGORIES = 2**16  # numbers that name categories are below: each set has a bit for all
MOST_ROWS = 2**31 - 1
MOST_WEIGHT = 2**30  # of a root whose weight is no number of rows
WHOLE, EXACT, SHORT = "%d ", "%.17g ", "%g "  # forms of numbers
LEAST = 1e-35  # what is nearer to zero is zero to LightGBM


@checked(path=(InstanceOf(str | os.PathLike, "str or path"), Nothing()))
def to_lightgbm(model: Any, path: str | os.PathLike | None = None) -> str:
    """Write a fitted model as LightGBM's text.

    ``lightgbm.Booster(model_str=text)`` then predicts what the model predicts, up to rounding:

    - regression: what `predict` gives;
    - two classes: the second column of `predict_proba`;
    - three classes or more: `predict_proba`, in the order of `classes_`.

    Parameters
    ----------
    model : tree, forest or boosted model of dtrees, or TreeView
        Fitted on columns of numbers, booleans and categories. Columns that no tree tests may hold
        anything.
    path : str or path or None, default=None
        Where the text is written to as well.

    Returns
    -------
    str
        About 40 bytes per node, and of three classes or more, 30 per node and class; of a set of
        categories, 2 to 11 bytes for each 32 numbers up to the largest one in it. Takes about a
        microsecond per node.

    Raises
    ------
    TypeError
        The model is none of these.
    ValueError
        A column, which the message names, cannot be said: it holds dates or time spans, or numbers
        beside categories; its categories are neither strings, numbers nor booleans; categories
        that were not there at fit do not go where missing values go
        (``handle_unknown="majority"``); or numbers are tested that are nearer to 0 than 1e-35.
    sklearn.exceptions.NotFittedError, OSError
        The model has not been fitted; the file cannot be written.

    Notes
    -----
    Give LightGBM a pandas data frame whose columns of categories are of the type "category":
    ``X.astype({"city": "category"})``. If the model was fitted without names of columns, give
    arrays: categories are then whole numbers from 0 to 65,535. A column that was empty at fit has
    no categories: give floats there.

    Categories that were not there at fit are missing values for LightGBM, also where
    ``handle_unknown="error"`` refuses them here. It takes numbers nearer to 0 than 1e-35 for 0, and
    cuts off what follows the point in categories that are numbers.

    The text predicts without `init_score`: add it to ``predict(..., raw_score=True)``.
    ``predict(..., pred_contrib=True)`` gives SHAP values by the weights of the training rows.
    Weights that are not whole are rounded to a billionth of their sum.

    See Also
    --------
    save : A file that dtrees reads, with everything that the model knows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.export import to_lightgbm
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y == 2)
    >>> text = to_lightgbm(tree)
    >>> [line for line in text.splitlines() if line.startswith("threshold")]
    ['threshold=1.75 4.9500000000000002 4.8499999999999996']
    """
    view, book = ModelNodes.with_book(model)
    view = view.of_one_target("to_lightgbm")
    numbers = _numbers_of_categories(view, book)
    n_outputs = 1 if view.start is None and view.n_outputs == 2 else view.n_outputs
    parts = [f"Tree={i}\n{part}\n\n\n" for i, part in enumerate(_trees(view, n_outputs, numbers))]
    is_mean = view.start is None and n_outputs > 1  # leaves have shares, and no objective
    objective = "" if is_mean else OBJECTIVES[view.link].format(n_outputs)
    infos = {j: ":".join(map(str, found.tolist())) for j, found in numbers.items()}
    head = [
        "version=v4",
        f"num_class={n_outputs}",
        f"num_tree_per_iteration={n_outputs}",
        "label_index=0",
        f"max_feature_idx={view.n_columns - 1}",
        *([f"objective={objective}"] if objective else []),
        f"feature_names={' '.join(_names(view.column_names))}",
        f"feature_infos={' '.join(infos.get(j, '[-inf:inf]') for j in range(view.n_columns))}",
        f"tree_sizes={' '.join(str(len(part)) for part in parts)}",
    ]
    lines = "\n".join(head)
    text = (
        f"tree\n{lines}\n\n{''.join(parts)}end of trees\n\nparameters:\n[boosting: gbdt]\n"
        f"[objective: {objective.split(' ')[0] or 'custom'}]\n[num_class: {n_outputs}]\n\n"
        f"end of parameters\n\npandas_categorical:{json.dumps(_pandas_categorical(view, book))}\n"
    )
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _numbers_of_categories(view: ModelNodes, book: CodeBook) -> dict[int, np.ndarray]:
    """The number of every category in LightGBM's text, by column: int64 (n_categories,).

    ValueError: a column cannot be said.
    """
    why = "the format has no dates and time spans. Fit on numbers, such as days since a date."
    view.refuse("to_lightgbm", np.flatnonzero(view.kinds == "time"), why)
    why = "a column has either numbers or categories in the format. Fit on a column for each."
    view.refuse("to_lightgbm", np.flatnonzero(view.kinds == "hybrid"), why)
    has_names = book.feature_names is not None
    is_good, why = _is_plain, "categories must be strings, numbers or booleans."
    if not has_names:
        is_good = _is_number
        why = (
            "categories of columns without names must be whole numbers from 0 to 65535. Use such "
            "numbers, or fit on a data frame with names of columns."
        )
    known = {j: book.categories[j] for j in view.tested.tolist() if j in book.categories}
    wrong = [j for j, labels in known.items() if not all(map(is_good, labels.tolist()))]
    view.refuse("to_lightgbm", wrong, why)
    return {j: np.arange(len(x)) if has_names else x.astype(np.int64) for j, x in known.items()}


def _is_plain(label: Any) -> bool:
    """Whether JSON gives a label back."""
    return isinstance(label, str | bool | int | float)


def _is_number(label: Any) -> bool:
    """Whether a label is a number that LightGBM takes for a category."""
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    return is_number and 0 <= label < MOST_CATEGORIES and label == int(label)


def _pandas_categorical(view: ModelNodes, book: CodeBook) -> list[list]:
    """Labels of the columns of categories, which LightGBM looks up in a data frame."""
    if book.feature_names is None:
        return []
    return [
        book.categories[j].tolist() if j in view.tested else [] for j in sorted(book.categories)
    ]


def _names(names: list[str]) -> list[str]:
    """Names as LightGBM takes them: without white space and characters of JSON."""
    plain = [re.sub(r"[\s\"\\,:\[\]{}\x00-\x1f\ud800-\udfff]", "_", name) for name in names]
    if len(set(plain)) == len(plain) and all(plain):
        return plain
    return [f"{name}_{j}" for j, name in enumerate(plain)]


def _trees(view: ModelNodes, n_outputs: int, numbers: dict[int, np.ndarray]) -> Iterator[str]:
    """The text of every tree; of trees with shares of classes, one for each class."""
    for t, tree in enumerate(view.trees):
        before, after = _structure(view, tree, numbers)
        value = tree.value
        if view.start is None:
            values = (value[:, -n_outputs:] / len(view.trees)).T
        else:
            values = value.T + (view.start[t] if t < n_outputs else 0.0)
        for of_output in values:
            yield before + _of_nodes("value", of_output, tree.is_leaf, (EXACT, SHORT)) + after


def _of_nodes(name: str, values: np.ndarray, is_leaf: np.ndarray, forms: tuple[str, str]) -> str:
    """A property that leaves and inner nodes have."""
    leaves, inner = _joined(values[is_leaf], forms[0]), _joined(values[~is_leaf], forms[1])
    return f"leaf_{name}={leaves}\ninternal_{name}={inner}\n"


def _joined(values: np.ndarray, form: str = WHOLE) -> str:
    """Numbers with a blank between them."""
    return (form * len(values) % tuple(values.tolist()))[:-1]


def _structure(
    view: ModelNodes, tree: TreeNodes, numbers: dict[int, np.ndarray]
) -> tuple[str, str]:
    """What stands before and after the values of the nodes of a tree."""
    is_leaf = tree.is_leaf
    inner = np.flatnonzero(~is_leaf)
    is_set, missing_left, column = tree.is_set[inner], tree.missing_left[inner], tree.column[inner]
    threshold = np.minimum(tree.threshold[inner], np.finfo(float).max)
    why = (
        "categories that were not there at fit do not go where missing values go, as LightGBM "
        "sends them. Fit with handle_unknown='missing'."
    )
    differs = is_set & (tree.unseen_left[inner] != missing_left)
    view.refuse("to_lightgbm", column[differs], why)
    why = f"to LightGBM, thresholds nearer to 0 than {LEAST} are 0. Scale the column."
    view.refuse("to_lightgbm", column[(threshold != 0) & (np.abs(threshold) < LEAST)], why)

    number = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
    left, right = (number[child] for child in tree.sides(inner)[:2])
    kind = np.where(is_set, IS_CATEGORY, MISSING_LEFT * missing_left) + MISSING_IS_NAN
    sets = np.flatnonzero(is_set)
    sets = sets[np.argsort(column[sets], kind="stable")]
    threshold[threshold == 0] = LEAST  # as LightGBM writes it; not all readers take 0
    threshold[sets] = np.arange(len(sets))
    sizes, words = _sets(tree, inner, numbers)

    weight = count = tree.weight
    forms = WHOLE, WHOLE
    if weight[0] > MOST_ROWS or (weight != np.floor(weight)).any():
        count = np.rint(np.maximum(weight * (MOST_WEIGHT / weight[0]), 1.0))
        forms = EXACT, SHORT
    before = (
        f"num_leaves={is_leaf.sum()}\nnum_cat={len(sizes)}\nsplit_feature={_joined(column)}\n"
        f"split_gain={_joined(tree.gain[inner], SHORT)}\nthreshold={_joined(threshold, EXACT)}\n"
        f"decision_type={_joined(kind)}\nleft_child={_joined(left)}\nright_child={_joined(right)}\n"
    )
    after = _of_nodes("weight", weight, is_leaf, forms)
    if count is weight:  # written already
        after += after.replace("weight", "count")
    else:
        after += _of_nodes("count", count, is_leaf, (WHOLE, WHOLE))
    if len(sizes):
        after += f"cat_boundaries={_joined(np.append(0, np.cumsum(sizes)))}\n"
        after += f"cat_threshold={_joined(words)}\n"
    return before, after + "is_linear=0\nshrinkage=1"


def _sets(
    tree: TreeNodes, inner: np.ndarray, numbers: dict[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The categories that go left in LightGBM's sense, in the order of the columns of nodes.

    Returns
    -------
    sizes : int64 (n_sets,)
        Words of each set.
    words : uint32 (sum of sizes,)
        Bit c of the words of a set: the category of number c goes left.
    """
    sizes, words = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint32)]
    for column, nodes, members in tree.sets(inner):
        which, code = np.nonzero(members)
        number = numbers[column][code]
        size = np.ones(len(nodes), dtype=np.int64)
        np.maximum.at(size, which, number // 32 + 1)
        begin = np.cumsum(size) - size
        bits = np.bincount(begin[which] + number // 32, 2.0 ** (number % 32), size.sum())
        sizes.append(size)
        words.append(bits.astype(np.uint32))
    return np.concatenate(sizes), np.concatenate(words)
