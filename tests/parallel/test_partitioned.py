"""The partitioned regime: one hash wherever the rows are, and whatever happens to the workers."""

from __future__ import annotations

import _thread
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import dask
import distributed
import numpy as np
import pytest
import scipy.sparse
from distributed import Client
from sklearn.base import clone
from sklearn.model_selection import KFold

import dtrees
from dtrees import DecisionTreeClassifier, ExtraTreesRegressor, RandomForestClassifier
from dtrees.core.grow.rounds import LocalBlocks
from dtrees.core.stores.blocks._node_counts import N
from dtrees.core.stores.blocks.block import BlockOfRows
from dtrees.core.stores.blocks.messages import Counts, HistogramRequest, SplitUpdate
from dtrees.estimators.fitted_sets import trees_of
from dtrees.exceptions import ClusterError, SchedulerLostError, WorkerLostError
from dtrees.model_selection import cross_validate
from dtrees.parallel import client as clients
from dtrees.parallel import coded_partitions, liveness, memory, partitioned, tasks
from dtrees.parallel.partitioned import BlocksOnWorkers, PartitionedGrowth
from tests.pairs import parametrize_pairs
from tests.parallel import test_collections as collections
from tests.parallel.clusters import connect, digest, leave, noted
from tests.parallel.faults import (
    DRAWN,
    FOLDS,
    FOREST,
    ROUNDS,
    WEIGHED,
    Fault,
    assert_nothing_is_left,
    expected,
    fitted,
    pids,
)
from tests.parallel.test_collections import (
    Folds,
    X,
    Y,
    all_trees,
    allow_failures,
    cut,
    hash_of,
    on,
)

chaos = pytest.mark.chaos
one_by_one = pytest.mark.usefixtures("rounds_one_by_one")
EXPECTED = expected()
IMPATIENT = {"dtrees.worker-patience": "300ms", "dtrees.workers-timeout": "500ms"}


class TestLimits:
    @pytest.mark.one_of(6)
    @parametrize_pairs(gather_rows=[0, 7, 100_000], budget=["1 B", "256 MiB"])
    def test_limits(self, gather_rows, budget, here):
        config = {"dtrees.gather-rows": gather_rows, "dtrees.histogram-budget": budget}
        model = RandomForestClassifier(2, random_state=5, max_depth=3, max_bins=16)
        alone = hash_of(model.fit(X, Y, collections.WEIGHTS))
        with on(here), dask.config.set(ROUNDS | config):
            assert hash_of(model.fit(cut(X), cut(Y, "2"), cut(collections.WEIGHTS))) == alone
        assert_nothing_is_left(here)


class TestAlignment(collections.TestAlignment):
    """What belongs to a row is told by its number, here as well."""

    @pytest.fixture(autouse=True)
    def in_rounds(self):
        with dask.config.set(ROUNDS):
            yield


@contextmanager
def killed(client, n_killed, phase, number=0, n_workers=2):
    """Workers that die in a phase: dead in the end, and nothing is left of the fit.

    In rounds they die once some were heard of.
    """
    before = pids(client, n_workers)
    heard = SimpleNamespace(n=0, has_happened=phase != "rounds")
    go_on = BlocksOnWorkers._go_on

    def hear(*arguments):
        found = go_on(*arguments)
        heard.n += 1
        heard.has_happened |= heard.n >= 2
        return found

    def kill():
        for pid in before[:n_killed]:
            os.kill(pid, signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch, Fault(kill, phase, number, heard).set() as fault:
        patch.setattr(BlocksOnWorkers, "_go_on", hear)
        yield
    assert fault.has_happened
    assert set(before) - set(pids(client, n_workers)) == set(before[:n_killed])
    assert_nothing_is_left(client)


def die_once(block, path, number):
    """Takes its worker with it, as this one of all tasks that read a partition."""
    if noted(path) == number:
        os._exit(1)
    return block


@one_by_one
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
class TestWorkersThatDie:
    @pytest.mark.one_of(5)
    @pytest.mark.parametrize(
        ("phase", "n_killed"),
        [
            ("reading", 1),
            ("blocks", 1),
            pytest.param("blocks", 2, marks=chaos),
            pytest.param("bags", 1, marks=chaos),
            pytest.param("bags", 2, marks=chaos),
            ("rounds", 1),
            ("rounds", 2),
            ("subtrees", 1),
            pytest.param("subtrees", 2, marks=chaos),
        ],
    )
    def test_while_they_are_waited_for(self, phase, n_killed, processes):
        with killed(processes, n_killed, phase):
            model = fitted(processes)
        assert hash_of(model) == EXPECTED
        report = model.fit_report_
        assert report["lost_workers"] >= n_killed
        if phase == "rounds":
            assert report["rebuilds"] > 0  # places went with the worker

    @pytest.mark.parametrize(
        ("phase", "n_killed"),
        [
            pytest.param("blocks", 1, marks=chaos),
            ("rounds", 1),
            pytest.param("rounds", 2, marks=chaos),
            pytest.param("subtrees", 1, marks=chaos),
            pytest.param("subtrees", 2, marks=chaos),
        ],
    )
    def test_while_folds_grow(self, phase, n_killed, processes):
        with killed(processes, n_killed, phase):
            model = fitted(processes, FOLDS)
        assert hash_of(model) == expected(FOLDS)
        assert model.fit_report_["lost_workers"] >= n_killed
        assert model.fit_report_["rounds"] > 1
        if phase != "blocks":
            assert model.fit_report_["rebuilds"] > 0

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize(
        ("model", "phase"),
        [
            pytest.param(WEIGHED, "rounds", id="weights"),
            pytest.param(WEIGHED, "subtrees", id="weights-end", marks=chaos),
            pytest.param(DRAWN, "bags", id="bags"),
            pytest.param(DRAWN, "rounds", id="bags-rounds", marks=chaos),
        ],
    )
    def test_while_folds_of_class_weights_grow(self, model, phase, processes):
        """What their classes weigh is known here only; sets share rounds where it is no draw."""
        with killed(processes, 1, phase):
            found = fitted(processes, model)
        assert hash_of(found) == expected(model)
        report = found.fit_report_
        assert report["lost_workers"] >= 1
        assert (report["shared_nodes"] > 0) == (model is WEIGHED)
        assert report["rounds"] < 20 or model is DRAWN

    def test_while_a_table_of_few_rows_is_gathered(self, processes):
        """No round: sums, and then the rows of whole trees."""
        with killed(processes, 1, "subtrees", number=0):
            found = fitted(processes, FOLDS, **{"dtrees.gather-rows": 10_000})
        assert hash_of(found) == expected(FOLDS)
        assert found.fit_report_["rounds"] == 0

    @pytest.mark.parametrize("number", [3, pytest.param(10, marks=chaos)])
    def test_while_they_code(self, number, processes, tmp_path):
        before = pids(processes, 2)

        model = fitted(processes, block=lambda block: die_once(block, tmp_path, number))
        assert hash_of(model) == EXPECTED
        assert len(set(before) - set(pids(processes, 2))) == 1
        assert len(os.listdir(tmp_path)) > 14  # some were computed once more
        assert model.fit_report_["lost_workers"] == 1
        assert_nothing_is_left(processes)

    def test_blocks_that_are_blamed(self, processes, tmp_path):
        """The scheduler gives them up, though they can be made: all are made again."""
        pids(processes, 2)
        allowed = processes.run_on_scheduler(allow_failures, 0)
        try:
            model = fitted(processes, block=lambda block: die_once(block, tmp_path, 10))
        finally:
            processes.run_on_scheduler(allow_failures, allowed)
        assert hash_of(model) == EXPECTED
        assert model.fit_report_["restarts"] == 1
        assert_nothing_is_left(processes)

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param("grow-rounds", marks=chaos),
            "rows of finish-nodes",
            pytest.param("finish-nodes", marks=chaos),
        ],
    )
    def test_tasks_that_are_blamed(self, name, processes, tmp_path):
        """Those of whose death a worker is blamed; what depends on them goes with them."""
        before = pids(processes, 2)
        (tmp_path / name).touch()
        processes.run(deadly, name, str(tmp_path / name))
        allowed = processes.run_on_scheduler(allow_failures, 0)
        try:
            model = fitted(processes)
        finally:
            processes.run_on_scheduler(allow_failures, allowed)
            for worker in processes.run(os.getpid):
                processes.run(healed, name, workers=[worker])
        assert hash_of(model) == EXPECTED
        assert len(set(before) - set(pids(processes, 2))) == 1
        report = model.fit_report_
        n_again = report.get("retries", 0) + report.get("restarts", 0) + report["epochs"] - 1
        assert n_again > 0
        assert_nothing_is_left(processes)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("times", [3, 100])
    def test_blocks_that_workers_always_die_of(self, times, here, tmp_path):
        def die(block):
            if 7 <= noted(tmp_path) < 7 + times:
                raise killed_worker()
            return block

        if times == 3:
            model = fitted(here, block=die)
            assert hash_of(model) == EXPECTED
            assert 1 <= model.fit_report_["restarts"] <= 3
        else:
            with pytest.raises(WorkerLostError, match="has lost its data 5 times"):
                fitted(here, block=die)
        assert_nothing_is_left(here)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("first", [0, 7])
    def test_all_is_coded_again(self, first, here, tmp_path):
        """As a part of a pass was lost: the first pass, or that of a table that is fetched."""

        def die(block):
            if noted(tmp_path) == first:
                raise killed_worker()
            return block

        config = {"dtrees.regime": "local"}
        model = clone(FOREST).set_params(regime=None)
        assert hash_of(fitted(here, model, block=die, **config)) == EXPECTED
        assert model.fit_report_["restarts"] == 1
        assert model.fit_report_["regime"] == "local"
        assert_nothing_is_left(here)

    def test_rounds_that_workers_always_die_of(self, here, monkeypatch):
        def die(*arguments):
            raise killed_worker()

        monkeypatch.setattr(BlockOfRows, "count", die)
        with pytest.raises(WorkerLostError, match="lost 5 times, without a result"):
            fitted(here)
        assert_nothing_is_left(here)


def killed_worker():
    """What the scheduler says of a task whose workers have died."""
    task = distributed.get_worker().get_current_task()
    return distributed.KilledWorker(task, SimpleNamespace(address="tcp://dead"), 3)


def deadly(name, path):
    """On a worker: let the first of some tasks take it with it."""
    from dtrees.core.stores.blocks import block as blocks
    from dtrees.parallel import forest_members

    kinds = {
        "grow-rounds": (blocks.BlockOfRows, "count"),
        "rows of finish-nodes": (blocks.BlockOfRows, "gather"),
        "finish-nodes": (forest_members, "grow_gathered"),
    }
    place, attribute = kinds[name]
    before = getattr(place, attribute)

    def die(*arguments):
        try:
            os.remove(path)
        except FileNotFoundError:
            return before(*arguments)
        os._exit(1)

    place.healthy = before
    setattr(place, attribute, die)


def healed(name):
    """On a worker: what `deadly` has changed is as before."""
    from dtrees.core.stores.blocks import block as blocks
    from dtrees.parallel import forest_members

    for place, attribute in (
        (blocks.BlockOfRows, {"grow-rounds": "count", "rows of finish-nodes": "gather"}.get(name)),
        (forest_members, "grow_gathered"),
    ):
        if "healthy" in vars(place):
            setattr(place, attribute, place.healthy)
            del place.healthy


@one_by_one
class TestWorkersThatComeAndGo:
    def test_they_join_and_leave(self):
        with connect(1, 1, True) as cluster, Client(cluster) as client:

            def join():
                cluster.scale(2)
                client.wait_for_workers(2, timeout=60)

            def leave():
                client.retire_workers([first])
                assert len(client.nthreads()) == 1

            before = pids(client, 1)
            (first,) = client.nthreads()
            with Fault(join, "rounds", 1).set() as joining, Fault(leave, "rounds", 4).set() as gone:
                model = fitted(client)
            assert joining.has_happened
            assert gone.has_happened
            assert hash_of(model) == EXPECTED
            assert model.fit_report_["lost_workers"] == 1
            assert len(pids(client)) == len(set(pids(client)) - set(before)) == 1
            assert_nothing_is_left(client)

    @pytest.mark.chaos
    @pytest.mark.parametrize("phase", ["bags", "rounds", "subtrees"])
    def test_rolling_restart(self, phase, processes):
        before = pids(processes, 2)
        one, other = sorted(processes.nthreads())
        first = Fault(lambda: processes.restart_workers([one]), phase)
        second = Fault(lambda: processes.restart_workers([other]), after=first)
        with second.set(), first.set():  # one wait later
            model = fitted(processes)
        assert first.has_happened
        assert second.has_happened
        assert hash_of(model) == EXPECTED
        assert not set(before) & set(pids(processes, 2))
        assert model.fit_report_["lost_workers"] == 2
        assert_nothing_is_left(processes)

    @pytest.mark.parametrize(
        "phase",
        [
            pytest.param("blocks", marks=chaos),
            pytest.param("bags", marks=chaos),
            "rounds",
            pytest.param("subtrees", marks=chaos),
        ],
    )
    def test_client_restart(self, phase, processes):
        before = pids(processes, 2)
        with Fault(processes.restart, phase).set() as fault:
            model = fitted(processes)
        assert fault.has_happened
        assert hash_of(model) == EXPECTED
        assert not set(before) & set(pids(processes, 2))
        assert model.fit_report_["restarts"] >= 1
        assert model.fit_report_["lost_workers"] == 2
        assert_nothing_is_left(processes)

    def test_all_leave(self):
        with connect(1, 1, False) as cluster, Client(cluster) as client:
            with (
                Fault(lambda: leave(cluster, client), "rounds", 1).set() as fault,
                pytest.raises(WorkerLostError, match=r"has had no worker for 0\.5 seconds"),
            ):
                fitted(client, **IMPATIENT)
            assert fault.has_happened
            assert_nothing_is_left(client)

    @pytest.mark.parametrize("phase", ["blocks", "rounds", "subtrees"])
    def test_a_scheduler_that_is_lost(self, phase):
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            connect(1, 1, False) as cluster,
            Client(cluster.scheduler_address) as client,
            Fault(cluster.close, phase).set() as fault,
            pytest.raises(SchedulerLostError, match="has lost its scheduler"),
        ):
            fitted(client)
        assert fault.has_happened

    @pytest.mark.parametrize("phase", ["blocks", "rounds", "subtrees"])
    def test_a_client_that_is_closed(self, phase):
        with (
            connect(1, 1, False) as cluster,
            Client(cluster) as client,
            Fault(client.close, phase).set(),
            pytest.raises(SchedulerLostError, match="client is closed"),
        ):
            fitted(client)

    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("phase", ["blocks", "bags", "rounds", "subtrees"])
    def test_futures_that_somebody_cancels(self, phase, here):
        def cancel():
            futures = [distributed.Future(key, here) for key in list(here.futures)]
            assert futures
            here.cancel(futures, force=True)

        with Fault(cancel, phase).set() as fault:
            model = fitted(here)
        assert fault.has_happened
        assert hash_of(model) == EXPECTED
        assert model.fit_report_["restarts"] == 1
        assert_nothing_is_left(here)


@pytest.mark.chaos
@one_by_one
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
class TestWorkersThatHang:
    """A worker that is stopped answers nothing, and nobody is told: for `worker-ttl`, 5 minutes."""

    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        monkeypatch.setattr(clients, "ANSWER_SECONDS", 0.5)
        monkeypatch.setattr(clients, "RELEASE_SECONDS", 0.5)

    @pytest.fixture
    def stop(self):
        """A client of two workers; stops so many of them."""
        with connect(2, 1, True) as cluster, Client(cluster) as client:
            workers = pids(client, 2)
            stopped = []

            def stop(n_workers):
                for pid in workers[:n_workers]:
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)

            try:
                yield client, stop
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)

    @pytest.mark.parametrize(
        "phase",
        [
            pytest.param("reading", marks=chaos),
            pytest.param("blocks", marks=chaos),
            pytest.param("bags", marks=chaos),
            pytest.param("coding", marks=chaos),
            "rounds",
            pytest.param("subtrees", marks=chaos),
        ],
    )
    def test_one_of_two(self, phase, stop, caplog, monkeypatch):
        client, stop = stop
        monkeypatch.setattr(clients, "ANSWER_SECONDS", 2.0)  # enough for the other one
        patience = {**IMPATIENT, "dtrees.worker-patience": "3s"}
        with Fault(lambda: stop(1), phase).set() as fault:
            model = fitted(client, **patience)
        assert fault.has_happened
        assert hash_of(model) == EXPECTED
        assert "do not answer, and are taken out of the cluster" in caplog.text
        assert model.fit_report_["lost_workers"] == 1
        assert_nothing_is_left(client)

    def test_one_that_is_only_busy(self, here, monkeypatch):
        """It does not answer, as its interpreter is held, but the scheduler has heard of it."""
        asked = []

        def nobody(client):
            asked.append(client)
            return {}

        def slowly(block):
            time.sleep(0.5)
            return block

        monkeypatch.setattr(liveness, "ask_workers", nobody)
        workers = list(here.nthreads())
        model = fitted(here, block=slowly, **{**IMPATIENT, "dtrees.worker-patience": "2s"})
        assert len(asked) > 1  # once as the fit begins
        assert hash_of(model) == EXPECTED
        assert list(here.nthreads()) == workers

    def test_all(self, stop):
        client, stop = stop

        def stop_all():
            stop(2)
            dask.config.set(IMPATIENT)  # not before: a machine may be slow

        with (
            Fault(stop_all, "rounds").set() as fault,
            pytest.raises(WorkerLostError, match=r"for 4 times 0\.3 seconds"),
        ):
            fitted(client, **dict.fromkeys(IMPATIENT, "1 minute"))
        assert fault.has_happened

    def test_results_that_do_not_come(self, here, monkeypatch):
        """The worker has answered, but the results are on their way for ever."""
        gather, go_on, calls = tasks.results_of, threading.Event(), []

        def hang(*arguments, **options):
            calls.append(arguments)
            if len(calls) == 9:
                go_on.wait(60)
            return gather(*arguments, **options)

        monkeypatch.setattr(tasks, "results_of", hang)
        monkeypatch.setattr(clients, "ANSWER_SECONDS", 2.0)
        try:
            model = fitted(here, **{**IMPATIENT, "dtrees.worker-patience": "1s"})
            assert hash_of(model) == EXPECTED
        finally:
            go_on.set()
        assert len(calls) > 9


@one_by_one
class TestNothingIsLeft:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("phase", ["blocks", "bags", "rounds", "subtrees"])
    def test_after_ctrl_c(self, phase, processes):
        pids(processes, 2)
        with Fault(_thread.interrupt_main, phase).set() as fault:
            with pytest.raises(KeyboardInterrupt) as caught:
                fitted(processes)
            assert_nothing_is_left(processes)
            assert caught.tb is not None  # it is alive, and with it what was on its way
        assert fault.has_happened

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("attribute", ["advance", "count", "gather"])
    def test_after_an_error_in_a_task(self, attribute, here, monkeypatch):
        def fail(*_):
            raise ZeroDivisionError("told so")

        monkeypatch.setattr(BlockOfRows, attribute, fail)
        with pytest.raises(ClusterError, match="told so") as caught:
            fitted(here)
        assert_nothing_is_left(here)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert caught.tb is not None

    def test_of_tasks_that_end_later(self, here, monkeypatch):
        """A task goes on though its fit is over, and has places to remember."""
        advance, began, go_on = BlockOfRows.advance, threading.Event(), threading.Event()

        def wait(*arguments):
            began.set()
            go_on.wait(60)
            return advance(*arguments)

        def give_up(self, calls, submit=tasks.Tasks.submit):
            submitted = submit(self, calls)
            if calls[0].name == "grow-rounds":
                assert began.wait(60)
                raise ZeroDivisionError("told so")
            return submitted

        monkeypatch.setattr(BlockOfRows, "advance", wait)
        monkeypatch.setattr(tasks.Tasks, "submit", give_up)
        with pytest.raises(ClusterError, match="told so"):
            fitted(here)
        go_on.set()
        assert_nothing_is_left(here)

    def test_a_failed_fit_leaves_the_forest_as_it_was(self, here):
        def fail():
            raise ZeroDivisionError("told so")

        model = RandomForestClassifier(4, regime="partitioned")
        with Fault(fail, "subtrees").set(), pytest.raises(ClusterError, match="told so"):
            fitted(here, model)
        assert not hasattr(model, "forest_")


class TestInTasks:
    def test_eight_fits_at_a_time(self, here):
        def fit(_):
            model = RandomForestClassifier(**FOREST.get_params())
            with here.as_current():
                return hash_of(model.fit(X, Y))

        with dask.config.set(ROUNDS), ThreadPoolExecutor(8) as pool:
            assert list(pool.map(fit, range(8))) == [EXPECTED] * 8
        assert_nothing_is_left(here)

    @one_by_one
    def test_many_fits_leave_little(self, processes):
        """What the scheduler keeps of a fit that is over: groups of tasks, for its spans."""
        model = RandomForestClassifier(2, random_state=1, max_depth=3, regime="partitioned")
        pids(processes, 2)
        fitted(processes, model, layout="2")
        assert_nothing_is_left(processes)
        first, n_fits = processes.run_on_scheduler(remembered), 2
        for _ in range(n_fits):
            fitted(processes, model, layout="2")
        assert_nothing_is_left(processes)
        kept = {
            name: (number - first[name]) / n_fits
            for name, number in processes.run_on_scheduler(remembered).items()
        }
        assert kept["tasks"] == kept["prefixes"] == 0
        assert kept["groups"] <= 31, kept
        assert kept["spans"] <= 5, kept

    @chaos
    @pytest.mark.timeout(1200)
    def test_memory_is_flat(self, processes):
        """The slope over the later ones of many fits, in bytes for each.

        Without the groups of tasks and the metrics that spans keep on the scheduler: Dask never
        forgets them, and they are two thirds of what this process grows by.
        """
        model = RandomForestClassifier(2, random_state=1, max_depth=3, regime="partitioned")
        pids(processes, 2)
        resident = []
        for number in range(200):
            fitted(processes, model, layout="2")
            processes.run_on_scheduler(drop_spans)
            if number >= 50 and number % 5 == 0:
                resident.append((number, *bytes_taken(processes)))
        assert_nothing_is_left(processes)
        numbers, *of_processes = np.array(resident).T
        slopes = [np.polyfit(numbers, each, 1)[0] for each in of_processes]
        assert max(slopes) < 60 * 2**10, slopes  # this process, with the scheduler, and the workers


def remembered(dask_scheduler):
    """Numbers of what a scheduler knows; a group that is over is known to its span alone."""
    spans = dask_scheduler.extensions["spans"].spans.values()
    groups = {id(group) for span in spans for group in span.groups}
    groups.update(map(id, dask_scheduler.task_groups.values()))
    return {
        "tasks": len(dask_scheduler.tasks),
        "groups": len(groups),
        "prefixes": len(dask_scheduler.task_prefixes),
        "spans": len(spans),
    }


def drop_spans(dask_scheduler):
    """Let the spans of a scheduler forget what they keep of tasks that are over."""
    for span in dask_scheduler.extensions["spans"].spans.values():
        span.groups.clear()
        span._cumulative_worker_metrics.clear()


def bytes_taken(client):
    """Bytes of this process, and of each worker."""

    def resident():
        import gc

        import psutil

        gc.collect()
        return psutil.Process().memory_info().rss

    return [resident(), *(n_bytes for _, n_bytes in sorted(client.run(resident).items()))]


class TestWaves:
    """Trees that grow together; the others come later, and are the same."""

    forest = clone(FOREST).set_params(n_estimators=4)

    @pytest.mark.one_of(4)
    @pytest.mark.parametrize(("n_trees", "n_waves"), [(0.1, 4), (1.9, 4), (2.1, 2), (9, 1)])
    def test_by_work(self, n_trees, n_waves, here, monkeypatch):
        drawn, in_bag = 2, 0.632 * len(X)  # of five columns
        cells = round(n_trees * drawn * in_bag)
        monkeypatch.setattr(memory, "WAVE_CELLS", cells)
        found = []
        tree_batches = PartitionedGrowth.tree_batches
        monkeypatch.setattr(
            PartitionedGrowth,
            "tree_batches",
            lambda *args: found.append(tree_batches(*args)) or found[-1],
        )
        assert hash_of(fitted(here, self.forest)) == expected(self.forest)
        ((*parts,),) = found
        assert len(parts) == n_waves
        assert [tree for part in parts for tree in part] == [0, 1, 2, 3]

    @one_by_one
    def test_what_a_lost_cluster_leaves(self, monkeypatch):
        """The trees of the batches before."""
        monkeypatch.setattr(memory, "WAVE_CELLS", 1)
        with connect(1, 1, False) as cluster, Client(cluster) as client:
            fault = Fault(client.close, "rounds", 12)
            with fault.set(), pytest.raises(SchedulerLostError) as caught:
                fitted(client, self.forest)
        so_far = caught.value.estimator
        assert 1 <= len(so_far.estimators_) < 4
        assert so_far.fit_report_["rounds"] > 0
        with dask.config.set({"dtrees.regime": "local"}):
            assert hash_of(so_far.resume(X, Y)) == expected(self.forest)


class TestBudgets:
    """Rounds and passes are about the depth, whatever the number of trees."""

    def report(self, client, n_trees, gather_rows=0, budget="256 MiB", n_folds=None, **how):
        """Of a fit on a cluster, or of a cross-validation, and the depth of its deepest tree."""
        rng = np.random.default_rng(0)
        table = rng.normal(size=(2_000, 4))
        y = (table @ rng.normal(size=4) + rng.normal(size=len(table)) > 0).astype(int)
        how = {"max_depth": 12, "min_samples_leaf": 5, "max_bins": 32, **how}
        model = RandomForestClassifier(n_trees, random_state=0, regime="partitioned", **how)
        if n_folds is not None:
            model = Folds(model, n_folds)
        config = {"dtrees.gather-rows": gather_rows, "dtrees.histogram-budget": budget}
        with on(client), dask.config.set(config):
            model.fit(cut(table, (500,) * 4), y)
        return model.fit_report_, max(tree.depth.max() for tree in all_trees(model))

    @pytest.mark.parametrize("n_trees", [5, pytest.param(100, marks=chaos)])
    def test_a_round_for_every_depth(self, n_trees, here):
        report, deepest = self.report(here, n_trees, max_features=None)
        assert report["rounds"] == deepest + 1
        assert report["passes"] == 1 + report["rounds"]  # the codes are made in the first one
        assert report["rebuilds"] == 0

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("n_folds", [None, 4])
    @pytest.mark.parametrize("place", ["threads", "workers"])
    def test_passes_that_trees_save_by_going_together(self, n_folds, place, request):
        """A tree alone would take a pass for each of its levels, and one for its small nodes."""
        client = request.getfixturevalue("here") if place == "workers" else None
        model = dtrees.BaggingClassifier(5, random_state=0, regime="partitioned")
        model = model if n_folds is None else Folds(model, n_folds)
        rng = np.random.default_rng(0)
        table = rng.normal(size=(4_000, 4))
        y = (table[:, 0] * table[:, 1] > 0).astype(int)
        force = nullcontext() if client is None else on(client)
        with force, dask.config.set({"dtrees.gather-rows": 300}):
            model.fit(table if client is None else cut(table, (1_000,) * 4), y)
        report, alone = model.fit_report_, 0
        for tree in all_trees(model):
            spread = np.asarray(tree.n_node_samples) > 300
            alone += len(set(np.asarray(tree.depth)[spread].tolist()))
        if place == "workers":
            alone += len(all_trees(model)) - 1  # and gathered once
        assert report["passes_saved"] == alone - report["rounds"] > report["rounds"]

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("max_features", ["sqrt", None])
    def test_ten_folds_take_the_rounds_of_one_fit(self, max_features, here, monkeypatch):
        counted, count = [], BlockOfRows.count
        monkeypatch.setattr(
            BlockOfRows, "count", lambda *arguments: counted.append(1) or count(*arguments)
        )
        rounds = {}
        for n_folds in (None, 10):
            counted.clear()
            report, deepest = self.report(
                here, 4, n_folds=n_folds, max_features=max_features, max_depth=8
            )
            assert deepest == 8
            rounds[n_folds] = report["rounds"]
            assert len(counted) == 2 * report["rounds"]  # each of the two blocks, once a round
            assert report["passes"] == 1 + report["rounds"]
        if max_features is None:
            assert rounds[None] == rounds[10] == 8 + 1
        else:  # somewhere a draw of columns is extended
            assert 8 + 1 <= rounds[None] <= rounds[10] <= rounds[None] + 2

    def test_bags_that_are_looked_at(self, here):
        """To be balanced: a pass more."""
        how = {"max_depth": 5, "max_features": None, "class_weight": "balanced_subsample"}
        report, deepest = self.report(here, 20, **how)
        assert (report["rounds"], report["passes"]) == (deepest + 1, 1 + 1 + deepest + 1)

    def test_small_nodes_are_gathered(self, here):
        report, _ = self.report(here, 20, gather_rows=500)
        assert report["rounds"] < 8
        assert report["passes"] == 1 + report["rounds"] + 1

    def test_few_rows_of_several_targets_are_gathered(self, here):
        rows, numbers = X[:40], np.column_stack([Y, Y == 1, np.arange(len(Y))])[:40]
        for model, y in (
            (dtrees.RandomForestRegressor(3, random_state=0), numbers),
            (RandomForestClassifier(3, random_state=0), numbers[:, :2] > 0),
        ):
            with dask.config.set({"dtrees.regime": "local"}):
                expected = model.fit(rows, y).predict(rows)
            with dask.config.set({"dtrees.regime": "partitioned"}):
                found = model.fit(rows, y)
            assert found.fit_report_["regime"] == "partitioned"
            np.testing.assert_array_equal(found.predict(rows), expected)

    def test_a_small_budget_takes_more_rounds(self, here):
        """Those of a depth in several rounds, each of which is a pass."""
        report, _ = self.report(here, 20, budget="64 kiB", max_depth=5)
        assert 6 < report["rounds"] < 20 * 2**5
        assert report["passes"] == 1 + report["rounds"]

    def test_the_table_is_read_twice(self, here, tmp_path):
        """Whatever the depth: to learn the codes, and to make them."""
        for model in FOREST, FOLDS:
            found = fitted(here, model, block=lambda block: die_once(block, tmp_path, None))
            assert found.fit_report_["rounds"] > 3
            assert len(os.listdir(tmp_path)) == 2 * 7  # rows that are held out have codes, too
            for file in tmp_path.iterdir():
                file.unlink()


class TestExactCodes:
    """A code for each value of a column: as many as fit 16 bits, and one more."""

    def table(self, n_values):
        rng = np.random.default_rng(0)
        values = np.concatenate([np.arange(n_values), rng.integers(0, n_values, 1_000)])
        X = np.column_stack([rng.permutation(values) / 7, rng.integers(0, 9, len(values))])
        y = (np.sin(X[:, 0] / 900) + 0.1 * X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
        return X, y

    def partitioned(self, model, X, y, client):
        with on(client), dask.config.set({**ROUNDS, "dtrees.gather-rows": 20_000}):
            return model.fit(cut(X, (20_000, 0, 30_000, len(X) - 50_000)), y)

    def models(self):
        return [
            DecisionTreeClassifier(),
            RandomForestClassifier(2, random_state=0, max_bins=65_536),
            ExtraTreesRegressor(2, random_state=0, max_bins=None, max_depth=4),
        ]

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("n_values", [65_535, 65_536])
    def test_of_so_many_values(self, here, n_values):
        X, y = self.table(n_values)
        for model in self.models():
            expected = hash_of(model.fit(X, y))
            found = self.partitioned(model, X, y, here)
            assert hash_of(found) == expected, model
            assert found.fit_report_["regime"] == "partitioned"
            assert found.fit_report_["rounds"] > 1
        assert_nothing_is_left(here)


class TestPlacement:
    @pytest.mark.one_of(2)
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
            holders = self._tasks.holders(self._kept.blocks)
            for (worker,), length in zip(holders, self._kept.lengths, strict=True):
                of_worker[worker] += length
            seen.append(sorted(of_worker.values()))

        monkeypatch.setattr(BlocksOnWorkers, "begin", look)
        monkeypatch.setattr(
            PartitionedGrowth, "tree_batches", lambda self, numbers, *_: [[i] for i in numbers]
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


N_ROWS = 900


@pytest.fixture
def rounds():
    """Nodes are spread until they are small, and histograms of a round are few."""
    how = {"regime": "partitioned", "gather-rows": 60, "histogram-budget": 200_000}
    with dask.config.set({f"dtrees.{name}": value for name, value in how.items()}):
        yield


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 5] = rng.integers(0, 9, N_ROWS)
    signal = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2])
    return X, np.digitize(signal + rng.normal(size=N_ROWS), [-0.5, 0.8])


def assert_same_sets(found, expected):
    """The models of two cross-validations, and their scores."""
    np.testing.assert_array_equal(found["test_score"], expected["test_score"])
    for mine, other in zip(found["estimator"], expected["estimator"], strict=True):
        assert digest(trees_of(mine)) == digest(trees_of(other))


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "model",
    [
        dtrees.DecisionTreeClassifier(categorical_features=[5]),
        dtrees.RandomForestClassifier(3, criterion="entropy", random_state=1),
    ],
    ids=["tree", "forest"],
)
def test_many_sets(model, table, rounds):
    """More of them than bits of a word."""
    X, y = (values[:400] for values in table)
    arguments = {"cv": KFold(67), "return_estimator": True}
    found = cross_validate(model, X, y, **arguments)
    with dask.config.set({"dtrees.regime": "local"}):
        assert_same_sets(found, cross_validate(model, X, y, **arguments))
    assert found["final_estimator"].fit_report_["shared_rows"] > 67 * len(X) / 20


def test_nodes_that_lack_rows_of_a_block(rounds, monkeypatch):
    """A class that weighs nothing, and rows in order: blocks have no row of many gathered nodes."""
    monkeypatch.setattr(coded_partitions, "PART_BYTES", 600)
    rng, number = np.random.default_rng(0), np.arange(N_ROWS)
    X = np.column_stack([number, rng.normal(size=(N_ROWS, 5))])
    y = np.digitize(np.sin(number / 40) + rng.normal(size=N_ROWS) * 0.3, [-0.5, 0.5])
    model = dtrees.RandomForestClassifier(3, class_weight={0: 0.0, 1: 1.0, 2: 2.5}, random_state=1)
    arguments = {"cv": KFold(3, shuffle=True, random_state=0), "return_estimator": True}
    found = cross_validate(model, X, y, **arguments)
    assert found["final_estimator"].fit_report_["rounds"] > 0
    with dask.config.set({"dtrees.regime": "local"}):
        assert_same_sets(found, cross_validate(model, X, y, **arguments))


@pytest.mark.parametrize(
    ("name", "is_shared"),
    [
        *(("tree", True), ("leaves", True), ("deviance", True)),
        *(("small bags", False), ("balanced bags", False)),  # of a row each; drawn for each set
    ],
)
def test_tables_of_few_rows(name, is_shared):
    """They are gathered as they are: no round."""
    with dask.config.set({"dtrees.regime": "partitioned"}):
        for case in (name, f"folds of {name}"):
            model, *given = collections.CASES[case]
            model = clone(model).fit(*given)
            assert hash_of(model) == collections.in_memory(case)
            report = model.fit_report_
            assert (report["regime"], report["rounds"]) == ("partitioned", 0)
    assert (report["shared_nodes"] > 0) == is_shared


@pytest.mark.parametrize("kind", ["halves", "tenths"])
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_weights_of_several_units(criterion, kind, table):
    """A weight of 1,000 is in all sets but one. Sets of one unit share rounds."""
    X, y = table
    weight = np.random.default_rng(2).integers(1, 9, N_ROWS) * {"halves": 0.5, "tenths": 0.1}[kind]
    weight[0] = 1000.0
    is_classifier = criterion == "gini"
    tree = dtrees.DecisionTreeClassifier if is_classifier else dtrees.DecisionTreeRegressor
    how = {"cv": KFold(4), "return_estimator": True, "params": {"sample_weight": weight}}
    with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 0}):
        found = cross_validate(tree(max_depth=4), X, y, **how)
    assert_same_sets(found, cross_validate(tree(max_depth=4), X, y, **how))
    report = found["final_estimator"].fit_report_
    assert report["rounds"] <= 2 * 5
    assert report["shared_nodes"] > 0


def test_the_report_is_not_part_of_the_model(table):
    X, y = table
    tree = dtrees.DecisionTreeClassifier().fit(X, y)
    assert tree.fit_report_["regime"] == "local"
    assert set(tree.fit_report_["seconds"]) == {"coding", "growth"}
    with pytest.raises(AttributeError, match="no fit_report_"):
        pickle.loads(pickle.dumps(tree)).fit_report_  # noqa: B018


def test_columns_of_many_codes_that_are_sparse(rounds):
    """Their stored cells are counted, so a column may have any number of codes."""
    X = np.arange(70_000.0)[:, None]
    y = X[:, 0] % 1000 > 300
    found = dtrees.DecisionTreeClassifier(max_depth=3).fit(scipy.sparse.csr_array(X), y)
    assert found.fit_report_["rounds"] > 1
    with dask.config.set({"dtrees.regime": "local"}):
        alone = dtrees.DecisionTreeClassifier(max_depth=3).fit(scipy.sparse.csr_array(X), y)
    assert digest(trees_of(alone)) == digest(trees_of(found))


@pytest.mark.parametrize("model", ["classes", "numbers"])
def test_columns_of_more_than_65535_codes(model):
    """Second requests happen, of a column or two of a node, and of few of their codes."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(70_000), rng.normal(size=(70_000, 3))])
    X[::50, 1] = np.nan
    signal = X[:, 0] / 20_000 + np.nan_to_num(X[:, 1]) + rng.normal(size=len(X)) / 3
    if model == "classes":
        fit = dtrees.DecisionTreeClassifier(max_depth=3).fit
        y = np.digitize(signal, [1.0, 2.5])
    else:
        fit = dtrees.DecisionTreeRegressor(max_depth=3).fit
        y = signal
    with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 0}):
        found = fit(X, y)
        trees, report = digest(trees_of(found)), found.fit_report_
    assert report["rounds"] == 4
    assert report["code_rounds"] == 3
    assert 7 <= report["code_requests"] <= 14
    with dask.config.set({"dtrees.regime": "local"}):
        assert digest(trees_of(fit(X, y))) == trees


class Recorded(LocalBlocks):
    """Blocks that write down what they are asked for in a round, and what they answer."""

    rounds: ClassVar[list[Round]] = []
    n_codes: ClassVar[np.ndarray]

    def count(self, update, requests):
        counts = super().count(update, requests)
        type(self).n_codes = self._given[0].coded.n_codes
        ends = np.cumsum([request.members.bit_count() for request in requests])
        n_rows = [int(rows[:, N].sum()) for rows in np.split(counts.sums, ends[:-1])]
        self.rounds.append(Round(update, {r.node: r for r in requests}, n_rows, counts))
        return counts


@dataclass(frozen=True)
class Round:
    """An update, the nodes that are asked for after it, their rows (of all sets), the answer."""

    update: SplitUpdate
    requests: dict[int, HistogramRequest]
    n_rows: list[int]
    counts: Counts

    def rows_of(self, node):
        return self.n_rows[list(self.requests).index(node)]


class TestRequests:
    """What a round asks for, and so what is counted, sent and added up."""

    @pytest.fixture
    def recorded(self, monkeypatch):
        monkeypatch.setattr(partitioned, "LocalBlocks", Recorded)
        monkeypatch.setattr(Recorded, "rounds", [])
        with dask.config.set({"dtrees.regime": "partitioned", "dtrees.gather-rows": 20}):
            yield Recorded.rounds

    def forest(self, **parameters):
        return dtrees.RandomForestClassifier(3, max_bins=16, random_state=0, **parameters)

    def assert_nothing_else_is_sent(self, rounds):
        """Cells of the columns that were asked for, and no others: a few numbers for each code."""
        strides = set()
        for each in rounds:
            asked = [
                request.members.bit_count() * (Recorded.n_codes[request.columns] + 1).sum()
                for request in each.requests.values()
            ]
            strides.add(each.counts.histogram.size / sum(asked))
        assert strides == {1 + 3}  # rows, and the weights of three classes

    def test_drawn_columns(self, recorded, table):
        X, y = table
        model = self.forest(max_features=2).fit(X, y)
        self.assert_nothing_else_is_sent(recorded)
        asked = defaultdict(list)
        for each in recorded:
            for node, request in each.requests.items():
                assert len(request.columns) == 2, "not the draw of a node"
                asked[node] += request.columns.tolist()
        splits = [split for each in recorded for split in each.update.splits]
        assert len(splits) > 50
        assert all(split.column in asked[split.node] for split in splits)
        assert set().union(*asked.values()) == set(range(6))  # nodes draw apart from each other
        with dask.config.set({"dtrees.regime": "local"}):
            alone = self.forest(max_features=2).fit(X, y)
        assert digest(model.forest_.trees) == digest(alone.forest_.trees)

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("model", ["tree", "drawn", "regression"])
    def test_stored_cells_of_sparse_columns(self, model, recorded):
        """A few numbers for each cell of the rows of a node, however many columns there are."""
        X = scipy.sparse.random_array((N_ROWS, 3000), density=0.002, rng=4, format="csr")
        y = (X.sum(axis=1) > 2.5).astype(int) + (X[:, [7]].toarray().ravel() > 0)
        how = {"max_bins": 16, "random_state": 0}
        model = {
            "tree": dtrees.DecisionTreeClassifier(**how),
            "drawn": dtrees.RandomForestClassifier(3, **how),
            "regression": dtrees.DecisionTreeRegressor(**how),
        }[model]
        found = model.fit(X, y)
        assert len(recorded) > 5
        per_row = np.diff(X.indptr).max()
        for each in recorded:
            assert each.counts.histogram.size == 0
            assert len(each.counts.stored.places) <= 3 * per_row * sum(each.n_rows)
            assert len(each.counts.stored.places) <= 3 * len(each.requests) * X.nnz
        assert any(len(each.counts.stored.places) > 0 for each in recorded)
        trees = digest(trees_of(found))
        with dask.config.set({"dtrees.regime": "local"}):
            assert digest(trees_of(model.fit(X, y))) == trees

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("folds", [False, True])
    def test_one_of_two_siblings(self, folds, recorded, table):
        X, y = table
        model = self.forest(max_features=None)
        if folds:
            cross_validate(model, X, y, cv=KFold(4, shuffle=True, random_state=0))
        else:
            model.fit(X, y)
        self.assert_nothing_else_is_sent(recorded)
        n_pairs = 0
        for each in recorded:
            children = set()
            for split in each.update.splits:
                pair = [n for n in (split.left, split.right) if n in each.requests]
                children.update(pair)
                asked = {node: each.requests[node].columns for node in pair}
                n_asked = [6 if columns is None else len(columns) for columns in asked.values()]
                if len(pair) == 2:
                    n_pairs += 1
                    assert sorted(n_asked) == [0, 6]
                    small, large = sorted(pair, key=lambda node: asked[node] is not None)
                    assert each.rows_of(small) <= each.rows_of(large)
                else:
                    assert n_asked in ([], [6])  # the other one is gathered
            assert each is recorded[0] or children == set(each.requests)
        assert n_pairs > 20
