"""Searches have the results of scikit-learn's own, over the same estimators, from fewer growths."""

import logging
import warnings

import numpy as np
import pytest
import scipy.stats
import sklearn.model_selection as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    f1_score,
    make_scorer,
)

import dtrees
from dtrees.callbacks import Bar
from dtrees.estimators import training_sets
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import GridSearchCV, RandomizedSearchCV

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
CLASSIFIER = dtrees.DecisionTreeClassifier(random_state=0)
REGRESSOR = dtrees.DecisionTreeRegressor(random_state=0)
FOREST = dtrees.RandomForestClassifier(6, random_state=0, bootstrap=False, max_bins=None)
LIMITS = {
    "max_depth": [1, 2, 4, None],
    "min_samples_split": [2, 9, 50],
    "ccp_alpha": [0.0, 0.004, 0.02],
}

FEW_LIMITS = {"max_depth": [2, None], "min_samples_split": [2, 50], "ccp_alpha": [0.0, 0.02]}


def same(ours, expected):
    """All results, but for times."""
    assert ours.cv_results_.keys() == expected.cv_results_.keys()
    for name, values in expected.cv_results_.items():
        if name == "params" or name.startswith("param_"):
            assert list(ours.cv_results_[name]) == list(values), name
        elif not name.endswith("_time"):
            np.testing.assert_allclose(ours.cv_results_[name], values, 1e-9, 1e-11, err_msg=name)
    for name in ("best_index_", "best_params_", "n_splits_", "multimetric_"):
        assert getattr(ours, name, None) == getattr(expected, name, None), name
    if hasattr(expected, "best_score_"):
        assert ours.best_score_ == pytest.approx(expected.best_score_, nan_ok=True)
    assert hasattr(ours, "best_estimator_") == hasattr(expected, "best_estimator_")
    if hasattr(expected, "best_estimator_"):
        assert ours.best_estimator_.get_params() == expected.best_estimator_.get_params()
        same_model(ours.best_estimator_, expected.best_estimator_)


def same_model(ours, expected):
    """Every tree, bit for bit."""
    for a, b in zip(trees_of(ours), trees_of(expected), strict=True):
        assert a.equals(b)


def named(data, labels):
    return data[0], np.array(labels)[data[1]]


def both(estimator, grid, data, **how):
    """Fit both searches; returns ours."""
    how = {"cv": theirs.KFold(3, shuffle=True, random_state=0)} | how
    ours = GridSearchCV(estimator, grid, **how).fit(*data)
    same(ours, theirs.GridSearchCV(estimator, grid, **how).fit(*data))
    return ours


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "refit", ["neg_log_loss", False, lambda results: int(np.argmin(results["mean_test_accuracy"]))]
)
@pytest.mark.parametrize(
    "scoring",
    [["accuracy", "neg_log_loss"], {"accuracy": "accuracy", "neg_log_loss": "neg_log_loss"},
     {"accuracy": make_scorer(f1_score), "neg_log_loss": "neg_log_loss"}],
    ids=["list", "names", "scorers"],
)  # fmt: skip
def test_several_scorers(scoring, refit):
    both(CLASSIFIER, FEW_LIMITS, CANCER, scoring=scoring, refit=refit)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "grid",
    [
        {"max_leaf_nodes": [2, 3, 7, 50, None], "max_depth": [2, None], "ccp_alpha": [0.0, 0.01]},
        {"min_impurity_decrease": [0.0, 0.003, 0.01], "min_samples_split": [2, 20, 0.1]},
        {"criterion": ["gini", "entropy"], "min_samples_leaf": [1, 5], "max_depth": [2, 3]},
        {"min_samples_leaf": [1, 6, 0.03], "min_weight_fraction_leaf": [0.0, 0.02]},
        {"class_weight": [None, "balanced", {0: 3.0}], "max_depth": [1, 5]},
        {"max_bins": [10, 255, None], "ccp_alpha": [0.0, 0.02]},
        {"max_features": [2, "sqrt"], "random_state": [0, 1], "max_depth": [3, 4]},
        {"categorical_features": [None, [0]], "max_depth": [3]},
        [{"max_depth": [2, 3]}, {"min_samples_split": [30], "criterion": ["entropy"]}],
        {},
    ],
    ids=str,
)
def test_grids(grid):
    X = np.round(CANCER[0][:, :5], 1)  # few enough values for exact codes of less than 255
    cut = {"cv": 3, "scoring": "accuracy"}
    if "max_bins" in grid:  # cuts are those of all rows: compare with fits by weights
        ours = GridSearchCV(CLASSIFIER, grid, **cut).fit(X, CANCER[1])
        by_weights(ours, CLASSIFIER, (X, CANCER[1]), theirs.StratifiedKFold(3))
        return
    both(CLASSIFIER, grid, (X, CANCER[1]), **cut)


def by_weights(search, estimator, data, cv):
    """Every cell is the score of a fit with weights."""
    X, y = data
    for number, (train, test) in enumerate(cv.split(X, y)):
        weight = np.zeros(len(y))
        weight[train] = 1
        for place, params in enumerate(search.cv_results_["params"]):
            model = clone(estimator).set_params(**params).fit(X, y, sample_weight=weight)
            score = search.cv_results_[f"split{number}_test_score"][place]
            assert score == pytest.approx(model.score(X[test], y[test]), rel=1e-12)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "forest",
    [
        FOREST,
        dtrees.ExtraTreesClassifier(5, random_state=1, max_bins=None),
        dtrees.BaggingClassifier(4, random_state=2, bootstrap=False, max_bins=None),
    ],
    ids=lambda forest: type(forest).__name__,
)
def test_forests(forest):
    grid = {"n_estimators": [1, 3, 6], "max_depth": [2, None], "ccp_alpha": [0.0, 0.01]}
    both(forest, grid, CANCER, scoring=["accuracy", "roc_auc"], refit="roc_auc")


def test_bags():
    forest = dtrees.RandomForestRegressor(5, random_state=0, max_bins=20)
    grid = {"n_estimators": [2, 5], "min_samples_split": [2, 30], "max_samples": [0.5, 1.0]}
    search = GridSearchCV(forest, grid, cv=theirs.KFold(3)).fit(*DIABETES)
    by_weights(search, forest, DIABETES, theirs.KFold(3))
    best = clone(forest).set_params(**search.best_params_).fit(*DIABETES)
    same_model(search.best_estimator_, best)


def test_forests_that_learn_more_than_trees():
    forest = dtrees.RandomForestClassifier(30, random_state=0, oob_score=True)
    search = GridSearchCV(forest, {"max_depth": [2, 5]}, cv=2).fit(*CANCER)
    best = clone(forest).set_params(**search.best_params_).fit(*CANCER)
    assert search.best_estimator_.oob_score_ == best.oob_score_


def test_warm_start_changes_nothing(monkeypatch):
    """Every candidate is a clone that is fitted once; only the best one may go on."""
    fits, fit_table = [], training_sets.fit_table
    monkeypatch.setattr(
        "dtrees.model_selection.shared_search.fit_table",
        lambda estimator, *args, **how: (
            fits.append(estimator) or fit_table(estimator, *args, **how)
        ),
    )
    forest = dtrees.RandomForestClassifier(5, random_state=0, max_bins=20)
    grid = {"n_estimators": [2, 5], "max_depth": [2, None]}
    cold, warm = (
        GridSearchCV(forest.set_params(warm_start=warm), grid, cv=3).fit(*CANCER)
        for warm in (False, True)
    )
    assert len(fits) == 2  # one growth each
    for name, values in cold.cv_results_.items():
        if name.startswith(("split", "mean_test", "rank")):
            np.testing.assert_array_equal(warm.cv_results_[name], values, err_msg=name)
    same_model(warm.best_estimator_, cold.best_estimator_)
    best = warm.best_estimator_.set_params(n_estimators=8).fit(*CANCER)
    whole = clone(best).fit(*CANCER)
    assert len(best) == 8
    same_model(best, whole)


def test_random_candidates():
    limits = {"max_depth": [1, 2, 3, 5, None], "ccp_alpha": scipy.stats.uniform(0, 0.02)}
    how = {"n_iter": 25, "random_state": 3, "cv": 4, "scoring": "neg_log_loss"}
    ours = RandomizedSearchCV(CLASSIFIER, limits, **how).fit(*CANCER)
    same(ours, theirs.RandomizedSearchCV(CLASSIFIER, limits, **how).fit(*CANCER))


@settings(max_examples=max(4, settings.default.max_examples // 40))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["gini", "entropy", "squared_error", "poisson"]),
    max_features=st.sampled_from([None, 2]),
)
def test_every_cell_is_its_fit(seed, kind, max_features):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 120))
    X = np.round(rng.normal(size=(n, 4)), 1)
    X[rng.random((n, 4)) < 0.05] = np.nan
    X[:, 3] = rng.integers(0, 5, n)
    how = {"categorical_features": [3], "max_features": max_features, "random_state": seed}
    if kind in ("gini", "entropy"):
        y = rng.integers(0, 3, n)
        estimator = dtrees.DecisionTreeClassifier(criterion=kind, **how)
        scoring = ["accuracy", "neg_log_loss", "balanced_accuracy"]
    else:
        y = rng.poisson(3, n).astype(float)
        estimator = dtrees.DecisionTreeRegressor(criterion=kind, **how)
        scoring = ["r2", "neg_mean_squared_error", "neg_mean_absolute_error"]
    some = [None, *(int(k) for k in rng.integers(2, 12, 3))]
    grid = {
        "max_depth": some[: rng.integers(1, 4)],
        "min_samples_split": [2, int(rng.integers(3, 20))],
        "min_impurity_decrease": [0.0, float(rng.random() / 20)],
        "max_leaf_nodes": some[: rng.integers(1, 3)],
        "ccp_alpha": [0.0, float(rng.random() / 30)],
    }
    cv = theirs.ShuffleSplit(2, test_size=0.3, random_state=seed)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        both(estimator, grid, (X, y), scoring=scoring, refit=scoring[0], cv=cv)


@settings(max_examples=max(5, settings.default.max_examples // 40))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["RandomForest", "ExtraTrees", "Bagging"]),
    bootstrap=st.booleans(),
    regression=st.booleans(),
)
def test_every_cell_of_a_forest_is_its_fit(seed, kind, bootstrap, regression):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(60, 3)), 1)
    y = rng.normal(size=60) if regression else rng.integers(0, 3, 60)
    weight = rng.integers(0, 3, 60).astype(float)
    weight[:5] = 1
    made = getattr(dtrees, kind + ("Regressor" if regression else "Classifier"))
    forest = made(4, bootstrap=bootstrap, random_state=seed, n_jobs=2)
    grid = {
        "n_estimators": [1, 4],
        "max_depth": [2, None],
        "min_samples_split": [2, 0.2],
        "max_leaf_nodes": [None, 5],
    }
    cv = theirs.ShuffleSplit(2, test_size=0.3, random_state=seed)
    search = GridSearchCV(forest, grid, cv=cv, scoring=plain_score)
    search.fit(X, y, sample_weight=weight)
    for number, (train, test) in enumerate(cv.split(X)):
        own = np.zeros(60)
        own[train] = weight[train]
        for place, params in enumerate(search.cv_results_["params"]):
            model = clone(forest).set_params(**params).fit(X, y, sample_weight=own)
            score = search.cv_results_[f"split{number}_test_score"][place]
            assert score == plain_score(model, X[test], y[test])


def plain_score(model, X, y, sample_weight=None):
    """A score that tells predictions apart, to the last bit."""
    said = model.predict(X)
    return float(np.sum(said * np.arange(1, len(said) + 1)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"], ids=["leaves", "predictions"])
def test_shares_are_of_the_training_side(scoring, weighted):
    """A limit is another number of rows in each of them, and in the final model."""
    X, y = CANCER
    weight = (np.arange(len(y)) % 3 > 0).astype(float) if weighted else None
    rows = np.random.default_rng(0).permutation(len(y))
    splits = [(rows[:n], rows[n:]) for n in (120, 260, 410)]
    grid = {"min_samples_split": [0.07, 0.2, 25], "min_samples_leaf": [1, 0.021]}
    ours, expected = (
        search(CLASSIFIER, grid, cv=splits, scoring=scoring).fit(X, y, sample_weight=weight)
        for search in (GridSearchCV, theirs.GridSearchCV)
    )
    same(ours, expected)


def test_weights():
    weight = np.random.default_rng(0).integers(0, 4, len(CANCER[1])).astype(float)
    how = {"cv": 3, "scoring": "accuracy"}
    ours, expected = (
        search(CLASSIFIER, LIMITS, **how).fit(*CANCER, sample_weight=weight)
        for search in (GridSearchCV, theirs.GridSearchCV)
    )
    same(ours, expected)


def test_groups():
    groups = np.arange(len(CANCER[1])) % 7
    ours, expected = (
        search(CLASSIFIER, LIMITS, cv=theirs.GroupKFold(3)).fit(*CANCER, groups=groups)
        for search in (GridSearchCV, theirs.GridSearchCV)
    )
    same(ours, expected)


def test_a_fitted_search_is_a_model():
    y = np.array(["no", "so", "yes"])[IRIS[1]]
    search = GridSearchCV(CLASSIFIER, LIMITS, cv=4).fit(IRIS[0], y)
    assert search.classes_.tolist() == ["no", "so", "yes"]
    assert search.n_features_in_ == 4
    assert set(search.predict(IRIS[0])) == {"no", "so", "yes"}
    assert search.score(IRIS[0], y) > 0.9
    assert search.refit_time_ > 0
    again = clone(search)
    assert not hasattr(again, "cv_results_")


class TestFailures:
    def test_parameters_that_are_not_there(self):
        with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator"):
            GridSearchCV(CLASSIFIER, {"depth": [1]}).fit(*IRIS)

    @pytest.mark.parametrize(
        "grid",
        [{"max_depth": [-1, 2]}, {"criterion": ["gini", "best"]}, {"max_depth": [0, 1],
         "criterion": ["gini", "best"]}],
        ids=str,
    )  # fmt: skip
    @pytest.mark.parametrize("scoring", ["accuracy", "f1_macro"])
    def test_of_some_candidates(self, grid, scoring):
        how = {"cv": 3, "scoring": scoring, "error_score": -1.0}
        with pytest.warns(FitFailedWarning) as expected:
            brute = theirs.GridSearchCV(CLASSIFIER, grid, **how).fit(*IRIS)
        with pytest.warns(FitFailedWarning) as warned:
            ours = GridSearchCV(CLASSIFIER, grid, **how).fit(*IRIS)
        same(ours, brute)
        first = str(expected[0].message).splitlines()[1]
        assert str(warned[0].message).splitlines()[1] == first
        with pytest.raises(ValueError, match="must be"):
            GridSearchCV(CLASSIFIER, grid, error_score="raise").fit(*IRIS)

    def test_of_all_candidates(self):
        with pytest.raises(ValueError, match="All the 10 fits failed"):
            GridSearchCV(CLASSIFIER, {"max_depth": [-1, 0]}).fit(*IRIS)

    def test_of_one_fold(self):
        weight = np.r_[np.zeros(100), np.ones(50)]
        splits = [(np.arange(100), np.arange(100, 150)), (np.arange(125), np.arange(125, 150))]
        grid = {"max_depth": [1, 2]}
        ours = GridSearchCV(CLASSIFIER, grid, cv=splits)
        with (
            pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 4"),
            pytest.warns(UserWarning, match="non-finite"),
        ):
            ours.fit(*IRIS, sample_weight=weight)
        assert np.isnan(ours.cv_results_["split0_test_score"]).all()
        assert not np.isnan(ours.cv_results_["split1_test_score"]).any()

    def test_of_a_scorer(self):
        def fails(estimator, X, y):
            raise RuntimeError("no score today")

        ours = GridSearchCV(CLASSIFIER, {"max_depth": [1]}, scoring=fails, error_score=0.0)
        with pytest.warns(UserWarning, match="no score today"):
            ours.fit(*IRIS)
        assert ours.best_score_ == 0.0

    def test_of_choices(self):
        with pytest.raises(ValueError, match="refit"):
            GridSearchCV(CLASSIFIER, LIMITS, scoring=["accuracy", "roc_auc"]).fit(*CANCER)
        with pytest.raises(ValueError, match="'cv' parameter"):
            GridSearchCV(CLASSIFIER, LIMITS, cv=1).fit(*CANCER)
        with pytest.raises(ValueError, match="No fits were performed"):
            GridSearchCV(CLASSIFIER, LIMITS, cv=iter([])).fit(*CANCER)


@pytest.mark.parametrize("score", [-7.0, np.nan])
@pytest.mark.filterwarnings("ignore")
def test_a_score_that_is_nan_is_no_failure(score):
    how = {"cv": theirs.LeaveOneOut(), "scoring": "r2", "error_score": score}  # R^2 of single rows
    data = DIABETES[0][:20], DIABETES[1][:20]
    both(REGRESSOR, {"max_depth": [1, 2]}, data, **how)


def test_without_a_random_state_a_table_is_coded_once(monkeypatch):
    codings, code = [], FitPlan.code
    monkeypatch.setattr(FitPlan, "code", lambda *args: codings.append(args) or code(*args))
    grid = {"min_samples_leaf": [1, 2, 3], "criterion": ["gini", "entropy"]}
    GridSearchCV(dtrees.RandomForestClassifier(2), grid, cv=2).fit(*IRIS)
    assert len(codings) == 1


def test_rows_that_no_split_has():
    X, y = np.vstack([DIABETES[0], DIABETES[0][:1]]), np.append(DIABETES[1], np.nan)
    cv = list(theirs.KFold(3).split(DIABETES[0]))
    ours, expected = (
        kind(REGRESSOR, {"max_depth": [1, 2]}, cv=cv, refit=False).fit(X, y)
        for kind in (GridSearchCV, theirs.GridSearchCV)
    )
    same(ours, expected)


FAILING = {
    "no positive label": (CANCER, "f1"),
    "three classes": (IRIS, "f1"),
    "no list of labels": (CANCER, "f1_samples"),
    "no such label": (CANCER, make_scorer(f1_score, pos_label="c")),
    "a positive label that does not matter": (CANCER, make_scorer(f1_score, average="macro")),
    "several numbers": (IRIS, make_scorer(f1_score, average=None, pos_label=None)),
}
TWICE = [(np.r_[0:100, 0:50], np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]
BAD = (
    {  # what is given to the search, and to its fit
        "1 fold": ({"cv": 1}, {}),
        "more folds than rows": ({"cv": 200}, {}),
        "no groups": ({"cv": theirs.GroupKFold(2)}, {}),
        "row numbers out of range": ({"cv": [(np.arange(100), np.array([1000]))]}, {}),
        "an empty training side": ({"cv": [([], np.arange(9))]}, {}),
        "rows listed twice": ({"cv": iter(TWICE)}, {}),
        "y of another length": ({}, {"y": IRIS[1][:-1]}),
        "y with nan": ({}, {"y": np.where(IRIS[1] == 0, np.nan, IRIS[1])}),
        "no y": ({}, {"y": None}),
        "negative weights": ({}, {"sample_weight": -np.ones(150)}),
        "error_score that is no number": ({"error_score": "none"}, {}),
        "a scorer that is not there": ({"scoring": "excellence"}, {}),
        "a grid that is none": ({"param_grid": {"max_depth": 3}}, {}),
        "an empty list of values": ({"param_grid": {"max_depth": []}}, {}),
        "other parameters of fit": ({}, {"check_input": True}),
    }
    | {
        name: (
            {"scoring": scoring, "error_score": -2.0},
            dict(zip("Xy", named(data, ["a", "b", "d"]), strict=True)),
        )
        for name, (data, scoring) in FAILING.items()
    }
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_what_it_is_for_scikit_learn(name):
    how, given = BAD[name]
    said = []
    for kind in (theirs.GridSearchCV, GridSearchCV):
        arguments = {"param_grid": {"max_depth": [2, 3]}, "cv": 3} | how
        if "cv" in how and not isinstance(how["cv"], int | list | theirs.GroupKFold):
            arguments["cv"] = iter(TWICE)
        try:
            search = kind(CLASSIFIER, **arguments).fit(**{"X": IRIS[0], "y": IRIS[1]} | given)
            said.append(search.cv_results_["mean_test_score"].tolist())
        except Exception as error:
            said.append((type(error).__mro__[-3], str(error).splitlines()[:2]))
    assert said[0] == said[1]


def test_other_estimators(caplog):
    with caplog.at_level(logging.INFO, "dtrees.model_selection.shared_search"):
        ours = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(*DIABETES)
    assert "Ridge is not an estimator of dtrees" in caplog.text
    expected = theirs.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(*DIABETES)
    assert ours.best_score_ == expected.best_score_


def test_a_bar_counts_the_trees_of_all_growths(monkeypatch):
    bars = []

    class Counted(Bar):
        def _begin(self):
            bars.append(self)

    monkeypatch.setattr("dtrees.model_selection.shared_search.Bar", Counted)
    grid = {"max_depth": [1, 2], "criterion": ["gini", "entropy"]}
    GridSearchCV(FOREST, grid, cv=3, verbose=1).fit(*IRIS)
    (bar,) = bars
    assert bar._total == bar._grown == 2 * 3 * 6  # growths, folds, trees
    GridSearchCV(CLASSIFIER, grid, cv=3, verbose=1).fit(*IRIS)
    assert len(bars) == 1
