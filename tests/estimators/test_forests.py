"""What forests and boosted models answer alike: leaves, paths, trees as estimators, parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from dtrees import (
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.membership.resampling import Bags
from dtrees.core.model.tree import Tree
from dtrees.model_selection import cross_validate
from tests.estimators.forest_cases import CANCER, DIABETES, FORESTS, IRIS, assert_same, mixed_table

MODELS = {
    "forest": RandomForestClassifier(3, random_state=0),
    "two classes": GradientBoostingClassifier(max_iter=3),
    "numbers": GradientBoostingRegressor(max_iter=3),
}


def fitted(name):
    X, y = mixed_table()
    return MODELS[name].fit(X, y), X


@pytest.mark.parametrize("name", MODELS)
def test_leaves_and_paths_are_those_of_the_trees(name):
    model, X = fitted(name)
    each = np.ravel(model.estimators_)
    leaves = model.apply(X)
    np.testing.assert_array_equal(leaves, np.column_stack([tree.apply(X) for tree in each]))
    paths, ends = model.decision_path(X)
    assert ends.tolist() == np.cumsum([0, *(tree.tree_.node_count for tree in each)]).tolist()
    for i, tree in enumerate(each):
        own = paths[:, ends[i] : ends[i + 1]]
        np.testing.assert_array_equal(own.toarray(), tree.decision_path(X).toarray())


@pytest.mark.parametrize("name", MODELS)
def test_estimators_are_made_once_and_not_pickled(name):
    model, _ = fitted(name)
    assert np.ravel(model.estimators_)[0] is np.ravel(model.estimators_)[0]
    assert "_estimators" not in vars(pickle.loads(pickle.dumps(model)))


@pytest.mark.parametrize("name", MODELS)
def test_estimators_are_those_of_the_last_fit(name):
    model, X = fitted(name)
    first = np.ravel(model.estimators_)[0]
    again = np.ravel(model.fit(X[:100], np.arange(100) % 2).estimators_)[0]
    assert first.tree_.n_node_samples[0] != again.tree_.n_node_samples[0]


@pytest.mark.parametrize("name", MODELS)
def test_estimators_know_the_columns_of_the_model(name):
    model, X = fitted(name)
    for tree in np.ravel(model.estimators_):
        assert tree.n_features_in_ == X.shape[1]
        assert tree.feature_names_in_.tolist() == model.feature_names_in_.tolist()
        np.testing.assert_array_equal(tree.tree_.saw_missing, model._saw_missing)
        assert hasattr(tree, "classes_") == (name == "forest")
        assert tree.max_depth == model.max_depth


@pytest.mark.parametrize("kind", FORESTS)
def test_the_forest_is_the_mean_of_its_estimators(kind):
    X, y = mixed_table()
    forest = kind(7, random_state=0).fit(X, y)
    assert len(forest) == len(forest.estimators_) == 7
    method = "predict_proba" if hasattr(forest, "classes_") else "predict"
    each = [getattr(tree, method)(X) for tree in forest]
    np.testing.assert_allclose(getattr(forest, method)(X), np.mean(each, axis=0), rtol=1e-13)
    leaves = forest.apply(X)
    assert leaves.shape == (len(X), 7)
    np.testing.assert_array_equal(leaves[:, 2], forest[2].apply(X))
    path, ends = forest.decision_path(X)
    assert path.shape[1] == ends[-1] == sum(tree.node_count for tree in forest.forest_.trees)
    assert np.all(path[np.arange(len(X)), ends[3] + leaves[:, 3]] == 1)
    shares = forest.feature_importances_
    assert shares.shape == (4,)
    assert shares.sum() == pytest.approx(1)


def test_unfitted():
    for method in ("predict", "predict_proba", "apply", "decision_path"):
        with pytest.raises(NotFittedError):
            getattr(RandomForestClassifier(), method)(IRIS[0])
    with pytest.raises(NotFittedError):
        _ = RandomForestClassifier().estimators_


class TestOutOfBag:
    def test_regression_and_a_callable(self):
        X, y = DIABETES
        forest = RandomForestRegressor(40, random_state=1, oob_score=True).fit(X, y)
        assert forest.oob_prediction_.shape == y.shape
        assert 0.3 < forest.oob_score_ < 0.6
        worst = RandomForestRegressor(
            40, random_state=1, oob_score=lambda y, p: np.abs(y - p).max()
        ).fit(X, y)
        assert worst.oob_score_ == np.abs(y - forest.oob_prediction_).max()

    def test_balanced_accuracy(self):
        X, y = CANCER
        forest = RandomForestClassifier(
            30, random_state=0, oob_score=balanced_accuracy_score, class_weight="balanced"
        ).fit(X, y)
        assert forest.oob_score_ > 0.93

    def test_groups_are_left_out_together(self):
        # Every row is there eight times: without groups the forest has seen each row's twin.
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(60, 4)), 8, axis=0)
        y = np.repeat(rng.integers(0, 2, 60), 8)
        groups = np.repeat([f"patient {i}" for i in range(60)], 8)
        forest = RandomForestClassifier(60, random_state=0, oob_score=True)
        assert clone(forest).fit(X, y).oob_score_ > 0.95
        assert clone(forest).fit(X, y, bootstrap_groups=groups).oob_score_ < 0.7


@pytest.mark.parametrize("kind", FORESTS)
def test_out_of_bag_scores_need_bags_and_votes(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} got oob_score=True, bootstrap=Fal"):
        kind(2, oob_score=True, bootstrap=False).fit(*IRIS)
    with pytest.warns(UserWarning, match="do not have OOB scores"):
        forest = kind(1, random_state=1, oob_score=True, bootstrap=True).fit(*IRIS)
    name = "oob_prediction_" if "Regressor" in kind.__name__ else "oob_decision_function_"
    voted = ~np.isnan(getattr(forest, name))
    assert 0.2 < voted.mean() < 0.6  # 1/e of the rows are in no bag
    assert np.isfinite(forest.oob_score_)


def test_a_failed_fit_leaves_the_forest_as_it_was():
    X, y = IRIS
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    before = forest.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        forest.fit(X, np.where(y == 0, np.nan, y))
    np.testing.assert_array_equal(forest.predict(X), before)


@pytest.mark.parametrize("kind", FORESTS)
def test_any_number_of_threads(kind):
    X, y = mixed_table()
    one = kind(12, random_state=3).fit(X, y)
    two = kind(12, random_state=3, n_jobs=2).fit(X, y)
    assert_same(one, two)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("kind", FORESTS)
def test_the_first_trees_do_not_depend_on_how_many_there_are(kind):
    few, many = (kind(n, random_state=3).fit(*IRIS) for n in (3, 7))
    for one, other in zip(few.forest_.trees, many.forest_.trees, strict=False):
        assert one.equals(other)
    other = kind(3, random_state=4).fit(*IRIS)
    assert not all(map(Tree.equals, few.forest_.trees, other.forest_.trees))


def test_a_fit_of_codes_is_the_fit_of_the_table():
    X, y = mixed_table()
    forest = RandomForestClassifier(5, max_leaf_nodes=8, random_state=1)
    found = cross_validate(forest, X, y, cv=3, return_estimator=True)
    for (train, _), model in zip(StratifiedKFold(3).split(X, y), found["estimator"], strict=True):
        weight = np.zeros(len(y))
        weight[train] = 1
        assert_same(model, clone(forest).fit(X, y, sample_weight=weight))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_more_columns_than_there_are_mean_all(kind):
    """As in scikit-learn."""
    many = kind(max_features=5, random_state=0).fit(*IRIS)
    everything = kind(max_features=None, random_state=0).fit(*IRIS)
    assert many.max_features_ == 4
    np.testing.assert_array_equal(many.predict_proba(IRIS[0]), everything.predict_proba(IRIS[0]))


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


@pytest.mark.one_of(2)
class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_estimators": 0}, "n_estimators"),
            ({"max_features": 0}, "max_features"),
            ({"max_features": "most"}, "max_features"),
            ({"max_samples": 0.0}, "max_samples"),
            ({"max_samples": 301}, "max_samples"),
            ({"max_samples": 151, "bootstrap": False}, "max_samples"),
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
