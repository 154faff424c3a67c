"""What members tell each other, by their number: messages, bytes, tasks, processor time.

Nothing is timed by the clock: counts are those of fits on clusters of 1 to 16 processes, which may
share two cores. The scheduler has a process of its own, so that the processor time of the client is
that of the client alone. A first fit imports and compiles what there is; the second one counts.

A small table shows what messages cost, and a larger one what they add to the growth. What idle
processes do meanwhile is measured after each fit, and taken off.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import dask
import dask.array as da
from distributed import Client, wait

import dtrees
from benchmarks import data
from benchmarks.cases import Case, Scale, Survey, Table

MEMBERS = (1, 2, 4, 8, 16)
ROWS, COLUMNS, CHUNKS = 16_000, 30, 16
ITERATIONS, TREES = 5, 8
LARGE_ROWS, LARGE_CHUNKS, LARGE_ITERATIONS = 500_000, 64, 20
IDLE_SECONDS = 5.0
CLUSTER = """
from distributed import LocalCluster
with LocalCluster(
    n_workers={n}, threads_per_worker=1, dashboard_address=None, memory_limit=None
) as cluster:
    print(cluster.scheduler_address, flush=True)
    input()
"""
TABLE = Table(
    (
        "members, processes of one thread",
        "members",
        "rounds",
        "messages a member and round",
        "kB a member and round",
        "tasks a member",
        "client, ms a member and round",
        "scheduler, ms a member and round",
        "workers, s",
        "against 1",
    ),
    f"{ROWS:,} × {COLUMNS}, two classes. Boosting: {ITERATIONS} iterations of 31 leaves; forest: "
    f"{TREES} trees of depth 12, all nodes of more than 100 rows in rounds. A round of "
    "boosting is one exchange of numbers, one of a forest is two: what trees ask for, and counts. "
    "Seconds are of the processor. All processes share two cores, "
    "and what an idle process of a worker does is in them, too.",
)

LARGE = Table(
    (
        "processor time of workers, processes of one thread",
        "regime",
        "workers",
        "members",
        "rounds",
        "messages a member",
        "workers, s",
        "idle workers meanwhile, s",
        "difference against 1",
    ),
    f"{LARGE_ROWS:,} × {COLUMNS}, two classes, from memory of the workers. Boosting: "
    f"{LARGE_ITERATIONS} iterations of 31 leaves; forest: {TREES} trees of depth 12. Seconds are "
    "of the processor, with coding. In partitions there are as many members as pay, and then as "
    "many as workers. Where no regime is asked for, a table that fits a worker is boosted on one "
    "of them.",
)


class Counts(NamedTuple):
    """What a fit has taken.

    Attributes
    ----------
    report : dict
        Its ``fit_report_``.
    tasks : int
        Done by all workers.
    client, scheduler, workers : float
        Seconds of the processor.
    idle : float
        Those of workers that do nothing, as long as the fit took.
    """

    report: dict[str, Any]
    tasks: int
    client: float
    scheduler: float
    workers: float
    idle: float


@contextmanager
def processes(n: int) -> Iterator[Client]:
    """A cluster of processes of one thread each, whose scheduler has a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-c", CLUSTER.format(n=n)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        with Client(child.stdout.readline().strip()) as client:
            client.wait_for_workers(n, timeout=300)
            yield client
    finally:
        child.communicate("\n", timeout=60)


def counted(client: Client, fit: Callable[[], Any]) -> Counts:
    """What a fit takes, the second time."""

    def of_worker(dask_worker: Any) -> tuple[float, int]:
        import time

        return time.process_time(), dask_worker.state.executed_count

    def of_scheduler() -> float:
        import time

        return time.process_time()

    def so_far() -> tuple[float, float, float, int]:
        of_workers = client.run(of_worker).values()
        spent, tasks = (sum(each) for each in zip(*of_workers, strict=True))
        return client.run_on_scheduler(of_scheduler), spent, time.process_time(), int(tasks)

    fit()
    scheduler, workers, here, tasks = so_far()
    began = time.perf_counter()
    report = fit().fit_report_
    own = time.process_time() - here
    then, seconds = so_far(), time.perf_counter() - began
    time.sleep(IDLE_SECONDS)
    idle = (so_far()[1] - then[1]) * seconds / IDLE_SECONDS
    return Counts(report, then[3] - tasks, own, then[0] - scheduler, then[1] - workers, idle)


def models(scale: Scale, regime: str | None, n_iterations: int) -> dict[str, Any]:
    """What is fitted."""
    n_trees, n_iterations = (4, 4) if scale.quick else (TREES, n_iterations)
    own: dict[str, Any] = {"regime": regime, "random_state": 0}
    boosted = dtrees.GradientBoostingClassifier(max_iter=n_iterations, early_stopping=False, **own)
    return {
        "boosting": boosted,
        "forest": dtrees.RandomForestClassifier(n_trees, max_depth=12, **own),
    }


def table_on(client: Client, n_rows: int, n_chunks: int) -> list[Any]:
    """A table and its target in the memory of the workers."""
    X, y = data.classification(n_rows)
    rows = -(-len(X) // n_chunks)
    lazy = [da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=(rows,))]
    on_workers: list[Any] = client.persist(lazy)
    wait(on_workers)
    return on_workers


def _lines(scale: Scale) -> Iterator[tuple[str, ...]]:
    of_one: dict[str, float] = {}
    for n in MEMBERS[: 2 if scale.quick else None]:
        with processes(n) as client:
            table = table_on(client, scale.rows(ROWS), CHUNKS)
            for name, model in models(scale, "partitioned", ITERATIONS).items():
                settings = {"dtrees.members": n}
                settings |= {"dtrees.gather-rows": 100} if name == "forest" else {}
                with dask.config.set(settings):
                    found = counted(client, partial(model.fit, *table))
                yield line(name, n, found, of_one.setdefault(name, found.workers))


def _large_lines(scale: Scale) -> Iterator[tuple[str, ...]]:
    of_one: dict[tuple[str, str | None], float] = {}
    for n in MEMBERS[: 2 if scale.quick else None]:
        with processes(n) as client:
            table = table_on(client, scale.rows(LARGE_ROWS), LARGE_CHUNKS)
            for regime, members in (("partitioned", 0), ("partitioned", n), (None, 0)):
                for name, model in models(scale, regime, LARGE_ITERATIONS).items():
                    with dask.config.set({"dtrees.members": members}):
                        found = counted(client, partial(model.fit, *table))
                    own = found.workers - found.idle
                    n_members = found.report.get("members", n)
                    yield (
                        name,
                        found.report["regime"],
                        str(n),
                        str(n_members),
                        str(found.report.get("rounds", "-")),
                        f"{found.report.get('messages', 0) / n_members:.0f}",
                        f"{found.workers:.2f}",
                        f"{found.idle:.2f}",
                        f"{own / of_one.setdefault((name, regime), own):.2f}",
                    )


def line(name: str, n: int, found: Counts, of_one: float) -> tuple[str, ...]:
    """A line of the table."""
    rounds, messages = found.report["rounds"], found.report.get("messages")
    each = max(1, n * rounds)
    return (
        name,
        str(n),
        str(rounds),
        "-" if messages is None else f"{messages / each:.2f}",
        f"{found.report['bytes_moved'] / each / 1e3:.1f}",
        f"{found.tasks / n:.1f}",
        f"{1e3 * found.client / each:.2f}" if rounds else "-",
        f"{1e3 * found.scheduler / each:.2f}" if rounds else "-",
        f"{found.workers:.2f}",
        f"{found.workers / of_one:.2f}",
    )


CASES = [
    Case(
        "members",
        "partitioned",
        "messages, bytes, tasks and processor time of 1 to 16 members",
        lambda scale: Survey(TABLE, lambda: _lines(scale)),
    ),
    Case(
        "members-large",
        "partitioned",
        "processor time of 1 to 16 members beside that of the growth",
        lambda scale: Survey(LARGE, lambda: _large_lines(scale)),
    ),
]
