"""The long forms: one hash over every layout of a table, and faults at many moments."""

from __future__ import annotations

import _thread
import os
import random
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial

import dask
import pytest
from distributed import Client

from dtrees.exceptions import ClusterError
from tests.parallel.clusters import connect
from tests.parallel.faults import (
    BOOSTED,
    FOLDS,
    FOREST,
    REWEIGHTED,
    ROUNDS,
    Fault,
    assert_nothing_is_left,
    expected,
    fitted,
    pids,
)
from tests.parallel.test_collections import BOOSTED_FOLDS, LAYOUTS, hash_of, in_memory, on
from tests.parallel.test_collections import fit as fit_case

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(sys.platform == "win32", reason="there are no signals"),
]


SOME = ("tree", "tree of numbers", "forest", "weights", "cuts")
SOME += ("sparse", "sparse-exact", "sparse cuts", "mixed", "mixed-exact")
SOME += BOOSTED_FOLDS
SOME += tuple(f"folds of {case}" for case in SOME)
SOME += ("reweighted", "reweighted, mixed", "reweighted, sparse", "reweighted bags")


@pytest.fixture(scope="module")
def forest():
    """The hash of the forest of the faults."""
    return expected()


@pytest.fixture(scope="module", params=[1, 2, 4, 8, 16], ids="{}workers".format)
def cluster(request):
    """A client of so many workers, processes of one thread."""
    with connect(request.param, 1, True) as cluster, Client(cluster) as client:
        yield client


@contextmanager
def relayed(client):
    """Members get no connection to each other; Dask's own transfers do."""

    def close():
        from dtrees.parallel.exchange import Exchange

        async def no_connection(exchange, address):
            exchange._box.comms[address] = None

        Exchange._open, Exchange._comm_to = Exchange._comm_to, no_connection

    def reopen():
        from dtrees.parallel.exchange import Exchange

        Exchange._comm_to = Exchange._open

    client.run(close)
    try:
        yield
    finally:
        client.run(reopen)


@pytest.mark.parametrize("case", SOME)
@pytest.mark.parametrize("way", ["replicated", "between workers", "relayed"])
def test_clusters(case, way, cluster):
    regime = "replicated" if way == "replicated" else "partitioned"
    layouts = [None, *LAYOUTS] if way == "between workers" else ["7", "64"]
    ports = relayed(cluster) if way == "relayed" else nullcontext()
    with on(cluster), ports, dask.config.set({**ROUNDS, "dtrees.regime": regime}):
        models = {layout: fit_case(case, layout) for layout in layouts}
    found = {layout: hash_of(model) for layout, model in models.items()}
    assert found == dict.fromkeys(layouts, in_memory(case))
    reports = [model.fit_report_ for model in models.values()]
    told = [report.get("relayed", 0) == report.get("messages", 0) > 0 for report in reports]
    assert all(told) == (way == "relayed" and len(cluster.nthreads()) > 1)
    assert_nothing_is_left(cluster)


class TestFaults:
    @pytest.mark.parametrize("n_killed", [1, 2])
    @pytest.mark.parametrize("number", range(0, 40, 3))
    def test_killed_at_any_wait(self, number, n_killed, forest, processes):
        before = pids(processes, 2)
        dead = before[:n_killed]
        with Fault(lambda: kill(dead), None, number).set() as fault:
            model = fitted(processes)
        assert hash_of(model) == forest
        if fault.has_happened:
            assert not set(dead) & set(pids(processes, 2))
            assert model.fit_report_["lost_workers"] >= n_killed
        else:
            assert number > 10  # the fit has waited less often
        assert_nothing_is_left(processes)

    @pytest.mark.parametrize("every", [2, 4])
    def test_killed_again_and_again(self, every, forest, processes):
        first = pids(processes, 2)
        killed = set()

        def kill_one():
            alive = [pid for pid in pids(processes, 2) if pid not in killed]
            kill(alive[:1])
            killed.update(alive[:1])

        faults = [Fault(kill_one, None, number) for number in range(2, 20, every)]
        with ExitStack() as stack:
            for fault in faults:
                stack.enter_context(fault.set())
            model = fitted(processes)
        assert hash_of(model) == forest
        assert len(killed) >= 3
        assert set(first) & killed
        pids(processes, 2)
        assert_nothing_is_left(processes)

    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize(
        "model",
        [FOREST, FOLDS, BOOSTED, REWEIGHTED],
        ids=["fit", "folds", "boosted", "reweighted"],
    )
    def test_killed_at_any_moment(self, model, seed, processes):
        def kill_one():
            kill(random.Random(seed).sample(pids(processes), 1))

        before = fit_meanwhile(processes, kill_one, seed, model)
        assert len(set(before) & set(pids(processes, 2))) == 1
        assert_nothing_is_left(processes)

    @pytest.mark.parametrize("seed", range(8))
    def test_all_killed_or_stopped_at_any_moment(self, seed, processes):
        """Of a boosted model, whose workers wait for each other."""

        def act():
            if seed % 2:
                kill(pids(processes))
                return
            stopped = random.Random(seed).choice(pids(processes))
            os.kill(stopped, signal.SIGSTOP)
            threading.Timer(12, partial(os.kill, stopped, signal.SIGCONT)).start()

        fit_meanwhile(processes, act, seed, BOOSTED)
        assert_nothing_is_left(processes)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("model", [FOREST, BOOSTED], ids=["fit", "boosted"])
    def test_restarted_at_any_moment(self, model, seed, processes):
        before = fit_meanwhile(processes, processes.restart, seed, model)
        assert not set(before) & set(pids(processes, 2))
        assert_nothing_is_left(processes)

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_interrupted_at_any_moment(self, forest, processes):
        pids(processes, 2)
        caught = []
        for seed in range(30):
            try:
                fit_until(processes, _thread.interrupt_main, seed)
            except KeyboardInterrupt as error:
                caught.append(error)  # with all that its traceback holds
            assert_nothing_is_left(processes)
        assert len(caught) >= 20  # Python loses those that come while it drops weak references
        assert hash_of(fitted(processes)) == forest

    @pytest.mark.parametrize("seed", range(5))
    def test_a_scheduler_that_is_lost_at_any_moment(self, seed):
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            connect(1, 1, False) as cluster,
            Client(cluster.scheduler_address) as client,
            pytest.raises(ClusterError, match="has lost its scheduler"),
        ):
            fit_until(client, cluster.close, seed)


def fit_meanwhile(client, act, seed, model=FOREST):
    """Fits, until something has happened in the midst of one; the workers as that began."""
    in_memory = expected(model)
    seconds = 1.5
    for _ in range(8):
        before, is_over = pids(client, 2), threading.Event()
        with at_any_moment(act, seed, seconds, is_over.is_set) as timer:
            found = fitted(client, model)
            is_over.set()
        assert hash_of(found) == in_memory
        if not timer.came_late:
            return before
        seconds /= 2
    raise AssertionError("every fit was over before")


def fit_until(client, act, seed):
    """One fit after the other, until something happens."""
    with at_any_moment(act, seed) as timer:
        while timer.is_alive():
            fitted(client)


def kill(workers):
    """Kill processes."""
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


@contextmanager
def at_any_moment(act, seed, seconds=1.5, is_late=lambda: False):
    """Something happens in another thread, meanwhile; the timer knows whether it `came_late`."""

    def happen():
        timer.came_late = is_late()
        act()

    timer = threading.Timer(random.Random(seed).uniform(0, seconds), happen)
    timer.start()
    try:
        yield timer
    finally:
        timer.join()
