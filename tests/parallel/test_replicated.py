"""One forest, wherever it grows: on threads, on workers, and on workers that come and go."""

from __future__ import annotations

import _thread
import logging
import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from dataclasses import replace
from unittest.mock import patch

import dask
import distributed
import joblib
import numpy as np
import pytest
from distributed import Client

from dtrees import BaggingRegressor, RandomForestClassifier
from dtrees.callbacks import Callback
from dtrees.core.grow.forest import ForestGrowth, units_of
from dtrees.core.membership.resampling import plain
from dtrees.estimators.fit_plan import FitPlan, Training
from dtrees.estimators.forest_growth import FitOfForest
from dtrees.exceptions import ClusterError
from dtrees.parallel import client as clients
from dtrees.parallel import liveness, replicated, tasks, threaded
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.liveness import Liveness
from dtrees.parallel.replicated import _narrowed, _unpickled, aligned, pack, packed_bytes, unpack
from tests.parallel.clusters import Deadly, connect, digest, make_small, ours
from tests.parallel.faults import pids


def table(n_rows=800):
    """A numeric table with missing values, and three classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6)).round(2)
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n_rows) > 1).astype(int) + (X[:, 2] > 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def forest(**parameters):
    return RandomForestClassifier(**{"n_estimators": 20, "random_state": 5, **parameters})


def growth_of(model, X, y):
    """What a forest's trees are grown from."""
    plan = FitPlan.of(model)
    encoded = plan.encode(X, (y, None), plan.seed(), threaded(1))
    training = Training(encoded, y, threaded(1))
    return FitOfForest(model, training).growth


def grow_replicated(growth, numbers, client, *, on_tree=None, units_per_task=None, **parameters):
    """The trees in the order of their numbers; `on_tree` hears of them as they come."""
    grown = {}
    units = units_of(numbers)
    batches_of = replicated.batches_of
    if units_per_task is not None:

        def batches_of(n_rows, units, n_threads):
            starts = range(0, len(units), units_per_task)
            return [units[start : start + units_per_task] for start in starts]

    growing = replicated.grow_replicated(growth, plain(), units, client, **parameters)
    with patch.object(replicated, "batches_of", batches_of), closing(growing) as trees:
        for (number, _), (tree,) in trees:
            grown[number] = tree
            if on_tree is not None:
                on_tree(number, tree)
    return [grown[number] for number in numbers]


X, Y = table()
GROWTH = growth_of(forest(), X, Y)
LOCAL = digest(forest().fit(X, Y).forest_.trees)


class SlowGrowth(ForestGrowth):
    """Takes its time for every tree, and remembers where it grew: in-process clusters only."""

    grown: list = []  # noqa: RUF012
    seconds = 0.03

    def tree(self, number, *args):
        time.sleep(self.seconds)
        SlowGrowth.grown.append((distributed.get_worker().address, id(self.coded)))
        return super().tree(number, *args)


class InterruptingGrowth(SlowGrowth):
    """Presses Ctrl-C when the third tree is grown."""

    def tree(self, number, *args):
        tree = super().tree(number, *args)
        if len(SlowGrowth.grown) == 3:
            _thread.interrupt_main()
        return tree


class FailingGrowth(ForestGrowth):
    """Raises what `error` says, `n_failures` times."""

    error: Exception
    n_failures = 0

    def tree(self, number, *args):
        if FailingGrowth.n_failures > 0:
            FailingGrowth.n_failures -= 1
            error = FailingGrowth.error
            raise error() if callable(error) else error
        return super().tree(number, *args)


class HangingGrowth(ForestGrowth):
    """The first task that grows one of some trees waits until it may go on."""

    go_on = threading.Event()
    hung: list = []  # noqa: RUF012
    slow = (0,)

    def tree(self, number, *args):
        if number in HangingGrowth.slow and number not in HangingGrowth.hung:
            HangingGrowth.hung.append(number)
            HangingGrowth.go_on.wait(30)
        return super().tree(number, *args)


class StoppedOnce:
    """A table as it is; the first worker that is to have it is stopped."""

    __name__ = "stopped_once"

    def __init__(self, path):
        self.path = path

    def __call__(self, table):
        with suppress(FileNotFoundError):
            os.remove(self.path)
            os.kill(os.getpid(), signal.SIGSTOP)
        return table


def until(is_so):
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def as_kind(kind):
    SlowGrowth.grown = []
    return kind(**vars(GROWTH))


class TestGrowth:
    @pytest.mark.parametrize("units_per_task", [1, 3, 50])
    def test_any_number_of_units_per_task(self, units_per_task, here):
        seen = {}
        trees = grow_replicated(
            GROWTH, range(20), here, units_per_task=units_per_task, on_tree=seen.__setitem__
        )
        assert digest(trees) == LOCAL
        assert sorted(seen) == list(range(20))
        assert all(seen[number] is tree for number, tree in enumerate(trees))

    def test_no_trees(self, here):
        assert grow_replicated(GROWTH, [], here) == []

    def test_warm_start(self, here):
        model = forest(n_estimators=8, warm_start=True).fit(X, Y)
        model.set_params(n_estimators=20).fit(X, Y)
        assert digest(model.forest_.trees) == LOCAL


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
class TestWorkersThatComeAndGo:
    def kill(self, workers):
        """An `on_tree` that kills workers at the third tree."""
        trees = []

        def on_tree(number, tree):
            trees.append(number)
            if len(trees) == 3:
                for pid in workers:
                    os.kill(pid, signal.SIGKILL)

        return on_tree

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("n_killed", [1, 2])
    def test_killed_in_the_middle(self, n_killed, processes):
        growth = growth_of(forest(), *table(6_000))
        expected = digest([growth.tree(number) for number in range(40)])
        before = pids(processes, 2)
        on_tree, stats = self.kill(before[:n_killed]), FitStatistics()
        trees = grow_replicated(
            growth, range(40), processes, units_per_task=1, on_tree=on_tree, stats=stats
        )
        assert digest(trees) == expected
        assert stats.counts["restarts"] == 0  # the scheduler has the table, too
        assert len({*before, *pids(processes, 2)}) == 2 + n_killed
        assert ours(processes) == []

    def test_killed_where_no_other_one_can_hold_the_table(self, processes, monkeypatch):
        """It is sent again to the one that comes in its place."""
        pids(processes, 2)
        (able, victim), (small, _) = processes.run(os.getpid).items()
        make_small(monkeypatch, [small])
        growth = growth_of(forest(), *table(6_000))
        expected = digest([growth.tree(number) for number in range(40)])
        on_tree, stats = self.kill([victim]), FitStatistics()
        trees = grow_replicated(growth, range(40), processes, on_tree=on_tree, stats=stats)
        assert digest(trees) == expected
        assert stats.counts["restarts"] == 1
        assert able not in processes.nthreads()
        assert ours(processes) == []

    @pytest.mark.long
    @pytest.mark.rest
    def test_restarted_in_the_middle(self, processes):
        growth = growth_of(forest(), *table(6_000))
        expected = digest([growth.tree(number) for number in range(40)])
        restarted = []

        def restart(number, tree):
            if not restarted:
                restarted.append(number)
                processes.restart()

        assert digest(grow_replicated(growth, range(40), processes, on_tree=restart)) == expected
        assert ours(processes) == []

    def test_a_tree_that_a_worker_dies_of(self, processes, tmp_path):
        """The scheduler blames it at once, but it can be grown all the same."""

        def set_allowed(number, dask_scheduler):
            dask_scheduler.allowed_failures = number

        pids(processes, 2)
        deadly = tmp_path / "deadly"
        deadly.touch()
        growth = replace(GROWTH, thresholds=Deadly(GROWTH.thresholds, str(deadly)))
        processes.run_on_scheduler(set_allowed, 0)
        stats = FitStatistics()
        try:
            assert digest(grow_replicated(growth, range(20), processes, stats=stats)) == LOCAL
        finally:
            processes.run_on_scheduler(set_allowed, 3)
        assert not deadly.exists()
        assert stats.counts["lost_workers"] == 1
        assert stats.counts["retries"] >= 1
        assert ours(processes) == []

    def test_added_in_the_middle(self, here):
        def add(number, tree):
            if len(here.cluster.workers) == 1:
                here.cluster.scale(2)

        trees = grow_replicated(as_kind(SlowGrowth), range(20), here, units_per_task=1, on_tree=add)
        assert digest(trees) == LOCAL
        assert len({address for address, _ in SlowGrowth.grown}) == 2
        assert len({table for _, table in SlowGrowth.grown}) == 1  # nobody has copied it
        assert ours(here) == []


@pytest.mark.chaos
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
class TestWorkersThatHang:
    """A worker that is stopped answers nothing, and nobody is told: for `worker-ttl`, 5 minutes."""

    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        monkeypatch.setattr(liveness, "PATIENCE", 0.3)
        monkeypatch.setattr(clients, "ANSWER_SECONDS", 2.0)  # enough for the other one

    @pytest.fixture
    def stop(self, processes):
        """Stops one of two workers, and lets it go on in the end."""
        pid = pids(processes, 2)[0]
        try:
            yield lambda: os.kill(pid, signal.SIGSTOP)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert ours(processes) == []
        assert pid in processes.run(os.getpid).values()

    @pytest.mark.parametrize("after", [1, 15])
    def test_stopped_in_the_middle(self, after, processes, stop, caplog):
        growth = growth_of(forest(), *table(6_000))
        expected = digest([growth.tree(number) for number in range(40)])
        come = []

        def on_tree(number, tree):
            come.append(number)
            if len(come) == after:
                stop()

        stats = FitStatistics()
        with (
            dask.config.set({"dtrees.worker-patience": "5 minutes"}),  # it is not taken out
            caplog.at_level(logging.INFO, "dtrees"),
        ):
            trees = grow_replicated(
                growth, range(40), processes, units_per_task=1, on_tree=on_tree, stats=stats
            )
        assert digest(trees) == expected
        assert stats.counts["retries"] >= 1  # copies
        assert stats.counts["lost_workers"] == 0  # it is left alone
        assert sorted(come) == list(range(40))  # each of them once
        assert "does not come from ['tcp://" in caplog.text
        assert ours(processes) == []

    def test_all_are_lost_while_it_asks(self, here, monkeypatch):
        """Why nothing comes: who waits is told of each batch anyway."""
        who_has, asked = here.who_has, []

        def lost(futures):
            asked.append(len(futures))
            if len(asked) == 1:
                raise CancelledError
            return who_has(futures)

        monkeypatch.setattr(here, "who_has", lost)
        with dask.config.set({"dtrees.worker-patience": "100ms"}):
            trees = grow_replicated(as_kind(SlowGrowth), range(20), here, units_per_task=10)
        assert digest(trees) == LOCAL
        assert asked

    def test_all_gathers_of_the_client_hang(self, processes, stop):
        """A client makes five of them at a time: these are somebody's who waits for that worker."""
        addresses = {pid: address for address, pid in processes.run(os.getpid).items()}
        hanging = addresses[min(addresses)]
        others = [processes.submit(int, n, workers=[hanging], pure=False) for n in range(6)]
        processes.gather(others)
        stop()
        waiting = [threading.Thread(target=processes.gather, args=([each],)) for each in others]
        for thread in waiting:
            thread.start()
        with dask.config.set({"dtrees.worker-patience": "5 minutes"}):  # it is not taken out
            trees = grow_replicated(GROWTH, range(20), processes, units_per_task=1)
        assert digest(trees) == LOCAL
        assert all(thread.is_alive() for thread in waiting)
        os.kill(min(addresses), signal.SIGCONT)
        for thread in waiting:
            thread.join()

    def test_before_there_is_any_result(self, here, monkeypatch):
        """One batch on a worker that hangs, and another worker that has nothing to do."""
        monkeypatch.setattr(HangingGrowth, "go_on", threading.Event())
        monkeypatch.setattr(HangingGrowth, "hung", [])
        here.cluster.scale(2)
        here.wait_for_workers(2, timeout=60)
        growth = as_kind(HangingGrowth)
        try:
            with dask.config.set({"dtrees.worker-patience": "300ms"}):
                assert digest(grow_replicated(growth, range(20), here, units_per_task=20)) == LOCAL
        finally:
            HangingGrowth.go_on.set()
        assert len(HangingGrowth.hung) == 1
        assert ours(here) == []

    @pytest.mark.parametrize(("n_workers", "n_small"), [(1, 0), (2, 0), (1, 1)])
    def test_slow_workers_are_waited_for(self, n_workers, n_small, here, monkeypatch, caplog):
        """All of them have work, and answer: they are asked until they have gone on.

        Those without work that are too small for the table cannot help.
        """
        go_on, hung, asked = threading.Event(), [], []
        monkeypatch.setattr(HangingGrowth, "go_on", go_on)
        monkeypatch.setattr(HangingGrowth, "hung", hung)
        monkeypatch.setattr(HangingGrowth, "slow", (0, 10))
        ask = Liveness.ask

        def is_over(self):
            return len(hung) == n_workers and not go_on.is_set()

        def ask_thrice(self, keys):
            asked.append("does not come" in caplog.text)
            if len(asked) > 3:
                go_on.set()
            return ask(self, keys)

        monkeypatch.setattr(Liveness, "is_over", property(is_over))
        monkeypatch.setattr(Liveness, "ask", ask_thrice)
        here.cluster.scale(n_workers + n_small)
        here.wait_for_workers(n_workers + n_small, timeout=60)
        make_small(monkeypatch, sorted(here.nthreads())[:n_small])
        with caplog.at_level(logging.INFO, "dtrees"):
            trees = grow_replicated(as_kind(HangingGrowth), range(20), here, units_per_task=10)
        assert digest(trees) == LOCAL
        assert asked == [False] * 4
        assert ours(here) == []

    def test_a_table_that_does_not_arrive(self, tmp_path, monkeypatch, caplog):
        """The worker that is to have it is stopped: it leaves, and another one gets the table."""
        gate = tmp_path / "gate"
        gate.touch()
        monkeypatch.setattr(tasks, "identity", StoppedOnce(str(gate)))
        with (
            dask.config.set({"dtrees.worker-patience": "2s"}),
            caplog.at_level(logging.INFO, "dtrees"),
            connect(2, 1, True) as cluster,
            Client(cluster) as client,
        ):
            workers, stats = pids(client, 2), FitStatistics()
            try:
                trees = grow_replicated(GROWTH, range(20), client, stats=stats)
            finally:
                for pid in workers:
                    os.kill(pid, signal.SIGCONT)
        assert digest(trees) == LOCAL
        assert not gate.exists()
        assert "are taken out of the cluster" in caplog.text
        assert stats.counts["lost_workers"] == 1
        assert stats.counts["restarts"] == 0  # the scheduler has the table, too


class TestOnTheScheduler:
    def test_names(self, here):
        names, spans = set(), set()

        def look(number, tree):
            scheduler = here.cluster.scheduler
            names.update(scheduler.task_prefixes)
            spans.update(scheduler.extensions["spans"].spans_search_by_name)

        grow_replicated(as_kind(SlowGrowth), range(5), here, on_tree=look)
        assert {"grow-trees", "coded-table"} <= names
        assert ("dtrees.fit",) in spans


class TestNothingIsLeft:
    @pytest.mark.parametrize("error", [ZeroDivisionError("told so"), KeyboardInterrupt()])
    def test_after_an_error_in_a_callback(self, error, here):
        def on_tree(number, tree):
            raise error

        with pytest.raises(type(error)):
            grow_replicated(as_kind(SlowGrowth), range(20), here, on_tree=on_tree)
        assert ours(here) == []
        assert len(SlowGrowth.grown) < 20

    def test_after_an_error_on_a_worker(self, here, monkeypatch):
        monkeypatch.setattr(FailingGrowth, "n_failures", 1)
        monkeypatch.setattr(FailingGrowth, "error", ValueError("of a worker"), raising=False)
        with pytest.raises(ValueError, match="of a worker"):
            grow_replicated(as_kind(FailingGrowth), range(20), here)
        assert ours(here) == []

    def test_after_ctrl_c(self, here):
        with pytest.raises(KeyboardInterrupt):
            grow_replicated(as_kind(InterruptingGrowth), range(1000), here)
        assert ours(here) == []
        (worker,) = here.cluster.workers.values()
        until(lambda: worker.state.executing_count == 0)  # the task ends, too,
        assert len(SlowGrowth.grown) < 125  # in the midst of its batch
        assert digest(forest().fit(X, Y).forest_.trees) == LOCAL

    def test_a_failed_fit_leaves_the_forest_as_it_was(self, here, monkeypatch):
        def grow(*_, **__):
            raise ClusterError("lost")

        model = forest()
        monkeypatch.setattr("dtrees.parallel.growing.grow_replicated", grow)
        with pytest.raises(ClusterError, match="lost"):
            model.fit(X, Y)
        assert not hasattr(model, "forest_")


class TestCallbacks:
    class Stop(Callback):
        """Stops at a tree, or raises there."""

        def __init__(self, number, error=None):
            self.number, self.error, self.heard = number, error, []

        def on_tree_end(self, fit, number):
            self.heard.append((number, threading.get_ident()))
            if number == self.number and self.error is not None:
                raise self.error
            return number == self.number

    @pytest.mark.parametrize("number", [0, 7, 19])
    def test_stop(self, number, processes):
        stop = self.Stop(number)
        with processes.as_current():
            model = forest().fit(X, Y, callbacks=[stop])
        assert stop.heard == [(i, threading.get_ident()) for i in range(number + 1)]
        alone = forest(n_estimators=number + 1, regime="local").fit(X, Y)
        assert digest(model.forest_.trees) == digest(alone.forest_.trees)
        assert ours(processes) == []

    def test_an_error(self, processes):
        model = forest()
        with processes.as_current(), pytest.raises(ZeroDivisionError, match="told so"):
            model.fit(X, Y, callbacks=[self.Stop(3, ZeroDivisionError("told so"))])
        assert not hasattr(model, "forest_")
        assert ours(processes) == []

    def test_out_of_bag(self, processes):
        alone = forest(n_estimators=200, regime="local", oob_tol=0.002, n_jobs=2).fit(X, Y)
        with processes.as_current():
            model = forest(n_estimators=200, oob_tol=0.002).fit(X, Y)
        assert 20 <= model.n_estimators_ < 200
        assert digest(model.forest_.trees) == digest(alone.forest_.trees)
        np.testing.assert_array_equal(model.oob_scores_, alone.oob_scores_)
        np.testing.assert_array_equal(model.oob_decision_function_, alone.oob_decision_function_)
        assert ours(processes) == []


class TestNested:
    def test_in_joblib(self, here):
        def fit(n_jobs):
            n_threads = threaded(n_jobs).n_threads
            return n_threads, digest(forest(n_jobs=n_jobs).fit(X, Y).forest_.trees)

        with joblib.parallel_config(backend="dask"):
            found = joblib.Parallel()(joblib.delayed(fit)(n_jobs) for n_jobs in (None, -1))
        assert found == [(1, LOCAL)] * 2

    def test_with_joblibs_backend_the_cluster_is_that_of_its_client(self, here):
        alone = forest().fit(X, Y)
        with joblib.parallel_config(backend="dask"):
            model = forest().fit(X, Y)
        assert model.fit_report_["regime"] == alone.fit_report_["regime"] == "replicated"
        assert model.fit_report_["tasks"] == alone.fit_report_["tasks"] > 0
        assert digest(model.forest_.trees) == LOCAL


class TestWire:
    def test_what_is_in_no_module_goes_by_value(self):
        def double(x):
            return 2 * x

        again = pickle.loads(pickle.dumps(replicated.SharedArrays((double, np.arange(3)))))
        assert again.value[0](4) == 8
        assert again.value[1].tolist() == [0, 1, 2]

    def test_trees(self):
        trees = [GROWTH.tree(number) for number in range(4)]
        packed = pack(trees)
        assert all(a.equals(b) for a, b in zip(trees, unpack(packed), strict=True))
        sent = sum(part[0].nbytes for part in packed.values() if isinstance(part, tuple))
        assert sent < sum(a.nbytes for tree in trees for a in tree.arrays().values()) * 2 / 3
        assert all(
            array.flags.aligned for tree in unpack(packed) for array in tree.arrays().values()
        )

    def test_the_table_from_buffers_that_are_unaligned_and_read_only(self):
        growth = growth_of(
            forest(max_bins=None), np.random.default_rng(0).random((300, 3)), Y[:300]
        )
        make, (rest, buffers) = replicated.SharedArrays(growth).__reduce__()
        assert make is _unpickled
        shifted = []
        for buffer in buffers:
            room = np.empty(len(buffer) + 1, dtype=np.uint8)[1:]
            room[:] = buffer
            room.flags.writeable = False
            shifted.append(room)
            assert aligned(room).ctypes.data % 64 == 0 or len(room) == 0
        again = make(rest, shifted).value
        assert again.tree(2).equals(growth.tree(2))
        sized = replicated.SharedArrays(growth)
        assert sys.getsizeof(sized) >= growth.coded.nbytes
        assert pickle.loads(pickle.dumps(sized)).value.tree(1).equals(growth.tree(1))


def test_means_come_back_with_their_units():
    # what a regression tree is pickled and saved by
    X, y = np.arange(20.0)[:, None], np.linspace(100, 107, 20)
    trees = BaggingRegressor(3, random_state=0).fit(X, y).forest_.trees
    for tree, again in zip(trees, unpack(pack(trees)), strict=True):
        assert again.equals(tree)
        assert (again.unit, again.offset) == (tree.unit, tree.offset) != (1.0, 0.0)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 127], np.int8),
        ([0, 128], np.uint8),
        ([-1, 128], np.int16),
        ([0, 2**16 - 1], np.uint16),
        ([-1, 2**31 - 1], np.int32),
        ([0, 2**31], np.uint32),
        ([-1, 2**31], np.int64),
        ([0, 2**32], np.int64),
    ],
)
def test_integers_go_in_the_narrowest_type(values, dtype):
    array = np.array(values, dtype=np.int64)
    found = _narrowed(array)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, array)


def test_other_arrays_go_as_they_are():
    for array in (np.array([1.0, 2.0]), np.array([], dtype=np.int64), np.array([True])):
        assert _narrowed(array) is array


def test_bytes_of_what_is_sent():
    packed = pack([GROWTH.tree(0)])
    assert packed_bytes(packed) == sum(
        sent[0].nbytes for sent in packed.values() if isinstance(sent, tuple)
    )
    assert "children_left" not in packed
