"""Categories as they are, against one-hot columns in scikit-learn.

Theirs is a pipeline of encoder and tree, timed as a whole as ours is; one-hot columns are tried as
a sparse matrix and as an array, and the faster one counts. A faster tree that knows less is no
gain: the accuracy on held-out rows (adult: its test part; others: five folds) must not be lower.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import sklearn.tree
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dtrees
from benchmarks import data
from benchmarks.cases import THREADS, Case, Contest, Scale


def one_hot(sparse: bool) -> Any:
    """The opponent."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=sparse, dtype=np.float32)
    columns = make_column_transformer(
        (encoder, make_column_selector(dtype_include="category")),
        remainder="passthrough",
        sparse_threshold=1.0 if sparse else 0.0,
    )
    return make_pipeline(columns, sklearn.tree.DecisionTreeClassifier(random_state=0))


def native() -> Any:
    """Our side."""
    return dtrees.DecisionTreeClassifier(random_state=0, n_jobs=THREADS)


def splits(name: str, X: Any, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit on and rows held out."""
    n_train = data.loader().train_rows(name)
    if n_train is not None:
        rows = np.arange(len(y))
        return [(rows[:n_train], rows[n_train:])]
    return list(KFold(5, shuffle=True, random_state=0).split(X))


def accuracy(estimator: Any, X: Any, y: np.ndarray, parts: list) -> float:
    """Mean share of held-out rows that are predicted right."""
    shares = []
    for train, held_out in parts:
        estimator.fit(X.iloc[train], y[train])
        shares.append(np.mean(estimator.predict(X.iloc[held_out]) == y[held_out]))
    return float(np.mean(shares))


def _fit(name: str, scale: Scale) -> Contest:
    X, y = data.real(name)
    parts = splits(name, X, y)
    train = parts[0][0] if len(parts) == 1 else np.arange(len(y))
    table, target = X.iloc[train].reset_index(drop=True), y[train]
    scores: list[float] = []

    def both(ours: Any, theirs: Any) -> list[float]:
        if not scores:
            scores.extend(accuracy(side, X, y, parts) for side in (native(), one_hot(False)))
        return scores

    def remark(ours: Any, theirs: Any) -> str:
        own, other = both(ours, theirs)
        n, m = ours.tree_.node_count, theirs[-1].tree_.node_count
        return f"{n:,} and {m:,} nodes; accuracy {own:.4f} and {other:.4f}"

    def fault(ours: Any, theirs: Any) -> str:
        own, other = both(ours, theirs)
        return f"accuracy lower by {other - own:.4f}" if own < other else ""

    return Contest(
        lambda: native().fit(table, target),
        {
            "one-hot array": lambda: one_hot(False).fit(table, target),
            "one-hot sparse": lambda: one_hot(True).fit(table, target),
        },
        remark,
        fault,
    )


CASES = [
    Case(
        name,
        "fits",
        f"{work}, categories (scikit-learn: one-hot), fully grown",
        partial(_fit, name),
        reach,
    )
    for name, work, reach in (
        ("adult", "adult 32,561 × 14", 10),
        ("connect4", "connect4 67,557 × 42", 10),
        ("nursery", "nursery 12,960 × 8", 2),
    )
]
