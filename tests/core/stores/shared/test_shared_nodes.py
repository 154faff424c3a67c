"""Shared growth without memory: each claim that is not granted ends in a MemoryError, and in order.

A claim is an allocation for the rows or the histograms of a shared node, or for the rows of a set
that goes on alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dtrees
from dtrees.core.data import _cpu
from dtrees.core.stores.shared._shared_nodes import grant_claims
from dtrees.estimators.fitted_sets import FittedSets, trees_of
from dtrees.estimators.training_sets import fit_sets
from tests.laws.test_growth import assert_equal

N_ROWS = 1200
FEW = 40  # claims, of which each one fails once; then some, further and further apart


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


def sets() -> np.ndarray:
    """Training rows of five folds, and all rows."""
    fold = np.arange(N_ROWS) % 5
    return np.vstack([fold != np.arange(5)[:, None], np.ones((1, N_ROWS), dtype=bool)])


WORKS = {
    "two classes": (2, dtrees.DecisionTreeClassifier, {}),
    "five classes": (5, dtrees.DecisionTreeClassifier, {}),
    "entropy": (5, dtrees.DecisionTreeClassifier, {"criterion": "entropy"}),
    "regression": (9, dtrees.DecisionTreeRegressor, {}),
    "a forest": (5, dtrees.RandomForestClassifier, {"n_estimators": 2}),
}


@pytest.fixture(autouse=True)
def granted():
    yield
    grant_claims(-1)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("work", WORKS)
def test_every_claim_may_fail(work, wide):
    n_classes, kind, parameters = WORKS[work]
    X, y = table(n_classes)
    estimator = kind(min_samples_leaf=5, random_state=0, n_jobs=1, **parameters)
    before = _cpu.use_wide(wide)
    try:
        expected = fit_sets(estimator, X, y, None, sets())
        granted, step = 0, 1
        while True:
            grant_claims(granted)
            try:
                found = fit_sets(estimator, X, y, None, sets())
            except MemoryError:
                granted += step
                step += granted > FEW
                continue
            assert grant_claims(-1) > 0  # it was enough
            break
    finally:
        _cpu.use_wide(before)
    assert granted > FEW
    assert_same(found, expected)


def test_threads_end(monkeypatch):
    """What one thread lacks ends the growth of all, and the next one is whole."""
    X, y = table(5)
    X = pd.concat([X] * 40, ignore_index=True)
    y = np.tile(y, 40)
    rows = np.tile(sets(), (1, 40))
    estimator = dtrees.DecisionTreeClassifier(min_samples_leaf=5, random_state=0, n_jobs=2)
    expected = fit_sets(estimator, X, y, None, rows)
    for granted in (3, 30, 60, 90):
        grant_claims(granted)
        with pytest.raises(MemoryError):
            fit_sets(estimator, X, y, None, rows)
    grant_claims(-1)
    assert_same(fit_sets(estimator, X, y, None, rows), expected)


def assert_same(found: FittedSets, expected: FittedSets) -> None:
    for a, b in zip(found.models, expected.models, strict=True):
        for mine, other in zip(trees_of(a), trees_of(b), strict=True):
            assert_equal(mine, other)
