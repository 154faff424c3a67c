"""Limits that are shares of what a training set has."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.membership.resampling import of_sets
from dtrees.core.membership.shares import Shares, rows_of_share

RULES = GrowthRules(criterion="gini", min_samples_split=7, min_samples_leaf=3, min_weight_leaf=2.5)
SHARES = Shares(min_samples_split=0.3, min_samples_leaf=0.1, min_weight_leaf=0.25)


@given(st.floats(0, 1), st.integers(0, 10**9))
def test_shares_are_rounded_up(share, n_rows):
    n = rows_of_share(share, n_rows)
    assert n - 1 < Fraction(share * n_rows) <= n


def test_numbers_stay_where_there_is_no_share():
    target = Target.classification([0, 1])
    assert Shares().rules(RULES, target) == RULES
    found = Shares(min_samples_leaf=0.9).rules(RULES, target)
    assert (found.min_samples_split, found.min_samples_leaf, found.min_weight_leaf) == (7, 2, 2.5)


@pytest.mark.parametrize(("n_rows", "split", "leaf"), [(0, 2, 1), (5, 2, 1), (11, 4, 2)])
def test_limits_have_a_least_value(n_rows, split, leaf):
    found = SHARES.applied(RULES, n_rows, 8.0)
    assert (found.min_samples_split, found.min_samples_leaf) == (split, leaf)
    assert found.min_weight_leaf == 2.0


def test_rows_that_weigh_nothing_do_not_count():
    weights = np.array([0.5, 0, 1.5, 2, 0, 0, 1, 1])
    found = SHARES.rules(RULES, Target.classification([0, 1] * 4, weights))
    assert found == SHARES.applied(RULES, 5, 6.0)
    bag = Target.classification([0, 1] * 4, weights * 3)
    found = SHARES.rules(RULES, Target.classification([0, 1] * 4, weights), bag)
    assert found == SHARES.applied(RULES, 5, 18.0)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_each_set_has_the_shares_of_its_rows(seed, weighted):
    rng = np.random.default_rng(seed)
    rows = rng.random((4, 20)) < 0.7
    rows[:, 0] = True
    weights = rng.integers(0, 3, 20) / 2 if weighted else None
    if weighted:
        weights[0] = 1.0
    target = Target.classification(rng.integers(0, 2, 20), weights)
    found = SHARES.rules_of_sets(RULES, of_sets(rows), target)
    own = np.ones(20) if weights is None else weights
    for rules, mine in zip(found, rows, strict=True):
        assert rules == SHARES.applied(RULES, int((own[mine] > 0).sum()), float(own[mine].sum()))
