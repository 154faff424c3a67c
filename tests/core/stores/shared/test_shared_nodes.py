"""Shared growth without memory: each allocation that fails ends in a MemoryError, and in order.

And the rows that children get.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core._testing import taken_rows
from dtrees.core.stores.shared._shared_nodes import MOST_CELLS
from tests.no_memory.preload import process_of
from tests.no_memory.sets import WORKS
from tests.registers import wide_registers


@pytest.fixture(scope="module")
def grown():
    """How often the trees of a work were grown while allocations failed, and how often lost."""
    with process_of("sets") as ask:
        yield ask


@pytest.mark.one_of(12)
@pytest.mark.parametrize("work", WORKS)
def test_allocations_may_fail(work, grown):
    n_grown, n_lost = grown(work, 10 if work == "threads" else 24)
    assert n_grown > 16
    assert n_lost > n_grown // 2


@pytest.mark.long
@pytest.mark.parametrize("work", WORKS)
def test_every_allocation_may_fail(work, grown):
    n_grown, n_lost = grown(work, 100 if work == "threads" else 2_000)
    assert n_grown > 16
    assert n_lost > n_grown // 2


@given(
    st.integers(1, 200),
    st.integers(1, 2),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(["as they were", "joined", "some are left behind"]),
)
def test_rows_of_one_side_keep_their_order_and_their_cells(n, wanted, seed, wide, cells):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2**32, n, dtype=np.uint32)
    cell = rng.integers(0, MOST_CELLS, n, dtype=np.uint8)
    side = rng.integers(0, 4, n, dtype=np.uint8)
    new_cell = np.arange(MOST_CELLS, dtype=np.uint8)
    full = np.ones(MOST_CELLS, dtype=np.uint8)
    if cells == "joined":
        new_cell //= 2
    elif cells == "some are left behind":
        full[rng.random(MOST_CELLS) < 0.5] = 0
        new_cell = np.where(full, np.cumsum(full) - 1, 0).astype(np.uint8)
        side[full[cell] == 0] = 3
    with wide_registers(wide):
        found, found_cell = taken_rows(rows, cell, side, wanted, new_cell, full)
    assert found.tolist() == rows[side == wanted].tolist()
    assert found_cell.tolist() == new_cell[cell[side == wanted]].tolist()
