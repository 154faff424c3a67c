"""Rows are named in few bytes, and trees go in loads."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.parallel import apply_requests
from dtrees.parallel.apply_requests import RequestedRows, loads, named, numbers_of
from tests.parallel.test_distributed_apply import TREES


@given(st.sets(st.integers(0, 499)), st.integers(500, 700))
def test_rows_are_named_in_few_bytes(rows, length):
    ascending = np.array(sorted(rows), dtype=np.int64)
    sent = named(ascending, length)
    np.testing.assert_array_equal(numbers_of(sent, length), ascending)
    assert sent.nbytes <= min(4 * len(rows), -(-length // 8)) or sent.dtype == np.uint8
    assert sent.nbytes <= -(-length // 8)


@given(st.lists(st.integers(0, 99)))
def test_sides_give_every_row_to_its_part(rows):
    rows = np.array(rows, dtype=np.int64)
    side = RequestedRows(rows)
    parts = [numbers_of(side.of_part(i, 25), 25) + i for i in range(0, 100, 25)]
    np.testing.assert_array_equal(side.in_order(np.concatenate(parts)), rows)


def test_loads_have_every_tree_once_and_in_order(monkeypatch):
    n_bytes = 2 * apply_requests.NODE_BYTES * TREES[0].node_count
    monkeypatch.setattr(apply_requests, "LOAD_BYTES", n_bytes)
    asked = [(TREES, np.arange(5)), (TREES[:2], np.arange(3)), (TREES[:1], np.arange(0))]
    for with_values in (False, True):
        made = list(loads(asked, with_values))
        assert len(made) > 2
        trees = [
            (item.number, i) for load in made for item in load for i in range(item.first, item.last)
        ]
        assert trees == [
            (number, i) for number, (some, _) in enumerate(asked) for i in range(len(some))
        ]
        assert all(
            load[0].first == 0 or load[0].number in {i.number for i in before}
            for before, load in itertools.pairwise(made)
        )
