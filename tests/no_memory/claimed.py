"""Bytes that kernels claim while several sets grow together on one thread.

Its lines are the density of a table in percent, its rows and a number of folds
(`preload.answer_with`).
"""

from __future__ import annotations

import ctypes
import os

import numpy as np
import scipy.sparse

import dtrees
from dtrees.estimators.training_sets import fit_sets
from tests.no_memory.preload import answer_with

N_COLUMNS = 60


def work(percent: str, n_rows: str, n_folds: str) -> tuple[int, int]:
    """Most bytes that were claimed at one time, and stored cells. Without folds one set grows.

    Classes are noise, so that sets part at the root.
    """
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    library.no_memory_most_bytes.restype = ctypes.c_int64
    n, folds = int(n_rows), int(n_folds)
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(n, N_COLUMNS, int(percent) / 100, "csc", random_state=rng)
    y = rng.integers(0, 2, n)
    rows = np.vstack([np.arange(n) % max(folds, 1) != np.arange(folds)[:, None], np.ones(n) > 0])
    tree = dtrees.DecisionTreeClassifier(max_depth=4, n_jobs=1)
    never = ctypes.c_int64(-1)
    fit_sets(tree, X, y, None, rows)
    library.no_memory_begin(never, never)
    fit_sets(tree, X, y, None, rows)
    library.no_memory_end()
    return library.no_memory_most_bytes(), X.nnz


if __name__ == "__main__":
    answer_with(work)
