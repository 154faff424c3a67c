"""Trees of several training sets, grown together while allocations fail.

Its lines are the name of a work and a number of faults (`preload.answer_with`).
"""

from __future__ import annotations

import ctypes
import itertools
import os
from functools import partial

import numpy as np
import pandas as pd
import scipy.sparse

import dtrees
from dtrees.core.data import _cpu
from dtrees.estimators.fitted_sets import FittedSets, trees_of
from dtrees.estimators.training_sets import fit_sets
from tests.no_memory import FOREVER
from tests.no_memory.preload import answer_with

N_ROWS = 1200
WORKS = {
    "two classes": (2, dtrees.DecisionTreeClassifier, {}),
    "five classes": (5, dtrees.DecisionTreeClassifier, {}),
    "entropy": (5, dtrees.DecisionTreeClassifier, {"criterion": "entropy"}),
    "class weights": (2, dtrees.DecisionTreeClassifier, {"class_weight": "balanced"}),
    "weights of five classes": (5, dtrees.DecisionTreeClassifier, {"class_weight": "balanced"}),
    "extra trees": (2, dtrees.ExtraTreesClassifier, {"n_estimators": 2}),
    "regression": (9, dtrees.DecisionTreeRegressor, {}),
    "a forest": (5, dtrees.RandomForestClassifier, {"n_estimators": 2}),
    "many codes": (2, dtrees.DecisionTreeClassifier, {"max_depth": 4}),
    "many codes, regression": (9, dtrees.DecisionTreeRegressor, {"max_depth": 4}),
    "threads": (5, dtrees.DecisionTreeClassifier, {"n_jobs": 2}),
    "sparse": (2, dtrees.DecisionTreeClassifier, {}),
    "sparse, a forest": (5, dtrees.RandomForestClassifier, {"n_estimators": 2}),
    "sparse, extra trees": (
        2,
        dtrees.ExtraTreesClassifier,
        {"n_estimators": 2, "class_weight": "balanced"},
    ),
}


def table(n_classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, some of them missing, and categories; sets part at once and at different depths."""
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(N_ROWS, 3)).round(1)
    numbers[rng.random(N_ROWS) < 0.1, 0] = np.nan
    letters = rng.choice(list("abcdefgh"), N_ROWS)
    y = np.nan_to_num(numbers[:, 0]) + numbers[:, 1] + (letters < "d") + rng.normal(size=N_ROWS)
    X = pd.DataFrame(numbers).assign(letter=pd.Categorical(letters))
    X.columns = X.columns.astype(str)
    return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def sparse(y: np.ndarray) -> scipy.sparse.csc_array:
    """Counts, some of them of a class, in more columns than a node draws."""
    rng = np.random.default_rng(6)
    counts = rng.poisson(0.3 + (y[:, None] % 3 == np.arange(9) % 3) * 0.4)
    return scipy.sparse.csc_array(counts.astype(float))


def sets() -> np.ndarray:
    """Training rows of five folds, and all rows."""
    fold = np.arange(N_ROWS) % 5
    return np.vstack([fold != np.arange(5)[:, None], np.ones((1, N_ROWS), dtype=bool)])


def work(name: str, n_faults: str) -> tuple[int, int]:
    """How often the trees were grown while calls failed, and how often that was told."""
    n_classes, kind, parameters = WORKS[name]
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    X, y = table(n_classes)
    rows = sets()
    if "n_jobs" in parameters:  # enough to be divided
        X, y, rows = pd.concat([X] * 40, ignore_index=True), np.tile(y, 40), np.tile(rows, (1, 40))
    ends = [FOREVER]
    if name.startswith("many codes"):  # enough for a search by intervals
        X = pd.DataFrame(np.random.default_rng(0).normal(size=(2 * N_ROWS, 2)))
        X.columns = X.columns.astype(str)
        y, rows = np.tile(y, 2), np.tile(rows, (1, 2))
        ends.append(0)
    if name.startswith("sparse"):
        X = sparse(y)
    estimator = kind(min_samples_leaf=5, random_state=0, **{"n_jobs": 1, **parameters})
    grown = partial(fit_sets, estimator, X, y, None, rows)
    n_grown = n_lost = 0
    for wide in (False, True):
        before = _cpu.use_wide(wide)
        expected = grown()
        library.no_memory_begin(ctypes.c_int64(-1), ctypes.c_int64(-1))
        grown()
        n_calls = library.no_memory_end()
        firsts = range(0, n_calls, max(1, n_calls // int(n_faults)))
        for first, end in itertools.product(firsts, ends):  # one call fails, or all from then on
            library.no_memory_begin(ctypes.c_int64(first), ctypes.c_int64(max(first, end)))
            try:
                found = grown()
            except MemoryError:
                found = None
                n_lost += 1
            finally:
                library.no_memory_end()
            n_grown += 1
            if found is not None:
                assert_same(found, expected)
        assert_same(grown(), expected)
        _cpu.use_wide(before)
    return n_grown, n_lost


def assert_same(found: FittedSets, expected: FittedSets) -> None:
    for a, b in zip(found.models, expected.models, strict=True):
        for mine, other in zip(trees_of(a), trees_of(b), strict=True):
            assert mine.equals(other)


if __name__ == "__main__":
    answer_with(work)
