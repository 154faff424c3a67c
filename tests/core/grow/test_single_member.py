"""A set that leaves its shared nodes grows the tree of its own fit, wherever it leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import examples
from tests.laws.test_shared import check, folds, masks

ALONE = 2**40  # rows of a shared node that would pay


@given(examples(draws=True, max_rows=120), st.integers(2, 7), st.integers(0, 99))
def test_every_set_leaves_at_the_root(example, n_folds, seed):
    rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
    check(example, rows, tuning=Tuning(shared_rows=ALONE))


@pytest.mark.parametrize("shared_rows", [20, 90])
@given(examples(max_rows=120), st.integers(2, 6), st.integers(0, 99))
def test_sets_leave_below_the_root(shared_rows, example, n_sets, seed):
    """By then there are rows that only some of the sets have."""
    rows = masks(example.n_rows, n_sets, seed)
    check(example, rows, tuning=Tuning(shared_rows=shared_rows))
