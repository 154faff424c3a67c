"""Trees and forests inside what scikit-learn builds out of estimators."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

FOREST = {"n_estimators": 10, "random_state": 0}
CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=6),
    *(kind(**FOREST) for kind in (RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier)),
    AdaBoostClassifier(max_depth=4, **FOREST),
]
REGRESSORS = [
    DecisionTreeRegressor(min_samples_leaf=5),
    *(kind(**FOREST) for kind in (RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor)),
    AdaBoostRegressor(max_depth=6, **FOREST),
]
NAMED_CLASSIFIERS = [(type(model).__name__, model) for model in CLASSIFIERS]
NAMED_REGRESSORS = [(type(model).__name__, model) for model in REGRESSORS]


def each(*models):
    return pytest.mark.parametrize("model", models, ids=lambda model: type(model).__name__)


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


def framed(X):
    """The columns with names, and one of words."""
    words = pd.Categorical(np.where(X[:, 0] > 0, "up", "down"))
    return pd.DataFrame(X, columns=list("abcde")).assign(kind=words)


def test_searches_and_scores(classes, numbers):
    grid = {"max_depth": [2, None], "criterion": ["gini", "entropy"], "ccp_alpha": [0.0, 0.01]}
    for model in CLASSIFIERS[:2]:
        search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(*classes)
        assert search.best_score_ > 0.8
        scoring = ["roc_auc_ovr", "neg_log_loss", "accuracy"]
        scores = cross_validate(model, *classes, scoring=scoring, error_score="raise")
        assert scores["test_roc_auc_ovr"].mean() > 0.8
    sizes = {"max_leaf_nodes": range(2, 60), "min_samples_leaf": range(1, 20)}
    how = {"n_iter": 5, "cv": 3, "random_state": 0, "error_score": "raise"}
    search = RandomizedSearchCV(DecisionTreeRegressor(), sizes, **how).fit(*numbers)
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


@pytest.mark.one_of(2)
@each(*CLASSIFIERS, *REGRESSORS)
def test_predictions_of_cross_validation(model, classes):
    X, y = classes
    predicted = cross_val_predict(model, X, y, cv=3, n_jobs=2)
    assert predicted.shape == y.shape
    if model in CLASSIFIERS:
        assert np.mean(predicted == y) > 0.75
        shares = cross_val_predict(model, X, y, cv=3, method="predict_proba")
        assert_array_equal(shares.argmax(axis=1), predicted)
        with np.errstate(divide="ignore"):
            logarithms = cross_val_predict(model, X, y, cv=3, method="predict_log_proba")
            assert_array_equal(logarithms, np.log(shares))


def test_pipelines_and_several_targets(classes, numbers):
    X, y = classes
    forest = RandomForestClassifier(5, random_state=0, max_bins=None)
    for model in (DecisionTreeClassifier(max_depth=5), forest):
        piped = make_pipeline(StandardScaler(), model).fit(X, y)  # an increasing transform
        assert np.mean(piped.predict(X) == clone(model).fit(X, y).predict(X)) > 0.99
    scaler = StandardScaler().set_output(transform="pandas")
    piped = make_pipeline(scaler, DecisionTreeClassifier(max_depth=3))
    piped.fit(pd.DataFrame(X, columns=list("abcde")), y)
    assert_array_equal(piped[-1].feature_names_in_, list("abcde"))
    X, y = numbers
    for model in REGRESSORS[:2]:
        assert MultiOutputRegressor(model).fit(X, np.c_[y, -y]).predict(X).shape == (300, 2)


def test_column_transformer(classes):
    X, y = classes
    columns = ColumnTransformer(
        [("kind", OneHotEncoder(), ["kind"])], remainder="passthrough", sparse_threshold=1.0
    )
    piped = make_pipeline(columns, DecisionTreeClassifier(max_depth=4)).fit(framed(X), y)
    native = DecisionTreeClassifier(max_depth=4).fit(framed(X), y)
    assert_array_equal(piped.predict(framed(X)), native.predict(framed(X)))


def test_ensembles_of_scikit_learn(classes, numbers):
    X, y = classes
    stump = DecisionTreeClassifier(max_depth=1).fit(X, y % 2)
    boosted = sklearn.ensemble.AdaBoostClassifier(stump, n_estimators=30, random_state=0)
    assert boosted.fit(X, y % 2).score(X, y % 2) > stump.score(X, y % 2) + 0.1
    boosted = sklearn.ensemble.AdaBoostRegressor(
        DecisionTreeRegressor(max_depth=3), n_estimators=10, random_state=0
    )
    assert boosted.fit(*numbers).score(*numbers) > 0.7
    bagged = sklearn.ensemble.BaggingClassifier(DecisionTreeClassifier(), **FOREST)
    assert bagged.fit(X, y).score(X, y) > 0.95
    bagged = sklearn.ensemble.BaggingRegressor(
        DecisionTreeRegressor(), **FOREST, max_features=0.8, oob_score=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ten trees leave rows without a vote
        assert bagged.fit(*numbers).score(*numbers) > 0.8


def test_stacking_and_voting(classes, numbers):
    final = LogisticRegression(max_iter=1000)
    stacked = sklearn.ensemble.StackingClassifier(NAMED_CLASSIFIERS, final, cv=3).fit(*classes)
    assert stacked.score(*classes) > 0.9
    stacked = sklearn.ensemble.StackingRegressor(NAMED_REGRESSORS, cv=3).fit(*numbers)
    assert stacked.score(*numbers) > 0.8
    voting = sklearn.ensemble.VotingClassifier(NAMED_CLASSIFIERS, voting="soft").fit(*classes)
    assert voting.score(*classes) > 0.9


@pytest.mark.one_of(2)
@each(*CLASSIFIERS)
def test_calibration(model, classes):
    X, y = classes
    for method in ("sigmoid", "isotonic"):
        calibrated = CalibratedClassifierCV(model, method=method, cv=3).fit(X, y)
        assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
        assert calibrated.score(X, y) > 0.85


@pytest.mark.one_of(2)
@each(*REGRESSORS)
def test_inspection(model, numbers):
    X, y = numbers
    model = clone(model).fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0, n_jobs=2)
    assert set(np.argsort(found.importances_mean)[-2:]) == {0, 1}
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
    curve = partial_dependence(model, X, [0], grid_resolution=10)
    assert np.ptp(curve["average"]) > 0.5


@each(*CLASSIFIERS[:2], *REGRESSORS[:2])
def test_partial_dependence_display(model, numbers):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = numbers
    model = clone(model).fit(framed(X), y > 0 if model in CLASSIFIERS else y)
    display = PartialDependenceDisplay.from_estimator(
        model,
        framed(X),
        ["a", ("a", "b"), "kind"],
        categorical_features=["kind"],
        grid_resolution=5,
    )
    assert display.axes_.size == 3


@each(*CLASSIFIERS, *REGRESSORS)
def test_clone_copy_pickle(model, classes):
    X, y = classes
    model = clone(model).set_params(n_jobs=2).fit(framed(X), y)
    expected = model.predict(framed(X))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "n_features_in_")
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), fresh.fit(framed(X), y)):
        assert_array_equal(twin.predict(framed(X)), expected)
        assert_array_equal(twin.feature_names_in_, model.feature_names_in_)


@each(*CLASSIFIERS[:2], *REGRESSORS[:2])
def test_metadata_routing(model, classes):
    X, y = classes
    weight = np.random.default_rng(2).exponential(size=len(y))
    expected = clone(model).fit(X, y, sample_weight=weight).predict(X)
    assert not np.array_equal(expected, clone(model).fit(X, y).predict(X))
    with sklearn.config_context(enable_metadata_routing=True):
        asks = clone(model).set_fit_request(sample_weight=True)
        asks.set_score_request(sample_weight=True)
        search = GridSearchCV(asks, {"max_depth": [model.max_depth]}, cv=3, error_score="raise")
        search.fit(X, y, sample_weight=weight)
        assert_array_equal(search.predict(X), expected)
        more = {}
        if hasattr(model, "n_estimators"):
            asks.set_fit_request(bootstrap_groups=True)
            more["bootstrap_groups"] = np.arange(len(y))
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asks)
        piped.fit(X, y, sample_weight=weight, **more)
        declines = clone(model).set_fit_request(sample_weight=False)
        declines.set_score_request(sample_weight=False)
        search = GridSearchCV(declines, {"max_depth": [4]}, cv=3)
        with pytest.raises(TypeError, match="sample_weight"):
            search.fit(X, y, sample_weight=weight)
