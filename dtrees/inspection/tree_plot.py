"""The picture of one tree, with the classes, the impurity and the rows of every node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.constraints import AXES, NAMES, Boolean, IntegerIn, Nothing, checked
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection.boxes import HEAD, MARGIN, Box, Drawing, wrapped
from dtrees.inspection.colours import COLOURS, colours_of
from dtrees.inspection.tree_formatter import Reach, TreeFormatter, formatter_of, impurity_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COUNTS = 3  # classes whose weights are written out


@checked(
    max_depth=(IntegerIn(0), Nothing()),
    feature_names=NAMES,
    class_names=NAMES,
    impurity=(Boolean(),),
    decimals=(IntegerIn(0),),
    tree=(IntegerIn(0),),
    max_categories=(IntegerIn(1), Nothing()),
    ax=AXES,
)
def plot_tree(
    decision_tree: Any,
    *,
    max_depth: int | None = 3,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    impurity: bool = True,
    decimals: int = 2,
    max_categories: int | None = 5,
    tree: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw one tree from left to right.

    A box is a node: its test or its prediction, impurity, number of training rows and, for up to
    three classes, their weights. The bar below shows the shares of the classes. A box has the
    colour of its largest class, the stronger the purer it is. For regression the colour tells the
    mean of the target. Three dots stand for branches that are not drawn.

    Parameters
    ----------
    decision_tree : estimator, TreeView or Tree
        A fitted tree, forest or boosted model, or a tree's ``tree_``.
    max_depth : int or None, default=3
        Depth of the deepest boxes. None: all.
    feature_names : sequence of str, default=None
        A name per column. None: the names at fit, or "feature_0", "feature_1", ...
    class_names : sequence of str, default=None
        A name per class, in the order of ``classes_``. None: the labels.
    impurity : bool, default=True
        Whether boxes show their impurity.
    decimals : int, default=2
        Least number of decimals, at least 0.
    max_categories : int or None, default=5
        Longest set of categories that is written out; None: no limit.
    tree : int, default=0
        Number of the tree in a forest or a boosted model. Of K outputs of a boosted model, tree t
        adds to output ``t % K``.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. None: a new figure that is as large as its text needs.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is not installed.
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    TypeError, ValueError
        It is no model of dtrees, it has no tree of this number, or there are too many or too few
        names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.inspection import plot_tree
    >>> iris = load_iris(as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> ax = plot_tree(tree, class_names=iris.target_names)  # doctest: +SKIP
    """
    view, names = ModelNodes.of(decision_tree, "decision_tree"), (feature_names, class_names)
    options: dict[str, Any] = {"decimals": decimals, "max_categories": max_categories}
    formatter = formatter_of(view, tree, *names, **options)
    root = _boxes(formatter, max_depth, impurity)
    drawing = Drawing("plot_tree", ax, [root], HEAD if formatter.classes else 0.0)
    x, y = MARGIN, drawing.top + 0.2
    for colour, name in zip(COLOURS, formatter.classes, strict=False):
        drawing.rectangle(x, y - 0.06, 0.12, 0.12, colour)
        x += 0.45 + drawing.write(x + 0.18, y, name).get_window_extent().width / drawing.dots
    return drawing.ax


def _boxes(formatter: TreeFormatter, max_depth: int | None, impurity: bool) -> Box:
    """The root with all behind it that is drawn."""
    is_leaf, colours = formatter.nodes.is_leaf, colours_of(formatter.nodes)
    n_colours, values = len(COLOURS), formatter.nodes.value
    above: list[Box] = []  # the root, and boxes that have nothing behind them yet
    waiting: list[tuple[int, int, dict[int, Reach], list[Box]]] = [(0, 0, {}, above)]
    while waiting:
        number, depth, reaches, siblings = waiting.pop()
        is_cut = max_depth is not None and depth >= max_depth and not is_leaf[number]
        sides = () if is_leaf[number] else formatter.children(number, reaches)
        text = sides[0][2].text if sides else formatter.answer(values[number])
        first = wrapped(text, 3 if sides else 1)
        box = Box(
            [*first, *_statistics(formatter, number, impurity)],
            depth,
            colours[number],
            n_bold=len(first),
            is_leaf=bool(is_leaf[number]),
            is_cut=is_cut,
        )
        if formatter.classes:
            shares = values[number] / values[number].sum()
            box.bar = [(s, COLOURS[i % n_colours]) for i, s in enumerate(shares)]
        siblings.append(box)
        if not is_cut:
            pairs = [*zip(sides, box.branches, strict=False)]
            waiting += [(i, depth + 1, reach, side) for (i, reach, _), side in reversed(pairs)]
    return above[0]


def _statistics(formatter: TreeFormatter, node: int, impurity: bool) -> list[str]:
    """Impurity and rows, the weights of few classes, the mean where a test stands first."""
    tree = formatter.nodes
    rows = f"{tree.n_samples[node]:,} rows"
    known = impurity and tree.has_impurity
    name = impurity_name(tree).replace("_", " ")
    lines = [f"{name} {tree.impurity[node]:.3g}  ·  {rows}" if known else rows]
    if formatter.classes and len(formatter.classes) <= MOST_COUNTS:
        weights = tree.class_weights(node)
        counts = [np.round(weight, formatter.decimals) for weight in weights]
        lines.append("  ·  ".join(f"{count:,.12g}" for count in counts))
    elif not formatter.classes and not tree.is_leaf[node]:
        (value,) = tree.value_of([node])
        lines.append(f"mean {formatter.answer(value)}")
    return lines
