"""The Dask cluster: clients that cannot work, and what is changed of Dask while data are sent."""

from __future__ import annotations

import gc
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import dask
import pytest
from distributed import Client

import dtrees
from dtrees.exceptions import ClusterError, NoAnswerError, SchedulerLostError
from dtrees.parallel import client as clients
from dtrees.parallel import liveness, tasks
from dtrees.parallel.client import (
    call_with_timeout,
    check_open,
    current_client,
    sending_data,
    this_worker,
)
from tests.parallel.clusters import connect, digest, leave, ours
from tests.parallel.test_replicated import (
    GROWTH,
    LOCAL,
    SlowGrowth,
    X,
    Y,
    as_kind,
    forest,
    grow_replicated,
)

KEY = "distributed.admin.large-graph-warning-threshold"


def test_while_another_thread_imports_distributed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", ModuleType("distributed"))
    assert current_client() is None
    assert this_worker() is None


@pytest.mark.parametrize("first", [0, 1])
def test_threads_that_send_at_a_time(first):
    """The last one changes it back, whichever has begun first."""
    before, seen = dask.config.get(KEY), []
    are_in = threading.Barrier(2)
    is_out = threading.Event()

    def send(number):
        with sending_data():
            are_in.wait(30)
            if number != first:
                assert is_out.wait(30)
            seen.append(dask.config.get(KEY))
        is_out.set()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 2
    assert before not in seen
    assert dask.config.get(KEY) == before


def test_an_error_changes_it_back():
    before = dask.config.get(KEY)

    def fail():
        with sending_data():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert dask.config.get(KEY) == before


class TestClustersThatCannot:
    def test_closed_client(self):
        with connect(1, 1, False) as cluster:
            client = Client(cluster, set_as_default=False)
            client.close()
            with client.as_current(), pytest.raises(ClusterError, match="client is closed"):
                forest().fit(X, Y)
            with pytest.raises(ClusterError, match="client is closed"):
                grow_replicated(GROWTH, range(3), client)

    def test_closed_in_the_middle(self):
        with connect(1, 1, False) as cluster, Client(cluster) as client:

            def close(number, tree):
                client.close()

            with pytest.raises(ClusterError, match="client is closed"):
                grow_replicated(as_kind(SlowGrowth), range(20), client, on_tree=close)

    def test_a_scheduler_that_is_lost(self):
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            connect(1, 1, False) as cluster,
            Client(cluster.scheduler_address) as client,
        ):

            def close(number, tree):
                cluster.close()

            with pytest.raises(ClusterError, match="has lost its scheduler"):
                grow_replicated(as_kind(SlowGrowth), range(20), client, on_tree=close)

    def test_no_workers(self):
        with (
            connect(0, 1, False) as cluster,
            Client(cluster) as client,
            dask.config.set({"dtrees.workers-timeout": "300 ms"}),
        ):
            with pytest.raises(ClusterError, match=r"has had no worker for 0\.3 seconds"):
                forest().fit(X, Y)
            assert ours(client) == []

    def test_workers_that_come_late(self):
        with connect(0, 1, False) as cluster, Client(cluster) as client:
            timer = threading.Timer(0.3, cluster.scale, [1])
            timer.start()
            assert digest(forest().fit(X, Y).forest_.trees) == LOCAL
            timer.join()
            assert ours(client) == []

    def test_workers_that_all_leave(self, monkeypatch):
        monkeypatch.setattr(tasks, "WATCH_SECONDS", 0.2)
        with (
            connect(1, 1, False) as cluster,
            Client(cluster) as client,
            dask.config.set({"dtrees.workers-timeout": "300 ms"}),
        ):

            def all_leave(number, tree):
                leave(cluster, client)  # with the trees that have not come

            with pytest.raises(ClusterError, match="has had no worker"):
                grow_replicated(as_kind(SlowGrowth), range(60), client, on_tree=all_leave)
            assert ours(client) == []

    @pytest.mark.parametrize("known_before", [True, False])
    def test_another_version(self, known_before, processes, monkeypatch):
        def set_version(version):
            import dtrees

            dtrees.__version__ = version

        processes.wait_for_workers(2, timeout=60)
        other = sorted(processes.nthreads())[1]
        processes.run(set_version, "0.0.1", workers=[other])
        if not known_before:
            monkeypatch.setattr(
                liveness, "ask_workers", lambda client: dict.fromkeys(client.nthreads())
            )
        try:
            with pytest.raises(ClusterError, match=rf"Worker {other} has dtrees 0\.0\.1, the"):
                grow_replicated(GROWTH, range(20), processes, units_per_task=1)
        finally:
            processes.run(set_version, dtrees.__version__, workers=[other])
        assert ours(processes) == []

    def test_no_dtrees(self):
        told = str(clients.other_version("tcp://there", None, "1.0"))
        assert "Worker tcp://there cannot import dtrees, the client has 1.0" in told

    def test_no_answer(self, here):
        with pytest.raises(ClusterError, match=r"not answered for 0\.2 seconds"):
            call_with_timeout(here, lambda: time.sleep(1), 0.2)
        with pytest.raises(TimeoutError, match="its own"):
            call_with_timeout(here, lambda: (_ for _ in ()).throw(TimeoutError("its own")))


class Standing(SimpleNamespace):
    """What stands for a client, which has a hash."""

    __hash__ = object.__hash__


@pytest.mark.parametrize("status", ["running", "closing", "closed", "failed", None])
def test_a_client_that_looks_for_its_scheduler(status):
    """For hours, if ``Client(timeout=...)`` says so: it is waited for as for a worker."""
    cluster = None if status is None else SimpleNamespace(status=SimpleNamespace(name=status))
    client = Standing(status="connecting", cluster=cluster)
    if status not in ("running", None):
        with pytest.raises(SchedulerLostError, match="has lost its scheduler"):
            check_open(client)
        return
    check_open(client)
    with dask.config.set({"dtrees.workers-timeout": 0}):
        with pytest.raises(SchedulerLostError, match=r"Client\(timeout=\.\.\.\) .*workers-timeout"):
            check_open(client)
        client.status = "running"  # and is lost again
        check_open(client)
    client.status = "connecting"
    check_open(client)


@pytest.mark.usefixtures("frozen")
def test_a_client_that_is_gone_leaves_nothing_to_the_next_one():
    """Which may be at its place in memory, and would be given up at once."""
    before = len(clients._lost_since)
    client = Standing(status="connecting")
    check_open(client)
    assert len(clients._lost_since) == before + 1
    del client
    gc.collect()
    assert len(clients._lost_since) <= before


@pytest.mark.parametrize("n_workers", [0, 2])
def test_workers_that_fail_to_tell_their_version(n_workers):
    """No worker is no silence: who waits for one has another patience."""
    failed = {f"tcp://there:{i}": OSError("no way there") for i in range(n_workers)}
    client = Standing(run=lambda *_, **__: failed, status="running")
    if n_workers == 0:
        assert clients.ask_workers(client) == {}
    else:
        with pytest.raises(NoAnswerError, match="no way there"):
            clients.ask_workers(client)


def test_workers_are_known_while_the_client_looks(here, monkeypatch):
    """Its look every two seconds, which has no workers, may overtake the answer."""
    update = Client._update_scheduler_info

    async def overtaken(self, n_workers=0):
        await update(self, n_workers)
        await update(self)

    monkeypatch.setattr(Client, "_update_scheduler_info", overtaken)
    assert here.scheduler_info(n_workers=-1)["workers"] == {}
    assert clients.machines(here) == dict.fromkeys(here.nthreads(), (None, 1))
