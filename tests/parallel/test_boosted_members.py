"""Boosted models that grow where their rows are: one model, whatever happens to the workers."""

from __future__ import annotations

import errno
import os
import signal
import threading
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from sklearn.base import clone

from dtrees import GradientBoostingRegressor
from dtrees.callbacks import Callback
from dtrees.coding.mapped import empty_on_disk
from dtrees.core.grow import boosting
from dtrees.exceptions import ClusterError, WorkerLostError
from dtrees.model_selection import cross_validate
from dtrees.parallel import boosted_members, exchange, tasks
from tests.core.grow.boosted_cases import Squares
from tests.parallel.clusters import connect, digest, epochs_of, ours, paused
from tests.parallel.faults import Fault, pids
from tests.parallel.test_boosted import TARGETS, WEIGHT, F, X, expected_of, found, model_of

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

LAYOUTS = {"1": 600, "2": 300, "7": 90, "uneven": (10, 0, 250, 0, 1, 339)}
ONES = (1, 199, 1, 199, 1, 199)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Tables have several blocks on each worker, and members have a part of the columns each."""
    monkeypatch.setattr("dtrees.parallel.placed_blocks.BLOCKS_PER_THREAD", 6)
    monkeypatch.setattr(boosting, "WHOLE_CODES", 0)


@pytest.fixture(scope="module")
def three():
    """A client of three workers in this process; nothing of the epochs is left there."""
    with connect(3, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client
        assert not epochs_of(client)


def fit(client, name="two classes", layout="7", weight=WEIGHT, **parameters):
    """A model of the table in partitions, on a cluster."""
    model, y = model_of(name, regime="partitioned", **parameters)
    chunks = LAYOUTS.get(layout, layout)
    table = da.from_array(X, chunks=((chunks, -1) if isinstance(chunks, int) else (chunks, (5,))))
    with client.as_current():
        return model.fit(table, y, sample_weight=weight)


class TestOneHash:
    @pytest.mark.one_of(12)
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("name", TARGETS)
    def test_of_every_layout(self, name, layout, three):
        model = fit(three, name, layout)
        assert found(model) == expected_of(name)
        report = model.fit_report_
        assert (report["regime"], report["reason"]) == ("partitioned", "asked for")
        assert report["epochs"] == 1
        assert (report["rounds"] > 1) == (layout != "1")
        assert (report["messages"] > 0) == (layout != "1")
        assert ours(three) == []

    @pytest.mark.one_of(6)
    @pytest.mark.parametrize("name", TARGETS)
    def test_of_few_codes(self, name, three, monkeypatch):
        """All members search all columns: a message less in every round."""
        of_parts = fit(three, name, max_bins=31)
        monkeypatch.setattr(boosting, "WHOLE_CODES", 4 * 5 * 31)
        model = fit(three, name, max_bins=31)
        assert found(model) == found(of_parts) == expected_of(name, max_bins=31)
        fewer = of_parts.fit_report_["rounds"] - model.fit_report_["rounds"]
        assert fewer > model.fit_report_["rounds"] // 3

    @pytest.mark.one_of(4)
    @pytest.mark.parametrize(
        "parameters",
        [
            {"loss": "huber", "subsample": 0.6, "oob_score": True},
            {"loss": "absolute_error", "path_smooth": 2.0},
            {"loss": Squares(), "subsample": 0.5},
            {"monotonic_cst": [1, 0, 0, 0, -1], "interaction_cst": [{0, 1}], "max_features": 0.5}
            | {"feature_weights": [1, 1, 5, 2, 9]},
            {"max_leaf_nodes": None, "max_depth": 3, "max_bins": None},
            {"early_stopping": True, "n_iter_no_change": 1, "tol": 0.5},
            {"early_stopping": True, "validation_fraction": None},
        ],
        ids=["huber", "median", "own loss", "rules", "by depth", "held out", "scored"],
    )
    def test_of_every_parameter(self, parameters, three):
        model = fit(three, "numbers", **parameters)
        assert found(model) == expected_of("numbers", **parameters)
        alone, y = model_of("numbers", **parameters)
        alone.fit(X, y, sample_weight=WEIGHT)
        assert model.train_score_.tolist() == alone.train_score_.tolist()

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("form", ["categories", "classes", "sparse classes", "median"])
    def test_trees_of_all_targets(self, form, three):
        how = {"multi_strategy": "multi_output_tree", "subsample": 0.7, "max_features": 0.8}
        y, table = np.c_[F, 1 - F**2, np.cos(5 * F)], X * (np.abs(X) > 0.7)
        of_classes = "classes" in form
        if form == "classes":
            y = np.digitize(F, [0.3, 0.6])
        elif of_classes:
            y = np.c_[F > 0.5, np.digitize(F**2, [0.1, 0.4])].astype(int)
        if form == "sparse classes":
            lazy = da.from_array(table, chunks=((10, 300, 290), -1)).map_blocks(sp.csr_matrix)
        else:
            table = pd.DataFrame(table, columns=list("abcde"))
            table["few"] = pd.Categorical(np.arange(len(X)) % 5)
            table["many"] = pd.Categorical(np.arange(len(X)) ** 2 % 97)
            lazy = dd.from_pandas(table, npartitions=4)
            if not of_classes:
                how["loss"] = "quantile" if form == "median" else "huber"
        model = model_of("three classes" if of_classes else "numbers", **how)[0]
        if form == "median":
            model.set_params(quantile=0.5)
        alone = clone(model).fit(table, y, sample_weight=WEIGHT)
        with three.as_current():
            model.set_params(regime="partitioned").fit(lazy, y, sample_weight=WEIGHT)
        assert found(model) == found(alone)
        assert model.fit_report_["messages"] > 0
        assert ours(three) == []

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("workers", [(1, 1), (1, 3), (4, 1)])
    def test_on_any_number_of_threads(self, workers):
        with connect(*workers, False) as cluster, Client(cluster) as client:
            assert found(fit(client, "three classes")) == expected_of("three classes")
            assert ours(client) == []

    def test_on_processes(self, processes):
        assert found(fit(processes, "three classes")) == expected_of("three classes")
        assert ours(processes) == []

    def test_of_a_table_in_memory(self, three):
        model, y = model_of("numbers", regime="partitioned", warm_start=True, max_iter=2)
        with three.as_current():
            model.fit(X, y, sample_weight=WEIGHT)
            model.set_params(max_iter=4).fit(X, y, sample_weight=WEIGHT)
        assert found(model) == expected_of("numbers")

    @pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
    def test_without_a_cluster(self, scheduler):
        model, y = model_of(regime="partitioned")
        with dask.config.set(scheduler=scheduler):
            model.fit(da.from_array(X, chunks=(200, -1)), y, sample_weight=WEIGHT)
        assert found(model) == expected_of()
        assert model.fit_report_["regime"] == "partitioned"

    def test_of_data_frames_with_categories(self, three):
        frame = pd.DataFrame(X, columns=list("abcde"))
        frame["c"] = pd.Categorical(np.where(np.isnan(X[:, 2]), "none", np.where(F > 0, "u", "v")))
        many = np.array([f"c{k:02d}" for k in range(30)])
        frame["d"] = pd.Categorical(many[np.random.default_rng(1).integers(0, 30, len(X))])
        model, y = model_of("numbers")
        alone = digest(model.fit(frame, y).forest_.trees)
        lazy = dd.from_pandas(frame, npartitions=5)
        with three.as_current():
            model.set_params(regime="partitioned").fit(
                lazy, dd.from_pandas(pd.Series(y), npartitions=2)
            )
        assert digest(model.forest_.trees) == alone

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("name", ["three classes", "numbers"])
    def test_of_sparse_tables(self, name, three):
        rng = np.random.default_rng(2)
        table = sp.random(600, 40, density=0.1, random_state=2, format="csr")
        table.data = table.data.round(1)
        table = sp.csr_array(sp.hstack([table, np.round(rng.normal(size=(600, 1)), 1)]))
        model, y = model_of(name)
        y = y if name == "three classes" else y + table[:, [0]].toarray()[:, 0]
        alone = digest(model.fit(table, y).forest_.trees)
        lazy = da.from_array(table.toarray(), chunks=(110, -1)).map_blocks(sp.csr_array)
        with three.as_current():
            model.set_params(regime="partitioned").fit(lazy, y)
        assert digest(model.forest_.trees) == alone

    def test_where_most_rows_weigh_nothing(self, three):
        """Some blocks have no row that is grown from, and some of their rows are held out."""
        weight = np.zeros(600)
        weight[200:240] = 1.0 + np.arange(40) % 3
        model, y = model_of("numbers", early_stopping=True, validation_fraction=0.9)
        model.fit(X, y, sample_weight=weight)
        lazy = fit(three, "numbers", weight=weight, early_stopping=True, validation_fraction=0.9)
        assert found(lazy) == found(model)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("how", [{}, {"early_stopping": True}], ids=["plain", "early"])
    def test_losses_of_ones_own_where_members_have_no_row(self, how, three):
        class NeedsRows(Squares):
            def gradient_and_hessian(self, y, raw):
                assert len(y) > 0
                return super().gradient_and_hessian(y, raw)

            def of_rows(self, y, raw):
                assert len(y) > 0
                return super().of_rows(y, raw)

        weight = np.zeros(600)
        weight[200:240] = 1.0
        model, y = model_of("numbers", loss=NeedsRows(), **how)
        model.fit(X, y, sample_weight=weight)
        spread = fit(three, "numbers", weight=weight, loss=NeedsRows(), **how)
        assert found(spread) == found(model)

    def test_of_rows_that_begin_with_raw_predictions(self, three):
        start = np.random.default_rng(3).normal(size=600)
        model, y = model_of("numbers", early_stopping=True)
        model.fit(X, y, init_score=start)
        spread, _ = model_of("numbers", early_stopping=True, regime="partitioned")
        with three.as_current():
            spread.fit(da.from_array(X, chunks=(90, -1)), y, init_score=start)
        assert found(spread) == found(model)


class TestScores:
    def test_curves_of_all_sets(self, three):
        fitted = {}
        for regime in ("local", "partitioned"):
            model, y = model_of("numbers", regime=regime)
            with three.as_current():
                table = X if regime == "local" else da.from_array(X, chunks=(90, -1))
                sets = [(table, y), (X[:100], y[:100])]
                fitted[regime] = model.fit(table, y, WEIGHT, eval_set=sets)
        local, spread = fitted["local"], fitted["partitioned"]
        assert spread.evals_result_ == local.evals_result_
        assert set(spread.evals_result_) == {"training", "valid_1"}
        assert found(spread) == found(local)

    def test_of_the_only_member(self, here, monkeypatch):
        """Training rows walk down its trees, so their codes stay."""
        monkeypatch.setattr(boosted_members, "TAKEN_BYTES", 0)
        how = {"early_stopping": True, "validation_fraction": None, "max_iter": 9}
        model, y = model_of("numbers", **how)
        local = model.fit(X, y)
        spread = fit(here, "numbers", weight=None, **how)
        assert spread.train_score_.tolist() == local.train_score_.tolist()
        assert found(spread) == found(local)

    def test_rows_that_are_given_end_the_fit(self, three):
        how = {"early_stopping": True, "max_iter": 60, "n_iter_no_change": 2, "tol": 0.02}
        model, y = model_of("numbers", **how)
        others = {"X_val": X[:50], "y_val": y[:50]}
        model.fit(X, y, **others)
        spread, _ = model_of("numbers", regime="partitioned", **how)
        with three.as_current():
            spread.fit(da.from_array(X, chunks=(90, -1)), y, **others)
        assert len(spread.validation_score_) < 60
        assert found(spread) == found(model)
        assert ours(three) == []

    @pytest.mark.parametrize("scoring", ["accuracy", lambda model, X, y: 0.0], ids=["name", "own"])
    def test_other_scorers_are_refused(self, scoring, three):
        with pytest.raises(ValueError, match=r"scored by the loss only.*X_val"):
            fit(three, early_stopping=True, scoring=scoring)
        assert ours(three) == []


@pytest.fixture
def no_room(monkeypatch):
    """Arrays of members are in files; how often something was made there."""
    made = []

    def empty(*args, **how):
        made.append(args)
        return empty_on_disk(*args, **how)

    monkeypatch.setattr(boosted_members, "room_of_member", lambda limit: 0)
    monkeypatch.setattr(boosted_members, "empty_on_disk", empty)
    return made


class TestOnDisk:
    """Where codes are more than memory, members have them in files; the model is the same."""

    @pytest.mark.one_of(6)
    @pytest.mark.parametrize("layout", ["1", "7"])
    @pytest.mark.parametrize("name", TARGETS)
    def test_of_every_target(self, name, layout, three, no_room):
        assert found(fit(three, name, layout)) == expected_of(name)
        assert no_room
        assert ours(three) == []

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize(
        "parameters",
        [
            {"loss": "huber", "subsample": 0.6},
            {"max_bins": None, "max_leaf_nodes": None, "max_depth": 3},
            {"early_stopping": True, "n_iter_no_change": 1, "tol": 0.5},
        ],
        ids=["drawn", "many codes", "held out"],
    )
    def test_of_other_parameters(self, parameters, three, no_room, monkeypatch):
        monkeypatch.setattr("dtrees.core.predict.binned.MAPPED_AT_ONCE", 7)
        assert found(fit(three, "numbers", **parameters)) == expected_of("numbers", **parameters)
        assert no_room

    def test_of_folds(self, three, no_room):
        model, y = model_of("numbers")
        alone = cross_validate(model, X, y, cv=3)
        with three.as_current(), dask.config.set({"dtrees.regime": "partitioned"}):
            spread = cross_validate(model, da.from_array(X, chunks=(90, -1)), y, cv=3)
        assert found(spread.final_estimator) == found(alone.final_estimator)
        assert no_room

    def test_a_first_block_of_one_row_says_nothing(self, three, monkeypatch):
        """All codes of a member are 3,000 bytes at most, and laid out as many."""
        monkeypatch.setattr(boosted_members, "bytes_of_boosting", lambda *_: 0)
        monkeypatch.setattr(boosted_members, "room_of_member", lambda limit: 6_000)
        monkeypatch.setattr(boosted_members, "empty_on_disk", None)
        monkeypatch.setattr("dtrees.parallel.placed_blocks.BLOCKS_PER_THREAD", 200)
        assert found(fit(three, "numbers", ONES)) == expected_of("numbers")

    @pytest.mark.usefixtures("rounds_one_by_one", "no_room")
    def test_a_full_disk_leaves_the_trees_so_far(self, three, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        go_on, calls = boosted_members.BlocksOfMembers._go_on, []

        def another_epoch(self, wanted):
            calls.append(wanted)
            if len(calls) == 3:
                self._epochs.end_epoch()
                monkeypatch.setattr(os, "posix_fallocate", full)
            return go_on(self, wanted)

        monkeypatch.setattr(boosted_members.BlocksOfMembers, "_go_on", another_epoch)
        with pytest.raises(ClusterError, match=r"://.* bytes .*No space left.*complete") as caught:
            fit(three, "numbers", max_iter=9)
        assert ours(three) == []
        made = caught.value.estimator
        assert 0 < made.n_iter_ < 9
        _, y = model_of("numbers")
        monkeypatch.undo()
        made.set_params(regime="local").resume(X, y, sample_weight=WEIGHT)
        assert found(made) == expected_of("numbers", max_iter=9)

    @pytest.mark.usefixtures("rounds_one_by_one", "no_room")
    def test_an_epoch_begins_from_the_trees_so_far(self, three, monkeypatch):
        monkeypatch.setattr(boosted_members, "WALK_ROWS", 13)

        def end():
            for name in epochs_of(three):
                three.run(exchange.end_epoch, name)

        fault = Fault(end, "rounds", 3)
        with fault.set():
            model = fit(three, "numbers", max_iter=9)
        assert fault.has_happened
        assert found(model) == expected_of("numbers", max_iter=9)
        assert model.fit_report_["epochs"] > 1


class Noted(Callback):
    """Iterations, up to one that ends the fit."""

    def __init__(self, last=99):
        self.last, self.numbers = last, []

    def on_iteration_end(self, fit, number):
        self.numbers.append(number)
        return number == self.last


class TestCallbacks:
    def test_hear_of_every_iteration_and_may_end_the_fit(self, three):
        model, y = model_of(regime="partitioned", max_iter=9)
        noted = Noted(last=2)
        with three.as_current():
            model.fit(da.from_array(X, chunks=(90, -1)), y, WEIGHT, callbacks=[noted])
        assert noted.numbers == [0, 1, 2]
        assert found(model) == expected_of(max_iter=3)
        assert ours(three) == []

    def test_an_error_of_one_leaves_nothing(self, three):
        class Fails(Callback):
            def on_iteration_end(self, fit, number):
                fit.training_score()

        model, y = model_of(regime="partitioned")
        with three.as_current(), pytest.raises(ValueError, match="training rows are on their work"):
            model.fit(da.from_array(X, chunks=(90, -1)), y, callbacks=[Fails()])
        assert ours(three) == []
        assert not hasattr(model, "forest_")


def test_an_error_of_a_loss_is_the_users(three):
    class Fails(Squares):
        def gradient_and_hessian(self, y, raw):
            if abs(raw - raw[0]).max() > 0:  # from the second iteration on
                raise ArithmeticError("of derivatives")
            return super().gradient_and_hessian(y, raw)

    with pytest.raises(ArithmeticError, match="of derivatives"):
        fit(three, "numbers", loss=Fails())
    assert ours(three) == []


class Busy:
    """What a task in this process waits for."""

    go_on = threading.Event()


def be_busy(_):
    return Busy.go_on.wait(60)


class TestOthers:
    """Members share workers with other tasks, and with members of other fits."""

    def test_a_worker_that_is_busy_is_waited_for(self, three):
        """Its task goes to nobody else."""
        busy = sorted(three.nthreads())[0]
        Busy.go_on.clear()
        held = three.submit(be_busy, 0, workers=[busy], pure=False)
        timer = threading.Timer(1.0, Busy.go_on.set)
        timer.start()
        try:
            model = fit(three, "numbers", "2")
        finally:
            Busy.go_on.set()
            timer.join()
        assert found(model) == expected_of("numbers")
        assert model.fit_report_["epochs"] == 1
        assert held.result()

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("seconds", ["inf", "10s"])
    def test_turns_that_end_by_themselves_or_not(self, seconds, three):
        with dask.config.set({"distributed.scheduler.locks.lease-timeout": seconds}):
            assert found(fit(three, "numbers")) == expected_of("numbers")
        assert ours(three) == []

    @pytest.mark.usefixtures("rounds_one_by_one")
    def test_fits_at_the_same_time_take_turns(self, three):
        address, models = three.scheduler.address, {}

        def work(name):
            with Client(address, set_as_default=False) as client:
                models[name] = fit(client, name, max_iter=8)

        names = ["numbers", "two classes", "regularized"]
        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in names:
            assert found(models[name]) == expected_of(name, max_iter=8)


@pytest.mark.usefixtures("rounds_one_by_one")
class TestFaults:
    """Epochs end, and the model is the same."""

    MODEL = partial(
        GradientBoostingRegressor, max_iter=12, random_state=0, min_samples_leaf=3, subsample=0.7
    )

    def fitted(self, client, **parameters):
        parameters = {"early_stopping": False, "oob_score": True, **parameters}
        model = self.MODEL(**{"regime": "partitioned", **parameters})
        others = da.from_array(X[::-1], chunks=(70, -1)), da.from_array(F, chunks=50)
        with client.as_current():
            model.fit(da.from_array(X, chunks=(90, -1)), F, WEIGHT, eval_set=others)
        expected = self.MODEL(**{**parameters, "regime": "local"})
        expected.fit(X, F, WEIGHT, eval_set=(X[::-1], F))
        assert found(model) == found(expected)
        assert model.evals_result_ == expected.evals_result_
        assert ours(client) == []
        return model.fit_report_

    @pytest.fixture(autouse=True)
    def few_rows(self, monkeypatch):
        """Rows that are scored stay where they are."""
        monkeypatch.setattr("dtrees.parallel.row_columns.FEW_ROWS", 0)

    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("number", [0, 3])
    @pytest.mark.parametrize("phase", ["blocks", "rounds"])
    def test_a_worker_is_killed(self, phase, number, processes):
        fault = Fault(lambda: os.kill(pids(processes, 2)[0], signal.SIGKILL), phase, number)
        with fault.set():
            report = self.fitted(processes)
        assert fault.has_happened
        assert report["lost_workers"] >= 1

    @pytest.mark.long
    @pytest.mark.rest
    def test_all_are_killed(self, processes):
        def kill():
            for pid in pids(processes, 2):
                os.kill(pid, signal.SIGKILL)

        with Fault(kill, "rounds", 4).set() as fault:
            report = self.fitted(processes)
        assert fault.has_happened
        assert report["epochs"] > 1

    def test_workers_come_and_go(self):
        with connect(1, 1, True) as cluster, Client(cluster) as client:

            def scale(n):
                cluster.scale(n)
                if n > 1:
                    client.wait_for_workers(n)

            more = Fault(partial(scale, 3), "rounds", 2)
            fewer = Fault(partial(scale, 1), "rounds", 5, after=more)
            with more.set(), fewer.set():
                report = self.fitted(client)
            assert more.has_happened
            assert fewer.has_happened
            assert report["epochs"] > 1

    def test_the_cluster_is_restarted(self, processes):
        with Fault(processes.restart, "rounds", 3).set() as fault:
            report = self.fitted(processes)
        assert fault.has_happened
        assert report["epochs"] > 1

    def test_a_worker_is_paused(self, three, monkeypatch):
        """It has begun nothing, and others may have its task."""
        workers = sorted(three.nthreads())[:1]
        fault = Fault(lambda: paused(three, workers), "rounds", 3)
        try:
            monkeypatch.setattr(exchange, "ASK_SECONDS", 0.05)
            monkeypatch.setattr(exchange, "PAUSED_SECONDS", 0)
            with fault.set():
                report = self.fitted(three)
        finally:
            paused(three, workers, "running")
        assert fault.has_happened
        assert report["epochs"] > 1

    def test_the_only_member_is_paused(self, three, monkeypatch):
        """Nobody else asks whether it is there."""
        paused_ones = []

        def pause():
            (there,) = {
                address for address, _ in list(exchange._boxes) if address in three.nthreads()
            }
            paused_ones.append(there)
            paused(three, [there])

        monkeypatch.setattr(exchange, "PAUSED_SECONDS", 0)
        monkeypatch.setattr(tasks, "WATCH_SECONDS", 0.2)
        fault = Fault(pause, "rounds", 3)
        try:
            with fault.set():
                report = self.fitted(three, regime="replicated")
        finally:
            paused(three, paused_ones, "running")
        assert fault.has_happened
        assert report["epochs"] > 1

    def test_epochs_that_end_again_and_again(self, three, monkeypatch):
        def refuse(*arguments):
            raise exchange.EpochEndedError("a test")

        monkeypatch.setattr(boosted_members.MemberState, "grow", refuse)
        with pytest.raises(WorkerLostError, match="lost 5 times, without a result"):
            self.fitted(three)
        assert ours(three) == []
