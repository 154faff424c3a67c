"""Intervals of a cross-validation are those of a loop over its models and held-out rows."""

from __future__ import annotations

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from dtrees.core.predict.intervals import floor_of, ranks
from dtrees.model_selection import CrossValidation, GridSearchCV, HashKFold, cross_validate
from dtrees.model_selection.intervals import spread_at
from tests.core.predict.test_intervals import listed

TREE = DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
FOREST = RandomForestRegressor(4, max_depth=4, random_state=0)
BOOSTED = GradientBoostingRegressor(max_iter=3, min_samples_leaf=3)
SPLITTERS = {
    "folds": KFold(5, shuffle=True, random_state=0),
    "by hash": HashKFold(4, random_state=0),
    "leave one out": LeaveOneOut(),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "shuffled": ShuffleSplit(7, test_size=0.3, random_state=0),
    "once": ShuffleSplit(1, test_size=0.4, random_state=0),
    "in time": TimeSeriesSplit(3),
}


def table(n_rows=60, seed=0):
    X, y = make_friedman1(n_rows, noise=1.0, random_state=seed)
    X = np.round(X, 1)
    X[::7, 0] = np.nan
    return X, y


NEW, _ = table(25, seed=1)


def validated(estimator, X, y, **how):
    return cross_validate(estimator, X, y, return_estimator=True, **how)


def spread(model, X, part=1.0):
    """Of trees about their mean, or of the targets in a leaf; both with a floor.

    `part` of the deviation in a leaf of a tree, of several targets.
    """
    if isinstance(model, RandomForestRegressor):
        trees = np.std([tree.predict(X) for tree in model], axis=0)
        found = trees + np.mean([floor_of(tree) for tree in model.forest_.trees])
    else:
        tree = model.tree_.model
        found = part * np.sqrt(tree.impurity[model.apply(X)]) + floor_of(tree, 0.3)
    return np.where(found > 0, found, 1.0)


def looped(estimator, X, y, splits, new, confidence, weight=None, models=(), parts=None):
    """The definition, with a fit for each split: mean of the models that hold a row out."""
    weight = np.ones(len(y)) if weight is None else weight
    models = list(models)
    for train, _ in splits[len(models) :]:
        mine = np.zeros(len(y))
        mine[train] = weight[train]
        models.append(clone(estimator).fit(X, y, sample_weight=mine))
    unseen = np.zeros((len(y), len(models)), dtype=bool)
    for number, (_, test) in enumerate(splits):
        unseen[test, number] = True
    at_fit = np.stack([model.predict(X) for model in models], axis=1)
    at_new = np.stack([model.predict(new) for model in models], axis=1)
    used = unseen.any(axis=1) & (weight > 0)
    rows = np.flatnonzero(used)
    errors = np.array([y[row] - at_fit[row, unseen[row]].mean() for row in rows])
    if isinstance(estimator, GradientBoostingRegressor):
        return [listed(values, abs(errors), unseen[used], confidence) for values in at_new.tolist()]
    pairs = list(zip(models, parts or [1.0] * len(models), strict=True))
    wide, wide_new = (
        np.stack([spread(m, table, part) for m, part in pairs], axis=1) for table in (X, new)
    )
    errors /= [wide[row, unseen[row]].mean() for row in rows]
    low, high = ranks(confidence, len(rows), apart=True)
    if high > len(rows):
        return np.tile([-np.inf, np.inf], (len(new), 1))
    share = unseen[rows] / unseen[rows].sum(axis=1, keepdims=True)
    ends = np.sort(at_new @ share.T + wide_new @ share.T * errors, axis=1)
    return ends[:, [low - 1, high - 1]]


@pytest.mark.one_of(20)
@pytest.mark.filterwarnings("ignore:All ends of intervals are infinite")
@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("estimator", [TREE, FOREST, BOOSTED], ids=["tree", "forest", "boosted"])
def test_a_loop_over_models(name, estimator):
    X, y = table(30 if name == "leave one out" else 60)
    splits = [(train, test) for train, test in SPLITTERS[name].split(X, y)]
    found = validated(estimator, X, y, cv=SPLITTERS[name], scoring="neg_mean_absolute_error")
    for confidence in (0.5, 0.8, 0.95):
        ends = found.prediction_interval(NEW, confidence)
        assert ends.shape == (25, 2)
        expected = looped(estimator, X, y, splits, NEW, confidence)
        # The spread of a forest's trees is a rounded difference.
        close = 1e-5 if estimator is FOREST else 1e-10
        np.testing.assert_allclose(ends, expected, rtol=close, atol=close)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["folds", "repeated"])
@pytest.mark.parametrize(
    "estimator",
    [TREE, FOREST, BOOSTED, clone(BOOSTED).set_params(multi_strategy="multi_output_tree")],
    ids=["tree", "forest", "boosted", "trees of all"],
)
def test_a_loop_over_models_of_each_target(name, estimator):
    """Of leaves, a target has a part of the mean variance: that of its leaves over their mean."""
    X, y = table()
    Y = np.column_stack([y, 1e3 * X[:, 3] + y, np.full(60, 2.5)])
    splits = [(train, test) for train, test in SPLITTERS[name].split(X, Y)]
    weight = np.arange(60) % 3.0
    params = {"sample_weight": weight}
    found = validated(estimator, X, Y, cv=SPLITTERS[name], params=params)
    ends = found.prediction_interval(NEW, 0.8)
    assert ends.shape == (25, 3, 2)
    np.testing.assert_array_equal(found.prediction_interval(da.from_array(NEW, (9, 10)), 0.8), ends)
    frame = dd.from_pandas(pd.DataFrame(NEW), npartitions=2)
    np.testing.assert_array_equal(found.prediction_interval(frame, 0.8), ends)
    grown = []
    for train, _ in splits:
        mine = np.zeros(60)
        mine[train] = weight[train]
        grown.append(clone(estimator).fit(X, Y, sample_weight=mine))
    parts = None
    if estimator is TREE:
        floors = np.array([[floor_of(m.tree_.model, output=k) for k in range(3)] for m in grown])
        parts = floors / np.sqrt(np.mean(floors**2, axis=1, keepdims=True))
    for k in range(3):
        models, own = [m.of_target(k) for m in grown], None if parts is None else list(parts[:, k])
        each = looped(estimator, X, Y[:, k], splits, NEW, 0.8, weight, models, own)
        np.testing.assert_allclose(ends[:, k], each, rtol=1e-5, atol=1e-5)


@settings(max_examples=15)
@given(st.integers(0, 100), st.integers(2, 6), st.booleans(), st.sampled_from([1, 2]))
def test_weights_ties_and_masks(seed, n_folds, with_weights, n_jobs):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (50, 3)).astype(float), rng.integers(0, 3, 50).astype(float)
    weight = rng.integers(0, 3, 50).astype(float) if with_weights else None
    splits = list(KFold(n_folds, shuffle=True, random_state=seed).split(X))
    masks = [tuple(np.isin(np.arange(50), side) for side in split) for split in splits]
    params = None if weight is None else {"sample_weight": weight}
    tree = clone(TREE).set_params(n_jobs=n_jobs)
    found = validated(tree, X, y, cv=masks, params=params).prediction_interval(X[:20], 0.7)
    expected = looped(TREE, X, y, splits, X[:20], 0.7, weight)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_the_dict_is_that_of_a_call_without_intervals():
    X, y = table()
    found = validated(TREE, X, y, cv=3)
    plain = cross_validate(TREE, X, y, cv=3)
    assert isinstance(plain, CrossValidation)
    assert isinstance(plain, dict)
    assert set(found) - set(plain) == {"estimator"}
    np.testing.assert_array_equal(found["test_score"], plain["test_score"])
    again = pickle.loads(pickle.dumps(found))
    assert list(again) == list(found)
    np.testing.assert_array_equal(again.prediction_interval(NEW), found.prediction_interval(NEW))


def test_every_kind_of_table():
    X, y = table()
    X = np.nan_to_num(np.rint(X * 3))
    expected = validated(TREE, X, y, cv=4).prediction_interval(X)
    frame = pd.DataFrame(X)
    for X_fit, X_new in ((sp.csr_array(X), sp.csc_array(X)), (frame, frame), (X.tolist(), X)):
        found = validated(TREE, X_fit, y, cv=4).prediction_interval(X_new)
        np.testing.assert_array_equal(found, expected)
    lazy = da.from_array(X, chunks=(17, 10))
    found = validated(TREE, lazy, da.from_array(y, chunks=20), cv=4)
    np.testing.assert_array_equal(found.prediction_interval(X), expected)
    np.testing.assert_array_equal(found.prediction_interval(lazy).compute(), expected)


def test_lazy_answers():
    X, y = table()
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)])
    for estimator in (TREE, FOREST, BOOSTED, GridSearchCV(TREE, {"max_depth": [1, 3]}, cv=2)):
        found = validated(estimator, frame, y, cv=3)
        lazy = found.prediction_interval(dd.from_pandas(frame, npartitions=3), 0.7)
        assert list(lazy.columns) == ["lower", "upper"]
        np.testing.assert_array_equal(lazy.compute(), found.prediction_interval(frame, 0.7))
    with pytest.raises(ValueError, match=r"columns|features|names"):
        found.prediction_interval(dd.from_pandas(frame[["x1"]], npartitions=1))


def test_codes_that_stay_on_workers():
    import dask

    X, y = table()
    lazy = da.from_array(np.nan_to_num(X), chunks=(20, 10))
    expected = validated(FOREST, np.nan_to_num(X), y, cv=3).prediction_interval(NEW)
    config = {"scheduler": "threads", "dtrees.regime": "partitioned", "dtrees.gather-rows": 10}
    with dask.config.set(config):
        found = validated(FOREST, lazy, y, cv=3, return_train_score=True)
    np.testing.assert_array_equal(found.prediction_interval(NEW), expected)


def test_forests_of_many_trees():
    X, y = table()
    splits = list(KFold(3).split(X))
    for forest in (
        RandomForestRegressor(70, random_state=0),  # more than pass over the codes at a time
        RandomForestRegressor(1, random_state=0),
        RandomForestRegressor(5, max_depth=3, criterion="poisson", random_state=0),
    ):
        found = validated(forest, X, y, cv=splits).prediction_interval(NEW)
        expected = looped(forest, X, y, splits, NEW, 0.9)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    searched = GridSearchCV(forest, {"max_depth": [3]}, cv=2)
    ends = validated(searched, X, y, cv=splits).prediction_interval(NEW)
    np.testing.assert_allclose(ends, found, rtol=1e-5, atol=1e-5)


def test_trees_of_counts():
    """The spread in a leaf is about the deviation of its targets, also by the deviance."""
    rng = np.random.default_rng(0)
    X = rng.random((3_000, 2))
    y = rng.poisson(np.where(X[:, 0] < 0.5, 20.0, 200.0)).astype(float)
    squares, deviance = (
        DecisionTreeRegressor(criterion=criterion, max_depth=1)
        for criterion in ("squared_error", "poisson")
    )
    np.testing.assert_allclose(*(spread_at(t.fit(X, y), X) for t in (squares, deviance)), rtol=0.01)
    ends = [validated(t, X, y, cv=3).prediction_interval(X[:9]) for t in (squares, deviance)]
    np.testing.assert_allclose(*ends, rtol=0.01)


class Subclass(DecisionTreeRegressor):
    """Whose models scikit-learn's function fits."""


def test_models_that_scikit_learn_fits():
    X, y = table()
    made = DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
    expected = validated(made, X, y, cv=4).prediction_interval(NEW)
    piped = make_pipeline(FunctionTransformer(), made)
    within = make_pipeline(piped)
    for estimator in (Subclass(min_samples_leaf=3, random_state=0), within, piped):
        found = validated(estimator, X, y, cv=4)
        np.testing.assert_allclose(found.prediction_interval(NEW), expected, rtol=1e-9)
        assert "indices" not in found
        indices = validated(estimator, X, y, cv=4, return_indices=True)["indices"]
        assert len(indices["test"]) == 4
    with pytest.raises(TypeError, match=r"not of Pipeline: give X.compute\(\)"):
        found.prediction_interval(da.from_array(NEW, chunks=5))


def test_refusals():
    X, y = table()
    start = "^There are no prediction intervals of this cross-validation: "
    with pytest.raises(ValueError, match=start + "call cross_validate with return_estimator=True"):
        cross_validate(TREE, X, y).prediction_interval(X)
    classes = validated(DecisionTreeClassifier(random_state=0), X, y > 12)
    for found in (classes, validated(LinearRegression(), np.nan_to_num(X), y)):
        with pytest.raises(TypeError, match=start + ".*which is no regressor of dtrees"):
            found.prediction_interval(X)
    overlapping = [(np.arange(50), np.arange(49, 60)), (np.arange(10, 60), np.arange(10))]
    with pytest.raises(ValueError, match=start + "rows of the test side of split 0 are in its"):
        validated(TREE, X, y, cv=overlapping).prediction_interval(X)
    found = validated(TREE, X, y, cv=3)
    for confidence in (0.3, 1):
        with pytest.raises(ValueError, match=r"The 'confidence' parameter of .*\[0.5, 1.0\)"):
            found.prediction_interval(X, confidence)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("estimator", [TREE, make_pipeline(FunctionTransformer(), TREE)])
def test_a_fit_that_failed(estimator):
    X, y = table()
    y[-1] = np.nan
    splits = list(KFold(3).split(X))
    found = validated(estimator, X, y, cv=splits, scoring=lambda *_: 0.0)
    with pytest.raises(ValueError, match="the fit of split 0 has failed"):
        found.prediction_interval(X)


@pytest.mark.parametrize(("estimator", "least"), [(TREE, 1999), (FOREST, 1999), (BOOSTED, 999)])
def test_too_few_rows_for_the_confidence_are_told_once(estimator, least):
    X, y = table(30)
    found = validated(estimator, X, y, cv=3)
    words = f"confidence=0.999 needs the errors of {least} rows, and there are 30.$"
    with pytest.warns(UserWarning, match=words) as heard:
        assert np.isinf(found.prediction_interval(NEW, 0.999)).all()
    assert [each.filename for each in heard] == [__file__]


def test_pipelines_of_forests():
    X, y = table()
    turned = FunctionTransformer(np.negative)
    splits = list(KFold(4).split(X))
    found = validated(make_pipeline(turned, FOREST), X, y, cv=splits)
    models = [pipeline[-1] for pipeline in found["estimator"]]
    expected = looped(FOREST, -X, y, splits, -NEW, 0.9, models=models)
    np.testing.assert_allclose(found.prediction_interval(NEW), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeRegressor(min_samples_leaf=20), RandomForestRegressor(30, random_state=0)],
    ids=["tree", "forest"],
)
def test_intervals_are_wide_where_targets_are(estimator):
    rng = np.random.default_rng(0)
    X = rng.random((2_000, 3))
    y = X[:, 0] + rng.normal(size=2_000) * (0.1 + 2 * X[:, 1] ** 2)
    found = validated(estimator, X[:800], y[:800], cv=5)
    lower, upper = found.prediction_interval(X[800:], 0.9).T
    inside, noisy = (lower <= y[800:]) & (y[800:] <= upper), X[800:, 1] > 0.8
    assert (upper - lower)[noisy].mean() > 2 * (upper - lower)[~noisy].mean()
    assert inside.mean() == pytest.approx(0.92, abs=0.03)


@pytest.mark.parametrize("estimator", [TREE, FOREST], ids=["tree", "forest"])
def test_a_constant_target_has_intervals_of_no_width(estimator):
    X, y = table()
    found = validated(estimator, X, np.full(len(y), 3.5), cv=4).prediction_interval(NEW)
    np.testing.assert_array_equal(found, np.full((len(NEW), 2), 3.5))


@pytest.mark.parametrize("estimator", [TREE, FOREST], ids=["tree", "forest"])
def test_coverage(estimator):
    n_rows, n_new, n_tables, inside = 150, 1000, 8, []
    for seed in range(n_tables):
        X, y = make_friedman1(n_rows + n_new, noise=2.0, random_state=seed)
        found = validated(estimator, X[:n_rows], y[:n_rows], cv=10)
        low, high = found.prediction_interval(X[n_rows:], 0.9).T
        inside.append(np.mean((low <= y[n_rows:]) & (y[n_rows:] <= high)))
    spread = np.sqrt(0.09 * (1 / n_rows + 1 / n_new) / n_tables)
    assert np.mean(inside) > 0.9 - 4 * spread
    assert np.mean(inside) < 0.99
