"""A tree as text, in the user's formatter.

The frame is scikit-learn's, so what reads its reports reads ours::

    |--- age <= 35.50
    |   |--- job in {clerk, sales} or missing
    |   |   |--- class: no
    |   |--- job not in {clerk, sales}
    |   |   |--- class: yes
    |--- age >  35.50 or missing
    |   |--- truncated branch of depth 4

A line speaks of the values that can come to its node: of those that no test of the same column
further up has sent elsewhere. Of the two sets of categories that a test tells apart the smaller is
written out, on both sides. A test of a hybrid column is about its numbers or about its categories:
a category passes neither ``<=`` nor ``>``, so the other side of a numeric test holds all of them.

A boosted model is written with where it begins, and the trees of its first iterations::

    start: [0.51] (log odds of class: 1)

    iteration 1
    |--- worst radius <= 16.80
    |   |--- value: [0.17]
    |--- worst radius >  16.80
    |   |--- value: [-0.20]

    98 iterations more

A leaf shows the step that it adds to the raw prediction of its rows, learning rate included. Of
three classes or more each has a start, and a tree in each iteration; so has each of several
targets. A tree of all targets has a step for each in a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtrees.constraints import NAMES, Boolean, IntegerIn, Nothing, checked
from dtrees.export.model_nodes import ModelNodes, TreeNodes
from dtrees.inspection.tree_formatter import (
    Line,
    Reach,
    TreeFormatter,
    formatter_of,
    label_names,
    number_format,
)


@checked(
    feature_names=NAMES,
    class_names=NAMES,
    max_depth=(IntegerIn(0),),
    spacing=(IntegerIn(1),),
    decimals=(IntegerIn(0),),
    show_weights=(Boolean(),),
    max_categories=(IntegerIn(1), Nothing()),
    max_width=(IntegerIn(1), Nothing()),
    max_iter=(IntegerIn(0), Nothing()),
    tree=(IntegerIn(0), Nothing()),
)
def export_text(
    decision_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_depth: int = 10,
    spacing: int = 3,
    decimals: int = 2,
    show_weights: bool = False,
    max_categories: int | None = 20,
    max_width: int | None = 100,
    max_iter: int | None = 3,
    tree: int | None = None,
) -> str:
    """Return the rules of a tree, or of a boosted model, as text.

    Parameters
    ----------
    decision_tree : estimator, TreeView or Tree
        A fitted tree, forest or boosted model, a tree's ``tree_``, or a tree on codes (whose
        categories have no names).
    feature_names : sequence of str, default=None
        A name per column. None: the names at fit, or "feature_0", "feature_1", ...
    class_names : sequence of str, default=None
        A name per class, in the order of ``classes_``. None: the labels.
    max_depth : int, default=10
        Deepest tests that are printed; branches below are named by their depth.
    spacing : int, default=3
        Width of a level, at least 1.
    decimals : int, default=2
        Least number of decimals.
    show_weights : bool, default=False
        Whether leaves of a classifier show the weight of every class.
    max_categories : int, default=20
        Longest set of categories that is written out; longer ones end with the number of those
        that are left out. None: no limit.
    max_width : int, default=100
        Lines longer than this are broken between categories and between weights, and only there:
        names, numbers and single categories stay whole. None: one line per test and leaf.
    max_iter : int, default=3
        Iterations of a boosted model that are printed; others are counted. None: all.
    tree : int, default=None
        Number of one tree of a forest or a boosted model, which is printed alone. None: the only
        tree, or the first iterations of a boosted model.

    Returns
    -------
    str
        A line per test and side, a line per leaf, if need be broken. O(printed nodes), and for
        tests of categories O(categories) each. Of a boosted model, where raw predictions begin, and
        the trees of each iteration, whose leaves have the steps that they add.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    TypeError
        No model of dtrees; or a forest, of whose trees `tree` chooses none.
    ValueError
        Too many or too few names, a negative size, or no tree of this number.
    """
    options: dict[str, Any] = {"decimals": decimals, "max_categories": max_categories}

    def text_of(formatter: TreeFormatter) -> str:
        return _text(formatter, max_depth, spacing, max_width)

    view, names = ModelNodes.of(decision_tree, "decision_tree"), (feature_names, class_names)
    if tree is None and view.start is not None:
        return boosted_text(view, max_iter, names, text_of, **options)
    if tree is None and len(view.trees) > 1:
        raise TypeError(f"The model has {len(view.trees)} trees. Give the number of one: tree=0.")
    return text_of(formatter_of(view, tree or 0, *names, show_weights=show_weights, **options))


def _text(formatter: TreeFormatter, max_depth: int, spacing: int, max_width: int | None) -> str:
    """The text of one tree."""
    tree = formatter.nodes
    height = _heights(tree)
    lines: list[str] = []

    def write(line: Line, level: int) -> None:
        lines.extend(line.broken(level, spacing, max_width))

    # node, level, the side of a test that leads to it, what tests above have left of their columns
    todo: list[tuple[int, int, Line | None, dict[int, Reach]]] = [(0, 1, None, {})]
    while todo:
        node, level, side, reaches = todo.pop()
        if side is not None:
            write(side, level - 1)
        if tree.is_leaf[node]:
            write(formatter.leaf(node), level)
        elif level > max_depth + 1:
            write(Line(f"truncated branch of depth {height[node]}"), level)
        else:
            for child, below, line in reversed(formatter.children(node, reaches)):
                todo.append((child, level + 1, line, below))
    return "\n".join(lines) + "\n"


def _heights(tree: TreeNodes) -> np.ndarray:
    """Levels from every node down to its deepest leaf, int64 (n_nodes,); 1 for a leaf."""
    height = np.ones(len(tree.parent), dtype=np.int64)
    for node in range(len(height) - 1, 0, -1):  # children stand behind their parent
        above = tree.parent[node]
        height[above] = max(height[above], height[node] + 1)
    return height


def boosted_text(
    view: ModelNodes,
    max_iter: int | None,
    names: tuple[Sequence[str] | None, Sequence[str] | None],
    text_of: Callable[[TreeFormatter], str],
    **options: Any,
) -> str:
    """The text of a boosted model.

    Iterations up to `max_iter` are written, None: all; `names` are of the columns and of the
    classes; `text_of` gives the text of a tree; options are those of `TreeFormatter`.
    NotFittedError, or ValueError for too many or too few names.
    """
    feature_names, class_names = names
    assert view.start is not None
    classes = [] if view.classes is None else label_names(view.labels, class_names)
    starts = view.start.tolist()
    form = number_format(np.unique(starts), options.get("decimals", 2))
    each = [f"target: {name}" for name in view.value_labels]
    if classes:
        each = [f"class: {classes[place]}" for place in view.shown]
    n_trees = len(starts) // view.trees[0].n_values
    of_trees = [f", {name}" for name in each] if n_trees > 1 else [""]
    lines = [
        f"start: [{form(start)}]{meaning}\n"
        for start, meaning in zip(starts, _meanings(view, each), strict=True)
    ]
    n_all = len(view.trees) // n_trees
    n_iter = n_all if max_iter is None else min(max_iter, n_all)
    for number in range(n_iter * n_trees):
        iteration, output = divmod(number, n_trees)
        formatter = formatter_of(view, number, feature_names, None, **options)
        lines.append(f"\niteration {iteration + 1}{of_trees[output]}\n{text_of(formatter)}")
    more = n_all - n_iter
    if more > 0:
        lines.append(f"\n{more} iteration{'' if more == 1 else 's'} more\n")
    return "".join(lines)


def _meanings(view: ModelNodes, names: list[str]) -> list[str]:
    """Words for the unit of raw predictions, behind each start."""
    if view.classes is not None:
        of_targets = view.classes if isinstance(view.classes, list) else [view.classes]
        n_classes = [len(own) for own in of_targets for _ in own[: len(own) if len(own) > 2 else 1]]
        words = {1: "share of ", 2: "log odds of "}
        return [f" ({words.get(n, '')}{name})" for n, name in zip(n_classes, names, strict=True)]
    if len(names) > 1:
        return [f" ({'logarithm of ' * (view.link == 'log')}{name})" for name in names]
    return [" (logarithm of the prediction)" if view.link == "log" else ""]
