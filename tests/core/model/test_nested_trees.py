"""Sums over the leaves of nested trees, against the trees that are cut out, and against fits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dtrees
from dtrees.core.model.nested_trees import PruningGrid, sums_over_branches, sums_over_leaves
from dtrees.core.model.pruning import PruningLimits
from dtrees.core.model.tree import LEAF


def grown(seed, n_rows=300, **parameters):
    """A regression tree of rounded values: impurities that tie, and depths that differ."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (n_rows, 4)).astype(float)
    y = np.round(X[:, 0] + 3 * (X[:, 1] > 5) + rng.normal(size=n_rows), 1)
    return dtrees.DecisionTreeRegressor(**parameters).fit(X, y), X, y


LIMITS = st.builds(
    PruningLimits,
    max_depth=st.sampled_from([0, 1, 2, 3, 5, 9, 2**31 - 1]),
    min_samples_split=st.sampled_from([2, 3, 10, 11, 40, 301]),
    min_impurity_decrease=st.sampled_from([0.0, 0.001, 0.01, 0.3, 100.0]),
    max_leaf_nodes=st.sampled_from([None, None, 2, 5, 17, 1000]),
    ccp_alpha=st.sampled_from([0.0, 0.0, 0.001, 0.01, 0.1, 10.0]),
)


@given(st.integers(0, 5), st.lists(LIMITS, min_size=1, max_size=30))
def test_sums_are_those_of_the_trees_that_are_cut_out(seed, limits):
    tree = grown(seed)[0].tree_.model
    values = np.random.default_rng(seed).integers(-50, 50, (tree.node_count, 2))
    sums = sums_over_leaves(tree, values, PruningGrid.of(limits))
    for one, found in zip(limits, sums, strict=True):
        nested, kept = one.cut_and_kept(tree)
        leaves = nested.test == LEAF
        np.testing.assert_array_equal(found, values[kept[leaves]].sum(axis=0))
        np.testing.assert_array_equal(nested.n_node_samples, tree.n_node_samples[kept])
        assert one.prune(tree).equals(nested)


def test_a_grid_that_is_too_large_is_summed_cell_by_cell(monkeypatch):
    tree = grown(0)[0].tree_.model
    values = np.arange(tree.node_count)[:, None]
    limits = [PruningLimits(max_depth=d, min_samples_split=2 + d * d) for d in range(20)]
    expected = sums_over_leaves(tree, values, PruningGrid.of(limits))
    monkeypatch.setattr("dtrees.core.model.nested_trees.ROOM", -1000)
    np.testing.assert_array_equal(sums_over_leaves(tree, values, PruningGrid.of(limits)), expected)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_depth": 3},
        {"min_samples_split": 25},
        {"min_impurity_decrease": 0.02},
        {"max_leaf_nodes": 9},
        {"ccp_alpha": 0.03},
        {"max_depth": 4, "min_samples_split": 12, "max_leaf_nodes": 6, "ccp_alpha": 0.05},
    ],
    ids=lambda limits: ", ".join(limits),
)
def test_cut_trees_are_fits(limits):
    whole, X, y = grown(3)
    alone = dtrees.DecisionTreeRegressor(**limits).fit(X, y)
    assert PruningLimits(**limits).prune(whole.tree_.model).equals(alone.tree_.model)


def test_sums_over_branches():
    whole, X, y = grown(1, n_rows=120)
    tree = whole.tree_.model
    X_new = np.random.default_rng(9).uniform(0, 12, (70, 4))
    values = np.arange(140).reshape(70, 2)
    of_leaves = np.zeros((tree.node_count, 2), dtype=np.int64)
    np.add.at(of_leaves, whole.apply(X_new), values)
    sums = sums_over_branches(tree, of_leaves)
    passes = whole.decision_path(X_new).toarray().astype(bool)
    for node in range(tree.node_count):
        np.testing.assert_array_equal(sums[node], values[passes[:, node]].sum(axis=0))
    stump = dtrees.DecisionTreeRegressor().fit(X[:1], y[:1]).tree_.model
    np.testing.assert_array_equal(sums_over_branches(stump, values[:1]), values[:1])
