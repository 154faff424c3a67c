"""The picture of one tree, with the classes, the impurity and the rows of every node.

::

                                        +----------------------+
                               yes      | class: no            |
    +-----------------------+ --------> | gini 0.10 · 120 rows |
    | age <= 37             |           +######################+
    | gini 0.48 · 200 rows  |           +----------------------+
    +############===========+ --------> | class: yes           |
      bar: shares of classes   no       | gini 0.31 · 80 rows  |
                                        +####==================+

The drawing goes from left to right, since the text of a node is wide and not high. Leaves stand on
equal distances, and other nodes in the middle of their children, so nothing overlaps.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.constraints import AXES, NAMES, Boolean, IntegerIn, Nothing, checked
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection.colours import COLOURS, colours_of
from dtrees.inspection.plots import INK, Canvas
from dtrees.inspection.tree_formatter import Line, Reach, TreeFormatter, formatter_of, impurity_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# inches
WIDTH, LINE, BAR, PAD = 2.2, 0.16, 0.09, 0.07  # of a box, a line of text, the bar, the margin
ACROSS, DOWN = 3.0, 0.2  # from box to box: from left to left, and between boxes
MARGIN, LEGEND, MORE = 0.15, 0.3, 0.35
LETTERS = 34  # in a line

MOST_COUNTS = 3  # classes whose weights are written out


@dataclass(eq=False)
class Node:
    """A node of the drawing.

    `first` is the text of its box, the test or the prediction, and `lines` what is below. The
    children are that of "yes", then that of "no"; a leaf has none, nor has a node where the drawing
    ends before the tree does (`is_cut`). `y` is the middle of the box.
    """

    number: int
    depth: int
    first: list[str]
    lines: list[str]
    is_cut: bool = False
    children: list[Node] = field(default_factory=list)
    y: float = 0.0

    @property
    def height(self) -> float:
        """Height of its box, in inches."""
        return (len(self.first) + len(self.lines)) * LINE + BAR + 2 * PAD

    def all(self) -> list[Node]:
        """The node and all below it, in preorder."""
        found, waiting = [], [self]
        while waiting:
            found.append(waiting.pop())
            waiting += reversed(found[-1].children)
        return found


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
    formatter = formatter_of(
        ModelNodes.of(decision_tree, "decision_tree"),
        tree,
        feature_names,
        class_names,
        decimals=decimals,
        max_categories=max_categories,
    )
    root = _drawn_nodes(formatter, max_depth, impurity)
    has_legend = bool(formatter.classes)
    height = _place(root, LEGEND if has_legend else 0.0)
    width = 2 * MARGIN + MORE + WIDTH + ACROSS * max(node.depth for node in root.all())
    canvas = Canvas("plot_tree", ax, width, height)
    drawing = Drawing(canvas, formatter)
    for node in root.all():
        drawing.draw(node)
    if has_legend:
        drawing.write_legend(height - MARGIN - 0.05)
    return canvas.ax


def _drawn_nodes(formatter: TreeFormatter, max_depth: int | None, impurity: bool) -> Node:
    """The root with all below it that is drawn."""
    is_leaf = formatter.nodes.is_leaf
    above: list[Node] = []  # the root, and children before they have their own
    waiting: list[tuple[int, int, dict[int, Reach], list[Node]]] = [(0, 0, {}, above)]
    while waiting:
        number, depth, reaches, siblings = waiting.pop()
        lines = _statistics(formatter, number, impurity)
        if is_leaf[number]:
            siblings.append(Node(number, depth, _prediction(formatter, number), lines))
            continue
        sides = formatter.children(number, reaches)
        is_cut = max_depth is not None and depth >= max_depth
        node = Node(number, depth, _wrapped(sides[0][2]), lines, is_cut)
        siblings.append(node)
        if not is_cut:
            waiting += [(i, depth + 1, reach, node.children) for i, reach, _ in reversed(sides)]
    return above[0]


def _prediction(formatter: TreeFormatter, node: int) -> list[str]:
    """The largest class, or the mean."""
    (value,) = formatter.nodes.value_of([node])
    if formatter.classes:
        name = formatter.classes[int(value.argmax())]
        return [textwrap.shorten(name, LETTERS, placeholder=" ...")]
    return [formatter.value_format()(float(value[0]))]


def _wrapped(line: Line) -> list[str]:
    """A test in at most three lines."""
    text = line.head + ", ".join(line.members) + line.tail
    return textwrap.wrap(
        text.replace(" >  ", " > "),
        LETTERS,
        max_lines=3,
        placeholder=" ...",
        break_on_hyphens=False,
    )


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
        lines.append(f"mean {formatter.value_format()(float(value[0]))}")
    return lines


def _place(root: Node, top: float) -> float:
    """Set the middle of every box; returns the height of the drawing."""
    ends = [node for node in root.all() if not node.children]
    height = 2 * MARGIN + top + sum(node.height for node in ends) + DOWN * (len(ends) - 1)
    y = height - MARGIN - top
    for node in ends:
        node.y = y - node.height / 2
        y -= node.height + DOWN
    for node in reversed(root.all()):  # children stand behind their parent
        if node.children:
            node.y = (node.children[0].y + node.children[-1].y) / 2
    return height


@dataclass(eq=False)
class Drawing:
    """Draws the boxes and edges of a tree."""

    canvas: Canvas
    formatter: TreeFormatter

    def __post_init__(self) -> None:
        self.matplotlib, self.ax = self.canvas.matplotlib, self.canvas.ax
        self.values, self.colours = self.formatter.nodes.value, colours_of(self.formatter.nodes)

    def draw(self, node: Node) -> None:
        """A box, its text, its bar, and the edges to its children."""
        x = MARGIN + node.depth * ACROSS
        low = node.y - node.height / 2
        is_leaf = not node.children and not node.is_cut
        rounding, line = (0.12, 0.6) if is_leaf else (0.03, 1.0)
        style = {"facecolor": self.colours[node.number], "edgecolor": INK, "linewidth": line}
        box = self.canvas.box((x, low), (WIDTH, node.height), rounding, **style)
        self._draw_bar(node, x, low, box)
        for i, text in enumerate([*node.first, *node.lines]):
            y = low + node.height - PAD - (i + 0.5) * LINE
            self._write(x + WIDTH / 2, y, text, "bold" if i < len(node.first) else "normal")
        if node.is_cut:
            self._write(x + WIDTH + 0.17, node.y, "•••", "normal")
        for word, child, sign in zip(("yes", "no"), node.children, (1, -1), strict=False):
            end = MARGIN + child.depth * ACROSS, child.y
            self.canvas.edge((x + WIDTH, node.y), end, 0.5, edgecolor=INK, linewidth=0.8)
            self._write(x + WIDTH + 0.04, node.y + sign * 0.1, word, "normal", "left")

    def write_legend(self, y: float) -> None:
        """The colours of the classes."""
        x = MARGIN
        for i, name in enumerate(self.formatter.classes[: len(COLOURS)]):
            square = (x, y - 0.06)
            self.ax.add_patch(
                self.matplotlib.patches.Rectangle(square, 0.12, 0.12, color=COLOURS[i])
            )
            text = self._write(x + 0.18, y, name, "normal", "left")
            x += 0.45 + text.get_window_extent().width / self.ax.figure.dpi / self.canvas.scale

    def _draw_bar(self, node: Node, x: float, low: float, box: Any) -> None:
        """The shares of the classes, along the lower side of the box."""
        if not self.formatter.classes:
            return
        for i, share in enumerate(self.values[node.number]):
            part = self.matplotlib.patches.Rectangle(
                (x, low), WIDTH * share, BAR, color=COLOURS[i % len(COLOURS)], linewidth=0, zorder=3
            )
            self.ax.add_patch(part)
            part.set_clip_path(box)
            x += WIDTH * share

    def _write(self, x: float, y: float, text: str, weight: str, align: str = "center") -> Any:
        return self.canvas.write(x, y, text, ha=align, color=INK, fontweight=weight, zorder=4)
