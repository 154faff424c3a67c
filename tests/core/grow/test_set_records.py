"""What a thread records of several sets: subtrees one behind the other, given back set by set."""

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow._arena import Arena
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.typing import serial
from tests.laws.tables import SEVEN_WAYS, coded, seeded
from tests.laws.test_shared import check_sets, folds

KINDS = ("ties", "hybrid", "counts")  # with subsets, whose words are counted, too
N_ROWS = 20_000


@pytest.mark.parametrize("lends", [True, False])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_one_thread_grows_subtrees_of_many_nodes(case, lends):
    """Work is divided for three threads, and one does it all: each set has its tree."""
    example = seeded(*case, kinds=KINDS, n_rows=250)
    tuning = Tuning(shared_rows=0, task_entries=0, level_entries=1 << 40)
    how = {"run": serial, "n_threads": 3, "tuning": tuning, "arena": Arena(lends_records=lends)}
    check_sets(example, folds(250, 5, 0), **how)


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux says it exactly")
def test_records_of_a_set_are_given_back_with_its_tree():
    """And a heap keeps what the first tree has taken, not what the records of all took."""
    numbers = np.random.default_rng(0).random((2, N_ROWS))
    example = replace(seeded("squared_error", 0, "none"), table=numbers[:1].tolist(), y=numbers[1])
    arena = Arena(lends_records=False)
    how = {"arena": arena, "n_threads": 3, "tuning": Tuning(task_entries=0)}
    source = DatasetSource(coded(example.table), example.target, example.rules, **how)
    sets = of_sets(folds(N_ROWS, 4, 0))
    list(pieces_of_sets(source, [example.rules] * 5, sets))  # heaps have what they need
    before = resident()
    n_bytes, held = [], []
    for piece in pieces_of_sets(source, [example.rules] * 5, sets):
        n_bytes.append(piece.nodes.nbytes + piece.statistics.nbytes)
        del piece
        held.append(resident() - before)
    assert min(n_bytes) > 10**6
    assert held[0] < sum(n_bytes[1:]) + 2 * n_bytes[0]
    assert -np.diff(held[:-1]) == pytest.approx(n_bytes[1:-1], rel=0.2)
    assert held[-1] < n_bytes[-1]


def resident():
    """Bytes of resident memory of this process; `statm` is off by some pages for each processor."""
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))
