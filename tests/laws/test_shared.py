"""Laws of shared growth: each set gets the tree that it gets alone, bit for bit."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dtrees.coding.target import Target
from dtrees.core.data.criteria import CRITERIA
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import scale_of
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.shared import LOGARITHMS, MOST_NUMBERS, Sets, grow
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import Resampling, of_sets
from dtrees.core.membership.shares import Shares
from dtrees.core.model.tree import Forest
from dtrees.core.stores.shared._shared_nodes import MOST_SETS
from dtrees.parallel import LocalRunner
from tests.conftest import training_sets_seen
from tests.laws.tables import Example, coded, coded_sparse, grow_tree
from tests.laws.tables import examples as of_one_target
from tests.laws.test_growth import assert_equal
from tests.laws.test_outputs import several
from tests.registers import wide_registers

SEEDS = st.integers(0, 2**32 - 1)
TOGETHER = Tuning(shared_rows=0)
few = settings(max_examples=max(12, settings.default.max_examples // 2))  # as sets are many


def examples(**given):
    """Examples of one target, or of several."""
    return st.one_of(of_one_target(**given), several(**given))


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


def grow_sets(example: Example, matrix, rows: np.ndarray, resampling=None, shares=None, **source):
    resampling = of_sets(rows) if resampling is None else resampling
    source.setdefault("values", example.values)
    rules, thresholds = example.rules, example.thresholds
    own = (shares or Shares()).rules_of_sets(rules, resampling, example.target)
    rows_here = DatasetSource(matrix, example.target, rules, **source)
    return Forest(tuple(grow(rows_here, own, resampling, thresholds)))


def check(example: Example, rows: np.ndarray, matrix=None, shares=None, **source) -> None:
    assume_weights(example, rows)
    check_sets(example, rows, matrix, shares, **source)


def check_sets(example: Example, rows: np.ndarray, matrix=None, shares=None, **source) -> None:
    """Every set has the tree that it gets alone, and what sets have shared is counted."""
    matrix = coded(example.table) if matrix is None else matrix
    work: Counter[str] = Counter()
    trees = grow_sets(example, matrix, rows, shares=shares, work=work, **source)
    check_counts(example, rows, [tree.node_count for tree in trees], work, **source)
    assert len(trees.trees) == len(rows)
    for mine, tree in zip(rows, trees.trees, strict=True):
        own = example
        if shares is not None:
            own = replace(example, limits=limits_of(example, shares, mine))
        assert_equal(grow_tree(own, matrix, example.target.only(mine)), tree)


def check_counts(example: Example, rows: np.ndarray, sizes: list[int], work, **source) -> None:
    """A shared node is one of two sets or more; sets that may never part share their roots."""
    assert 2 * work["shared_nodes"] <= sum(sizes)
    assert work["shared_nodes"] <= work["shared_rows"] <= work["shared_nodes"] * example.n_rows
    assert work["alive_columns"] <= work["bounded_columns"]
    assert work["shared_nodes"] == 0 or CRITERIA[example.criterion].has_sums
    if source.get("tuning", Tuning()).shared_rows == 0:
        assert (work["shared_nodes"] > 0) or not share_a_root(example, rows, sizes)


def share_a_root(example: Example, rows: np.ndarray, sizes: list[int]) -> bool:
    """Whether two sets of a bundle split their root; logarithms have one scale in a bundle.

    Sets that have no row in common grow alone: here, each has one in common with every other.
    """
    if not CRITERIA[example.criterion].has_sums:
        return False  # each grows on its own
    live = example.target.has_weight
    splits = [
        mine if live is None else mine & live
        for mine, size in zip(rows, sizes, strict=True)
        if size > 1
    ]
    scales = Counter(
        scale_of(example.target.only(mine), example.rules).fixed_point
        if example.criterion in LOGARITHMS and example.target.class_multiplier is None
        else None
        for mine in splits
    )
    overlap = all((one & other).any() for one, other in combinations(splits, 2))
    return overlap and max(scales.values(), default=0) > math.ceil(len(rows) / MOST_SETS)


def limits_of(example: Example, shares: Shares, rows: np.ndarray) -> dict:
    """The limits of an example in which a set is all there is; by the definition of a share."""
    target = example.target.only(rows)
    limits = dict(example.limits)
    live = [i for i in range(example.n_rows) if target.has_weight[i]]
    if shares.min_samples_split > 0:
        limits["min_samples_split"] = max(2, math.ceil(shares.min_samples_split * len(live)))
    if shares.min_samples_leaf > 0:
        limits["min_samples_leaf"] = math.ceil(shares.min_samples_leaf * len(live))
    if shares.min_weight_leaf > 0:
        limits["min_weight_leaf"] = shares.min_weight_leaf * target.total_weight
    return limits


class TestSetsAreFits:
    """Sets stay together, however small a node is."""

    @given(examples(draws=True, random_splits=True), st.integers(2, 11), SEEDS)
    def test_folds(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, tuning=TOGETHER)

    @given(examples(draws=True, max_rows=120), st.integers(2, 11), SEEDS)
    def test_larger_tables(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, tuning=TOGETHER)

    @given(examples(draws=True), st.integers(1, 9), SEEDS)
    def test_masks(self, example, n_sets, seed):
        check(example, masks(example.n_rows, n_sets, seed), tuning=TOGETHER)

    @given(examples(draws=True, weights=("none",)), st.integers(2, 5), SEEDS)
    def test_weights_of_zero_and_one(self, example, n_folds, seed):
        weight = np.random.default_rng(seed).integers(0, 2, example.n_rows).astype(float)
        assume(weight.any())
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(replace(example, weight=weight), rows, tuning=TOGETHER)

    @few
    @given(examples(draws=True), SEEDS)
    def test_more_sets_than_bits(self, example, seed):
        check(example, masks(example.n_rows, MOST_SETS + 7, seed), tuning=TOGETHER)

    @given(examples(draws=True), SEEDS)
    def test_leave_one_out(self, example, seed):
        check(example, folds(example.n_rows, example.n_rows, seed), tuning=TOGETHER)

    @given(examples(draws=True), st.integers(2, 5), SEEDS, st.sampled_from([300, 70_000]))
    def test_wide_columns(self, example, n_folds, seed, largest_code):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, coded(example.table, largest_code), tuning=TOGETHER)

    @given(examples(draws=True), st.integers(2, 5), SEEDS)
    def test_sparse_columns(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, coded_sparse(example.table, seed), tuning=TOGETHER)

    @given(examples(draws=True), st.integers(2, 5), SEEDS)
    def test_counted_columns(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, tuning=Tuning(counted_rows=0, shared_rows=0))

    @given(examples(draws=True), st.integers(2, 9), SEEDS)
    def test_plain_loops(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        with wide_registers(False):
            check(example, rows, tuning=TOGETHER)


@pytest.mark.parametrize("criterion", ["chi_square", "gain_ratio"])
def test_functions_have_no_intervals(criterion):
    rng = np.random.default_rng(0)
    values, noise = rng.normal(size=(2, 1100))
    y = np.digitize(values + noise, [-0.5, 1.0])
    example = Example([values.tolist()], y, None, criterion, {"max_depth": 2})
    vars(example)["target"] = Target.classification(y)
    check_sets(example, folds(len(y), 3, 0), tuning=TOGETHER)


class TestSetsGoOnAlone:
    """From the root, where tables are small, or from below."""

    @given(examples(draws=True, random_splits=True), st.integers(2, 11), SEEDS)
    def test_folds(self, example, n_folds, seed):
        check(example, folds(example.n_rows, min(n_folds, example.n_rows), seed))

    @given(examples(draws=True), st.integers(1, 9), SEEDS)
    def test_masks(self, example, n_sets, seed):
        check(example, masks(example.n_rows, n_sets, seed))

    @given(examples(draws=True, max_rows=120), st.integers(3, 9), SEEDS)
    def test_some_nodes_are_shared(self, some_share, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, tuning=Tuning(shared_rows=20))

    @pytest.fixture(scope="class")
    @classmethod
    def some_share(cls):
        """Some of the examples share nodes; others do not."""
        with training_sets_seen() as grown:
            yield
        shared = [sets.n_shared_nodes > 0 for sets in grown]
        assert 0 < sum(shared) < len(shared)


SHARES = st.builds(
    Shares,
    min_samples_split=st.sampled_from([0.0, 0.05, 0.21, 0.5]),
    min_samples_leaf=st.sampled_from([0.0, 0.03, 0.1, 0.21]),
    min_weight_leaf=st.sampled_from([0.0, 0.03, 0.1]),
)


class TestShares:
    """Limits that are shares are other numbers in each set."""

    @given(examples(draws=True, max_rows=120), st.integers(2, 7), SEEDS, SHARES)
    def test_folds(self, example, n_folds, seed, shares):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, shares=shares, tuning=TOGETHER)

    @given(examples(draws=True, random_splits=True), st.integers(1, 9), SEEDS, SHARES)
    def test_masks(self, example, n_sets, seed, shares):
        rows = masks(example.n_rows, n_sets, seed)
        check(example, rows, shares=shares, tuning=TOGETHER)

    @given(examples(draws=True, max_rows=120), st.integers(2, 6), SEEDS, SHARES)
    def test_threads(self, example, n_folds, seed, shares):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        tuning = Tuning(task_entries=1, level_entries=1, shared_rows=0)
        check(example, rows, shares=shares, run=LocalRunner(2), n_threads=2, tuning=tuning)

    @given(examples(), SEEDS, SHARES)
    def test_one_set_or_several(self, example, seed, shares):
        rows = masks(example.n_rows, 5, seed)
        assume_weights(example, rows)
        found = shares.rules_of_sets(example.rules, of_sets(rows), example.target)
        alone = [shares.rules(example.rules, example.target.only(mine)) for mine in rows]
        assert found == alone


class TestThreads:
    @given(examples(draws=True, max_rows=120), st.integers(2, 6), SEEDS)
    def test_sets_on_threads(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        tuning = Tuning(task_entries=1, shared_rows=0)
        check(example, rows, run=LocalRunner(2), n_threads=2, tuning=tuning)

    @given(examples(draws=True, max_rows=120), st.integers(2, 6), SEEDS)
    def test_columns_on_threads(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        tuning = Tuning(task_entries=1, level_entries=1, shared_rows=0)
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
        for number, mine in enumerate(rows):
            np.testing.assert_array_equal(resampling.rows(number), mine)
        assert len(np.unique(rows, axis=1).T) == resampling.mix.shape[1]
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
    sets = Sets(target, [GrowthRules(criterion="squared_error")] * 41, of_sets(rows))
    assert [len(group) for group in sets.bundles(1)] == [41]
    assert {len(group) for group in sets.bundles(MOST_NUMBERS // 60)} == {16, 9}
    assert sets.bundles(MOST_NUMBERS) == []


def test_cells_cannot_count_twice():
    example = Example([[0.0, 1.0]], np.array([0, 1]), None, "gini")
    with pytest.raises(AssertionError, match="once or not at all"):
        grow_sets(example, coded(example.table), np.ones((1, 2)), Resampling(None, np.array([[2]])))
