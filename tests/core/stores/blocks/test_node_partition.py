"""Rows of a node go to its children: to each with the sets that send them there."""

import numpy as np
import pytest
import scipy.sparse

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_partition import partition
from dtrees.core.stores.blocks.block import EVERYONE, NodeRows
from dtrees.core.stores.blocks.messages import Root
from tests.coding.examples import coded_columns, coded_csc

N = 3000
ALL_SETS = 2**64 - 1


def shard_of(codes, n_codes, sparse=False):
    """Rows of one column."""
    target = Target.classification(np.arange(len(codes)) % 2)
    if sparse:
        stored = scipy.sparse.csc_array(codes[:, None].astype(np.uint32))
        coded = coded_csc(stored, [n_codes], [n_codes], [0])
    else:
        coded = coded_columns([codes], [n_codes], [n_codes])
    return Dataset(coded, target, GrowthRules(criterion="gini"))


@pytest.mark.parametrize("in_bags", [False, True])
@pytest.mark.parametrize(
    ("n_codes", "sparse"), [(9, False), (300, False), (70_000, False), (9, True)]
)
def test_rows_of_one_set(n_codes, sparse, in_bags):
    """Columns of 8, 16 and 32 bits, and sparse ones; of 32 bits there is no table of sides."""
    rng = np.random.default_rng(n_codes)
    codes = rng.integers(0, n_codes + 1, N)
    rows = np.flatnonzero(rng.random(N) < 0.7).astype(np.uint32)
    times = rng.integers(1, 9, len(rows)).astype(np.uint16) if in_bags else None
    left_of = rng.integers(0, 2, n_codes + 1, dtype=np.uint64)
    node = NodeRows(Root(0, 0), rows, times, None, EVERYONE)
    sides = partition(shard_of(codes, n_codes, sparse), node, 0, left_of, 1)
    goes_left = left_of[codes[rows]] == 1
    for there, found in zip((goes_left, ~goes_left), sides, strict=True):
        np.testing.assert_array_equal(found[0], rows[there])
        assert (found[1] is None) if times is None else (found[1] == times[there]).all()
        assert found[2] is None
        np.testing.assert_array_equal(found[3], EVERYONE)


@pytest.mark.parametrize("in_bags", [False, True])
@pytest.mark.parametrize("members", [ALL_SETS, 0x00FF00FF00FF00FF])
@pytest.mark.parametrize("n_combinations", [1, 5, 200, 3000])  # with and without a table of sides
def test_rows_go_with_the_sets_that_sent_them(n_combinations, members, in_bags):
    rng = np.random.default_rng(n_combinations)
    masks = rng.integers(1, ALL_SETS, n_combinations, dtype=np.uint64, endpoint=True)
    combination, codes = rng.integers(0, n_combinations, N), rng.integers(0, 4, N)
    times = rng.integers(1, 9, N).astype(np.uint16) if in_bags else None
    left_of = rng.integers(0, ALL_SETS, 4, dtype=np.uint64, endpoint=True)
    rows = np.arange(N, dtype=np.uint32)
    node = NodeRows(Root(0, 0), rows, times, combination.astype(np.uint16), masks)
    who = masks[combination] & np.uint64(members)
    sides = partition(shard_of(codes, 3), node, 0, left_of, members)
    for sent, found in zip((left_of[codes], ~left_of[codes]), sides, strict=True):
        rows, own_times, of_side, own = found
        expected = who & sent
        np.testing.assert_array_equal(rows, np.flatnonzero(expected))
        assert (own_times is None) if times is None else (own_times == times[rows]).all()
        np.testing.assert_array_equal(own[of_side], expected[rows])
        assert len(np.unique(own)) == len(own)  # a number for each combination
        assert (np.diff(np.unique(of_side, return_index=True)[1]) > 0).all()  # as they came


def test_no_rows():
    nothing = np.zeros(0, dtype=np.uint32)
    node = NodeRows(Root(0, 0), nothing, None, nothing.astype(np.uint16), EVERYONE)
    sides = partition(shard_of(np.zeros(3, int), 2), node, 0, np.ones(3, dtype=np.uint64), 1)
    assert [len(rows) for rows, *_ in sides] == [0, 0]


def partitioned(codes, masks, combination, left_of):
    rows = np.arange(len(codes), dtype=np.uint32)
    node = NodeRows(Root(0, 0), rows, None, combination.astype(np.uint16), masks)
    return partition(shard_of(codes, 1), node, 0, left_of, ALL_SETS)


def test_more_combinations_than_numbers():
    """65,536 combinations have a number; one more is an error."""
    masks = np.arange(1, 2**16 + 1, dtype=np.uint64)
    combination, codes = np.arange(2**16), np.zeros(2**16, dtype=np.int64)
    left_of = np.array([ALL_SETS, ALL_SETS], dtype=np.uint64)
    (rows, _, of_side, own), nobody = partitioned(codes, masks, combination, left_of)
    assert len(rows) == len(own) == 2**16
    np.testing.assert_array_equal(own[of_side], masks)
    assert len(nobody[0]) == 0

    combination, codes = np.append(combination, 0), np.append(codes, 1)
    left_of[0] = ALL_SETS - 2**20  # code 0 sends set 20 to the right
    masks[0] = 2**20 + 1  # a row of code 1 goes left with both, the first one alone
    with pytest.raises(MemoryError, match="more than 65,536 combinations of training sets"):
        partitioned(codes, masks, combination, left_of)
