"""What ``fit_report_`` tells, of models that were grown together and in every regime."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace

import dask
import dask.array as da
import pytest

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.callbacks import Callback
from dtrees.core.membership.resampling import plain
from dtrees.model_selection import (
    GridSearchCV,
    cost_complexity_cv,
    cross_validate,
    validation_surface,
)
from dtrees.parallel.fit_statistics import SHARED, FitStatistics
from dtrees.parallel.replicated import SharedArrays, pack, packed_bytes
from tests.parallel.faults import pids
from tests.parallel.test_collections import on
from tests.parallel.test_replicated import GROWTH, X, Y, forest, grow_replicated, growth_of, table
from tests.parallel.test_sets import assert_dead

TREE = DecisionTreeClassifier(random_state=0, max_bins=32)
FOREST = RandomForestClassifier(4, random_state=0, max_bins=32)
FLAT = RandomForestClassifier(21, random_state=0, max_bins=32, oob_tol=1e-9)
OWN_TARGETS = DecisionTreeClassifier(random_state=0, max_bins=32, class_weight="balanced")
ESTIMATORS = {"tree": TREE, "forest": FOREST, "flat": FLAT, "own targets": OWN_TARGETS}
REGIMES = ("local", "replicated", "partitioned")


def forced(regime):
    return dask.config.set({"dtrees.regime": regime, "dtrees.gather-rows": 60})


def bytes_of(growth):
    """Of what is sent of a growth: its codes, and all else."""
    sent = growth.coded, (replace(growth, coded=None), plain())
    return sum(map(sys.getsizeof, map(SharedArrays, sent)))


def check(report, regime, brought=True):
    """What every report has, and what those of a regime have; the table was `brought` for it."""
    assert (report["regime"], report["reason"]) == (regime, "asked for")
    assert {"coding", "growth"} <= report["seconds"].keys()
    taken = {phase for phase, seconds in report["seconds"].items() if seconds > 0}
    if not brought:
        taken.add("table")
    assert taken == report["seconds"].keys()
    if regime == "replicated":
        assert (report["seconds"]["table"] > 0) == brought
        assert report["tasks"] > 0
        assert report["bytes_moved"] > 0
        assert report["seconds"]["table"] < report["seconds"]["growth"]
        assert [report[name] for name in ("lost_workers", "retries", "restarts")] == [0, 0, 0]
    if regime == "partitioned":
        assert min(report[name] for name in ("rounds", "passes", "bytes_moved")) > 0
        assert report["seconds"]["rounds"] < report["seconds"]["growth"]


class TestModelsThatGrowTogether:
    @pytest.mark.one_of(6)
    @pytest.mark.parametrize("regime", REGIMES)
    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_cross_validation(self, name, regime, here):
        with forced(regime):
            found = cross_validate(ESTIMATORS[name], X, Y, cv=3, return_estimator=True)
        report = found["final_estimator"].fit_report_
        check(report, regime)
        assert min(report["shared_nodes"], report["shared_rows"]) > 0
        for model in found["estimator"]:
            assert model.fit_report_ == report

    @pytest.mark.one_of(8)
    @pytest.mark.parametrize("regime", REGIMES)
    @pytest.mark.parametrize(
        "grid",
        [
            {"max_depth": [2, 4]},
            {"max_depth": [3]},
            {"criterion": ["gini", "entropy"], "max_depth": [2, 4]},
        ],
        ids=["one growth", "one candidate", "two growths"],
    )
    @pytest.mark.parametrize("name", ["tree", "forest"])
    def test_searches(self, name, grid, regime, here):
        with forced(regime):
            best = GridSearchCV(ESTIMATORS[name], grid, cv=3).fit(X, Y).best_estimator_
        once = "criterion" not in grid  # of several growths, the first one brings the table
        check(best.fit_report_, regime, brought=once or regime != "replicated")

    def test_nested_searches(self):
        search = GridSearchCV(TREE, {"max_depth": [2, 4]}, cv=3)
        found = cross_validate(search, X, Y, cv=3, return_estimator=True)
        reports = [
            s.best_estimator_.fit_report_ for s in (*found["estimator"], found["final_estimator"])
        ]
        assert len({report["seconds"]["coding"] for report in reports}) == 1  # the table's
        assert len({report["seconds"]["growth"] for report in reports}) == 4  # each side's own

    def test_what_is_shared_is_counted_on_workers_as_here(self, here):
        found = []
        for regime in ("local", "replicated"):
            with forced(regime):
                found.append(cross_validate(FOREST, X, Y, cv=3)["final_estimator"].fit_report_)
        local, replicated = ({name: report[name] for name in SHARED} for report in found)
        assert local == replicated

    def test_sizes(self):
        surface = validation_surface(TREE, X, Y, cv=3)
        models = [
            surface.model(max_depth=2),
            surface.cost_complexity().model(0.01),
            cost_complexity_cv(TREE, X, Y, cv=3).model(0.01),
        ]
        for model in models:
            assert {"coding", "growth"} == model.fit_report_["seconds"].keys()

    def test_whoever_changes_a_report_changes_no_other(self):
        found = cross_validate(TREE, X, Y, cv=10, return_estimator=True)
        found["final_estimator"].fit_report_["seconds"].clear()
        assert found["final_estimator"].fit_report_["seconds"]
        assert found["final_estimator"].fit_report_ == found["estimator"][0].fit_report_

    @pytest.mark.long
    @pytest.mark.parametrize("regime", REGIMES)
    def test_collections_are_read(self, regime, here):
        with on(here), forced(regime):
            lazy = da.from_array(X, chunks=(100, -1)), da.from_array(Y, chunks=300)
            models = [
                TREE.fit(*lazy),
                FOREST.fit(*lazy),
                cross_validate(FOREST, *lazy, cv=3)["final_estimator"],
                GridSearchCV(FOREST, {"max_depth": [2]}, cv=3).fit(*lazy).best_estimator_,
                validation_surface(TREE, *lazy, cv=3).model(max_depth=2),
            ]
        for model in models:
            assert model.fit_report_["seconds"]["reading"] > 0
            assert model.fit_report_["lost_workers"] == 0


class Kill(Callback):
    """Kills workers at the third tree."""

    def __init__(self, pids):
        self.pids, self.n_trees = pids, 0

    def on_tree_end(self, fit, number):
        self.n_trees += 1
        if self.n_trees == 3:
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)


class TestReplicated:
    def test_bytes_and_tasks(self, processes):
        pids(processes, 2)
        stats = FitStatistics()
        trees = grow_replicated(GROWTH, range(20), processes, stats=stats, units_per_task=1)
        sent = bytes_of(GROWTH)
        assert sent > GROWTH.coded.nbytes
        come = sum(packed_bytes(pack([tree])) for tree in trees)
        assert come > sum(tree.node_count for tree in trees)
        assert stats.counts == {
            "tasks": 20,
            "bytes_moved": 2 * sent + come,
            "lost_workers": 0,
            "retries": 0,
            "restarts": 0,
        }

    @pytest.mark.long
    @pytest.mark.rest
    @pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
    @pytest.mark.parametrize("n_killed", [1, 2])
    def test_workers_that_die(self, n_killed, processes):
        X, Y = table(6_000)
        victims = pids(processes, 2)[:n_killed]
        with processes.as_current():
            model = forest(n_estimators=400)  # which are not done when they die
            model.fit(X, Y, callbacks=[Kill(victims)])
        assert_dead(victims)
        report = model.fit_report_
        assert report["regime"] == "replicated"
        assert report["lost_workers"] == n_killed
        assert report["restarts"] == 0  # the scheduler has the table, too
        sent = bytes_of(growth_of(forest(), X, Y))
        assert report["bytes_moved"] > 2 * sent
