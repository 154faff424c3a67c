"""Tasks on blocks of rows, the sizes of their results, and positions that a worker remembers."""

from __future__ import annotations

import pickle
import subprocess
import sys
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from dask.sizeof import sizeof
from dask.system import CPU_COUNT
from distributed.system import MEMORY_LIMIT

from dtrees.coding.target import Target
from dtrees.core.stores.blocks.block import GatheredRows
from dtrees.core.stores.blocks.messages import Counts
from dtrees.parallel import block_tasks
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
        (GatheredRows(CODED, TARGET, KEYS, KEYS[:1]), OWN),
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


def n_bytes(cache):
    return sum(size for _, _, size in cache._held.values())


class TestPositionCache:
    """What is remembered, and what goes first."""

    @staticmethod
    def of(n_bytes):
        return {0: SimpleNamespace(nbytes=n_bytes)}

    def known(self, cache, growth, blocks=range(10)):
        return [block for block in blocks if cache.get(growth, block)[0] > 0]

    def test_what_was_used_least_recently_goes_first(self):
        cache = PositionCache(30)
        for growth in ("a", "b", "c"):
            cache.put(growth, 0, 1, self.of(10))
        assert cache.get("a", 0)[0] == 1  # used again
        cache.put("d", 0, 1, self.of(10))
        assert [cache.get(growth, 0)[0] for growth in "abcd"] == [1, 0, 1, 1]
        assert n_bytes(cache) == 30

    def test_the_first_blocks_of_a_growth_stay(self):
        cache = PositionCache(30)
        for n_updates in (1, 2, 3):
            for block in range(5):
                cache.put("a", block, n_updates, self.of(10))
            assert self.known(cache, "a") == [0, 1, 2]
            assert n_bytes(cache) == 30

    def test_blocks_that_have_gone_elsewhere_do_not(self):
        cache = PositionCache(30)
        for block in (0, 1, 2):
            cache.put("a", block, 1, self.of(10))
        for n_updates in (2, 3):
            for block in (1, 2, 5):
                cache.put("a", block, n_updates, self.of(10))
        assert self.known(cache, "a") == [1, 2, 5]

    def test_what_is_too_large_is_not_remembered(self):
        cache = PositionCache(30)
        cache.put("a", 0, 1, self.of(10))
        cache.put("b", 0, 1, self.of(31))
        assert n_bytes(cache) == 0
        assert cache.get("b", 0) == (0, {})

    def test_earlier_places_do_not_replace_later_ones(self):
        cache = PositionCache(30)
        cache.put("a", 0, 3, self.of(10))
        cache.put("a", 0, 2, self.of(20))
        assert cache.get("a", 0) == (3, cache.get("a", 0)[1])
        assert n_bytes(cache) == 10

    def test_growths_that_are_over(self):
        cache = PositionCache(30)
        cache.put("a", 0, 1, self.of(10))
        cache.put("b", 0, 1, self.of(10))
        cache.forget("a")
        cache.put("a", 1, 1, self.of(10))
        assert n_bytes(cache) == 10
        assert cache.get("b", 0)[0] == 1

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
        monkeypatch.setattr(block_tasks, "_cache", PositionCache(limit))
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


def test_a_process_remembers_in_one_place(monkeypatch):
    monkeypatch.setattr(block_tasks, "_cache", None)
    with dask.config.set({"dtrees.position-cache": "50 B"}):
        found = block_tasks.cache()
    found.put("a", 0, 1, {0: SimpleNamespace(nbytes=51)})
    assert n_bytes(found) == 0  # as there is no room
    found.put("a", 0, 1, {0: SimpleNamespace(nbytes=50)})
    assert block_tasks.cache() is found
    assert n_bytes(found) == 50
