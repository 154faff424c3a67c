"""A row of weight k is k rows, where columns are cut at quantiles, too.

Growth counts weights as rows (`tests.laws.test_growth`); here are the cuts, in every layout of the
table, and the models of all estimators behind them.
"""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

import dtrees
from dtrees.coding import CodeBook
from dtrees.coding.target import cut_weights
from dtrees.model_selection import cross_validate
from tests.laws.test_parts import OF_BOOK, frame, sparse

LAYOUTS = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sp.csr_array,
    "partitions": lambda X: da.from_array(X, chunks=(37, -1)),
}
CUTS = {"max_bins": 9, "random_state": 0}
MODELS = {
    "tree": dtrees.DecisionTreeClassifier(**CUTS),
    "forest": dtrees.RandomForestClassifier(3, bootstrap=False, **CUTS),
    "extra trees": dtrees.ExtraTreesRegressor(3, bootstrap=False, **CUTS),
    "boosting": dtrees.GradientBoostingRegressor(max_iter=1, min_samples_leaf=1, **CUTS),
    "classes": dtrees.GradientBoostingClassifier(max_iter=1, min_samples_leaf=1, **CUTS),
}
EXACT = ("tree", "forest", "extra trees")


def assert_same_books(a, b):
    for name in OF_BOOK:
        assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name, strict=True)


def example(seed, n_rows=150):
    """A table of which some cells are zero and some are missing, a target, and whole weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).round(2)
    X[:, 1] *= rng.random(n_rows) < 0.5
    X[rng.random(n_rows) < 0.2, 2] = np.nan
    y = (X[:, 0] + X[:, 1] > 0).astype(int) + (rng.random(n_rows) < 0.2)
    return X, y, rng.integers(1, 6, n_rows) ** 2


def assert_alike(name, found, wanted):
    """Predictions are equal; of boosted models, whose gradients are rounded row by row, nearly."""
    if name in EXACT:
        assert_array_equal(found, wanted, strict=True)
    assert_allclose(found, wanted, atol=1e-6)


def predicted(model, X):
    return getattr(model, "predict_proba", model.predict)(X)


@given(st.data())
def test_cuts(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    n = data.draw(st.integers(1, 150))
    table = data.draw(st.sampled_from([frame, sparse]))(rng, n)
    max_bins = data.draw(st.sampled_from([2, 5, 20]))
    weights = rng.integers(1, data.draw(st.sampled_from([3, 40])), n)
    rows = np.repeat(np.arange(n), weights)
    take = table.iloc.__getitem__ if hasattr(table, "iloc") else table.__getitem__
    book, coded = CodeBook.fit_encode(table, max_bins=max_bins, weights=cut_weights(weights, n))
    repeated, codes = CodeBook.fit_encode(take(rows), max_bins=max_bins)
    assert_same_books(book, repeated)
    for j in range(book.n_columns):
        assert_array_equal(coded.column(j)[rows], codes.column(j))
    # in other units, and in another order
    order = rng.permutation(n)
    for unit in (3, 1 / 4):
        other = cut_weights(weights[order] * unit, n)
        assert_same_books(
            CodeBook.fit_encode(take(order), max_bins=max_bins, weights=other)[0], book
        )


@pytest.mark.one_of(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODELS)
def test_models(name, layout):
    X, y, weights = example(0)
    rows = np.repeat(np.arange(len(y)), weights)
    table = X.astype(np.float32) if layout == "float32" else X
    found = predicted(MODELS[name].fit(LAYOUTS[layout](X), y, sample_weight=weights), X)
    assert_alike(name, found, predicted(MODELS[name].fit(table[rows], y[rows]), X))


@pytest.mark.parametrize("name", MODELS)
def test_cross_validation(name):
    X, y, weights = example(1)
    rows = np.repeat(np.arange(len(y)), weights)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    repeated = [tuple(np.flatnonzero(np.isin(rows, side)) for side in split) for split in splits]
    models = []
    for table, target, cv, params in (
        (X, y, splits, {"sample_weight": weights}),
        (X[rows], y[rows], repeated, {}),
    ):
        found = cross_validate(
            MODELS[name], table, target, cv=cv, params=params, return_estimator=True
        )
        models.append([predicted(model, X) for model in found["estimator"]])
    for one, other in zip(*models, strict=True):
        assert_alike(name, one, other)


def test_rows_of_weight_zero_count_as_the_lightest():
    assert cut_weights([0, 2, 6, 2], 4).tolist() == [2, 2, 6, 2]
    assert cut_weights([0, 2, 0, 2], 4) is None
    huge = np.zeros(10_000)
    huge[:2] = 2.0**51, 2.0**50
    weights = cut_weights(huge, len(huge))
    assert weights.min() > 0
    assert sum(weights.tolist()) < 2**61
