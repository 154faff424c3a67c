"""What a cross-validation needs in memory beside one fit, over the number of folds ([CV] 4.4).

Every figure is the peak of a child process that has the table, has fitted and validated a few of
its rows (libraries and threads are not counted), and has forgotten the peak of its resident memory.
A child does one of two things, for n folds and the final model or for a single fit:

* the whole: `cross_validate` or `fit`, from the table to the scores and the models;
* the growth: the trees, from codes that are there. What the trees themselves take is subtracted.

A group is a set of training sets whose nodes are still together; its node has its rows once, 4
bytes each, and 12 for a row that only some of its sets have. How many groups are alive at once is
not counted by the kernel but found by growing again on paper (`groups_at_once`): the finished trees
tell which sets part where, and nodes are taken up in the order of `_shared_growth`::

    [sets 0..10: n rows]                                        1 group
    [0..4: left] [0..4: right]  [5..10: left] [5..10: right]    2, when the root has chosen two
                                                                columns: every row waits twice

It is the number of rows in all nodes that wait, at most, over the rows of the table, and at least
one; the number of training sets is its bound. A node that is being parted counts once, not with its
children, as its rows are there twice in a single fit, too. The limit is on what the growth takes on
top of that of a single fit, per row and group at once. Sparse tables have entries besides, 8 bytes
for each stored cell: twice as many as one set has are allowed, whatever the number of groups is
(those of a set that each thread grows).

Run as a module this is the child.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from benchmarks import data
from benchmarks.cases import THREADS, Case, Scale, Skipped, Survey, Table
from benchmarks.measure import MB, forget_peak, in_a_child, recorded_peak, resident
from benchmarks.validation.ratios import estimator_of
from dtrees.core.data.tuning import Tuning
from dtrees.core.membership.resampling import of_sets, plain
from dtrees.core.model.tree import LEAF, Tree
from dtrees.estimators.fit_plan import FitPlan, Training
from dtrees.model_selection import cross_validate
from dtrees.model_selection.folds import RowsOfSides
from dtrees.parallel import threaded

FOLDS = (3, 5, 10, 20, 50)
ROWS = 1_000_000
SPARSE_ROWS, SPARSE_COLUMNS, DENSITY = 300_000, 300, 0.03


class Work(NamedTuple):
    """What is fitted and validated, and on how many folds."""

    about: str
    parameters: dict[str, Any]
    folds: tuple[int, ...] = (10,)


LEAVES: dict[str, Any] = {"max_depth": 10, "min_samples_leaf": 10}
BALANCED: dict[str, Any] = {"class_weight": "balanced"}
WORKS = {
    "classes": Work(f"{ROWS:,} × 30, depth 10", LEAVES, FOLDS),
    "adult": Work("adult, leaves of at least 10", {"min_samples_leaf": 10}, FOLDS),
    "exact": Work(f"{ROWS:,} × 30, exact, depth 10", LEAVES | {"max_bins": None}),
    "balanced": Work(f"{ROWS:,} × 30, balanced, depth 10", LEAVES | BALANCED),
    "sparse": Work(
        f"{SPARSE_ROWS:,} × {SPARSE_COLUMNS}, density {DENSITY}, depth 10", {"max_depth": 10}
    ),
    "sparse-stump": Work(
        f"{SPARSE_ROWS:,} × {SPARSE_COLUMNS}, density {DENSITY}, depth 1", {"max_depth": 1}
    ),
    "sparse-balanced": Work(
        f"{SPARSE_ROWS:,} × {SPARSE_COLUMNS}, density {DENSITY}, balanced, depth 10",
        {"max_depth": 10} | BALANCED,
    ),
    "text": Work("20 newsgroups, depth 6", {"max_depth": 6}),
    "text-full": Work("20 newsgroups, full", {}),
}
PER_ROW_AND_GROUP, OF_SMALL_TABLES = 16.0, 24.0  # bytes
SMALL = 100_000  # rows
ENTRY, MOST_HELD = 8, 2  # bytes of a stored cell, and how often they are there beside one fit
TASKS, NODE_COST = 4, 50  # of `dtrees.core.grow._shared_growth`
TABLE = Table(
    (
        "n folds and the final model",
        "folds",
        "whole, MB",
        "above one fit, bytes per row",
        "per row and set",
        "growth, MB",
        "above one fit, bytes per row",
        "per row and set",
        "groups at once",
        "per row and group",
        "at most",
        "verdict",
        "trees, MB",
    ),
    "Peak resident memory above the table; the first line of each is that of one fit. *Growth*: "
    "from codes that are there, without the trees. *Sets* are the training sets, folds and one. "
    "*Groups at once*: rows of all nodes that wait, each once for every group of sets that is "
    "there, at most, over the rows of the table; replayed from the trees. A copy of the codes for "
    "each fold would be 30 and 14 bytes per row and set. The whole has 8 bytes per row and fold "
    "for the row numbers of the splits, which scikit-learn makes. Sparse tables may have "
    "twice the entries of one set besides, 8 bytes a stored cell.",
)


class Found(NamedTuple):
    """What a child measured: bytes of its peak, bytes of the trees, groups at once.

    The last two are of a growth.
    """

    peak: int
    trees: int
    groups: float


def bytes_of(trees: Sequence[Tree]) -> int:
    """Of the arrays of trees."""
    return sum(array.nbytes for tree in trees for array in tree.arrays().values())


def groups_at_once(trees: Sequence[Tree], n_threads: int) -> float:
    """Rows that wait in nodes of groups at one time, at most, over all rows.

    Parameters
    ----------
    trees : sequence of Tree
        Of the training sets, the last one that of all rows.
    n_threads : int
        Several threads first grow what is large, and hand the rest to each other: all of it waits.
    """
    n_rows = int(trees[-1].n_node_samples[0])
    handed_work = n_rows * len(trees) // (TASKS * n_threads) if n_threads > 1 else 0
    root = (tuple(range(len(trees))), (0,) * len(trees))
    most, handed = _replayed(trees, root, handed_work)
    waiting = sum(_rows(trees, node) for node in handed)
    within = sorted(
        (_replayed(trees, node, 0)[0] - _rows(trees, node) for node in handed), reverse=True
    )
    return max(most, waiting + sum(within[:n_threads])) / n_rows


Node = tuple[tuple[int, ...], tuple[int, ...]]  # sets, and the node of each in its tree


def _rows(trees: Sequence[Tree], node: Node) -> int:
    """Rows of a node: about those of its largest member."""
    return max(int(trees[s].n_node_samples[i]) for s, i in zip(*node, strict=True))


def _replayed(trees: Sequence[Tree], root: Node, handed_work: int) -> tuple[int, list[Node]]:
    """Most rows that wait at one time, depth first; and the nodes of little work, left waiting."""
    stack, handed = [root], []
    waiting = most = _rows(trees, root)
    while stack:
        node = stack.pop()
        n = _rows(trees, node)
        parts: dict[int, list[tuple[int, int]]] = {}
        for s, i in zip(*node, strict=True):
            if trees[s].test[i] != LEAF:
                parts.setdefault(int(trees[s].feature[i]), []).append((s, i))
        n_active = sum(map(len, parts.values()))
        if n_active and n * len(node[0]) <= handed_work:
            handed.append(node)  # and goes on waiting
            continue
        waiting -= n
        if n_active > 1 and (n - NODE_COST) * (n_active - 1) >= Tuning().shared_rows:
            for members in parts.values():
                sets = tuple(s for s, _ in members)
                for side in ("children_right", "children_left"):
                    child = sets, tuple(int(getattr(trees[s], side)[i]) for s, i in members)
                    stack.append(child)
                    waiting += _rows(trees, child)
            most = max(most, waiting)
    return most, handed


def validate_in_this_process(path: str, part: str, name: str, n_folds: int) -> str:
    """The child's side: the numbers of `Found`; no folds: one fit."""
    X, y = joblib.load(path)
    tree = estimator_of(y, 0, WORKS[name].parameters)
    few = slice(0, max(500, len(y) // 50))
    few_X = X.iloc[few] if hasattr(X, "iloc") else X[few]
    cross_validate(tree, few_X, y[few], cv=3)
    cv = KFold(max(2, n_folds), shuffle=True, random_state=0)
    measure = _whole if part == "whole" else _growth
    found = measure(tree, X, y, cv if n_folds else None)
    return " ".join(map(str, found))


def _whole(tree: Any, X: Any, y: np.ndarray, cv: Any) -> Found:
    before = _resident_now()
    kept = tree.fit(X, y) if cv is None else cross_validate(tree, X, y, cv=cv)
    peak = recorded_peak() - before
    del kept
    return Found(peak, 0, 0.0)


def _growth(tree: Any, X: Any, y: np.ndarray, cv: Any) -> Found:
    run = threaded(tree.n_jobs)
    tree = clone(tree)
    encoded = FitPlan.of(tree).encode(X, (y, None), 0, run)
    splits = [] if cv is None else list(cv.split(y))
    before = _resident_now()
    training = Training(encoded, y, run)
    sides = RowsOfSides(splits, len(y), np.ones(len(y), dtype=bool))
    models = tree._fit_sets(training, of_sets(sides) if splits else plain())
    peak = recorded_peak() - before
    grown = [model.tree_.model for model in models]
    return Found(peak, bytes_of(grown), groups_at_once(grown, THREADS))


def _resident_now() -> int:
    gc.collect()
    forget_peak()
    return resident()


def _measured(path: Path, part: str, name: str, n_folds: int) -> Found:
    words = in_a_child("benchmarks.validation.memory", str(path), part, name, str(n_folds))
    return Found(int(words[0]), int(words[1]), float(words[2]))


def table_of(name: str, scale: Scale) -> tuple[Any, np.ndarray]:
    """X and y of a work."""
    if name == "adult":
        return data.real_part("adult", scale)
    if name.startswith("text"):
        X, y = data.real("newsgroups20")
        return (X[:500], y[:500]) if scale.quick else (X, y)
    if name.startswith("sparse"):
        return data.random_sparse(scale.rows(SPARSE_ROWS), SPARSE_COLUMNS, DENSITY)
    return data.classification.__wrapped__(scale.rows(ROWS))  # not kept


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        table = table_of(name, scale)
        n_rows = len(table[1])
        limit = OF_SMALL_TABLES if n_rows < SMALL else PER_ROW_AND_GROUP
        of_entries = MOST_HELD * ENTRY * getattr(table[0], "nnz", 0) / n_rows  # per row
        joblib.dump(table, path)
        del table
        work = WORKS[name].about
        n_folds = WORKS[name].folds[:1] if scale.quick else WORKS[name].folds
        one, one_growth = (_measured(path, part, name, 0) for part in ("whole", "growth"))
        own = one_growth.peak - one_growth.trees
        yield (
            f"{work}: one fit",
            "",
            f"{one.peak / MB:.1f}",
            "",
            "",
            f"{own / MB:.1f}",
            *[""] * 6,
            f"{one_growth.trees / MB:.1f}",
        )
        for n in n_folds:
            whole, growth = (_measured(path, part, name, n) for part in ("whole", "growth"))
            more = (whole.peak - one.peak) / n_rows
            of_growth = (growth.peak - growth.trees - own) / n_rows
            per_group = of_growth / growth.groups
            most = limit + of_entries / growth.groups
            yield (
                work,
                str(n),
                f"{whole.peak / MB:.1f}",
                f"{more:.1f}",
                f"{more / (n + 1):.1f}",
                f"{(growth.peak - growth.trees) / MB:.1f}",
                f"{of_growth:.1f}",
                f"{of_growth / (n + 1):.1f}",
                f"{growth.groups:.1f}",
                f"{per_group:.1f}",
                f"{most:.0f}",
                scale.verdict(per_group <= most, f"by {per_group - most:.1f} bytes"),
                f"{growth.trees / MB:.1f}",
            )


def _survey(name: str, scale: Scale) -> Survey:
    if not forget_peak():
        raise Skipped("this kernel does not forget the peak of resident memory")
    if name == "adult" or name.startswith("text"):
        table_of(name, scale)  # or it is skipped
    return Survey(TABLE, partial(_lines, name, scale))


CASES = [
    Case(
        f"memory-validation-{name}",
        "memory",
        f"n folds and the final model against one fit, {work.about}, bytes per row and group",
        partial(_survey, name),
    )
    for name, work in WORKS.items()
]


if __name__ == "__main__":
    print(validate_in_this_process(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
