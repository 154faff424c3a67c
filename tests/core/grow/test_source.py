"""Rows in one place: named cases of growth, and a tree that is the same however work is cut."""

from __future__ import annotations

from concurrent.futures import CancelledError
from threading import Event

import numpy as np
import pytest

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import scale_of
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.core.model.tree import AT_MOST, IN_SUBSET, LEAF
from dtrees.typing import serial
from tests.laws.tables import (
    Example,
    coded,
    coded_sparse,
    fit,
    grow_blocks,
    grow_parts,
    grow_tree,
    seeded,
    thresholds_of,
    tree_of_source,
)
from tests.laws.test_shared import folds
from tests.oracle.greedy import assert_tree_is_greedy
from tests.oracle.tree import Rules, oracle_fit

EXAMPLE = seeded("gini", 3, "none", max_features=2, seed=5)
MATRIX, TARGET, RULES = coded(EXAMPLE.table), EXAMPLE.target, EXAMPLE.rules


def source(target=TARGET, **how):
    return DatasetSource(MATRIX, target, RULES, **how)


def assert_same(piece, other):
    for name in ("nodes", "statistics", "words"):
        np.testing.assert_array_equal(getattr(piece, name), getattr(other, name))


def test_threads_and_lent_memory_do_not_matter():
    expected, arena = source().finish(), Arena()
    for n_threads in (1, 2, 2):
        assert_same(source(n_threads=n_threads, arena=arena).finish(), expected)


def test_draws_depend_on_the_path():
    whole, elsewhere = source().finish(), source().finish(path=12)
    assert whole.nodes["n"][0] == elsewhere.nodes["n"][0]
    assert whole.nodes["column"].tolist() != elsewhere.nodes["column"].tolist()


def test_the_pieces_of_sets_are_those_of_their_rows():
    rows = folds(EXAMPLE.n_rows, 3, 0)
    pieces = list(pieces_of_sets(source(), [RULES] * len(rows), of_sets(rows)))
    assert len(pieces) == len(rows)
    for own, piece in zip(rows, pieces, strict=True):
        assert_same(piece, source(TARGET.only(own)).finish())


def test_cancelled():
    def run(tasks):
        return serial(tasks)

    run.cancelled = Event()
    run.cancelled.set()
    with pytest.raises(CancelledError):
        source(run=run).finish()
    rows = folds(EXAMPLE.n_rows, 3, 0)
    with pytest.raises(CancelledError):
        list(pieces_of_sets(source(run=run), [RULES] * len(rows), of_sets(rows)))


def example(columns, y, criterion="gini", weight=None, **limits) -> Example:
    weight = None if weight is None else np.array(weight, dtype=float)
    table = [[float(v) if isinstance(v, int) else v for v in column] for column in columns]
    return Example(table, np.asarray(y), weight, criterion, limits)


class TestSingleLeaf:
    @pytest.mark.parametrize(
        ("columns", "y"),
        [
            ([[1]], [0]),  # one row
            ([[1, 2, 3]], [5, 5, 5]),  # one class
            ([[1, 1, 1], ["a", "a", "a"]], [0, 1, 0]),  # constant columns
            ([[None, None]], [0, 1]),  # nothing but missing values
        ],
    )
    @pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
    def test_leaf(self, columns, y, criterion):
        case = example(columns, y, criterion)
        tree = fit(case)
        assert tree.node_count == 1
        assert tree.n_node_samples[0] == len(y)
        assert_tree_is_greedy(tree, case.table, case.target, case.rules)

    def test_poisson_without_target_on_a_side(self):
        # Every split would leave a side whose deviance is infinite.
        assert fit(example([[1, 2, 3]], [0.0, 0.0, 2.0], "poisson")).node_count == 1
        assert fit(example([[1, 2, 3]], [1.0, 0.0, 2.0], "poisson")).node_count == 3


class TestTies:
    def test_lowest_column(self):
        column = [1, 2, 3, 4]
        assert fit(example([column, column], [0, 0, 1, 1])).feature[0] == 0

    def test_a_later_column_that_is_better(self):
        assert fit(example([[1, 2, 2, 3], [1, 2, 3, 4]], [0, 0, 1, 1])).feature[0] == 1

    def test_lowest_code(self):
        tree = fit(example([[1, 2, 3, 4]], [0, 1, 1, 0]))
        assert tree.threshold[0] == 1.5

    def test_zero_gain_is_taken(self):
        # XOR: no first split gains anything, and yet the tree is perfect.
        tree = fit(example([[0, 0, 1, 1], [0, 1, 0, 1]], [0, 1, 1, 0]))
        assert tree.gain[0] == 0.0
        assert tree.n_leaves == 4
        assert (tree.impurity[tree.test == LEAF] == 0).all()

    def test_zero_gain_is_not_taken_when_a_decrease_is_asked_for(self):
        case = example([[0, 0, 1, 1], [0, 1, 0, 1]], [0, 1, 1, 0], min_impurity_decrease=1e-9)
        assert fit(case).node_count == 1


class TestMissing:
    def test_goes_where_it_gains_more(self):
        for y, left in (([0, 0, 1, 1, 1], False), ([0, 0, 1, 1, 0], True)):
            tree = fit(example([[1, 2, 3, 4, None]], y))
            assert tree.threshold[0] == 2.5
            assert bool(tree.missing_go_to_left[0]) is left

    def test_alone(self):
        tree = fit(example([[1, 2, 3, None, None]], [0, 0, 0, 1, 1]))
        assert tree.threshold[0] == np.inf
        assert tree.code[0] == 3
        assert not tree.missing_go_to_left[0]

    @pytest.mark.parametrize(("y", "left"), [([0, 0, 0, 1], True), ([0, 1, 1, 1], False)])
    def test_unseen_goes_to_the_heavier_child(self, y, left):
        assert bool(fit(example([[1, 2, 3, 4]], y)).missing_go_to_left[0]) is left

    def test_unseen_and_equal_children_goes_right(self):
        assert not fit(example([[1, 2, 3, 4]], [0, 0, 1, 1])).missing_go_to_left[0]


class TestCategories:
    def test_low_mean_goes_left(self):
        tree = fit(example([list("aabbcc")], [5.0, 5.0, 1.0, 1.0, 1.0, 1.0], "squared_error"))
        assert tree.test[0] == IN_SUBSET
        assert int(tree.subset_words[0]) >> 1 == 0b110  # b, c
        assert tree.missing_go_to_left[0]  # the heavier child

    def test_multiclass_needs_a_subset(self):
        # {a, d} against {b, c}: no order of the letters cuts there.
        tree = fit(example([list("aabbccdd")], [0, 1, 2, 3, 3, 2, 1, 0], max_depth=1))
        assert int(tree.subset_words[0]) in (0b10010, 0b01100)

    @pytest.mark.parametrize("n", [63, 64, 65, 200])
    def test_subsets_of_many_words(self, n):
        letters = [f"c{k:03d}" for k in range(n)]
        y = [k % 2 for k in range(n)]
        tree = fit(example([letters], y))
        assert tree.node_count == 3
        assert len(tree.subset_words) == n // 64 + 1
        left = {c for c in range(n + 1) if int(tree.subset_words[c // 64]) >> (c % 64) & 1}
        assert left - {0} == {k + 1 for k in range(n) if y[k] == 0}


class TestHybrid:
    def test_above(self):
        # Neither `<= v` nor `= c` separates the large numbers from the rest.
        tree = fit(example([[1, 2, 3, 4, "x", "x"]], [0, 0, 1, 1, 0, 0]))
        assert tree.test[0] == 2
        assert tree.threshold[0] == 2.5
        assert tree.code[0] == 2
        assert tree.n_node_samples[1] == 2

    def test_numbers_or_categories(self):
        tree = fit(example([[1, 2, 3, "x", "y", "z"]], [0, 0, 0, 1, 1, 1]))
        assert tree.test[0] == AT_MOST
        assert tree.threshold[0] == np.inf
        assert tree.code[0] == 3

    def test_one_category(self):
        tree = fit(example([[1, 2, 3, "x", "y", "x"]], [0, 0, 0, 1, 0, 1]))
        assert tree.test[0] == IN_SUBSET
        assert int(tree.subset_words[0]) == 1 << 4


class TestLimits:
    def test_rows_of_weight_zero_do_not_count(self):
        case = example([[1, 2, 3, 4]], [0, 0, 1, 1], weight=[1, 0, 0, 2], min_samples_leaf=1)
        tree = fit(case)
        assert tree.n_node_samples.tolist() == [2, 1, 1]
        assert tree.threshold[0] == 2.5
        assert fit(example([[1, 2, 3, 4]], [0, 0, 1, 1], weight=[1, 0, 0, 2],
                           min_samples_split=3)).node_count == 1  # fmt: skip

    @pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
    @pytest.mark.parametrize("tiny", [1e-20, 1e-14])
    def test_a_side_may_weigh_less_than_a_rounding(self, criterion, tiny):
        # The first column parts the rows well; the second one splits off the row of no weight.
        good = [i % 2 for i in range(100)]
        low = 1 if criterion == "poisson" else 0  # whose sides need a target
        y = [low + (2 if i == 99 else i % 2) for i in range(100)]
        weight = [1.0] * 99 + [tiny]
        tree = fit(example([good, list(range(100))], y, criterion, weight=weight))
        assert tree.feature[0] == 0
        assert np.isfinite(tree.gain).all()
        assert np.isfinite(tree.impurity).all()

    def test_rows_of_weight_zero_do_not_set_the_scale(self):
        case = example([[1, 2, 3]], [0.3, 1.7, 1e6], "poisson", weight=[1, 2, 0])
        absent = case.target.take(np.array([0, 1]))
        assert scale_of(case.target, case.rules) == scale_of(absent, case.rules)

    @pytest.mark.parametrize(("least", "n_nodes"), [(1.5, 3), (1.6, 1)])
    def test_weight_of_a_leaf_is_in_user_units(self, least, n_nodes):
        case = example([[1, 2]], [0, 1], weight=[1.5, 1.75], min_weight_leaf=least)
        assert fit(case).node_count == n_nodes

    def test_decrease_is_a_share_of_the_root(self):
        # Gini of the root 0.5: a split that clears it decreases by 0.5.
        for least, n_nodes in ((0.5, 3), (0.5 + 1e-15, 1)):
            case = example([[1, 2]], [0, 1], weight=[3, 3], min_impurity_decrease=least)
            assert fit(case).node_count == n_nodes


class TestOracle:
    @pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
    def test_same_nested_nodes(self, criterion):
        # Without ties the slow tree as a whole is the fast one.
        rng = np.random.default_rng(7)
        numbers = rng.normal(size=80)
        column = [None if rng.random() < 0.1 else float(v) for v in numbers]
        table = [column, rng.choice(list("abc"), 80).tolist()]
        y = rng.integers(0, 3, 80) if criterion in ("gini", "entropy") else rng.gamma(2.0, size=80)
        case = example(table, y, criterion, rng.uniform(0.5, 2, 80), min_samples_leaf=5)
        tree = fit(case)
        fast = []
        slow = [oracle_fit(case.table, case.target, Rules(criterion, min_samples_leaf=5))]
        while slow:
            node, place = slow.pop(), len(fast)
            fast.append(node)
            assert node["n"] == tree.n_node_samples[place]
            np.testing.assert_allclose(node["value"], tree.value[place], rtol=1e-12)
            assert node["impurity"] == pytest.approx(tree.impurity[place], rel=1e-9, abs=1e-12)
            assert ("left" in node) == (tree.test[place] != LEAF)
            if "left" in node:
                assert node["column"] == tree.feature[place]
                assert node["missing_left"] == tree.missing_go_to_left[place]
                assert node["gain"] == pytest.approx(tree.gain[place], rel=1e-9)
                if node["threshold"] is not None:
                    assert node["threshold"] == tree.threshold[place]
                slow += [node["right"], node["left"]]
        assert len(fast) == tree.node_count


class TestUnits:
    @pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e4, 1e20, 1e200])
    def test_fractional_weights_of_any_size(self, scale):
        rng = np.random.default_rng(0)
        column, y = rng.normal(size=50).tolist(), rng.normal(size=50)
        weight = rng.uniform(0.5, 1, 50)
        one = fit(example([column], y, "squared_error", weight, max_depth=3))
        other = fit(example([column], y, "squared_error", weight * scale, max_depth=3))
        np.testing.assert_array_equal(one.threshold, other.threshold)
        np.testing.assert_allclose(one.value, other.value, rtol=1e-9)

    @pytest.mark.parametrize("scale", [1e-150, 1.0, 1e140])
    @pytest.mark.parametrize("shift", [0.0, 1e6])
    def test_targets_of_any_size(self, scale, shift):
        rng = np.random.default_rng(0)
        column, y = rng.normal(size=50).tolist(), rng.normal(size=50)
        case = example([column], (y + shift) * scale, "squared_error", max_depth=3)
        tree = fit(case)
        assert_tree_is_greedy(tree, case.table, case.target, case.rules)
        np.testing.assert_allclose(tree.value[0], ((y + shift) * scale).mean(), rtol=1e-13)

    def test_class_weights_multiply(self):
        rng = np.random.default_rng(0)
        table = [rng.normal(size=60).tolist()]
        y = rng.integers(0, 2, 60)
        by_class = Example(table, y, None, "gini", {}, {0: 1.0, 1: 3.0})
        by_row = Example(table, y, np.where(y == 1, 3.0, 1.0), "gini")
        a, b = fit(by_class), fit(by_row)
        np.testing.assert_array_equal(a.threshold, b.threshold)
        np.testing.assert_array_equal(a.value, b.value)
        np.testing.assert_array_equal(a.weighted_n_node_samples, b.weighted_n_node_samples)


class TestStorage:
    def test_mixed_widths_in_one_table(self):
        # 8, 16 and 32 bits and sparse columns next to each other.
        rng = np.random.default_rng(0)
        n = 70_000
        table = [
            rng.integers(0, 5, n).astype(float).tolist(),
            rng.integers(0, 300, n).astype(float).tolist(),
            rng.permutation(n).astype(float).tolist(),
        ]
        y = (np.array(table[2]) > 40_000) ^ (np.array(table[1]) > 100) ^ (rng.random(n) < 0.1)
        case = Example(table, y.astype(int), None, "gini", {"max_depth": 4})
        matrix = coded(table)
        assert matrix.storage.tolist() == [0, 1, 2]
        tree = grow_tree(case, matrix)
        assert set(tree.feature) >= {1, 2}
        assert tree.equals(grow_tree(case, coded_sparse(table, 0)))

    def test_rounds_under_a_small_budget(self):
        # One node per round: more rounds, the same tree.
        rng = np.random.default_rng(0)
        table = [rng.integers(0, 9, 200).astype(float).tolist() for _ in range(3)]
        case = Example(table, rng.integers(0, 3, 200), None, "gini", {"max_depth": 5})
        matrix, target = coded(table), case.target
        half = np.arange(200) < 90
        parts = [(matrix.take(rows), target.take(rows)) for rows in (half, ~half)]
        expected = grow_parts(case, parts, gather_rows=0)
        assert fit(case).equals(expected)

        def thresholds(columns, below, above, places):  # codes alone
            return np.zeros(len(columns)), np.asarray(below, dtype=np.uint32)

        tree = grow_blocks(parts, case.rules, thresholds, gather_rows=0, histogram_budget=1)
        np.testing.assert_array_equal(tree.statistics, expected.statistics)

    def test_no_columns_that_vary_after_weights(self):
        matrix = coded([[1.0, 2.0, 2.0]])
        target = Target.classification([0, 1, 0], [0.0, 1.0, 1.0])
        source = DatasetSource(matrix, target, GrowthRules(criterion="gini"))
        tree = tree_of_source(source, thresholds_of([[1.0, 2.0, 2.0]]))
        assert tree.node_count == 1
