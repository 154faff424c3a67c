"""Monotonic columns and sets of columns, as users give them, and what models make of them."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor as TheirExtraTrees
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble import RandomForestRegressor as TheirForest
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor as TheirTree

import dtrees
from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.coding import CodeBook
from dtrees.coding.target import Target
from dtrees.estimators.column_rules import directions_of, interactions_of, units_of_weights
from dtrees.model_selection import cross_validate
from tests.parallel.clusters import connect, digest

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 4)).round(1)
SIGNAL = np.sin(3 * X[:, 0]) + X[:, 1] - X[:, 2]
Y = SIGNAL + RNG.normal(size=N)
LABELS = (Y > 0).astype(int)
DIRECTIONS = [1, 0, -1, 0]
FOREST = {"n_estimators": 4, "random_state": 0}
BOOSTED = {"max_iter": 8, "min_samples_leaf": 3}
REGRESSORS = {
    "tree": (dtrees.DecisionTreeRegressor, {}),
    "poisson": (dtrees.DecisionTreeRegressor, {"criterion": "poisson"}),
    "forest": (dtrees.RandomForestRegressor, FOREST),
    "exact forest": (dtrees.RandomForestRegressor, {**FOREST, "max_bins": None}),
    "extra trees": (dtrees.ExtraTreesRegressor, FOREST),
    "bagging": (dtrees.BaggingRegressor, FOREST),
    "boosting": (GradientBoostingRegressor, BOOSTED),
    "medians": (GradientBoostingRegressor, {**BOOSTED, "loss": "absolute_error"}),
    "gamma": (GradientBoostingRegressor, {**BOOSTED, "loss": "gamma"}),
}
CLASSIFIERS = {
    "tree": (dtrees.DecisionTreeClassifier, {}),
    "entropy": (dtrees.DecisionTreeClassifier, {"criterion": "entropy"}),
    "balanced": (dtrees.DecisionTreeClassifier, {"class_weight": "balanced"}),
    "forest": (dtrees.RandomForestClassifier, FOREST),
    "extra trees": (dtrees.ExtraTreesClassifier, {**FOREST, "criterion": "entropy"}),
    "boosting": (GradientBoostingClassifier, BOOSTED),
}
EVERY = [(True, name) for name in CLASSIFIERS] + [(False, name) for name in REGRESSORS]


def estimator(is_classifier, name, **own):
    kind, parameters = (CLASSIFIERS if is_classifier else REGRESSORS)[name]
    return kind(**parameters, **own)


def target_of(is_classifier, name, y):
    """What the estimator can fit."""
    if is_classifier:
        return (y > 0).astype(int)
    return np.exp(y) if name in ("poisson", "gamma") else y


def answers(model, table):
    """What has to rise: shares of the second class, or numbers."""
    return model.predict_proba(table)[:, 1] if hasattr(model, "classes_") else model.predict(table)


def broken(model, rows, column, direction):
    """Pairs of neighbours on a grid through some rows that are in the wrong order."""
    grid = np.unique(np.r_[X[:, column], X[:, column].min() - 1, X[:, column].max() + 1])
    table = np.repeat(rows, len(grid), axis=0)
    table[:, column] = np.tile(grid, len(rows))
    steps = np.diff(answers(model, table).reshape(len(rows), -1), axis=1)
    return int((direction * steps < 0).sum())


class TestMonotonic:
    @pytest.mark.one_of(5)
    @pytest.mark.parametrize(("is_classifier", "name"), EVERY)
    @given(seed=st.integers(0, 999), weights=st.sampled_from(["none", "whole", "fractions"]))
    def test_never_broken(self, is_classifier, name, seed, weights):
        rng = np.random.default_rng(seed)
        rows = rng.choice(N, 150, replace=False)
        table = np.where(rng.random((150, 4)) < rng.choice([0, 0.1]), np.nan, X[rows])
        y = target_of(is_classifier, name, Y[rows] + rng.normal(size=150))
        weight = {
            "none": None, "whole": rng.integers(0, 4, 150), "fractions": rng.random(150),
        }[weights]  # fmt: skip
        model = estimator(is_classifier, name, monotonic_cst=DIRECTIONS).fit(table, y, weight)
        at = table[rng.choice(150, 12)]
        assert broken(model, at, 0, 1) == broken(model, at, 2, -1) == 0

    @pytest.mark.parametrize(("is_classifier", "name"), EVERY)
    def test_broken_without(self, is_classifier, name):
        """The law above is no law of models without constraints."""
        model = estimator(is_classifier, name).fit(X, target_of(is_classifier, name, Y))
        assert broken(model, X[:50], 0, 1) > 0

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize(("is_classifier", "name"), EVERY)
    def test_same_bits(self, is_classifier, name):
        """On two threads, of a sparse table, of a data frame with names."""
        y = target_of(is_classifier, name, Y)
        made = estimator(is_classifier, name, monotonic_cst=DIRECTIONS)
        first = answers(made.fit(X, y), X)
        np.testing.assert_array_equal(answers(made.set_params(n_jobs=2).fit(X, y), X), first)
        sparse = sp.csr_array(X)
        np.testing.assert_array_equal(answers(made.fit(sparse, y), sparse), first)
        frame = pd.DataFrame(X, columns=list("abcd"))
        made.set_params(monotonic_cst={"a": 1, "c": -1})
        np.testing.assert_array_equal(answers(made.fit(frame, y), frame), first)

    @pytest.mark.parametrize(
        ("ours", "theirs", "own"),
        [
            (dtrees.DecisionTreeRegressor, TheirTree, {"min_samples_leaf": 10}),
            (dtrees.RandomForestRegressor, TheirForest, {"n_estimators": 20}),
            (dtrees.ExtraTreesRegressor, TheirExtraTrees, {"n_estimators": 20}),
        ],
    )
    def test_as_good_as_scikit_learns_trees(self, ours, theirs, own):
        how = {"random_state": 0, "monotonic_cst": DIRECTIONS, **own}
        train, test = slice(0, None, 2), slice(1, None, 2)
        errors = [
            np.mean((kind(**how).fit(X[train], Y[train]).predict(X[test]) - Y[test]) ** 2)
            for kind in (ours, theirs)
        ]
        assert errors[0] < 1.1 * errors[1]

    def test_as_good_as_scikit_learns_boosting(self):
        train, test = slice(0, None, 2), slice(1, None, 2)
        how = {"max_iter": 30, "monotonic_cst": DIRECTIONS, "min_samples_leaf": 5}
        errors = [
            np.mean((model.fit(X[train], Y[train]).predict(X[test]) - Y[test]) ** 2)
            for model in (
                GradientBoostingRegressor(**how),
                HistGradientBoostingRegressor(early_stopping=False, **how),
            )
        ]
        assert errors[0] == pytest.approx(errors[1], rel=0.05)
        losses = [
            np.mean(model.fit(X[train], LABELS[train]).predict(X[test]) != LABELS[test])
            for model in (
                GradientBoostingClassifier(**how),
                HistGradientBoostingClassifier(early_stopping=False, **how),
            )
        ]
        assert losses[0] == pytest.approx(losses[1], abs=0.03)


def paths_of(tree):
    """The columns on the way to each leaf."""
    found, stack = [], [(0, frozenset())]
    while stack:
        node, above = stack.pop()
        if tree.test[node] == 0:
            found.append(above)
            continue
        path = above | {int(tree.feature[node])}
        stack += [(tree.children_left[node], path), (tree.children_right[node], path)]
    return found


def trees_of(model):
    return [model.tree_.model] if hasattr(model, "tree_") else model.forest_.trees


class TestInteractions:
    @pytest.mark.one_of(3)
    @pytest.mark.parametrize(("is_classifier", "name"), EVERY)
    @pytest.mark.parametrize(
        ("given", "sets"),
        [
            ("no_interactions", [{0}, {1}, {2}, {3}]),
            ("pairwise", [{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}]),
            ([[0, 1], (1, 2)], [{0, 1}, {1, 2}, {3}]),
        ],
    )
    def test_paths(self, is_classifier, name, given, sets):
        y = target_of(is_classifier, name, Y)
        made = estimator(is_classifier, name, interaction_cst=given)
        paths = [path for tree in trees_of(made.fit(X, y)) for path in paths_of(tree)]
        assert all(any(path <= group for group in sets) for path in paths)
        assert max(map(len, paths)) == max(map(len, sets))
        first = answers(made, X)
        np.testing.assert_array_equal(answers(made.set_params(n_jobs=2).fit(X, y), X), first)
        sparse = sp.csr_array(X)
        np.testing.assert_array_equal(answers(made.fit(sparse, y), sparse), first)

    def test_with_directions(self):
        model = GradientBoostingRegressor(
            interaction_cst="no_interactions", monotonic_cst=DIRECTIONS, **BOOSTED
        ).fit(X, Y)
        assert broken(model, X[:20], 0, 1) == 0
        assert all(len(path) <= 1 for tree in model.forest_.trees for path in paths_of(tree))


BOTH = {"monotonic_cst": DIRECTIONS, "interaction_cst": [{0, 1}, {1, 2, 3}]}


class TestWherever:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize(
        "kind", [dtrees.RandomForestRegressor, dtrees.ExtraTreesClassifier], ids=["numbers", "two"]
    )
    def test_every_regime_of_a_cluster_grows_the_same_trees(self, kind):
        y = LABELS if kind is dtrees.ExtraTreesClassifier else Y
        made = kind(4, random_state=0, max_depth=6, **BOTH)
        expected = digest(made.fit(X, y).forest_.trees)
        assert expected != digest(kind(4, random_state=0, max_depth=6).fit(X, y).forest_.trees)
        rows = da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)
        with connect(2, 1, False) as cluster, Client(cluster):
            for regime in ("local", "replicated", "partitioned"):
                made.set_params(regime=regime).fit(*rows)
                assert made.fit_report_["regime"] == regime
                assert digest(made.forest_.trees) == expected

    @pytest.mark.parametrize(("is_classifier", "name"), [(True, "tree"), (False, "forest")])
    def test_models_of_folds_are_fits_with_zero_weights(self, is_classifier, name):
        y = target_of(is_classifier, name, Y)
        made = estimator(is_classifier, name, **BOTH)
        splits = list(KFold(3).split(X))
        found = cross_validate(made, X, y, cv=splits, return_estimator=True)
        for model, (train, _) in zip(found["estimator"], splits, strict=True):
            alone = clone(made).fit(X, y, np.isin(np.arange(N), train).astype(float))
            assert digest(trees_of(model)) == digest(trees_of(alone))
        assert digest(trees_of(found["final_estimator"])) == digest(trees_of(made.fit(X, y)))

    @pytest.mark.parametrize("is_classifier", [True, False])
    def test_models_of_folds_keep_the_order_of_exact_numbers(self, is_classifier, caplog):
        """No bound of an interval of codes knows orders: these models grow one by one."""
        caplog.set_level("INFO", "dtrees")
        rng = np.random.default_rng(0)
        table = np.where(rng.random((3_000, 4)) < 0.02, np.nan, rng.normal(size=(3_000, 4)))
        y = np.nan_to_num(table) @ [1.0, 1.0, 0.5, 0.0] + rng.normal(size=3_000)
        y = target_of(is_classifier, "tree", y)
        made = estimator(is_classifier, "tree", monotonic_cst=DIRECTIONS)
        splits = list(KFold(5).split(table))
        found = cross_validate(made, table, y, cv=splits, return_estimator=True)
        assert found["final_estimator"].fit_report_["shared_nodes"] == 0
        assert "models are fitted one by one: most columns have many values" in caplog.text
        for model, (train, _) in zip(found["estimator"], splits, strict=True):
            alone = clone(made).fit(table, y, np.isin(np.arange(3_000), train).astype(float))
            assert digest(trees_of(model)) == digest(trees_of(alone))
            assert broken(model, table[:20], 0, 1) == broken(model, table[:20], 2, -1) == 0


BOOK, _ = CodeBook.fit_encode(
    pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": pd.Categorical(["x", "y"])})
)
PLAIN, _ = CodeBook.fit_encode(np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]))
NUMBERS = Target.regression(np.array([1.0, 2.0]), None)
THREE = Target.classification(np.array([0, 1, 2]), None)


class TestWhatIsGiven:
    def test_directions(self):
        assert directions_of([0, 0, 0], BOOK, THREE) is None
        assert directions_of({}, BOOK, THREE) is None
        assert directions_of(np.array([1.0, -1.0, 0.0]), BOOK, NUMBERS) == (1, -1, 0)
        assert directions_of({"b": -1}, BOOK, NUMBERS) == (0, -1, 0)

    @pytest.mark.parametrize(
        ("given", "book", "target", "said"),
        [
            ([1, 0], BOOK, NUMBERS, r"shape \(2,\) but the input data X has 3 features"),
            ([1, 0, 2], BOOK, NUMBERS, r"-1, 0 or 1. Observed values: \[0, 1, 2\]"),
            (["a", 0, 0], BOOK, NUMBERS, "-1, 0 or 1"),
            ([0, 0, 1], BOOK, NUMBERS, "Categorical features cannot .* column 'c'"),
            ([1, 0, 0], BOOK, THREE, "multiclass classification: y has 3 classes"),
            ({"a": 1}, PLAIN, NUMBERS, "X has no feature names"),
            ({"d": 1}, BOOK, NUMBERS, r"1 unexpected feature names: \['d'\]"),
            ({"a": 3}, BOOK, NUMBERS, r"monotonic_cst\['a'\] must be either -1, 0 or 1. Got 3"),
        ],
    )
    def test_wrong_directions(self, given, book, target, said):
        with pytest.raises(ValueError, match=said):
            directions_of(given, book, target)

    def test_weights(self):
        assert units_of_weights(None, BOOK) is None
        assert units_of_weights([0.3, 0.3, 0.3], PLAIN) is None
        assert units_of_weights({}, BOOK) is None
        assert units_of_weights([1, 4, 2], PLAIN) == (2**38, 2**40, 2**39)
        assert units_of_weights({"b": 2.0}, BOOK) == (2**39, 2**40, 2**39)
        assert units_of_weights([1e-300, 1e300, 1e300], BOOK) == (1, 2**40, 2**40)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ([1, 2], r"feature_weights has shape \(2,\) but the input data X has 3 features"),
            ([0, 1, 2], "feature_weights must be positive, finite numbers"),
            ({"a": "2"}, "feature_weights must be positive, finite numbers"),
            ([1, np.inf, 2], "must be positive"),
            ([1, np.nan, 2], "must be positive"),
            (["a", "b", "c"], "must be positive"),
            ({"d": 1}, r"feature_weights contains 1 unexpected feature names: \['d'\]"),
        ],
    )
    def test_wrong_weights(self, given, said):
        with pytest.raises(ValueError, match=said):
            units_of_weights(given, BOOK)

    def test_sets(self):
        assert interactions_of(None, BOOK) is None
        assert interactions_of([[0, 1, 2]], BOOK) is None
        assert interactions_of("no_interactions", BOOK) == ((0,), (1,), (2,))
        assert interactions_of("pairwise", BOOK) == ((0, 1), (0, 2), (1, 2))
        assert interactions_of([{1}], BOOK) == ((1,), (0, 2))
        assert interactions_of([["b", "a"], ("c",)], BOOK) == ((0, 1), (2,))
        assert interactions_of(None, BOOK, {1}) == ((0, 2),)
        assert interactions_of([["b", "a"]], BOOK, {1}) == ((0,), (2,))

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ([1, 2], "must be a sequence of tuples, lists or sets, got: 1"),
            ([[0, 3]], "numbers from 0 to 2, got 3"),
            ([[0, 1.0]], "numbers from 0 to 2, got 1.0"),
            ([["d"]], "names of columns or of numbers .* got 'd'"),
        ],
    )
    def test_wrong_sets(self, given, said):
        with pytest.raises(ValueError, match=said):
            interactions_of(given, BOOK)

    def test_a_failed_fit_leaves_the_model(self):
        model = dtrees.DecisionTreeRegressor().fit(X, Y)
        before = model.predict(X)
        with pytest.raises(ValueError, match="features"):
            model.set_params(monotonic_cst=[1]).fit(X, Y)
        np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_means_that_differ_by_rounding_alone_keep_the_order(criterion, weighted):
    """Sums have up to 62 bits: that of a side must not be a difference of two doubles."""
    for seed in (21, 63, 178):  # broke it
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 200))
        table = np.column_stack([rng.integers(0, 12, n), rng.integers(0, 4, n)])
        y = rng.choice([0.1, 0.2, 0.3], n)
        weight = rng.choice([0.1, 0.7, 1.3], n) if weighted else None
        model = dtrees.DecisionTreeRegressor(criterion=criterion, monotonic_cst=[1, 0])
        model.fit(table, y, weight)
        for value in range(4):
            found = model.predict(np.column_stack([np.arange(13), np.full(13, value)]))
            assert (np.diff(found) >= 0).all()


@pytest.mark.filterwarnings("ignore:X has several columns of the name")
@pytest.mark.parametrize(
    "rule", [{"monotonic_cst": {"a": 1}}, {"interaction_cst": [["a"], ["b"]]}], ids=str
)
def test_a_name_of_two_columns_is_refused(rule):
    """One of them would be taken, and the other one go without."""
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "a"])
    with pytest.raises(ValueError, match=f"{next(iter(rule))} names 'a', and X has 2 columns"):
        dtrees.DecisionTreeRegressor(**rule).fit(table, Y)
