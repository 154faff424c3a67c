"""The estimators inside what scikit-learn builds out of estimators."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
)
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor


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


def test_grid_search(classes, numbers):
    grid = {"max_depth": [2, 5, None], "criterion": ["gini", "entropy"], "ccp_alpha": [0.0, 0.01]}
    search = GridSearchCV(DecisionTreeClassifier(), grid, cv=3, error_score="raise").fit(*classes)
    assert search.best_score_ > 0.8
    search = RandomizedSearchCV(
        DecisionTreeRegressor(),
        {"max_leaf_nodes": range(2, 60), "min_samples_leaf": range(1, 20)},
        n_iter=5,
        cv=3,
        random_state=0,
        error_score="raise",
    ).fit(*numbers)
    assert search.best_score_ > 0.5


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_grid_search_on_workers(classes, backend, monkeypatch):
    from joblib import parallel_config
    from joblib.externals.loky.backend import context

    # Workers are forked with the package loaded: two that load it take 3.6 s of the processor.
    monkeypatch.setattr(context, "_DEFAULT_START_METHOD", "forkserver")

    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [2, 5]}, cv=3, n_jobs=2)
    with parallel_config(backend=backend):
        search.fit(*classes)
    here = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [2, 5]}, cv=3).fit(*classes)
    assert_array_equal(search.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])


def test_cross_validation(classes, numbers):
    assert cross_val_score(DecisionTreeClassifier(), *classes, cv=5).mean() > 0.8
    assert cross_val_score(DecisionTreeRegressor(), *numbers, cv=5).mean() > 0.5
    scores = cross_validate(
        DecisionTreeClassifier(max_depth=5),
        *classes,
        scoring=["roc_auc_ovr", "neg_log_loss", "accuracy"],
        error_score="raise",
    )
    assert scores["test_roc_auc_ovr"].mean() > 0.8


def test_pipelines(classes):
    X, y = classes
    alone = DecisionTreeClassifier(max_depth=5).fit(X, y)
    piped = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=5)).fit(X, y)
    assert_array_equal(piped.predict(X), alone.predict(X))  # an increasing transform


def test_column_transformer(classes):
    X, y = classes
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        kind=pd.Categorical(np.where(X[:, 0] > 0, "up", "down"))
    )
    columns = ColumnTransformer(
        [("kind", OneHotEncoder(), ["kind"])], remainder="passthrough", sparse_threshold=1.0
    )
    piped = make_pipeline(columns, DecisionTreeClassifier(max_depth=4)).fit(frame, y)
    native = DecisionTreeClassifier(max_depth=4).fit(frame, y)
    assert_array_equal(piped.predict(frame), native.predict(frame))


def test_frames_that_transformers_return(classes):
    X, y = classes
    scaler = StandardScaler().set_output(transform="pandas")
    piped = make_pipeline(scaler, DecisionTreeClassifier(max_depth=3))
    piped.fit(pd.DataFrame(X, columns=list("abcde")), y)
    assert_array_equal(piped[-1].feature_names_in_, list("abcde"))


def test_boosting(classes, numbers):
    X, y = classes
    stump = DecisionTreeClassifier(max_depth=1).fit(X, y % 2)
    boosted = AdaBoostClassifier(stump, n_estimators=30, random_state=0).fit(X, y % 2)
    assert boosted.score(X, y % 2) > stump.score(X, y % 2) + 0.1
    boosted = AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=10, random_state=0)
    assert boosted.fit(*numbers).score(*numbers) > 0.7


def test_bagging(classes, numbers):
    bagged = BaggingClassifier(DecisionTreeClassifier(), n_estimators=10, random_state=0)
    assert bagged.fit(*classes).score(*classes) > 0.95
    bagged = BaggingRegressor(
        DecisionTreeRegressor(), n_estimators=10, random_state=0, max_features=0.8, oob_score=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ten trees leave rows without a vote
        assert bagged.fit(*numbers).score(*numbers) > 0.8


def test_voting_and_several_targets(classes, numbers):
    voters = [("a", DecisionTreeClassifier(max_depth=3)), ("b", DecisionTreeClassifier())]
    assert VotingClassifier(voters, voting="soft").fit(*classes).score(*classes) > 0.9
    X, y = numbers
    several = MultiOutputRegressor(DecisionTreeRegressor(max_depth=4)).fit(X, np.c_[y, -y])
    assert several.predict(X).shape == (300, 2)


def test_inspection(numbers):
    X, y = numbers
    tree = DecisionTreeRegressor(min_samples_leaf=5).fit(X, y)
    importance = permutation_importance(tree, X, y, n_repeats=3, random_state=0).importances_mean
    assert set(np.argsort(importance)[-2:]) == {0, 1}
    assert set(np.argsort(tree.feature_importances_)[-2:]) == {0, 1}
    curve = partial_dependence(tree, X, [0], grid_resolution=10)
    assert np.ptp(curve["average"]) > 0.5


def test_partial_dependence_display(numbers):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = numbers
    tree = DecisionTreeRegressor(min_samples_leaf=5).fit(X, y)
    display = PartialDependenceDisplay.from_estimator(tree, X, [0, (0, 1)], grid_resolution=5)
    assert display.axes_.size == 2


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_clone_copy_pickle(kind, classes):
    X, y = classes
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        kind=pd.Categorical(np.where(X[:, 0] > 0, "up", "down"))
    )
    tree = kind(max_depth=6, n_jobs=2).fit(frame, y)
    expected = tree.predict(frame)
    fresh = clone(tree)
    assert fresh.get_params() == tree.get_params()
    assert not hasattr(fresh, "tree_")
    for twin in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree)), fresh.fit(frame, y)):
        assert_array_equal(twin.predict(frame), expected)
        assert twin.tree_.model.equals(tree.tree_.model)
        assert_array_equal(twin.feature_names_in_, tree.feature_names_in_)


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_metadata_routing(kind, classes):
    X, y = classes
    weight = np.random.default_rng(2).exponential(size=len(y))
    expected = kind(max_depth=4).fit(X, y, sample_weight=weight).predict(X)
    unweighted = kind(max_depth=4).fit(X, y).predict(X)
    assert not np.array_equal(expected, unweighted)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = kind(max_depth=4).set_fit_request(sample_weight=True)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asks)
        assert_array_equal(piped.fit(X, y, sample_weight=weight).predict(X), expected)

        asks.set_score_request(sample_weight=True)
        search = GridSearchCV(asks, {"max_depth": [4]}, cv=3, error_score="raise")
        search.fit(X, y, sample_weight=weight)
        assert_array_equal(search.predict(X), expected)

        declines = kind(max_depth=4).set_fit_request(sample_weight=False)
        declines.set_score_request(sample_weight=False)
        search = GridSearchCV(declines, {"max_depth": [4]}, cv=3)
        with pytest.raises(TypeError, match="sample_weight"):
            search.fit(X, y, sample_weight=weight)
