"""Intervals that are alive are scanned code by code, and ties are settled as in a tree alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow import shared
from dtrees.core.grow.shared import n_alone
from dtrees.core.membership.resampling import of_sets
from tests.core.stores.shared.test_shared_intervals import BY_INTERVALS, example_of
from tests.laws.tables import Example, coded
from tests.laws.test_class_weights import check_sets as check_weighed
from tests.laws.test_shared import check_sets, folds, grow_sets, masks

TOGETHER = Tuning(shared_rows=0, **BY_INTERVALS)
few = settings(max_examples=max(10, settings.default.max_examples // 5))


def periodic(rng, n_rows, n_classes, missing):
    """Targets that repeat, by code: many boundaries of one column score the same, on either side of
    missing values."""
    period = np.append([0, 1], rng.integers(0, n_classes, rng.integers(0, 7)))
    codes = rng.permutation(n_rows)
    y = period[codes * int(rng.integers(1, 4)) // 3 % len(period)]
    column = codes.astype(float)
    if rng.random() < 0.3:
        column = np.minimum(column, n_rows - column)  # mirrored
    column[rng.random(n_rows) < missing] = np.nan
    return column, y


@few
@given(
    st.sampled_from([("gini", 2), ("gini", 3), ("entropy", 2), ("entropy", 4), ("poisson", 0)]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.02, 0.4]),
    st.booleans(),
)
def test_ties_are_settled_as_in_one_tree(grown_so_far, case, seed, missing, random_ties):
    grown_so_far.clear()
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(520, 800))
    columns, targets = zip(
        *[periodic(rng, n_rows, max(case[1], 2), missing) for _ in range(3)], strict=True
    )
    table = [[None if np.isnan(v) else v for v in column.tolist()] for column in columns]
    y = targets[0].astype(int) if case[1] > 0 else targets[0] + 1.0
    limits = {"max_depth": 3, "min_samples_leaf": int(rng.integers(1, 9))}
    if random_ties:
        limits |= {"random_ties": True, "seed": seed % 99}
    weight = rng.integers(0, 3, n_rows) if rng.random() < 0.3 else None
    example = Example(table, y, weight, case[0], limits)
    rows = folds(n_rows, 3, seed) if rng.random() < 0.5 else masks(n_rows, 3, seed)
    check_sets(example, rows, tuning=TOGETHER)
    assert sum(sets.n_alive for sets in grown_so_far) > 0


@pytest.mark.parametrize("weights", ["none", "times"])
@pytest.mark.parametrize("kind", ["balanced", "any"])
@pytest.mark.parametrize("case", [("gini", 2), ("gini", 4), ("entropy", 3)], ids=str)
def test_sets_with_class_weights_of_their_own(grown_so_far, case, kind, weights):
    grown_so_far.clear()
    example = example_of(*case, weights, max_depth=4)
    check_weighed(example, folds(600, 4, 1), kind, tuning=TOGETHER)
    assert sum(sets.n_alive for sets in grown_so_far) > 0


def test_many_codes_take_no_memory(grown_so_far, monkeypatch):
    """Tables share, however many codes there are, unless these are grown_so_far one by one."""
    example = example_of("squared_error", 0, n_rows=1500, max_depth=2)
    rows, matrix = folds(1500, 3, 0), coded(example.table, 70_000)
    monkeypatch.setattr(shared, "MOST_NUMBERS", 2**14)
    grown_so_far.clear()
    few_rows = Tuning(shared_rows=0, interval_rows=64)
    check_sets(example, rows, matrix, tuning=few_rows)
    assert grown_so_far[0].n_alive > 0
    assert grown_so_far[0].n_shared_nodes > 0
    grown_so_far.clear()
    grow_sets(example, matrix, rows, tuning=Tuning(shared_rows=0, interval_rows=2**40))
    assert grown_so_far == []
    sets = of_sets(rows)
    monkeypatch.setattr(shared, "MOST_NUMBERS", 100)
    reason = "counts of two of them would take too much memory"
    assert n_alone(matrix, example.target, example.rules, sets) == (len(rows), reason)


def test_a_tree_on_the_far_side_of_an_interval_without_rows(grown_so_far):
    """What lies between two codes of a set may be intervals that only other sets have."""
    rng = np.random.default_rng(3)
    column = np.sort(rng.normal(size=1200))
    y = (np.arange(1200) >= 600).astype(int)
    rows = np.ones((3, 1200), dtype=bool)
    rows[0, 500:700] = False
    rows[1, 601:650] = False
    example = Example([column.tolist()], y, None, "gini", {"max_depth": 2})
    grown_so_far.clear()
    check_sets(example, rows, tuning=TOGETHER)
    assert grown_so_far[0].n_alive > 0
