"""A forest of limited depth beside those of other libraries, on the same two workers.

The table is where each of them wants it, in memory, before the clock runs: chunks of a Dask array
on the workers, a cached data frame of vectors in Spark. Bins and codes are part of the fit.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.cases import Case, Contest, Scale, Skipped, Survey, Table
from benchmarks.cluster.opponents import OPPONENTS, TREES
from benchmarks.cluster.places import DEPTH, forest, placed, table, workers
from benchmarks.cluster.places import TREES as ALL
from benchmarks.forests.opponents import wanted
from benchmarks.measure import contest
from benchmarks.report import ratio, seconds

TABLE = Table(
    (
        f"forest of {ALL} trees, depth ≤ {DEPTH}, 500,000 × 30",
        "dtrees, partitioned, s",
        "the other, s",
        "times as fast (least to greatest)",
        "reach",
        "aim",
        "verdict",
        "accuracy of both; turns",
    ),
    "Two workers of one thread each; Spark with local[2]. The others grow fewer trees, whose time "
    "is multiplied: how many stands in the last column.",
)
REACH = {"Spark MLlib": (15.0, 40.0), "xgboost.dask": (3.0, 8.0), "lightgbm.dask": (3.0, 8.0)}


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    reach, aim = REACH[name]
    with workers() as client:
        here = placed(client, table(scale))
        with OPPONENTS[name](client, here) as theirs:
            times = contest(
                Contest(
                    lambda: forest("partitioned", max_depth=DEPTH).fit(*here.on_workers),
                    {name: theirs},
                    remark=partial(_accuracies, here),
                    parts={name: ALL / TREES[name]},
                ),
                repeats=1 if scale.quick else 3,
                budget=150.0,
            )
    assert times.ratio is not None
    assert times.spread is not None
    low, high = times.spread
    yield (
        f"against {name}",
        seconds(times.seconds),
        seconds(times.opponent_seconds),
        f"{ratio(times.ratio)} ({ratio(low)} to {ratio(high)})",
        f"{reach:g}",
        f"{aim:g}",
        scale.verdict(
            times.ratio >= reach, f"{times.ratio / reach:.0%} of the reach", aim=times.ratio >= aim
        ),
        f"{times.remark}; {len(times.ours)} turns; {TREES[name]} trees",
    )


def _accuracies(here: Any, ours: Any, theirs: Any) -> str:
    return f"{here.accuracy(ours):.3f}, {here.accuracy(theirs):.3f}"


def _survey(name: str, scale: Scale) -> Survey:
    package = "pyspark" if name == "Spark MLlib" else name.removesuffix(".dask")
    wanted(package, package)
    if package == "pyspark" and shutil.which("java") is None:
        raise Skipped("Spark needs Java, which is not installed")
    return Survey(TABLE, partial(_lines, name, scale))


CASES = [
    Case(
        f"partitioned-{name.split('.')[0].split()[0].lower()}",
        "partitioned",
        f"{ALL} trees of depth {DEPTH} from partitions, against {name}",
        partial(_survey, name),
    )
    for name in OPPONENTS
]
