"""Forests inside what scikit-learn builds out of estimators."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier]
REGRESSORS = [RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor]


@pytest.fixture
def classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    return X, (X[:, 0] + X[:, 1] ** 2 > 1).astype(int) + 2 * (X[:, 2] > 1)


@pytest.fixture
def numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2


@pytest.mark.parametrize("kind", REGRESSORS)
def test_importance_by_permutation(kind, numbers):
    X, y = numbers
    forest = kind(20, random_state=0).fit(X, y)
    found = permutation_importance(forest, X, y, n_repeats=3, random_state=0, n_jobs=2)
    assert set(np.argsort(found.importances_mean)[-2:]) == {0, 1}
    assert set(np.argsort(forest.feature_importances_)[-2:]) == {0, 1}


@pytest.mark.parametrize("kind", REGRESSORS)
def test_partial_dependence(kind, numbers):
    X, y = numbers
    forest = kind(20, random_state=0).fit(X, y)
    curve = partial_dependence(forest, X, [0], grid_resolution=10)
    assert np.ptp(curve["average"]) > 0.5


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_partial_dependence_display(kind, numbers):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = numbers
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        kind=pd.Categorical(np.where(X[:, 0] > 0, "up", "down"))
    )
    target = y if kind is RandomForestRegressor else y > 0
    forest = kind(5, random_state=0).fit(frame, target)
    display = PartialDependenceDisplay.from_estimator(
        forest, frame, ["a", ("a", "b"), "kind"], categorical_features=["kind"], grid_resolution=5
    )
    assert display.axes_.size == 3


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration(kind, method, classes):
    X, y = classes
    calibrated = CalibratedClassifierCV(kind(10, random_state=0), method=method, cv=3).fit(X, y)
    shares = calibrated.predict_proba(X)
    assert_allclose(shares.sum(axis=1), 1)
    assert calibrated.score(X, y) > 0.9


def test_stacking(classes, numbers):
    forests = [(kind.__name__, kind(10, random_state=0)) for kind in CLASSIFIERS]
    stacked = StackingClassifier(forests, LogisticRegression(max_iter=1000), cv=3).fit(*classes)
    assert stacked.score(*classes) > 0.9
    forests = [(kind.__name__, kind(10, random_state=0)) for kind in REGRESSORS]
    assert StackingRegressor(forests, cv=3).fit(*numbers).score(*numbers) > 0.8
    voters = [(kind.__name__, kind(10, random_state=0)) for kind in CLASSIFIERS]
    assert VotingClassifier(voters, voting="soft").fit(*classes).score(*classes) > 0.9


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_predictions_of_cross_validation(kind, classes):
    X, y = classes
    forest = kind(10, random_state=0)
    predicted = cross_val_predict(forest, X, y, cv=3, n_jobs=2)
    assert predicted.shape == y.shape
    if kind in CLASSIFIERS:
        assert np.mean(predicted == y) > 0.75
        shares = cross_val_predict(forest, X, y, cv=3, method="predict_proba")
        assert_array_equal(shares.argmax(axis=1), predicted)
        with np.errstate(divide="ignore"):
            logarithms = cross_val_predict(forest, X, y, cv=3, method="predict_log_proba")
            assert_array_equal(logarithms, np.log(shares))


def test_searches_and_scores(classes):
    grid = {"max_features": ["sqrt", None], "n_estimators": [3, 10]}
    search = GridSearchCV(RandomForestClassifier(random_state=0), grid, cv=3, error_score="raise")
    assert search.fit(*classes).best_score_ > 0.8
    scores = cross_validate(
        RandomForestClassifier(20, random_state=0),
        *classes,
        scoring=["roc_auc_ovr", "neg_log_loss", "accuracy"],
        error_score="raise",
    )
    assert scores["test_roc_auc_ovr"].mean() > 0.9


def test_pipelines_and_several_targets(classes, numbers):
    X, y = classes
    forest = RandomForestClassifier(5, random_state=0, max_bins=None)
    piped = make_pipeline(StandardScaler(), forest).fit(X, y)
    assert np.mean(piped.predict(X) == clone(forest).fit(X, y).predict(X)) > 0.99
    X, y = numbers
    several = MultiOutputRegressor(RandomForestRegressor(3)).fit(X, np.c_[y, -y])
    assert several.predict(X).shape == (300, 2)


@pytest.mark.parametrize("kind", [*CLASSIFIERS, *REGRESSORS])
def test_clones_copies_and_pickles(kind, classes):
    X, y = classes
    forest = kind(4, random_state=3, n_jobs=2).fit(X, y)
    expected = forest.predict(X)
    fresh = clone(forest)
    assert not hasattr(fresh, "forest_")
    for twin in (copy.deepcopy(forest), pickle.loads(pickle.dumps(forest)), fresh.fit(X, y)):
        assert_array_equal(twin.predict(X), expected)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_metadata_routing(kind, classes):
    X, y = classes
    weight = np.random.default_rng(2).exponential(size=len(y))
    expected = kind(4, random_state=0).fit(X, y, sample_weight=weight).predict(X)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = kind(4, random_state=0).set_fit_request(sample_weight=True, bootstrap_groups=True)
        asks.set_score_request(sample_weight=True)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asks)
        piped.fit(X, y, sample_weight=weight, bootstrap_groups=np.arange(len(y)))
        search = GridSearchCV(asks, {"max_depth": [None]}, cv=3, error_score="raise")
        search.fit(X, y, sample_weight=weight)
        assert_array_equal(search.predict(X), expected)
