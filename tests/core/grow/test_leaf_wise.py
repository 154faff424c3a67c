"""Trees of boosting: the leaf that gains most is split next, and leaves get steps."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow._boosted_rows import RowDraws
from dtrees.core.grow._leaf_wise import (
    GrownRecords,
    add_leaf_steps,
    newton_steps,
    weights_of_leaves,
)
from dtrees.core.grow.assembly import join
from tests.core.grow.boosted_cases import (
    derivatives,
    free_rules,
    grown,
    grown_from,
    random_columns,
    table_of,
)

pytest.importorskip("pandas")


def made(seed, n=60, n_columns=4, **rules):
    rng = np.random.default_rng(seed)
    columns = random_columns(rng, n, n_columns)
    gradient, hessian = derivatives(rng, n)
    grower, piece = grown(table_of(columns), gradient, hessian, free_rules(**rules))
    return grower, piece, gradient, hessian


@given(st.integers(0, 60), st.integers(1, 5))
def test_a_node_has_the_sums_of_its_rows(seed, min_rows):
    grower, piece, gradient, hessian = made(seed, min_samples_leaf=min_rows)
    rows = {}
    for record, first, n in grower.leaves_of_tree().tolist():
        rows[record] = set(grower.rows_of_leaves[first : first + n].tolist())
        assert (np.diff(grower.rows_of_leaves[first : first + n].astype(int)) > 0).all()
        assert n >= min_rows or len(piece.nodes) == 1
    for i in range(len(piece.nodes) - 1, -1, -1):
        left, right = piece.nodes["left"][i], piece.nodes["right"][i]
        if left >= 0:
            assert i < left < right
            rows[i] = rows[left] | rows[right]
        own = np.array(sorted(rows[i]))
        assert piece.nodes["n"][i] == len(own)
        np.testing.assert_array_equal(
            piece.statistics[i], [hessian[own].sum(), gradient[own].sum()]
        )
    assert rows[0] == set(range(60))


@given(st.integers(0, 40), st.integers(2, 12))
def test_few_leaves_are_the_first_that_are_made(seed, most):
    _, whole, *_ = made(seed)
    _, few, *_ = made(seed, max_leaf_nodes=most)
    n_leaves = np.count_nonzero(few.nodes["left"] < 0)
    assert n_leaves == min(most, np.count_nonzero(whole.nodes["left"] < 0))
    # whatever leads to the others gains no more than what was split last
    inner = few.nodes["left"] >= 0
    if n_leaves == most and inner.sum() < (whole.nodes["left"] >= 0).sum():
        gains = np.sort(whole.nodes["gain"])[::-1]
        assert set(few.nodes["gain"][inner]) <= set(gains)


@given(st.integers(0, 40))
def test_the_order_of_leaves_decides_only_which_are_split(seed):
    """Without a limit, leaves are split in another order, and the tree is the same."""
    _, last_first, *_ = made(seed)
    _, best_first, *_ = made(seed, max_leaf_nodes=10**6)
    assert paths(last_first) == paths(best_first)


def paths(piece):
    """Tests and sums of all nodes, by the way to them."""
    found, open_ones = {}, [(0, "")]
    while open_ones:
        i, way = open_ones.pop()
        node = piece.nodes[i]
        found[way] = (*piece.statistics[i].tolist(), int(node["column"]), int(node["boundary"]))
        if node["left"] >= 0:
            open_ones += [(node["left"], way + "l"), (node["right"], way + "r")]
    return found


@given(st.integers(0, 20))
def test_the_smaller_child_is_counted(seed):
    grower, piece, *_ = made(seed)
    nodes = piece.nodes
    most = len(grower.rows_of_leaves) + sum(
        min(nodes["n"][node["left"]], nodes["n"][node["right"]])
        for node in nodes
        if node["left"] >= 0
    )
    assert len(grower.rows_of_leaves) <= grower.n_counted <= most


@given(st.integers(0, 20))
def test_what_rounding_gains_is_no_gain(seed):
    """Gradients in proportion to hessians: no split gains, but for the last bits of a score."""
    rng = np.random.default_rng(seed)
    hessian = rng.integers(2**12, 2**17, 200)
    columns = random_columns(rng, 200, 6)
    _, piece = grown(table_of(columns), -7 * hessian, hessian, free_rules())
    assert len(piece.nodes) == 1


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_leaf_is_deeper_than_the_limit(depth):
    _, piece, *_ = made(1, n=200, max_depth=depth)
    assert max(map(len, paths(piece))) == depth


@pytest.mark.parametrize("n_columns", [3, 9, 20])
def test_helpers_change_nothing(n_columns):
    rng = np.random.default_rng(n_columns)
    table = table_of(random_columns(rng, 500, n_columns))
    gradient, hessian = derivatives(rng, 500)
    pieces = [
        grown(table, gradient, hessian, free_rules(max_leaf_nodes=40), helped)[1]
        for helped in (False, True)
    ]
    for name in ("nodes", "statistics", "words"):
        np.testing.assert_array_equal(getattr(pieces[0], name), getattr(pieces[1], name))


@pytest.mark.parametrize("n_values", [200, 2_000])
def test_columns_of_many_codes_are_read_by_column(n_values):
    """A column of 16 bits has the splits of its ranks in 8 bits, where both fit."""
    rng = np.random.default_rng(0)
    column = rng.integers(0, n_values, 3_000).astype(float)
    gradient, hessian = derivatives(rng, 3_000)
    rules = free_rules(max_leaf_nodes=8, min_samples_leaf=100)
    grower, piece = grown(column[:, None], gradient, hessian, rules)
    for _, first, n in grower.leaves_of_tree().tolist():
        own = column[grower.rows_of_leaves[first : first + n]]
        inside = (column >= own.min()) & (column <= own.max())
        assert inside.sum() == n >= 100  # leaves are stretches of values
    assert len(piece.nodes) == 15


@given(st.integers(0, 40), st.sampled_from([0.3, 0.8]))
def test_a_tree_of_some_rows_is_theirs_alone(seed, share):
    rng = np.random.default_rng(seed)
    table = table_of(random_columns(rng, 80, 3))
    gradient, hessian = derivatives(rng, 80)
    draws = RowDraws(80)
    draws.draw(seed, 0, share)
    rules = free_rules(max_leaf_nodes=7)
    own = draws.drawn
    _, coded = CodeBook.fit_encode(table, max_bins=None)
    grower, piece = grown_from(coded, gradient, hessian, rules, draws=draws)
    _, alone = grown_from(coded.take(own), gradient[own], hessian[own], rules)
    for name in piece.nodes.dtype.names:
        if name != "beyond":  # the next code of the column, not of the rows
            np.testing.assert_array_equal(piece.nodes[name], alone.nodes[name])
    np.testing.assert_array_equal(piece.statistics, alone.statistics)
    np.testing.assert_array_equal(piece.words, alone.words)
    assert sorted(grower.rows_of_leaves.tolist()) == own.tolist()


@given(st.integers(0, 40))
def test_other_rows_walk_along(seed):
    """Each row gets the step of the leaf that it would have reached."""
    rng = np.random.default_rng(seed)
    column = rng.integers(0, 9, 80).astype(float)
    gradient, hessian = derivatives(rng, 80)
    draws = RowDraws(80)
    draws.draw(seed, 0, 0.5)
    grower, _ = grown(column[:, None], gradient, hessian, free_rules(max_leaf_nodes=4), draws=draws)
    raw, steps = np.zeros(80), np.arange(1.0, grower.leaves_of_tree().shape[0] + 1)
    grower.add_steps(steps, raw)
    assert (raw > 0).all()
    for value in np.unique(column):
        assert len(set(raw[column == value])) == 1
    for (_, first, n), step in zip(grower.leaves_of_tree().tolist(), steps, strict=True):
        assert set(raw[grower.rows_of_leaves[first : first + n]]) == {step}


def test_a_grower_grows_one_tree_after_the_other():
    rng = np.random.default_rng(3)
    table = table_of(random_columns(rng, 100, 3))
    gradient, hessian = derivatives(rng, 100)
    grower, first = grown(table, gradient, hessian, free_rules(max_leaf_nodes=9))
    packed = (gradient.astype(np.int64) << 32 | hessian).view(np.uint64)
    units = 2.0**-20, 2.0**-20
    for _ in range(3):
        grower.grow(packed, int(hessian.sum()), int(gradient.sum()), units)
        np.testing.assert_array_equal(grower.piece().nodes, first.nodes)


@given(st.integers(0, 40), st.integers(2, 40))
def test_chosen_rows_are_a_table_of_their_own(seed, n_chosen):
    rng = np.random.default_rng(seed)
    _, coded = CodeBook.fit_encode(table_of(random_columns(rng, 60, 4)), max_bins=None)
    gradient, hessian = derivatives(rng, 60)
    chosen = np.sort(rng.permutation(60)[:n_chosen]).astype(np.uint32)
    among, piece = grown_from(coded, gradient, hessian, free_rules(), chosen=chosen)
    alone, own = grown_from(coded.take(chosen), gradient[chosen], hessian[chosen], free_rules())
    for name in piece.nodes.dtype.names:
        np.testing.assert_array_equal(piece.nodes[name], own.nodes[name])
    np.testing.assert_array_equal(piece.statistics, own.statistics)
    np.testing.assert_array_equal(among.leaves_of_tree(), alone.leaves_of_tree())
    np.testing.assert_array_equal(among.rows_of_leaves, chosen[alone.rows_of_leaves])
    raw = np.zeros(60)
    among.add_steps(np.ones(len(among.leaves_of_tree())), raw)
    assert raw.sum() == raw[chosen].sum() == n_chosen


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
        limit = Fraction(min(most, sys.float_info.max))
        step = max(min(step, sys.float_info.max), -sys.float_info.max)  # beyond floats it is inf
        np.testing.assert_allclose(step, float(max(min(exact, limit), -limit)), rtol=1e-15)


@pytest.fixture(name="tree")
def grown_tree():
    return tree_of_seven_leaves()


def tree_of_seven_leaves():
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


@pytest.mark.parametrize("are_counts", [False, True])
@pytest.mark.parametrize("weight", [None, np.full(N, 2**19)])
def test_steps_of_leaves_are_those_of_their_sums(tree, weight, are_counts):
    grower, piece = tree
    leaves, sums = grower.leaves_of_tree(), piece.statistics
    counts = leaves[:, 2] * (1.0 if weight is None or not are_counts else 2.0**19)
    steps = 0.1 * newton_steps(sums[leaves[:, 0]], counts, grower.l2, 3, 0.5)
    assert np.ptp(steps) > 0
    found, expected = np.zeros((1, N)), np.zeros((1, N))
    unit = add_leaf_steps(grower, weight, 1.0, found, ([3], 0.5, 0.1, are_counts))
    twin, _ = tree_of_seven_leaves()
    assert unit == add_leaf_steps(twin, weight, 1.0, expected, None, steps[None])
    assert found.tolist() == expected.tolist()
    found = found[0]
    for (_, first, n), step in zip(leaves.tolist(), steps.tolist(), strict=True):
        np.testing.assert_allclose(found[grower.rows_of_leaves[first : first + n]], step, rtol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 0.3])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1.0, 1e20])
def test_rows_move_by_what_the_tree_stores(tree, scale, unit):
    grower, piece = tree
    leaves = grower.leaves_of_tree()
    weights = RNG.integers(1, 2**45, len(leaves))
    steps = scale * RNG.normal(size=len(leaves))
    raw = np.zeros(N)
    (of_steps,) = add_leaf_steps(grower, None, unit, raw[None], None, steps[None], weights)
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
