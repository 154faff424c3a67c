"""Proximities and outlier scores against pairs of rows that are counted one by one."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from dtrees import (
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from dtrees.inspection import outlier_scores, proximities, proximity

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)).round(1)
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)
NEW = RNG.normal(size=(9, 3)).round(1)
MODELS = {
    "forest": RandomForestClassifier(7, min_samples_leaf=2, random_state=0),
    "extra trees": ExtraTreesClassifier(5, random_state=0),
    "tree": DecisionTreeRegressor(max_depth=3),
    "boosted": GradientBoostingRegressor(max_iter=4, min_samples_leaf=5),
}


def counted(model, one, other):
    """Shares of trees in which rows are in one leaf."""
    leaves = [np.reshape(model.apply(rows), (len(rows), -1)) for rows in (one, other)]
    return (leaves[0][:, None] == leaves[1][None]).mean(axis=2)


@pytest.mark.parametrize("name", MODELS)
def test_the_oracle(name):
    model = MODELS[name].fit(X, Y)
    found = proximities(model, X)
    np.testing.assert_array_equal(found.toarray(), counted(model, X, X))
    assert found.has_canonical_format
    assert (found.data > 0).all()
    assert found.data.itemsize + found.indices.itemsize == 12  # bytes, as the docstring says
    np.testing.assert_array_equal(proximities(model, NEW, X).toarray(), counted(model, NEW, X))


@pytest.mark.parametrize("step", [proximity.CELLS, 500])
@pytest.mark.parametrize("name", MODELS)
def test_outlier_scores(name, step, monkeypatch):
    monkeypatch.setattr(proximity, "CELLS", step)
    model = MODELS[name].fit(X, Y)
    for y in (None, Y, np.array(["a", "b", "c"])[Y]):
        expected = np.empty(120)
        for own in np.unique(Y) if y is not None else [None]:
            rows = np.arange(120) if own is None else np.flatnonzero(own == Y)
            raw = 1 / (counted(model, X[rows], X[rows]) ** 2).sum(axis=1).round(12)
            away = raw - np.median(raw)
            mad = 1.4826 * np.median(abs(away))
            expected[rows] = away / (mad or abs(away).mean() or 1.0)
        np.testing.assert_allclose(outlier_scores(model, X, y), expected, rtol=1e-9, atol=1e-9)


def test_a_row_far_from_all_others_scores_most():
    table = RNG.normal(size=(201, 2))
    table[100:200] += 4
    table[200] = 4.0  # labelled as those far from it
    labels = np.append(np.repeat([0, 1], 100), 0)
    forest = RandomForestClassifier(50, min_samples_leaf=10, random_state=0).fit(table, labels)
    scores = outlier_scores(forest, table, labels)
    assert scores.argmax() == 200
    assert scores[200] > 10


def test_a_class_of_one_row_is_no_outlier():
    model = MODELS["tree"].fit(X, Y)
    labels = np.append(np.zeros(119, dtype=int), 1)
    assert outlier_scores(model, X, labels)[-1] == 0
    constant = DecisionTreeRegressor(max_depth=1).fit(X, np.zeros(120))
    np.testing.assert_array_equal(outlier_scores(constant, X), np.zeros(120))


def test_the_same_of_sparse_and_lazy_tables():
    model = MODELS["forest"].fit(X, Y)
    found, scores = proximities(model, X).toarray(), outlier_scores(model, X, Y)
    lazy = da.from_array(X, chunks=(50, 3))
    for table in (sp.csr_array(X), lazy):
        np.testing.assert_array_equal(proximities(model, table).toarray(), found)
        np.testing.assert_array_equal(proximities(model, X, table).toarray(), found)
        np.testing.assert_array_equal(outlier_scores(model, table, Y), scores)
    np.testing.assert_array_equal(outlier_scores(model, lazy, da.from_array(Y, chunks=50)), scores)


def test_errors():
    with pytest.raises(NotFittedError):
        proximities(RandomForestClassifier(), X)
    with pytest.raises(ValueError, match="has 120 rows, and y has 5"):
        outlier_scores(MODELS["tree"].fit(X, Y), X, Y[:5])
    with pytest.raises(ValueError, match="y should be a 1d array"):
        outlier_scores(MODELS["tree"].fit(X, Y), X, np.c_[Y, Y])
    with pytest.raises(ValueError, match="model"):
        proximities("forest", X)
