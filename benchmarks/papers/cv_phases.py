"""[CV] figures 9 to 11: where the time of a cross-validation goes, and at which level sets part."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit

from benchmarks.cases import Case, Page, Scale, Survey, Table
from benchmarks.measure import timed
from benchmarks.papers import drawing
from benchmarks.papers.levels import MARKS, Level, levels_of, saved
from benchmarks.papers.sides import FOLDS, sides_of, splits_of, tree_of
from benchmarks.papers.tables import CV_SETS, QUICK_SETS, present
from dtrees.estimators.training_sets import fit_sets
from dtrees.model_selection import cross_validate

TURNS = 3
FEW = 3  # folds on their own
PAGE = Page(
    "cv-phases",
    "[CV] figures 9 to 11: where the time goes, and where the folds part",
    "H. Blockeel, J. Struyf (2002), figures 9, 10 and 11: the times of the serial algorithm, of "
    "overlapping sets (OS) and of the cross-validation algorithm (CV), in parts and in units of "
    "the tree of all rows; and by level the time and the number of folds that are handled on "
    "their own. The figures are bars and curves without numbers. Figure 9 and part of figure 10 "
    "are of relational data (Bongard, Mutagenesis, ASM, Machines), which cannot be had and which "
    "dtrees does not take; here are the sets of table 1. Leaves of at least ten rows, one thread.",
)
PARTS = ("coding", "growth", "what is left")
WORKS = ("one fit", "serial", "overlapping", "folds", "folds and scores")
PHASES = Table(
    (
        "data set",
        "one fit, ms",
        *WORKS,
    ),
    "In units of one fit: all = coding + growth + what is left (models, and scores where there "
    "are some). *One fit*: all rows. *Serial*: ten training sides and all rows, one after the "
    "other. *Folds*: the same together. *Overlapping*: ten random nine tenths of the rows and all "
    "rows, together; they have no folds in common, as in the paper's OS. *Folds and scores*: "
    "`cross_validate`. Coding and growth are what `fit_report_` says, medians of turns.",
)
LEVELS = Table(
    (
        "data set",
        "nodes of the tree of all rows",
        *(f"f at level {i}" for i in MARKS),
        "reads alone / together",
        "the same, very same tests only",
    ),
    "*f* is the number of folds that are handled on their own, 1 to 10, weighted by rows; sets "
    "stay together while they ask about the same columns. *Reads* are rows times nodes and sets: "
    "what counting and parting could gain at most. The last column is without [CV] 3.4: sets part "
    "as soon as thresholds or categories differ.",
)


@dataclass
class Phases:
    """Seconds of a piece of work: all, and of its parts."""

    total: list[float] = field(default_factory=list)
    coding: list[float] = field(default_factory=list)
    growth: list[float] = field(default_factory=list)

    def add(self, seconds: float, reports: Sequence[dict[str, Any]]) -> None:
        """A turn, and what its fits report."""
        self.total.append(seconds)
        for name, mine in (("coding", self.coding), ("growth", self.growth)):
            mine.append(sum(report["seconds"].get(name, 0.0) for report in reports))

    def medians(self) -> tuple[float, float, float, float]:
        """Of all, coding, growth, and what is left."""
        total = statistics.median(self.total)
        coding, growth = statistics.median(self.coding), statistics.median(self.growth)
        return total, coding, growth, max(0.0, total - coding - growth)


def works_of(X: Any, y: np.ndarray) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Work, and the reports of what it returns, by name."""
    sides, tree, splits = sides_of(X, y), tree_of(y), splits_of(y, FOLDS)
    sets = np.ones((FOLDS + 1, len(y)), dtype=bool)
    overlapping = ShuffleSplit(FOLDS, test_size=0.1, random_state=0).split(y)
    for mine, (_, test) in zip(sets, overlapping, strict=False):
        mine[test] = False
    works = (
        (sides.actual, lambda model: [model.fit_report_]),
        (sides.serial, lambda models: [model.fit_report_ for model in models]),
        (
            lambda: fit_sets(tree, X, y, None, sets),
            lambda found: [found.models[0].fit_report_],
        ),
        (sides.together, lambda found: [found.models[0].fit_report_]),
        (
            lambda: cross_validate(tree, X, y, cv=splits),
            lambda found: [found["final_estimator"].fit_report_],
        ),
    )
    return dict(zip(WORKS, works, strict=True))


def _phase_lines(
    sets: dict[str, Any], turns: int, found: dict[str, dict[str, list[float]]]
) -> Iterator[tuple[str, ...]]:
    for name, (X, y) in sets.items():
        works = works_of(X, y)
        phases = {work: Phases() for work in works}
        for turn in range(turns + 1):
            for work, (run, reports) in works.items():
                seconds, result = timed(run)
                if turn:  # the first does not count
                    phases[work].add(seconds, reports(result))
        one = phases["one fit"].medians()[0]
        found[name] = {
            work: [part / one for part in each.medians()] for work, each in phases.items()
        }
        cells = (
            f"{all_:.1f} = {coding:.1f} + {growth:.1f} + {rest:.1f}"
            for all_, coding, growth, rest in found[name].values()
        )
        yield (name, f"{1e3 * one:.1f}", *cells)


def _phase_findings(found: dict[str, dict[str, list[float]]]) -> str:
    def middle(work: str, part: int) -> float:
        return statistics.median(each[work][part] for each in found.values())

    overlap = statistics.median(
        each["overlapping"][0] / each["folds"][0] for each in found.values()
    )
    return (
        f"**What agrees.** The order of the three algorithms: the median of the sets is "
        f"{middle('serial', 0):.1f} fits serially, {middle('overlapping', 0):.1f} for overlapping "
        f"sets and {middle('folds', 0):.1f} for folds. Folds gain over overlapping sets "
        f"({overlap:.2f} times), since a row is counted once in the cell of its fold instead of "
        "once in each set. **What does not.** The paper's parts are tests, updates of statistics "
        "and sorting; a histogram of codes does the first two in one step and needs no sorting, "
        f"and our kernels have no clock. What is left of sorting is coding: "
        f"{middle('one fit', 1):.0%} of one fit, paid once by folds and eleven times serially "
        f"({middle('serial', 1):.1f} fits). On small tables that is most of the gain."
    )


def _phase_picture(found: dict[str, dict[str, list[float]]]) -> bytes:
    figure, axes = drawing.canvas(8.4, 3.8)
    shown = ("serial", "overlapping", "folds")
    names = list(found)
    for place, work in enumerate(shown):
        at = np.arange(len(names)) + 0.27 * (place - 1)
        bottom = np.zeros(len(names))
        for part, color in enumerate(drawing.LIGHT[:3], start=1):
            heights = np.array([found[name][work][part] for name in names])
            label = PARTS[part - 1] if place == 0 else None
            axes.bar(at, heights, 0.24, bottom, color=color, label=label)
            bottom += heights
    axes.axhline(1.0, color="0.4", linewidth=0.8)
    drawing.plain(axes, "Serial, overlapping sets, folds (left to right)", y="times one fit")
    drawing.names_below(axes, names)
    drawing.legend(axes, 3)
    return drawing.png(figure)


def _phases(scale: Scale) -> Survey:
    sets = present(CV_SETS, scale, [*QUICK_SETS] if scale.quick else None)
    found: dict[str, dict[str, list[float]]] = {}
    return Survey(
        PHASES,
        lambda: _phase_lines(sets, 1 if scale.quick else TURNS, found),
        lambda: _phase_picture(found),
        lambda: _phase_findings(found),
    )


def _level_lines(
    sets: dict[str, Any], found: dict[str, tuple[list[Level], list[Level]]]
) -> Iterator[tuple[str, ...]]:
    for name, (X, y) in sets.items():
        models = sides_of(X, y).together().models
        trees = [model.tree_.model for model in models]
        column, test = levels_of(trees), levels_of(trees, exact=True)
        if column:
            found[name] = column, test
        marks = (f"{column[i].folds(FOLDS):.1f}" if i < len(column) else "-" for i in MARKS)
        n_nodes = f"{len(trees[-1].test):,}"
        yield (name, n_nodes, *marks, f"{saved(column):.1f}", f"{saved(test):.1f}")


def _level_findings(found: dict[str, tuple[list[Level], list[Level]]]) -> str:
    gains = {name: saved(column) for name, (column, _) in found.items()}
    best, worst = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    pairs = [(saved(column), saved(test)) for column, test in found.values()]
    middle = [statistics.median(values) for values in zip(*pairs, strict=True)]
    early = statistics.median(
        sum(level.alone for level in column if level.folds(FOLDS) <= FEW)
        / sum(level.alone for level in column)
        for column, _ in found.values()
    )
    return (
        "**What agrees.** f begins at 1 and grows from level to level, at once on unstable sets "
        f"and late on stable ones ({best} reads {gains[best]:.1f} times fewer rows together, "
        f"{worst} {gains[worst]:.1f} times); {early:.0%} of what is read alone is read at levels "
        f"where f is at most {FEW} (median). The treatment of thresholds in [CV] 3.4 is worth it: "
        f"sets that part only by column read {middle[0]:.1f} times fewer rows, those that part by "
        f"the very same test {middle[1]:.1f} times (medians). **What does not.** The paper has "
        "times by level, of queries to a relational database whose costs vary from row to row; our "
        "kernels have no clock by level, so that reads stand for them."
    )


def _level_picture(found: dict[str, tuple[list[Level], list[Level]]]) -> bytes:
    most = sorted(found, key=lambda name: -sum(level.alone for level in found[name][0]))[:8]
    figure, grid = drawing.canvas(9.0, 4.4, 4, 2)
    for axes, name in zip(grid.ravel(), most, strict=False):
        column, test = found[name]
        axes.plot([level.folds(FOLDS) for level in column], color=drawing.OURS, label="by column")
        axes.plot(
            [level.folds(FOLDS) for level in test],
            color=drawing.PAPER,
            linestyle="--",
            label="very same test",
        )
        alone = np.array([level.alone for level in column], dtype=float)
        axes.fill_between(
            range(len(alone)),
            10 * alone / alone.max(),
            color="0.9",
            label="reads by level, alone (no scale)",
        )
        axes.set_ylim(0, 10.5)
        axes.locator_params(axis="x", integer=True)
        drawing.plain(axes, name, "level", "folds")
    for axes in grid.ravel()[len(most) :]:
        axes.set_visible(False)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="upper right", frameon=False, fontsize=8.5)
    figure.suptitle(
        "Folds that are handled on their own, by level", fontsize=10.5, x=0.02, ha="left"
    )
    return drawing.png(figure)


def _levels(scale: Scale) -> Survey:
    sets = present(CV_SETS, scale, [*QUICK_SETS] if scale.quick else None)
    found: dict[str, tuple[list[Level], list[Level]]] = {}
    return Survey(
        LEVELS,
        lambda: _level_lines(sets, found),
        lambda: _level_picture(found),
        lambda: _level_findings(found),
    )


CASES = [
    Case(
        "cv-phases-time",
        "papers",
        "[CV] figures 9 and 11: the time of a cross-validation by part",
        _phases,
        page=PAGE,
    ),
    Case(
        "cv-phases-levels",
        "papers",
        "[CV] figure 10: folds that are handled on their own, by level",
        _levels,
        page=PAGE,
    ),
]
