"""The models of a cross-validation, wherever they grow, and whatever happens there."""

from __future__ import annotations

import _thread
import logging
import os
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace

import dask
import distributed
import numpy as np
import psutil
import pytest
from distributed import Client

from dtrees import DecisionTreeClassifier, ExtraTreesClassifier, RandomForestClassifier
from dtrees.callbacks import Bar
from dtrees.core.grow.forest import ForestGrowth, units_of
from dtrees.core.membership.resampling import of_sets
from dtrees.estimators.fit_plan import FitPlan, Training
from dtrees.estimators.fitted_sets import trees_of
from dtrees.estimators.forest_growth import FitOfForest
from dtrees.estimators.training_sets import fit_sets
from dtrees.exceptions import ClusterError
from dtrees.model_selection import cross_val_predict, cross_validate
from dtrees.parallel import grow_sets, regimes, replicated, threaded
from dtrees.parallel.coded_partitions import tables_kept
from dtrees.parallel.regimes import choose_regime
from tests.parallel.clusters import Deadly, connect, digest, ours
from tests.parallel.faults import pids
from tests.parallel.test_replicated import table


def folds(n_rows, n_folds=5):
    """Training rows of the folds, and all rows."""
    fold = np.random.default_rng(1).permutation(np.arange(n_rows) % n_folds)
    return np.vstack([fold != np.arange(n_folds)[:, None], np.ones((1, n_rows), dtype=bool)])


X, Y = table(600)
ROWS = folds(len(Y))
FOREST = RandomForestClassifier(8, random_state=0)
TREE = DecisionTreeClassifier(random_state=0)
CASES = {
    "forest": FOREST,
    "classes of their own": ExtraTreesClassifier(3, class_weight="balanced_subsample"),
    "a forest of one tree": RandomForestClassifier(1, random_state=0),
    "tree": TREE,
}


def digests(name, rows=ROWS):
    """One hash for the model of each set."""
    found = fit_sets(CASES[name], X, Y, None, rows)
    return [digest(trees_of(model)) for model in found.models]


def on_a_cluster():
    return dask.config.set({"dtrees.regime": "replicated"})


@pytest.fixture(scope="module")
def expected():
    assert choose_regime().regime == "local"
    return {name: digests(name) for name in ("forest", "tree")}


def growth_of(model, X, y):
    """What a model's trees are grown from."""
    encoded = FitPlan.of(model).encode(X, (y, None), 0, threaded(1))
    if isinstance(model, DecisionTreeClassifier):
        return ForestGrowth(
            encoded.coded, encoded.target, encoded.rules, None, encoded.book.thresholds
        )
    training = Training(encoded, y, threaded(1))
    return FitOfForest(model, training).growth


def growing(growth, n_trees, rows, client, advance=None, regime="replicated"):
    """A hash for each set."""
    with client.as_current():
        grown = grow_sets(
            growth, range(n_trees), of_sets(rows), threaded(1), regime=regime, advance=advance
        )
    return [digest(trees) for trees in grown]


def growing_here(growth, n_trees, rows):
    """The same on threads."""
    grown = grow_sets(growth, range(n_trees), of_sets(rows), threaded(2), regime="local")
    return [digest(trees) for trees in grown]


def assert_dead(pids):
    """Processes that were killed are gone, or soon will be."""
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(60)


@pytest.fixture
def two(processes):
    """The client of two worker processes, both of which are there."""
    pids(processes, 2)
    yield processes
    assert ours(processes) == []


class TestGroups:
    @pytest.mark.parametrize("name", ["forest", "tree"])
    def test_any_sets(self, name, expected):
        assert digests(name, ROWS[[4, 0]]) == [expected[name][4], expected[name][0]]

    @pytest.mark.parametrize("n_bundles", [1, 2, 3, 6])
    @pytest.mark.parametrize("name", ["forest", "tree"])
    def test_any_number_of_groups(self, name, n_bundles):
        growth, sets = growth_of(CASES[name], X, Y), of_sets(ROWS)
        for number in (0, 1):
            units = units_of([number], 6, n_bundles)
            found = [tree for unit in units for tree in growth.trees(unit, sets)]
            expected = growth.trees_of_sets(number, sets)
            assert all(a.equals(b) for a, b in zip(found, expected, strict=True))

    def test_a_group_for_every_thread(self, here, monkeypatch):
        """Where there are fewer trees than threads."""
        asked = []
        grow = replicated.grow_replicated

        def ask(growth, sets, units, *args, **options):
            n_bundles = len({unit.sets for unit in units})
            asked.append((n_bundles, len(units)))
            return grow(growth, sets, units, *args, **options)

        monkeypatch.setattr("dtrees.parallel.growing.grow_replicated", ask)
        here.cluster.scale(3)
        here.wait_for_workers(3, timeout=60)
        growth = growth_of(FOREST, X, Y)
        for n_trees, n_bundles in ((1, 3), (2, 2), (3, 1)):
            assert growing(growth, n_trees, ROWS, here) == growing_here(growth, n_trees, ROWS)
            assert asked.pop() == (n_bundles, n_trees * n_bundles)
        growing(growth, 1, ROWS[:2], here)
        assert asked.pop() == (2, 2)
        assert ours(here) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
class TestWorkersThatComeAndGo:
    LARGE = table(6_000)
    ROWS = folds(6_000)

    @pytest.mark.long
    @pytest.mark.rest
    def test_killed_in_the_middle(self, two, caplog):
        growth = growth_of(FOREST, *self.LARGE)
        victim = pids(two)[0]
        come = []

        def kill(n_trees):
            come.append(n_trees)
            if len(come) == 3:
                os.kill(victim, signal.SIGKILL)

        with caplog.at_level(logging.INFO, "dtrees"):
            found = growing(growth, 12, self.ROWS, two, kill)
        assert found == growing_here(growth, 12, self.ROWS)
        assert come == [6] * 12
        assert_dead([victim])
        assert "submitted again" not in caplog.text  # the scheduler has the table, too

    def test_a_group_of_a_tree_that_a_worker_dies_of(self, two, tmp_path):
        deadly = tmp_path / "deadly"
        deadly.touch()
        growth = growth_of(TREE, *self.LARGE)
        before = pids(two)
        dying = replace(growth, thresholds=Deadly(growth.thresholds, str(deadly)))
        found = growing(dying, 1, self.ROWS, two)
        assert found == growing_here(growth, 1, self.ROWS)
        assert not deadly.exists()
        (dead,) = set(before) - set(pids(two, 2))
        assert_dead([dead])

    @pytest.mark.parametrize("was_there", [False, True])
    def test_a_table_that_is_lost(self, was_there, here, monkeypatch, caplog):
        """It is sent again, also where an earlier growth has brought it; trees that came stay."""
        grow, begun, lost, go_on = ForestGrowth.trees_of_sets, [], [], threading.Event()

        def held(self, *arguments):
            begun.append(1)
            if len(begun) > 4:
                go_on.wait(60)
            return grow(self, *arguments)

        def lose(n_trees):
            if not lost:
                lost.extend(key for key in list(here.futures) if "coded-table" in str(key))
                here.cancel([distributed.Future(key, here) for key in lost], force=True)
                go_on.set()

        growth = growth_of(FOREST, X, Y)
        expected = growing_here(growth, 12, ROWS)
        with caplog.at_level(logging.INFO, "dtrees"), tables_kept():
            if was_there:
                growing(growth, 1, ROWS, here)
            monkeypatch.setattr(ForestGrowth, "trees_of_sets", held)
            assert growing(growth, 12, ROWS, here, lose) == expected
        assert len(lost) == 1
        assert "what is lost is made again" in caplog.text
        assert ours(here) == []


class TestNothingIsLeft:
    @pytest.mark.parametrize("model", [FOREST, TREE], ids=["forest", "tree"])
    def test_after_ctrl_c(self, model, here, monkeypatch):
        """Units that would go on for half a minute end, as they look whether they are wanted."""
        begun, ended = threading.Event(), threading.Event()

        def endless(self, number, resampling, run, n_threads, work):
            begun.set()
            for _ in range(3000):
                if run.cancelled.is_set():
                    ended.set()
                    raise CancelledError
                time.sleep(0.01)

        monkeypatch.setattr(ForestGrowth, "trees_of_sets", endless)
        timer = threading.Thread(target=lambda: begun.wait(60) and _thread.interrupt_main())
        timer.start()
        try:
            with on_a_cluster(), pytest.raises(KeyboardInterrupt):
                cross_validate(model, X, Y)
        finally:
            timer.join()
        assert ended.wait(60)
        assert ours(here) == []
        assert here.submit(abs, -1).result(60) == 1  # the thread is free


class TestCrossValidation:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("model", [FOREST, TREE], ids=["forest", "tree"])
    def test_results(self, model, two):
        alone = cross_validate(model, X, Y, return_estimator=True)
        predicted = cross_val_predict(model, X, Y)
        with two.as_current(), on_a_cluster():
            found = cross_validate(model, X, Y, return_estimator=True)
            np.testing.assert_array_equal(cross_val_predict(model, X, Y), predicted)
        np.testing.assert_array_equal(found["test_score"], alone["test_score"])
        for a, b in zip(found["estimator"], alone["estimator"], strict=True):
            assert digest(trees_of(a)) == digest(trees_of(b))
        assert digest(trees_of(found["final_estimator"])) == digest(
            trees_of(alone["final_estimator"])
        )

    def test_clusters_that_cannot(self):
        """Their errors are not those of fits, which might be worth a score."""
        with (
            connect(0, 1, False) as cluster,
            Client(cluster) as client,
            dask.config.set({"dtrees.workers-timeout": "300 ms"}),
        ):
            with pytest.raises(ClusterError, match=r"has had no worker for 0\.3 seconds"):
                cross_validate(FOREST, X, Y)
            assert cross_validate(TREE, X, Y)["test_score"].shape == (5,)  # needs none
            assert ours(client) == []

    def test_a_closed_client(self):
        with connect(1, 1, False) as cluster:
            client = Client(cluster, set_as_default=False)
            client.close()
            with client.as_current(), pytest.raises(ClusterError, match="client is closed"):
                cross_validate(FOREST, X, Y)


class TestChoice:
    def regimes(self, caplog, model, **parameters):
        """What was chosen, and why."""
        caplog.clear()
        with caplog.at_level(logging.INFO, "dtrees.parallel.growing"):
            fit_sets(model.set_params(**parameters), X, Y, None, ROWS)
        return [message for message in caplog.messages if message.startswith("regime")]

    def test_forests(self, here, caplog):
        forest = RandomForestClassifier(3)
        assert "regime replicated: client of inproc" in self.regimes(caplog, forest)[0]
        assert self.regimes(caplog, forest, regime="local") == ["regime local: asked for"]
        found = self.regimes(caplog, forest, regime=None, n_estimators=1)
        assert found == ["regime local: too little work for a cluster"]

    def test_trees(self, here, caplog, monkeypatch):
        tree = DecisionTreeClassifier()
        few = "regime local: too little work for a cluster"
        assert self.regimes(caplog, tree) == [few]
        with on_a_cluster():
            assert self.regimes(caplog, tree) == ["regime replicated: asked for"]
        monkeypatch.setattr(regimes, "LEAST_CELLS", X.size * len(ROWS))
        assert "regime replicated: client of inproc" in self.regimes(caplog, tree)[0]
        with dask.config.set(scheduler="threads"):
            assert self.regimes(caplog, tree) == ["regime local: scheduler 'threads'"]
        balanced = self.regimes(caplog, tree, class_weight="balanced")
        assert len(balanced) == 1  # they are one growth, as others are
        assert "regime replicated: client of inproc" in balanced[0]

    def test_no_such_regime(self):
        with (
            dask.config.set({"dtrees.regime": "everywhere"}),
            pytest.raises(ValueError, match=r"'dtrees.regime' = 'everywhere'; it must be one of"),
        ):
            fit_sets(TREE, X, Y, None, ROWS)


class Counter(Bar):
    """Remembers what it is told."""

    def __init__(self):
        self.expected, self.come = 0, []

    def expect(self, n_trees):
        self.expected += n_trees

    def advance(self, n_trees):
        self.come.append(n_trees)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("regime", ["local", "replicated"])
@pytest.mark.parametrize(
    ("name", "come"),
    [
        ("forest", [6] * 8),
        ("classes of their own", [6] * 3),  # the last set weighs all rows alike, as the others do
        ("a forest of one tree", {"local": [6], "replicated": [3, 3]}),  # in two groups
    ],
)
def test_trees_are_counted(name, come, regime, two):
    bar, model = Counter(), CASES[name]
    model = type(model)(**{**model.get_params(), "regime": regime})
    with two.as_current():
        fit_sets(model, X, Y, None, ROWS, bar=bar)
    assert bar.come == (come[regime] if isinstance(come, dict) else come)
    assert bar.expected == sum(bar.come) == model.n_estimators * len(ROWS)
