"""Combinations of training sets: there are as many numbers as 16 bits hold."""

import numpy as np
import pytest

from dtrees.core.stores.blocks._node_partition import partition
from dtrees.core.stores.blocks.block import NodeRows
from dtrees.core.stores.blocks.messages import Root
from tests.core.stores.blocks.test_node_partition import ALL_SETS, shard_of


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
