"""What searches have from scikit-learn's, with an eye on sparse tables."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from typing import ClassVar

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats
import sklearn.model_selection
import sklearn.model_selection as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, ParameterGrid, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

import dtrees
from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.callbacks import Bar
from dtrees.estimators import training_sets
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import trees_of
from dtrees.estimators.training_sets import TrainingTable
from dtrees.exceptions import NotSharedWarning
from dtrees.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    pipelines,
)
from dtrees.model_selection.prepare import NotShareableError
from dtrees.model_selection.search import search_rows

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def search():
    return GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}).fit(X, Y)


def test_answers_are_those_of_the_best_model(search):
    best = search.best_estimator_
    for method in ("predict", "predict_proba", "predict_log_proba"):
        np.testing.assert_array_equal(getattr(search, method)(X), getattr(best, method)(X))
    assert search.score(X, Y) == best.score(X, Y)


def test_methods_that_a_tree_does_not_have(search):
    for method in ("transform", "decision_function", "score_samples", "inverse_transform"):
        assert not hasattr(search, method)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score"])
def test_damaged_sparse_matrices_are_refused(search, method):
    damaged = sp.csr_matrix(X)
    damaged.indices[0] = 1000
    arguments = (damaged, Y) if method == "score" else (damaged,)
    with pytest.raises(ValueError, match="sparse"):
        getattr(search, method)(*arguments)


def test_splitters_that_do_not_know_their_number():
    class Odd:
        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

        def split(self, X, y=None, groups=None):
            yield np.arange(75), np.arange(75, 150)

    with pytest.raises(ValueError, match="Expected 2 splits, got 1"):
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=Odd()).fit(X, Y)


PIPE_X, PIPE_Y = load_breast_cancer(return_X_y=True)
PIPE_X, PIPE_Y = PIPE_X[::3], PIPE_Y[::3]
TREE = DecisionTreeClassifier(random_state=0)
PIPE_LIMITS = {"tree__max_depth": [1, 2, 4, None], "tree__min_samples_split": [2, 20]}


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
    real = pipelines.fit_table

    def counted(estimator, table, sets, **others):
        grown.append(estimator)
        return real(estimator, table, sets, **others)

    monkeypatch.setattr(pipelines, "fit_table", counted)
    return grown


def both_pipelines(estimator, grid, X=PIPE_X, y=PIPE_Y, fit=None, kind="grid", **how):
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


def scaled(last=TREE, first=None):
    return Pipeline([("first", Counted() if first is None else first), ("tree", last)])


class TestFits:
    def test_steps_are_fitted_once_per_split(self, fits, growths):
        ours, theirs = (
            GridSearchCV(scaled(), PIPE_LIMITS, cv=4),
            sklearn.model_selection.GridSearchCV(scaled(), PIPE_LIMITS, cv=4),
        )
        ours.fit(PIPE_X, PIPE_Y)
        assert sum(fits.values()) == 4 + 1  # and the best model
        assert all(count == 1 for count in fits.values())
        assert len(growths) == 4
        same(ours, theirs.fit(PIPE_X, PIPE_Y))

    def test_once_for_each_of_their_parameters(self, fits, growths):
        grid = PIPE_LIMITS | {
            "first__shift": [0.0, 1.0, 2.0],
            "tree__criterion": ["gini", "entropy"],
        }
        ours = GridSearchCV(scaled(), grid, cv=4, refit=False).fit(PIPE_X, PIPE_Y)
        assert sum(fits.values()) == 3 * 4
        assert len(growths) == 3 * 4 * 2
        assert len(ours.cv_results_["params"]) == len(ParameterGrid(grid))

    def test_training_rows_only(self, fits):
        splits = list(KFold(4).split(PIPE_X))
        GridSearchCV(scaled(), PIPE_LIMITS, cv=splits, refit=False).fit(PIPE_X, PIPE_Y)
        expected = {(0.0, float(PIPE_X[train].sum())) for train, _ in splits}
        assert set(fits) == expected

    def test_a_split_of_parameters_that_have_nothing_in_common(self, caplog, growths):
        with caplog.at_level(logging.INFO, "dtrees"):
            found = both_pipelines(scaled(), {"first__shift": [0.0, 1.0]})
        assert "no two candidates have the steps before the last in common" in caplog.text
        assert growths == []
        same(*found)

    def test_threads_of_the_search(self):
        """Of scikit-learn's, too: its processes would import all of this for themselves."""
        with config_context(), parallel_config(backend="threading"):
            found = both_pipelines(scaled(first=StandardScaler()), PIPE_LIMITS, n_jobs=2)
        same(*found)


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


@pytest.mark.one_of(9)
@pytest.mark.parametrize("scoring", SCORERS)
def test_scorers(scoring):
    refit = {"sums": "accuracy", "several": "b", "own dict": "d"}.get(scoring, True)
    same(
        *both_pipelines(
            scaled(), PIPE_LIMITS, scoring=SCORERS[scoring], refit=refit, return_train_score=True
        )
    )


@pytest.mark.one_of(2)
@pytest.mark.parametrize("last", ["forest", "extra", "regression", "forest of numbers"])
def test_last_steps(last):
    grid = {"tree__max_depth": [2, None], "tree__min_samples_leaf": [1, 5]}
    X_, y = PIPE_X, PIPE_Y
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
    same(*both_pipelines(scaled(model), grid, X_, y), X=X_)


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


@pytest.mark.one_of(5)
@pytest.mark.parametrize("steps", STEPS)
def test_frames(steps):
    table, y = frame()
    found = both_pipelines(
        Pipeline([("first", STEPS[steps]), ("tree", TREE)]),
        PIPE_LIMITS,
        table,
        y,
        cv=2,
        return_train_score=True,
        scoring=["accuracy", "neg_log_loss"],
        refit="accuracy",
    )
    same(*found, X=table)


def test_pipelines_in_pipelines(fits):
    inner = Pipeline([("again", StandardScaler()), ("tree", TREE)])
    nested = Pipeline([("first", Counted()), ("inner", inner)])
    grid = {"inner__tree__max_depth": [1, 3], "inner__again__with_mean": [True, False]}
    ours, theirs = GridSearchCV(nested, grid, cv=3), sklearn.model_selection.GridSearchCV
    ours.fit(PIPE_X, PIPE_Y)
    assert sum(fits.values()) == 2 * 3 + 1
    same(ours, theirs(nested, grid, cv=3).fit(PIPE_X, PIPE_Y))


def test_other_steps_and_other_last_ones(growths):
    grid = [
        {"first": [StandardScaler(), "passthrough"], "tree__max_depth": [1, 2]},
        {"tree": [TREE, RandomForestClassifier(2, random_state=1)], "tree__max_depth": [2, 3]},
    ]
    same(*both_pipelines(scaled(), grid))
    assert len(growths) == 4 * (2 + 2)


def test_random_search():
    spread = {"tree__max_depth": [1, 2, 3], "tree__ccp_alpha": [0.0, 0.01, 0.1]}
    same(*both_pipelines(scaled(), spread, kind="random"))


def test_groups_and_weights():
    rng = np.random.default_rng(0)
    groups, weight = (
        rng.integers(0, 8, len(PIPE_X)),
        rng.integers(0, 4, len(PIPE_X)).astype(float),
    )
    fit = {"groups": groups, "tree__sample_weight": weight}
    same(*both_pipelines(scaled(), PIPE_LIMITS, cv=GroupKFold(4), fit=fit))


def test_overlapping_sides():
    splits = [(train, np.arange(0, len(PIPE_X), 2)) for train, _ in KFold(3).split(PIPE_X)]
    same(*both_pipelines(scaled(), PIPE_LIMITS, cv=splits, return_train_score=True))


def test_classes_that_a_training_side_lacks():
    X_, y = load_iris(return_X_y=True)  # sorted by class
    same(*both_pipelines(scaled(), PIPE_LIMITS, X_, y, cv=KFold(3)), X=X_)


def test_lines(capsys):
    both_pipelines(scaled(), {"tree__max_depth": [1, 2]}, verbose=3)
    lines = capsys.readouterr().out.splitlines()
    half = len(lines) // 2
    assert [line.split(" total")[0].replace(".", "") for line in lines[:half]] == [
        line.split(" total")[0].replace(".", "") for line in lines[half:]
    ]


class TestFailures:
    class Fails(Counted):
        """Cannot be fitted to the first split."""

        def fit(self, X, y=None):
            if np.asarray(X)[0, 0] != PIPE_X[0, 0]:
                raise ValueError("this split is not liked")
            return super().fit(X, y)

    @pytest.mark.parametrize("error_score", [np.nan, -1.0])
    def test_of_a_step(self, error_score):
        made = scaled(first=self.Fails())
        found = []
        for kind in (GridSearchCV, sklearn.model_selection.GridSearchCV):
            search = kind(made, PIPE_LIMITS, cv=KFold(4), error_score=error_score)
            with pytest.warns((FitFailedWarning, UserWarning)) as said:  # of means that are nan
                found.append(search.fit(PIPE_X, PIPE_Y))
            (failed,) = (str(one.message) for one in said if one.category is FitFailedWarning)
            assert "8 fits failed out of a total of 32" in failed
            assert "this split is not liked" in failed
        np.testing.assert_array_equal(
            *(np.isfinite(search.cv_results_["mean_test_score"]) for search in found)
        )
        if error_score == -1.0:
            same(*found)

    def test_of_candidates(self):
        grid = {"tree__max_depth": [-1, 2, 3]}
        for kind in (GridSearchCV, sklearn.model_selection.GridSearchCV):
            with pytest.warns(FitFailedWarning, match="4 fits failed out of a total of 12"):
                search = kind(scaled(), grid, cv=4, error_score=0.0).fit(PIPE_X, PIPE_Y)
            assert search.best_params_ == {"tree__max_depth": 3} or search.best_index_ > 0

    def test_parameters_that_are_not_there(self):
        for name in ("tree__depth", "first__depth"):
            search = GridSearchCV(scaled(), {name: [1, 2], "tree__max_depth": [1, 2]}, cv=4)
            with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
                search.fit(PIPE_X, PIPE_Y)


class OwnKind(Pipeline):
    """A pipeline that may do anything."""


class TestNotShared:
    @pytest.mark.parametrize(
        ("reason", "estimator", "grid"),
        [
            ("OwnKind is a pipeline of its own kind", OwnKind(scaled().steps), PIPE_LIMITS),
            ("tree is GaussianNB in a cand", scaled(), {"tree": [TREE, GaussianNB()]}),
            ("steps is a parameter of a candidate", scaled(), {"steps": [scaled().steps]}),
        ],
    )
    def test_there_is_a_warning(self, reason, estimator, grid):
        search = GridSearchCV(estimator, grid, cv=3)
        with pytest.warns(NotSharedWarning, match=reason):
            search.fit(PIPE_X, PIPE_Y)
        expected = sklearn.model_selection.GridSearchCV(estimator, grid, cv=3).fit(PIPE_X, PIPE_Y)
        same(search, expected)

    def test_other_parameters_of_fit(self):
        search = GridSearchCV(scaled(), PIPE_LIMITS, cv=3, error_score="raise")
        with (
            pytest.warns(NotSharedWarning, match="fit is given tree__check"),
            pytest.raises(TypeError, match="check"),
        ):
            search.fit(PIPE_X, PIPE_Y, tree__check=True)

    def test_a_dask_array(self):
        lazy = da.from_array(PIPE_X, chunks=(50, -1))
        search = GridSearchCV(scaled(), PIPE_LIMITS, cv=3)
        with pytest.warns(NotSharedWarning, match="X is a Dask collection"):
            search.fit(lazy, PIPE_Y)
        same(
            search,
            sklearn.model_selection.GridSearchCV(scaled(), PIPE_LIMITS, cv=3).fit(PIPE_X, PIPE_Y),
        )

    def test_metadata_routing(self):
        with (
            config_context(enable_metadata_routing=True),
            pytest.warns(NotSharedWarning, match="metadata routing is enabled"),
        ):
            GridSearchCV(scaled(), PIPE_LIMITS, cv=3).fit(PIPE_X, PIPE_Y)

    def test_rows_that_are_listed_twice(self):
        splits = [(np.r_[0:60, 0:10], np.arange(60, 100))] * 2
        for cv in (splits, iter(splits)):
            search = GridSearchCV(scaled(), PIPE_LIMITS, cv=cv)
            with pytest.warns(NotSharedWarning, match="lists rows twice"):
                search.fit(PIPE_X, PIPE_Y)
            assert search.n_splits_ == 2

    def test_other_last_steps_are_silent(self):
        made = make_pipeline(StandardScaler(), GaussianNB())
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            GridSearchCV(made, {"gaussiannb__var_smoothing": [1e-9, 1e-3]}, cv=3).fit(
                PIPE_X, PIPE_Y
            )
        assert told == []


BOOSTED = {"max_leaf_nodes": 5, "min_samples_leaf": 5, "random_state": 0}


@pytest.mark.one_of(6)
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
    same(*both_pipelines(scaled(last), grid, **how))
    assert [model.max_iter for model in growths] == [6] * 8  # two rates, four splits
    assert fits.total() == 4 + 1 + 6 * 4 + 1  # ours, and scikit-learn's


@pytest.mark.one_of(2)
@pytest.mark.parametrize("parameters", [{}, {"early_stopping": True, "n_jobs": 2}], ids=str)
@pytest.mark.parametrize("last", ["three", "numbers"])
def test_other_boosted_models(last, parameters):
    grid = {"tree__max_iter": [1, 4], "first__shift": [0.0, 1.0]}
    X_, y = load_iris(return_X_y=True) if last == "three" else load_diabetes(return_X_y=True)
    kind = GradientBoostingClassifier if last == "three" else GradientBoostingRegressor
    model = kind(subsample=0.8, **BOOSTED, **parameters)
    same(*both_pipelines(scaled(model), grid, X_, y), X=X_)


def test_trees_and_boosted_models_in_one_search(growths):
    grid = [
        {"tree__max_depth": [1, 2]},
        {"tree": [GradientBoostingClassifier(**BOOSTED)], "tree__max_iter": [1, 3]},
    ]
    same(*both_pipelines(scaled(), grid))
    assert len(growths) == 2 * 4


def test_nested_searches(fits, growths):
    search = GridSearchCV(scaled(), PIPE_LIMITS, cv=3)
    theirs = sklearn.model_selection.GridSearchCV(scaled(), PIPE_LIMITS, cv=3)
    outer = ShuffleSplit(2, random_state=0)
    ours = cross_validate(search, PIPE_X, PIPE_Y, cv=outer)
    assert len(growths) == 3 * (2 + 1)
    np.testing.assert_allclose(
        ours["test_score"],
        sklearn.model_selection.cross_validate(theirs, PIPE_X, PIPE_Y, cv=outer)["test_score"],
    )


ROWS = np.random.default_rng(0).random(150) < 0.7
GRID = {"max_depth": [1, 2, 3], "min_samples_split": [2, 30]}


def shared_search(**how):
    how = {"cv": KFold(3, shuffle=True, random_state=0), **how}
    return GridSearchCV(DecisionTreeClassifier(random_state=0), GRID, **how)


def test_a_search_of_some_rows():
    given = shared_search()
    found, fitted = search_rows(given, TrainingTable(X, Y, None), ROWS)
    alone = shared_search().fit(X[ROWS], Y[ROWS])
    assert not hasattr(given, "best_params_")
    assert found.best_params_ == alone.best_params_
    name = "mean_test_score"
    np.testing.assert_allclose(found.cv_results_[name], alone.cv_results_[name])
    values = fitted.values_of(found.best_estimator_, np.arange(150))
    np.testing.assert_array_equal(values, found.best_estimator_.predict_proba(X))


def test_errors_of_a_search():
    table = TrainingTable(X, Y, None)
    assert isinstance(search_rows(shared_search(cv=KFold(200)), table, ROWS), ValueError)
    with pytest.raises(NotShareableError, match="lists rows twice"):
        search_rows(shared_search(cv=[([0, 0], [1])]), table, ROWS)


def test_the_splitter_of_a_search_stays_what_it_was():
    cv = iter([(np.arange(75), np.arange(75, 150))])
    given = shared_search(cv=cv).fit(X, Y)
    assert given.cv is cv
    assert given.n_splits_ == 1


class Counting:
    """A callback of scikit-learn's, from 1.9 on."""

    def __init__(self):
        self.fits = []

    def setup(self, estimator, context):
        self.fits.append("setup")

    def teardown(self, estimator, context):
        self.fits.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.fits.append(context.task_name)


@pytest.mark.skipif(not hasattr(GridSearchCV, "set_callbacks"), reason="scikit-learn 1.9 has them")
class TestCallbacks:
    def heard(self, fit, *searches):
        for each in searches:
            each.set_callbacks(heard := Counting())
        with pytest.warns(NotSharedWarning, match="has callbacks, which hear of each fit"):
            return fit(), heard.fits

    def test_a_search_calls_them_as_that_of_sklearn_does(self):
        ours = shared_search()
        _, heard = self.heard(lambda: ours.fit(X, Y), ours)
        theirs = sklearn.model_selection.GridSearchCV(ours.estimator, GRID, cv=ours.cv)
        theirs.set_callbacks(expected := Counting()).fit(X, Y)
        assert heard == expected.fits
        assert heard.count("candidate-split-evaluation") == 18
        assert ours.best_params_ == theirs.best_params_
        scores = "mean_test_score"
        assert (ours.cv_results_[scores] == shared_search().fit(X, Y).cv_results_[scores]).all()

    def test_searches_inside_of_a_validation(self):
        ours = shared_search()
        _, heard = self.heard(lambda: cross_validate(ours, X, Y, cv=3), ours)
        assert heard.count("setup") == heard.count("teardown") == 4  # and all rows

    @pytest.mark.parametrize("on_search", [True, False])
    def test_a_pipeline(self, on_search):
        pipeline = Pipeline([("scale", StandardScaler()), ("tree", DecisionTreeClassifier())])
        ours = GridSearchCV(pipeline, {"tree__max_depth": [1, 2]}, cv=3)
        _, heard = self.heard(lambda: ours.fit(X, Y), ours if on_search else pipeline)
        assert heard.count("setup") == (1 if on_search else 7)

    def test_others_are_not_told_of_what_they_cannot_share(self):
        ours = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=3)
        ours.set_callbacks(heard := Counting()).fit(X, Y)
        assert heard.fits.count("candidate-split-evaluation") == 6


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


def same(ours, expected, X=None):
    """All results, but for times; the best models are pipelines where `X` is what they predict."""
    assert ours.cv_results_.keys() == expected.cv_results_.keys()
    for name, values in expected.cv_results_.items():
        if name == "params" or name.startswith("param_"):
            assert str(ours.cv_results_[name]) == str(values), name
        elif not name.endswith("_time"):
            np.testing.assert_allclose(ours.cv_results_[name], values, 1e-9, 1e-11, err_msg=name)
    for name in ("best_index_", "n_splits_", "multimetric_"):
        assert getattr(ours, name, None) == getattr(expected, name, None), name
    for name in ("best_params_", "best_estimator_", "feature_names_in_"):
        assert hasattr(ours, name) == hasattr(expected, name)
    if hasattr(expected, "best_score_"):
        assert ours.best_score_ == pytest.approx(expected.best_score_, nan_ok=True)
    if hasattr(expected, "best_params_"):
        assert str(ours.best_params_) == str(expected.best_params_)
    if not hasattr(expected, "best_estimator_"):
        return
    if isinstance(expected.best_estimator_, Pipeline):
        X = PIPE_X if X is None else X
        np.testing.assert_array_equal(ours.predict(X), expected.predict(X))
        return
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


@pytest.mark.one_of(6)
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


@pytest.mark.one_of(4)
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


@pytest.mark.one_of(4)
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


def test_forests_that_learn_more_than_trees():
    forest = dtrees.RandomForestClassifier(30, random_state=0, oob_score=True)
    search = GridSearchCV(forest, {"max_depth": [2, 5]}, cv=2).fit(*CANCER)
    best = clone(forest).set_params(**search.best_params_).fit(*CANCER)
    assert search.best_estimator_.oob_score_ == best.oob_score_


def test_warm_start_changes_nothing(monkeypatch):
    """Every candidate is a clone that is fitted once; only the best one may go on."""
    fits, fit_table = [], training_sets.fit_table
    monkeypatch.setattr(
        "dtrees.model_selection.search.fit_table",
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
def test_every_cell_of_a_grid_is_its_fit(seed, kind, max_features):
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


@pytest.mark.one_of(2)
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


class TestFailuresOfFits:
    def test_parameters_that_are_not_there(self):
        with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator"):
            GridSearchCV(CLASSIFIER, {"depth": [1]}).fit(*IRIS)

    @pytest.mark.one_of(2)
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
    with caplog.at_level(logging.INFO, "dtrees.model_selection.search"):
        ours = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(*DIABETES)
    assert "Ridge is not an estimator of dtrees" in caplog.text
    expected = theirs.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(*DIABETES)
    assert ours.best_score_ == expected.best_score_


def test_a_bar_counts_the_trees_of_all_growths(monkeypatch):
    bars = []

    class Counted(Bar):
        def _begin(self):
            bars.append(self)

    monkeypatch.setattr("dtrees.model_selection.search.Bar", Counted)
    grid = {"max_depth": [1, 2], "criterion": ["gini", "entropy"]}
    GridSearchCV(FOREST, grid, cv=3, verbose=1).fit(*IRIS)
    (bar,) = bars
    assert bar._total == bar._grown == 2 * 3 * 6  # growths, folds, trees
    GridSearchCV(CLASSIFIER, grid, cv=3, verbose=1).fit(*IRIS)
    assert len(bars) == 1


FEW_ROWS = tuple(part[:250] for part in load_breast_cancer(return_X_y=True))
GRID_INSIDE = {"max_depth": [1, None], "ccp_alpha": [0.0, 0.01], "criterion": ["gini", "entropy"]}
OUTER = theirs.KFold(3, shuffle=True, random_state=5)
INNER = theirs.KFold(3, shuffle=True, random_state=0)


@pytest.fixture
def codings_of_tables(monkeypatch):
    """Calls that code a table."""
    found, code = [], FitPlan.code
    monkeypatch.setattr(FitPlan, "code", lambda *args: found.append(args) or code(*args))
    return found


@pytest.mark.one_of(8)
@pytest.mark.parametrize(
    ("scoring", "refit", "outer"),
    [
        (None, True, None),
        ("neg_log_loss", True, None),
        ("neg_log_loss", True, ["accuracy", "neg_brier_score"]),
        (make_scorer(f1_score), True, None),
        (["accuracy", "roc_auc"], "roc_auc", None),
        ({"a": "accuracy", "f": make_scorer(f1_score)}, "f", None),
        (lambda model, X, y: -abs(model.get_n_leaves() - 5.0), True, None),
        (None, True, lambda model, X, y: model.best_score_ + len(X)),
    ],
    ids=["none", "name", "name and names", "scorer", "names", "dict", "function", "outer"],
)
def test_searches_inside_against_brute_force(scoring, refit, outer, codings_of_tables):
    how = {"cv": OUTER, "scoring": outer, "return_estimator": True}
    ours = cross_validate(
        GridSearchCV(CLASSIFIER, GRID_INSIDE, cv=INNER, scoring=scoring, refit=refit),
        *FEW_ROWS,
        **how,
    )
    assert len(codings_of_tables) == 1
    expected = theirs.cross_validate(
        theirs.GridSearchCV(CLASSIFIER, GRID_INSIDE, cv=INNER, scoring=scoring, refit=refit),
        *FEW_ROWS,
        **how,
    )
    assert ours.keys() == expected.keys()
    for name, values in expected.items():
        if name.startswith("test_"):
            np.testing.assert_allclose(ours[name], values, 1e-10, 1e-15, err_msg=name)
    for a, b in zip(ours["estimator"], expected["estimator"], strict=True):
        assert a.best_params_ == b.best_params_
        for mine, other in zip(
            trees_of(a.best_estimator_), trees_of(b.best_estimator_), strict=True
        ):
            np.testing.assert_array_equal(mine.feature, other.feature)
            np.testing.assert_array_equal(mine.statistics, other.statistics)
    whole = GridSearchCV(CLASSIFIER, GRID_INSIDE, cv=INNER, scoring=scoring, refit=refit).fit(
        *FEW_ROWS
    )
    assert ours["final_estimator"].best_params_ == whole.best_params_


def test_random_candidates_inside():
    limits = {"max_depth": [1, 2, 3, 4], "min_samples_split": list(range(2, 60))}
    tree = dtrees.DecisionTreeRegressor()
    ours, expected = (
        score(search(tree, limits, n_iter=20, random_state=1, cv=3), *DIABETES, cv=OUTER)
        for score, search in (
            (cross_val_score, RandomizedSearchCV),
            (theirs.cross_val_score, theirs.RandomizedSearchCV),
        )
    )
    np.testing.assert_allclose(ours, expected, 1e-9)


def test_predictions_of_searches_inside():
    ours = cross_val_predict(GridSearchCV(CLASSIFIER, GRID_INSIDE, cv=INNER), *FEW_ROWS, cv=OUTER)
    expected = theirs.cross_val_predict(
        theirs.GridSearchCV(CLASSIFIER, GRID_INSIDE, cv=INNER), *FEW_ROWS, cv=OUTER
    )
    np.testing.assert_array_equal(ours, expected)


def test_weights_of_searches_inside():
    weight = np.random.default_rng(0).integers(1, 4, len(FEW_ROWS[1])).astype(float)
    how = {"cv": OUTER, "params": {"sample_weight": weight}}
    ours = cross_val_score(GridSearchCV(CLASSIFIER, GRID_INSIDE, cv=INNER), *FEW_ROWS, **how)
    expected = theirs.cross_val_score(
        theirs.GridSearchCV(CLASSIFIER, GRID_INSIDE, cv=INNER), *FEW_ROWS, **how
    )
    np.testing.assert_allclose(ours, expected, 1e-10)


def test_what_cannot_be_nested():
    search = GridSearchCV(CLASSIFIER, GRID_INSIDE, refit=False)
    with pytest.raises(AttributeError, match="refit"):
        cross_validate(search, *FEW_ROWS, cv=3, error_score="raise")


def test_a_search_that_fails():
    search = GridSearchCV(CLASSIFIER, {"max_depth": [-1]})
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        cross_validate(search, *FEW_ROWS, cv=3)


def test_inner_splits_that_list_rows_twice():
    inner = [(np.r_[0, 0, 1:60], np.arange(60, 100))]
    ours, expected = (
        score(search(CLASSIFIER, {"max_depth": [1, 3]}, cv=inner), *FEW_ROWS, cv=OUTER)
        for score, search in (
            (cross_val_score, GridSearchCV),
            (theirs.cross_val_score, theirs.GridSearchCV),
        )
    )
    np.testing.assert_allclose(ours, expected)
