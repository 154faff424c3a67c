"""Blocks of rows on workers: who works on which, and where they go."""

from __future__ import annotations

from collections import Counter

import dask
import pytest
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from dtrees.parallel.partitioned import BlocksOnWorkers
from dtrees.parallel.placement import even_moves, share_out
from tests.parallel.clusters import connect
from tests.parallel.faults import FOREST, ROUNDS, assert_nothing_is_left, expected
from tests.parallel.test_collections import X, Y, cut, hash_of, on

EXPECTED = expected()


class TestPlacement:
    @pytest.mark.parametrize("joins", [False, True])
    def test_blocks_are_where_threads_are(self, joins, monkeypatch):
        """Though the table is on one worker; also on a worker that joins between two batches."""
        seen = []
        begin = BlocksOnWorkers.begin

        def look(self, common):
            if joins and seen:
                cluster.scale(3)
                client.wait_for_workers(3, timeout=60)
            begin(self, common)
            of_worker = Counter()
            for worker, group in self._by_worker():
                of_worker[worker] += sum(self._lengths[number] for number in group)
            seen.append(sorted(of_worker.values()))

        monkeypatch.setattr(BlocksOnWorkers, "begin", look)
        monkeypatch.setattr(
            BlocksOnWorkers, "tree_batches", lambda self, numbers: [[i] for i in numbers]
        )
        monkeypatch.setattr(BlocksOnWorkers, "_rows_of_block", lambda self: 50)
        steady = dask.config.set({"distributed.scheduler.work-stealing": False})
        with steady, connect(2, 1, False) as cluster, Client(cluster) as client:
            some = min(client.nthreads())
            lazy = client.persist(cut(X, "7"), workers=[some])
            with on(client), dask.config.set(ROUNDS):
                model = clone(FOREST).fit(lazy, Y)
            del lazy
            assert_nothing_is_left(client)
        assert hash_of(model) == EXPECTED
        assert seen[0] == [270, 330]  # six blocks of 90 rows and one of 60
        assert seen[1] == ([180, 180, 240] if joins else [270, 330])


NAMES = "abcd"
THREADS = st.fixed_dictionaries({name: st.integers(1, 8) for name in NAMES})
BLOCKS = st.lists(st.tuples(st.integers(1, 50), st.sampled_from(NAMES)), max_size=30)


def most(lengths, workers, threads):
    """Rows of the thread that has the most."""
    loads = dict.fromkeys(threads, 0)
    for length, worker in zip(lengths, workers, strict=True):
        loads[worker] += length
    return max(loads[worker] / threads[worker] for worker in threads)


def fair(lengths, threads):
    """What no thread needs to exceed."""
    largest = max(lengths, default=0) / min(threads.values())
    return sum(lengths) / sum(threads.values()) + largest


@given(BLOCKS, THREADS)
def test_moves(blocks, threads):
    lengths, workers = [length for length, _ in blocks], [worker for _, worker in blocks]
    moves = even_moves(lengths, workers, threads)
    after = [moves.get(number, worker) for number, worker in enumerate(workers)]
    assert all(workers[number] != worker for number, worker in moves.items())
    assert most(lengths, after, threads) <= most(lengths, workers, threads)
    assert most(lengths, after, threads) <= fair(lengths, threads)
    assert even_moves(lengths, after, threads) == {}


@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.lists(st.sampled_from("abcdxy"), unique=True)),
        max_size=30,
    ),
    THREADS,
)
def test_shares(blocks, threads):
    lengths, holders = [length for length, _ in blocks], [have_it for _, have_it in blocks]
    workers = share_out(lengths, holders, threads)
    for worker, have_it in zip(workers, holders, strict=True):
        assert worker in threads
        assert worker in have_it or not set(have_it) & set(threads)
    assert share_out(lengths, [[worker] for worker in workers], threads) == workers


@given(st.lists(st.integers(1, 50), max_size=30), THREADS)
def test_shares_of_what_everyone_has(lengths, threads):
    for holders in (list(NAMES), []):
        workers = share_out(lengths, [holders] * len(lengths), threads)
        assert most(lengths, workers, threads) <= fair(lengths, threads)


def test_two_workers():
    lengths = [90] * 6 + [60]
    threads = {"a": 1, "b": 1}
    moves = even_moves(lengths, ["a"] * 7, threads)
    assert set(moves.values()) == {"b"}
    assert sum(lengths[number] for number in moves) in (270, 330)
    assert even_moves(lengths, ["a", "b"] * 3 + ["a"], threads) == {}
    assert share_out(lengths, [["a"]] * 6 + [["a", "b"]], threads)[6] == "b"
