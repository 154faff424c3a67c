"""A fit on data of ten times the memory of the cluster, which no one ever holds.

Two workers of 400 MB. Every chunk is made by a task from a generator of its own, as random numbers
that no compression makes smaller; what is computed anew is the same. y is a function of the chunk.
The fit has to end without a worker that was restarted: removals are counted by the scheduler.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed.diagnostics.plugin import SchedulerPlugin

from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.cluster.places import forest, workers
from benchmarks.report import seconds
from dtrees import GradientBoostingClassifier

N_CHUNKS, CHUNK_ROWS, COLUMNS = 250, 40_000, 100  # 8 GB of float64 in chunks of 32 MB
LIMIT = "400MB"
TREES, DEPTH, ITERATIONS = 2, 5, 20
TABLE = Table(
    (
        "more than memory, two workers of 400 MB",
        "raw, GB",
        "codes, GB",
        "seconds",
        "workers lost",
        "verdict",
        "accuracy on a new chunk",
        "client at the end, MB",
        "what the fit says of itself",
    ),
    "Random numbers, made chunk by chunk wherever they are asked for: three times in all (y, "
    "summaries, codes). Codes are spilled to disk by Dask; members of boosting have them in files.",
)


def makers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What makes a chunk, and its classes.

    Functions within a function are sent as they are; of a module, workers would import all of it,
    with everything that is measured here, and be 80 MB larger.
    """
    n_columns = COLUMNS

    def chunk(number: int, n_rows: int) -> Any:
        import numpy

        return numpy.random.default_rng([5, number]).random((n_rows, n_columns))

    def classes(X: Any) -> Any:  # a tenth is noise
        noise = (X[:, -1] * 2**20 % 1) < 0.1
        return ((X[:, 0] + X[:, 1] * X[:, 2] > 0.75) ^ noise).astype("int8")

    return chunk, classes


def collections(n_chunks: int, n_rows: int) -> tuple[Any, Any]:
    """X and y as Dask arrays whose chunks are made by tasks."""
    chunk, classes = makers()
    make, of_rows = dask.delayed(chunk, pure=True), dask.delayed(classes, pure=True)
    parts = [make(number, n_rows) for number in range(n_chunks)]
    X = [da.from_delayed(part, (n_rows, COLUMNS), dtype=np.float64) for part in parts]
    y = [da.from_delayed(of_rows(part), (n_rows,), dtype=np.int8) for part in parts]
    return da.concatenate(X), da.concatenate(y)


class Removals(SchedulerPlugin):
    """Counts the workers that have left."""

    def __init__(self) -> None:
        self.n = 0

    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:
        self.n += 1


def _lines(scale: Scale) -> Iterator[tuple[str, ...]]:
    boosted = GradientBoostingClassifier(
        max_iter=ITERATIONS, early_stopping=False, regime="partitioned", random_state=0
    )
    trees = forest("partitioned", TREES, max_depth=DEPTH)
    yield _line(f"{TREES} trees, depth ≤ {DEPTH}", trees, scale)
    yield _line(f"boosting, {ITERATIONS} iterations of 31 leaves", boosted, scale)


def _line(name: str, model: Any, scale: Scale) -> tuple[str, ...]:
    n_chunks = N_CHUNKS // 10 if scale.quick else N_CHUNKS
    X, y = collections(n_chunks, CHUNK_ROWS)
    removals = Removals()
    with (
        tempfile.TemporaryDirectory() as folder,
        workers(memory_limit=LIMIT, local_directory=folder) as client,
    ):
        client.cluster.scheduler.add_plugin(removals)
        removals.n, fault = 0, ""
        began = time.perf_counter()
        try:
            model.fit(X, y)
        except Exception as error:  # it is what is to be told
            fault = f"{type(error).__name__}: {error}"
        spent = time.perf_counter() - began
        n_lost = removals.n
        with suppress(Exception):
            client.cluster.scheduler.remove_plugin(name=removals.name)
    report = getattr(model, "fit_report_", {"seconds": {}})
    chunk, classes = makers()
    held_out = chunk(n_chunks, CHUNK_ROWS)
    found = "-" if fault else f"{np.mean(model.predict(held_out) == classes(held_out)):.3f}"
    phases = ", ".join(f"{name} {seconds(each)} s" for name, each in report["seconds"].items())
    return (
        f"{name}, {X.shape[0]:,} × {COLUMNS}",
        f"{X.nbytes / 1e9:.1f}",
        f"{X.nbytes / 8e9:.2f}",
        seconds(spent),
        str(n_lost),
        scale.verdict(not fault and n_lost == 0, fault or f"{n_lost} workers were lost"),
        found,
        f"{psutil.Process().memory_info().rss / 1e6:.0f}",
        f"{phases}; {report.get('rounds')} rounds, {report.get('passes')} passes, "
        f"{report.get('epochs')} epochs, {report.get('restarts', 0)} restarts",
    )


CASES = [
    Case(
        "partitioned-large",
        "partitioned",
        "a forest and boosting on 8 GB by two workers of 400 MB, of which none may be lost",
        lambda scale: Survey(TABLE, lambda: _lines(scale)),
    )
]
