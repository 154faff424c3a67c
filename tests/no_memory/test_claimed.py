"""Many sets hold little: the entries of sparse columns a few times, and one scratch of searches."""

import pytest

from tests.no_memory.preload import process_of

N_ROWS = 100_000
ENTRY = 8  # bytes
MOST_HELD = 2  # times what one set has: those of the root, and of nodes and sets below it
MOST_PER_ROW = 40  # bytes of what does not depend on entries
MOST_PER_SET = 8_000  # bytes of small trees: records, and what a search knows of a node


@pytest.fixture(scope="module")
def claimed():
    """Most bytes that were claimed at one time, and stored cells."""
    with process_of("claimed") as ask:
        yield ask


@pytest.mark.one_of(2)
@pytest.mark.parametrize("n_folds", [5, 10])
def test_entries_do_not_stand_once_for_each_group(claimed, n_folds):
    """Eleven sets that go apart at the root would hold them seven times."""
    without, _ = claimed(0, N_ROWS, n_folds)
    n_bytes, n_cells = claimed(15, N_ROWS, n_folds)
    assert without < MOST_PER_ROW * N_ROWS
    assert n_bytes - without < MOST_HELD * ENTRY * n_cells


def test_sets_have_one_scratch_of_searches(claimed):
    """The boundaries that each of them could score together would be 11,000 bytes."""
    few, _ = claimed(0, 1000, 10)
    many, _ = claimed(0, 1000, 40)
    assert many - few < 30 * MOST_PER_SET
