"""Models of cells are scored by leaves where they can be, and those that are the same once."""

import re
import warnings
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    brier_score_loss,
    f1_score,
    fbeta_score,
    log_loss,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dtrees
from dtrees import DecisionTreeClassifier, GradientBoostingClassifier, RandomForestClassifier
from dtrees.estimators.training_sets import TrainingTable
from dtrees.model_selection import (
    GridSearchCV,
    boosting_curve,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    fitted_splits,
    tuned_size,
    validation,
    validation_surface,
)
from dtrees.model_selection.fitted_splits import (
    SplitScores,
    fit_splits,
    grow_splits,
    score_models,
    scores_by_leaves,
    scores_by_predictions,
    undefined,
    without_positive_class,
)
from dtrees.model_selection.folds import mean_and_standard_error
from dtrees.model_selection.prepare import SplitTable

CANCER = load_breast_cancer(return_X_y=True)
TREE = dtrees.DecisionTreeClassifier(random_state=0)
GRID = {"max_depth": [1, 2, 10, 20, 30, None], "ccp_alpha": [0.0, 1e-9, 1e-8, 0.05]}


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "balanced_accuracy"])
def test_threads_do_not_change_scores(scoring, monkeypatch):
    tree, found = clone(TREE).set_params(n_jobs=2), []
    for most in (0, 1 << 40):
        monkeypatch.setattr(fitted_splits, "MANY_SUMS", most)
        found.append(cross_validate(tree, *CANCER, scoring=scoring)["test_score"])
    np.testing.assert_array_equal(*found)


def test_a_model_is_scored_once():
    calls = []

    def area(y_true, y_score):
        calls.append(len(y_true))
        return roc_auc_score(y_true, y_score)

    scorer = make_scorer(area, response_method="predict_proba")
    ours = GridSearchCV(
        TREE, GRID, cv=3, scoring={"area": scorer, "loss": "neg_log_loss"}, refit=False
    )
    ours.fit(*CANCER)
    expected = theirs.GridSearchCV(TREE, GRID, cv=3, scoring="roc_auc", refit=False).fit(*CANCER)
    for number in range(3):
        found = ours.cv_results_[f"split{number}_test_area"]
        np.testing.assert_array_equal(found, expected.cv_results_[f"split{number}_test_score"])
    distinct = np.unique(np.stack([
        ours.cv_results_[f"split{number}_test_loss"] for number in range(3)
    ]), axis=1)  # fmt: skip
    assert 3 * distinct.shape[1] <= len(calls) <= 3 * 8 < 3 * 24


@pytest.mark.parametrize("name", ["ccp_alpha", "max_depth"])
def test_a_scorer_may_look_at_parameters(name):
    def score(model, X, y):
        return float(model.get_params()[name] or 100)

    search = GridSearchCV(TREE, GRID, cv=2, scoring=score).fit(*CANCER)
    asked = [params[name] or 100 for params in search.cv_results_["params"]]
    assert search.cv_results_["split1_test_score"].tolist() == asked


SPLITS = list(theirs.KFold(3).split(CANCER[0]))


def whole(estimator, y=CANCER[1], splits=SPLITS):
    work = SplitTable(TrainingTable(CANCER[0], y, None), splits)
    return fit_splits(estimator, work).whole(), work.table


@pytest.mark.parametrize("scoring", [None, "accuracy", ["accuracy", "neg_log_loss"], {"a": "f1"}])
def test_both_ways_say_the_same(scoring):
    cells, table = whole(TREE)
    by_leaves = scores_by_leaves(cells, SPLITS, scoring, return_train_score=True)
    by_models = score_models(
        cells, table.X, table.y, SPLITS, scoring, "raise", return_train_score=True
    )
    assert by_leaves.is_single == by_models.is_single
    assert by_leaves.scores.keys() == by_models.scores.keys()
    for key, scores in by_leaves.scores.items():
        assert scores.shape == (1, 3)
        np.testing.assert_allclose(scores, by_models.scores[key], rtol=1e-9, atol=1e-12)


WORDS = np.array(["no", "yes"])[CANCER[1]]
NUMBERS = CANCER[0][:, 0]
MODELS = {
    "forest of classes": (dtrees.RandomForestClassifier(5, random_state=0), WORDS),
    "forest of numbers": (dtrees.ExtraTreesRegressor(5, random_state=0), NUMBERS),
    "boosting of classes": (dtrees.GradientBoostingClassifier(max_iter=5), pd.Series(WORDS)),
    "boosting of numbers": (dtrees.GradientBoostingRegressor(max_iter=5), NUMBERS.tolist()),
}


class TestScoresByPredictions:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("name", MODELS)
    def test_they_are_those_of_scikit_learns_loop(self, name, monkeypatch):
        estimator, y = MODELS[name]
        mask = np.arange(len(y)) % 3 == 0
        splits = [*SPLITS, (~mask, mask), (np.arange(400), [-1, 5, 5])]
        how = {"cv": splits, "return_train_score": True}
        expected = cross_validate(estimator, CANCER[0], y, **how)["test_score"]
        monkeypatch.setattr(validation, "_by_sklearn", None)
        found = cross_validate(estimator, CANCER[0], y, cv=splits)
        np.testing.assert_array_equal(found["test_score"], expected)
        np.testing.assert_array_equal(cross_val_score(estimator, CANCER[0], y, cv=splits), expected)
        assert found["score_time"].shape == (5,)
        assert "train_score" not in found

    def test_a_row_alone_has_no_r2(self):
        estimator, y = MODELS["boosting of numbers"]
        with pytest.warns(UndefinedMetricWarning):
            found = cross_validate(estimator, CANCER[0], y, cv=[(np.arange(400), [401])])
        assert np.isnan(found["test_score"]).all()

    def test_a_score_that_fails_is_scikit_learns(self):
        estimator, y = MODELS["boosting of numbers"]
        splits = [(np.arange(400), np.arange(0)), SPLITS[0]]
        cells, _ = whole(estimator, np.array(y), splits)
        assert scores_by_predictions(cells, CANCER[0], y, splits) is None
        with pytest.warns(UserWarning, match="Scoring failed"):
            found = cross_validate(estimator, CANCER[0], y, cv=splits, error_score=-7.0)
        assert found["test_score"][0] == -7.0 != found["test_score"][1]


RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(60, 2))
Y = np.array(["a", "b", "z"])[RNG.integers(0, 2, 60)]
Y[[0, 30]] = "z"  # of the first and of the third fold
FOLDS = list(KFold(4).split(TABLE))
SHALLOW = DecisionTreeClassifier(max_depth=2, random_state=0)
PIPELINE = make_pipeline(StandardScaler(), SHALLOW)
KINDS = {
    "tree": SHALLOW,
    "forest": RandomForestClassifier(3, max_depth=2, random_state=0),
    "boosted": GradientBoostingClassifier(max_iter=2),
}
SHARES = ["neg_log_loss"]
if "labels" in signature(brier_score_loss).parameters:  # of two classes only, before 1.7
    SHARES.append("neg_brier_score")
SIDES = "split 1 has no row of z; split 3 has no row of z"


@pytest.mark.parametrize("name", KINDS)
def test_log_loss_is_that_of_all_classes(name):
    shares = cross_val_predict(KINDS[name], TABLE, Y, cv=FOLDS, method="predict_proba")
    found = cross_validate(KINDS[name], TABLE, Y, cv=FOLDS, scoring=["neg_log_loss", "accuracy"])
    expected = [-log_loss(Y[test], shares[test], labels=["a", "b", "z"]) for _, test in FOLDS]
    np.testing.assert_allclose(found["test_neg_log_loss"], expected, rtol=1e-12)
    alone = cross_val_score(KINDS[name], TABLE, Y, cv=FOLDS, scoring="neg_log_loss")
    np.testing.assert_allclose(alone, expected, rtol=1e-12)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("scoring", SHARES)
@pytest.mark.parametrize("name", KINDS)
def test_a_search_and_searches_inside(name, scoring):
    limit = "max_iter" if name == "boosted" else "max_depth"
    search = GridSearchCV(KINDS[name], {limit: [2, 1]}, cv=FOLDS, scoring=scoring).fit(TABLE, Y)
    means = search.cv_results_["mean_test_score"]
    assert np.isfinite(means).all()
    assert search.best_score_ == means.max()
    own = cross_val_score(search.best_estimator_, TABLE, Y, cv=FOLDS, scoring=scoring)
    np.testing.assert_allclose(own.mean(), search.best_score_, rtol=1e-12)
    inner = GridSearchCV(KINDS[name], {limit: [2, 1]}, cv=KFold(3), scoring=scoring)
    assert np.isfinite(cross_validate(inner, TABLE, Y, cv=FOLDS)["test_score"]).all()


def test_rows_that_stop_a_fit():
    lacks = Y != "z"
    model = GradientBoostingClassifier(max_iter=2, early_stopping=True, scoring="neg_log_loss")
    model.fit(TABLE, Y, X_val=TABLE[lacks], y_val=Y[lacks])
    shares = model.predict_proba(TABLE[lacks])
    expected = -log_loss(Y[lacks], shares, labels=["a", "b", "z"])
    assert model.validation_score_[-1] == pytest.approx(expected)


ASKED = {
    "cross_validate": lambda model: cross_validate(
        model, TABLE, Y, cv=FOLDS, scoring="roc_auc_ovr"
    ),
    "cross_val_score": lambda model: cross_val_score(
        model, TABLE, Y, cv=FOLDS, scoring="roc_auc_ovr"
    ),
    "search": lambda model: GridSearchCV(
        model, {"max_depth": [2, 1]}, cv=FOLDS, scoring="roc_auc_ovr"
    ).fit(TABLE, Y),
    "surface": lambda model: validation_surface(
        model, TABLE, Y, cv=FOLDS, scoring="roc_auc_ovr", max_depth=[1, 2]
    ),
    "pipeline": lambda model: cross_validate(
        make_pipeline(StandardScaler(), model), TABLE, Y, cv=FOLDS, scoring="roc_auc_ovr"
    ),
    "pipelines": lambda model: GridSearchCV(
        PIPELINE, {"decisiontreeclassifier__max_depth": [2, 1]}, cv=FOLDS, scoring="roc_auc_ovr"
    ).fit(TABLE, Y),
}


@pytest.mark.parametrize("name", ASKED)
def test_who_asks_for_what_is_not_defined_hears_of_the_splits(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's own
        with pytest.warns(UndefinedMetricWarning, match=SIDES) as heard:
            ASKED[name](SHALLOW)
    mine = [each for each in heard if SIDES in str(each.message)]
    assert [each.filename for each in mine] == [__file__]
    assert "Take fewer or stratified folds" in str(mine[0].message)


TWO = np.where(RNG.integers(0, 2, 60), "yes", "no")
SAID = {
    "f1": "make_scorer(f1_score, average='binary', pos_label='yes')",
    "average_precision": "make_scorer(average_precision_score, pos_label='yes', response_method=",
}
ASKED_OF_TWO = {
    "cross_validate": lambda given: cross_validate(SHALLOW, TABLE, TWO, **given),
    "cross_val_score": lambda given: cross_val_score(SHALLOW, TABLE, TWO, **given),
    "search": lambda given: GridSearchCV(SHALLOW, {"max_depth": [2, 1]}, **given).fit(TABLE, TWO),
    "pipeline": lambda given: cross_validate(PIPELINE, TABLE, TWO, **given),
    "nested": lambda given: cross_validate(
        GridSearchCV(SHALLOW, {"max_depth": [2, 1]}, **given), TABLE, TWO, cv=2
    ),
    "several": lambda given: cross_validate(
        SHALLOW, TABLE, TWO, cv=3, scoring=["accuracy", given["scoring"]]
    ),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("scoring", SAID)
@pytest.mark.parametrize("name", ASKED_OF_TWO)
def test_who_asks_for_a_positive_class_hears_how_to_say_which_one_it_is(name, scoring):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        ASKED_OF_TWO[name]({"cv": 3, "scoring": scoring})
    mine = [each for each in heard if issubclass(each.category, UndefinedMetricWarning)]
    assert {each.filename for each in mine} == {__file__}
    for each in mine:
        assert re.search(
            r"nan of all splits: pos_label=1 is .* of \['no' 'yes'\]\. Say", str(each.message)
        )
        assert SAID[scoring] in str(each.message)


REFUSING = {
    "surface": lambda y, given: validation_surface(
        SHALLOW, TABLE, y, error_score=np.nan, cv=FOLDS, **given
    ),
    "curve": lambda y, given: boosting_curve(KINDS["boosted"], TABLE, y, cv=FOLDS, **given),
    "size": lambda y, given: tuned_size(SHALLOW, TABLE, y, FOLDS, **given),
    "iterations": lambda y, given: tuned_size(KINDS["boosted"], TABLE, y, FOLDS, **given),
}


@pytest.mark.parametrize("name", REFUSING)
def test_functions_of_our_own_refuse_unfit_scorers_before_anything_grows(name, monkeypatch):
    monkeypatch.setattr(fitted_splits, "fit_splits", None)
    for scoring, call in SAID.items():
        with pytest.raises(ValueError, match=r"pos_label=1 is .* Say which one is") as heard:
            REFUSING[name](TWO, {"scoring": scoring})
        assert f"scoring={call}" in str(heard.value)
    for scoring, other in {"f1": "f1_macro", "roc_auc": "roc_auc_ovr"}.items():
        with pytest.raises(ValueError, match=f"there are 3: .* Take scoring='{other}'"):
            REFUSING[name](Y, {"scoring": scoring})


def test_scorers_that_know_their_class_or_fail_otherwise_are_not_named():
    fails = {"score": np.full(3, np.nan)}
    assert without_positive_class(fails, "f1", TWO) is not None
    assert without_positive_class({"f1": fails["score"]}, ["f1"], TWO).startswith("Scores of f1 a")
    assert without_positive_class({"score": np.array([np.nan, 1.0])}, "f1", TWO) is None
    assert without_positive_class(fails, "f1", TWO == "yes") is None
    assert without_positive_class(fails, "f1_macro", TWO) is None
    assert without_positive_class(fails, None, TWO) is None
    assert without_positive_class(fails, make_scorer(f1_score, pos_label="no"), TWO) is None
    assert without_positive_class(fails, lambda model, TABLE, y: 1 / 0, TWO) is None
    assert without_positive_class(fails, "f1", Y) is None  # three classes
    both = without_positive_class(
        dict.fromkeys("ab", fails["score"]),
        {"a": "f1", "b": make_scorer(fbeta_score, beta=2, zero_division=1)},
        TWO,
    )
    assert both.endswith(
        "'a': make_scorer(f1_score, average='binary', pos_label='yes'), "
        "'b': make_scorer(fbeta_score, beta=2, zero_division=1, pos_label='yes')."
    )
    brier = without_positive_class(fails, "neg_brier_score", TWO)
    assert brier.endswith("response_method='predict_proba', greater_is_better=False).")


def test_what_is_said():
    scores = np.array([[0.1, np.nan, 0.3, np.nan], [0.1, 0.2, 0.3, np.nan]])
    assert undefined({"score": scores}, FOLDS, Y).startswith("Scores are nan where test si")
    found = undefined({"auc": scores, "own": scores[0]}, FOLDS, Y, folds=True)
    assert "of auc, own are" in found
    assert "fold 2 has no row of z; fold 4 has no row of z" in found
    assert undefined({"score": scores[:, 2:3]}, FOLDS[2:3], Y) is None
    lacking_none = np.array([np.nan, 0, 0, 0])
    assert undefined({"score": lacking_none}, FOLDS, Y) is None  # nan for another reason
    fails = np.full(4, np.nan)  # of all sides, one of which has all classes
    assert undefined({"score": fails}, FOLDS, Y) is None
    assert "Scores of auc are" in undefined({"auc": scores, "own": fails}, FOLDS, Y)
    many = np.arange(60)
    assert "0, 1, 2, 3, 4, and 40 more" in undefined(
        {"score": np.array([np.nan])}, [(many, many[45:])], many
    )


@dataclass(frozen=True, eq=False)
class Scores(SplitScores):
    """Scores of anything."""

    scores: np.ndarray
    _grown: Any = None


@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 2, 4)])
def test_they_are_those_of_each_row_of_splits(shape):
    scores = np.random.default_rng(0).normal(size=shape)
    found = Scores(scores)
    assert found.mean.shape == found.standard_error.shape == shape[:-1]
    for place in np.ndindex(shape[:-1]):
        mean, error = mean_and_standard_error(scores[place])
        assert found.mean[place] == pytest.approx(mean, rel=1e-14)
        assert found.standard_error[place] == pytest.approx(error, rel=1e-14)
        assert found._allowed(place) == found.mean[place] - found.standard_error[place]


IRIS_X, IRIS_Y = load_iris(return_X_y=True)
IRIS_SPLITS = list(KFold(3, shuffle=True, random_state=0).split(IRIS_X))


def work(y=IRIS_Y, weight=None, **how):
    return SplitTable(TrainingTable(IRIS_X, y, weight), IRIS_SPLITS, **how)


def test_smaller_models_stand_inside():
    tree = DecisionTreeClassifier(random_state=0)
    grown = grow_splits(tree, work())
    small = grown.within(clone(tree).set_params(max_depth=1))
    assert [model.get_depth() for model in small.models] == [1, 1, 1]
    assert small.final_estimator.get_params()["max_depth"] == 1
    of_final = grown.only_final(IRIS_SPLITS[:1])
    assert of_final.models == [grown.final_estimator]


def test_the_last_model_is_of_the_rows_that_are_asked_for():
    half = np.arange(150) % 2 == 0
    grown = grow_splits(DecisionTreeClassifier(random_state=0), work(rows=half))
    alone = DecisionTreeClassifier(random_state=0).fit(
        IRIS_X, IRIS_Y, sample_weight=half.astype(float)
    )
    np.testing.assert_array_equal(grown.final_estimator.predict(IRIS_X), alone.predict(IRIS_X))


def test_errors_of_fits_are_kept_or_raised():
    weight = np.ones(150)
    weight[IRIS_SPLITS[1][0]] = 0.0
    tree = DecisionTreeClassifier(class_weight="balanced")
    cells = fit_splits(tree, work(weight=weight)).whole()
    assert isinstance(cells.error(1), ValueError)
    assert cells.error(0) is cells.error(-1) is None
    with pytest.raises(ValueError, match="weight"):
        grow_splits(tree, work(weight=weight))
