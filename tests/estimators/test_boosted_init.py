"""A model as ``init``: all is as with its raw predictions as ``init_score``."""

import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import (
    DecisionTreeClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    save,
)
from dtrees.exceptions import NotSharedWarning
from dtrees.inspection import export_text, shap_values
from dtrees.model_selection import GridSearchCV, boosting_curve, cross_validate
from tests.core.grow.boosted_cases import Squares

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)).round(2)
NUMBERS = 3 * X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=300) / 4
TARGETS = {
    "numbers": NUMBERS,
    "counts": np.exp(NUMBERS / 4).round(1) + 0.1,
    "two": np.where(NUMBERS > 1, "yes", "no"),
    "three": np.digitize(NUMBERS, [0, 2]) * 10,
}
WEIGHTS = RNG.integers(0, 3, 300).astype(float)
HOW = {"max_iter": 4, "random_state": 1}


def model_of(name, **given):
    if name in ("two", "three"):
        return GradientBoostingClassifier(init=LogisticRegression(), **HOW, **given)
    loss = "poisson" if name == "counts" else "squared_error"
    return GradientBoostingRegressor(
        loss, init=RandomForestRegressor(3, random_state=0), **HOW, **given
    )


def raw_by_hand(name, init, rows):
    """As scikit-learn's classic classes have it."""
    if name in ("two", "three"):
        shares = init.predict_proba(rows).clip(2.0**-52, 1 - 2.0**-52)
        logs = np.log(shares)
        return (
            np.log(shares[:, 1] / (1 - shares[:, 1]))
            if name == "two"
            else (logs - logs.mean(axis=1)[:, None])
        )
    found = init.predict(rows)
    return np.log(found) if name == "counts" else found


@pytest.mark.one_of(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TARGETS)
def test_a_model_is_that_of_its_raw_predictions(name, weighted):
    y, weight = TARGETS[name], WEIGHTS if weighted else None
    model = model_of(name).fit(X, y, weight)
    start = raw_by_hand(name, model.init_, X)
    other = model_of(name).set_params(init=None).fit(X, y, weight, init_score=start)
    for method in ("predict", "predict_proba"):
        if hasattr(model, method):
            found, expected = getattr(model, method)(X), getattr(other, method)(X, start)
            if found.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-9)
            else:
                np.testing.assert_array_equal(found, expected)
    stages = list(model.staged_predict(X))
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    assert model.score(X, y, weight) > 0.5
    assert len(model[:2].predict(X)) == len(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    kept = clone(model).set_params(max_iter=2, warm_start=True)
    kept.fit(X, y, weight).set_params(max_iter=4).fit(X, y, weight)
    np.testing.assert_array_equal(kept.predict(X), model.predict(X))


class Notes(RegressorMixin, BaseEstimator):
    """Half of the first column, and the rows of its fit."""

    def fit(self, X, y):
        self.rows_ = len(y)
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0] / 2


class Shares(ClassifierMixin, BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_rows_that_are_scored_begin_with_it_and_are_not_seen():
    how = {**HOW, "early_stopping": True, "use_best_model": False}
    model = GradientBoostingRegressor(init=Notes(), **how)
    other = GradientBoostingRegressor(**how).fit(X, NUMBERS, init_score=X[:, 0] / 2)
    assert model.fit(X, NUMBERS).init_.rows_ == 270
    np.testing.assert_array_equal(model.validation_score_, other.validation_score_)
    shown = {"X_val": X[:90], "y_val": NUMBERS[:90], "eval_set": [(X[9:50], NUMBERS[9:50])]}
    model.fit(X, NUMBERS, **shown)
    starts = {"init_score_val": X[:90, 0] / 2, "eval_init_score": [X[9:50, 0] / 2]}
    other.fit(X, NUMBERS, init_score=X[:, 0] / 2, **shown, **starts)
    assert model.init_.rows_ == 300
    assert model.evals_result_ == other.evals_result_
    model = model_of("numbers").set_params(init=LinearRegression())
    dense = model.fit(X, NUMBERS, WEIGHTS).predict(X)
    sparse = model.fit(sp.coo_array(X), NUMBERS, WEIGHTS).predict(sp.coo_array(X))
    np.testing.assert_allclose(sparse, dense, rtol=1e-9)


def test_zero_is_what_rows_begin_with():
    y = TARGETS["three"]
    model = GradientBoostingClassifier(init="zero", **HOW).fit(X, y)
    other = GradientBoostingClassifier(**HOW).fit(X, y, init_score=np.zeros((300, 3)))
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    assert model.score(X, y) > 0.5
    assert not hasattr(model, "init_")
    lazy = [da.from_array(each, chunks=(100, -1)[: each.ndim]) for each in (X, y)]
    spread = clone(model).set_params(regime="partitioned").fit(*lazy)
    np.testing.assert_array_equal(spread.predict_proba(X), model.predict_proba(X))


class TestRefused:
    def test_what_knows_no_such_model(self, tmp_path):
        model = GradientBoostingRegressor(init=LinearRegression(), **HOW).fit(X, NUMBERS)
        with pytest.raises(TypeError, match="is a LinearRegression, and a model file holds no"):
            save(model, tmp_path / "model.dtrees")
        for read in (export_text, lambda model: shap_values(model, X)):
            with pytest.raises(ValueError, match="knows nothing of init"):
                read(model)
        lazy = da.from_array(X, chunks=(100, -1))
        with pytest.raises(TypeError, match=r"Give X\.compute\(\)"):
            model.predict(lazy)
        with pytest.raises(TypeError, match="raw predictions of that model as init_score"):
            model.fit(lazy, NUMBERS)
        with pytest.raises(ValueError, match="Give one of them"):
            model.predict(X, init_score=NUMBERS)
        assert hasattr(model, "init_")
        model.set_params(init=None).fit(X, NUMBERS)
        assert not hasattr(model, "init_")
        save(model, tmp_path / "model.dtrees")

    @pytest.mark.parametrize(
        ("given", "y", "message"),
        [
            ({"init": Notes}, NUMBERS, "an object with the method 'predict' or None"),
            ({"init": LinearRegression()}, np.c_[NUMBERS, NUMBERS], "needs one target"),
            ({"loss": Squares(), "init": Notes()}, NUMBERS, "needs a loss that has a name"),
            ({"loss": "gamma", "init": Notes()}, np.exp(X[:, 0]), "needs positive numbers"),
        ],
    )
    def test_what_cannot_begin(self, given, y, message):
        with pytest.raises(ValueError, match=message):
            GradientBoostingRegressor(**given, **HOW).fit(X, y)

    def test_what_knows_other_classes_or_no_weights(self):
        with pytest.raises(ValueError, match="init tells 2 classes apart, and y has 3"):
            GradientBoostingClassifier(init=Shares()).fit(X, TARGETS["three"])
        for init in (Notes(), make_pipeline(StandardScaler(), LinearRegression())):
            with pytest.raises(ValueError, match="does not support sample weights"):
                GradientBoostingRegressor(init=init).fit(X, NUMBERS, WEIGHTS)

    @pytest.mark.parametrize("kept", ["warm start", "checkpoint"])
    @pytest.mark.parametrize(
        ("before", "after"),
        [(None, LinearRegression()), (LinearRegression(), None), ("score", LinearRegression()),
         (LinearRegression(), "score"), (None, "zero"), ("zero", None)],
    )  # fmt: skip
    def test_trees_that_began_otherwise(self, kept, before, after, tmp_path):
        model = GradientBoostingRegressor(warm_start=kept == "warm start", **HOW)
        folder = None if kept == "warm start" else tmp_path
        words = "give init_score, or init, if the first fit had it|What differs: init"

        def fit(init, n):
            start = NUMBERS / 2 if init == "score" else None
            init = None if init == "score" else init
            model.set_params(init=init, max_iter=n).fit(
                X, NUMBERS, init_score=start, checkpoint=folder
            )

        fit(before, 2)
        if kept == "warm start" and "zero" in (before, after):
            fit(after, 3)  # what rows began with stays, as trees do
            assert (model._initial == 0).all() == (before == "zero")
            return
        with pytest.raises(ValueError, match=words):
            fit(after, 3)


def test_models_of_folds_begin_with_models_of_their_own():
    model = GradientBoostingClassifier(init=DecisionTreeClassifier(max_depth=2), **HOW)
    y = TARGETS["two"]
    expected = cross_val_score(model, X, y, cv=3)
    np.testing.assert_array_equal(cross_validate(model, X, y, cv=3)["test_score"], expected)
    with pytest.raises(TypeError, match="init is a model, which is fitted to each training side"):
        boosting_curve(model, X, y, cv=3)
    plain = clone(model).set_params(init=None)
    search = GridSearchCV(plain, {"init": [None, model.init]}, cv=3).fit(X, y)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(expected.mean())
    pipe = make_pipeline("passthrough", plain)
    grid = {"gradientboostingclassifier__init": [None, model.init]}
    with pytest.warns(NotSharedWarning, match="init is a model"):
        search = GridSearchCV(pipe, grid, cv=3).fit(X, y)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(expected.mean())
