"""The picture of a shared forest: boxes of tests, darker the more models are there.

::

                                 +------------------+
    +-----------------+   yes    | hours <= 40      |  7 of 10: dark, wide edge
    | age <= 37 .. 38 |--------->+------------------+
    | 10 of 10        |- - -+    +------------------+
    +-----------------+     +- ->| job in {a, b}    |  3 of 10: bright, narrow edge
             |                   +------------------+
             |       no          (------------------)
             +------------------>( good (97%)       )  10 of 10, a leaf
                                 (------------------)

Nodes of few models are shown, since that is where models part, but not opened: what one fold of ten
does further down would take up most of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.constraints import (
    AXES,
    NAMES,
    Having,
    InstanceOf,
    IntegerIn,
    ListLike,
    Nothing,
    RealIn,
    checked,
)
from dtrees.inspection.boxes import INK, MARGIN, Box, Drawing, matplotlib_or_error, wrapped
from dtrees.inspection.overlay import SharedNode, shared_forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EDGES = 0.6, 5.0  # points: width of an edge of few models, and of one of all
LINES = 2  # of a test
DARK = 0.6  # from here on text is white
UNBROKEN = "\N{NO-BREAK SPACE}"


@checked(
    models=(ListLike(),),
    max_depth=(IntegerIn(0), Nothing()),
    min_share=(RealIn(0, 1, "[]"),),
    feature_names=NAMES,
    class_names=NAMES,
    max_categories=(IntegerIn(1), Nothing()),
    cmap=(InstanceOf(str, "str"), Having("set_bad")),
    ax=AXES,
)
def plot_shared_forest(
    models: Sequence[Any],
    *,
    max_depth: int | None = 4,
    min_share: float = 0.25,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_categories: int | None = 5,
    cmap: Any = "Blues",
    ax: Axes | None = None,
) -> Axes:
    """Draw the trees of several models as one, with how many of them are at each node.

    A box is a node: its test, how many models are there, and their mean number of training rows.
    Where models differ in the threshold, it has the lowest and the highest; where they differ in
    the set of categories, the set of most models, and how many sets there are. The darker a box and
    the wider its edge, the more models. Where models go on to ask about different columns, their
    boxes stand beside each other and the edges are dashed. Rounded boxes are leaves: the class with
    its share, or the mean. Three dots say that there is more behind a box.

    Parameters
    ----------
    models : sequence of DecisionTreeClassifier, DecisionTreeRegressor, TreeView or Tree
        Of one table, such as ``cross_validate(..., return_estimator=True)["estimator"]``.
    max_depth : int or None, default=4
        Depth of the deepest boxes. None: all.
    min_share : float, default=0.25
        Nodes of a smaller share of the models are drawn, but not what is below them; in [0, 1].
    feature_names : sequence of str, default=None
        A name per column. None: the names at fit, or "feature_0", "feature_1", ...
    class_names : sequence of str, default=None
        A name per class, in the order of ``classes_``. None: the labels.
    max_categories : int or None, default=5
        Longest set of categories that is written out. None: no limit. Boxes have two lines for a
        test, so long ones end with dots.
    cmap : str or matplotlib Colormap, default="Blues"
        Colours from share 0 to share 1.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. None: a new figure that is as large as its text needs.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError, TypeError
        As of `shared_forest`; `min_share` is out of its range.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.inspection import plot_shared_forest
    >>> from dtrees.model_selection import cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate(DecisionTreeClassifier(), X, y, cv=10, return_estimator=True)
    >>> ax = plot_shared_forest(found["estimator"], max_depth=2)  # doctest: +SKIP
    >>> ax.figure.savefig("shared_forest.svg")  # doctest: +SKIP
    """
    forest = shared_forest(
        models,
        max_depth=max_depth,
        feature_names=feature_names,
        class_names=class_names,
        max_categories=max_categories,
    )
    colours = matplotlib_or_error("plot_shared_forest").colormaps.get_cmap(cmap)
    boxes: dict[int, Box] = {}
    for i in reversed(range(len(forest))):  # children stand behind their parent
        node = forest[i]
        box = boxes[i] = _box(node, forest.n_models, colours)
        if node.share >= min_share:
            box.branches = [boxes[j] for j in node.left], [boxes[j] for j in node.right]
        box.is_cut = node.is_cut or not (node.is_leaf or any(box.branches))
    roots = [boxes[i] for i in forest.roots]
    drawing = Drawing("plot_shared_forest", ax, roots)
    if forest.n_models > 1:
        words = f"darker, wider: more of the {forest.n_models} models"
        sides = [side for root in roots for box in root.all() for side in box.branches]
        if any(len(side) > 1 for side in [roots, *sides]):
            words += "  ·  dashed: the models part"
        drawing.note(MARGIN, drawing.top + 0.15, words)
    return drawing.ax


def _box(node: SharedNode, n_models: int, colours: Any) -> Box:
    """The box of a node, with the edge that leads to it."""
    colour = colours(0.04 + 0.8 * node.share)
    is_dark = np.dot(colour[:3], (0.299, 0.587, 0.114)) < DARK
    width = EDGES[0] + (EDGES[1] - EDGES[0]) * node.share
    return Box(
        [*_wrapped(_label(node)), _count(node, n_models)],
        node.depth,
        colour,
        is_leaf=node.is_leaf,
        ink="white" if is_dark else INK,
        frame=colours(0.9),
        edge={"edgecolor": colours(0.2 + 0.35 * node.share), "linewidth": width},
    )


def _label(node: SharedNode) -> str:
    """The test; of a leaf its class with its share, or its mean."""
    if node.is_leaf and len(node.value) > 1:
        return f"{node.text} ({node.value.max():.0%})"
    return node.text


def _count(node: SharedNode, n_models: int) -> str:
    """Numbers of models and rows; and of sets of categories, as one of them is written."""
    has_sets = node.interval is None and len(node.tests) > 1
    sets = [f"{len(node.tests)} sets"] if has_sets else []
    return "  ·  ".join([f"{len(node.models)}/{n_models}", *sets, f"{node.n_rows:,.0f} rows"])


def _wrapped(text: str) -> list[str]:
    """A test in lines; a sign stays with its number, and a range is not broken."""
    for sign in ("<=", ">"):
        text = text.replace(f" {sign} ", f" {sign}{UNBROKEN}")
    return wrapped(text.replace(" .. ", f"{UNBROKEN}..{UNBROKEN}"), LINES)
