"""Laws of growth in rounds: blocks of rows grow the trees that all rows in one place grow."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.grow.round_spec import RoundSpec
from dtrees.core.grow.rounds import LocalBlocks, grow_in_rounds
from dtrees.core.membership.resampling import Bags, of_sets, without_class_weights
from dtrees.core.stores.blocks.block import Block, Common, Draws, Resolution
from tests.laws.tables import (
    PackedBlocks,
    coded,
    coded_mixed,
    coded_sparse,
    examples,
    grow_tree,
)
from tests.laws.test_class_weights import KINDS, tables, weighing
from tests.laws.test_growth import assert_equal
from tests.laws.test_shared import SEEDS, assume_weights, folds, masks

RESOLUTIONS = st.builds(
    Resolution,
    interval_codes=st.sampled_from([0, 5, 2048]),
    n_intervals=st.sampled_from([1, 2, 3, 7, 255]),
    listed_codes=st.sampled_from([0, 3, 65_535]),
)
LIMITS = {
    "resolution": RESOLUTIONS,
    "gather_rows": st.sampled_from([0, 3, 10, 65_536]),
    "histogram_budget": st.sampled_from([1, 20_000, 2**28]),
}


LAYOUTS = {"dense": lambda table, seed: coded(table), "sparse": coded_sparse, "mixed": coded_mixed}


def cut(n_rows: int, n_blocks: int, seed: int) -> list[np.ndarray]:
    """Rows of blocks, some of which may be empty; one behind the other."""
    ends = np.sort(np.random.default_rng(seed).integers(0, n_rows + 1, n_blocks - 1))
    return np.split(np.arange(n_rows), ends)


def grow_sets_in_rounds(
    example, matrix, resampling, n_blocks, seed, draws=None, *, resolution, work=None, **limits
):
    """The trees of all sets, by set."""
    target, rules = example.target, example.rules
    if resampling.class_weights is not None:
        target = without_class_weights(target)
    numbers = np.arange(resampling.n_sets, dtype=np.uint64)
    of_cell = (resampling.mix[:].T.astype(np.uint64) << numbers).sum(axis=1, dtype=np.uint64)
    common = Common(rules, draws, of_cell, resolution)
    blocks = [
        Block(
            matrix.take(rows),
            target.take(rows),
            int(rows[0]) if len(rows) else 0,
            cells=resampling.cells[rows],
        )
        for rows in cut(example.n_rows, n_blocks, seed)
    ]
    values = example.values
    if draws is not None:
        target = target.bagged(np.ones(target.n_rows, dtype=np.uint16))
    spec = RoundSpec(
        common,
        matrix,
        target,
        example.thresholds,
        resampling.n_sets,
        resampling.totals(target.has_weight),
        values=values,
        may_be_empty=True,
        class_weights=resampling.class_weights,
        **limits,
    )
    kind = PackedBlocks if seed % 2 else LocalBlocks
    grown = grow_in_rounds(spec, [rules.tree], kind(blocks, values), work=work)
    ((_, trees),) = grown
    return trees


def check_counts(trees, work, limits) -> None:
    """A shared node is one of two sets or more; roots that are not gathered are shared."""
    assert 2 * work["shared_nodes"] <= sum(tree.node_count for tree in trees)
    if limits["gather_rows"] == 0 and sum(tree.node_count > 1 for tree in trees) > 1:
        assert work["shared_nodes"] > 0


class TestSetsInRounds:
    @given(
        examples(draws=True, random_splits=True),
        st.integers(2, 11),
        st.integers(1, 4),
        st.sampled_from(sorted(LAYOUTS)),
        st.fixed_dictionaries(LIMITS),
        SEEDS,
    )
    def test_folds(self, example, n_folds, n_blocks, layout, limits, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        self.check(example, rows, n_blocks, layout, limits, seed)

    @given(
        examples(draws=True, max_rows=120),
        st.integers(1, 9),
        st.integers(1, 4),
        st.sampled_from(sorted(LAYOUTS)),
        st.fixed_dictionaries(LIMITS),
        SEEDS,
    )
    def test_masks(self, example, n_sets, n_blocks, layout, limits, seed):
        self.check(example, masks(example.n_rows, n_sets, seed), n_blocks, layout, limits, seed)

    def check(self, example, rows, n_blocks, layout, limits, seed):
        assume_weights(example, rows)
        matrix = LAYOUTS[layout](example.table, seed)
        sets, work = of_sets(rows), Counter()
        trees = grow_sets_in_rounds(example, matrix, sets, n_blocks, seed, work=work, **limits)
        assert len(trees) == len(rows)
        for mine, tree in zip(rows, trees, strict=True):
            assert_equal(grow_tree(example, matrix, example.target.only(mine)), tree)
        check_counts(trees, work, limits)

    @given(
        tables(max_rows=120),
        st.integers(2, 7),
        st.integers(1, 4),
        KINDS,
        st.sampled_from(sorted(LAYOUTS)),
        st.fixed_dictionaries(LIMITS),
        SEEDS,
    )
    def test_class_weights(self, example, n_folds, n_blocks, kind, layout, limits, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        assume_weights(example, rows)
        matrix = LAYOUTS[layout](example.table, seed)
        target = without_class_weights(example.target)
        sets = weighing(target, of_sets(rows), kind, seed)
        work = Counter()
        trees = grow_sets_in_rounds(example, matrix, sets, n_blocks, seed, work=work, **limits)
        for number, tree in enumerate(trees):
            assert_equal(grow_tree(example, matrix, sets.target_of(number, target)), tree)
        check_counts(trees, work, limits)

    @given(
        examples(draws=True, max_rows=120),
        st.integers(2, 5),
        st.integers(0, 3),
        st.sampled_from(sorted(LAYOUTS)),
        st.fixed_dictionaries(LIMITS),
        SEEDS,
    )
    def test_bags(self, example, n_folds, number, layout, limits, seed):
        assume(example.target.class_multiplier is None)
        example = replace(example, limits={**example.limits, "tree": number})
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        assume_weights(example, rows)
        matrix = LAYOUTS[layout](example.table, seed)
        bags = Bags(3, 1.0, np.arange(example.n_rows, dtype=np.uint64))
        draws = Draws(bags.seed, bags.rate)
        trees = grow_sets_in_rounds(example, matrix, of_sets(rows), 3, seed, draws, **limits)
        growth = ForestGrowth(matrix, example.target, example.rules, bags, example.thresholds)
        expected = growth.trees_of_sets(number, of_sets(rows))
        for tree, other in zip(expected, trees, strict=True):
            assert_equal(tree, other)
