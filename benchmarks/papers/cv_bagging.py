"""[CV] figures 15 to 17: bags of trees grown together, against as many trees one by one."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

import dtrees
from benchmarks.cases import Case, Page, Scale, Survey, Table
from benchmarks.measure import in_turns
from benchmarks.papers import drawing
from benchmarks.papers.figures import CV_BAGS, CV_LEAF, CV_MOST_OF_BAGGING
from benchmarks.papers.sides import CLOCK, interval, tree_of
from benchmarks.papers.tables import CV_SETS, QUICK_SETS, present, rows_of

TURNS, BUDGET = 3, 2.0  # of a point, seconds
OVER_BAGS, OVER_ROWS = (10, 25, 50, 100), (20, 60, 100)
MIDDLE = ["Adult", "Nursery", "LED", "Pen Digits", "Spam", "Abalone", "Car", "Yeast"]
PAGE = Page(
    "cv-bagging",
    "[CV] figures 15 to 17: bagging",
    "H. Blockeel, J. Struyf (2002), 4.3: trees of n samples with replacement, grown by the "
    "algorithm for overlapping sets, against the same trees one after the other. The figures are "
    "bars and curves without numbers; of them the text says that for two propositional sets there "
    f"is a loss, and that speedups are limited to a factor of about {CV_MOST_OF_BAGGING:.0f}. "
    "Figure 15 is of relational data, which cannot be had.\n\n"
    f"Ours is a forest that draws no columns (`BaggingClassifier`, `BaggingRegressor`), leaves of "
    f"at least {CV_LEAF} rows, exact numbers. It codes the table once and weighs each row by how "
    "often it was drawn; trees are grown one by one from these codes. *Serial* is a fit of each "
    "drawn table, rows repeated as drawn, cut out before the clock runs. Processor time of one "
    "thread.",
)
BARS = Table(
    (
        f"{CV_BAGS} bags",
        "one fit, ms",
        "serial, times one fit",
        "forest, times one fit",
        "serial / forest",
    ),
)


def drawn(X: Any, y: np.ndarray, n_bags: int) -> list[tuple[Any, np.ndarray]]:
    """Tables of rows drawn with replacement."""
    rng = np.random.default_rng(0)
    draws = (rng.integers(0, len(y), len(y)) for _ in range(n_bags))
    return [(rows_of(X, rows), y[rows]) for rows in draws]


def medians(X: Any, y: np.ndarray, n_bags: int, turns: int) -> tuple[float, float, float]:
    """Seconds of one fit, of the forest, and of as many single fits."""
    tree = tree_of(y)
    kind = dtrees.BaggingRegressor if y.dtype.kind == "f" else dtrees.BaggingClassifier
    forest = kind(n_bags, min_samples_leaf=CV_LEAF, max_bins=None, random_state=0, n_jobs=1)
    bags = drawn(X, y, min(n_bags, CV_BAGS))
    works = (
        lambda: clone(tree).fit(X, y),
        lambda: clone(forest).fit(X, y),
        lambda: [clone(tree).fit(*bag) for bag in bags],
    )
    (one, ours, serial), _ = in_turns(works, turns, BUDGET, CLOCK)
    return one, ours, serial * n_bags / len(bags)


def _bar_lines(
    sets: dict[str, Any], n_bags: int, turns: int, found: dict[str, tuple[float, float]]
) -> Iterator[tuple[str, ...]]:
    for name, (X, y) in sets.items():
        one, ours, serial = medians(X, y, n_bags, turns)
        found[name] = serial / one, ours / one
        yield (
            name,
            f"{1e3 * one:.1f}",
            f"{serial / one:.1f}",
            f"{ours / one:.1f}",
            f"{serial / ours:.1f}",
        )


def _bar_findings(found: dict[str, tuple[float, float]]) -> str:
    gains = {name: serial / ours for name, (serial, ours) in found.items()}
    losses = [name for name, gain in gains.items() if gain < 1]
    lost = f"a loss on {', '.join(losses)}" if losses else "no loss on any set"
    smallest = sorted(gains, key=gains.__getitem__)[:2]
    return (
        f"The paper has small gains, about {CV_MOST_OF_BAGGING:.0f} times at most and two losses. "
        f"**What agrees.** The gain is {statistics.median(gains.values()):.1f} times in the "
        f"median; it is least where the trees are large ({' and '.join(smallest)}, "
        f"{min(gains.values()):.1f} times at least), with {lost}. **What does not.** It goes up to "
        f"{max(gains.values()):.1f}, and does not come from counting bags together, which ours "
        "does not do: the table is checked and coded once, and a bag has each row once with a "
        "weight, .63 of the rows, where a drawn table repeats them. Bags part soon (bagging is for "
        "unstable trees), so that a shared count would be paid for every bag, as the paper says of "
        "its own."
    )


def _bar_picture(found: dict[str, tuple[float, float]]) -> bytes:
    figure, axes = drawing.canvas(8.4, 3.2)
    places = np.arange(len(found))
    for shift, side, color, label in (
        (-0.2, 0, drawing.SERIAL, "serial"),
        (0.2, 1, drawing.OURS, "forest"),
    ):
        axes.bar(places + shift, [v[side] for v in found.values()], 0.36, color=color, label=label)
    axes.axhline(CV_BAGS, color="0.5", linewidth=0.8)
    drawing.plain(axes, f"{CV_BAGS} bags; the line: {CV_BAGS} fits", y="times one fit of all rows")
    drawing.names_below(axes, [*found])
    drawing.legend(axes, 2)
    return drawing.png(figure)


def _bars(scale: Scale) -> Survey:
    sets = present(CV_SETS, scale, [*QUICK_SETS] if scale.quick else None)
    found: dict[str, tuple[float, float]] = {}
    turns, n_bags = (1, 3) if scale.quick else (TURNS, CV_BAGS)
    return Survey(
        BARS,
        lambda: _bar_lines(sets, n_bags, turns, found),
        lambda: _bar_picture(found),
        lambda: _bar_findings(found),
    )


def _curve_lines(
    what: str,
    sets: dict[str, Any],
    points: tuple[int, ...],
    turns: int,
    found: dict[int, dict[str, float]],
) -> Iterator[tuple[str, ...]]:
    rng = np.random.default_rng(0)
    for name, (X, y) in sets.items():
        order = rng.permutation(len(y))
        cells = []
        for point in points:
            n_bags, share = (point, 100) if what == "bags" else (CV_BAGS, point)
            part = np.sort(order[: len(y) * share // 100])
            _, ours, serial = medians(rows_of(X, part), y[part], n_bags, turns)
            found.setdefault(point, {})[name] = serial / ours
            cells.append(f"{serial / ours:.1f}")
        yield (name, *cells)
    spread = [interval([*each.values()]) for each in found.values()]
    yield ("mean, 90 % interval", *(f"{mean:.1f} ± {half:.1f}" for mean, half in spread))


def _curve_findings(what: str, found: dict[int, dict[str, float]]) -> str:
    means = {point: interval([*each.values()])[0] for point, each in found.items()}
    first, last = min(means), max(means)
    grown = f"{means[first]:.1f} times for {first} and {means[last]:.1f} for {last}"
    if what == "bags":
        return (
            f"**What agrees.** The number of bags matters little, {grown}: bags do not become "
            "more alike when there are more of them."
        )
    return (
        f"The paper has a small positive effect of the sample size. Ours is {grown} %: what is "
        "paid once for a table weighs most where it is small."
    )


def _curves(what: str, scale: Scale) -> Survey:
    points = OVER_BAGS if what == "bags" else OVER_ROWS
    names, turns = MIDDLE, TURNS
    if scale.quick:
        names, points, turns = ["LED", "Car"], points[:1], 1
    sets = present(CV_SETS, scale, names)
    unit = "bags" if what == "bags" else "% of the rows"
    note = (
        "[CV] figure 17, left: serial / forest over the number of bags. Of more than "
        f"{CV_BAGS} serial fits {CV_BAGS} were run and multiplied."
        if what == "bags"
        else f"[CV] figure 17, right: the same for {CV_BAGS} bags of a random part of the rows."
    )
    found: dict[int, dict[str, float]] = {}
    return Survey(
        Table(("data set", *(f"{point} {unit}" for point in points)), note),
        lambda: _curve_lines(what, sets, points, turns, found),
        lambda: drawing.gains(found, unit, "Serial / forest"),
        lambda: _curve_findings(what, found),
    )


CASES = [
    Case(
        "cv-bagging-sets",
        "papers",
        f"[CV] figure 16: {CV_BAGS} bags against single fits",
        _bars,
        page=PAGE,
    ),
    *(
        Case(
            f"cv-bagging-{what}",
            "papers",
            f"[CV] figure 17: bags against single fits over the {words}",
            partial(_curves, what),
            page=PAGE,
        )
        for what, words in (("bags", "number of bags"), ("rows", "share of the rows"))
    ),
]
