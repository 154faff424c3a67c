"""Time over rows and over columns, beside scikit-learn: a table and a picture.

Every point is a whole fit of a few fully grown trees, two threads on both sides. scikit-learn is
not asked for a point that would take longer than `PATIENCE` if time grew with the size from its
last one: its curve ends there, and is not drawn further. An exponent b is that of the line
log(seconds) = a + b log(size), fitted by least squares to all points of a curve.
"""

from __future__ import annotations

import gc
import io
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.cases import Case, Scale, Skipped, Survey, Table
from benchmarks.forests import opponents
from benchmarks.measure import timed
from benchmarks.report import ratio, seconds

TREES = 4
PATIENCE = 200.0  # seconds
SHORT = 1.0  # seconds; shorter fits are timed three times
ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
COLUMNS = (10, 30, 100, 300, 1_000)
ROWS_OF_WIDE, COLUMNS_OF_LONG = 50_000, 30
SIDES = {"dtrees": opponents.ours, "scikit-learn": opponents.scikit_learn}
COLORS = {"dtrees": "#0b62a4", "scikit-learn": "#c4561b"}
TABLE = Table(
    (f"{TREES} trees, fully grown", "size", "dtrees, s", "scikit-learn, s", "ratio"),
    "Two classes, the square root of the columns drawn. An exponent is the slope of a line through "
    "the curve's points on logarithmic axes; the ratio beside it is that of the largest size that "
    "both have.",
)


@dataclass(frozen=True)
class Curves:
    """Seconds of both sides over a size.

    Attributes
    ----------
    over : {"rows", "columns"}
    other : str
        The size that stays the same.
    sizes : sequence of int
    seconds : dict of side to dict of size to float
        What has been measured so far.
    """

    over: str
    other: str
    sizes: Sequence[int]
    seconds: dict[str, dict[int, float]] = field(default_factory=lambda: {s: {} for s in SIDES})

    def exponent(self, side: str) -> float:
        """Slope of the curve on logarithmic axes."""
        points = self.seconds[side]
        return float(np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0])

    def wanted(self, side: str, size: int) -> bool:
        """Whether a point is likely to take less than `PATIENCE`."""
        points = self.seconds[side]
        last = max(points, default=None)
        return last is None or points[last] * size / last <= PATIENCE

    def measure(self, X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, ...]]:
        """Points of one table, size by size; X holds the largest."""
        for size in self.sizes:
            rows, columns = (size, X.shape[1]) if self.over == "rows" else (X.shape[0], size)
            table = np.ascontiguousarray(X[:rows, :columns])
            for side, fit in SIDES.items():
                if self.wanted(side, size):
                    self.seconds[side][size] = taken(fit, table, y[:rows])
            ours, theirs = (self.seconds[side].get(size) for side in SIDES)
            assert ours is not None
            yield (
                f"over {self.over}, {self.other}",
                f"{size:,}",
                seconds(ours),
                seconds(theirs),
                "-" if theirs is None else ratio(theirs / ours),
            )
        ours, theirs = (self.seconds[side] for side in SIDES)
        last = max(theirs)
        yield (
            f"over {self.over}: **exponent**",
            "",
            *(f"**{self.exponent(side):.2f}**" for side in SIDES),
            f"{ratio(theirs[last] / ours[last])} at {last:,}",
        )


def taken(fit: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of a fit: the median of three turns when they are short."""
    turns = [timed(lambda: fit(X, y, n_estimators=TREES))[0]]
    while len(turns) < 3 and turns[0] < SHORT:
        turns.append(timed(lambda: fit(X, y, n_estimators=TREES))[0])
    return statistics.median(turns)


def random_table(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes; 40 % of the columns, in random order, tell something, and 20 % repeat it."""
    X, y = make_classification(
        n_rows,
        n_columns,
        n_informative=n_columns * 2 // 5,
        n_redundant=n_columns // 5,
        flip_y=0.05,
        random_state=0,
    )
    X = X.astype(np.float32)
    gc.collect()
    return X, y


def draw(panels: Sequence[Curves]) -> bytes:
    """A PNG with a panel for each pair of curves."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    figure = Figure(figsize=(10.0, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    for place, curves in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), place, xscale="log", yscale="log")
        for side, points in curves.seconds.items():
            x, t = list(points), list(points.values())
            label = f"{side}: {curves.over}$^{{{curves.exponent(side):.2f}}}$"
            axes.plot(x, t, "o-", color=COLORS[side], label=label, markersize=5, linewidth=1.8)
            for at, offset in ((0, (6, -14)), (-1, (-6, 9))):
                axes.annotate(
                    f"{seconds(t[at])} s",
                    (x[at], t[at]),
                    offset,
                    textcoords="offset points",
                    color=COLORS[side],
                    ha="left" if at == 0 else "right",
                    fontsize=9,
                )
            middle = len(x) // 2
            axes.annotate(
                side,
                (x[middle], t[middle]),
                (-8, 8),
                textcoords="offset points",
                color=COLORS[side],
                ha="right",
                fontsize=11,
                fontweight="bold",
            )
        axes.set_title(f"{TREES} fully grown trees, {curves.other}", fontsize=11)
        axes.set_xlabel(curves.over)
        axes.set_ylabel("seconds of a fit")
        axes.set_xticks(curves.sizes)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.06, y=0.12)
        axes.grid(color="0.9", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower right", frameon=False, fontsize=9)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    return out.getvalue()


def short(value: float) -> str:
    """A size on an axis: 300, 30k, 3M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _survey(scale: Scale) -> Survey:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise Skipped("matplotlib is not installed") from error
    n_rows = scale.rows(ROWS_OF_WIDE)
    n_points = 2 if scale.quick else None
    rows, columns = [scale.rows(n) for n in ROWS[:n_points]], COLUMNS[:n_points]
    over_rows = Curves("rows", f"{COLUMNS_OF_LONG} columns", rows)
    over_columns = Curves("columns", f"{n_rows:,} rows", columns)

    def lines() -> Iterator[tuple[str, ...]]:
        yield from over_rows.measure(*random_table(rows[-1], COLUMNS_OF_LONG))
        yield from over_columns.measure(*random_table(n_rows, columns[-1]))

    return Survey(TABLE, lines, lambda: draw([over_rows, over_columns]))


CASES = [
    Case(
        "scale",
        "scale",
        f"{TREES} trees over 10,000 to 3,000,000 rows and 10 to 1,000 columns, with a picture",
        _survey,
    )
]
