"""Tables, targets and weights of the chosen cases, and their models of a fit or of folds."""

from __future__ import annotations

from functools import cache
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import scipy.sparse as sp

from dtrees.model_selection import HashKFold, cross_validate
from tests.golden.ways import Way


def validated(model: Any, X: Any, y: Any, cv: Any, **params: Any) -> list[Any]:
    """The models of the folds, and the final one."""
    found = cross_validate(model, X, y, cv=cv, params=params, return_estimator=True)
    return [*found["estimator"], found["final_estimator"]]


def made(
    model: Any, X: Any, y: Any, weight: np.ndarray | None, way: Way, n_folds: int | None = None
) -> list[Any]:
    """The model of a fit (in rounds: to a collection), or those of a cross-validation."""
    if n_folds is not None:
        params = {} if weight is None else {"sample_weight": weight}
        return validated(model, X, y, HashKFold(n_folds, random_state=1), **params)
    if way.in_rounds and isinstance(X, np.ndarray):
        X = da.from_array(X, chunks=(len(X) // 3, -1))
    return [model.fit(X, y, sample_weight=weight)]


@cache
def table(kind: str, n_rows: int) -> Any:
    """X of a kind: "numbers", "steps", "sparse", "wide" or "mixed"."""
    rng = np.random.default_rng([n_rows, len(kind)])
    if kind == "wide":
        return rng.random((n_rows, 40)).round(3)
    X = rng.random((n_rows, 6))
    if kind == "sparse":
        return sp.csc_array(np.where(rng.random((n_rows, 30)) < 0.1, rng.random((n_rows, 30)), 0.0))
    X[:, 1] = rng.integers(0, 9, n_rows)
    X[rng.random(n_rows) < 0.1, 2] = np.nan
    if kind == "steps":
        return rng.integers(0, 20, (n_rows, 6)).astype(np.int32)
    if kind == "numbers":
        return X
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    frame["few"] = pd.Categorical.from_codes(rng.integers(-1, 5, n_rows), list("abcde"))
    frame["many"] = pd.Categorical.from_codes(
        rng.integers(0, 60, n_rows), [f"m{i}" for i in range(60)]
    )
    both = np.array(["1", "2.5", "7", "u", "v", None], dtype=object)
    frame["both"] = both[rng.integers(0, 6, n_rows)]
    return frame


@cache
def target(kind: str, n_rows: int, n_classes: int) -> np.ndarray:
    """Labels of so many classes that depend on three columns, or numbers above 0 (0 classes)."""
    X = table(kind, n_rows)
    if sp.issparse(X):
        values = X[:, [0, 1, 2]].toarray()
    else:
        values = np.asarray(X.iloc[:, :3] if hasattr(X, "iloc") else X[:, :3], dtype=float)
    rng = np.random.default_rng([n_rows, n_classes])
    signal = np.nan_to_num(values @ [1.0, 0.1, 0.5]) + rng.random(n_rows)
    if n_classes == 0:
        return signal
    edges = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    found: np.ndarray = np.searchsorted(edges, signal)
    return found


@cache
def weights(kind: str, n_rows: int) -> np.ndarray | None:
    """Weights of a kind: "none", "whole" or "fractions"."""
    rng = np.random.default_rng(n_rows + 1)
    if kind == "none":
        return None
    found: np.ndarray = rng.integers(0, 4, n_rows) * (1.0 if kind == "whole" else 0.37)
    return found
