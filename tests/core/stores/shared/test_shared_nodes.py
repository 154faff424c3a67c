"""Shared growth without memory: each allocation that fails ends in a MemoryError, and in order."""

import pytest

from tests.no_memory.preload import process_of
from tests.no_memory.sets import WORKS


@pytest.fixture(scope="module")
def grown():
    """How often the trees of a work were grown while allocations failed, and how often lost."""
    with process_of("sets") as ask:
        yield ask


@pytest.mark.one_of(6)
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
