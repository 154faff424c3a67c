"""What leaves add, against fractions, and records of trees behind each other."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow._leaf_steps import (
    GrownRecords,
    add_leaf_steps,
    newton_steps,
    weights_of_leaves,
)
from dtrees.core.grow.assembly import join
from tests.core.grow.boosted_cases import derivatives, free_rules, grown, random_columns, table_of

N = 80
RNG = np.random.default_rng(1)
X = RNG.integers(0, 9, (N, 3)).astype(float)
Y = RNG.normal(size=N)


@given(
    sums=st.lists(st.tuples(st.integers(0, 2**61), st.integers(-(2**61), 2**61)), max_size=9),
    l2=st.floats(0, 1e18),
    shift=st.integers(-30, 30),
    most=st.floats(0.5, 8.0) | st.just(math.inf),
    n_rounded=st.integers(0, 2**32),
)
def test_a_newton_step_is_a_bounded_quotient(sums, l2, shift, most, n_rounded):
    numbers = np.array(sums, dtype=np.int64).reshape(-1, 2)
    found = newton_steps(numbers, np.full(len(sums), float(n_rounded)), l2, shift, most)
    for step, (hessian, gradient) in zip(found.tolist(), sums, strict=True):
        below = Fraction(hessian) + Fraction(l2)
        is_zero = below == 0 or 2 * abs(gradient) <= n_rounded
        exact = 0 if is_zero else -Fraction(gradient) / 2**shift / below
        limit = Fraction(most) if math.isfinite(most) else abs(exact)
        np.testing.assert_allclose(step, float(max(min(exact, limit), -limit)), rtol=1e-15)


@pytest.fixture
def tree():
    gradient = np.rint(-Y * 2**20).astype(int)
    rules = BoostingRules(min_samples_leaf=4, max_leaf_nodes=7)
    return grown(X, gradient, np.full(N, 2**20), rules)


@pytest.mark.parametrize("weight", [None, RNG.integers(1, 2**40, N)])
def test_weights_are_those_of_the_rows(tree, weight):
    grower, _ = tree
    found = weights_of_leaves(grower, weight)
    rows = [grower.rows_of_leaves[at : at + n] for _, at, n in grower.leaves_of_tree().tolist()]
    expected = [len(own) if weight is None else weight[own].sum() for own in rows]
    assert found.tolist() == expected


@pytest.mark.parametrize("unit", [1.0, 0.3])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1.0, 1e20])
def test_rows_move_by_what_the_tree_stores(tree, scale, unit):
    grower, piece = tree
    leaves = grower.leaves_of_tree()
    weights = RNG.integers(1, 2**45, len(leaves))
    steps = scale * RNG.normal(size=len(leaves))
    raw = np.zeros(N)
    of_steps = add_leaf_steps(grower, steps, weights, unit, raw)
    statistics = grower.piece().statistics
    assert statistics[0, 0] == weights.sum()
    assert abs(statistics[:, 1]).max() <= 2**61
    assert statistics[0, 1] == statistics[leaves[:, 0], 1].sum()
    for (node, first, n), step in zip(leaves.tolist(), steps, strict=True):
        stored = statistics[node, 1] * of_steps / (statistics[node, 0] * unit)
        np.testing.assert_allclose(stored, step, rtol=1e-3, atol=scale * 1e-12)
        assert (raw[grower.rows_of_leaves[first : first + n]] == stored).all()
    for node, record in enumerate(piece.nodes):
        if record["left"] >= 0:
            children = statistics[[record["left"], record["right"]]]
            assert statistics[node].tolist() == children.sum(axis=0).tolist()


def test_sizes_that_do_not_fit_are_refused(tree):
    grower, _ = tree
    with pytest.raises(AssertionError):
        weights_of_leaves(grower, np.ones(N + 1, dtype=np.int64))
    with pytest.raises(AssertionError):
        add_leaf_steps(grower, np.zeros(2), np.ones(2, dtype=np.int64), 1.0, np.zeros(N))


@given(st.integers(0, 100), st.lists(st.integers(2, 90), min_size=1, max_size=4))
def test_trees_stand_behind_each_other_in_preorder(seed, sizes):
    rng = np.random.default_rng(seed)
    records, pieces = GrownRecords(), []
    for n in sizes:
        table = table_of(random_columns(rng, n, 3))
        grower, piece = grown(table, *derivatives(rng, n), free_rules(max_leaf_nodes=n // 2 + 1))
        pieces.append(join([piece]))
        records.append(grower, float(n))
    found = records.take()
    assert found.n_nodes.tolist() == [len(piece.nodes) for piece in pieces]
    assert found.units.tolist() == [float(n) for n in sizes]
    np.testing.assert_array_equal(
        found.statistics, np.concatenate([piece.statistics for piece in pieces])
    )
    assert found.words.tolist() == np.concatenate([piece.words for piece in pieces]).tolist()
    first_word = np.cumsum([0] + [len(piece.words) for piece in pieces])
    ends = np.cumsum(found.n_nodes)
    for piece, end, word in zip(pieces, ends.tolist(), first_word.tolist(), strict=False):
        nodes = piece.nodes.copy()
        nodes["subset"] += np.where(nodes["subset"] >= 0, word, 0)
        for name in nodes.dtype.names:
            own = found.nodes[name][end - len(nodes) : end]
            np.testing.assert_array_equal(own, nodes[name])


def test_what_is_taken_is_gone():
    rng = np.random.default_rng(0)
    records = GrownRecords()
    for _ in range(2):
        assert len(records.take().nodes) == records.n_trees == 0
        gradient, hessian = derivatives(rng, 200)
        grower, piece = grown(rng.normal(size=(200, 2)), gradient, hessian, free_rules())
        records.append(grower)
        first, again = records.n_trees, records.take()
        assert (first, len(again.nodes)) == (1, len(piece.nodes))
