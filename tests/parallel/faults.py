"""Faults at given moments of a growth in rounds, and what there has to be after them."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import contextmanager

import dask
from sklearn.base import clone

from dtrees import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
from dtrees.parallel.exchange import EpochEndedError, Exchange
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.tasks import Tasks
from tests.parallel.clusters import ours
from tests.parallel.test_collections import Folds, X, Y, cut, hash_of

ROUNDS = {"dtrees.regime": "partitioned", "dtrees.gather-rows": 100}
FOREST = RandomForestClassifier(2, random_state=5, max_bins=32, regime="partitioned")
FOLDS = Folds(FOREST)
BOOSTED = GradientBoostingClassifier(
    max_iter=12, max_leaf_nodes=8, subsample=0.7, random_state=5, regime="partitioned"
)
REWEIGHTED = AdaBoostClassifier(4, max_depth=4, regime="partitioned")
WEIGHED = Folds(clone(FOREST).set_params(bootstrap=False, class_weight="balanced"))
DRAWN = Folds(clone(FOREST).set_params(class_weight="balanced"))  # bags are drawn by weight


class Fault:
    """Something that happens when a growth begins to wait for tasks that are under way.

    Parameters
    ----------
    act : callable
        Called once, in the thread of the fit.
    phase : str or None
        Where, or anywhere.
    number : int
        How many times it is waited there before. A client that is late waits less often.
    after : Fault or None
        That has happened before anything is counted.
    turn : int
        How many times the phase has come before.
    """

    def __init__(self, act, phase=None, number=0, after=None, turn=0):
        self.act, self.phase, self.number, self.after = act, phase, number, after
        self.has_happened = False
        self.n_waits, self.n_turns, self.turn = 0, 0, turn

    @contextmanager
    def set(self):
        """Let it happen in the fits of a context."""
        phases = []
        wait, enter = Tasks._await, FitStatistics.phase

        @contextmanager
        def phase(stats, name):
            phases.append(name)
            self.n_turns += name == self.phase
            try:
                with enter(stats, name):
                    yield
            finally:
                phases.pop()

        def await_(tasks, *arguments):
            is_time = self.phase is None or (self.phase in phases and self.n_turns > self.turn)
            is_time = is_time and (self.after is None or self.after.has_happened)
            if is_time and not self.has_happened:
                self.has_happened = self.n_waits == self.number
                self.n_waits += 1
                if self.has_happened:
                    self.act()
            return wait(tasks, *arguments)

        Tasks._await, FitStatistics.phase = await_, phase
        try:
            yield self
        finally:
            Tasks._await, FitStatistics.phase = wait, enter


def fitted(client, model=FOREST, layout="7", block=None, **config):
    """A model of the table of `test_collections` in partitions, fitted on a cluster."""
    lazy = cut(X, layout)
    if block is not None:
        lazy = lazy.map_blocks(block, meta=X[:0])
    config = {"scheduler": "dask.distributed", **ROUNDS, **config}
    with client.as_current(), dask.config.set(config):
        return model.fit(lazy, cut(Y, "2"))


def expected(model=FOREST):
    """The hash of the same model, of the table in memory."""
    return hash_of(clone(model).set_params(regime="local").fit(X, Y))


def pids(client, n_workers=None):
    """Processes of the workers, once there are so many.

    A nanny that is not yet told that its worker has begun does not begin it again when it dies.
    """
    if n_workers is None:
        return sorted(client.run(os.getpid, on_error="ignore").values())
    found = []
    while len(found) < n_workers:  # one that has just died may still be listed
        client.wait_for_workers(n_workers, timeout=60)
        while any(nanny.status.name == "starting" for nanny in client.cluster.workers.values()):
            time.sleep(0.02)
        found = pids(client)
    return found


def ending_the_epoch(monkeypatch, name, number):
    """Let the first member end the epoch where it calls this method of its exchange so often."""
    plain, calls = getattr(Exchange, name), Counter()

    def fail(self, own):
        calls[self.rank] += 1
        if self.rank == 0 and calls[0] == number:
            raise EpochEndedError("a test")
        return plain(self, own)

    monkeypatch.setattr(Exchange, name, fail)


def assert_nothing_is_left(client, seconds=60):
    """No task on the scheduler, and no places on the workers, once they have heard of the end."""

    # goes to the workers by value: they need not import the tests, nor dtrees
    def n_places(dask_worker):
        import sys

        places = sys.modules.get("dtrees.parallel.block_tasks")
        caches = [] if places is None else list(places._caches)
        return sum(len(each._held) for each in caches if each._worker == dask_worker.address)

    limit = time.monotonic() + seconds
    while True:
        is_over = time.monotonic() > limit
        # One that has just died may still be listed, and answers with an error.
        tasks, found = ours(client), client.run(n_places, on_error="return")
        if tasks == [] and all(places == 0 for places in found.values()):
            break
        assert not is_over, (tasks, found)
        time.sleep(0.05)
