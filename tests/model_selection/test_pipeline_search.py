"""Searches over pipelines say what scikit-learn's say, and fit the steps once per split."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from typing import ClassVar

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, ParameterGrid, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.exceptions import NotSharedWarning
from dtrees.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_validate,
    pipeline_scores,
)
from dtrees.model_selection.search import SharedSearch

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::3], Y[::3]
TREE = DecisionTreeClassifier(random_state=0)
LIMITS = {"tree__max_depth": [1, 2, 4, None], "tree__min_samples_split": [2, 20]}


class Counted(TransformerMixin, BaseEstimator):
    """Centers, and counts its fits by what it was given."""

    fits: ClassVar[Counter] = Counter()

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def fit(self, X, y=None):
        Counted.fits[self.shift, float(np.asarray(X).sum())] += 1
        self.center_ = np.asarray(X).mean(axis=0) + self.shift
        return self

    def transform(self, X):
        return np.asarray(X) - self.center_


class CrossFitted(Counted):
    """Says other things of the rows that it is fitted to, as `TargetEncoder` does."""

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X)[::-1]


@pytest.fixture
def fits():
    Counted.fits = Counter()
    return Counted.fits


@pytest.fixture
def growths(monkeypatch):
    """Estimators that have grown for a search over a pipeline."""
    grown = []
    real = pipeline_scores.fit_table

    def counted(estimator, table, sets, **others):
        grown.append(estimator)
        return real(estimator, table, sets, **others)

    monkeypatch.setattr(pipeline_scores, "fit_table", counted)
    return grown


def both(estimator, grid, X=X, y=Y, fit=None, kind="grid", **how):
    """Our search and scikit-learn's."""
    how = {"cv": 4, **how}
    fit = {} if fit is None else fit
    if kind == "grid":
        ours, theirs = GridSearchCV(estimator, grid, **how), None
        theirs = sklearn.model_selection.GridSearchCV(estimator, grid, **how)
    else:
        how |= {"random_state": 0, "n_iter": 6}
        ours = RandomizedSearchCV(estimator, grid, **how)
        theirs = sklearn.model_selection.RandomizedSearchCV(estimator, grid, **how)
    return ours.fit(X, y, **fit), theirs.fit(X, y, **fit)


def assert_same(ours, theirs, X=X):
    """Results, choice and the best model."""
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    for name, values in theirs.cv_results_.items():
        if "score" in name and "time" not in name and not name.startswith("rank"):
            np.testing.assert_allclose(
                np.asarray(ours.cv_results_[name], float), values, rtol=1e-9, atol=1e-12
            )
        elif name.startswith("param"):
            assert str(ours.cv_results_[name]) == str(values)
    assert ours.multimetric_ == theirs.multimetric_
    assert ours.n_splits_ == theirs.n_splits_
    assert hasattr(ours, "best_index_") == hasattr(theirs, "best_index_")
    if hasattr(theirs, "best_index_"):
        assert ours.best_index_ == theirs.best_index_
        assert str(ours.best_params_) == str(theirs.best_params_)
    assert hasattr(ours, "best_estimator_") == hasattr(theirs, "best_estimator_")
    if hasattr(theirs, "best_estimator_"):
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        assert hasattr(ours, "feature_names_in_") == hasattr(theirs, "feature_names_in_")


def scaled(last=TREE, first=None):
    return Pipeline([("first", Counted() if first is None else first), ("tree", last)])


class TestFits:
    def test_steps_are_fitted_once_per_split(self, fits, growths):
        ours, theirs = (
            GridSearchCV(scaled(), LIMITS, cv=4),
            sklearn.model_selection.GridSearchCV(scaled(), LIMITS, cv=4),
        )
        ours.fit(X, Y)
        assert sum(fits.values()) == 4 + 1  # and the best model
        assert all(count == 1 for count in fits.values())
        assert len(growths) == 4
        assert_same(ours, theirs.fit(X, Y))

    def test_once_for_each_of_their_parameters(self, fits, growths):
        grid = LIMITS | {"first__shift": [0.0, 1.0, 2.0], "tree__criterion": ["gini", "entropy"]}
        ours = GridSearchCV(scaled(), grid, cv=4, refit=False).fit(X, Y)
        assert sum(fits.values()) == 3 * 4
        assert len(growths) == 3 * 4 * 2
        assert len(ours.cv_results_["params"]) == len(ParameterGrid(grid))

    def test_training_rows_only(self, fits):
        splits = list(KFold(4).split(X))
        GridSearchCV(scaled(), LIMITS, cv=splits, refit=False).fit(X, Y)
        expected = {(0.0, float(X[train].sum())) for train, _ in splits}
        assert set(fits) == expected

    def test_a_split_of_parameters_that_have_nothing_in_common(self, caplog, growths):
        with caplog.at_level(logging.INFO, "dtrees"):
            found = both(scaled(), {"first__shift": [0.0, 1.0]})
        assert "no two candidates have the steps before the last in common" in caplog.text
        assert growths == []
        assert_same(*found)

    def test_memory_is_honoured(self, tmp_path):
        found = both(Pipeline([("a", PCA(5)), ("tree", TREE)], memory=str(tmp_path)), LIMITS)
        assert (tmp_path / "joblib").exists()
        assert_same(*found)

    def test_threads_of_the_search(self):
        """Of scikit-learn's, too: its processes would import all of this for themselves."""
        with config_context(), parallel_config(backend="threading"):
            found = both(scaled(first=StandardScaler()), LIMITS, n_jobs=2)
        assert_same(*found)


SCORERS = {
    "none": None,
    "accuracy": "accuracy",
    "sums": ["accuracy", "neg_log_loss"],
    "auc": "roc_auc",
    "matrix": "f1",
    "several": {"a": "accuracy", "b": "roc_auc"},
    "made": make_scorer(accuracy_score),
    "own": lambda model, X, y: float(model[-1].get_depth() + (model.predict(X) == y).mean()),
    "own dict": lambda model, X, y: {"d": model[-1].get_depth(), "n": len(X)},
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("scoring", SCORERS)
def test_scorers(scoring):
    refit = {"sums": "accuracy", "several": "b", "own dict": "d"}.get(scoring, True)
    assert_same(
        *both(scaled(), LIMITS, scoring=SCORERS[scoring], refit=refit, return_train_score=True)
    )


@pytest.mark.parametrize("last", ["forest", "extra", "regression", "forest of numbers"])
def test_last_steps(last):
    grid = {"tree__max_depth": [2, None], "tree__min_samples_leaf": [1, 5]}
    X_, y = X, Y
    if last == "forest":
        model = RandomForestClassifier(4, random_state=0)
        grid["tree__n_estimators"] = [2, 4]
    elif last == "extra":
        model = ExtraTreesClassifier(3, random_state=0)
    else:
        X_, y = load_diabetes(return_X_y=True)
        X_, y = X_[:200], y[:200]
        model = DecisionTreeRegressor(random_state=0)
        if last == "forest of numbers":
            model = RandomForestRegressor(3, random_state=0)
    assert_same(*both(scaled(model), grid, X_, y), X=X_)


def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=150),
            "b": rng.integers(0, 5, 150).astype(float),
            "c": pd.Categorical(rng.choice(["x", "y", "z"], 150)),
            "d": rng.choice(["p", "q"], 150),
        }
    )
    y = np.where(table["a"] + (table["c"] == "x") + rng.normal(size=150) > 0.5, "yes", "no")
    table.loc[::7, "a"] = np.nan
    return table, y


STEPS = {
    "columns": ColumnTransformer(
        [("n", StandardScaler(), ["a", "b"]), ("c", OneHotEncoder(), ["c", "d"])]
    ),
    "pandas": ColumnTransformer(
        [("n", StandardScaler(), ["a", "b"]), ("c", OrdinalEncoder(), ["c", "d"])]
    ).set_output(transform="pandas"),
    "cross-fitted": ColumnTransformer(
        [("n", CrossFitted(), ["b"]), ("c", OrdinalEncoder(), ["c", "d"])]
    ),
    "nothing": "passthrough",
    "function": FunctionTransformer(),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("steps", STEPS)
def test_frames(steps):
    table, y = frame()
    found = both(
        Pipeline([("first", STEPS[steps]), ("tree", TREE)]),
        LIMITS,
        table,
        y,
        cv=2,
        return_train_score=True,
        scoring=["accuracy", "neg_log_loss"],
        refit="accuracy",
    )
    assert_same(*found, X=table)


def test_pipelines_in_pipelines(fits):
    inner = Pipeline([("again", StandardScaler()), ("tree", TREE)])
    nested = Pipeline([("first", Counted()), ("inner", inner)])
    grid = {"inner__tree__max_depth": [1, 3], "inner__again__with_mean": [True, False]}
    ours, theirs = GridSearchCV(nested, grid, cv=3), sklearn.model_selection.GridSearchCV
    ours.fit(X, Y)
    assert sum(fits.values()) == 2 * 3 + 1
    assert_same(ours, theirs(nested, grid, cv=3).fit(X, Y))


def test_steps_that_select():
    made = make_pipeline(SelectKBest(f_classif), TREE)
    grid = {"selectkbest__k": [2, 5], "decisiontreeclassifier__max_depth": [1, 2, None]}
    assert_same(*both(made, grid))


def test_other_steps_and_other_last_ones(growths):
    grid = [
        {"first": [StandardScaler(), "passthrough"], "tree__max_depth": [1, 2]},
        {"tree": [TREE, RandomForestClassifier(2, random_state=1)], "tree__max_depth": [2, 3]},
    ]
    assert_same(*both(scaled(), grid))
    assert len(growths) == 4 * (2 + 2)


def test_random_search():
    spread = {"tree__max_depth": [1, 2, 3], "tree__ccp_alpha": [0.0, 0.01, 0.1]}
    assert_same(*both(scaled(), spread, kind="random"))


def test_groups_and_weights():
    rng = np.random.default_rng(0)
    groups, weight = rng.integers(0, 8, len(X)), rng.integers(0, 4, len(X)).astype(float)
    fit = {"groups": groups, "tree__sample_weight": weight}
    assert_same(*both(scaled(), LIMITS, cv=GroupKFold(4), fit=fit))


def test_overlapping_sides():
    splits = [(train, np.arange(0, len(X), 2)) for train, _ in KFold(3).split(X)]
    assert_same(*both(scaled(), LIMITS, cv=splits, return_train_score=True))


def test_classes_that_a_training_side_lacks():
    X_, y = load_iris(return_X_y=True)  # sorted by class
    assert_same(*both(scaled(), LIMITS, X_, y, cv=KFold(3)), X=X_)


def test_refit_by_a_function():
    def second(results):
        return int(np.argsort(results["mean_test_score"])[-2])

    assert_same(*both(scaled(), LIMITS, refit=second))


def test_lines(capsys):
    both(scaled(), {"tree__max_depth": [1, 2]}, verbose=3)
    lines = capsys.readouterr().out.splitlines()
    half = len(lines) // 2
    assert [line.split(" total")[0].replace(".", "") for line in lines[:half]] == [
        line.split(" total")[0].replace(".", "") for line in lines[half:]
    ]


class TestFailures:
    class Fails(Counted):
        """Cannot be fitted to the first split."""

        def fit(self, X, y=None):
            if np.asarray(X)[0, 0] != globals()["X"][0, 0]:
                raise ValueError("this split is not liked")
            return super().fit(X, y)

    @pytest.mark.parametrize("error_score", [np.nan, -1.0])
    def test_of_a_step(self, error_score):
        made = scaled(first=self.Fails())
        found = []
        for kind in (GridSearchCV, sklearn.model_selection.GridSearchCV):
            search = kind(made, LIMITS, cv=KFold(4), error_score=error_score)
            with pytest.warns((FitFailedWarning, UserWarning)) as said:  # of means that are nan
                found.append(search.fit(X, Y))
            (failed,) = (str(one.message) for one in said if one.category is FitFailedWarning)
            assert "8 fits failed out of a total of 32" in failed
            assert "this split is not liked" in failed
        np.testing.assert_array_equal(
            *(np.isfinite(search.cv_results_["mean_test_score"]) for search in found)
        )
        if error_score == -1.0:
            assert_same(*found)

    def test_of_a_step_that_raises(self):
        search = GridSearchCV(scaled(first=self.Fails()), LIMITS, cv=KFold(4), error_score="raise")
        with pytest.raises(ValueError, match="this split is not liked"):
            search.fit(X, Y)

    def test_of_candidates(self):
        grid = {"tree__max_depth": [-1, 2, 3]}
        for kind in (GridSearchCV, sklearn.model_selection.GridSearchCV):
            with pytest.warns(FitFailedWarning, match="4 fits failed out of a total of 12"):
                search = kind(scaled(), grid, cv=4, error_score=0.0).fit(X, Y)
            assert search.best_params_ == {"tree__max_depth": 3} or search.best_index_ > 0

    def test_of_all(self):
        with pytest.raises(ValueError, match="All the 8 fits failed"):
            GridSearchCV(scaled(), {"tree__max_depth": [-1, -2]}, cv=4).fit(X, Y)

    def test_parameters_that_are_not_there(self):
        for name in ("tree__depth", "first__depth"):
            search = GridSearchCV(scaled(), {name: [1, 2], "tree__max_depth": [1, 2]}, cv=4)
            with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
                search.fit(X, Y)


class OwnKind(Pipeline):
    """A pipeline that may do anything."""


class TestNotShared:
    @pytest.mark.parametrize(
        ("reason", "estimator", "grid"),
        [
            ("OwnKind is a pipeline of its own kind", OwnKind(scaled().steps), LIMITS),
            ("tree is GaussianNB in a cand", scaled(), {"tree": [TREE, GaussianNB()]}),
            ("steps is a parameter of a candidate", scaled(), {"steps": [scaled().steps]}),
        ],
    )
    def test_there_is_a_warning(self, reason, estimator, grid):
        search = GridSearchCV(estimator, grid, cv=3)
        with pytest.warns(NotSharedWarning, match=reason):
            search.fit(X, Y)
        expected = sklearn.model_selection.GridSearchCV(estimator, grid, cv=3).fit(X, Y)
        assert_same(search, expected)

    def test_other_parameters_of_fit(self):
        search = GridSearchCV(scaled(), LIMITS, cv=3, error_score="raise")
        with (
            pytest.warns(NotSharedWarning, match="fit is given tree__check"),
            pytest.raises(TypeError, match="check"),
        ):
            search.fit(X, Y, tree__check=True)

    def test_a_dask_array(self):
        lazy = da.from_array(X, chunks=(50, -1))
        search = GridSearchCV(scaled(), LIMITS, cv=3)
        with pytest.warns(NotSharedWarning, match="X is a Dask collection"):
            search.fit(lazy, Y)
        assert_same(search, sklearn.model_selection.GridSearchCV(scaled(), LIMITS, cv=3).fit(X, Y))

    def test_metadata_routing(self):
        with (
            config_context(enable_metadata_routing=True),
            pytest.warns(NotSharedWarning, match="metadata routing is enabled"),
        ):
            GridSearchCV(scaled(), LIMITS, cv=3).fit(X, Y)

    def test_rows_that_are_listed_twice(self):
        splits = [(np.r_[0:60, 0:10], np.arange(60, 100))] * 2
        for cv in (splits, iter(splits)):
            search = GridSearchCV(scaled(), LIMITS, cv=cv)
            with pytest.warns(NotSharedWarning, match="lists rows twice"):
                search.fit(X, Y)
            assert search.n_splits_ == 2

    def test_other_last_steps_are_silent(self):
        made = make_pipeline(StandardScaler(), GaussianNB())
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            GridSearchCV(made, {"gaussiannb__var_smoothing": [1e-9, 1e-3]}, cv=3).fit(X, Y)
        assert told == []


BOOSTED = {"max_leaf_nodes": 5, "min_samples_leaf": 5, "random_state": 0}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc", "several", "own"])
def test_iterations_of_boosted_models(scoring, fits, growths):
    own = {
        "several": ["accuracy", "roc_auc"],
        "own": lambda model, X, y: model[-1].n_iter_ + (model.predict(X) == y).mean(),
    }
    last = GradientBoostingClassifier(**BOOSTED)
    grid = {"tree__max_iter": [2, 6, 3], "tree__learning_rate": [0.1, 0.5]}
    how = {"scoring": own.get(scoring, scoring), "return_train_score": True}
    how |= {"refit": "roc_auc"} if scoring == "several" else {}
    assert_same(*both(scaled(last), grid, **how))
    assert [model.max_iter for model in growths] == [6] * 8  # two rates, four splits
    assert fits.total() == 4 + 1 + 6 * 4 + 1  # ours, and scikit-learn's


@pytest.mark.parametrize("parameters", [{}, {"early_stopping": True, "n_jobs": 2}], ids=str)
@pytest.mark.parametrize("last", ["three", "numbers"])
def test_other_boosted_models(last, parameters):
    grid = {"tree__max_iter": [1, 4], "first__shift": [0.0, 1.0]}
    X_, y = load_iris(return_X_y=True) if last == "three" else load_diabetes(return_X_y=True)
    kind = GradientBoostingClassifier if last == "three" else GradientBoostingRegressor
    model = kind(subsample=0.8, **BOOSTED, **parameters)
    assert_same(*both(scaled(model), grid, X_, y), X=X_)


def test_trees_and_boosted_models_in_one_search(growths):
    grid = [
        {"tree__max_depth": [1, 2]},
        {"tree": [GradientBoostingClassifier(**BOOSTED)], "tree__max_iter": [1, 3]},
    ]
    assert_same(*both(scaled(), grid))
    assert len(growths) == 2 * 4


def test_cross_validation_of_a_boosted_pipeline_is_one_by_one(fits):
    made = scaled(GradientBoostingClassifier(max_iter=3, **BOOSTED))
    ours = cross_validate(made, X, Y, cv=3, return_estimator=True)
    theirs = sklearn.model_selection.cross_validate(made, X, Y, cv=3)
    np.testing.assert_array_equal(ours["test_score"], theirs["test_score"])
    alone = clone(made).fit(X, Y)
    np.testing.assert_array_equal(ours["final_estimator"].predict_proba(X), alone.predict_proba(X))
    assert fits.total() == 3 + 1 + 3 + 1


def test_nested_searches(fits, growths):
    search = GridSearchCV(scaled(), LIMITS, cv=3)
    theirs = sklearn.model_selection.GridSearchCV(scaled(), LIMITS, cv=3)
    outer = ShuffleSplit(2, random_state=0)
    ours = cross_validate(search, X, Y, cv=outer)
    assert len(growths) == 3 * (2 + 1)
    np.testing.assert_allclose(
        ours["test_score"],
        sklearn.model_selection.cross_validate(theirs, X, Y, cv=outer)["test_score"],
    )


def test_every_cell_is_its_fit():
    search = GridSearchCV(scaled(), LIMITS, cv=KFold(4), refit=False).fit(X, Y)
    assert isinstance(search, SharedSearch)
    for place, candidate in enumerate(search.cv_results_["params"]):
        for number, (train, test) in enumerate(KFold(4).split(X)):
            model = clone(scaled()).set_params(**candidate).fit(X[train], Y[train])
            found = search.cv_results_[f"split{number}_test_score"][place]
            assert found == pytest.approx(model.score(X[test], Y[test]), abs=1e-12)
