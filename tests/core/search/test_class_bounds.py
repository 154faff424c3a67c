"""Bounds of several classes hold where slopes have none, and are the best ones for two classes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.search._intervals import bounds_of
from tests.core.search.test_intervals import score

counts = st.integers(0, 40)


def bound(rows, impurity):
    """The bound of the middle one of three intervals, of these rows of each class."""
    rows = np.array(rows, dtype=np.int64)
    last = np.array([1, 99, 100], dtype=np.uint32)
    return bounds_of(rows, rows.sum(axis=1), last, impurity=impurity)[1][1]


def score_of(left, right, impurity):
    both = np.vstack(
        [np.repeat(np.eye(len(left), dtype=np.int64), each, 0) for each in (left, right)]
    )
    return score(both, np.arange(len(both)) < sum(left), impurity)


@pytest.mark.parametrize("impurity", ["", "entropy"])
@given(st.data())
def test_no_mix_of_rows_is_better(impurity, data):
    """Classes may be missing on any side, where the slope of x log x is infinite."""
    K = data.draw(st.integers(3 if impurity == "" else 2, 5))
    before, inside, behind = (
        np.array(data.draw(st.lists(counts, min_size=K, max_size=K))) for _ in range(3)
    )
    before[0] += before.sum() == 0
    behind[-1] += behind.sum() == 0
    inside[0] += 2 * (inside.sum() < 2)
    part = np.array([data.draw(st.integers(0, int(most))) for most in inside])
    corners = [inside * np.array(has) for has in itertools.product((0, 1), repeat=K)]
    most = bound([before, inside, behind], impurity) + 1e-9 * before.sum()
    for each in (part, *corners):
        assert score_of(before + each, behind + inside - each, impurity) <= most


@given(st.lists(st.integers(1, 30), min_size=6, max_size=6))
def test_two_classes_have_four_corners(numbers):
    before, inside, behind = np.array(numbers).reshape(3, 2)
    found = max(
        score_of(before + part, behind + inside - part, "entropy")
        for part in (inside * 0, inside * [1, 0], inside * [0, 1], inside)
    )
    assert bound([before, inside, behind], "entropy") == pytest.approx(found, rel=1e-6, abs=100)


@pytest.mark.parametrize("n_classes", [2, 3])
@given(st.integers(0, 2**32 - 1))
def test_what_x_log_x_loses_is_added(n_classes, seed):
    """Sides of nearly the same shares: what a row changes is less than its roundings."""
    rng = np.random.default_rng(seed)
    share = np.append(2**25, rng.integers(1, 3, n_classes - 1)) + rng.integers(0, 2, n_classes)
    inside = np.array([int(rng.integers(2, 9))] + [0] * (n_classes - 1))
    before, behind = share, share * int(rng.integers(1, 3))
    most = bound([before, inside, behind], "entropy")
    for some in range(1, inside[0]):
        part = np.array([some] + [0] * (n_classes - 1))
        rows = np.array([before + part, inside - part, behind], dtype=np.int64)
        last = np.array([1, 99, 100], dtype=np.uint32)
        at_end = bounds_of(rows, rows.sum(axis=1), last, impurity="entropy")[0]
        assert at_end[0] <= most
