"""What blocks are told and tell: sums that add up, and tests by code."""

from dataclasses import replace

import numpy as np
import pytest

from dtrees.core.model.tree import ABOVE, AT_MOST, IN_SUBSET
from dtrees.core.stores.blocks._node_counts import HIGHEST, HIGHEST_SHARE, LOWEST, LOWEST_SHARE
from dtrees.core.stores.blocks.messages import (
    Counts,
    FoundSplit,
    Histogram,
    StoredCounts,
    add_up,
    codes_left,
    ends_of_codes,
    merge_bags,
)


def counts(seed):
    rng = np.random.default_rng(seed)
    return Counts(rng.integers(-99, 99, (4, 10)), rng.integers(0, 99, 50))


def test_counts_add_up_and_ranges_widen():
    parts = [counts(seed) for seed in range(3)]
    before = [(part.sums.copy(), part.histogram.copy()) for part in parts]
    total = add_up(iter(parts))
    sums = np.stack([part.sums for part in parts])
    expected = sums.sum(axis=0)
    for least, most in ((LOWEST, HIGHEST), (LOWEST_SHARE, HIGHEST_SHARE)):
        expected[:, least], expected[:, most] = sums[..., least].min(0), sums[..., most].max(0)
    np.testing.assert_array_equal(total.sums, expected)
    np.testing.assert_array_equal(total.histogram, sum(part.histogram for part in parts))
    for part, (own, histogram) in zip(parts, before, strict=True):  # others may read them
        np.testing.assert_array_equal(part.sums, own)
        np.testing.assert_array_equal(part.histogram, histogram)


def stored(seed, n_lists=3):
    """Lists, and the same in full."""
    rng = np.random.default_rng(seed)
    full = rng.integers(-1, 2, (n_lists, 20)) * (rng.random((n_lists, 20)) < 0.4)
    return StoredCounts.of([(np.flatnonzero(own), own[own != 0], None) for own in full]), full


def in_full(lists):
    full = np.zeros((len(lists.ends), 20), dtype=int)
    for own, (places, values, _) in zip(full, lists.lists(), strict=True):
        own[places] = values
    return full


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 7])
def test_lists_add_up_whatever_their_number(n_blocks):
    parts, full = zip(*map(stored, range(n_blocks)), strict=True)
    total = add_up(replace(counts(i), stored=part) for i, part in enumerate(parts))
    np.testing.assert_array_equal(in_full(total.stored), sum(full))
    assert 0 not in total.stored.values
    for part, own in zip(parts, full, strict=True):
        np.testing.assert_array_equal(in_full(part), own)
    assert len(list(total.stored_lists())) == 3


def test_tables_without_sparse_columns_have_empty_lists():
    lists = counts(0).stored_lists()
    for _ in range(4):
        places, values, who = next(lists)
        assert len(places) == len(values) == 0
        assert who is None


def test_lists_of_one_set_beside_those_of_several():
    one = np.array([3, 5]), np.array([1, 2]), None
    several = np.array([4, 4]), np.array([7, -7]), np.array([1, 2], dtype=np.uint64)
    found = StoredCounts.of([one, several])
    assert found.who.tolist() == [1, 1, 1, 2]
    assert found.nbytes == 4 * 24 + 2 * 8
    assert replace(counts(0), stored=found).nbytes == counts(0).nbytes + found.nbytes
    twice = found.added(StoredCounts.of([one, several])).lists()
    assert [values.tolist() for _, values, _ in twice] == [[2, 4], [14, -14]]
    assert [who.tolist() for _, _, who in twice] == [[1, 1], [1, 2]]


def test_a_node_less_another_one():
    (whole, full), (part, own) = stored(1, 1), stored(2, 1)
    dense = np.arange(5)
    whole, part = (each.lists()[0][:2] for each in (whole, part))
    left = Histogram(3 * dense, *whole).less(Histogram(dense, *part))
    np.testing.assert_array_equal(left.dense, 2 * dense)
    found = StoredCounts.of([(left.places, left.values, None)])
    np.testing.assert_array_equal(in_full(found), full - own)


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


@pytest.mark.parametrize("n_ordered", [4, 6])
def test_stretches_of_codes_that_tests_do_not_tell_apart(n_ordered):
    tests = [split(AT_MOST), split(AT_MOST, 1, missing_left=True), split(ABOVE)]
    ends = ends_of_codes(tests, 7, n_ordered)
    number = np.searchsorted(ends, np.arange(7))
    assert number[0] == 0 < number[1]
    for found in tests:
        of_stretch = codes_left(found, 7, n_ordered, ends)
        np.testing.assert_array_equal(of_stretch[number], codes_left(found, 7, n_ordered))
    subset = np.array([0b1010010], dtype=np.uint64)
    assert ends_of_codes([*tests, split(IN_SUBSET, subset=subset)], 7, 4) is None
