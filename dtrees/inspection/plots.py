"""Pictures of trees; matplotlib is imported when one is drawn.

The shared forest of several models is drawn from left to right, since what stands in a node is
text, which is wide and not high::

                                 +------------------+
    +-----------------+   yes    | hours <= 40      |  7 of 10: dark, wide edge
    | age <= 37 .. 38 |--------->+------------------+
    | 10 of 10        |- - -+    +------------------+
    +-----------------+     +- ->| job in {a, b}    |  3 of 10: bright, narrow edge
             |                   +------------------+
             |       no          (------------------)
             +------------------>( good (97%)       )  10 of 10, a leaf
                                 (------------------)

Leaves stand on equal distances, everything else in the middle of what is right of it, so that
nothing overlaps. Nodes of few models are shown, since that is where models part, but not opened:
what one fold of ten does further down would take up most of the paper. The drawing has the size
that its text needs, in inches; on given axes it is scaled as a whole, with its text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from dtrees.inspection.overlay import SharedForest, SharedNode, shared_forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# inches
WIDTH, HEIGHT = 2.0, 0.5  # of a box
ACROSS, DOWN = 2.75, 0.62  # from box to box
MARGIN = 0.12
EXIT = 0.1  # half of the distance between the edges of "yes" and "no" where they begin
FOOT = 0.3  # for the caption
FAN = 0.5  # left of the roots, if there are several
MORE = 0.25  # for three dots
# points
FONT = 8.0
EDGES = 0.6, 5.0  # width of an edge of few models, and of one of all

LETTERS = 30  # in a line
LINES = 2  # of a test
MOST_FITTINGS = 5  # of text that is too wide for its box
DARK = 0.6  # from here on text is white
DASHES = (0, (2.0, 1.2))
UNBROKEN = "\N{NO-BREAK SPACE}"
INK, GREY = "#1b2733", "#7d8896"


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
    is_classifier = len(forest[0].value) > 1
    layout = Layout.of(forest, min_share)
    canvas = Canvas("plot_shared_forest", ax, layout.width, layout.height)
    pen = Pen(canvas, canvas.matplotlib.colormaps.get_cmap(cmap), layout)
    pen.draw_root_edges(forest)
    for i in layout.drawn:
        pen.draw_edges(forest, i)
        pen.draw_box(forest[i], i, forest.n_models, _label(forest[i], is_classifier))
    pen.draw_caption(forest)
    return canvas.ax


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of the boxes, in inches from the lower left, and the size of the drawing.

    `drawn` are the nodes that are drawn, in preorder; `position` has left end and middle of their
    boxes.
    """

    drawn: list[int]
    position: dict[int, tuple[float, float]]
    width: float
    height: float

    @classmethod
    def of(cls, forest: SharedForest, min_share: float) -> Layout:
        """Leaves on equal distances, other nodes in the middle of what they lead to."""
        drawn = list(_drawn(forest, min_share))
        kept = set(drawn)
        row: dict[int, float] = {}
        n_rows = 0
        for i in drawn:
            if not kept.intersection(forest[i].left):  # nothing on its right
                row[i] = n_rows
                n_rows += 1
        for i in reversed(drawn):  # children stand behind their parent
            if i not in row:
                row[i] = (row[forest[i].left[0]] + row[forest[i].right[-1]]) / 2
        depth = max(forest[i].depth for i in drawn)
        first = MARGIN + (FAN if len(forest.roots) > 1 else 0.0)
        height = 2 * MARGIN + FOOT + n_rows * DOWN
        position = {
            i: (first + forest[i].depth * ACROSS, height - MARGIN - (row[i] + 0.5) * DOWN)
            for i in drawn
        }
        return cls(drawn, position, first + depth * ACROSS + WIDTH + MORE + MARGIN, height)


def _drawn(forest: SharedForest, min_share: float) -> Iterator[int]:
    """Nodes whose parents have enough models, in preorder."""
    todo = [*reversed(forest.roots)]
    while todo:
        i = todo.pop()
        yield i
        if forest[i].share >= min_share:
            todo += reversed(forest[i].left + forest[i].right)


class Canvas:
    """Axes for a drawing of some inches, which is scaled as a whole, with its text.

    Without axes they are those of a new figure of this size. `function` draws, for messages.
    """

    def __init__(self, function: str, ax: Any, width: float, height: float) -> None:
        self.matplotlib = matplotlib_or_error(function)
        if ax is None:
            figure = self.matplotlib.pyplot.figure(figsize=(width, height))
            ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
        ax.axis("off")
        self.ax, extent = ax, ax.get_window_extent()
        inches = min(extent.width / width, extent.height / height)
        self.scale = inches / ax.figure.dpi  # inches on paper per inch of the drawing

    def box(
        self, corner: tuple[float, float], size: tuple[float, float], rounding: float, **style: Any
    ) -> Any:
        """Draw a box with rounded corners; `linewidth` is in points of the drawing."""
        style["linewidth"] *= self.scale
        patch = self.matplotlib.patches.FancyBboxPatch(
            corner, *size, boxstyle=f"round,pad=0,rounding_size={rounding}", zorder=2, **style
        )
        self.ax.add_patch(patch)
        return patch

    def edge(
        self, start: tuple[float, float], end: tuple[float, float], bend: float, **style: Any
    ) -> None:
        """Draw a curve that begins and ends level; `bend` is the share of the way to its turns."""
        style["linewidth"] *= self.scale
        path = self.matplotlib.path.Path
        by = (end[0] - start[0]) * bend
        points = [start, (start[0] + by, start[1]), (end[0] - by, end[1]), end]
        curve = path(points, [path.MOVETO, path.CURVE4, path.CURVE4, path.CURVE4])
        self.ax.add_patch(
            self.matplotlib.patches.PathPatch(curve, facecolor="none", zorder=1, **style)
        )

    def write(self, x: float, y: float, text: str, size: float = 1.0, **style: Any) -> Any:
        """Write text beside or around a point, of a size relative to `FONT`; a dollar is one."""
        size *= FONT * self.scale
        return self.ax.text(x, y, text, va="center", fontsize=size, parse_math=False, **style)


@dataclass(eq=False)
class Pen:
    """Draws the boxes and edges of a shared forest."""

    canvas: Canvas
    cmap: Any
    layout: Layout

    def draw_box(self, node: SharedNode, i: int, n_models: int, label: str) -> None:
        """The box of a node with its text."""
        x, y = self.layout.position[i]
        colour = self.cmap(0.04 + 0.8 * node.share)
        is_dark = np.dot(colour[:3], (0.299, 0.587, 0.114)) < DARK
        corner, rounding = (x, y - HEIGHT / 2), HEIGHT / 2 if node.is_leaf else 0.05
        style = {"facecolor": colour, "edgecolor": self.cmap(0.9), "linewidth": 0.8}
        self.canvas.box(corner, (WIDTH, HEIGHT), rounding, **style)
        text = "\n".join([*_wrapped(label), _count(node, n_models)])
        ink = "white" if is_dark else INK
        drawn = self.canvas.write(
            x + WIDTH / 2, y, text, ha="center", color=ink, linespacing=1.15, zorder=3
        )
        room = 0.97 * WIDTH * self.canvas.scale * self.canvas.ax.figure.dpi
        for _ in range(MOST_FITTINGS):  # letters may be wide, and are as many dots as are whole
            wide = drawn.get_window_extent().width
            if wide <= room:
                break
            drawn.set_fontsize(drawn.get_fontsize() * 0.98 * room / wide)
        opened = node.left and node.left[0] in self.layout.position
        if node.is_cut or (not node.is_leaf and not opened):
            self._write(x + WIDTH + 0.06, y, "•••", 0.6)

    def draw_root_edges(self, forest: SharedForest) -> None:
        """Draw dashed edges out of nothing where the models part at the root."""
        ends = [self.layout.position[i] for i in forest.roots]
        start = ends[0][0] - FAN, (ends[0][1] + ends[-1][1]) / 2
        if len(ends) > 1:
            for i, end in zip(forest.roots, ends, strict=True):
                self._draw_edge(start, end, forest[i].share, parts=True)

    def draw_edges(self, forest: SharedForest, i: int) -> None:
        """The edges from a node to the right, and which side they are."""
        x, y = self.layout.position[i]
        for word, side, sign in (("yes", forest[i].left, 1), ("no", forest[i].right, -1)):
            ends = [j for j in side if j in self.layout.position]
            start = x + WIDTH, y + sign * EXIT
            for j in ends:
                self._draw_edge(start, self.layout.position[j], forest[j].share, len(side) > 1)
            if ends:
                self._write(start[0] + 0.04, start[1] + sign * 0.1, word)

    def draw_caption(self, forest: SharedForest) -> None:
        """Tell what colours and widths mean, and what is left out; of one model all are alike."""
        if forest.n_models == 1:
            return
        words = f"darker, wider: more of the {forest.n_models} models"
        sides = [side for i in self.layout.drawn for side in (forest[i].left, forest[i].right)]
        if any(len(side) > 1 for side in [forest.roots, *sides]):
            words += "  ·  dashed: the models part"
        self._write(MARGIN, MARGIN + 0.08, words)

    def _draw_edge(
        self, start: tuple[float, float], end: tuple[float, float], share: float, parts: bool
    ) -> None:
        narrow, wide = EDGES
        self.canvas.edge(
            start,
            end,
            0.6,
            edgecolor=self.cmap(0.2 + 0.35 * share),
            linewidth=narrow + (wide - narrow) * share,
            linestyle=DASHES if parts else "solid",
            capstyle="butt",
        )

    def _write(self, x: float, y: float, words: str, size: float = 0.85) -> None:
        effects = self.canvas.matplotlib.patheffects
        halo = effects.withStroke(linewidth=2 * self.canvas.scale, foreground="white")
        self.canvas.write(x, y, words, size, color=GREY, zorder=3, path_effects=[halo])


def _label(node: SharedNode, is_classifier: bool) -> str:
    """The test; of a leaf its class with its share, or its mean."""
    if node.is_leaf and is_classifier:
        return f"{node.text} ({node.value.max():.0%})"
    return node.text


def _count(node: SharedNode, n_models: int) -> str:
    """Numbers of models and rows; and of sets of categories, as one of them is written."""
    has_sets = node.interval is None and len(node.tests) > 1
    sets = [f"{len(node.tests)} sets"] if has_sets else []
    return "  ·  ".join([f"{len(node.models)}/{n_models}", *sets, f"{node.n_rows:,.0f} rows"])


def _wrapped(text: str) -> list[str]:
    """At most two lines; a sign stays with its number, and a range is not broken."""
    for sign in ("<=", ">"):
        text = text.replace(f" {sign} ", f" {sign}{UNBROKEN}")
    text = text.replace(" .. ", f"{UNBROKEN}..{UNBROKEN}")
    return textwrap.wrap(text, LETTERS, max_lines=LINES, placeholder=" ...", break_on_hyphens=False)


def new_axes(ax: Axes | None) -> Axes:
    """The axes that are given, or those of a new figure; ImportError without matplotlib."""
    if ax is not None:
        return ax
    made: Axes = matplotlib_or_error("dtrees").pyplot.subplots(layout="constrained")[1]
    return made


def matplotlib_or_error(function: str) -> Any:
    """Import matplotlib for a function, or say how to get it."""
    try:
        import matplotlib
        import matplotlib.patches
        import matplotlib.path
        import matplotlib.patheffects
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(
            f"{function} draws with matplotlib, which is not installed: "
            "pip install 'dask-dtrees[plot]'"
        ) from error
    return matplotlib
