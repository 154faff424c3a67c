"""Steps of leaves: the quotient of their sums, stored as integers, and what rows are moved by."""

import numpy as np
import pytest

from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow.boosted_steps import LeafSteps, bits_of
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


@pytest.mark.parametrize(("value", "bits"), [(0.0, 0), (0.75, 0), (1.0, 1), (5.0, 3)])
def test_bits(value, bits):
    assert bits_of(value) == bits
