"""Steps of leaves: the quotient of their sums, as integers, within bounds to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow.boosted_steps import (
    LeafSteps,
    bounds_of_nodes,
    few_bits,
    stretches,
    within,
)
from dtrees.core.grow.node_record import RECORD, PartialTree
from dtrees.core.losses.losses import NUMBERS
from tests.core.grow.boosted_cases import grown

N = 60
RNG = np.random.default_rng(0)
X = RNG.integers(0, 9, (N, 3)).astype(float)
Y = RNG.normal(size=N)


def made(loss="squared_error", weight=None, unit=1.0, **rules):
    """A tree of integers of gradients, its steps, and the rows of its leaves."""
    own = BoostingRules(min_samples_leaf=4, max_leaf_nodes=6, **rules)
    gradient = np.rint(-Y * 2**20).astype(int)
    grower, _ = grown(X, gradient, np.full(N, 2**20), own)
    raw = np.zeros((1, N))
    steps = LeafSteps(own, 0.1, Y, raw, weight, unit, True)
    of_steps = steps.of_tree(grower, 0, 0, NUMBERS[loss])
    leaves = {
        record: grower.rows_of_leaves[first : first + n].copy()
        for record, first, n in grower.leaves_of_tree().tolist()
    }
    return (grower.piece(), of_steps), raw[0], leaves


@pytest.mark.parametrize("weight", [None, RNG.integers(1, 5, N)])
def test_a_step_is_minus_gradient_by_hessian(weight):
    (piece, unit), raw, leaves = made(weight=weight)
    assert len(leaves) == 6
    for record, rows in leaves.items():
        stored = piece.statistics[record, 1] * unit / piece.statistics[record, 0]
        np.testing.assert_allclose(stored, 0.1 * Y[rows].mean(), atol=1e-6)
        assert (raw[rows] == stored).all()
        wanted = len(rows) if weight is None else weight[rows].sum()
        assert piece.statistics[record, 0] == wanted


def test_l2_shortens_steps():
    _, free, _ = made()
    _, bound, _ = made(l2=5.0)
    assert np.abs(bound).mean() < np.abs(free).mean()


def test_medians_are_those_of_the_rows():
    _, raw, leaves = made("absolute_error")
    for rows in leaves.values():
        np.testing.assert_allclose(raw[rows], 0.1 * np.median(Y[rows]), atol=0.2)
        assert len(set(raw[rows])) == 1


def test_monotonic_steps_rise():
    (piece, _), raw, _ = made(monotonic=(1, 0, 0))
    assert len(piece.nodes) > 1
    for others in np.unique(X[:, 1:], axis=0):
        own = np.flatnonzero((X[:, 1:] == others).all(axis=1))
        assert (np.diff(raw[own[np.argsort(X[own, 0])]]) >= 0).all()


def piece_of(children, columns):
    """A tree; children : {node: (left, right)}, columns: {node: column}."""
    n = 1 + 2 * len(children)
    nodes = np.zeros(n, dtype=RECORD)
    nodes["left"] = nodes["right"] = -1
    for node, (left, right) in children.items():
        nodes["left"][node], nodes["right"][node] = left, right
        nodes["column"][node] = columns[node]
    return PartialTree(nodes, np.zeros((n, 2), dtype=np.int64), np.zeros(0, dtype=np.uint64))


TREE = piece_of({0: (1, 2), 2: (3, 4), 4: (5, 6)}, {0: 0, 2: 1, 4: 2})
VALUES = np.array([0.0, 1.0, 3.0, 1.0, 7.0, 9.0, 5.0])


def test_bounds():
    lower, upper = bounds_of_nodes(TREE, VALUES, (1, 0, -1))
    # 2 between 1 and 3; column 1 has no direction; 4 is split at 7, where its left child is above
    assert lower.tolist() == [-np.inf, -np.inf, 2, 2, 2, 7, 2]
    assert upper.tolist() == [np.inf, 2, np.inf, np.inf, np.inf, np.inf, 7]


def test_values_beyond_bounds_count_as_the_bounds():
    values = np.array([0.0, 1.0, 3.0, 1.0, 7.0, 1.5, 1.0])
    lower, upper = bounds_of_nodes(TREE, values, (1, 0, -1))
    assert lower[5] == upper[6] == 2


def test_stretches():
    leaves = np.array([[1, 6, 4], [3, 0, 2], [5, 5, 1], [6, 2, 3]])
    first, n = stretches(TREE, leaves)
    assert first.tolist() == [0, 6, 0, 0, 2, 5, 2]
    assert n.tolist() == [10, 4, 6, 2, 4, 1, 3]


def test_weights_of_few_bits_stay():
    weights = np.array([1, 2**20 + 1, 7])
    assert few_bits(weights) is weights


@given(st.lists(st.integers(1, 2**56), min_size=1, max_size=8))
def test_few_bits(weights):
    weights = np.array(weights, dtype=np.int64)
    rounded = few_bits(weights)
    assert (rounded > 0).all()
    unit = 2 ** max(0, int(weights.sum()).bit_length() - 29)
    assert (rounded % unit == 0).all()
    assert (np.abs(rounded - weights) <= unit).all()


def stored(steps, weights):
    """Steps as a tree has them: quotients of integers."""
    exponent = 61 - np.frexp(np.abs(steps).max() * weights.sum())[1]
    weighted = np.rint(np.ldexp(steps * weights, exponent)).astype(np.int64)
    return weighted * 2.0**-exponent / weights


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.integers(1, 2**50)), min_size=2, max_size=20),
    st.floats(-9, 9),
)
def test_leaves_on_both_sides_of_a_bound(leaves, bound):
    steps, weights = map(np.array, zip(*leaves, strict=True))
    is_low = np.arange(len(steps)) % 2 == 0
    lower, upper = np.where(is_low, -np.inf, bound), np.where(is_low, bound, np.inf)
    found = stored(within(steps, lower, upper), few_bits(weights))
    assert found[is_low].max() <= found[~is_low].min()


@pytest.mark.parametrize("bound", [0.1, -3.7, 12345.678])
def test_all_leaves_at_a_bound_have_one_step(bound):
    rng = np.random.default_rng(0)
    weights = few_bits(rng.integers(1, 2**40, 50))
    steps = within(np.full(50, bound + 1), np.full(50, -np.inf), np.full(50, bound))
    assert set(stored(steps, weights).tolist()) == {steps[0]}
    assert steps[0] == pytest.approx(bound, rel=1e-6)
