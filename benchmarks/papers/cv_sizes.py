"""[CV] figures 12 and 13: the gain over the number of folds and over the share of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.measure import in_turns
from benchmarks.papers import drawing
from benchmarks.papers.cv_phases import PAGE
from benchmarks.papers.sides import CLOCK, FOLDS, interval, sides_of
from benchmarks.papers.tables import CV_SETS, QUICK_SETS, present, rows_of

TURNS, BUDGET = 3, 1.2  # of a point, seconds
OVER_FOLDS, OVER_ROWS = (3, 5, 10, 20), (20, 40, 70, 100)
NAMES = [name for name in CV_SETS if name != "Internet Ads"]
NOTES = {
    "folds": "[CV] figure 12: serial / together for n folds and the tree of all rows; the mean of "
    "the sets and its 90 % interval. Processor time of one thread.",
    "rows": "[CV] figure 13: the same for ten folds of a random part of the rows.",
}

Points = dict[int, dict[str, float]]  # by number of folds or percentage, and by data set


def table(what: str, points: tuple[int, ...]) -> Table:
    """A column for each number of folds, or percentage of rows."""
    unit = "folds" if what == "folds" else "% of the rows"
    return Table(("data set", *(f"{point} {unit}" for point in points)), NOTES[what])


def speedup(X: Any, y: np.ndarray, n_folds: int, turns: int) -> float:
    """Serial / together."""
    sides = sides_of(X, y, n_folds)
    (together, serial), _ = in_turns((sides.together, sides.serial), turns, BUDGET, CLOCK)
    return serial / together


def _lines(
    what: str, sets: dict[str, Any], points: tuple[int, ...], turns: int, found: Points
) -> Iterator[tuple[str, ...]]:
    rng = np.random.default_rng(0)
    for name, (X, y) in sets.items():
        order = rng.permutation(len(y))
        cells = []
        for point in points:
            if what == "folds":
                value = speedup(X, y, point, turns)
            else:
                part = np.sort(order[: len(y) * point // 100])
                value = speedup(rows_of(X, part), y[part], FOLDS, turns)
            found.setdefault(point, {})[name] = value
            cells.append(f"{value:.1f}")
        yield (name, *cells)
    spread = [interval([*each.values()]) for each in found.values()]
    yield ("mean, 90 % interval", *(f"{mean:.1f} ± {half:.1f}" for mean, half in spread))


def _findings(what: str, found: Points) -> str:
    means = {point: interval([*each.values()])[0] for point, each in found.items()}
    first, last = min(means), max(means)
    if what == "folds":
        return (
            f"**What agrees.** The gain grows with the number of folds, {means[first]:.1f} times "
            f"for {first} and {means[last]:.1f} for {last}, and so does its spread: stable sets "
            "approach the number of folds, unstable ones do not. The paper calls it a clear "
            "increase."
        )
    return (
        f"The paper finds a small increase with the rows. Ours is {means[first]:.1f} times for "
        f"{first} % and {means[last]:.1f} for {last} %. Two things are against each other here: "
        "what a fit does once for its table (checks, categories, codes, the model) is shared "
        "whatever the rows are, and weighs most on few; more rows make the upper nodes stable, "
        "but the trees deeper, and deep nodes are of sets alone."
    )


def _survey(what: str, scale: Scale) -> Survey:
    points = OVER_FOLDS if what == "folds" else OVER_ROWS
    names, turns = NAMES, TURNS
    if scale.quick:
        names, points, turns = [n for n in QUICK_SETS if n in NAMES], (points[0], points[-2]), 1
    sets = present(CV_SETS, scale, names)
    found: Points = {}
    unit = "folds" if what == "folds" else "% of the rows, ten folds"
    return Survey(
        table(what, points),
        lambda: _lines(what, sets, points, turns, found),
        lambda: drawing.gains(found, unit, "Serial / together"),
        lambda: _findings(what, found),
    )


CASES = [
    Case(
        f"cv-phases-{what}",
        "papers",
        f"[CV] figure {number}: serial / together over the {words}",
        partial(_survey, what),
        page=PAGE,
    )
    for what, number, words in (
        ("folds", 12, "number of folds"),
        ("rows", 13, "share of the rows"),
    )
]
