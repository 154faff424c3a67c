"""Laws of growth from known trees: under narrower limits each set gets the tree of a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.grower import grow
from dtrees.core.grow.known import KnownTrees
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.parallel import LocalRunner
from tests.laws.tables import (
    Example,
    coded,
    coded_mixed,
    coded_sparse,
    examples,
    grow_tree,
)
from tests.laws.test_growth import assert_equal
from tests.laws.test_shared import SEEDS, TOGETHER, assume_weights, folds, masks

ALONE = Tuning(shared_rows=10**6)
LEAVES = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0, 7.5])),
    min_size=2,
    max_size=4,
).map(sorted)
ASCENDING = st.lists(st.integers(1, 12), min_size=2, max_size=5, unique=True).map(sorted)
OTHERS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "max_depth": st.sampled_from([None, 1, 2, 4]),
            "min_samples_split": st.integers(2, 12),
            "min_impurity_decrease": st.sampled_from([0.0, 0.0, 0.001, 0.02, 0.2]),
        },
    ),
    min_size=4,
    max_size=4,
)


def grow_known(example: Example, rows: np.ndarray, known: KnownTrees, matrix=None, **source):
    """Trees of the sets, and what the growth says of itself."""
    matrix = coded(example.table) if matrix is None else matrix
    source.setdefault("values", example.values)
    here = DatasetSource(matrix, example.target, example.rules, **source)
    thresholds = example.thresholds
    grown = grow(here, example.rules, of_sets(rows), thresholds, known=known)
    return grown.trees, here.work


def check_foretold(example: Example, rows: np.ndarray, leaves, matrix=None, **source) -> int:
    """The same for leaves of so many rows, ascending, of which each growth knows what follows."""
    matrix = coded(example.table) if matrix is None else matrix
    known, n_known = None, 0
    for i, min_rows in enumerate(leaves):
        mine = replace(example, limits={**example.limits, "min_samples_leaf": min_rows})
        pays = mine.rules.min_impurity_decrease > 0
        known = KnownTrees(known, narrower=() if pays else leaves[i + 1 :])
        trees, work = grow_known(mine, rows, known, matrix, **source)
        n_known += work["known_nodes"]
        for some, tree in zip(rows, trees, strict=True):
            assert_equal(grow_tree(mine, matrix, example.target.only(some)), tree)
        known.forget_wider()
    return n_known


def check(example: Example, rows: np.ndarray, *rules, **source) -> None:
    assume_weights(example, rows)
    check_rules(example, rows, *rules, **source)


def check_rules(example: Example, rows: np.ndarray, leaves, others, matrix=None, **source) -> int:
    """Every set has the tree of each of the rules; returns how many nodes were known."""
    matrix = coded(example.table) if matrix is None else matrix
    target = example.target
    known, n_known = None, 0
    for (min_rows, min_weight), limits in zip(leaves, others, strict=False):
        own = {"min_samples_leaf": min_rows, "min_weight_leaf": min_weight, **limits}
        mine = replace(example, limits={**example.limits, **own})
        known = KnownTrees(known)
        trees, work = grow_known(mine, rows, known, matrix, **source)
        n_known += work["known_nodes"]
        for some, tree in zip(rows, trees, strict=True):
            assert_equal(grow_tree(mine, matrix, target.only(some)), tree)
    return n_known


class TestNarrowerLeaves:
    @given(examples(draws=True, random_splits=True), st.integers(2, 11), SEEDS, LEAVES, OTHERS)
    def test_folds(self, example, n_folds, seed, leaves, others):
        check(example, folds(example.n_rows, min(n_folds, example.n_rows), seed), leaves, others)

    @given(examples(draws=True, max_rows=120), st.integers(2, 7), SEEDS, LEAVES, OTHERS)
    def test_together(self, example, n_folds, seed, leaves, others):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, leaves, others, tuning=TOGETHER)

    @given(examples(draws=True, max_rows=120), st.integers(2, 7), SEEDS, LEAVES, OTHERS)
    def test_alone(self, example, n_folds, seed, leaves, others):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, leaves, others, tuning=ALONE)

    @given(examples(draws=True), st.integers(1, 9), SEEDS, LEAVES, OTHERS)
    def test_masks(self, example, n_sets, seed, leaves, others):
        check(example, masks(example.n_rows, n_sets, seed), leaves, others, tuning=TOGETHER)

    @given(examples(), st.integers(2, 5), SEEDS, LEAVES, OTHERS, st.booleans())
    def test_sparse_columns(self, example, n_folds, seed, leaves, others, mixed):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        matrix = (coded_mixed if mixed else coded_sparse)(example.table, seed)
        check(example, rows, leaves, others, matrix, tuning=TOGETHER)

    @given(examples(draws=True), st.integers(2, 5), SEEDS, LEAVES, OTHERS)
    def test_wide_columns(self, example, n_folds, seed, leaves, others):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        check(example, rows, leaves, others, coded(example.table, 70_000), tuning=TOGETHER)

    @given(examples(draws=True, max_rows=120), st.integers(2, 6), SEEDS, LEAVES, OTHERS)
    def test_threads(self, example, n_folds, seed, leaves, others):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        tuning = Tuning(task_entries=1, level_entries=1, shared_rows=0)
        how = {"run": LocalRunner(2), "n_threads": 2, "tuning": tuning}
        check(example, rows, leaves, others, **how)


class TestForetoldLeaves:
    @given(
        examples(draws=True),
        st.integers(2, 7),
        SEEDS,
        ASCENDING,
        st.sampled_from([TOGETHER, ALONE, Tuning(shared_rows=30)]),
    )
    def test_folds(self, example, n_folds, seed, leaves, tuning):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        assume_weights(example, rows)
        check_foretold(example, rows, leaves, tuning=tuning)

    @given(examples(max_rows=120), st.integers(2, 6), SEEDS, ASCENDING)
    def test_threads(self, example, n_folds, seed, leaves):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        assume_weights(example, rows)
        tuning = Tuning(task_entries=1, level_entries=1, shared_rows=30)
        how = {"run": LocalRunner(2), "n_threads": 2, "tuning": tuning}
        check_foretold(example, rows, leaves, **how)

    @given(examples(), st.integers(2, 5), SEEDS, ASCENDING)
    def test_sparse_columns(self, example, n_folds, seed, leaves):
        rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
        assume_weights(example, rows)
        check_foretold(example, rows, leaves, coded_sparse(example.table, seed), tuning=TOGETHER)
