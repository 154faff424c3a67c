"""Boosted models, grown while allocations fail: each one is the model, or an error, in order.

Its lines are the name of a work and a number of faults (`preload.answer_with`).
"""

from __future__ import annotations

from functools import partial

import numpy as np

import dtrees
from dtrees.core.model.tree import Tree
from tests.no_memory import FOREVER
from tests.no_memory.models import library_of_process, made
from tests.no_memory.preload import answer_with
from tests.no_memory.sets import sparse, table

WORKS = {
    "held-out rows": {"early_stopping": True, "validation_fraction": 0.4},
    "classes, two threads": {"n_jobs": 2},
    "sparse": {},
    "drawn rows and columns": {"subsample": 0.5, "max_features": 0.5},
    "rising columns": {"monotonic_cst": [1, -1, 0, 0]},
    "all in a tree": {"multi_strategy": "multi_output_tree"},
}


def trees_of(name: str) -> tuple[Tree, ...]:
    X, y = table(3)
    kind = dtrees.GradientBoostingRegressor
    if name == "sparse":
        X = sparse(y)
    if name.startswith(("classes", "all")):
        kind = dtrees.GradientBoostingClassifier
    model = kind(max_iter=3, max_leaf_nodes=9, random_state=0, early_stopping=False)
    trees: tuple[Tree, ...] = model.set_params(**WORKS[name]).fit(X, y).forest_.trees
    return trees


def work(name: str, n_faults: str) -> tuple[int, int]:
    """How often the trees were grown while calls failed, and how often that was told."""
    library, make = library_of_process(), partial(trees_of, name)
    expected = make()
    n_calls = made(library, make, name, -1, -1)[1]
    firsts = np.linspace(0, n_calls - 1, int(n_faults)).astype(int).tolist()
    n_lost = 0
    for number, first in enumerate(firsts):
        last = first if number % 2 == 0 else FOREVER
        found, _ = made(library, make, name, first, last)
        n_lost += found is None
        if found is not None:
            assert all(mine.equals(tree) for mine, tree in zip(found, expected, strict=True)), first
    return len(firsts), n_lost


if __name__ == "__main__":
    answer_with(work)
