"""What goes over the wire comes back bit for bit."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from dtrees import BaggingRegressor
from dtrees.parallel import replicated
from dtrees.parallel.serialization import _narrowed, _unpickled, aligned, pack, packed_bytes, unpack
from tests.parallel.test_replicated import GROWTH, Y, forest, growth_of


class TestWire:
    def test_what_is_in_no_module_goes_by_value(self):
        def double(x):
            return 2 * x

        again = pickle.loads(pickle.dumps(replicated.SharedArrays((double, np.arange(3)))))
        assert again.value[0](4) == 8
        assert again.value[1].tolist() == [0, 1, 2]

    def test_trees(self):
        trees = [GROWTH.tree(number) for number in range(4)]
        packed = pack(trees)
        assert all(a.equals(b) for a, b in zip(trees, unpack(packed), strict=True))
        sent = sum(part[0].nbytes for part in packed.values() if isinstance(part, tuple))
        assert sent < sum(a.nbytes for tree in trees for a in tree.arrays().values()) * 2 / 3
        assert all(
            array.flags.aligned for tree in unpack(packed) for array in tree.arrays().values()
        )

    def test_the_table_from_buffers_that_are_unaligned_and_read_only(self):
        growth = growth_of(
            forest(max_bins=None), np.random.default_rng(0).random((300, 3)), Y[:300]
        )
        make, (rest, buffers) = replicated.SharedArrays(growth).__reduce__()
        assert make is _unpickled
        shifted = []
        for buffer in buffers:
            room = np.empty(len(buffer) + 1, dtype=np.uint8)[1:]
            room[:] = buffer
            room.flags.writeable = False
            shifted.append(room)
            assert aligned(room).ctypes.data % 64 == 0 or len(room) == 0
        again = make(rest, shifted).value
        assert again.tree(2).equals(growth.tree(2))
        sized = replicated.SharedArrays(growth)
        assert sys.getsizeof(sized) >= growth.coded.nbytes
        assert pickle.loads(pickle.dumps(sized)).value.tree(1).equals(growth.tree(1))


def test_means_come_back_with_their_units():
    # what a regression tree is pickled and saved by
    X, y = np.arange(20.0)[:, None], np.linspace(100, 107, 20)
    trees = BaggingRegressor(3, random_state=0).fit(X, y).forest_.trees
    for tree, again in zip(trees, unpack(pack(trees)), strict=True):
        assert again.equals(tree)
        assert (again.unit, again.offset) == (tree.unit, tree.offset) != (1.0, 0.0)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 127], np.int8),
        ([0, 128], np.uint8),
        ([-1, 128], np.int16),
        ([0, 2**16 - 1], np.uint16),
        ([-1, 2**31 - 1], np.int32),
        ([0, 2**31], np.uint32),
        ([-1, 2**31], np.int64),
        ([0, 2**32], np.int64),
    ],
)
def test_integers_go_in_the_narrowest_type(values, dtype):
    array = np.array(values, dtype=np.int64)
    found = _narrowed(array)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, array)


def test_other_arrays_go_as_they_are():
    for array in (np.array([1.0, 2.0]), np.array([], dtype=np.int64), np.array([True])):
        assert _narrowed(array) is array


def test_bytes_of_what_is_sent():
    packed = pack([GROWTH.tree(0)])
    assert packed_bytes(packed) == sum(
        sent[0].nbytes for sent in packed.values() if isinstance(sent, tuple)
    )
    assert "children_left" not in packed
