"""Sparse columns of shared nodes: entries move once for all sets, which get the trees of fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrees import DecisionTreeClassifier
from dtrees.core.data.tuning import Tuning
from dtrees.model_selection import cross_validate
from dtrees.parallel import LocalRunner
from tests.laws.tables import SEVEN_WAYS, coded_mixed, coded_sparse, examples, seeded
from tests.laws.test_shared import (
    SEEDS,
    TOGETHER,
    check,
    check_sets,
    folds,
    grow_sets,
    masks,
)
from tests.oracle.greedy import assert_tree_is_greedy

CODED = {"sparse": coded_sparse, "mixed": coded_mixed}
few = settings(max_examples=max(12, settings.default.max_examples // 5))


def n_shared(grown) -> int:
    return sum(sets.n_shared_nodes for sets in grown)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("kind", CODED)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows(case, kind, shared_rows, grown):
    example = seeded(*case, n_rows=200, min_samples_leaf=3)
    matrix = CODED[kind](example.table, 7)
    check_sets(example, folds(200, 4, 0), matrix, tuning=Tuning(shared_rows=shared_rows))
    assert (n_shared(grown) > 0) == (shared_rows < 10**6)
    assert sum(sets.n_shared_rows for sets in grown) >= 200 * (shared_rows < 10**6)


@few
@given(examples(), st.sampled_from(sorted(CODED)), SEEDS, st.integers(2, 11))
def test_folds(example, kind, seed, n_folds):
    rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
    check(example, rows, CODED[kind](example.table, seed), tuning=TOGETHER)


@few
@given(examples(max_rows=120), st.sampled_from(sorted(CODED)), SEEDS, st.integers(1, 9))
def test_masks(example, kind, seed, n_sets):
    rows = masks(example.n_rows, n_sets, seed)
    check(example, rows, CODED[kind](example.table, seed), tuning=TOGETHER)


@few
@given(examples(max_rows=120), st.sampled_from(sorted(CODED)), SEEDS, st.integers(0, 200))
def test_sets_that_go_on_alone(example, kind, seed, shared_rows):
    """They take the entries of their node with them."""
    rows = folds(example.n_rows, min(5, example.n_rows), seed)
    matrix = CODED[kind](example.table, seed)
    check(example, rows, matrix, tuning=Tuning(shared_rows=shared_rows))


@few
@given(examples(max_rows=120), st.sampled_from(sorted(CODED)), SEEDS, st.sampled_from([1, 1 << 40]))
def test_threads(example, kind, seed, level_entries):
    rows = folds(example.n_rows, min(4, example.n_rows), seed)
    tuning = Tuning(task_entries=1, level_entries=level_entries, shared_rows=0)
    matrix = CODED[kind](example.table, seed)
    check(example, rows, matrix, run=LocalRunner(2), n_threads=2, tuning=tuning)


def test_a_cross_validation_of_text_shares(grown):
    rng = np.random.default_rng(0)
    X = sp.random_array((2_000, 500), density=0.02, rng=rng, format="csr")
    y = (X[:, [0]].toarray()[:, 0] + X[:, [7]].toarray()[:, 0] > 0).astype(int)
    cross_validate(DecisionTreeClassifier(max_depth=3), X, y, cv=5)
    assert n_shared(grown) >= 1
    assert sum(sets.n_shared_rows for sets in grown) >= 2_000


def test_columns_that_nobody_stores(grown):
    """A table without any entry, and one with an empty column among others."""
    example = seeded("gini", 3, "none", kinds=("constant", "constant"), n_rows=60)
    check_sets(example, folds(60, 3, 0), coded_sparse(example.table, 0), tuning=TOGETHER)
    X = sp.csr_array((np.ones(30), (np.arange(30), np.full(30, 2))), shape=(60, 5))
    models = cross_validate(
        DecisionTreeClassifier(), X, np.arange(60) < 30, cv=3, return_estimator=True
    )
    assert all(model.get_n_leaves() <= 2 for model in models["estimator"])


# --------------------------------------------------------------------------------------------
# columns of few codes, which are counted

FEW_CODES = ("counts", "mostly", "ties", "categories", "hybrid", "mostly a category", "missing")


@pytest.mark.parametrize("n_rows", [60, 900])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_columns_that_are_counted(case, n_rows):
    """Of 60 rows the entries are cheaper, of 900 the histograms."""
    example = seeded(*case, kinds=FEW_CODES, n_rows=n_rows, max_depth=4)
    matrix = coded_sparse(example.table, n_rows)
    check_sets(example, folds(n_rows, 5, 0), matrix, tuning=TOGETHER)


@few
@given(st.sampled_from(SEVEN_WAYS), st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_any_sets_and_fill_codes(case, seed, n_sets):
    """Where sets overlap, rows that only some have are counted by member."""
    example = seeded(*case, kinds=FEW_CODES, n_rows=500, max_depth=4, min_samples_leaf=5)
    rows = masks(500, n_sets, seed) if seed % 2 else folds(500, n_sets, seed)
    check_sets(example, rows, coded_sparse(example.table, seed), tuning=TOGETHER)


@pytest.mark.parametrize("case", SEVEN_WAYS[:2], ids=str)
def test_which_is_the_greedy_one(case):
    example = seeded(*case, kinds=("ties", "hybrid", "counts"), n_rows=300, max_depth=2)
    rows = folds(300, 3, 5)
    trees = grow_sets(example, coded_sparse(example.table, 5), rows, tuning=TOGETHER).trees
    for mine, tree in zip(rows, trees, strict=True):
        assert_tree_is_greedy(tree, example.table, example.target.only(mine), example.rules)
