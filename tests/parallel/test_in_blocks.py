"""The partitioned regime without a cluster: rounds of blocks on threads give the same models."""

from __future__ import annotations

import pickle

import dask
import numpy as np
import pytest
from sklearn.model_selection import KFold

import dtrees
from dtrees.estimators.sets import trees_of
from dtrees.model_selection import cross_validate
from tests.parallel.clusters import digest

N_ROWS = 900


@pytest.fixture
def rounds():
    """Nodes are spread until they are small, and histograms of a round are few."""
    how = {"regime": "partitioned", "gather-rows": 60, "histogram-budget": 200_000}
    with dask.config.set({f"dtrees.{name}": value for name, value in how.items()}):
        yield


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 5] = rng.integers(0, 9, N_ROWS)
    signal = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2])
    return X, np.digitize(signal + rng.normal(size=N_ROWS), [-0.5, 0.8])


MODELS = {
    "tree": dtrees.DecisionTreeClassifier(categorical_features=[5]),
    "leaves": dtrees.DecisionTreeRegressor(max_leaf_nodes=12, ccp_alpha=0.001),
    "entropy": dtrees.RandomForestClassifier(3, criterion="entropy", random_state=1),
    "balanced": dtrees.RandomForestClassifier(3, class_weight="balanced_subsample", random_state=2),
    "shares": dtrees.RandomForestRegressor(
        3, min_samples_leaf=0.01, min_weight_fraction_leaf=0.02, max_features=2, random_state=0
    ),
    "deviance": dtrees.RandomForestRegressor(3, criterion="poisson", random_state=3),
    "cuts": dtrees.ExtraTreesClassifier(3, random_state=4),
    "small bags": dtrees.RandomForestClassifier(9, max_samples=1, random_state=5),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_fits(model, weighted, table, rounds):
    X, y = table
    weight = np.random.default_rng(1).integers(0, 4, N_ROWS) * 0.3 if weighted else None
    found = MODELS[model].fit(X, y, sample_weight=weight)
    assert found.fit_report_["regime"] == "partitioned"
    assert model == "small bags" or found.fit_report_["rounds"] > 1
    trees = digest(trees_of(found))
    with dask.config.set({"dtrees.regime": "local"}):
        assert digest(trees_of(MODELS[model].fit(X, y, sample_weight=weight))) == trees


@pytest.mark.parametrize(
    ("model", "n_folds"), [*((model, 3) for model in MODELS), ("tree", 67), ("entropy", 67)]
)
def test_cross_validation(model, n_folds, table, rounds):
    X, y = table
    arguments = {"cv": KFold(n_folds), "return_estimator": True}
    found = cross_validate(MODELS[model], X, y, **arguments)
    with dask.config.set({"dtrees.regime": "local"}):
        expected = cross_validate(MODELS[model], X, y, **arguments)
    np.testing.assert_array_equal(found["test_score"], expected["test_score"])
    for mine, other in zip(found["estimator"], expected["estimator"], strict=True):
        assert digest(trees_of(mine)) == digest(trees_of(other))


def test_the_report_is_not_part_of_the_model(table):
    X, y = table
    tree = dtrees.DecisionTreeClassifier().fit(X, y)
    assert tree.fit_report_["regime"] == "local"
    assert set(tree.fit_report_["seconds"]) == {"coding", "growth"}
    with pytest.raises(AttributeError, match="no fit_report_"):
        pickle.loads(pickle.dumps(tree)).fit_report_  # noqa: B018


def test_too_many_codes_for_histograms(rounds):
    X = np.arange(70_000.0)[:, None]
    y = X[:, 0] > 30_000
    with pytest.raises(ValueError, match=r"Column 0 has 70000 distinct .* Set max_codes=255"):
        dtrees.DecisionTreeClassifier().fit(X, y)
    assert dtrees.DecisionTreeClassifier(max_codes=255).fit(X, y).score(X, y) > 0.99
