"""One model: the hash of all arrays of all trees, however the forest is grown.

Over threads and schedulers, workers and threads of clusters, dense and sparse storage. Rows in
blocks of other sizes are in `tests.parallel.test_partitioned`.
"""

from __future__ import annotations

from dataclasses import dataclass

import dask
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.pairs import parametrize_pairs
from tests.parallel.clusters import connect, digest
from tests.parallel.test_collections import Folds, hash_of

N_ROWS = 1_000
STORAGE = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_matrix}


def table():
    """Mostly zeros; some columns have more values than codes, and some values are missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6)).round(3) * (rng.random((N_ROWS, 6)) < 0.4)
    y = (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=N_ROWS) > 0.3) + (X[:, 2] > 0)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y.astype(int)


X, Y = table()
WEIGHTS = np.random.default_rng(1).choice([0, 0.5, 1, 2.25], size=N_ROWS)


@dataclass(frozen=True)
class Case:
    """A forest and what it learns: numbers, where it takes numbers, or this many classes."""

    model: object
    n_classes: int = 3
    weights: np.ndarray | None = None

    def fit(self, storage="dense", kind=None, **parameters):
        return self.model_of(kind, parameters).fit(STORAGE[storage](X), self.y, self.weights)

    def cross_validate(self, storage="dense", **parameters):
        folds = Folds(self.model_of(None, parameters))
        return folds.fit(STORAGE[storage](X), self.y, self.weights)

    def model_of(self, kind, parameters):
        parameters = {"random_state": 5, "max_bins": 64, **parameters}
        return (kind or type(self.model))(**{**self.model.get_params(), **parameters})

    @property
    def y(self):
        return np.minimum(Y, self.n_classes - 1)


CASES = {
    "classes": Case(RandomForestClassifier(8)),
    "numbers": Case(RandomForestRegressor(4, min_samples_leaf=3)),
    "cuts-numbers": Case(ExtraTreesRegressor(4, bootstrap=True)),
    "two-classes": Case(RandomForestClassifier(4), n_classes=2),
    "cuts-two-classes": Case(ExtraTreesClassifier(2, bootstrap=True), n_classes=2),
    "bagging-two-classes": Case(BaggingClassifier(2), n_classes=2),
    "bagging-numbers": Case(BaggingRegressor(2, min_samples_leaf=3)),
    "weighted-classes": Case(RandomForestClassifier(2), weights=WEIGHTS),
    "weighted-two-classes": Case(BaggingClassifier(2), n_classes=2, weights=WEIGHTS),
    "weighted-numbers": Case(RandomForestRegressor(2, min_samples_leaf=3), weights=WEIGHTS),
}

FOLDS = ("classes", "weighted-two-classes", "weighted-numbers")  # that are cross-validated as well


def fitted(case, storage="dense", regime=None, **parameters):
    model = CASES[case].fit(storage, regime=regime, **parameters)
    assert regime in (None, model.fit_report_["regime"])
    return digest(model.forest_.trees)


def validated(case, storage="dense", regime=None, **parameters):
    """The hash of the models of all folds, and their scores."""
    folds = CASES[case].cross_validate(storage, regime=regime, **parameters)
    assert regime in (None, folds.fit_report_["regime"])
    return hash_of(folds)


@pytest.fixture(scope="module")
def expected():
    return {case: fitted(case, regime="local") for case in CASES}


@pytest.fixture(scope="module")
def expected_of_folds():
    return {case: validated(case, regime="local") for case in FOLDS}


def test_forests_differ(expected):
    assert len(set(expected.values())) == len(CASES)


@pytest.mark.one_of(2)
@parametrize_pairs(
    case=CASES, storage=STORAGE, scheduler=["threads", "synchronous"], regime=[None, "partitioned"]
)
def test_threads(case, storage, scheduler, regime, expected):
    with dask.config.set({"scheduler": scheduler, "dtrees.gather-rows": 100}):
        assert fitted(case, storage, regime, n_jobs=2) == expected[case]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case", FOLDS)
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("regime", ["local", "partitioned"])
def test_folds(case, storage, regime, expected_of_folds):
    with dask.config.set({"dtrees.gather-rows": 100}):
        assert validated(case, storage, regime, n_jobs=2) == expected_of_folds[case]


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("layout", "processes"),
    [
        ((2, 1), True),
        ((1, 2), False),
        *(
            pytest.param(*each, marks=pytest.mark.chaos)
            for each in (((1, 1), True), ((1, 2), True), ((1, 1), False), ((2, 1), False))
        ),
    ],
)
def test_clusters(layout, processes, expected, expected_of_folds):
    n_workers, threads = layout
    with connect(n_workers, threads, processes) as cluster, Client(cluster):
        for case in CASES:
            for storage in STORAGE:
                assert fitted(case, storage, "replicated") == expected[case], (case, storage)
        for case in FOLDS:
            assert validated(case, regime="replicated") == expected_of_folds[case], case
