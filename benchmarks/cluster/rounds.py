"""How many rounds a batch of trees takes, what a round costs, and how many bytes move.

Rounds are counted as the fit reports them, once as usual and once with only the smallest nodes
gathered, so that nearly every level is a round. What a round costs is measured on a table so small
that nothing else does: seconds of rounds over their number. Sparse tables are also fitted in rounds
on threads of this process, where nothing but the work of the rounds is beside what a local fit does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import dask

import dtrees
from benchmarks import data
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.cluster.places import COLUMNS, DEPTH, forest, placed, table, workers
from benchmarks.report import seconds

TABLE = Table(
    (
        "rounds and bytes, two workers × 1 thread",
        "measured",
        "at most",
        "aim",
        "verdict",
        "remarks",
    ),
    "PLANET's bytes are those of [SK], 2^D · k · B · p · c numbers of eight bytes a tree: k = 2 "
    f"workers, B = 255, p = {COLUMNS}, c = 2.",
)
ROUNDS, ROUNDS_AIM = 15, 13
OVERHEAD, OVERHEAD_AIM = 0.030, 0.020  # seconds
TINY, TINY_TURNS = 400, 9
FEW_ROWS = 500
SPARSE_TABLE = Table(
    ("sparse columns in rounds against local", "times", "at most", "aim", "verdict", "remarks"),
    "20 newsgroups, 2,000 rows, 130,107 columns, a tree of depth 3, one thread; processor time of "
    "a fit, coding included, the median of several turns.",
)
SPARSE, SPARSE_AIM, SPARSE_TURNS = 4.0, 2.0, 9


def fitted(here: Any, n_trees: int, depth: int | None, gather: int | None) -> dict[str, Any]:
    """The report of a fit."""
    settings = {} if gather is None else {"dtrees.gather-rows": gather}
    with dask.config.set(settings):
        model = forest("partitioned", n_trees, max_depth=depth).fit(*here.on_workers)
    found: dict[str, Any] = model.fit_report_
    return found


def _lines(scale: Scale) -> Iterator[tuple[str, ...]]:
    with workers() as client:
        here = placed(client, table(scale, 100_000))
        n_rows = f"{len(here.X):,} × {COLUMNS}"
        for gather, words in (
            (None, "as usual: nodes of at most 65,536 rows gathered"),
            (FEW_ROWS, f"nodes of at most {FEW_ROWS:,} rows gathered"),
        ):
            n = fitted(here, 100, 12, gather)["rounds"]
            yield (
                f"rounds for 100 trees of depth 12, {n_rows}, {words}",
                str(n),
                str(ROUNDS),
                str(ROUNDS_AIM),
                scale.verdict(n <= ROUNDS, f"{n / ROUNDS:.0%} of the most", aim=n <= ROUNDS_AIM),
                "histograms beyond the budget of 256 MiB take rounds of their own"
                if gather is not None
                else "",
            )
        yield _overhead(scale, placed(client, tuple(part[:TINY] for part in table(scale, TINY))))
        here = placed(client, table(scale))
        for depth, gather in ((DEPTH, None), (DEPTH, 10 * FEW_ROWS), (None, None)):
            yield _bytes(here, depth, gather)


def _overhead(scale: Scale, here: Any) -> tuple[str, ...]:
    """Seconds of a round that has nothing to count."""
    found, n = [], 0
    for _ in range(TINY_TURNS):
        report = fitted(here, 1, 12, 0)
        n = report["rounds"]
        found.append(report["seconds"]["rounds"] / n)
    value = statistics.median(found)
    return (
        f"a round of one tree, {len(here.X)} rows",
        f"{1e3 * value:.1f} ms",
        f"{1e3 * OVERHEAD:.0f} ms",
        f"{1e3 * OVERHEAD_AIM:.0f} ms",
        scale.verdict(
            value <= OVERHEAD, f"{value / OVERHEAD:.0%} of the most", aim=value <= OVERHEAD_AIM
        ),
        f"{n} rounds a fit; {1e3 * min(found):.1f} to {1e3 * max(found):.1f} ms in {TINY_TURNS}",
    )


def _bytes(here: Any, depth: int | None, gather: int | None) -> tuple[str, ...]:
    """Bytes that a tree moves, beside PLANET's."""
    n_trees = 10
    report = fitted(here, n_trees, depth, gather)
    of_tree = report["bytes_moved"] / n_trees
    # 2^D k B p c numbers of eight bytes ([SK], communication)
    planet = None if depth is None else 8 * 2**depth * 2 * 255 * COLUMNS * 2
    beside = (
        "" if planet is None else f"PLANET: {planet / 1e6:,.0f} MB, {planet / of_tree:.0f} times"
    )
    words = "" if gather is None else f", nodes of at most {gather:,} rows gathered"
    return (
        f"bytes of a tree, {len(here.X):,} × {COLUMNS}, "
        f"{'fully grown' if depth is None else f'depth ≤ {depth}'}{words}",
        f"{of_tree / 1e6:.1f} MB",
        "-",
        "-",
        "-",
        f"{beside}{'; ' if beside else ''}{report['rounds']} rounds, "
        f"{seconds(report['seconds']['growth'])} s for {n_trees} trees",
    )


def _sparse_lines(scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = data.real("newsgroups20")
    n_rows = 200 if scale.quick else 2000
    tfidf = data.loader().tfidf(X, data.loader().train_rows("newsgroups20"))
    for what, table in (("counts", X), ("tf-idf", tfidf)):
        for gather in (None, 0):
            words = "as usual" if gather is None else "no node gathered"
            yield _sparse(scale, f"{what}, {words}", table[:n_rows], y[:n_rows], gather)


def _sparse(scale: Scale, words: str, X: Any, y: Any, gather: int | None) -> tuple[str, ...]:
    """Processor time of a fit in rounds over that of a local one, turn by turn."""
    settings = {} if gather is None else {"dtrees.gather-rows": gather}
    taken: dict[str, list[float]] = {"local": [], "partitioned": []}
    for _ in range(1 + SPARSE_TURNS):
        for regime, times in taken.items():
            with dask.config.set({"dtrees.regime": regime, **settings}):
                began = time.process_time()
                dtrees.DecisionTreeClassifier(max_depth=3, n_jobs=1, random_state=0).fit(X, y)
                times.append(time.process_time() - began)
    local, rounds = (statistics.median(times[1:]) for times in taken.values())
    value = rounds / local
    return (
        words,
        f"{value:.2f}",
        f"{SPARSE:g}",
        f"{SPARSE_AIM:g}",
        scale.verdict(value <= SPARSE, f"{value / SPARSE:.0%} of the most", aim=value <= SPARSE_AIM),
        f"{1e3 * rounds:.0f} and {1e3 * local:.0f} ms",
    )


CASES = [
    Case(
        "sparse-rounds",
        "partitioned",
        "sparse columns in rounds against a local fit",
        lambda scale: Survey(SPARSE_TABLE, lambda: _sparse_lines(scale)),
    ),
    Case(
        "partitioned-rounds",
        "partitioned",
        "rounds of 100 trees, milliseconds of a round, bytes of a tree beside PLANET's",
        lambda scale: Survey(TABLE, lambda: _lines(scale)),
    )
]
