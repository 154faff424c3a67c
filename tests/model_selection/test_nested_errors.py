"""Searches, pipelines and estimators of other libraries, beside a loop of separate fits."""

from __future__ import annotations

import logging
import math

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris, make_friedman1
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from dtrees.core.grow import shared
from dtrees.estimators import InvalidParameterError
from dtrees.estimators.training_sets import TrainingTable
from dtrees.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    nested_standard_error,
)
from dtrees.model_selection.nested_errors import (
    OF_CLASSES,
    NestedStandardError,
    WithoutFolds,
    divisions,
)
from dtrees.model_selection.prepare import NotShareableError

TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, 3]}


def data(estimator):
    if is_classifier(estimator):
        return noisy(60, 0)
    X, y = make_friedman1(60, random_state=0)
    return X, np.rint(y)  # whose sums are those of any unit


def fits(estimator, X, y, cv, rows_only=True):
    """Algorithm 1 with fits of the training rows alone."""
    tests = [test for _, test in cv.split(X, y)]
    loss = right if is_classifier(estimator) else squared
    return algorithm_1(estimator, X, y, [tests], loss, rows_only=rows_only)


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    "estimator",
    [
        GridSearchCV(TREE, DEPTHS, cv=KFold(3)),
        RandomizedSearchCV(
            DecisionTreeRegressor(random_state=0), DEPTHS, n_iter=2, cv=3, random_state=0
        ),
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)),
        make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3, random_state=0)),
        GridSearchCV(
            make_pipeline(StandardScaler(), TREE), {"decisiontreeclassifier__max_depth": [1, 3]}
        ),
        LogisticRegression(),
        LinearSVC(random_state=0),
        Ridge(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_loop_of_fits(estimator):
    X, y = data(estimator)
    cv = KFold(3, shuffle=True, random_state=0)
    agree(nested_standard_error(estimator, X, y, cv=cv), fits(estimator, X, y, cv))


def all_right(model, X, Y):
    return (model.predict(X) == Y).all(axis=1).astype(float)


def share_right(model, X, Y):
    return all_right(model, X, Y).mean()


def mean_squared(model, X, Y):
    return -((model.predict(X) - Y) ** 2).mean(axis=1)


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("estimator", "scoring"),
    [
        (DecisionTreeClassifier(max_depth=3, random_state=0), all_right),
        (DecisionTreeRegressor(max_depth=3, random_state=0), mean_squared),
        (RandomForestClassifier(3, max_depth=3, random_state=0), all_right),
        (GradientBoostingRegressor(max_iter=3, min_samples_leaf=5), mean_squared),
        (GridSearchCV(TREE, DEPTHS, cv=KFold(3), scoring=share_right), all_right),
        (make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3)), all_right),
        (make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3)), mean_squared),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_several_targets(estimator, scoring):
    X, y = data(estimator)
    Y = np.column_stack([y, X[:, 1].round() + X[:, 2].round()])
    cv = KFold(3, shuffle=True, random_state=0)
    tests = [test for _, test in cv.split(X)]
    is_alone = isinstance(estimator, DecisionTreeClassifier | RandomForestClassifier)
    expected = algorithm_1(estimator, X, Y, [tests], scoring, rows_only=not is_alone)
    agree(nested_standard_error(estimator, X, Y, cv=cv), expected)
    for y_given in (pd.DataFrame(Y), Y[:, ::-1]):
        agree(nested_standard_error(estimator, X, y_given, cv=cv), expected)


@pytest.mark.parametrize("pipes", [False, True])
def test_scores_of_shares_and_functions_of_several_targets(pipes):
    X, y = noisy(60, 0, 3)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = make_pipeline(tree) if pipes else tree
    how = {"cv": 3, "n_repeats": 2, "random_state": 0}
    for scoring in ("neg_log_loss", "neg_brier_score", "accuracy"):
        twice = nested_standard_error(model, X, np.c_[y, y], cv=KFold(3), scoring=scoring)
        alone = nested_standard_error(model, X, y, cv=KFold(3), scoring=scoring)
        np.testing.assert_allclose(twice.mean, alone.mean, rtol=1e-12)
        np.testing.assert_allclose(twice.standard_error, alone.standard_error, rtol=1e-12)
    labels = pd.DataFrame({"number": y, "word": np.array(["no", "yes"])[(X[:, 1] > 2).astype(int)]})

    def half(Y, said):
        assert Y.dtype == said.dtype == object
        assert set(Y[:, 1]) <= {"no", "yes"}
        return (said == Y).mean(axis=1)

    if not pipes:  # scikit-learn's splitters take no such labels
        found = nested_standard_error(model, X, labels, scoring=half, **how)
        assert found.mean > nested_standard_error(model, X, labels, **how).mean


def test_shares_of_classes_that_a_training_side_lacks():
    X, y = noisy(40, 0)
    y = np.where(np.arange(40) < 2, 2, y)  # in the first fold only
    cv, pipeline = KFold(4), make_pipeline(DecisionTreeClassifier(max_depth=2, random_state=0))
    for scoring in ("neg_log_loss", "neg_brier_score"):
        found = nested_standard_error(pipeline, X, y, cv=cv, scoring=scoring)
        alone = nested_standard_error(pipeline[-1], X, y, cv=cv, scoring=scoring)
        np.testing.assert_allclose(found.mean, alone.mean, rtol=1e-12)
        np.testing.assert_allclose(found.standard_error, alone.standard_error, rtol=1e-12)


def test_searches_code_the_table_once(monkeypatch):
    coded = []
    encoded = TrainingTable.coded

    def watched(self, *arguments):
        coded.append(id(self))
        return encoded(self, *arguments)

    monkeypatch.setattr(TrainingTable, "coded", watched)
    nested_standard_error(GridSearchCV(TREE, DEPTHS, cv=3), *noisy(60, 0), cv=3)
    assert len(coded) > 6
    assert len(set(coded)) == 1


def test_weights_frames_and_labels():
    X, y = noisy(60, 1)
    frame, labels = pd.DataFrame(X, columns=list("abc")), np.array(["no", "yes"])[y]
    weight = np.random.default_rng(0).integers(0, 3, 60)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    expected = nested_standard_error(tree, X, y, cv=cv, params={"sample_weight": weight})
    params = {"decisiontreeclassifier__sample_weight": weight}
    found = nested_standard_error(make_pipeline(tree), frame, labels, cv=cv, params=params)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-12)
    searched = GridSearchCV(tree, {"max_depth": [3]}, cv=3)
    found = nested_standard_error(searched, frame, labels, cv=cv, params={"sample_weight": weight})
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-12)


def test_searches_that_cannot_be_made_on_codes(monkeypatch):
    X, y = noisy(60, 0)
    search = GridSearchCV(TREE, DEPTHS, cv=3)
    expected = nested_standard_error(search, X, y, cv=KFold(3))

    def refuse(*arguments):
        raise NotShareableError("as asked")

    monkeypatch.setattr("dtrees.model_selection.nested_errors.search_rows", refuse)
    found = nested_standard_error(search, X, y, cv=KFold(3))
    assert found.mean == pytest.approx(expected.mean)
    assert found.standard_error == pytest.approx(expected.standard_error)
    with pytest.raises(ValueError, match="has refit=False, which leaves none"):
        nested_standard_error(GridSearchCV(TREE, DEPTHS, refit=False), X, y, cv=3)


def test_dask_collections():
    X, y = noisy(60, 0)
    lazy, lazy_y = da.from_array(X, chunks=(25, 3)), da.from_array(y, chunks=20)
    search = GridSearchCV(TREE, DEPTHS, cv=KFold(3))
    cv = KFold(3)
    expected = nested_standard_error(search, X, y, cv=cv)
    assert nested_standard_error(search, lazy, lazy_y, cv=cv) == expected
    with pytest.raises(TypeError, match="nested_standard_error of a Dask collection: Pipeline is"):
        nested_standard_error(make_pipeline(TREE), lazy, lazy_y, cv=cv)


def test_errors_of_fits():
    with pytest.raises(ValueError, match="max_depth"):
        nested_standard_error(make_pipeline(DecisionTreeClassifier(max_depth=-1)), *noisy(60, 0))
    with pytest.raises(ValueError, match="max_depth"):
        nested_standard_error(GridSearchCV(TREE, {"max_depth": [-1]}), *noisy(60, 0))
    twice = [([0, 0, 1], [2, 3]), ([2, 3], [0, 1])]
    with pytest.raises(ValueError, match="needs folds: a training side lists rows twice"):
        nested_standard_error(TREE, *noisy(4, 0), cv=twice)


IRIS = load_iris(return_X_y=True)
SHALLOW = DecisionTreeClassifier(max_depth=3, random_state=0)
NUMBERS = DecisionTreeRegressor(max_depth=3, random_state=0)


def algorithm_1(estimator, X, y, fold_lists, loss, weight=None, rows_only=False):
    """The pseudocode of the paper, as it stands there; then its scaling, bounds and bias.

    Bates, Hastie, Tibshirani 2023, algorithm 1. What follows it scales the MSE by (K - 1) / K, and
    keeps its root between SE and sqrt(K) SE. The bias is (1 + (K - 2) / K) (Err NCV - Err CV).
    """
    weight = np.ones(len(y)) if weight is None else weight

    def fit(rows):
        if rows_only:
            rows = np.sort(rows)
            return clone(estimator).fit(X[rows], y[rows])
        mine = np.zeros(len(y))
        mine[rows] = weight[rows]
        return clone(estimator).fit(X, y, sample_weight=mine)

    def inner_crossval(folds):
        e_in = []
        for k in range(len(folds)):
            theta = fit(np.concatenate([each for i, each in enumerate(folds) if i != k]))
            e_in += loss(theta, X[folds[k]], y[folds[k]]).tolist()
        return e_in

    es, a_list, b_list, outs = [], [], [], []
    for folds in fold_lists:
        out = []
        for k in range(len(folds)):
            others = [each for i, each in enumerate(folds) if i != k]
            e_in = inner_crossval(others)
            theta = fit(np.concatenate(others))
            e_out = loss(theta, X[folds[k]], y[folds[k]])
            a_list.append((np.mean(e_in) - np.mean(e_out)) ** 2)
            b_list.append(np.var(e_out, ddof=1) / len(folds[k]))
            es += e_in
            out += e_out.tolist()
        outs.append(out)
    mse, k = np.mean(a_list) - np.mean(b_list), len(fold_lists[0])
    naive = math.sqrt(np.mean([np.var(out, ddof=1) for out in outs]) / len(y))
    error = np.clip(math.sqrt(max(0, mse * (k - 1) / k)), naive, math.sqrt(k) * naive)
    bias = (1 + (k - 2) / k) * (np.mean(es) - np.mean(outs))
    middle = np.mean(es) - bias
    ends = middle - 1.6448536269514722 * error, middle + 1.6448536269514722 * error
    return np.mean(outs), error, naive, np.mean(es), middle, *ends


def right(model, X, y):
    return (model.predict(X) == y).astype(float)


def squared(model, X, y):
    return -((model.predict(X) - y) ** 2)


def agree(found, expected):
    got = found.mean, found.standard_error, found.naive_standard_error, found.nested_mean
    got = *got, found.corrected, *found.interval(0.9)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-14)


def noisy(n_rows, seed, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n_rows, 3)).astype(float)
    return X, (X[:, 0] + rng.integers(0, 6, n_rows) > 5).astype(int) * (n_classes - 1)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("estimator", [SHALLOW, NUMBERS], ids=["classes", "numbers"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_pseudocode(estimator, n_jobs):
    X, y = noisy(60, 0) if is_classifier(estimator) else make_friedman1(60, random_state=0)
    loss = right if is_classifier(estimator) else squared
    cv = RepeatedKFold(n_splits=5, n_repeats=2, random_state=0)
    tests = [test for _, test in cv.split(X)]
    found = nested_standard_error(estimator.set_params(n_jobs=n_jobs), X, y, cv=cv)
    agree(found, algorithm_1(estimator, X, y, [tests[:5], tests[5:]], loss))
    assert (found.n_folds, found.n_repeats) == (5, 2)


@settings(max_examples=12)
@given(st.integers(0, 1000), st.integers(3, 6), st.booleans(), st.booleans())
def test_any_folds_and_weights(seed, k, with_weights, with_missing):
    X, y = noisy(50, seed)
    if with_missing:
        X[::4, 0] = np.nan
    weight = np.random.default_rng(seed).integers(0, 3, 50) if with_weights else None
    cv = StratifiedKFold(k, shuffle=True, random_state=seed)
    params = None if weight is None else {"sample_weight": weight}
    found = nested_standard_error(SHALLOW, X, y, cv=cv, params=params)
    tests = [test for _, test in cv.split(X, y)]
    agree(found, algorithm_1(SHALLOW, X, y, [tests], right, weight))


def test_forests_and_functions_of_rows():
    X, y = noisy(40, 1)
    forest = RandomForestClassifier(4, max_depth=3, random_state=0)
    cv = KFold(4, shuffle=True, random_state=0)
    tests = [test for _, test in cv.split(X)]
    expected = algorithm_1(forest, X, y, [tests], right)
    agree(nested_standard_error(forest, X, y, cv=cv), expected)
    own = nested_standard_error(forest, X, y, cv=cv, scoring=lambda y, said: said == y)
    agree(own, expected)
    labels = np.array(["no", "yes"])[y]
    own = nested_standard_error(forest, X, labels, cv=cv, scoring=lambda y, said: said == y)
    agree(own, expected)


def test_folds_of_a_number_are_shuffled_by_a_seed():
    X, y = IRIS
    made = [
        nested_standard_error(SHALLOW, X, y, cv=3, n_repeats=2, random_state=s) for s in (0, 0, 1)
    ]
    assert made[0] == made[1] != made[2]
    assert (made[0].n_folds, made[0].n_repeats) == (3, 2)
    assert nested_standard_error(SHALLOW, X, y, cv=3, random_state=0).n_repeats == 20


def test_groups_and_dask_collections():
    X, y = noisy(60, 2)
    groups = np.arange(60) // 4
    how = {"cv": GroupKFold(4), "groups": groups}
    expected = nested_standard_error(SHALLOW, X, y, **how)
    tests = [test for _, test in GroupKFold(4).split(X, y, groups)]
    agree(expected, algorithm_1(SHALLOW, X, y, [tests], right))
    lazy, lazy_y = da.from_array(X, chunks=(25, 3)), da.from_array(y, chunks=20)
    config = {"scheduler": "threads", "dtrees.regime": "partitioned", "dtrees.gather-rows": 10}
    assert nested_standard_error(SHALLOW, lazy, lazy_y, **how) == expected
    with dask.config.set(config):
        assert nested_standard_error(SHALLOW, lazy, lazy_y, **how) == expected


def test_all_models_of_a_repeat_grow_together(monkeypatch, caplog):
    """55 models of ten folds are one growth of 55 sets, and no tree is grown alone."""
    seen = []

    class Remembered(shared.TrainingSets):
        def __init__(self, dataset, cell, has, *_):
            seen.append((self, len(has)))

    monkeypatch.setattr(shared, "TrainingSets", Remembered)
    X, y = noisy(2000, 3)
    with caplog.at_level(logging.INFO, "dtrees"):
        nested_standard_error(SHALLOW, X, y, cv=10, n_repeats=3, random_state=0)
    assert [n_sets for _, n_sets in seen] == [55, 55, 55]
    assert all(sets.n_shared_nodes > 1 and sets.n_shared_rows > 2000 for sets, _ in seen)
    assert "one by one" not in caplog.text


def test_scores_are_those_of_scikit_learn():
    X, y = IRIS
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    for scoring in ("accuracy", "neg_log_loss"):
        found = nested_standard_error(SHALLOW, X, y, cv=cv, scoring=scoring)
        expected = cross_val_score(SHALLOW, X, y, cv=cv, scoring=scoring).mean()
        np.testing.assert_allclose(found.mean, expected, rtol=1e-12)
    X, y = make_friedman1(50, random_state=0)
    for scoring in ("neg_mean_squared_error", "neg_mean_absolute_error"):
        found = nested_standard_error(NUMBERS, X, y, cv=KFold(5), scoring=scoring)
        expected = cross_val_score(NUMBERS, X, y, cv=5, scoring=scoring).mean()
        np.testing.assert_allclose(found.mean, expected, rtol=1e-12)


def test_bounds_and_intervals():
    made = NestedStandardError(0.8, 0.03, 0.02, 0.79, n_folds=4, n_repeats=1)
    assert made.inflation == 0.03 / 0.02
    bias = (1 + 2 / 4) * (0.79 - 0.8)
    assert made.corrected == 0.79 - bias
    lower, upper = made.interval(0.9)
    assert math.isclose((lower + upper) / 2, made.corrected)
    assert math.isclose(upper - lower, 2 * 1.6448536269514722 * 0.03)
    with pytest.raises(ValueError, match="confidence"):
        made.interval(1)
    X, _ = noisy(40, 0)
    all_right = nested_standard_error(
        DecisionTreeClassifier(), X, X[:, 0] > 2, cv=4, random_state=0
    )
    assert (all_right.mean, all_right.standard_error, all_right.inflation) == (1.0, 0.0, 1.0)


def test_divisions():
    splits = list(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0).split(np.zeros(10)))
    first, second = divisions(splits, 10)
    for number in range(3):
        np.testing.assert_array_equal(np.flatnonzero(first == number), splits[number][1])
        np.testing.assert_array_equal(np.flatnonzero(second == number), splits[3 + number][1])
    masks = [tuple(np.isin(np.arange(10), side) for side in split) for split in splits]
    np.testing.assert_array_equal(divisions(masks, 10), [first, second])
    sets = WithoutFolds(first)
    assert sets.lacking == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    np.testing.assert_array_equal(sets[3], first == 2)


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ({"cv": 2}, ValueError, r"'cv' parameter of .* \[3, inf\)"),
        ({"cv": KFold(2)}, ValueError, "needs 3 folds or more of 2 rows or more: there are 2"),
        ({"cv": LeaveOneOut()}, ValueError, "needs 3 folds or more of 2 rows"),
        ({"cv": ShuffleSplit(3)}, ValueError, "The test sides leave rows out|needs folds"),
        ({"cv": list(KFold(4).split(IRIS[0]))[:3]}, ValueError, "The test sides leave rows out"),
        ({"cv": [(range(5), range(5, 150))] * 3}, ValueError, "needs folds: test sides"),
        (
            {"cv": [*KFold(3).split(IRIS[0]), *KFold(4).split(IRIS[0])]},
            ValueError,
            r"Every repeat needs as many folds: they have \[3, 4\]",
        ),
        ({"cv": 5, "n_repeats": 0}, ValueError, r"'n_repeats' parameter of .* \[1, inf\)"),
        ({"cv": KFold(5), "n_repeats": 3}, ValueError, "n_repeats is for cv as a number"),
        ({"scoring": "roc_auc"}, ValueError, "scoring must be a mean over rows: got 'roc_auc'"),
        ({"scoring": lambda y, said: 1.0}, ValueError, "scoring must return a number for each row"),
    ],
)
def test_refusals(how, error, said):
    with pytest.raises(error, match=said):
        nested_standard_error(SHALLOW, *IRIS, **how)


def test_errors_of_fits_and_of_estimators():
    with pytest.raises(
        TypeError, match="'y' parameter of nested_standard_error must be an array-like"
    ):
        nested_standard_error(SHALLOW, IRIS[0], None)
    with pytest.raises(InvalidParameterError, match="max_depth"):
        nested_standard_error(DecisionTreeClassifier(max_depth=-1), *IRIS)
    for search in GridSearchCV, sklearn.model_selection.GridSearchCV:
        with pytest.raises(ValueError, match="has refit=False, which leaves none"):
            nested_standard_error(search(SHALLOW, {"max_depth": [1, 2]}, refit=False), *IRIS)


@pytest.mark.long
@pytest.mark.rest
@pytest.mark.parametrize(
    ("kind", "n_tables"),
    [
        (DecisionTreeRegressor, 60),
        pytest.param(DecisionTreeClassifier, 200, marks=pytest.mark.long),
    ],
)
def test_intervals_hold_the_truth_more_often_than_naive_ones(kind, n_tables):
    """Small noisy tables: the score of the model of all rows, of very many new ones."""
    n_rows, confidence, z = 40, 0.9, 1.6448536269514722
    held = {"nested": 0, "naive": 0}
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(n_rows, 8)), rng.normal(size=(4000, 8))
        y, y_new = X[:, 0] + rng.normal(size=n_rows), new[:, 0] + rng.normal(size=4000)
        if kind is DecisionTreeClassifier:
            y, y_new = y > 0, y_new > 0
        tree = kind(random_state=0)
        said = clone(tree).fit(X, y).predict(new)
        truth = np.mean(said == y_new) if is_classifier(tree) else -np.mean((said - y_new) ** 2)
        found = nested_standard_error(tree, X, y, cv=5, n_repeats=4, random_state=seed)
        lower, upper = found.interval(confidence)
        held["nested"] += lower <= truth <= upper
        once = nested_standard_error(tree, X, y, cv=5, n_repeats=1, random_state=seed)
        held["naive"] += abs(once.mean - truth) <= z * once.naive_standard_error
    spread = math.sqrt(confidence * (1 - confidence) * n_tables)
    assert held["nested"] > confidence * n_tables - 2 * spread
    assert held["nested"] > held["naive"] + 2 * spread


@pytest.mark.parametrize("n_classes", [2, 3])
def test_losses_of_shares(n_classes):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(n_classes), 30)
    shares[:3] = np.eye(n_classes)[[0, 1, 0]]
    y = rng.integers(0, n_classes, 30)
    found = OF_CLASSES["neg_brier_score"](y, shares).mean()
    given_shares = shares[:, 1] if n_classes == 2 else shares
    assert math.isclose(-found, brier_score_loss(y, given_shares))
    found = OF_CLASSES["neg_log_loss"](y, shares).mean()
    assert math.isclose(-found, log_loss(y, shares))
