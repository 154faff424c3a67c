"""Laws of shared growth where splits are drawn: sets with the same range draw the same value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from dtrees.parallel import LocalRunner
from tests.laws.tables import SEVEN_WAYS, coded, examples, seeded
from tests.laws.test_shared import SEEDS, check, check_sets, folds, masks

TOGETHER = Tuning(shared_rows=0)


def drawn(**more):
    """Examples whose splits are drawn."""

    def with_draws(example):
        return replace(example, limits=example.limits | {"random_splits": True, "seed": 5})

    return examples(draws=True, **more).map(with_draws)


@given(drawn(), st.integers(2, 11), SEEDS, st.sampled_from([0, 20]))
def test_folds(example, n_folds, seed, shared_rows):
    rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
    check(example, rows, tuning=Tuning(shared_rows=shared_rows))


@given(drawn(max_rows=120), st.integers(1, 9), SEEDS, st.sampled_from([0, 60]))
def test_masks(example, n_sets, seed, shared_rows):
    check(example, masks(example.n_rows, n_sets, seed), tuning=Tuning(shared_rows=shared_rows))


@given(drawn(), st.integers(2, 5), SEEDS, st.sampled_from([300, 70_000]))
def test_wide_columns(example, n_folds, seed, largest_code):
    rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
    check(example, rows, coded(example.table, largest_code), tuning=TOGETHER)


@given(drawn(max_rows=120), st.integers(2, 6), SEEDS, st.sampled_from([0, 60]))
def test_threads(example, n_folds, seed, shared_rows):
    rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
    tuning = Tuning(task_entries=1, level_entries=1, shared_rows=shared_rows)
    check(example, rows, run=LocalRunner(2), n_threads=2, tuning=tuning)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("max_features", [2, None])
@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_every_kind_of_sums(case, shared_rows, max_features, grown):
    kinds = ("ties", "distinct", "hybrid", "counts", "categories")
    limits = {"random_splits": True, "min_samples_leaf": 3, "max_features": max_features}
    example = seeded(*case, kinds=kinds, n_rows=200, **limits)
    check_sets(example, folds(200, 4, 0), tuning=Tuning(shared_rows=shared_rows))
    assert (sum(sets.n_shared_nodes for sets in grown) > 0) == (shared_rows < 10**6)
