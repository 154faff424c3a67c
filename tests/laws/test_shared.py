"""Laws of shared growth: each set gets the tree that it gets alone, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dtrees.coding.target import Target
from dtrees.core._shared import MOST_SETS
from dtrees.core.grower import grow
from dtrees.core.resampling import Resampling, of_sets
from dtrees.core.rules import GrowthRules
from dtrees.core.shared import MOST_NUMBERS, Sets
from dtrees.core.source import ShardSource
from dtrees.core.tuning import Tuning
from dtrees.parallel import LocalRunner
from tests.laws.tables import (
    Example,
    coded,
    coded_sparse,
    examples,
    grow_tree,
    thresholds_of,
    values_of,
)
from tests.laws.test_growth import assert_equal

SEEDS = st.integers(0, 2**32 - 1)


def folds(n_rows: int, n_folds: int, seed: int) -> np.ndarray:
    """Training rows of k folds and of the final model; bool (k + 1, n_rows)."""
    fold = np.random.default_rng(seed).permutation(np.arange(n_rows) % n_folds)
    return np.vstack([fold != np.arange(n_folds)[:, None], np.ones((1, n_rows), dtype=bool)])


def masks(n_rows: int, n_sets: int, seed: int) -> np.ndarray:
    """Any training rows; bool (n_sets, n_rows)."""
    rng = np.random.default_rng(seed)
    return rng.random((n_sets, n_rows)) < rng.uniform(0.2, 1.0, (n_sets, 1))


def assume_weights(example: Example, rows: np.ndarray) -> None:
    """Every set has some weight."""
    live = example.target.has_weight
    assume(rows.any(axis=1).all() if live is None else (rows & live).any(axis=1).all())


def grow_sets(example: Example, matrix, rows: np.ndarray, resampling=None, **source):
    resampling = of_sets(rows) if resampling is None else resampling
    source.setdefault("values", values_of(example.table))
    shards = ShardSource([(matrix, example.target)], example.rules, **source)
    return grow(shards, example.rules, resampling, thresholds_of(example.table))


def check(example: Example, rows: np.ndarray, matrix=None, **source) -> None:
    assume_weights(example, rows)
    matrix = coded(example.table) if matrix is None else matrix
    trees = grow_sets(example, matrix, rows, **source)
    assert len(trees.trees) == len(rows)
    for mine, tree in zip(rows, trees.trees, strict=True):
        assert_equal(grow_tree(example, matrix, example.target.only(mine)), tree)


class TestSetsAreFits:
    @given(examples(draws=True, random_cuts=True), st.integers(2, 11), SEEDS)
    def test_folds(self, example, n_folds, seed):
        check(example, folds(example.n_rows, min(n_folds, example.n_rows), seed))

    @given(examples(draws=True, max_rows=120), st.integers(2, 7), SEEDS)
    def test_larger_tables(self, example, n_folds, seed):
        check(example, folds(example.n_rows, min(n_folds, example.n_rows), seed))

    @given(examples(draws=True), st.integers(1, 9), SEEDS)
    def test_masks(self, example, n_sets, seed):
        check(example, masks(example.n_rows, n_sets, seed))

    @given(examples(draws=True), SEEDS)
    def test_more_sets_than_bits(self, example, seed):
        check(example, masks(example.n_rows, MOST_SETS + 7, seed))

    @given(examples(draws=True), SEEDS)
    def test_leave_one_out(self, example, seed):
        check(example, folds(example.n_rows, example.n_rows, seed))

    @given(examples(draws=True), st.integers(2, 5), SEEDS, st.sampled_from([300, 70_000]))
    def test_wide_columns(self, example, n_folds, seed, largest_code):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, coded(example.table, largest_code))

    @given(examples(draws=True), st.integers(2, 5), SEEDS)
    def test_sparse_columns(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, coded_sparse(example.table, seed))

    @given(examples(draws=True), st.integers(2, 5), SEEDS)
    def test_counted_columns(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, tuning=Tuning(counted_rows=0))


class TestThreads:
    @given(examples(draws=True, max_rows=120), st.integers(2, 6), SEEDS)
    def test_sets_on_threads(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        tuning = Tuning(task_entries=1)
        check(example, rows, run=LocalRunner(2), n_threads=2, tuning=tuning)

    @given(examples(draws=True, max_rows=120), st.integers(2, 6), SEEDS)
    def test_columns_on_threads(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        tuning = Tuning(task_entries=1, level_entries=1)
        check(example, rows, run=LocalRunner(2), n_threads=2, tuning=tuning)


class TestTargets:
    @given(examples(draws=True), st.integers(2, 5), SEEDS)
    def test_only_is_a_weight_of_zero(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        assume_weights(example, rows)
        whole = example.target
        plain = whole.w_exponent == 0 and example.class_weight is None
        assume(plain and (example.weight is None or np.abs(example.weight).max() < 256))
        for mine in rows:
            given_weight = np.ones(example.n_rows) if example.weight is None else example.weight
            alone = replace(example, weight=given_weight * mine)
            assert_equal(
                grow_tree(alone, coded(example.table)),
                grow_tree(example, coded(example.table), whole.only(mine)),
            )


class TestResampling:
    @given(st.integers(1, 90), st.integers(1, 60), SEEDS)
    def test_cells_are_what_the_same_sets_have(self, n_sets, n_rows, seed):
        rows = masks(n_rows, n_sets, seed)
        resampling = of_sets(rows)
        np.testing.assert_array_equal(resampling.mix[:, resampling.cells] == 1, rows)
        assert len(np.unique(rows, axis=1).T) == resampling.n_cells
        first = np.unique(resampling.cells, return_index=True)[1]
        assert (np.diff(first) > 0).all()

    def test_a_set_with_all_rows_is_no_cell_more(self):
        example = Example([[float(i % 7) for i in range(40)]], np.arange(40) % 3, None, "gini")
        twice = Resampling(None, np.ones((2, 1), dtype=np.int64))
        trees = grow_sets(example, coded(example.table), np.ones((2, 40)), twice).trees
        assert_equal(*trees)
        assert_equal(trees[0], grow_tree(example, coded(example.table)))


def test_large_histograms_are_shared_by_fewer_sets():
    rows = folds(1000, 40, 0)
    target = Target.regression(np.arange(1000.0))
    sets = Sets(target, GrowthRules(criterion="squared_error"), of_sets(rows), 0.0)
    assert [len(group) for group in sets.groups(1)] == [41]
    assert {len(group) for group in sets.groups(MOST_NUMBERS // 60)} == {16, 9}
    assert sets.groups(MOST_NUMBERS) == []


def test_cells_cannot_count_twice():
    example = Example([[0.0, 1.0]], np.array([0, 1]), None, "gini")
    with pytest.raises(AssertionError, match="once or not at all"):
        grow_sets(example, coded(example.table), np.ones((1, 2)), Resampling(None, np.array([[2]])))
