"""Boxes of text and their edges, from left to right; matplotlib is imported when they are drawn.

::

                               yes      +----------------------+
    +-----------------------+ --------> | class: no            |
    | age <= 37             |           | gini 0.10 · 120 rows |
    | gini 0.48 · 200 rows  |           +######################+
    +############===========+ --------> +----------------------+
      bar: shares              no       | class: yes           |

Text is wide and not high, so drawings go to the right. Boxes with nothing behind them stand one
below the other, and any other in the middle of what it leads to, so nothing overlaps. A drawing has
the size that its text needs, in inches; on given axes it is scaled as a whole, with its text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from dtrees._extras import extra

# inches
WIDTH, LINE, BAR, PAD = 2.2, 0.16, 0.09, 0.07  # of a box, a line of text, the bar, the margin
ACROSS, DOWN = 3.0, 0.15  # from box to box: from left to left, and between boxes
MARGIN, HEAD, FAN, MORE = 0.15, 0.3, 0.5, 0.35  # around, on top, left of several roots, for dots
EXIT = 0.1  # half of the distance between the edges of "yes" and "no" where they begin

FONT = 8.0  # points
LETTERS = 34  # in a line
MOST_FITTINGS = 5  # of text that is too wide for its box
INK, GREY = "#1b2733", "#7d8896"


@dataclass(eq=False)
class Box:
    """A node of a drawing: text, colours, and what is behind it.

    The first `n_bold` lines are bold. `branches` are boxes behind "yes", and those behind "no":
    edges to several of a side are dashed. Dots stand behind a box that `is_cut`. `bar` has shares
    with their colours, `edge` is the style of the edge that leads here, `y` the middle.
    """

    lines: list[str]
    depth: int
    colour: Any
    n_bold: int = 0
    is_leaf: bool = False
    is_cut: bool = False
    branches: tuple[list[Box], list[Box]] = field(default_factory=lambda: ([], []))
    bar: Sequence[tuple[float, Any]] = ()
    ink: str = INK
    frame: Any = INK
    edge: dict[str, Any] = field(default_factory=lambda: {"edgecolor": INK, "linewidth": 0.8})
    y: float = 0.0

    @property
    def height(self) -> float:
        """Height, in inches."""
        return len(self.lines) * LINE + BAR * bool(self.bar) + 2 * PAD

    def all(self) -> list[Box]:
        """The box and all behind it, in preorder."""
        found, waiting = [], [self]
        while waiting:
            found.append(waiting.pop())
            waiting += reversed(found[-1].branches[0] + found[-1].branches[1])
        return found


class Drawing:
    """Boxes on axes, or on those of a new figure; `function` draws them, for messages."""

    def __init__(self, function: str, ax: Any, roots: Sequence[Box], head: float = HEAD) -> None:
        self.matplotlib = matplotlib_or_error(function)
        boxes = [box for root in roots for box in root.all()]
        ends = [box for box in boxes if not any(box.branches)]
        self._left = MARGIN + FAN * (len(roots) > 1)
        width = self._left + ACROSS * max(box.depth for box in boxes) + WIDTH + MORE + MARGIN
        height = 2 * MARGIN + head + sum(box.height + DOWN for box in ends) - DOWN
        self.top = y = height - MARGIN - head
        for box in ends:
            box.y = y - box.height / 2
            y -= box.height + DOWN
        for box in reversed(boxes):  # those behind a box come after it
            if any(box.branches):
                behind = box.branches[0] + box.branches[1]
                box.y = (behind[0].y + behind[-1].y) / 2
        if ax is None:
            figure = self.matplotlib.pyplot.figure(figsize=(width, height))
            ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
        ax.axis("off")
        self.ax, extent = ax, ax.get_window_extent()
        # dots of the drawing in an inch of it, and how many times smaller it is on paper
        self.dots = min(extent.width / width, extent.height / height)
        self._scale = self.dots / ax.figure.dpi
        if len(roots) > 1:
            start = self._left - FAN, (roots[0].y + roots[-1].y) / 2
            self._draw_edges(start, roots)
        for box in boxes:
            self._draw(box)

    def write(self, x: float, y: float, text: str, size: float = 1.0, **style: Any) -> Any:
        """Write text at a point, of a size relative to `FONT`; a dollar is one."""
        size *= FONT * self._scale
        style = {"color": INK, "va": "center", "zorder": 4} | style
        return self.ax.text(x, y, text, fontsize=size, parse_math=False, **style)

    def note(self, x: float, y: float, words: str, size: float = 0.85) -> None:
        """Write small words in grey, which edges do not cross."""
        stroke = self.matplotlib.patheffects.withStroke
        halo = stroke(linewidth=2 * self._scale, foreground="white")
        self.write(x, y, words, size, color=GREY, path_effects=[halo])

    def rectangle(
        self, x: float, y: float, width: float, height: float, colour: Any, clip: Any = None
    ) -> None:
        """Draw an area of a colour."""
        area = self.matplotlib.patches.Rectangle(
            (x, y), width, height, color=colour, linewidth=0, zorder=3
        )
        self.ax.add_patch(area)
        if clip is not None:
            area.set_clip_path(clip)

    def _draw(self, box: Box) -> None:
        """A box, its bar and text, and the edges to what is behind it."""
        x, low = self._left + box.depth * ACROSS, box.y - box.height / 2
        shape = self.matplotlib.patches.FancyBboxPatch(
            (x, low),
            WIDTH,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={0.16 if box.is_leaf else 0.04}",
            facecolor=box.colour,
            edgecolor=box.frame,
            linewidth=0.8 * self._scale,
            zorder=2,
        )
        self.ax.add_patch(shape)
        at = x
        for share, colour in box.bar:
            self.rectangle(at, low, WIDTH * share, BAR, colour, shape)
            at += WIDTH * share
        for i, line in enumerate(box.lines):
            y, weight = low + box.height - PAD - (i + 0.5) * LINE, "normal"
            if i < box.n_bold:
                weight = "bold"
            self._fit(self.write(x + WIDTH / 2, y, line, ha="center", color=box.ink, weight=weight))
        if box.is_cut:
            self.note(x + WIDTH + 0.06, box.y, "•••", 0.9)
        for word, side, sign in zip(("yes", "no"), box.branches, (1, -1), strict=True):
            start = x + WIDTH, box.y + sign * EXIT
            self._draw_edges(start, side)
            if side:
                self.note(start[0] + 0.04, start[1] + sign * 0.1, word)

    def _fit(self, text: Any) -> None:
        """Make letters smaller until a text is no wider than a box."""
        room = 0.97 * WIDTH * self.dots
        for _ in range(MOST_FITTINGS):  # letters may be wide, and are as many dots as are whole
            wide = text.get_window_extent().width
            if wide <= room:
                break
            text.set_fontsize(text.get_fontsize() * 0.98 * room / wide)

    def _draw_edges(self, start: tuple[float, float], boxes: Sequence[Box]) -> None:
        """Curves that begin and end level; dashed ones to several boxes."""
        path = self.matplotlib.path.Path
        for box in boxes:
            end = self._left + box.depth * ACROSS, box.y
            turn = (start[0] + end[0]) / 2
            points = [start, (turn, start[1]), (turn, end[1]), end]
            curve = path(points, [path.MOVETO, path.CURVE4, path.CURVE4, path.CURVE4])
            style = box.edge | {"linewidth": box.edge["linewidth"] * self._scale}
            style["linestyle"] = (0, (2.0, 1.2)) if len(boxes) > 1 else "solid"
            patch = self.matplotlib.patches.PathPatch(
                curve, facecolor="none", zorder=1, capstyle="butt", **style
            )
            self.ax.add_patch(patch)


def wrapped(text: str, max_lines: int) -> list[str]:
    """Text in lines of a box; a longer one ends with dots."""
    return textwrap.wrap(
        text, LETTERS, max_lines=max_lines, placeholder=" ...", break_on_hyphens=False
    )


def new_axes(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The axes that are given, or those of a new figure; ImportError without matplotlib."""
    if ax is not None:
        return ax
    pyplot = matplotlib_or_error("dtrees").pyplot
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def matplotlib_or_error(function: str) -> Any:
    """Import matplotlib for a function, or say how to get it."""
    matplotlib = extra("matplotlib", of="plot", for_=function)
    for part in ("patches", "path", "patheffects", "pyplot"):
        import_module(f"matplotlib.{part}")
    return matplotlib
