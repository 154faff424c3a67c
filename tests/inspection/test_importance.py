import itertools
from functools import partial

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_friedman1,
)
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from dtrees import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.inspection import (
    held_out_importances,
    impurity_importances,
    oob_importances,
    split_counts,
)
from dtrees.inspection.importance import summed_importances
from dtrees.model_selection import cross_validate
from dtrees.model_selection.validated import validate_folds


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_as_in_scikit_learn(criterion, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = np.exp(X[:, 0] + X[:, 1] * X[:, 2])
    weight = rng.exponential(size=400) if weighted else None
    limits = {"criterion": criterion, "min_samples_leaf": 15}
    ours = DecisionTreeRegressor(**limits).fit(X, y, weight)
    theirs = sklearn.tree.DecisionTreeRegressor(**limits).fit(X, y, weight)
    for normalize in (True, False):
        assert_allclose(
            impurity_importances(ours.tree_.model, normalize=normalize),
            theirs.tree_.compute_feature_importances(normalize=normalize),
            rtol=1e-9,
        )


def test_they_sum_to_one_or_to_what_the_tree_gains():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 6)), rng.integers(0, 3, 200)
    view = DecisionTreeClassifier().fit(X, y).tree_
    assert impurity_importances(view.model).sum() == pytest.approx(1.0)
    total = impurity_importances(view.model, normalize=False).sum()
    assert total == pytest.approx(view.impurity[0])  # leaves are pure


def test_columns_never_tested_have_none():
    X = np.c_[np.zeros(20), np.arange(20), np.zeros(20)]
    tree = DecisionTreeClassifier().fit(X, np.arange(20) > 7)
    assert_array_equal(tree.feature_importances_, [0.0, 1.0, 0.0])


def test_a_single_leaf_has_none():
    tree = DecisionTreeClassifier().fit(np.zeros((5, 2)), np.arange(5))
    assert_array_equal(tree.feature_importances_, [0.0, 0.0])


def test_those_of_trees_that_add_up_are_weighted_by_what_trees_gain():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    model = GradientBoostingRegressor(max_iter=20).fit(X, 10 * (X[:, 0] > 0) + (X[:, 1] > 0))
    gains = np.zeros(3)
    for tree in model.forest_.trees:
        for column, gain in zip(tree.feature, tree.gain, strict=True):
            gains[column] += gain  # of leaves: 0, to the last but one
    assert_allclose(model.feature_importances_, gains / gains.sum(), rtol=1e-12)
    assert_array_equal(summed_importances(model.forest_.trees), model.feature_importances_)
    assert model.feature_importances_[0] > 0.98  # most trees ask for the other one, too


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        RandomForestRegressor(3, random_state=0),
        GradientBoostingClassifier(max_iter=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_counts_of_splits(model):
    rng = np.random.default_rng(2)
    X = np.c_[rng.normal(size=(200, 3)), np.zeros(200)]
    model.fit(X, rng.integers(0, 3, 200))
    trees = [model.tree_.model] if hasattr(model, "tree_") else model.forest_.trees
    counts = split_counts(model)
    assert counts.tolist() == [sum((t.feature == j).sum() for t in trees) for j in range(4)]
    assert counts.sum() == sum(tree.n_leaves - 1 for tree in trees)
    assert counts[3] == 0
    with pytest.raises(TypeError, match=r"model must be a fitted tree, .* Got StandardScaler"):
        split_counts(StandardScaler().fit(X))
    with pytest.raises(NotFittedError):
        split_counts(type(model)())


def slow(model, X, y, rows_of_trees, weight=None):
    """Row by row, down each tree: what a split says of the row, times where the row lies."""
    found = np.zeros((len(model), X.shape[1]))
    own = np.ones(len(X)) if weight is None else weight
    one_hot = y[:, None] == model.classes_ if hasattr(model, "classes_") else y[:, None]
    for number, rows in enumerate(rows_of_trees):
        view = model[number].tree_
        value = view.value.reshape(view.node_count, -1)
        path = model[number].decision_path(X).toarray().astype(bool)
        for i in rows:
            nodes = np.flatnonzero(path[i])
            for t, child in itertools.pairwise(nodes):
                here = [k for k in rows if path[k, t] and own[k] > 0]
                mean = np.average(one_hot[here], axis=0, weights=own[here]) if here else 0.0
                gain = (value[child] - value[t]) @ (one_hot[i] - mean)
                found[number, view.feature[t]] += gain * (1 if weight is None else weight[i])
        found[number] /= len(rows) if weight is None else weight[rows].sum()
    return found.mean(axis=0)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor, BaggingClassifier])
@pytest.mark.parametrize("how", ["plain", "weights", "groups", "entropy"])
def test_rows_out_of_bags_one_by_one(kind, how):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.digitize(X[:, 0] + rng.normal(size=120), [-0.5, 0.8])
    forest = kind(6, max_leaf_nodes=9, random_state=0)
    given = {}
    if how == "weights":
        given = {"sample_weight": rng.integers(0, 4, 120) * 0.3}
    elif how == "groups":
        given = {"bootstrap_groups": np.arange(120) // 4}
    elif how == "entropy" and kind is not RandomForestRegressor:
        forest.set_params(criterion="entropy", max_samples=0.5)
    forest.fit(X, y, **given)
    weight, bags = forest._rows_by_bag(y, *map(given.get, ("sample_weight", "bootstrap_groups")))
    expected = slow(forest, X, y, [rows for rows, _ in bags], weight)
    found = oob_importances(forest, X, y, **given, normalize=False)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert_allclose(oob_importances(forest, X, y, **given), expected / expected.sum(), rtol=1e-9)
    other = X[::-1] + 0.1
    slow_one = slow(forest, other, y, [np.arange(120)] * 6)
    assert_allclose(
        held_out_importances(forest, other, y, normalize=False), slow_one, rtol=1e-9, atol=1e-12
    )


TABLES = {
    "iris": load_iris,
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "digits": load_digits,
    **{
        f"made {seed}": partial(make_friedman1, 400, noise=3, random_state=seed)
        for seed in (0, 1, 2)
    },
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", TABLES)
def test_a_column_of_random_levels_has_none(name):
    X, y = TABLES[name]() if name.startswith("made") else TABLES[name](return_X_y=True)
    levels = np.random.default_rng(0).integers(0, 500, len(y))
    X = np.column_stack([X, levels])
    numbers = name in ("diabetes", "made 0", "made 1", "made 2")
    kind = RandomForestRegressor if numbers else RandomForestClassifier
    last = X.shape[1] - 1
    forest = kind(25, categorical_features=[last], random_state=0).fit(X, y)
    found = oob_importances(forest, X, y)
    assert abs(found[-1]) < 0.05
    assert found.argmax() != last
    assert found.sum() == pytest.approx(1)
    misled = forest.set_params(category_penalty=0.0).fit(X, y)
    found = oob_importances(misled, X, y, normalize=False)
    assert found[-1] < min(0.1 * found.max(), misled.feature_importances_[-1] * found.sum() / 2)


def test_unseen_importances_do_not_depend_on_the_layout():
    X, y = load_breast_cancer(return_X_y=True)
    X = np.where(np.median(X, axis=0) > X, 0.0, X)
    expected = None
    for n_jobs, table in ((1, X), (2, X), (2, sp.csr_array(X)), (1, da.from_array(X, (200, -1)))):
        forest = RandomForestClassifier(8, n_jobs=n_jobs, random_state=0).fit(table, y)
        found = oob_importances(forest, table, y)
        expected = found if expected is None else expected
        assert_array_equal(found, expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "forest",
    [
        RandomForestClassifier(5, random_state=0),
        RandomForestClassifier(5, class_weight="balanced", max_depth=3, random_state=0),
        RandomForestRegressor(5, criterion="poisson", random_state=0),
        RandomForestRegressor(5, max_samples=0.3, random_state=0),
    ],
    ids=["classes", "balanced", "poisson", "small bags"],
)
def test_rows_in_another_order_are_refused(forest, weighted):
    """Also where all rows of a leaf have one label, and where X or y alone stands otherwise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0.3) + 1e6
    weight = rng.integers(0, 3, 200) if weighted else None
    forest = clone(forest).fit(X, y, weight)
    oob_importances(forest, X, y, weight)
    for order in (np.argsort(y, kind="stable"), rng.permutation(200)):
        own = None if weight is None else weight[order]
        for given in ((X[order], y[order], own), (X[order], y, weight), (X, y[order], weight)):
            with pytest.raises(ValueError, match=r"not (those of|fitted to) these rows"):
                oob_importances(forest, *given)


@pytest.mark.parametrize("outlier", [1.0, 1e9])
def test_targets_beside_an_outlier_in_another_order_are_refused(outlier):
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = X[:, 0].copy()
    y[0] = outlier
    forest = RandomForestRegressor(5, min_samples_leaf=5, random_state=0).fit(X, y)
    oob_importances(forest, X, y)
    with pytest.raises(ValueError, match="not fitted to these rows"):
        oob_importances(forest, X, np.r_[outlier, y[:0:-1]])


def test_forests_of_splits_want_all_rows_and_a_weight_of_their_training_side():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(3, random_state=0)
    found = cross_validate(forest, X, y, cv=3, return_estimator=True, return_indices=True)
    for model, train in zip(found["estimator"], found["indices"]["train"], strict=True):
        with pytest.raises(ValueError, match="of a split that has grown with others wants all"):
            oob_importances(model, X, y)
        with pytest.raises(ValueError, match="of a split that has grown with others wants all"):
            oob_importances(model, X[train], y[train])
        weight = np.zeros(len(y))
        weight[train] = 1
        assert oob_importances(model, X, y, weight).sum() == pytest.approx(1)


def test_what_has_no_unseen_importances():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="bags of this forest are not those of these rows"):
        oob_importances(forest, X, y, np.arange(150))
    with pytest.raises(ValueError, match="bags of this forest are not those of these rows"):
        oob_importances(forest, X[:-1], y[:-1])
    with pytest.raises(ValueError, match="There are no bags"):
        oob_importances(clone(forest).set_params(bootstrap=False).fit(X, y), X, y)
    with pytest.raises(ValueError, match="must be a forest with bags"):
        oob_importances(DecisionTreeClassifier().fit(X, y), X, y)
    with pytest.raises(TypeError, match="whose trees add up"):
        held_out_importances(GradientBoostingClassifier(max_iter=2).fit(X, y), X, y)
    with pytest.raises(ValueError, match="y must hold labels that the model was fitted to"):
        held_out_importances(forest, X, y + 1)
    with pytest.raises(ValueError, match="X has 150 rows, y has 149 values"):
        held_out_importances(forest, X, y[1:])
    with pytest.raises(NotFittedError):
        held_out_importances(DecisionTreeClassifier(), X, y)
    leaf = DecisionTreeClassifier().fit(X, np.zeros(150))
    assert_array_equal(held_out_importances(leaf, X, np.zeros(150)), np.zeros(4))


def test_folds_tell_what_their_test_sides_tell():
    X, y = load_iris(return_X_y=True)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    for model in (DecisionTreeClassifier(), RandomForestClassifier(5, random_state=0)):
        found = validate_folds(model, X, y, splits)
        expected = [
            held_out_importances(own, X[test], y[test])
            for own, (_, test) in zip(found.models, splits, strict=True)
        ]
        assert_allclose(found.importances, expected, rtol=1e-9, atol=1e-12)
    boosted = validate_folds(GradientBoostingClassifier(max_iter=2), X, y, splits)
    assert boosted.importances is None


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_target_is_refused(missing):
    X, y = load_iris(return_X_y=True)
    gap = y.astype(object)
    gap[3] = missing
    with pytest.raises(ValueError, match="y must have a label in every row"):
        held_out_importances(DecisionTreeClassifier().fit(X, y), X, gap)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        held_out_importances(DecisionTreeRegressor().fit(X, y), X, gap)
    with pytest.raises(ValueError, match="y must be numbers"):
        held_out_importances(DecisionTreeRegressor().fit(X, y), X, y.astype(str) + "a")
