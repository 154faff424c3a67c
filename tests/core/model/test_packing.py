"""Packed trees: small, and back bit for bit, whatever grew them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.model.packing import narrow, pack, unpack, widen
from dtrees.core.model.pruning import PruningLimits
from dtrees.core.model.tree import Forest
from tests.estimators.test_forests import mixed_table

CASES = {
    "gini, two classes": (RandomForestClassifier(4, random_state=0), 2),
    "gini, three classes": (RandomForestClassifier(4, random_state=0, max_bins=None), 3),
    "entropy": (RandomForestClassifier(4, random_state=0, criterion="entropy"), 3),
    "entropy of large leaves": (
        BaggingClassifier(3, random_state=0, criterion="entropy", min_samples_leaf=9),
        3,
    ),
    "class weights": (RandomForestClassifier(4, random_state=0, class_weight="balanced"), 3),
    "class weights of bags": (
        RandomForestClassifier(4, random_state=0, class_weight="balanced_subsample"),
        2,
    ),
    "regression": (RandomForestRegressor(4, random_state=0), 0),
    "regression, large leaves": (ExtraTreesRegressor(4, random_state=0, min_samples_leaf=7), 0),
    "poisson": (BaggingRegressor(4, random_state=0, criterion="poisson"), 0),
    "pruned": (RandomForestRegressor(4, random_state=0, ccp_alpha=0.01, max_leaf_nodes=30), 0),
    "a tree": (DecisionTreeClassifier(), 3),
    "a tree of numbers": (DecisionTreeRegressor(), 0),
    "a leaf": (DecisionTreeRegressor(min_samples_split=1000), 0),
    "leaves": (RandomForestClassifier(3, min_samples_split=1000, random_state=0), 2),
    "targets of numbers": (RandomForestRegressor(4, random_state=0), [0, 0, 0]),
    "targets, medians": (
        RandomForestRegressor(3, criterion="absolute_error", random_state=0),
        [0, 0],
    ),
    "targets of two classes": (RandomForestClassifier(4, random_state=0), [2, 2]),
    "targets of classes": (ExtraTreesClassifier(3, random_state=0, max_depth=5), [3, 2, 1]),
    "targets, entropy": (DecisionTreeClassifier(criterion="entropy"), [3, 2]),
    "targets in leaves": (RandomForestRegressor(3, min_samples_split=1000, random_state=0), [0, 0]),
    "targets of one class": (DecisionTreeClassifier(), [1, 1]),
    "steps": (GradientBoostingClassifier(max_iter=2), 3),
}


def grown(name, weights=False):
    model, n_classes = CASES[name]
    X, given = mixed_table()
    rng = np.random.default_rng(1)

    def target(n_classes):
        if n_classes == 0:
            return np.exp(rng.normal(size=len(given))) + given
        return np.where(rng.random(len(given)) < 0.2, rng.integers(0, 9, len(given)), given) % (
            n_classes
        )

    several = isinstance(n_classes, list)
    y = np.column_stack(list(map(target, n_classes))) if several else target(n_classes)
    w = rng.random(len(y)) * (rng.random(len(y)) < 0.8) if weights else None
    model = copy.deepcopy(model).fit(X, y, sample_weight=w)
    return model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)


def assert_same(mine, theirs):
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert a.equals(b)
        assert (a.unit, a.offset) == (b.unit, b.offset)
        assert not any(array.flags.writeable for array in b.arrays().values())


@pytest.mark.one_of(2)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_every_array_comes_back(name, weights):
    trees = grown(name, weights)
    arrays, facts = pack(trees)
    assert_same(trees, unpack(arrays, facts))
    for array in arrays.values():
        assert array.ndim == 1
        assert array.dtype.kind in "iuf"


@pytest.mark.parametrize(
    "name", ["gini, three classes", "regression", "targets of numbers", "targets of classes"]
)
def test_pickles(name):
    trees = grown(name)
    forest = Forest(trees)
    assert_same(trees, pickle.loads(pickle.dumps(forest)).trees)
    assert_same(trees, [pickle.loads(pickle.dumps(tree)) for tree in trees])
    assert_same(trees, copy.deepcopy(forest).trees)
    assert_same(trees, [copy.copy(tree) for tree in trees])
    raw = sum(array.nbytes for tree in trees for array in tree.arrays().values())
    assert len(pickle.dumps(forest)) < raw / (4 if trees[0].n_outputs > 1 else 5)


def test_bytes_per_node():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10)).astype(np.float32)
    y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=len(X))
    for model, target, most in (
        (RandomForestClassifier(5, random_state=0), y > 0, 5.0),  # 80 in scikit-learn
        (RandomForestRegressor(5, random_state=0, max_features=0.3), y, 8.0),  # 72
        (RandomForestRegressor(5, random_state=0), np.c_[y, X[:, 2]], 12.0),
        (RandomForestClassifier(5, random_state=0), np.c_[y > 0, X[:, 2] > 0], 6.0),
    ):
        trees = model.fit(X, target).forest_.trees
        arrays, _ = pack(trees)
        n_bytes = sum(array.nbytes for array in arrays.values())
        assert n_bytes < most * sum(tree.node_count for tree in trees)


def test_impurities_of_steps_take_no_bytes():
    trees = grown("steps")
    arrays, facts = pack(trees)
    assert facts["has_impurity"] is False
    assert "impurity" not in arrays
    assert "has_impurity" not in pack(grown("regression"))[1]
    assert "has_impurity" not in pack(grown("a leaf"))[1]


def test_a_chain():
    X = np.arange(3000.0)[:, None]
    tree = DecisionTreeClassifier().fit(X, np.arange(3000) % 2).tree_.model
    assert tree.max_depth > 1000
    assert_same([tree], unpack(*pack([tree])))


def test_trees_made_by_hand_are_pickled_as_they_are():
    (tree,) = grown("a tree")
    changes = {
        "gain": np.ones(tree.node_count),
        "n_node_samples": np.ones(tree.node_count, dtype=np.int64),
        "statistics": np.ones_like(tree.statistics),
        "subset_words": np.append(tree.subset_words, np.uint64(0)),
        "children_right": tree.children_right[::-1].copy(),
        "impurity": tree.impurity.astype(np.float32),
    }
    for name, array in changes.items():
        other = replace(tree, **{name: array})
        if pack([other]) is None:
            assert name != "impurity" or array.dtype != np.float64
        assert_same([other], [pickle.loads(pickle.dumps(other))])
        assert_same([other, tree], pickle.loads(pickle.dumps(Forest((other, tree)))).trees)
    assert pack([replace(tree, gain=changes["gain"])]) is None
    assert pack([replace(tree, statistics=changes["statistics"])]) is None
    assert pack([]) is None
    assert pickle.loads(pickle.dumps(Forest(()))).trees == ()


def test_any_impurity_comes_back():
    (tree,) = grown("a tree")
    rng = np.random.default_rng(0)
    bits = rng.integers(-(2**63), 2**63, tree.node_count)
    other = replace(tree, impurity=bits.view(np.float64))
    assert_same([other], unpack(*pack([other])))


def test_a_pruned_tree():
    (tree,) = grown("a tree")
    for depth in range(tree.max_depth):
        small = PruningLimits(max_depth=depth).prune(tree)
        assert_same([small], unpack(*pack([small])))


def broken(arrays, facts):
    """Packed trees with one thing wrong, and what the error says."""
    yield {**arrays, "n_nodes": arrays["n_nodes"] + 1}, facts, "bits|preorder|described"
    yield {**arrays, "n_nodes": -arrays["n_nodes"]}, facts, "no nodes"
    yield {**arrays, "n_nodes": arrays["n_nodes"].astype(np.int32)}, facts, "n_nodes is int32"
    yield {**arrays, "is_inner": ~arrays["is_inner"]}, facts, "preorder"
    yield {**arrays, "missing_left": arrays["missing_left"][1:]}, facts, "bits"
    yield {**arrays, "test": arrays["test"] + np.uint8(1)}, facts, "without a test|subset|integers"
    yield {**arrays, "test": np.zeros_like(arrays["test"])}, facts, "without a test"
    yield {**arrays, "threshold": arrays["threshold"][1:]}, facts, "without a test"
    yield {**arrays, "feature": arrays["feature"] + np.uint8(4)}, facts, "column"
    yield {**arrays, "feature": arrays["feature"][1:]}, facts, "integers"
    yield {**arrays, "feature": arrays["feature"] | np.uint8(255)}, facts, "escapes"
    yield {**arrays, "subset_words": arrays["subset_words"][1:]}, facts, "words"
    yield {**arrays, "subset_lengths": arrays["subset_lengths"] * 0}, facts, "words"
    empty = {name: arrays[name] * 0 for name in arrays if name.startswith("statistics")}
    yield {**arrays, **empty}, facts, "weight"
    yield {**arrays, "weight_unit": arrays["weight_unit"] * np.nan}, facts, "unit"
    yield {**arrays, "unit": arrays["unit"][1:]}, facts, "one unit"
    yield arrays, {**facts, "criterion": "none"}, "criterion"
    yield arrays, {**facts, "n_columns": 1}, "column"
    yield arrays, {**facts, "n_statistics": 0}, "statistics"


def test_broken_arrays_are_errors():
    arrays, facts = pack(grown("gini, three classes"))
    for wrong, said, message in broken(arrays, facts):
        with pytest.raises(ValueError, match=message):
            unpack(wrong, said)


def test_a_test_that_is_not_there():
    X = pd.DataFrame({"x": np.arange(200) % 7.0, "y": np.arange(200) % 5.0})
    trees = BaggingRegressor(20, random_state=0).fit(X, np.arange(200)).forest_.trees
    arrays, facts = pack(trees)
    assert_same(trees, unpack(arrays, facts))
    wrong = {
        **arrays,
        "test_number": arrays["test_number"] + np.uint8(len(arrays["threshold"]) - 1),
    }
    with pytest.raises(ValueError, match="test that is not there"):
        unpack(wrong, facts)


@given(
    st.lists(
        st.one_of(
            st.integers(-3, 3),
            st.integers(-300, 300),
            st.integers(-(2**31), 2**31),
            st.integers(-(2**63), 2**63 - 1),
        ),
        max_size=30,
    ),
    st.integers(1, 2**40),
    st.booleans(),
)
def test_narrow_integers(values, factor, divide):
    numbers = np.array(values, dtype=np.int64)
    if divide:
        numbers = numbers // factor * factor
    arrays = narrow("x", numbers, divide=divide)
    assert sum(array.nbytes for array in arrays.values()) <= numbers.nbytes + 8
    np.testing.assert_array_equal(widen(arrays, "x", len(numbers)), numbers)


@pytest.mark.parametrize("name", ["gini, two classes", "gini, three classes"])
def test_predictions_are_off_by_a_few_last_digits(name):
    arrays, _ = pack(grown(name))
    for off in ("gain", "impurity"):
        assert abs(arrays.get(off, np.zeros(1)).astype(np.int64)).max() < 100
        assert f"{off}.escapes" not in arrays
