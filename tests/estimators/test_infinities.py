"""Infinite values in boosted models: ends of the order, as the largest finite numbers are."""

import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor

from dtrees import (
    AdaBoostRegressor,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestRegressor,
    load,
    save,
)
from dtrees.export import to_lightgbm
from dtrees.model_selection import cross_val_predict

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).round(2)
X[::7, 0] = np.inf
X[3::7, 0] = -np.inf
X[5::11, 1] = np.inf
X[::13, 1] = np.nan
X[RNG.random((N, 3)) < 0.2] = 0
Y = np.nan_to_num(X[:, 0], posinf=3.0, neginf=-2.0) + 2 * (X[:, 1] == np.inf) + np.isnan(X[:, 1])
HOW = {"max_iter": 12, "learning_rate": 0.3, "min_samples_leaf": 5}


LARGEST = np.finfo(np.float64).max


def finite(table, most=LARGEST):
    return np.where(np.isinf(table), np.sign(table) * most, table)


def trees_of(model):
    return [tree.arrays() for tree in model.forest_.trees]


def same(first, second):
    for mine, other in zip(trees_of(first), trees_of(second), strict=True):
        for name in mine:
            assert_array_equal(mine[name], other[name])


FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_matrix,
    "frame": pd.DataFrame,
    "objects": lambda table: pd.DataFrame(table).astype(object),
    "collection": lambda table: da.from_array(table, chunks=(70, 3)),
    "collection of sparse blocks": lambda table: da.from_array(table, chunks=(70, 3)).map_blocks(
        scipy.sparse.csr_matrix
    ),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("max_bins", [255, 6])
@pytest.mark.parametrize("form", FORMS)
def test_they_are_as_the_largest_numbers(form, max_bins):
    own = {**HOW, "max_bins": max_bins}
    model = GradientBoostingRegressor(**own).fit(FORMS[form](X), Y)
    expected = GradientBoostingRegressor(**own).fit(finite(X), Y)
    same(model, expected)
    assert_array_equal(np.asarray(model.predict(FORMS[form](X))), expected.predict(finite(X)))
    for method in ("predict", "apply", "predict_contributions"):
        assert_array_equal(getattr(model, method)(X), getattr(expected, method)(finite(X)))
    assert_array_equal(model.predict(X[:1]), expected.predict(finite(X))[:1])


def test_of_32_bits():
    small = X.astype(np.float32)
    model = GradientBoostingRegressor(**HOW).fit(small, Y)
    expected = GradientBoostingRegressor(**HOW).fit(finite(small, np.finfo(np.float32).max), Y)
    same(model, expected)
    assert_array_equal(model.predict(small), model.predict(small.astype(np.float64)))


def test_weights_sets_and_folds():
    weight = np.arange(N) % 4.0
    own = {**HOW, "n_iter_no_change": 3}
    model = GradientBoostingRegressor(**own).fit(X, Y, weight, X_val=X[::2], y_val=Y[::2])
    table = finite(X)
    expected = GradientBoostingRegressor(**own)
    expected.fit(table, Y, weight, X_val=table[::2], y_val=Y[::2])
    same(model, expected)
    assert_array_equal(model.validation_score_, expected.validation_score_)
    found = cross_val_predict(GradientBoostingRegressor(**HOW), X, Y, cv=3)
    assert_array_equal(found, cross_val_predict(GradientBoostingRegressor(**HOW), table, Y, cv=3))


def test_they_are_told_from_finite_and_missing_values_as_by_scikit_learn():
    table, y = np.array([[-np.inf], [0], [1], [np.inf], [np.nan]] * 4), np.arange(20) % 5.0
    how = {"min_samples_leaf": 1, "max_iter": 30, "learning_rate": 0.6, "l2_regularization": 0.0}
    ours = GradientBoostingRegressor(**how).fit(table, y)
    theirs = HistGradientBoostingRegressor(**how).fit(table, y)
    asked = np.array([[-np.inf], [-1e300], [0.6], [1e290], [np.inf], [np.nan]])
    assert_allclose(ours.predict(asked), [0, 1, 2, 2, 3, 4], atol=1e-6)
    assert_allclose(theirs.predict(asked), [0, 1, 2, 2, 3, 4], atol=1e-6)


def test_numbers_beside_words_and_categories():
    words = np.where(np.arange(N) % 3 == 0, "word", X[:, 0].astype(object))
    frame = pd.DataFrame({"hybrid": words, "code": X[:, 1], "number": X[:, 2]})
    own = {**HOW, "categorical_features": ["code"]}
    for how in (HOW, own):
        table = frame if how is HOW else frame[["code", "number"]]
        model = GradientBoostingRegressor(**how).fit(table, Y)
        expected = GradientBoostingRegressor(**how).fit(
            table.map(lambda x: x if isinstance(x, str) else float(finite(x))), Y
        )
        same(model, expected)
        assert_array_equal(model.predict(table), model.predict(table[:].copy()))
        assert np.corrcoef(model.predict(table), Y)[0, 1] > 0.6


def test_files_and_exports(tmp_path):
    model = GradientBoostingClassifier(**HOW).fit(X, Y > 1)
    save(model, tmp_path / "model")
    for again in load(tmp_path / "model"), pickle.loads(pickle.dumps(model)):
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.Booster(model_str=to_lightgbm(model))
    assert_allclose(booster.predict(finite(X)), model.predict_proba(X)[:, 1], rtol=1e-9)


@pytest.mark.parametrize(
    "kind", [AdaBoostRegressor, DecisionTreeRegressor, IsolationForest, RandomForestRegressor]
)
def test_other_models_refuse_them(kind):
    with pytest.raises(ValueError, match="Input X contains infinity"):
        kind().fit(X, Y)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        kind().fit(finite(X), Y).predict(X)
