"""Trees whose columns are monotonic, or do not interact: greedy, however the rows are given."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.criteria import CRITERIA
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow import gathered
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.core.stores.blocks.block import Resolution
from tests.laws.tables import (
    KINDS,
    ORDERED,
    Example,
    coded,
    coded_mixed,
    coded_sparse,
    cut_in_parts,
    examples,
    fit,
    grow_blocks,
    grow_parts,
    grow_tree,
    seeded,
)
from tests.laws.test_growth import assert_equal, check
from tests.laws.test_rounds import LAYOUTS, LIMITS, grow_sets_in_rounds
from tests.laws.test_shared import TOGETHER, assume_weights, folds, masks
from tests.laws.test_shared import check as check_sets

SEEDS = st.integers(0, 2**32 - 1)


def with_constraints(draw, example: Example, which: str) -> Example:
    """An example with some constraints; of two classes, or of numbers."""
    n_columns = len(example.table)
    own = {}
    if which != "interactions":
        own["monotonic"] = tuple(
            draw(st.sampled_from([-1, 0, 1]))
            if all(value is None or isinstance(value, float) for value in column)
            else 0
            for column in example.table
        )
    if which != "monotonic":
        columns = st.sets(st.integers(0, n_columns - 1), min_size=1)
        found = [tuple(sorted(group)) for group in draw(st.lists(columns, max_size=3))]
        rest = set(range(n_columns)).difference(*found)
        if rest and draw(st.booleans()):  # else no test looks at them
            found.append(tuple(sorted(rest)))
        own["interactions"] = tuple(found)
    y = np.minimum(example.y, 1) if example.criterion in ("gini", "entropy") else example.y
    return replace(example, y=y, class_weight=None, limits={**example.limits, **own})


@st.composite
def constrained(draw, **how):
    """An example with constraints, at least half of whose columns are numbers."""
    kinds = draw(st.sampled_from([ORDERED, KINDS]))
    example = draw(examples(kinds=kinds, **how))
    return with_constraints(draw, example, draw(st.sampled_from(["monotonic", "interactions", ""])))


class TestGreedy:
    @given(constrained())
    def test_dense(self, example):
        check(example, fit(example))

    @given(constrained(), SEEDS)
    def test_sparse(self, example, seed):
        check(example, grow_tree(example, coded_sparse(example.table, seed)))

    @given(constrained(max_rows=60), st.integers(1, 40), st.sampled_from([0, 8]))
    def test_rounds(self, example, middle, gather_rows):
        parts = cut_in_parts(example, min(middle, example.n_rows - 1))
        check(example, grow_parts(example, parts, gather_rows=gather_rows))


class TestStorageDoesNotMatter:
    @given(constrained(draws=True, random_splits=True), SEEDS)
    def test_dense_is_sparse(self, example, seed):
        assert_equal(fit(example), grow_tree(example, coded_sparse(example.table, seed)))
        assert_equal(fit(example), grow_tree(example, coded_mixed(example.table, seed)))

    @given(constrained(draws=True, random_splits=True), st.sampled_from([300, 70_000]))
    def test_width(self, example, largest_code):
        assert_equal(fit(example), grow_tree(example, coded(example.table, largest_code)))

    @given(constrained(draws=True, random_splits=True), st.integers(2, 3), st.integers(0, 1))
    def test_threads(self, example, n_threads, shares_columns):
        tuning = Tuning(level_entries=0 if shares_columns else 1 << 19, task_entries=0)
        assert_equal(fit(example), fit(example, n_threads=n_threads, tuning=tuning))

    @given(constrained(max_rows=150), st.sampled_from([0, 2, 5, 9]))
    def test_histograms(self, example, counted_rows):
        counted = Tuning(counted_rows=counted_rows, level_entries=0, task_entries=0)
        assert_equal(fit(example), fit(example, tuning=counted))

    @given(constrained(draws=True, max_rows=60), st.integers(1, 40), st.sampled_from([0, 8]))
    def test_rounds(self, example, middle, gather_rows):
        parts = cut_in_parts(example, min(middle, example.n_rows - 1))
        assert_equal(fit(example), grow_parts(example, parts, gather_rows=gather_rows))

    @given(
        constrained(max_rows=150, max_values=90),
        st.integers(1, 120),
        st.sampled_from([1, 3, 9, 40]),
    )
    def test_rounds_by_intervals(self, example, middle, n_intervals):
        """Of codes, of which those that may hold the best boundary are asked for."""
        parts = cut_in_parts(example, min(middle, example.n_rows - 1))
        how = {"resolution": Resolution(interval_codes=2, n_intervals=n_intervals)}
        own = example.rules, example.thresholds, example.values
        assert_equal(fit(example), grow_blocks(parts, *own, gather_rows=0, **how))


class TestSetsShareInRounds:
    """The same over blocks of rows, some of whose nodes are gathered with what is allowed there."""

    @given(
        constrained(draws=True, random_splits=True, max_rows=120),
        st.integers(2, 7),
        st.sampled_from(sorted(LAYOUTS)),
        st.fixed_dictionaries({**LIMITS, "gather_rows": st.sampled_from([0, 12, 30, 60])}),
        SEEDS,
        st.booleans(),
    )
    def test_sets(self, example, n_sets, layout, limits, seed, are_folds):
        n_sets = min(n_sets, example.n_rows)
        rows = folds(example.n_rows, n_sets, seed)
        if not are_folds:
            rows = masks(example.n_rows, n_sets, seed)
        assume_weights(example, rows)
        matrix, work = LAYOUTS[layout](example.table, seed), Counter()
        sets = of_sets(rows)
        with pytest.MonkeyPatch.context() as patch:  # nodes of few rows stay together, too
            patch.setattr(gathered, "DatasetSource", partial(DatasetSource, tuning=TOGETHER))
            trees = grow_sets_in_rounds(example, matrix, sets, 3, seed, work=work, **limits)
        for mine, tree in zip(rows, trees, strict=True):
            assert_equal(grow_tree(example, matrix, example.target.only(mine)), tree)
        is_apart = example.criterion == "poisson"  # where scales differ; medians are no sums
        is_apart = is_apart or not CRITERIA[example.criterion].has_sums
        if limits["gather_rows"] == 0 and sum(tree.node_count > 1 for tree in trees) > 1:
            assert work["shared_nodes"] > 0 or is_apart


@pytest.mark.one_of(3)
@pytest.mark.parametrize("gather_rows", [60, 200])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_gathered_nodes_know_what_is_allowed(criterion, layout, gather_rows, monkeypatch):
    """Of all sets at once, whose ancestors have left each column few others."""
    kinds = ("distinct", "ties", "counts", "mostly", "distinct", "counts", "ties", "missing")
    threes = tuple((j, j + 1, j + 2) for j in range(len(kinds) - 2))
    rises = (1, -1, 0, 0, 1, 0, -1, 0)
    limits = {"interactions": threes, "monotonic": rises}
    example = seeded(criterion, 2, "none", kinds, 400, **limits)
    monkeypatch.setattr(gathered, "DatasetSource", partial(DatasetSource, tuning=TOGETHER))
    rows, matrix = folds(400, 4, 0), LAYOUTS[layout](example.table, 1)
    how = {"gather_rows": gather_rows, "resolution": Resolution()}
    trees = grow_sets_in_rounds(example, matrix, of_sets(rows), 3, 0, **how)
    for mine, tree in zip(rows, trees, strict=True):
        assert_equal(grow_tree(example, matrix, example.target.only(mine)), tree)


class TestSetsShare:
    """Each training set has the tree that it gets alone; that nodes were shared is counted."""

    @given(constrained(draws=True, random_splits=True), st.integers(2, 11), SEEDS)
    def test_folds(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check_sets(example, rows, tuning=TOGETHER)

    @given(constrained(draws=True, random_splits=True), st.integers(2, 5), SEEDS)
    def test_sparse(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        matrices = coded_sparse(example.table, seed), coded_mixed(example.table, seed)
        check_sets(example, rows, matrices[seed % 2], tuning=TOGETHER)

    @given(constrained(draws=True, max_rows=120), st.integers(1, 9), SEEDS)
    def test_some_go_on_alone(self, example, n_sets, seed):
        check_sets(example, masks(example.n_rows, n_sets, seed), tuning=Tuning(shared_rows=30))

    @given(constrained(max_rows=150), st.integers(2, 5), SEEDS)
    def test_columns_of_many_codes(self, example, n_folds, seed):
        """By intervals: bounds know which boundaries are allowed."""
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        how = {"tuning": Tuning(shared_rows=0, interval_rows=1, interval_codes=1)}
        check_sets(example, rows, coded(example.table, 70_000), **how)

    @given(constrained(draws=True, random_splits=True), st.integers(2, 5), SEEDS)
    def test_threads(self, example, n_folds, seed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        tuning = Tuning(shared_rows=0, task_entries=0, level_entries=0)
        check_sets(example, rows, n_threads=2, tuning=tuning)
