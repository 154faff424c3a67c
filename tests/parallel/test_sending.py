"""Workers that are killed while the table of a fit is on its way to them, at any moment."""

import os
import random
import signal
import sys
import threading
import time

import dask
import numpy as np
import pytest
from distributed import Client

from dtrees import RandomForestClassifier
from dtrees.model_selection import cross_validate
from tests.parallel.clusters import connect, digest, ours
from tests.parallel.faults import pids

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")]

N_WORKERS = 3


def table(n_rows=60_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 20))
    return X, (X[:, 0] + X[:, 1] > rng.normal(size=n_rows)).astype(int)


X, Y = table()
FOREST = RandomForestClassifier(n_estimators=4, max_depth=4, random_state=3, regime="replicated")


def fit():
    """A hash of the trees of a forest, and its report."""
    forest = FOREST.fit(X, Y)
    return digest(forest.forest_.trees), forest.fit_report_


def validate():
    """The same, of all models of a cross-validation."""
    found = cross_validate(FOREST, X, Y, cv=3, return_estimator=True)
    models = [*found["estimator"], found["final_estimator"]]
    return digest([tree for model in models for tree in model.forest_.trees]), models[0].fit_report_


WORK = {"fit": fit, "cross_validate": validate}


@pytest.fixture(scope="module")
def expected():
    """The hashes of threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FOREST, "regime", "local")
        return {name: work()[0] for name, work in WORK.items()}


@pytest.fixture(scope="module")
def three(expected):
    """A client of three processes, which are started again as often as they die."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        connect(N_WORKERS, 1, True) as cluster,
        Client(cluster) as client,
    ):
        yield client


class Watch:
    """Notes when a table is submitted and when the last task is done; may kill a worker meanwhile.

    Parameters
    ----------
    client : distributed.Client
    monkeypatch : pytest.MonkeyPatch
    kill : threading.Timer or None, default=None
        Is started when the table is submitted.

    Attributes
    ----------
    began, ended : float
    """

    def __init__(self, client, monkeypatch, kill=None):
        self.began = self.ended = None
        submit, submit_many = client.submit, client.map

        def submitted(*arguments, key=None, **options):
            if str(key).startswith("coded-table") and self.began is None:
                self.began = time.perf_counter()
                if kill is not None:
                    kill.start()
            return submit(*arguments, key=key, **options)

        def mapped(*arguments, **options):
            futures = submit_many(*arguments, **options)
            for future in futures:
                future.add_done_callback(self.note)
            return futures

        monkeypatch.setattr(client, "submit", submitted)
        monkeypatch.setattr(client, "map", mapped)

    def note(self, future):
        self.ended = time.perf_counter()


def seconds_of(work, client, monkeypatch):
    """How long the cluster works on it with nobody killed, from when the table is submitted on."""
    with monkeypatch.context() as patch:
        watch = Watch(client, patch)
        WORK[work]()
    return watch.ended - watch.began


@pytest.fixture(scope="module")
def hits():
    """Of each kill, whether the work was not over; most of many are to hit it."""
    found = []
    yield found
    assert len(found) < 50 or sum(found) >= 20


def check(work, moment, client, expected, hits, monkeypatch):
    """The same model with a worker killed and without, and nothing is left of either."""
    draw = random.Random(moment)
    victim = draw.choice(pids(client, N_WORKERS))
    seconds = draw.random() * seconds_of(work, client, monkeypatch)  # at the speed of just now
    kill = threading.Timer(seconds, os.kill, (victim, signal.SIGKILL))
    with monkeypatch.context() as patch:
        Watch(client, patch, kill)
        found, report = WORK[work]()
        kill.join()  # the work may be over before
    hits.append(report["lost_workers"])
    assert found == expected[work]
    assert report["regime"] == "replicated"
    assert report["restarts"] == 0
    assert report["lost_workers"] <= 1
    assert ours(client) == []
    assert victim not in pids(client, N_WORKERS)
    found, report = WORK[work]()
    assert found == expected[work]
    assert (report["lost_workers"], report["retries"], report["restarts"]) == (0, 0, 0)
    assert ours(client) == []


@pytest.mark.one_of(4)
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("moment", range(2))
def test_killed_while_the_table_is_sent(work, moment, three, expected, hits, monkeypatch):
    check(work, moment, three, expected, hits, monkeypatch)


@pytest.mark.chaos
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("moment", range(100, 125))
def test_killed_at_many_moments(work, moment, three, expected, hits, monkeypatch):
    check(work, moment, three, expected, hits, monkeypatch)
