"""Without memory for a block of a kernel a fit raises MemoryError, and nothing is left behind."""

import pytest

from tests.no_memory.boosted import WORKS
from tests.no_memory.preload import process_of


@pytest.fixture(scope="module")
def boosted():
    """How often a boosted model was grown while allocations failed, and how often that was told."""
    with process_of("boosted") as ask:
        yield ask


@pytest.mark.one_of(6)
@pytest.mark.parametrize("work", WORKS)
def test_boosted_models(work, boosted):
    n_grown, n_lost = boosted(work, 60)
    assert n_lost > n_grown // 2


@pytest.mark.long
@pytest.mark.rest
def test_a_failed_allocation_ends_in_a_memory_error():
    with process_of("models") as ask:
        n_made, n_lost = ask(1, 12, 3)
    assert n_made > 24
    assert n_lost > n_made // 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_failed_allocations(seed):
    with process_of("models") as ask:
        n_made, n_lost = ask(seed, 190, 3)
    assert n_lost > n_made // 2
