"""What growing a forest needs above its table and its model, per row and thread.

A child process loads the table, fits a few rows (libraries and threads are not the fit's), and
fits the forest. When the table is coded and the first tree is about to grow, it asks the kernel to
forget the peak of its resident memory::

    peak while trees grow  -  resident before the fit  -  codes (a byte per cell)  -  model
    ---------------------------------------------------------------------------------------
                                          rows

with one thread and with two, which grow a tree each. With one thread there is also what all share:
the target, the keys of the rows. What the second thread adds is what a thread needs: a part that
grows with the rows, and one that does not (the heap of a thread keeps what coding's blocks of rows
took and gave back). So tables of two sizes are fitted: what a further row adds is the line through
both, and `PER_ROW_AND_THREAD` is its limit. Trees are kept small by a large ``min_samples_leaf``.
There is also what two threads take above what is resident when their first trees begin, halved.

Resident is also what has been given back to the C library and stays with it for the next time, in a
heap of every thread. More lines have it map every large block on its own (`HOW`), so that what is
given back is gone: the rest is what trees hold at one time.

Run as a module this is the child.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dtrees
from benchmarks import data
from benchmarks.cases import Case, Scale, Skipped, Survey, Table
from benchmarks.measure import MB, forget_peak, in_a_child, recorded_peak, resident
from dtrees.callbacks import Callback

ROWS, COLUMNS, TREES, LEAF = (1_000_000, 3_000_000), 30, 8, 1_000
HOW = {"": {}, ", blocks mapped one by one": {"MALLOC_MMAP_THRESHOLD_": str(2**16)}}
PER_ROW_AND_THREAD = 24.0  # bytes
TABLE = Table(
    (
        "growth of a forest, bytes per row",
        "1 thread",
        "2 threads",
        "the second adds",
        "and for a further row",
        "at most",
        "verdict",
        "above the first tree's start, per thread of 2",
        "codes, MB",
        "model, MB",
        "peak of coding, MB",
    ),
    "Peak resident memory while trees grow, above what was resident before the fit (the table is), "
    "the codes and the model. What the second thread adds for a further row, on the line through "
    "both sizes, has the limit; the first has what all threads share as well. With blocks mapped "
    "one by one (glibc, MALLOC_MMAP_THRESHOLD_=65536), nothing that is given back stays resident. "
    "The peak of coding is that of all before the first tree, codes included.",
)


class Found(NamedTuple):
    """Bytes that a child measured: of coding, of the fit, of growth alone, and of the model."""

    coding: int
    fit: int
    growth: int
    model: int

    def growing(self, n_rows: int) -> int:
        """Of the fit, without the codes and the model."""
        return self.fit - n_rows * COLUMNS - self.model


class Watch(Callback):
    """The peak of coding, and a new record for the growth."""

    def on_fit_begin(self, fit: Any) -> None:
        self.coding = recorded_peak()
        gc.collect()
        self.start = resident()
        forget_peak()


def size(forest: Any) -> int:
    """Bytes of the arrays of a forest's trees."""
    arrays = [array for tree in forest.forest_.trees for array in tree.arrays().values()]
    return sum(array.nbytes for array in arrays)


def fit_in_this_process(folder: str, kind: str, n_threads: int) -> str:
    """The child's side: the numbers of `Found`."""
    X, y = np.load(Path(folder) / "X.npy"), np.load(Path(folder) / f"{kind}.npy")
    forest = getattr(dtrees, f"RandomForest{kind}")(
        TREES, max_features="sqrt", min_samples_leaf=LEAF, n_jobs=n_threads, random_state=0
    )
    forest.fit(X[:20_000], y[:20_000])
    gc.collect()
    before, watch = resident(), Watch()
    forget_peak()
    forest.fit(X, y, callbacks=[watch])
    peak = recorded_peak()
    return f"{watch.coding - before} {peak - before} {peak - watch.start} {size(forest)}"


def _lines(kind: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    work = "two classes" if kind == "Classifier" else "regression"
    sizes = [scale.rows(n_rows) for n_rows in ROWS]
    found: dict[tuple[int, str], list[Found]] = {}
    for n_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            make = data.classification if kind == "Classifier" else data.regression
            X, y = make.__wrapped__(n_rows)  # not kept
            np.save(Path(folder) / "X.npy", X)
            np.save(Path(folder) / f"{kind}.npy", y)
            del X, y
            for how, environment in HOW.items():
                found[n_rows, how] = [
                    Found(
                        *map(
                            int,
                            in_a_child(
                                "benchmarks.forests.memory", folder, kind, n_threads, **environment
                            ),
                        )
                    )
                    for n_threads in ("1", "2")
                ]
    for how in HOW:
        of_size = {n_rows: found[n_rows, how] for n_rows in sizes}
        added = [
            two.growing(n_rows) - one.growing(n_rows) for n_rows, (one, two) in of_size.items()
        ]
        slope = (added[1] - added[0]) / (sizes[1] - sizes[0])
        for place, (n_rows, (one, two)) in enumerate(of_size.items()):
            verdict = scale.verdict(
                slope <= PER_ROW_AND_THREAD, f"by {slope - PER_ROW_AND_THREAD:.1f} bytes"
            )
            yield (
                f"{work}, {n_rows:,} × {COLUMNS}, {TREES} trees{how}",
                f"{one.growing(n_rows) / n_rows:.1f}",
                f"{two.growing(n_rows) / n_rows:.1f}",
                f"{added[place] / n_rows:.1f}",
                *((f"{slope:.1f}", f"{PER_ROW_AND_THREAD:g}", verdict) if place else ("", "", "")),
                f"{(two.growth - two.model) / n_rows / 2:.1f}",
                f"{n_rows * COLUMNS / MB:.0f}",
                f"{two.model / MB:.1f}",
                f"{two.coding / MB:.0f}",
            )


def _survey(kind: str, scale: Scale) -> Survey:
    if not forget_peak():
        raise Skipped("this kernel does not forget the peak of resident memory")
    return Survey(TABLE, partial(_lines, kind, scale))


CASES = [
    Case(
        f"memory-forest-{kind}",
        "memory",
        f"growth of a forest, {kind.lower()}, to 3,000,000 × 30, bytes per row and thread",
        partial(_survey, kind),
    )
    for kind in ("Classifier", "Regressor")
]


if __name__ == "__main__":
    print(fit_in_this_process(sys.argv[1], sys.argv[2], int(sys.argv[3])))
