"""Growing forests."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.forests import opponents

SHARED = {
    "letter": "letter 20,000 × 16, 26 classes",
    "covertype_20k": "covertype_20k 20,000 × 54, 7 classes",
    "adult": "adult 32,561 × 14, ordinal",
    "california_housing": "california 20,640 × 8, a third of the columns",
}


def nodes(first: Any, second: Any) -> str:
    """Nodes per tree of our forest."""
    trees = first.forest_.trees
    return f"{sum(tree.node_count for tree in trees) // len(trees):,} nodes a tree"


def contest(X: Any, y: np.ndarray, opponent: str, **parameters: Any) -> Contest:
    """The same forest by us and by one opponent."""
    other = getattr(opponents, opponent)
    if opponent != "scikit_learn":
        opponents.wanted("sklearnex.ensemble" if opponent == "onedal" else "ydf", opponent)
    return Contest(
        lambda: opponents.ours(X, y, **parameters),
        {opponent.replace("_", "-"): lambda: other(X, y, **parameters)},
        nodes,
    )


def _plain(n_rows: int, n_columns: int, n_trees: int, opponent: str, scale: Scale) -> Contest:
    X, y = data.classification(scale.rows(n_rows))
    return contest(X[:, :n_columns], y, opponent, n_estimators=n_trees)


def _extra(scale: Scale) -> Contest:
    X, y = data.classification(scale.rows(100_000))
    return contest(X, y, "scikit_learn", kind="ExtraTrees", n_estimators=100)


def _real(name: str, opponent: str, scale: Scale) -> Contest:
    X, y = data.real(name)
    if name == "adult":
        X = X.apply(lambda column: column.astype("category").cat.codes)
    share = 1 / 3 if name == "california_housing" else "sqrt"
    return contest(X.to_numpy(np.float32), y, opponent, n_estimators=100, max_features=share)


def _newsgroups(scale: Scale) -> Contest:
    X, y = data.real("newsgroups20")
    return contest(X, y, "scikit_learn", n_estimators=50)


CASES = [
    *(
        Case(
            f"forest-{opponent}",
            "forests",
            f"100 trees, 100,000 × 30, against {opponent}",
            partial(_plain, 100_000, 30, 100, opponent),
            reach,
            aim,
            repeats=3,
        )
        for opponent, reach, aim in (
            ("scikit_learn", 10, 14),
            ("onedal", 2, 3),
            ("ydf", 6, None),
        )
    ),
    *(
        Case(
            f"forest-{name}-{opponent}",
            "forests",
            f"100 trees, {work}, against {opponent}",
            partial(_real, name, opponent),
            reach,
            aim,
            repeats=5,
        )
        for name, work in SHARED.items()
        for opponent, reach, aim in (("scikit_learn", 3, 6), ("onedal", 1.5, 3))
    ),
    *(
        Case(
            f"forest-million-{opponent}",
            "forests",
            f"20 trees, 1,000,000 × 30, against {opponent}",
            partial(_plain, 1_000_000, 30, 20, opponent),
            reach,
            repeats=1,
        )
        for opponent, reach in (("scikit_learn", 10), ("onedal", 2))
    ),
    Case(
        "forest-newsgroups",
        "forests",
        "50 trees, 20 newsgroups, counts, against scikit_learn",
        _newsgroups,
        4,
        8,
        repeats=3,
    ),
    Case(
        "forest-small",
        "forests",
        "100 trees, 5,000 × 10, against scikit_learn",
        partial(_plain, 5_000, 10, 100, "scikit_learn"),
        3,
        6,
    ),
    Case(
        "extra-trees",
        "forests",
        "100 extra trees, 100,000 × 30, against scikit_learn",
        _extra,
        5,
        repeats=3,
    ),
]
