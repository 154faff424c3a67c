"""Tables to measure on: random ones, and the real data sets when they are there.

The real sets lie in ``../shared/data`` beside the project (or where ``DTREES_DATA`` says) with a
``load.py`` that reads them. They are not part of the project; cases that need them are skipped
without them.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import make_classification, make_regression

from benchmarks.cases import Scale, Skipped

ROOT = Path(__file__).resolve().parent.parent


@cache
def loader() -> ModuleType:
    """The module ``load.py`` that stands with the data sets."""
    folder = Path(os.environ.get("DTREES_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "load.py").is_file():
        raise Skipped("the real data sets (../shared/data or $DTREES_DATA) are not here")
    spec = importlib.util.spec_from_file_location("shared_load", folder / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def real(name: str) -> tuple[Any, np.ndarray]:
    """(X, y) of a real data set."""
    load = loader()
    if name not in load.names():
        raise Skipped(f"the data set {name} is not among those that are here")
    X, y, _ = load.load(name)
    return X, y


def real_part(name: str, scale: Scale) -> tuple[Any, np.ndarray]:
    """The same; of a quick run about 500 of its rows."""
    X, y = real(name)
    if not scale.quick:
        return X, y
    rows = np.arange(0, len(y), max(1, len(y) // 500))
    return X.iloc[rows].reset_index(drop=True), y[rows]


def ordinal(X: Any) -> Any:
    """Categories as the numbers of their order, missing ones as -1; float32, or sparse as it is."""
    if scipy.sparse.issparse(X):
        return X
    numbers = X.apply(lambda c: c.cat.codes if c.dtype == "category" else c)
    return numbers.to_numpy(np.float32)


@cache
def classification(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """30 columns of float32, 12 informative and 6 redundant, two classes, 5 % of them drawn."""
    X, y = make_classification(
        n_rows, 30, n_informative=12, n_redundant=6, flip_y=0.05, random_state=seed
    )
    return X.astype(np.float32), y


@cache
def regression(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """30 columns of float32, 12 informative, noise of about a tenth of the target's spread."""
    X, y = make_regression(n_rows, 30, n_informative=12, noise=20.0, random_state=seed)
    return X.astype(np.float32), y


def random_sparse(n_rows: int, n_columns: int, density: float, seed: int = 0):
    """As in [SP] 4: uniform numbers of [0, 1) at random places, a class drawn for every row."""
    rng = np.random.default_rng(seed)
    per_row = rng.binomial(n_columns, density, n_rows)
    indptr = np.concatenate([[0], np.cumsum(per_row)])
    indices = np.empty(indptr[-1], dtype=np.int32)
    for i in range(n_rows):
        chosen = rng.choice(n_columns, per_row[i], replace=False, shuffle=False)
        indices[indptr[i] : indptr[i + 1]] = np.sort(chosen)
    values = rng.random(indptr[-1], dtype=np.float32)
    X = scipy.sparse.csr_matrix((values, indices, indptr), shape=(n_rows, n_columns))
    return X, rng.integers(0, 2, n_rows)
