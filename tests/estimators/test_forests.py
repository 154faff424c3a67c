"""Forests: every tree is the tree of its bag, whatever grew it, and the forest is their mean."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from dtrees import (
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.membership.resampling import Bags
from tests.estimators.forest_cases import CANCER, FORESTS, IRIS, assert_same, mixed_table


@pytest.mark.parametrize(
    ("forest", "tree"),
    [
        (RandomForestClassifier(3, random_state=8), DecisionTreeClassifier),
        (RandomForestRegressor(3, random_state=8, max_features=2), DecisionTreeRegressor),
        (BaggingRegressor(3, random_state=8, criterion="poisson"), DecisionTreeRegressor),
        (RandomForestClassifier(3, random_state=8, criterion="entropy"), DecisionTreeClassifier),
    ],
)
def test_the_first_tree_is_a_tree_with_these_weights(forest, tree):
    """But for cut points and the price of categories, which know that a row is drawn, not given."""
    X, y = mixed_table()
    forest = clone(forest).set_params(max_bins=None, category_penalty=0.0).fit(X, y)
    names = tree().get_params()
    parameters = {name: value for name, value in forest.get_params().items() if name in names}
    if forest.max_features is None:
        parameters["max_features"] = None
    times = Bags(forest._fit_seed, 1.0, np.arange(len(y), dtype=np.uint64)).multiplicity(0)
    alone = tree(**parameters).fit(X, y, sample_weight=times)
    model, grown = alone.tree_.model, forest.forest_[0]
    for name in ("feature", "threshold", "children_left", "n_node_samples", "subset_words"):
        np.testing.assert_array_equal(getattr(model, name), getattr(grown, name))
    np.testing.assert_allclose(model.value, grown.value, rtol=1e-12)


def test_no_bootstrap_and_all_columns_is_one_tree():
    X, y = CANCER
    forest = RandomForestClassifier(
        2, bootstrap=False, max_features=None, max_bins=None, random_state=3
    )
    forest.fit(X, y)
    alone = DecisionTreeClassifier(random_state=3).fit(X, y)
    assert forest.forest_[0].equals(alone.tree_.model)


def test_sparse_tables_give_the_same_forest():
    rng = np.random.default_rng(1)
    X = rng.poisson(0.3, size=(500, 30)).astype(float)
    y = (X[:, :3].sum(axis=1) + rng.normal(size=500) > 1).astype(int)
    for kind in FORESTS:
        dense = kind(5, random_state=2).fit(X, y)
        for convert in (sp.csr_array, sp.csc_matrix):
            assert_same(dense, kind(5, random_state=2).fit(convert(X), y))
        np.testing.assert_array_equal(dense.predict(X), dense.predict(sp.csr_array(X)))


def test_weights():
    X, y = IRIS
    weight = np.where(y == 0, 0.0, 1.0)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y, sample_weight=weight)
    assert (forest.predict_proba(X)[:, 0] == 0).all()
    with pytest.raises(ValueError, match="sample_weight"):
        RandomForestClassifier(2).fit(X, y, sample_weight=-weight)


def test_without_bags_a_table_is_balanced():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.random(200) < 0.1
    a, b = (
        RandomForestClassifier(2, bootstrap=False, class_weight=weight, random_state=0).fit(X, y)
        for weight in ("balanced", "balanced_subsample")
    )
    assert all(one.equals(other) for one, other in zip(a.forest_, b.forest_, strict=True))
    weight = a.forest_[0].weighted_n_node_samples[0] * a.forest_[0].value[0]
    assert weight[0] == pytest.approx(weight[1])


@pytest.mark.parametrize("weight", ["balanced", "balanced_subsample", {0: 1, 1: 20}])
def test_class_weights(weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 5))
    y = (X[:, 0] + rng.normal(size=2_000) > 2.2).astype(int)
    rare = X[:, 0] > 1.5
    plain = RandomForestClassifier(30, random_state=0, min_samples_leaf=20).fit(X, y)
    weighted = clone(plain).set_params(class_weight=weight).fit(X, y)
    assert weighted.predict_proba(X)[rare, 1].mean() > 1.2 * plain.predict_proba(X)[rare, 1].mean()


@pytest.mark.one_of(2)
class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_estimators": 0}, "n_estimators"),
            ({"max_features": 0}, "max_features"),
            ({"max_features": "most"}, "max_features"),
            ({"max_samples": 0.0}, "max_samples"),
            ({"max_samples": 151}, "max_samples"),
            ({"bootstrap": "yes"}, "bootstrap"),
            ({"oob_score": "accuracy"}, "oob_score"),
            ({"class_weight": "fair"}, "class_weight"),
            ({"max_bins": 1}, "max_bins"),
        ],
    )
    def test_parameters(self, parameters, message):
        forest = RandomForestClassifier(3).set_params(**parameters)
        with pytest.raises(ValueError, match=message):
            forest.fit(*IRIS)
        assert not hasattr(forest, "forest_")

    @pytest.mark.parametrize("kind", FORESTS)
    @pytest.mark.parametrize(
        "parameters",
        [
            {"n_estimators": 0},
            {"n_estimators": -1},
            {"n_estimators": 2.5},
            {"max_features": 0},
            {"max_features": -2},
            {"max_features": 0.0},
            {"max_features": 1.5},
        ],
    )
    def test_numbers_out_of_range(self, kind, parameters):
        (name,) = parameters
        if name not in kind().get_params():  # bagging searches all columns
            return
        forest = kind(2).set_params(**parameters)
        with pytest.raises(ValueError, match=name):
            forest.fit(*IRIS)
        assert not hasattr(forest, "forest_")
