"""The cluster that everything is measured on, and the table on its workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import dtrees
from benchmarks import data
from benchmarks.cases import THREADS, Scale

ROWS, COLUMNS, TREES, DEPTH = 500_000, 30, 50, 16
CHUNKS = 8
HELD_OUT = 20_000


class Here(NamedTuple):
    """A table, and the same on the workers.

    Attributes
    ----------
    X, y : arrays in this process
    on_workers : Dask array of float32, computed, and y, in the same chunks
    X_test, y_test : rows that nobody is fitted to
    """

    X: np.ndarray
    y: np.ndarray
    on_workers: tuple[Any, Any]
    X_test: np.ndarray
    y_test: np.ndarray

    def accuracy(self, model: Any) -> float:
        """Of the rows that are held out."""
        return float(np.mean(np.asarray(model.predict(self.X_test)) == self.y_test))


@contextmanager
def workers(n: int = 2, **settings: Any) -> Iterator[Client]:
    """A cluster of processes of one thread each, that have imported dtrees."""
    with (
        nothing_to_import(),
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "100 MB"}),
        LocalCluster(
            n_workers=n, threads_per_worker=1, dashboard_address=":0", **settings
        ) as cluster,
        Client(cluster) as client,
    ):

        def warm() -> None:  # within a function: it is sent as it is, and imports nothing else
            import dtrees.parallel.partitioned  # noqa: F401

        client.run(warm)
        yield client


@contextmanager
def nothing_to_import() -> Iterator[None]:
    """Processes that are spawned do not import this program first, as they else would."""
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name, None) for name in ("__spec__", "__file__")}
    try:
        for name in hidden:
            setattr(main, name, None)
        yield
    finally:
        for name, value in hidden.items():
            setattr(main, name, value)


def table(scale: Scale, n_rows: int = ROWS) -> tuple[np.ndarray, ...]:
    """Rows to fit on, their classes, and held-out ones."""
    n_rows = scale.rows(n_rows)
    X, y = data.classification(n_rows + HELD_OUT)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def placed(client: Client, parts: tuple[np.ndarray, ...]) -> Here:
    """A table that is also on the workers."""
    X, y, X_test, y_test = parts
    rows = -(-len(X) // CHUNKS)
    on_workers = client.persist(
        [da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=(rows,))]
    )
    wait(on_workers)
    return Here(X, y, tuple(on_workers), X_test, y_test)


def forest(regime: str, n_trees: int = TREES, **parameters: Any) -> Any:
    """A forest that is not fitted."""
    return dtrees.RandomForestClassifier(
        n_trees, regime=regime, n_jobs=THREADS, random_state=0, **parameters
    )
