"""Blocks of rows are where threads are."""

from collections import Counter

import dask
import pytest
from distributed import Client
from sklearn.base import clone

from dtrees.parallel.partitioned import BlocksOnWorkers
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
