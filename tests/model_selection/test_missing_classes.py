"""Test sides that lack a class: scores that are defined are there, others say what is missing."""

import re
import warnings
from inspect import signature

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import brier_score_loss, f1_score, fbeta_score, log_loss, make_scorer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import DecisionTreeClassifier, GradientBoostingClassifier, RandomForestClassifier
from dtrees.model_selection import (
    GridSearchCV,
    boosting_curve,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    fitted_splits,
    tuned_size,
    validation_surface,
)
from dtrees.model_selection.missing_classes import undefined, without_positive_class

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.array(["a", "b", "z"])[RNG.integers(0, 2, 60)]
Y[[0, 30]] = "z"  # of the first and of the third fold
SPLITS = list(KFold(4).split(X))
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
PIPELINE = make_pipeline(StandardScaler(), TREE)
MODELS = {
    "tree": TREE,
    "forest": RandomForestClassifier(3, max_depth=2, random_state=0),
    "boosted": GradientBoostingClassifier(max_iter=2),
}
SHARES = ["neg_log_loss"]
if "labels" in signature(brier_score_loss).parameters:  # of two classes only, before 1.7
    SHARES.append("neg_brier_score")
SIDES = "split 1 has no row of z; split 3 has no row of z"


@pytest.mark.parametrize("name", MODELS)
def test_log_loss_is_that_of_all_classes(name):
    shares = cross_val_predict(MODELS[name], X, Y, cv=SPLITS, method="predict_proba")
    found = cross_validate(MODELS[name], X, Y, cv=SPLITS, scoring=["neg_log_loss", "accuracy"])
    expected = [-log_loss(Y[test], shares[test], labels=["a", "b", "z"]) for _, test in SPLITS]
    np.testing.assert_allclose(found["test_neg_log_loss"], expected, rtol=1e-12)
    alone = cross_val_score(MODELS[name], X, Y, cv=SPLITS, scoring="neg_log_loss")
    np.testing.assert_allclose(alone, expected, rtol=1e-12)


@pytest.mark.parametrize("scoring", SHARES)
@pytest.mark.parametrize("name", MODELS)
def test_a_search_and_searches_inside(name, scoring):
    limit = "max_iter" if name == "boosted" else "max_depth"
    search = GridSearchCV(MODELS[name], {limit: [2, 1]}, cv=SPLITS, scoring=scoring).fit(X, Y)
    means = search.cv_results_["mean_test_score"]
    assert np.isfinite(means).all()
    assert search.best_score_ == means.max()
    own = cross_val_score(search.best_estimator_, X, Y, cv=SPLITS, scoring=scoring)
    np.testing.assert_allclose(own.mean(), search.best_score_, rtol=1e-12)
    inner = GridSearchCV(MODELS[name], {limit: [2, 1]}, cv=KFold(3), scoring=scoring)
    assert np.isfinite(cross_validate(inner, X, Y, cv=SPLITS)["test_score"]).all()


def test_rows_that_stop_a_fit():
    lacks = Y != "z"
    model = GradientBoostingClassifier(max_iter=2, early_stopping=True, scoring="neg_log_loss")
    model.fit(X, Y, X_val=X[lacks], y_val=Y[lacks])
    shares = model.predict_proba(X[lacks])
    expected = -log_loss(Y[lacks], shares, labels=["a", "b", "z"])
    assert model.validation_score_[-1] == pytest.approx(expected)


ASKED = {
    "cross_validate": lambda model: cross_validate(model, X, Y, cv=SPLITS, scoring="roc_auc_ovr"),
    "cross_val_score": lambda model: cross_val_score(model, X, Y, cv=SPLITS, scoring="roc_auc_ovr"),
    "search": lambda model: GridSearchCV(
        model, {"max_depth": [2, 1]}, cv=SPLITS, scoring="roc_auc_ovr"
    ).fit(X, Y),
    "surface": lambda model: validation_surface(
        model, X, Y, cv=SPLITS, scoring="roc_auc_ovr", max_depth=[1, 2]
    ),
    "pipeline": lambda model: cross_validate(
        make_pipeline(StandardScaler(), model), X, Y, cv=SPLITS, scoring="roc_auc_ovr"
    ),
    "pipelines": lambda model: GridSearchCV(
        PIPELINE, {"decisiontreeclassifier__max_depth": [2, 1]}, cv=SPLITS, scoring="roc_auc_ovr"
    ).fit(X, Y),
}


@pytest.mark.parametrize("name", ASKED)
def test_who_asks_for_what_is_not_defined_hears_of_the_splits(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's own
        with pytest.warns(UndefinedMetricWarning, match=SIDES) as heard:
            ASKED[name](TREE)
    mine = [each for each in heard if SIDES in str(each.message)]
    assert [each.filename for each in mine] == [__file__]
    assert "Take fewer or stratified folds" in str(mine[0].message)


TWO = np.where(RNG.integers(0, 2, 60), "yes", "no")
SAID = {
    "f1": "make_scorer(f1_score, average='binary', pos_label='yes')",
    "average_precision": "make_scorer(average_precision_score, pos_label='yes', response_method=",
}
ASKED_OF_ONE = {
    "cross_validate": lambda given: cross_validate(TREE, X, TWO, **given),
    "cross_val_score": lambda given: cross_val_score(TREE, X, TWO, **given),
    "search": lambda given: GridSearchCV(TREE, {"max_depth": [2, 1]}, **given).fit(X, TWO),
    "pipeline": lambda given: cross_validate(PIPELINE, X, TWO, **given),
    "nested": lambda given: cross_validate(
        GridSearchCV(TREE, {"max_depth": [2, 1]}, **given), X, TWO, cv=2
    ),
    "several": lambda given: cross_validate(
        TREE, X, TWO, cv=3, scoring=["accuracy", given["scoring"]]
    ),
}


@pytest.mark.parametrize("scoring", SAID)
@pytest.mark.parametrize("name", ASKED_OF_ONE)
def test_who_asks_for_a_positive_class_hears_how_to_say_which_one_it_is(name, scoring):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        ASKED_OF_ONE[name]({"cv": 3, "scoring": scoring})
    mine = [each for each in heard if issubclass(each.category, UndefinedMetricWarning)]
    assert {each.filename for each in mine} == {__file__}
    for each in mine:
        assert re.search(
            r"nan of all splits: pos_label=1 is .* of \['no' 'yes'\]\. Say", str(each.message)
        )
        assert SAID[scoring] in str(each.message)


REFUSING = {
    "surface": lambda y, given: validation_surface(
        TREE, X, y, error_score=np.nan, cv=SPLITS, **given
    ),
    "curve": lambda y, given: boosting_curve(MODELS["boosted"], X, y, cv=SPLITS, **given),
    "size": lambda y, given: tuned_size(TREE, X, y, SPLITS, **given),
    "iterations": lambda y, given: tuned_size(MODELS["boosted"], X, y, SPLITS, **given),
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
    assert without_positive_class(fails, lambda model, X, y: 1 / 0, TWO) is None
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
    assert undefined({"score": scores}, SPLITS, Y).startswith("Scores are nan where test si")
    found = undefined({"auc": scores, "own": scores[0]}, SPLITS, Y, folds=True)
    assert "of auc, own are" in found
    assert "fold 2 has no row of z; fold 4 has no row of z" in found
    assert undefined({"score": scores[:, 2:3]}, SPLITS[2:3], Y) is None
    lacking_none = np.array([np.nan, 0, 0, 0])
    assert undefined({"score": lacking_none}, SPLITS, Y) is None  # nan for another reason
    fails = np.full(4, np.nan)  # of all sides, one of which has all classes
    assert undefined({"score": fails}, SPLITS, Y) is None
    assert "Scores of auc are" in undefined({"auc": scores, "own": fails}, SPLITS, Y)
    many = np.arange(60)
    assert "0, 1, 2, 3, 4, and 40 more" in undefined(
        {"score": np.array([np.nan])}, [(many, many[45:])], many
    )
