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

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
    pytest.mark.timeout(300),
]

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
    models = [*found["estimator"], found["final"]]
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


class Kill:
    """Kills a worker some time after a table is submitted.

    Parameters
    ----------
    client : distributed.Client
    pid : int
    seconds : float
    """

    def __init__(self, client, pid, seconds, monkeypatch):
        self.timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
        submit = client.submit

        def submitted(*arguments, key=None, **options):
            if str(key).startswith("coded-table") and self.timer.ident is None:
                self.timer.start()
            return submit(*arguments, key=key, **options)

        monkeypatch.setattr(client, "submit", submitted)


@pytest.fixture(scope="module")
def seconds(three):
    """What the work takes from when the table is submitted on, about, with nobody killed."""
    found = {}
    for name, work in WORK.items():
        work()
        began = time.perf_counter()
        work()
        found[name] = time.perf_counter() - began
    return found


@pytest.fixture(scope="module")
def hits():
    """Of each kill, whether the work was not over; how many are depends on what else runs."""
    found = []
    yield found
    assert len(found) < 50 or sum(found) >= 5


def check(work, moment, client, expected, seconds, hits, monkeypatch):
    """The same model with a worker killed and without, and nothing is left of either."""
    draw = random.Random(moment)
    victim = draw.choice(pids(client, N_WORKERS))
    with monkeypatch.context() as patch:
        kill = Kill(client, victim, draw.random() * seconds[work], patch)
        found, report = WORK[work]()
        kill.timer.join()  # it may be over before
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


@pytest.mark.one_of(2)
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("moment", range(2))
def test_killed_while_the_table_is_sent(work, moment, three, expected, seconds, hits, monkeypatch):
    check(work, moment, three, expected, seconds, hits, monkeypatch)


@pytest.mark.chaos
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("moment", range(100, 125))
def test_killed_at_many_moments(work, moment, three, expected, seconds, hits, monkeypatch):
    check(work, moment, three, expected, seconds, hits, monkeypatch)
