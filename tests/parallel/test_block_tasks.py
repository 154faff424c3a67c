"""Tasks on blocks of rows, the sizes of their results, and positions that a worker remembers."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from dask.sizeof import sizeof
from dask.system import CPU_COUNT
from distributed.system import MEMORY_LIMIT

from dtrees.coding.target import Target
from dtrees.core.stores.blocks.messages import Counts
from dtrees.parallel import forest_members
from dtrees.parallel.block_tasks import (
    PositionCache,
    make_codes,
    make_rows,
    room_of_positions,
)
from dtrees.parallel.memory import PROCESS_BYTES
from tests.laws.tables import coded
from tests.parallel.faults import fitted
from tests.parallel.test_collections import hash_of
from tests.parallel.test_partitioned import EXPECTED

CODED = coded([[float(i % 9) for i in range(5000)] for _ in range(4)])
TARGET = Target.regression(np.arange(5000.0))
KEYS = np.arange(5000, dtype=np.uint64)
REST = TARGET.y.nbytes + KEYS.nbytes
OWN = CODED.nbytes + REST


def halves():
    return make_codes([CODED]), make_rows([TARGET], 0, [KEYS], [])


def test_sizes():
    counts = Counts(np.zeros((1, 8), dtype=np.int64), np.zeros(1000, dtype=np.int64))
    for found, n_bytes in (
        (counts, counts.nbytes),
        (halves()[0], 1.6 * CODED.nbytes),
        (halves()[1], 1.6 * REST),
    ):
        assert n_bytes <= sizeof(found) <= 2 * n_bytes


def test_a_worker_that_gets_a_block_knows_its_size(tmp_path):
    """Though it has imported nothing of the package."""
    path = tmp_path / "block"
    path.write_bytes(pickle.dumps(halves()))
    code = (
        "import pickle, sys; from dask.sizeof import sizeof; "
        "print(sum(map(sizeof, pickle.load(open(sys.argv[1], 'rb')))))"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 1.6 * OWN


class Rows:
    """Rows of a block; their positions are some bytes, and say how many updates were taken."""

    def __init__(self, n_bytes=10):
        self.n_bytes = n_bytes

    def advance(self, positions, update):
        n = positions[0].n + 1 if positions else 1
        return {0: SimpleNamespace(nbytes=self.n_bytes, n=n)}


class TestPositionCache:
    """What is remembered, of a growth and of all of a worker."""

    def after(self, cache, n_updates, block, n_bytes=10):
        """Whether positions were known; they are those after so many updates."""
        work = Counter()
        positions = cache.after([None] * n_updates, block, Rows(n_bytes), work)
        assert positions[0].n == n_updates
        return dict(work)

    def test_the_first_blocks_of_a_growth_stay(self):
        cache = PositionCache("a", 30)
        for n_updates in (1, 2, 3):
            known = [self.after(cache, n_updates, block) for block in range(5)]
            is_known = (True,) * 5 if n_updates == 1 else (True, True, True, False, False)
            assert known == [{"cache_hits" if each else "rebuilds": 1} for each in is_known]
            assert cache.nbytes == 30

    def test_what_is_too_large_is_not_remembered(self):
        cache = PositionCache("a", 30)
        self.after(cache, 1, 0)
        self.after(cache, 2, 0, 31)
        assert cache.nbytes == 0
        assert self.after(cache, 3, 0) == {"rebuilds": 1}
        assert self.after(cache, 4, 0) == {"cache_hits": 1}

    def test_growths_of_a_worker_share_its_room(self):
        one, same, other = (PositionCache(worker, 30) for worker in "aab")
        for cache in (one, same, other):
            self.after(cache, 1, 0, 20)
        assert [cache.nbytes for cache in (one, same, other)] == [20, 0, 20]
        del one
        self.after(same, 2, 0, 20)
        assert same.nbytes == 20
        same.end()
        self.after(same, 3, 0, 0)
        assert same._held == {}

    @pytest.mark.parametrize(
        ("limit", "n_threads", "given", "expected"),
        [(2**33, 2, None, (2**33 - PROCESS_BYTES) // 4), (400, 2, "30 B", 30), (0, 1, "30 B", 30)],
    )
    def test_room(self, limit, n_threads, given, expected):
        with dask.config.set({"dtrees.position-cache": given}):
            assert room_of_positions(limit, n_threads) == expected

    def test_room_without_a_limit(self):
        for share in (2, 1):
            mine = room_of_positions(MEMORY_LIMIT // share, 1)
            assert room_of_positions(None, CPU_COUNT / share) == mine
        assert room_of_positions(None, 2 * CPU_COUNT) == mine

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("limit", [0, 2_000, 10**9])
    def test_counts_are_the_same_whatever_is_remembered(self, limit, here, monkeypatch):
        monkeypatch.setattr(forest_members, "room_of_positions", lambda *_: limit)
        model = fitted(here)
        assert hash_of(model) == EXPECTED
        report = model.fit_report_
        n_tasks = report["rounds"] * 2  # blocks of one thread
        assert report["cache_hits"] + report["rebuilds"] >= n_tasks
        if limit == 10**9:
            assert report["rebuilds"] == 0
        else:
            assert report["rebuilds"] > 0
        if limit == 2_000:
            assert report["cache_hits"] > 3  # of the first round alone, of three blocks
