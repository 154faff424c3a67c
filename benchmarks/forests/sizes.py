"""How many bytes a forest takes: pickled, and as a model file."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.forests import opponents
from benchmarks.measure import MB
from dtrees.export import save

PICKLED, SAVED = 4, 6  # times smaller than scikit-learn's pickle
TABLE = Table(
    (
        "size of a forest, fully grown",
        "trees",
        "nodes, ours and theirs",
        "scikit-learn's pickle, MB",
        "our pickle, MB",
        "times smaller",
        "`save`, MB",
        "times smaller",
        "at least",
        "verdict",
    ),
    "Both pickles are of protocol 5.",
)
WORKS = {
    "classes-2": "two classes, 100,000 × 30",
    "letter": "letter 20,000 × 16, 26 classes",
    "covertype_20k": "covertype_20k 20,000 × 54, 7 classes",
    "regression": "regression, 100,000 × 30",
    "california_housing": "regression, california 20,640 × 8",
}


def _lines(work: str, X: np.ndarray, y: np.ndarray, scale: Scale) -> Iterator[tuple[str, ...]]:
    trees = 20
    share = 1 / 3 if opponents.is_regression(y) else "sqrt"
    ours = opponents.ours(X, y, n_estimators=trees, max_features=share)
    theirs = opponents.scikit_learn(X, y, n_estimators=trees, max_features=share)
    our_nodes = sum(tree.node_count for tree in ours.forest_.trees)
    their_nodes = sum(tree.tree_.node_count for tree in theirs.estimators_)
    theirs_size = len(pickle.dumps(theirs, protocol=5))
    pickled = len(pickle.dumps(ours, protocol=5))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest.dtrees"
        save(ours, path)
        saved = path.stat().st_size
    by_pickle, by_save = theirs_size / pickled, theirs_size / saved
    reached = by_pickle >= PICKLED and by_save >= SAVED
    yield (
        work,
        str(trees),
        f"{our_nodes:,} and {their_nodes:,}",
        f"{theirs_size / MB:.1f}",
        f"{pickled / MB:.2f}",
        f"{by_pickle:.1f}",
        f"{saved / MB:.2f}",
        f"{by_save:.1f}",
        f"{PICKLED} and {SAVED}",
        scale.verdict(reached, "a model is too large"),
    )


def _survey(name: str, scale: Scale) -> Survey:
    if name == "classes-2":
        X, y = data.classification(scale.rows(100_000))
    elif name == "regression":
        X, y = data.regression(scale.rows(100_000))
    else:
        table, y = data.real(name)
        X = table.to_numpy(np.float32)
    step = 10 if scale.quick and len(y) > 10_000 else 1
    return Survey(TABLE, partial(_lines, WORKS[name], X[::step], y[::step], scale))


CASES = [
    Case(f"sizes-{name}", "sizes", f"size of a forest, {work}", partial(_survey, name))
    for name, work in WORKS.items()
]
