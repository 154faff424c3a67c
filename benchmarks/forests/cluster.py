"""The same fit on the threads of this process and on the two processes of a cluster.

The cluster is warm: its processes run, have imported dtrees and have grown a few trees of a small
table. What a fit does is timed: the table is coded, goes to both workers, and trees come back.
Turns alternate, the cluster's first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

import dtrees
from benchmarks import data
from benchmarks.cases import THREADS, Case, Contest, Scale, Survey, Table
from benchmarks.measure import contest
from benchmarks.report import seconds

REACH, AIM = 1.3, 1.1
TABLE = Table(
    (
        "100 trees, 100,000 × 30, through a cluster",
        f"local, {THREADS} threads, s",
        "2 processes × 1 thread, s",
        "times the local (least to greatest)",
        "at most",
        "aim",
        "verdict",
    ),
    "The cluster is warm; the transfer of the table is part of the fit. Medians of seven turns. "
    "By default, Dask's worker processes give back memory at once; docs/user_guide/cluster.md says "
    "how to let them keep it.",
)
KEEP = {"MALLOC_TRIM_THRESHOLD_": 128 * 2**20, "MALLOC_MMAP_THRESHOLD_": 32 * 2**20}
WORKS = {"as-it-is": "as Dask sets it up", "kept-memory": "workers that keep memory"}


def same(ours: Any, theirs: Any) -> str:
    """A fault when the cluster's forest is not the local one."""
    pairs = zip(ours.forest_.trees, theirs.forest_.trees, strict=True)
    equal = all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for one, other in pairs
        for a, b in zip(one.arrays().values(), other.arrays().values(), strict=True)
    )
    return "" if equal else "not the same forest"


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = data.classification(scale.rows(100_000))
    kept = KEEP if name == "kept-memory" else {}
    settings = {f"distributed.nanny.pre-spawn-environ.{key}": kept[key] for key in kept}

    def forest(regime: str, trees: int = 100) -> Any:
        return dtrees.RandomForestClassifier(trees, regime=regime, n_jobs=THREADS, random_state=0)

    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        forest("replicated", 20).fit(X[:2_000], y[:2_000])
        times = contest(
            Contest(
                lambda: forest("replicated").fit(X, y),
                {"local": lambda: forest("local").fit(X, y)},
                fault=same,
            ),
            repeats=1 if scale.quick else 7,
            budget=120.0,
        )
    assert times.opponent_seconds is not None
    assert times.spread is not None
    value = times.seconds / times.opponent_seconds
    low, high = (1 / value for value in reversed(times.spread))
    words = scale.verdict(value <= REACH, f"{value / REACH:.0%} of the most")
    if value <= AIM and words == "reached":
        words = "aim reached"
    yield (
        WORKS[name],
        seconds(times.opponent_seconds),
        seconds(times.seconds),
        f"{value:.2f} ({low:.2f} to {high:.2f})",
        f"{REACH:g}",
        f"{AIM:g}",
        f"{words}; **{times.fault}**" if times.fault else words,
    )


def _survey(name: str, scale: Scale) -> Survey:
    return Survey(TABLE, partial(_lines, name, scale))


CASES = [
    Case(
        f"cluster-{name}",
        "cluster",
        f"100 trees, 100,000 × 30, on two processes against two threads; {work}",
        partial(_survey, name),
    )
    for name, work in WORKS.items()
]
