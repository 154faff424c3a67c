"""Laws of growth on small tables: the fast tree is the slow one, however the rows are given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from dtrees.core.model import pruning
from dtrees.core.model.pruning import PruningLimits
from dtrees.core.model.tree import LEAF, Tree
from tests.laws.tables import (
    KINDS,
    ORDERED,
    Example,
    coded,
    coded_sparse,
    examples,
    fit,
    grow_parts,
    grow_tree,
)
from tests.oracle.greedy import assert_tree_is_greedy

SEEDS = st.integers(0, 2**32 - 1)


def assert_equal(a: Tree, b: Tree, apart_from: tuple[str, ...] = ()) -> None:
    """Bit for bit."""
    for name, array in a.arrays().items():
        other = getattr(b, name)
        if name not in apart_from:
            same = array.dtype == other.dtype and array.tobytes() == other.tobytes()
            assert same, f"{name}:\n{array}\n{other}"


def check(example: Example, tree: Tree) -> None:
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)


class TestFastIsSlow:
    @given(examples())
    def test_everything(self, example):
        check(example, fit(example))

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("kind", KINDS)
    @given(data=st.data())
    def test_one_kind(self, kind, data):
        example = data.draw(examples(kinds=(kind,), limits=False, max_rows=24))
        check(example, fit(example))

    @given(examples(kinds=("categories", "hybrid"), min_classes=3, max_values=13, max_rows=40))
    def test_many_categories(self, example):
        check(example, fit(example))

    @given(examples(), SEEDS)
    def test_sparse(self, example, seed):
        check(example, grow_tree(example, coded_sparse(example.table, seed)))


class TestStorageDoesNotMatter:
    @given(examples(draws=True, random_splits=True), SEEDS)
    def test_dense_is_sparse(self, example, seed):
        sparse = grow_tree(example, coded_sparse(example.table, seed))
        assert_equal(fit(example), sparse)

    @given(examples(draws=True, random_splits=True), st.sampled_from([300, 70_000]))
    def test_width(self, example, largest_code):
        wide = coded(example.table, largest_code)
        assert_equal(fit(example), grow_tree(example, wide))

    @given(examples(draws=True))
    def test_presorted(self, example):
        wide = coded(example.table, 70_000)
        order = np.asfortranarray(np.argsort(wide.u32, axis=0, kind="stable").astype(np.uint32))
        presorted = replace(wide, order32=order)
        assert_equal(fit(example), grow_tree(example, presorted))


class TestManyCategories:
    @pytest.mark.parametrize("kind", ["many categories", "hybrid"])
    @given(data=st.data())
    def test_greedy(self, kind, data):
        penalty = data.draw(st.sampled_from([0.3, 1.0, 4.0]))
        kinds = (kind, "ties", "many categories")
        example = data.draw(examples(kinds=kinds, limits=False, max_values=16))
        example = replace(example, limits={"category_penalty": penalty})
        check(example, fit(example))

    @given(examples(kinds=("categories", "ties"), max_values=2, draws=True))
    def test_two_pay_nothing(self, example):
        free = replace(example, limits={**example.limits, "category_penalty": 0.0})
        dear = replace(example, limits={**example.limits, "category_penalty": 1e6})
        assert_equal(fit(free), fit(dear))


class TestWeights:
    @given(examples(weights=("integers",), limits=False))
    def test_two_is_twice(self, example):
        twice = example.take(np.repeat(np.arange(example.n_rows), example.weight.astype(int)))
        repeated = replace(twice, weight=None)
        assert_equal(fit(example), fit(repeated), apart_from=("n_node_samples",))

    @given(
        examples(kinds=("many categories", "ties"), weights=("integers",), limits=False),
        st.sampled_from([0.3, 1.0, 4.0]),
    )
    def test_two_is_twice_with_many_categories(self, example, penalty):
        example = replace(example, limits={"category_penalty": penalty})
        twice = example.take(np.repeat(np.arange(example.n_rows), example.weight.astype(int)))
        repeated = replace(twice, weight=None)
        assert_equal(fit(example), fit(repeated), apart_from=("n_node_samples",))

    @given(examples(draws=True, weights=("zeros", "fractions")))
    def test_zero_is_absent(self, example):
        matrix, target = coded(example.table), example.target
        rows = np.flatnonzero(example.weight > 0)
        absent = grow_tree(example, matrix.take(rows), target.take(rows))
        assert_equal(grow_tree(example, matrix, target), absent)

    @given(examples(draws=True, random_splits=True, weights=("none",)), st.integers(1, 2), SEEDS)
    def test_zero_and_one(self, example, n_threads, seed):
        # Rows of weight zero are left out, and the others are counted by the kernels of all rows.
        given = np.random.default_rng(seed).integers(0, 2, example.n_rows).astype(float)
        given[0] = 1
        example = replace(example, weight=given)
        rows = np.flatnonzero(given)
        for matrix in (coded(example.table), coded_sparse(example.table, seed)):
            tree = grow_parts(example, [(matrix, example.target)], n_threads=n_threads)
            assert_equal(tree, grow_tree(example, matrix.take(rows), example.target.take(rows)))

    @given(
        examples(weights=("integers",), limits=False, criteria=("gini",)),
        st.sampled_from([-3, 1, 10]),
    )
    def test_unit_does_not_matter(self, example, power):
        unit = 2.0**power
        scaled = fit(replace(example, weight=example.weight * unit))
        tree = fit(example)
        other = {"statistics", "gain", "weighted_n_node_samples"}
        assert_equal(tree, scaled, apart_from=tuple(other))
        np.testing.assert_array_equal(tree.gain * unit, scaled.gain)


class TestOrderDoesNotMatter:
    @given(examples(draws=True, random_splits=True), SEEDS)
    def test_rows(self, example, seed):
        shuffled = example.take(np.random.default_rng(seed).permutation(example.n_rows))
        assert_equal(fit(example), fit(shuffled))

    @given(
        examples(draws=True, random_splits=True), st.integers(2, 3), st.sampled_from([0, 1 << 19])
    )
    def test_threads(self, example, n_threads, level_entries):
        # Small tables go the way of large ones: threads share columns, and get subtrees.
        tuning = Tuning(level_entries=level_entries, task_entries=0)
        assert_equal(fit(example), fit(example, n_threads=n_threads, tuning=tuning))

    @given(examples(max_rows=150), st.integers(1, 2), st.sampled_from([0, 2, 5, 9]))
    def test_histograms(self, example, n_threads, counted_rows):
        # Columns that are read by sorted entries here are read by histogram there, down to nodes
        # of some size or to the leaves.
        counted = Tuning(counted_rows=counted_rows, level_entries=0, task_entries=0)
        assert_equal(fit(example), fit(example, n_threads=n_threads, tuning=counted))

    @given(examples(weights=("integers", "fractions"), max_rows=60), st.data())
    def test_the_least_weight_is_met_to_the_last_bit(self, example, data):
        # A side that weighs exactly the limit is allowed, whichever way its weight was summed up.
        column = example.table[0]
        value = data.draw(st.sampled_from(column))
        target = example.target
        weight = np.ones(target.n_rows, dtype=np.int64) if target.w is None else target.w
        side = sum(int(w) for w, v in zip(weight, column, strict=True) if v == value)
        limit = side * target.weight_unit
        limited = replace(example, limits={**example.limits, "min_weight_leaf": limit})
        counted = fit(limited, tuning=Tuning(counted_rows=0))
        assert_equal(fit(limited), counted)
        assert_equal(counted, grow_tree(limited, coded_sparse(example.table, 1)))

    @given(
        examples(draws=True, random_splits=True),
        st.integers(1, 4),
        st.sampled_from([0, 5, 65_536]),
        st.booleans(),
        SEEDS,
    )
    def test_shards(self, example, n_shards, gather_rows, sparse, seed):
        # Any blocks of rows, and nodes that are gathered late, early or at the root.
        matrix, target = coded(example.table), example.target
        if sparse:
            matrix = coded_sparse(example.table, seed)
        cuts = np.random.default_rng(seed).integers(0, example.n_rows + 1, n_shards - 1)
        blocks = np.split(np.arange(example.n_rows), np.sort(cuts))
        parts = [(matrix.take(rows), target.take(rows)) for rows in blocks if len(rows)]
        tree = grow_parts(example, parts, gather_rows=gather_rows)
        assert_equal(fit(example), tree)

    @given(
        examples(kinds=ORDERED, criteria=("gini", "entropy"), weights=("none", "integers")), SEEDS
    )
    def test_labels(self, example, seed):
        example = replace(example, class_weight=None)
        k = example.target.n_classes
        names = np.random.default_rng(seed).permutation(k)
        _, codes = np.unique(example.y, return_inverse=True)
        a, b = fit(example), fit(replace(example, y=names[codes]))
        np.testing.assert_array_equal(a.statistics, b.statistics[:, names])
        np.testing.assert_array_equal(a.value, b.value[:, names])
        np.testing.assert_allclose(a.impurity, b.impurity, rtol=1e-12, atol=1e-15)
        assert_equal(a, b, apart_from=("statistics", "value", "impurity"))

    @given(examples(kinds=ORDERED))
    def test_decreasing_transform_mirrors_gains(self, example):
        # Where the best split is unique it stays the best one; ties may go to the other end.
        table = [[None if v is None else -v for v in column] for column in example.table]
        mirrored = fit(replace(example, table=table))
        tree = fit(example)
        error = 1e-11 * tree.impurity[0] * tree.weighted_n_node_samples[0]
        np.testing.assert_allclose(tree.gain[0], mirrored.gain[0], rtol=1e-11, atol=error)


class TestGrowOnceDecideLater:
    """Early stopping and pruning are two ways to one tree, bit for bit."""

    @given(examples(limits=False), st.integers(0, 5))
    def test_max_depth(self, example, depth):
        early = fit(replace(example, limits={"max_depth": depth}))
        assert_equal(early, PruningLimits(max_depth=depth).prune(fit(example)))

    @given(examples(limits=False), st.integers(2, 12))
    def test_min_samples_split(self, example, n_rows):
        early = fit(replace(example, limits={"min_samples_split": n_rows}))
        assert_equal(early, PruningLimits(min_samples_split=n_rows).prune(fit(example)))

    @given(examples(limits=False), st.floats(0, 1))
    def test_min_impurity_decrease(self, example, share):
        tree = fit(example)
        least = share * tree.impurity[0]
        early = fit(replace(example, limits={"min_impurity_decrease": least}))
        assert_equal(early, PruningLimits(min_impurity_decrease=least).prune(tree))

    @given(examples(limits=False), st.integers(0, 99))
    def test_decrease_of_a_node(self, example, which):
        # Exactly what a node of the tree decreases: that node is split, by both ways.
        tree = fit(example)
        decrease = tree.gain / tree.weighted_n_node_samples[0]
        least = float(decrease[which % tree.node_count])
        early = fit(replace(example, limits={"min_impurity_decrease": least}))
        assert_equal(early, PruningLimits(min_impurity_decrease=least).prune(tree))

    @given(examples())
    def test_leaves_and_path(self, example):
        tree = fit(example)
        for k in (1, 2, 3, 5):
            assert PruningLimits(max_leaf_nodes=k).prune(tree).n_leaves == min(k, tree.n_leaves)
        alphas, impurities = pruning.cost_complexity_path(tree)
        leaf = tree.test == LEAF
        share = tree.weighted_n_node_samples[leaf] / tree.weighted_n_node_samples[0]
        np.testing.assert_allclose(impurities[0], share @ tree.impurity[leaf], atol=1e-9)
        assert len(alphas) <= tree.n_leaves
        np.testing.assert_allclose(impurities[-1], tree.impurity[0], rtol=1e-9, atol=1e-9)
