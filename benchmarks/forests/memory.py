"""What growing a forest needs above its table and its model, per row and thread.

A child process loads the table, fits a few rows (libraries and threads are not the fit's), and
fits the forest. When the table is coded and the first tree is about to grow, it asks the kernel to
forget the peak of its resident memory::

    peak while trees grow  -  resident before the fit  -  codes (a byte per cell)  -  model
    ---------------------------------------------------------------------------------------
                                          rows

with one thread and with two, which grow a tree each. `PER_ROW_AND_THREAD` is the limit of the whole
with one thread, and of what the second thread adds. Trees are kept small by a large
``min_samples_leaf``. Run as a module this is the child.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dtrees
from benchmarks import data
from benchmarks.cases import Case, Scale, Skipped, Survey, Table
from benchmarks.measure import MB, forget_peak, in_a_child, recorded_peak, resident
from dtrees.callbacks import Callback

ROWS, COLUMNS, TREES, LEAF = 1_000_000, 30, 8, 1_000
PER_ROW_AND_THREAD = 24.0  # bytes
TABLE = Table(
    (
        "growth of a forest, bytes per row",
        "1 thread",
        "2 threads",
        "the second adds",
        "at most per thread",
        "verdict",
        "codes, MB",
        "model, MB",
        "peak of coding, MB",
    ),
    "Peak resident memory while trees grow, above what was resident before the fit (the table is), "
    "the codes and the model. The peak of coding is that of all before the first tree, codes "
    "included.",
)


class Watch(Callback):
    """The peak of coding, and a new record for the growth."""

    def on_fit_begin(self, fit: Any) -> None:
        self.coding = recorded_peak()
        gc.collect()
        forget_peak()


def size(forest: Any) -> int:
    """Bytes of the arrays of a forest's trees."""
    arrays = [array for tree in forest.forest_.trees for array in tree.arrays().values()]
    return sum(array.nbytes for array in arrays)


def fit_in_this_process(folder: str, kind: str, n_threads: int) -> str:
    """The child's side: bytes of coding, of growth, and of the model."""
    X, y = np.load(Path(folder) / "X.npy"), np.load(Path(folder) / f"{kind}.npy")
    forest = getattr(dtrees, f"RandomForest{kind}")(
        TREES, max_features="sqrt", min_samples_leaf=LEAF, n_jobs=n_threads, random_state=0
    )
    forest.fit(X[:20_000], y[:20_000])
    gc.collect()
    before, watch = resident(), Watch()
    forget_peak()
    forest.fit(X, y, callbacks=[watch])
    return f"{watch.coding - before} {recorded_peak() - before} {size(forest)}"


def _lines(kind: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    n_rows = scale.rows(ROWS)
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        make = data.classification if kind == "Classifier" else data.regression
        X, y = make.__wrapped__(n_rows)  # not kept
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / f"{kind}.npy", y)
        del X, y
        for n_threads in (1, 2):
            words = in_a_child("benchmarks.forests.memory", folder, kind, str(n_threads))
            peaks[n_threads] = [int(word) for word in words]
    codes = n_rows * COLUMNS
    one, two = ((peak - codes - model) / n_rows for _, peak, model in peaks.values())
    most = max(one, two - one)
    coding, _, model = peaks[2]
    yield (
        f"{'two classes' if kind == 'Classifier' else 'regression'}, {n_rows:,} × {COLUMNS}, "
        f"{TREES} trees",
        f"{one:.1f}",
        f"{two:.1f}",
        f"{two - one:.1f}",
        f"{PER_ROW_AND_THREAD:g}",
        scale.verdict(most <= PER_ROW_AND_THREAD, f"by {most - PER_ROW_AND_THREAD:.1f} bytes"),
        f"{codes / MB:.0f}",
        f"{model / MB:.1f}",
        f"{coding / MB:.0f}",
    )


def _survey(kind: str, scale: Scale) -> Survey:
    if not forget_peak():
        raise Skipped("this kernel does not forget the peak of resident memory")
    return Survey(TABLE, partial(_lines, kind, scale))


CASES = [
    Case(
        f"memory-forest-{kind}",
        "memory",
        f"growth of a forest, {kind.lower()}, 1,000,000 × 30, bytes per row and thread",
        partial(_survey, kind),
    )
    for kind in ("Classifier", "Regressor")
]


if __name__ == "__main__":
    print(fit_in_this_process(sys.argv[1], sys.argv[2], int(sys.argv[3])))
