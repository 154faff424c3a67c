"""One model, whatever a seed draws: the table in memory on one thread, and everything else.

`make test` takes a few seeds, `make chaos` many that are new each day, and ``--seed 17`` one.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from contextlib import contextmanager, nullcontext

import dask
import pytest
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning

from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import HashKFold, cross_validate
from tests.parallel.clusters import digest
from tests.parallel.faults import assert_nothing_is_left, pids
from tests.parallel.random_layouts import (
    TABLES,
    drawn,
    given_column,
    given_table,
    groups_of,
    table_of,
    target_of,
    weights_of,
)
from tests.parallel.test_collections import on

FEW = range(12)
MANY = 150
STOPPED = 3  # seconds that a worker does nothing, at most


def pytest_generate_tests(metafunc):
    """Seeds of the command line, or else the usual ones."""
    if "seed" in metafunc.fixturenames:
        today = int(time.time()) // 86_400 * 1_000
        usual = (
            range(today, today + MANY) if metafunc.definition.get_closest_marker("chaos") else FEW
        )
        metafunc.parametrize("seed", metafunc.config.getoption("seed") or usual)


def test_one_model(seed, request):
    check(drawn(seed), request)


@pytest.mark.chaos
def test_one_model_of_today(seed, request):
    check(drawn(seed), request)


def test_seeds_draw_all_there_is():
    cases = [drawn(seed) for seed in range(300)]
    assert {case.table for case in cases} == set(TABLES)
    for name, least in {"estimator": 8, "given": 8, "place": 4, "fault": 4, "regime": 4}.items():
        assert len({getattr(case, name) for case in cases}) == least, name
    assert cases == [drawn(seed) for seed in range(300)]


def check(case, request):
    """Compare the model of a case with that of the table in memory, on one thread."""
    print(case)
    expected = found_of(
        case,
        clone(case.model(1)),
        table_of(case),
        target_of(case),
        weights_of(case),
        groups_of(case),
    )
    client = None
    if case.place in ("here", "processes"):
        client = request.getfixturevalue(case.place)
    scheduler = nullcontext() if client is None else on(client)
    config = {"dtrees.gather-rows": case.gather_rows}
    if case.regime is not None:
        config["dtrees.regime"] = case.regime
    if client is None:
        config["scheduler"] = case.place
    with scheduler, dask.config.set(config), fault_of(case, client):
        found = found_of(
            case,
            case.model(case.n_jobs),
            given_table(case),
            given_column(target_of(case), case, 0),
            given_column(weights_of(case), case, 1),
            given_column(groups_of(case), case, 2),
        )
    assert found == expected, case
    if client is not None:
        if case.place == "processes":
            pids(client, 2)
        assert_nothing_is_left(client)


def found_of(case, model, X, y, weights, groups):
    """Hashes of all trees, and the scores of a cross-validation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        if case.n_folds == 0:
            given = {"bootstrap_groups": groups} if groups is not None else {}
            return digest(trees_of(model.fit(X, y, weights, **given)))
        params = {} if weights is None else {"sample_weight": weights}
        cv = HashKFold(case.n_folds, random_state=case.seed)
        found = cross_validate(model, X, y, cv=cv, params=params, return_estimator=True)
    models = [*found["estimator"], found["final_estimator"]]
    return [digest(trees_of(each)) for each in models], found["test_score"].tolist()


@contextmanager
def fault_of(case, client):
    """Something happens to a worker, at a moment after the fit has begun."""
    if case.fault == "none":
        yield
        return
    if sys.platform == "win32":
        pytest.skip("there are no signals")
    before = pids(client, 2)

    def happen():
        if case.fault == "restart":
            client.restart()
        elif case.fault == "kill":
            os.kill(before[case.seed % 2], signal.SIGKILL)
        else:
            os.kill(before[case.seed % 2], signal.SIGSTOP)
            time.sleep(STOPPED * case.moment / 1.5)
            os.kill(before[case.seed % 2], signal.SIGCONT)

    timer = threading.Timer(case.moment, happen)
    timer.start()
    try:
        yield
    finally:
        timer.join()
