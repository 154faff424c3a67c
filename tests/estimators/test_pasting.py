"""Samples of rows without replacement, and columns that are drawn for each tree."""

from __future__ import annotations

import dask
import numpy as np
import pytest

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.membership.resampling import Bags
from dtrees.export import load, save
from dtrees.inspection import oob_importances
from tests.estimators.forest_cases import FORESTS, IRIS
from tests.estimators.test_out_of_bag import fitted
from tests.golden.tables import validated

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 8)).round(2)
Y = X[:, 0] * X[:, 1] + RNG.normal(size=600) / 4
CLASSES = (Y > 0).astype(int) + (X[:, 2] > 1)
WEIGHTS = RNG.choice([0.5, 1.0, 2.25], 600)
ROUNDS = {"dtrees.regime": "partitioned", "dtrees.gather-rows": 60, "scheduler": "threads"}


def target(kind):
    return CLASSES if kind.__name__.endswith("Classifier") else Y


def sample_of(forest, tree, n_rows=600):
    """Rows that a tree has seen."""
    bags = Bags.of_digest(forest._fit_bags)
    assert len(bags.row_id) == n_rows
    return bags.multiplicity(tree) > 0


def same(one, other):
    return all(a.equals(b) for a, b in zip(one.forest_, other.forest_, strict=True))


@pytest.mark.parametrize("asked", [0.5, 0.3333, 1, 77, 600])
def test_a_sample_has_just_so_many_rows_once_each(asked):
    forest = BaggingClassifier(5, bootstrap=False, max_samples=asked, random_state=1)
    forest.fit(X, CLASSES)
    size = asked if isinstance(asked, int) else int(asked * 600)
    for number, tree in enumerate(forest.forest_):
        assert tree.n_node_samples[0] == tree.weighted_n_node_samples[0] == size
        assert sample_of(forest, number).sum() == size
    samples = {sample_of(forest, number).tobytes() for number in range(5)}
    assert len(samples) == (1 if size == 600 else 5)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_sample_of_all_rows_is_all_rows(kind, weights):
    own = {"bootstrap": False, "random_state": 3}
    whole = kind(3, **own).fit(X, target(kind), weights)
    for size in (1.0, 600):
        assert same(whole, kind(3, max_samples=size, **own).fit(X, target(kind), weights))


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_tree_of_a_sample_is_one_in_which_other_rows_weigh_nothing(kind, weights):
    own = {"bootstrap": False, "random_state": 3, "max_bins": None}
    pasted = kind(1, max_samples=0.4, **own).fit(X, target(kind), weights)
    left = sample_of(pasted, 0) * (1.0 if weights is None else weights)
    alone = kind(1, **own).fit(X, target(kind), left)
    if weights is None:
        assert same(pasted, alone)
    one, other = pasted.forest_[0], alone.forest_[0]  # in another unit, where rows have weights
    assert np.array_equal(one.feature, other.feature)
    assert np.array_equal(one.n_node_samples, other.n_node_samples)
    np.testing.assert_allclose(pasted.predict(X), alone.predict(X), rtol=1e-9)


@pytest.mark.one_of(10)
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesRegressor, BaggingRegressor])
@pytest.mark.parametrize(
    "parameters",
    [
        {"bootstrap": False, "max_samples": 0.5},
        {"bootstrap": False, "max_samples": 0.4, "min_weight_fraction_leaf": 0.02},
        {"colsample_bytree": 0.4},
        {"bootstrap": False, "max_samples": 200, "colsample_bytree": 0.6},
        {"colsample_bytree": 0.7, "interaction_cst": [[0, 1, 2], [3, 4, 5]]},
        {"colsample_bytree": 0.5, "feature_weights": [1, 2, 3, 4, 5, 6, 7, 80]},
    ],
)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_rounds_and_folds_draw_alike(kind, parameters, weights):
    forest = kind(3, random_state=5, **parameters)
    params = {} if weights is None else {"sample_weight": weights}
    here = [fitted(forest, X, target(kind), **params)]
    here += validated(forest, X, target(kind), 3, **params)
    with dask.config.set(ROUNDS):
        there = [fitted(kind(3, random_state=5, n_jobs=2, **parameters), X, target(kind), **params)]
        there += validated(forest, X, target(kind), 3, **params)
    assert all(same(one, other) for one, other in zip(here, there, strict=True))


def test_rows_that_weigh_nothing_are_drawn_and_do_not_count():
    one = np.zeros(600)
    one[17] = 2.0
    forest = RandomForestRegressor(4, bootstrap=False, max_samples=5, random_state=0)
    assert np.all(forest.fit(X, Y, one).predict(X) == pytest.approx(Y[17]))


@pytest.mark.parametrize("kind", FORESTS)
def test_out_of_sample_predictions(kind):
    own = {"bootstrap": False, "max_samples": 0.6, "oob_score": True, "random_state": 2}
    forest = kind(20, **own).fit(X, target(kind))
    is_classifier = hasattr(forest, "classes_")
    method = "predict_proba" if is_classifier else "predict"
    seen = np.stack([sample_of(forest, number) for number in range(20)])
    each = np.stack([getattr(tree, method)(X) for tree in forest.estimators_])
    out = ~seen if each.ndim == 2 else ~seen[:, :, None]
    mean = (each * out).sum(axis=0) / out.sum(axis=0)
    found = forest.oob_decision_function_ if is_classifier else forest.oob_prediction_
    np.testing.assert_allclose(found, mean, rtol=1e-12)
    assert oob_importances(forest, X, target(kind)).shape == (8,)
    if not is_classifier:
        interval = forest.prediction_interval(X[:5])
        assert (interval[:, 0] < interval[:, 1]).all()


def test_out_of_sample_scores_need_samples():
    with pytest.raises(ValueError, match="only available if bootstrap=True, or with max_samples"):
        RandomForestClassifier(3, bootstrap=False, oob_score=True).fit(X, CLASSES)


def test_groups_are_in_a_sample_together():
    groups = RNG.integers(0, 60, 600)
    forest = RandomForestClassifier(4, bootstrap=False, max_samples=25, random_state=0)
    forest.fit(X, CLASSES, bootstrap_groups=groups)
    _, keys = np.unique(groups, return_inverse=True)
    bags = Bags.of_digest(forest._fit_bags, keys.astype(np.uint64))
    for number, tree in enumerate(forest.forest_):
        rows = bags.multiplicity(number) > 0
        assert tree.n_node_samples[0] == rows.sum()
        assert len(np.unique(groups[rows])) == 25
        assert not set(groups[rows]) & set(groups[~rows])


def test_a_forest_goes_on_with_samples_of_its_own(tmp_path):
    own = {"bootstrap": False, "max_samples": 0.5, "colsample_bytree": 0.5, "random_state": 4}
    forest = RandomForestClassifier(3, warm_start=True, oob_score=True, **own)
    fitted(forest, X, CLASSES)
    fitted(forest.set_params(n_estimators=6), X, CLASSES)
    assert same(forest, RandomForestClassifier(6, **own).fit(X, CLASSES))
    save(forest, tmp_path / "forest")
    again = load(tmp_path / "forest")
    assert again.colsample_bytree == 0.5
    assert again._fit_bags == forest._fit_bags
    fitted(forest.set_params(n_estimators=7, max_samples=0.5), X, CLASSES)
    with pytest.raises(ValueError, match="bags were drawn otherwise"):
        forest.set_params(n_estimators=8, max_samples=0.4).fit(X, CLASSES)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_tree_tests_columns_that_are_drawn_for_it(kind, share):
    forest = kind(40, colsample_bytree=share, random_state=0).fit(X, target(kind))
    used = [set(tree.feature[tree.feature >= 0].tolist()) for tree in forest.forest_]
    most = int(np.ceil(share * 8))
    assert max(map(len, used)) == most
    assert set.union(*used) == set(range(8))


def test_trees_of_all_columns_draw_none():
    own = {"random_state": 0, "max_features": 0.5}
    forest = RandomForestClassifier(5, **own).fit(X, CLASSES)
    assert same(forest, RandomForestClassifier(5, colsample_bytree=1.0, **own).fit(X, CLASSES))
    assert same(forest, RandomForestClassifier(5, colsample_bytree=0.99, **own).fit(X, CLASSES))


def test_nodes_draw_from_the_columns_of_their_tree():
    forest = RandomForestClassifier(5, colsample_bytree=0.5, max_features=0.5, random_state=0)
    assert forest.fit(X, CLASSES).max_features_ == 2
    barred = RandomForestClassifier(
        20, colsample_bytree=0.5, interaction_cst=[[0, 1, 2, 3], [4, 5, 6, 7]], random_state=0
    ).fit(X, CLASSES)
    for tree in barred.forest_:
        used = set(tree.feature[tree.feature >= 0].tolist())
        assert len(used) <= 4
    below = [
        {tree.feature[0] // 4, tree.feature[1] // 4}
        for tree in barred.forest_
        if tree.feature[1] >= 0
    ]
    assert all(len(groups) == 1 for groups in below)


def test_columns_of_a_tree_are_those_of_a_table_of_them():
    forest = BaggingClassifier(6, colsample_bytree=0.5, bootstrap=False, random_state=0)
    for number, tree in enumerate(forest.fit(X, CLASSES).forest_):
        used = sorted(set(tree.feature[tree.feature >= 0].tolist()))
        if len(used) == 4:
            some = np.zeros_like(X)
            some[:, used] = X[:, used]
            alone = DecisionTreeClassifier(max_bins=255).fit(some, CLASSES)
            assert np.mean(forest[number].predict(X) == alone.predict(some)) > 0.99


@pytest.mark.parametrize("share", [0, 1.5, "half", 0.0])
def test_bad_shares_of_columns(share):
    with pytest.raises(ValueError, match="colsample_bytree"):
        RandomForestClassifier(2, colsample_bytree=share).fit(*IRIS)


def test_max_features_of_bagging_elsewhere():
    with pytest.raises(TypeError, match="Use 'colsample_bytree'"):
        BaggingClassifier(max_features=0.5)
