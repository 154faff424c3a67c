"""The same forest by four libraries: functions (X, y, kind, n_trees) -> a fitted model."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.ensemble

import dtrees
from benchmarks.cases import THREADS, Contest, Skipped

CALLS = 500  # of one row each

Fit = Callable[..., Any]


def is_regression(y: np.ndarray) -> bool:
    """Whether y holds numbers."""
    return y.dtype.kind == "f"


def ours(X: Any, y: np.ndarray, kind: str = "RandomForest", **parameters: Any) -> Any:
    """A fitted forest of dtrees."""
    name = f"{kind}{'Regressor' if is_regression(y) else 'Classifier'}"
    return getattr(dtrees, name)(n_jobs=THREADS, random_state=0, **parameters).fit(X, y)


def scikit_learn(X: Any, y: np.ndarray, kind: str = "RandomForest", **parameters: Any) -> Any:
    """A fitted forest of scikit-learn."""
    name = f"{kind}{'Regressor' if is_regression(y) else 'Classifier'}"
    forest = getattr(sklearn.ensemble, name)
    return forest(n_jobs=THREADS, random_state=0, **parameters).fit(X, y)


def onedal(X: Any, y: np.ndarray, **parameters: Any) -> Any:
    """A fitted forest of oneDAL."""
    module = wanted("sklearnex.ensemble", "scikit-learn-intelex")
    forest = module.RandomForestRegressor if is_regression(y) else module.RandomForestClassifier
    return forest(n_jobs=THREADS, random_state=0, **parameters).fit(X, y)


def ydf(X: Any, y: np.ndarray, n_estimators: int = 100, **parameters: Any) -> Any:
    """A fitted forest of YDF, whose trees end at one row as those of the others do."""
    module = wanted("ydf", "ydf")
    task = module.Task.REGRESSION if is_regression(y) else module.Task.CLASSIFICATION
    share = parameters.get("max_features")
    candidates = -1 if share is None or isinstance(share, str) else int(share * X.shape[1])
    learner = module.RandomForestLearner(
        label="y",
        task=task,
        num_trees=n_estimators,
        max_depth=-1,
        min_examples=1,
        num_candidate_attributes=candidates or -1,
        winner_take_all=False,
        compute_oob_performances=False,
        num_threads=THREADS,
    )
    return learner.train({"x": np.asarray(X), "y": y}, verbose=0)


def wanted(module: str, package: str) -> Any:
    """An imported module, or `Skipped`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Skipped(f"{package} is not installed") from error


def row_by_row(own: Any, booster: Any, X: np.ndarray) -> Contest:
    """`predict_proba` of a row a call beside LightGBM's own `predict`, on one thread."""
    rows = [X[i : i + 1].astype(np.float64) for i in range(CALLS)]
    return Contest(
        lambda: [own.predict_proba(row) for row in rows],
        {"LightGBM": lambda: [booster.predict(row, num_threads=1) for row in rows]},
        lambda first, second: f"{CALLS} calls",
    )
