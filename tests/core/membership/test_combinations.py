"""Rows of several training sets, parted: a row's kind says the sets that it is in."""

import numpy as np
import pytest

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._block import partition_shared

EVERYONE = 2**64 - 1


def shard_of(codes, n_codes):
    """Rows of one column."""
    coded = CodedMatrix.from_columns([codes], [n_codes], [n_codes])
    target = Target.classification(np.arange(len(codes)) % 2)
    return Dataset(coded, target, GrowthRules(criterion="gini"))


def parted(codes, masks, kind, left_of, members=EVERYONE):
    """Rows, kinds and masks of both children; `left_of` has an entry for each code."""
    rows = np.arange(len(codes), dtype=np.uint32)
    shard = shard_of(codes, len(left_of) - 1)
    return partition_shared(shard, rows, None, kind.astype(np.uint16), masks, 0, left_of, members)


@pytest.mark.parametrize("members", [EVERYONE, 0x00FF00FF00FF00FF])
@pytest.mark.parametrize("n_kinds", [1, 5, 200, 3000])  # tables of 64 slots, and wider ones
def test_rows_go_with_the_sets_that_sent_them(n_kinds, members):
    rng = np.random.default_rng(n_kinds)
    n = 5000
    masks = rng.integers(1, EVERYONE, n_kinds, dtype=np.uint64, endpoint=True)
    kind, codes = rng.integers(0, n_kinds, n), rng.integers(0, 4, n)
    left_of = rng.integers(0, EVERYONE, 4, dtype=np.uint64, endpoint=True)
    who = masks[kind] & np.uint64(members)
    sides = parted(codes, masks, kind, left_of, members)
    for sent, found in zip((left_of[codes], ~left_of[codes]), sides, strict=True):
        rows, times, of_side, own = found
        expected = who & sent
        assert times is None
        np.testing.assert_array_equal(rows, np.flatnonzero(expected))
        np.testing.assert_array_equal(own[of_side], expected[rows])
        assert len(np.unique(own)) == len(own)  # a number for each combination
        assert (np.diff(np.unique(of_side, return_index=True)[1]) > 0).all()  # as they came


def test_more_kinds_than_numbers():
    """65,536 combinations have a number; one more is an error."""
    masks = np.arange(1, 2**16 + 1, dtype=np.uint64)
    kind, codes = np.arange(2**16), np.zeros(2**16, dtype=np.int64)
    left_of = np.array([EVERYONE, EVERYONE], dtype=np.uint64)
    (rows, _, of_side, own), nobody = parted(codes, masks, kind, left_of)
    assert len(rows) == len(own) == 2**16
    np.testing.assert_array_equal(own[of_side], masks)
    assert len(nobody[0]) == 0

    kind, codes = np.append(kind, 0), np.append(codes, 1)
    left_of[0] = EVERYONE - 2**20  # code 0 sends set 20 to the right
    masks[0] = 2**20 + 1  # a row of code 1 goes left with both, the first one alone
    with pytest.raises(MemoryError, match="more than 65,536 combinations of training sets"):
        parted(codes, masks, kind, left_of)
