"""Seconds of a cross-validation over the number of folds: a table and a picture.

Each side grows the trees of n folds and the one of all rows, and scores the folds::

    dtrees         `cross_validate`: one coding, one growth
    one by one     n + 1 fits of dtrees, rows that are held out weigh nothing: the same trees
    scikit-learn   its own `cross_validate` and a fit, trees of ordinal codes; on two threads or in
                   two processes, whichever is faster

and one fit of dtrees is the unit. All four take turns. A point that would take longer than
`PATIENCE` if seconds grew with the folds from the last one is left out, and so are those behind it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
import sklearn.model_selection
import sklearn.tree
from sklearn.base import clone
from sklearn.model_selection import KFold

from benchmarks import data
from benchmarks.cases import THREADS, Case, Scale, Skipped, Survey, Table
from benchmarks.measure import in_turns, timed
from benchmarks.report import ratio, seconds
from benchmarks.validation.ratios import estimator_of
from dtrees.model_selection import cross_validate

FOLDS = (3, 5, 10, 20, 50)
LEAF = 10
TURNS, BUDGET = 5, 20.0  # of a point, seconds
PATIENCE = 100.0  # seconds
NAMES = {"adult": "Adult census", "connect4": "Connect-4"}
COLORS = {"scikit-learn": "#c4561b", "one by one": "#727c85", "dtrees": "#0b62a4"}
LABELS = {"one by one": "dtrees, one by one"}
WAYS = {"threads": "threading", "processes": "loky"}
TABLE = Table(
    (
        f"leaves of at least {LEAF}",
        "folds",
        "one fit, ms",
        "dtrees, s",
        "one by one, s",
        "scikit-learn, s",
        "dtrees, times one fit",
        "one by one",
        "scikit-learn",
        "scikit-learn / dtrees",
        "scikit-learn had 2",
    ),
    "All folds, their scores, and the final model; medians of turns side by side, coding included. "
    "*One by one* are fits of dtrees with zero weights, the same trees. 255 codes, two threads; "
    "scikit-learn has ordinal codes, and two threads or processes for the folds.",
)


@dataclass
class Work:
    """A table, and what has been measured on it.

    Attributes
    ----------
    title : str
    X, y
    numbers : float32 (n_rows, n_columns)
        For scikit-learn.
    seconds : dict of side to dict of number of folds to float
    """

    title: str
    X: Any
    y: np.ndarray
    numbers: np.ndarray
    seconds: dict[str, dict[int, float]] = field(default_factory=lambda: {s: {} for s in COLORS})

    def wanted(self, side: str, n: int) -> bool:
        """Whether a point is likely to take less than `PATIENCE`."""
        points = self.seconds[side]
        last = max(points, default=None)
        return last is None or points[last] * n / last <= PATIENCE


def one_by_one(tree: Any, work: Work, splits: Sequence[Any]) -> None:
    """A fit for each fold, and its score; and one of all rows."""
    for train, test in splits:
        weight = np.zeros(len(work.y))
        weight[train] = 1.0
        model = clone(tree).fit(work.X, work.y, sample_weight=weight)
        model.score(work.X.iloc[test], work.y[test])
    clone(tree).fit(work.X, work.y)


def scikit_learn(work: Work, splits: Sequence[Any], way: str) -> None:
    """The same by scikit-learn."""
    tree = sklearn.tree.DecisionTreeClassifier(min_samples_leaf=LEAF, random_state=0)
    with joblib.parallel_config(WAYS[way]):
        sklearn.model_selection.cross_validate(
            tree, work.numbers, work.y, cv=splits, n_jobs=THREADS
        )
    tree.fit(work.numbers, work.y)


def measure(work: Work, n: int, turns: int) -> tuple[str, ...]:
    """The line of a number of folds."""
    tree = estimator_of(work.y, 0, {"min_samples_leaf": LEAF})
    splits = list(KFold(n, shuffle=True, random_state=0).split(work.y))
    sides: dict[str, Callable[[], Any]] = {
        "one fit": lambda: clone(tree).fit(work.X, work.y),
        "dtrees": lambda: cross_validate(tree, work.X, work.y, cv=splits),
        "one by one": lambda: one_by_one(tree, work, splits),
    }
    faster = "-"
    if work.wanted("scikit-learn", n):
        first = {way: timed(lambda way=way: scikit_learn(work, splits, way))[0] for way in WAYS}
        faster = min(WAYS, key=first.__getitem__)
        sides["scikit-learn"] = lambda: scikit_learn(work, splits, faster)
    sides = {side: run for side, run in sides.items() if side == "one fit" or work.wanted(side, n)}
    found = dict(zip(sides, in_turns(list(sides.values()), turns, BUDGET)[0], strict=True))
    for side, points in work.seconds.items():
        if side in found:
            points[n] = found[side]
    one = found["one fit"]
    order = ("dtrees", "one by one", "scikit-learn")
    return (
        work.title,
        str(n),
        f"{1e3 * one:.1f}",
        *(seconds(found.get(side)) for side in order),
        *(ratio(found[side] / one) if side in found else "-" for side in order),
        ratio(found["scikit-learn"] / found["dtrees"]) if "scikit-learn" in found else "-",
        faster,
    )


def draw(works: Sequence[Work]) -> bytes:
    """A PNG with a panel for each table."""
    import PIL.Image  # matplotlib's
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8.4, 3.6), facecolor="white")
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.04, right=0.828, top=0.8, bottom=0.13, wspace=0.72)
    for place, work in enumerate(works, 1):
        axes = figure.add_subplot(1, len(works), place)
        ends: dict[str, tuple[int, float]] = {}
        for side, points in work.seconds.items():
            n, t = list(points), list(points.values())
            bold = {"linewidth": 2.6, "markersize": 5.5} if side == "dtrees" else {}
            style = {"linewidth": 1.8, "markersize": 4.5} | bold
            axes.plot(n, t, "o-", color=COLORS[side], clip_on=False, zorder=3, **style)
            ends[side] = n[-1], t[-1]
        top = max(t for _, t in ends.values())
        axes.set_ylim(0, 1.04 * top)
        axes.set_xlim(0, max(max(points) for points in work.seconds.values()))
        for (side, (n, t)), at in zip(ends.items(), apart(ends, 0.15 * top), strict=True):
            axes.annotate(
                f"{LABELS.get(side, side)}\n{t:.{3 if t >= 10 else 2}g} s",
                (n, at),
                (9, 0),
                textcoords="offset points",
                color=COLORS[side],
                va="center",
                fontsize=9.5,
                linespacing=1.25,
                fontweight="bold" if side == "dtrees" else "normal",
                annotation_clip=False,
            )
        axes.set_title(work.title, loc="left", fontsize=9.5, color="0.25", pad=7)
        axes.set_xticks([n for n in next(iter(work.seconds.values())) if n != 5])
        axes.set_xlabel("folds", fontsize=9.5, color="0.35", labelpad=2)
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        axes.tick_params(length=0, labelsize=9, labelcolor="0.35", pad=5)
        axes.grid(axis="y", color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color("0.7")
    figure.text(
        0.012,
        0.94,
        "Cross-validation and the final model, seconds over the number of folds",
        fontsize=11.5,
        fontweight="bold",
        color="0.1",
        va="center",
    )
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=200)
    small = io.BytesIO()  # a palette of the few colours there are
    PIL.Image.open(out).convert("RGB").quantize(64).save(small, format="png", optimize=True)
    return small.getvalue()


def apart(ends: dict[str, tuple[int, float]], least: float) -> list[float]:
    """Heights of labels at the ends of lines, moved up where they would touch; in their order."""
    heights = {}
    below = -np.inf
    for side in sorted(ends, key=lambda side: ends[side][1]):
        heights[side] = below = max(ends[side][1], below + least)
    return [heights[side] for side in ends]


def _survey(scale: Scale) -> Survey:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise Skipped("matplotlib is not installed") from error
    works = []
    for name, title in NAMES.items():
        X, y = data.real_part(name, scale)
        full = f"{title}, {X.shape[0]:,} × {X.shape[1]}"
        works.append(Work(full, X, y, data.ordinal(X)))
    n_folds, turns = (FOLDS[:2], 1) if scale.quick else (FOLDS, TURNS)

    def lines() -> Iterator[tuple[str, ...]]:
        for work in works:
            for n in n_folds:
                yield measure(work, n, turns)

    return Survey(TABLE, lines, lambda: draw(works))


CASES = [
    Case(
        "folds",
        "folds",
        f"n folds and the final model, n of {FOLDS[0]} to {FOLDS[-1]}, with a picture",
        _survey,
    )
]
