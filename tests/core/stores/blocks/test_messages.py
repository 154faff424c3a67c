"""What blocks are told and tell: sums that add up, and tests by code."""

import numpy as np

from dtrees.coding.target import Target
from dtrees.core.model.tree import ABOVE, AT_MOST, IN_SUBSET
from dtrees.core.stores.blocks._node_counts import HIGHEST, LOWEST
from dtrees.core.stores.blocks.messages import (
    Counts,
    FoundSplit,
    Root,
    add_up,
    codes_left,
    merge_bags,
)


def counts(seed):
    rng = np.random.default_rng(seed)
    return Counts(rng.integers(-99, 99, (4, 8)), rng.integers(0, 99, 50))


def test_counts_add_up_and_ranges_widen():
    parts = [counts(seed) for seed in range(3)]
    before = [(part.sums.copy(), part.histogram.copy()) for part in parts]
    total = add_up(iter(parts))
    sums = np.stack([part.sums for part in parts])
    expected = sums.sum(axis=0)
    expected[:, LOWEST], expected[:, HIGHEST] = sums[..., LOWEST].min(0), sums[..., HIGHEST].max(0)
    np.testing.assert_array_equal(total.sums, expected)
    np.testing.assert_array_equal(total.histogram, sum(part.histogram for part in parts))
    for part, (own, histogram) in zip(parts, before, strict=True):  # others may read them
        np.testing.assert_array_equal(part.sums, own)
        np.testing.assert_array_equal(part.histogram, histogram)


def test_bags_of_several_blocks():
    found = merge_bags([[(counts(0), [3]), (counts(1), [])], [(counts(2), [5]), (counts(3), [7])]])
    assert [keys for _, keys in found] == [[3, 5], [7]]
    expected = counts(1).histogram + counts(3).histogram
    np.testing.assert_array_equal(found[1][0].histogram, expected)


def split(test, boundary=2, missing_left=False, subset=None):
    return FoundSplit(0, test, boundary, missing_left, subset)


def test_codes_that_go_left():
    """Six codes behind the missing one, four of which are numbers."""
    subset = np.array([0b1010010], dtype=np.uint64)
    for found, codes in (
        (split(AT_MOST), [1, 2]),
        (split(AT_MOST, missing_left=True), [0, 1, 2]),
        (split(ABOVE), [3, 4]),
        (split(IN_SUBSET, subset=subset), [1, 4, 6]),
    ):
        assert np.flatnonzero(codes_left(found, 7, 4)).tolist() == codes


def test_weights_of_the_classes_of_a_bag():
    target = Target.classification([0, 1, 1])
    assert Root(0, 0).balanced(target) is target
    multiplier = np.array([2, 1])
    found = Root(0, 0, class_multiplier=multiplier, class_exponent=-1).balanced(target)
    np.testing.assert_array_equal(found.class_multiplier, multiplier)
    assert found.class_exponent == -1
