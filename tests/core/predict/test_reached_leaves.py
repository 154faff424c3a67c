"""Values of leaves are added up as the trees have them, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from dtrees import RandomForestClassifier, RandomForestRegressor
from dtrees.core.predict._reached_leaves import ReachedLeaves

N_ROWS = 900


def trees_of(kind):
    """Trees of 1, 2, 3 or 30 values, and leaves of some rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3))
    if kind == 1:
        y = 1e3 * X[:, 0] + rng.normal(size=N_ROWS)
        model = RandomForestRegressor(5, random_state=0, min_samples_leaf=3)
    else:
        y = rng.integers(0, kind, N_ROWS)
        model = RandomForestClassifier(5, random_state=0, min_samples_leaf=4 if kind < 30 else 1)
    model.fit(X, y, rng.random(N_ROWS))
    return model.forest_.trees, np.ascontiguousarray(model.apply(X).T, dtype=np.intp)


def added(trees, leaves):
    total = np.zeros((leaves.shape[1], trees[0].n_values))
    for tree, own in zip(trees, leaves, strict=True):
        total += tree.value[own]
    return total


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("n_rows", [0, 1, 5, 300, N_ROWS])
@pytest.mark.parametrize("kind", [1, 2, 3, 30])
def test_sums_of_values(kind, n_rows, is_wide):
    trees, leaves = trees_of(kind)
    if is_wide:
        trees = [replace(tree, statistics=tree.statistics.astype(np.int64)) for tree in trees]
    leaves = leaves[:, :n_rows].copy()
    total = np.zeros((n_rows, trees[0].n_values))
    reached = ReachedLeaves(trees, leaves)
    for begin, end in ((n_rows // 3, n_rows), (0, n_rows // 3)):
        reached.add_to(total, begin, end)
    assert total.tobytes() == added(trees, leaves).tobytes()


@pytest.mark.filterwarnings("ignore:invalid value")
def test_leaves_of_no_weight_are_nan():
    """A file may say so."""
    trees, leaves = trees_of(30)
    statistics = trees[1].statistics.copy()
    statistics[leaves[1, 0]] = 0
    trees = [trees[0], replace(trees[1], statistics=statistics)]
    total = np.zeros((N_ROWS, 30))
    ReachedLeaves(trees, leaves[:2]).add_to(total, 0, N_ROWS)
    assert np.isnan(total[0]).all()
    np.testing.assert_array_equal(total, added(trees, leaves[:2]))


def test_trees_of_one_leaf():
    X, y = np.zeros((20, 2)), np.arange(20.0)
    trees = RandomForestRegressor(2, random_state=0).fit(X, y).forest_.trees
    total, leaves = np.zeros((20, 1)), np.zeros((2, 20), dtype=np.intp)
    ReachedLeaves(trees, leaves).add_to(total, 0, 20)
    np.testing.assert_array_equal(total, added(trees, leaves))


def test_what_does_not_fit():
    trees, leaves = trees_of(3)
    for wrong in (-1, trees[2].node_count):
        broken = leaves.copy()
        broken[2, 17] = wrong
        with pytest.raises(ValueError, match="no node of tree 2"):
            ReachedLeaves(trees, broken)
    with pytest.raises(ValueError, match="one leaf for each row and tree"):
        ReachedLeaves(trees[:3], leaves)
    reached = ReachedLeaves(trees, leaves)
    for shape in ((N_ROWS, 2), (N_ROWS - 1, 3)):
        with pytest.raises(ValueError, match="do not fit the trees"):
            reached.add_to(np.zeros(shape), 0, 1)
    for begin, end in ((-1, 3), (3, 2), (0, N_ROWS + 1)):
        with pytest.raises(ValueError, match="There are no rows"):
            reached.add_to(np.zeros((N_ROWS, 3)), begin, end)
