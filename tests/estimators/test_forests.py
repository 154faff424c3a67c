"""Forests: every tree is the tree of its bag, whatever grew it, and the forest is their mean."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import ExtraTreesClassifier as TheirExtraTrees
from sklearn.ensemble import RandomForestClassifier as TheirClassifier
from sklearn.ensemble import RandomForestRegressor as TheirRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_score

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.resampling import Bags

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
FORESTS = [
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    BaggingClassifier,
    BaggingRegressor,
]


def mixed_table(n_rows: int = 400, seed: int = 0):
    """Numbers with missing values, categories and a hybrid column."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n_rows)
    number[rng.random(n_rows) < 0.1] = np.nan
    letters = rng.choice(list("abcdef"), n_rows).astype(object)
    hybrid = np.where(rng.random(n_rows) < 0.5, rng.integers(0, 9, n_rows), letters)
    columns = {"x": number, "letter": letters, "hybrid": hybrid, "k": rng.integers(0, 5, n_rows)}
    table = pd.DataFrame(columns)
    y = (np.nan_to_num(number) > 0).astype(int) + (letters == "a")
    return table, y


def assert_same(a, b) -> None:
    assert len(a.forest_) == len(b.forest_)
    for mine, theirs in zip(a.forest_.trees, b.forest_.trees, strict=True):
        assert mine.equals(theirs)


@pytest.mark.parametrize("kind", FORESTS)
def test_any_number_of_threads(kind):
    X, y = mixed_table()
    one = kind(12, random_state=3).fit(X, y)
    two = kind(12, random_state=3, n_jobs=2).fit(X, y)
    assert_same(one, two)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("kind", FORESTS)
def test_warm_start_adds_the_trees_that_are_missing(kind):
    X, y = mixed_table()
    at_once = kind(9, random_state=3).fit(X, y)
    forest = kind(4, random_state=3, warm_start=True).fit(X, y)
    first = forest.forest_.trees
    forest.set_params(n_estimators=9).fit(X, y)
    assert_same(forest, at_once)
    assert all(a is b for a, b in zip(first, forest.forest_.trees, strict=False))
    with pytest.warns(UserWarning, match="does not fit new trees"):
        forest.fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=3 must be larger or equal"):
        forest.set_params(n_estimators=3).fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X.drop(columns="k"), y),
        lambda X, y: (X.assign(letter=X["letter"].replace("a", "new")), y),
        lambda X, y: (X, y + 10),
    ],
)
def test_warm_start_refuses_other_labels(change):
    X, y = mixed_table()
    forest = RandomForestClassifier(2, warm_start=True).fit(X, y)
    before = forest.predict(X)
    with pytest.raises(ValueError, match="warm_start=True keeps the trees"):
        forest.set_params(n_estimators=4).fit(*change(X, y))
    np.testing.assert_array_equal(forest.predict(X), before)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("n_classes", [2, 40])
def test_more_codes_than_rows(kind, n_classes):
    # Dense columns of wide codes are sorted in small nodes; sparse columns always are.
    rng = np.random.default_rng(0)
    X = np.where(rng.random((3_000, 6)) < 0.9, rng.normal(size=(3_000, 6)), 0.0)
    y = (np.argsort(np.argsort(X[:, 0])) * n_classes // 3_000).astype(int)
    exact = kind(3, max_codes=None, random_state=0)
    assert_same(exact.fit(X, y), clone(exact).fit(sp.csc_array(X), y))


def test_warm_start_without_a_seed_goes_on_with_its_own():
    X, y = IRIS
    forest = RandomForestClassifier(3, warm_start=True).fit(X, y)
    forest.set_params(n_estimators=6).fit(X, y)
    assert not any(
        a.equals(b) for a, b in zip(forest.forest_.trees[:3], forest.forest_.trees[3:], strict=True)
    )


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
    X, y = mixed_table()
    forest = clone(forest).fit(X, y)
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


@pytest.mark.parametrize("kind", FORESTS)
def test_pickles(kind):
    X, y = mixed_table()
    forest = kind(3, random_state=0).fit(X, y)
    assert len(forest.estimators_) == 3
    again = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(forest.predict(X), again.predict(X))
    assert "_estimators" not in vars(again)


class TestOutOfBag:
    def test_by_hand(self):
        X, y = IRIS
        forest = RandomForestClassifier(15, random_state=1, oob_score=True).fit(X, y)
        bags = Bags(forest._fit_seed, 1.0, np.arange(len(y), dtype=np.uint64))
        total, votes = np.zeros((len(y), 3)), np.zeros(len(y))
        for i, tree in enumerate(forest):
            out = bags.multiplicity(i) == 0
            total[out] += tree.predict_proba(X[out])
            votes += out
        expected = total / votes[:, None]
        np.testing.assert_allclose(forest.oob_decision_function_, expected, rtol=1e-13)
        assert forest.oob_score_ == np.mean(expected.argmax(axis=1) == y)

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

    def test_rows_without_a_vote(self):
        X, y = IRIS
        with pytest.warns(UserWarning, match="do not have OOB scores"):
            forest = RandomForestClassifier(1, random_state=1, oob_score=True).fit(X, y)
        assert np.isnan(forest.oob_decision_function_).any()
        assert 0.8 < forest.oob_score_ <= 1

    def test_needs_bags(self):
        with pytest.raises(ValueError, match="bootstrap=True"):
            RandomForestClassifier(oob_score=True, bootstrap=False).fit(*IRIS)

    def test_groups_are_left_out_together(self):
        # Every row is there eight times: without groups the forest has seen each row's twin.
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(60, 4)), 8, axis=0)
        y = np.repeat(rng.integers(0, 2, 60), 8)
        groups = np.repeat([f"patient {i}" for i in range(60)], 8)
        forest = RandomForestClassifier(60, random_state=0, oob_score=True)
        assert clone(forest).fit(X, y).oob_score_ > 0.95
        assert clone(forest).fit(X, y, bootstrap_groups=groups).oob_score_ < 0.7


@pytest.mark.parametrize("share", [0.1, 0.5, 40])
def test_max_samples(share):
    X, y = CANCER
    forest = RandomForestClassifier(30, random_state=0, max_samples=share).fit(X, y)
    sizes = [tree.weighted_n_node_samples[0] for tree in forest.forest_.trees]
    mean = share if share > 1 else share * len(y)
    assert np.mean(sizes) == pytest.approx(mean, rel=0.1)


def test_no_bootstrap_and_all_columns_is_one_tree():
    X, y = CANCER
    forest = RandomForestClassifier(
        2, bootstrap=False, max_features=None, max_codes=None, random_state=3
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
@pytest.mark.parametrize(
    ("ours", "theirs", "data"),
    [
        (RandomForestClassifier, TheirClassifier, CANCER),
        (RandomForestClassifier, TheirClassifier, IRIS),
        (RandomForestRegressor, TheirRegressor, DIABETES),
        (ExtraTreesClassifier, TheirExtraTrees, CANCER),
    ],
)
def test_as_good_as_scikit_learn(ours, theirs, data):
    mine = cross_val_score(ours(60, random_state=0, n_jobs=2), *data, cv=5)
    other = cross_val_score(theirs(60, random_state=0), *data, cv=5)
    assert mine.mean() > other.mean() - 2 * other.std() / np.sqrt(5)


class TestRandomCuts:
    def test_cuts_are_uniform(self):
        # One column of evenly spread values: the first cut is anywhere, equally often.
        X = np.arange(200.0)[:, None]
        y = np.random.default_rng(0).normal(size=200)
        forest = ExtraTreesRegressor(400, max_depth=1, random_state=0).fit(X, y)
        cuts = np.array([tree.threshold[0] for tree in forest.forest_.trees])
        counts = np.histogram(cuts, bins=8, range=(0, 199))[0]
        assert counts.min() > 25
        assert counts.max() < 80

    def test_values_count_and_not_ranks(self):
        # Half of the range lies between the last two values: half of the cuts do.
        X = np.r_[np.arange(100.0), 200.0][:, None]
        y = np.random.default_rng(0).normal(size=101)
        forest = ExtraTreesRegressor(300, max_depth=1, random_state=0).fit(X, y)
        cuts = np.array([tree.threshold[0] for tree in forest.forest_.trees])
        assert 0.4 < np.mean(cuts > 99) < 0.6

    def test_categories_are_parted_at_random(self):
        table = pd.DataFrame({"letter": list("abcd") * 25})
        y = np.arange(100) % 4
        forest = ExtraTreesRegressor(200, max_depth=1, random_state=0).fit(table, y)
        words = {int(tree.subset_words[0]) & 0b11110 for tree in forest.forest_.trees}
        assert len(words) >= 12  # of 14 proper subsets

    def test_leaves_are_large_enough(self):
        X, y = mixed_table()
        forest = ExtraTreesClassifier(10, min_samples_leaf=13, random_state=0).fit(X, y)
        for tree in forest.forest_.trees:
            assert tree.n_node_samples[tree.test == 0].min() >= 13


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_estimators": 0}, "n_estimators"),
            ({"max_features": 0}, "max_features"),
            ({"max_features": "most"}, "max_features"),
            ({"max_features": 5}, "max_features=5 is more than the 4 columns"),
            ({"max_samples": 0.0}, "max_samples"),
            ({"max_samples": 151}, "max_samples"),
            ({"bootstrap": "yes"}, "bootstrap"),
            ({"oob_score": "accuracy"}, "oob_score"),
            ({"class_weight": "fair"}, "class_weight"),
            ({"max_codes": 1}, "max_codes"),
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
            {"max_features": 5},
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

    @pytest.mark.parametrize("kind", FORESTS)
    def test_out_of_bag_scores(self, kind):
        with pytest.raises(ValueError, match=f"{kind.__name__} got oob_score=True, bootstrap=Fal"):
            kind(2, oob_score=True, bootstrap=False).fit(*IRIS)
        with pytest.warns(UserWarning, match="do not have OOB scores"):
            forest = kind(1, random_state=1, oob_score=True, bootstrap=True).fit(*IRIS)
        name = "oob_prediction_" if "Regressor" in kind.__name__ else "oob_decision_function_"
        voted = ~np.isnan(getattr(forest, name))
        assert 0.2 < voted.mean() < 0.6  # 1/e of the rows are in no bag
        assert np.isfinite(forest.oob_score_)

    @pytest.mark.parametrize("kind", FORESTS)
    def test_groups_of_another_length(self, kind):
        for groups in (IRIS[1][:-1], [], np.zeros((150, 2)), 3):
            forest = kind(2, bootstrap=True)
            with pytest.raises(ValueError, match=r"bootstrap_groups .* shape \(150,\)"):
                forest.fit(*IRIS, bootstrap_groups=groups)
            assert not hasattr(forest, "forest_")

    def test_groups(self):
        with pytest.raises(ValueError, match=r"bootstrap_groups .* expected shape \(150,\)"):
            RandomForestClassifier(3).fit(*IRIS, bootstrap_groups=[1, 2])
        with pytest.raises(ValueError, match="needs bootstrap=True"):
            RandomForestClassifier(3, bootstrap=False).fit(*IRIS, bootstrap_groups=IRIS[1])

    def test_unfitted(self):
        for method in ("predict", "predict_proba", "apply", "decision_path"):
            with pytest.raises(NotFittedError):
                getattr(RandomForestClassifier(), method)(IRIS[0])
        with pytest.raises(NotFittedError):
            _ = RandomForestClassifier().estimators_

    def test_a_failed_fit_leaves_the_forest_as_it_was(self):
        X, y = IRIS
        forest = RandomForestClassifier(3, random_state=0).fit(X, y)
        before = forest.predict(X)
        with pytest.raises(ValueError, match="NaN"):
            forest.fit(X, np.where(y == 0, np.nan, y))
        np.testing.assert_array_equal(forest.predict(X), before)


def test_max_samples_needs_bootstrap():
    with pytest.raises(ValueError, match="`max_samples` cannot be set if `bootstrap=False`"):
        RandomForestClassifier(3, bootstrap=False, max_samples=0.1).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    "groups",
    [["a", None, "b", "b"], [1.0, np.nan, 2.0, 2.0], pd.array(["a", pd.NA, "b", "b"])],
    ids=["None", "nan", "NA"],
)
def test_groups_that_are_missing(groups):
    X, y = np.arange(4.0)[:, None], [0, 1, 0, 1]
    with pytest.raises(ValueError, match="bootstrap_groups holds missing values"):
        RandomForestClassifier(3).fit(X, y, bootstrap_groups=groups)


def test_a_least_leaf_weight_in_small_balanced_bags():
    """The unit of the weights is another one in every bag."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(300, 3)), rng.integers(0, 2, 300), rng.random(300)
    forest = RandomForestClassifier(
        20,
        class_weight="balanced_subsample",
        max_samples=0.05,
        min_weight_fraction_leaf=0.1,
        random_state=0,
    ).fit(X, y, weights)
    assert np.mean([tree.get_n_leaves() for tree in forest.estimators_]) > 2
    one_class = forest.fit(X, np.zeros(300, dtype=int), weights)
    assert all(tree.get_n_leaves() == 1 for tree in one_class.estimators_)
