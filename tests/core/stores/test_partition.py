"""Rows that go to the children of a node: those that the written tests send there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from dtrees.core.stores._partition import partitioned, partitioned_rows
from tests.core.walk import rows_of_nodes
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, grow_parts, seeded
from tests.registers import wide_registers


@pytest.mark.one_of(6)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("counted_rows", [0, 1 << 40], ids=["counted", "sorted"])
@pytest.mark.parametrize("storage", ["uint8", "uint32", "sparse"])
def test_every_row_goes_where_its_tests_say(case, counted_rows, storage):
    example = seeded(*case)
    table, target = example.table, example.target
    matrix = {
        "uint8": lambda: coded(table),
        "uint32": lambda: coded(table, 70_000),
        "sparse": lambda: coded_sparse(table, 7),
    }[storage]()
    tree = grow_parts(example, [(matrix, target)], tuning=Tuning(counted_rows=counted_rows))
    rows = rows_of_nodes(tree, example)
    assert [len(rows[node]) for node in range(tree.node_count)] == tree.n_node_samples.tolist()
    assert tree.node_count > 20


def check_order(partition, items, is_left, side, wide):
    """Items that go left come first, in their order, and then the others."""
    with wide_registers(wide):
        found, n_left = partition(items, side)
    assert n_left == np.count_nonzero(is_left)
    assert found.tolist() == [*items[is_left], *items[~is_left]]


@given(st.integers(0, 200), st.floats(0, 1), st.integers(0, 2**32 - 1), st.booleans())
def test_entries_and_rows_keep_their_order_on_both_sides(n, share, seed, wide):
    rng = np.random.default_rng(seed)
    side = (rng.random(100_000) < share).astype(np.uint8)
    rows = rng.permutation(len(side))[:n].astype(np.uint32)
    check_order(partitioned_rows, rows, side[rows] == 1, side, wide)
    rows = rng.permutation(2**16)[:n].astype(np.uint32)  # which an entry has room for
    entries = np.sort(rng.integers(0, 2**16, n, dtype=np.uint32)) << 16 | rows
    check_order(partitioned, entries, side[rows] == 1, side, wide)
