"""The partitioned regime beside the local one: what it costs that rows are in several places.

The table is in memory for the local regime, and in chunks on the workers for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dtrees
from benchmarks.cases import Case, Contest, Scale, Skipped, Survey, Table
from benchmarks.cluster.places import DEPTH, TREES, Here, forest, placed, table, workers
from benchmarks.forests.cluster import same
from benchmarks.measure import contest
from benchmarks.report import seconds
from dtrees.model_selection import cross_validate

FOLDS, FOLDED_DEPTH = 10, 8
TABLE = Table(
    (
        f"forest of {TREES} trees, 500,000 × 30, two workers × 1 thread",
        "partitioned, s",
        "beside it, s",
        "times as long (least to greatest)",
        "at most",
        "aim",
        "verdict",
        "what the fit says of itself",
    ),
    "A verdict needs the same trees, bit for bit. Medians.",
)
Sides = Callable[[Here], tuple[Callable[[], Any], Callable[[], Any]]]


def to_a_depth(depth: int | None) -> Sides:
    """Partitioned and local, of the same depth."""

    def sides(here: Here) -> tuple[Callable[[], Any], Callable[[], Any]]:
        return (
            lambda: forest("partitioned", max_depth=depth).fit(*here.on_workers),
            lambda: forest("local", max_depth=depth).fit(here.X, here.y),
        )

    return sides


def folds(here: Here) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Ten folds and the final model, and one such fit, both partitioned."""
    model = forest("partitioned", max_depth=FOLDED_DEPTH)
    X, y = here.on_workers

    def together() -> Any:
        return cross_validate(model, X, y, cv=FOLDS, error_score="raise")

    return together, lambda: forest("partitioned", max_depth=FOLDED_DEPTH).fit(X, y)


WORKS: dict[str, tuple[str, Sides, float, float]] = {
    "local": (f"depth ≤ {DEPTH}, beside the local regime", to_a_depth(DEPTH), 2.5, 1.5),
    "full": ("fully grown, beside the local regime", to_a_depth(None), 3.0, 2.0),
    "folds": (
        f"{FOLDS} folds and the final model, depth ≤ {FOLDED_DEPTH}, beside one such fit",
        folds,
        3.5,
        2.5,
    ),
}


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    work, sides, most, aim = WORKS[name]
    with workers() as client:
        here = placed(client, table(scale))
        ours, theirs = sides(here)
        times = contest(
            Contest(
                ours,
                {"beside": theirs},
                remark=_said,
                fault=same if name != "folds" else lambda ours, theirs: "",
            ),
            repeats=1 if scale.quick else 5,
            budget=120.0,
        )
    assert times.opponent_seconds is not None
    assert times.spread is not None
    value = times.seconds / times.opponent_seconds
    low, high = (1 / value for value in reversed(times.spread))
    verdict = scale.verdict(value <= most, f"{value / most:.0%} of the most", aim=value <= aim)
    yield (
        work,
        seconds(times.seconds),
        seconds(times.opponent_seconds),
        f"{value:.2f} ({low:.2f} to {high:.2f})",
        f"{most:g}",
        f"{aim:g}",
        f"{verdict}; **{times.fault}**" if times.fault else verdict,
        f"{times.remark}; {len(times.ours)} turns",
    )


def _said(ours: Any, theirs: Any) -> str:
    """Seconds of phases and rounds of our fit."""
    report = getattr(ours, "fit_report_", None)
    if report is None:
        return "-"
    phases = ", ".join(
        f"{name} {seconds(report['seconds'][name])} s"
        for name in ("coding", "blocks", "bags", "rounds", "subtrees")
        if name in report["seconds"]
    )
    return f"{phases}; {report.get('rounds', 0)} rounds"


def refused() -> str | None:
    """Why partitions cannot be cross-validated, if so: on a tiny table, without a cluster."""
    import dask
    import dask.array as da
    import numpy as np

    X = da.from_array(np.arange(80.0).reshape(40, 2), chunks=(10, -1))
    model = dtrees.RandomForestClassifier(2, max_depth=2, regime="partitioned")
    try:
        with dask.config.set(scheduler="threads"):
            cross_validate(model, X, np.arange(40) % 2, cv=2, error_score="raise")
    except (AssertionError, TypeError, ValueError, NotImplementedError) as error:
        return str(error) or f"it ends with {type(error).__name__}"
    return None


def _survey(name: str, scale: Scale) -> Survey:
    if name == "folds":
        why = refused()
        if why is not None:
            raise Skipped(f"partitions are not cross-validated yet: {why}")
    return Survey(TABLE, partial(_lines, name, scale))


CASES = [
    Case(f"partitioned-{name}", "partitioned", f"{TREES} trees from partitions, {work[0]}",
         partial(_survey, name))
    for name, work in WORKS.items()
]  # fmt: skip
