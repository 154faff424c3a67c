"""Second requests of a round, for the codes of some intervals, on the workers of a cluster."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from dtrees import RandomForestClassifier, RandomForestRegressor
from dtrees.core.stores.blocks.block import Resolution
from dtrees.parallel import memory
from tests.parallel.faults import Fault, assert_nothing_is_left, expected, fitted, pids
from tests.parallel.test_collections import Folds, hash_of

FOREST = RandomForestClassifier(2, random_state=5, regime="partitioned")
MODELS = {
    "forest": FOREST,
    "folds": Folds(FOREST),
    "regression": RandomForestRegressor(2, max_depth=5, random_state=1, regime="partitioned"),
}


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Columns of some hundred codes are counted by few intervals."""
    monkeypatch.setattr(memory, "RESOLUTION", Resolution(50, 20))


def assert_they_came(model):
    report = model.fit_report_
    assert report["code_rounds"] > 1
    assert report["code_requests"] > report["code_rounds"]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", MODELS)
def test_the_same_model(name, here):
    model = fitted(here, MODELS[name])
    assert hash_of(model) == expected(MODELS[name])
    assert_they_came(model)
    assert_nothing_is_left(here)


@pytest.mark.usefixtures("rounds_one_by_one")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    ("name", "number", "n_killed"),
    [
        ("forest", 6, 1),
        *(
            pytest.param(name, number, n_killed, marks=pytest.mark.chaos)
            for name in MODELS
            for number in (0, 6)
            for n_killed in (1, 2)
        ),
    ],
)
def test_workers_that_die(name, number, n_killed, processes):
    before = pids(processes, 2)

    def kill():
        for pid in before[:n_killed]:
            os.kill(pid, signal.SIGKILL)

    with Fault(kill, "rounds", number).set() as fault:
        model = fitted(processes, MODELS[name])
    assert fault.has_happened
    assert hash_of(model) == expected(MODELS[name])
    assert model.fit_report_["lost_workers"] >= n_killed
    if number > 0:  # the first update is no more to a worker that has lost it
        assert model.fit_report_["rebuilds"] > 0  # places went with the worker
    assert_they_came(model)
    assert_nothing_is_left(processes)
