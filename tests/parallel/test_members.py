"""A growth has as many members as pay; the other workers code the table, and wait for a place."""

from __future__ import annotations

import os
import signal

import dask
import pytest
from distributed import Client
from sklearn.base import clone

from dtrees import estimate_cost
from dtrees.estimators import estimate
from dtrees.model_selection import GridSearchCV
from dtrees.parallel import exchange, placed_blocks
from dtrees.parallel.cost import members_that_pay
from dtrees.parallel.epochs import Epochs
from tests.parallel.clusters import connect, paused
from tests.parallel.faults import (
    BOOSTED,
    FOREST,
    REWEIGHTED,
    assert_nothing_is_left,
    expected,
    fitted,
    pids,
)
from tests.parallel.test_collections import Folds, X, cut, hash_of

MODELS = {"forest": FOREST, "folds": Folds(FOREST), "boosted": BOOSTED, "lockstep": Folds(BOOSTED)}
MEMBERS = "dtrees.members"


@pytest.fixture(scope="module")
def four():
    """A client of four workers in this process."""
    with connect(4, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def more():
    """A client of four worker processes."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        connect(4, 1, True) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def members_of(client):
    """Addresses of the workers, in this process, that have a part in an epoch."""
    there = client.nthreads()
    return sorted({address for address, _ in list(exchange._boxes) if address in there})


@pytest.mark.one_of(16)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_one_model(name, n, four):
    model = fitted(four, clone(MODELS[name]), **{MEMBERS: n})
    assert hash_of(model) == expected(MODELS[name])
    report = model.fit_report_
    assert report["members"] == min(n, 4)
    assert report["epochs"] == 1
    assert (report.get("messages", 0) > 0) == (n > 1)
    assert_nothing_is_left(four)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["forest", "boosted"])
def test_a_small_table_has_one(name, four):
    """As the estimate says."""
    config = {MEMBERS: 0, "dtrees.regime": "partitioned", "dtrees.gather-rows": 65_536}
    model = fitted(four, clone(MODELS[name]), **config)
    assert hash_of(model) == expected(MODELS[name])
    report = model.fit_report_
    assert (report["members"], report.get("messages", 0)) == (1, 0)
    with dask.config.set(config):
        cost = estimate_cost(MODELS[name], cut(X, "7"), client=four)
        assert (cost.regime, cost.n_workers, cost.n_threads) == ("partitioned", 1, 1)
    with dask.config.set({**config, MEMBERS: 3}):
        assert estimate_cost(MODELS[name], cut(X, "7"), client=four).n_workers == 3


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("model", "of_trees"), [(FOREST, (2, 1)), (REWEIGHTED, (1, 4))], ids=["forest", "adaboost"]
)
def test_they_are_for_all_trees(model, of_trees, four, monkeypatch):
    """Those that grow together, and those that follow: of a fit and of its estimate."""
    found = []

    def seen(size, n_workers, *model):
        found.append((size.n_trees, size.n_sequence))
        return members_that_pay(size, n_workers, *model)

    for module in (placed_blocks, estimate):
        monkeypatch.setattr(module, "members_that_pay", seen)
    fitted(four, clone(model))
    estimate_cost(model, cut(X, "7"), client=four)
    assert found == [of_trees, of_trees]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("wanted", [(1, 4, 2), (4, 1, 2)])
def test_growths_of_a_search(wanted, four, monkeypatch):
    """Blocks that stay from one growth to the next do not say how many members there are."""
    settle, numbers, found = placed_blocks.PlacedBlocks.settle, iter(wanted), {}

    def settled(blocks):
        there = settle(blocks)
        found.setdefault(blocks, set()).add(len(there))  # of all epochs of a growth
        return there

    monkeypatch.setattr(placed_blocks, "members_that_pay", lambda size, n: next(numbers))
    monkeypatch.setattr(placed_blocks.PlacedBlocks, "settle", settled)
    grids = [{"max_depth": [1], "max_features": [1]}, {"max_depth": [5], "max_features": [2]}]
    search = GridSearchCV(clone(FOREST), grids, cv=2)
    model = fitted(four, search, "7").best_estimator_
    assert hash_of(model) == expected(clone(FOREST).set_params(**search.best_params_))
    assert [*found.values()] == [{n} for n in wanted]
    assert_nothing_is_left(four)


@pytest.fixture
def between_slices(monkeypatch, rounds_one_by_one):
    """What is put here happens once each, before a slice of an epoch that has begun."""
    left, in_epoch = [], Epochs._in_epoch

    def after(epochs, *about):
        if epochs._epoch is not None and left:
            left.pop(0)()
        return in_epoch(epochs, *about)

    monkeypatch.setattr(Epochs, "_in_epoch", after)
    return left


@pytest.mark.parametrize("name", ["forest", "boosted"])
class TestSpareWorkers:
    def fitted(self, client, name):
        """The report of a fit of two members."""
        model = fitted(client, clone(MODELS[name]), **{MEMBERS: 2})
        assert hash_of(model) == expected(MODELS[name])
        assert model.fit_report_["members"] == 2
        assert_nothing_is_left(client)
        return model.fit_report_

    @pytest.mark.one_of(2)
    def test_one_takes_the_place_of_a_member_that_pauses(
        self, name, four, between_slices, monkeypatch
    ):
        first = []

        def pause():
            first.extend(members_of(four))
            paused(four, first[:1])

        monkeypatch.setattr(exchange, "ASK_SECONDS", 0.05)
        monkeypatch.setattr(exchange, "PAUSED_SECONDS", 0)
        between_slices.append(pause)
        try:
            report = self.fitted(four, name)
        finally:
            paused(four, first[:1], "running")
        assert len(first) == 2
        assert report["epochs"] == 2

    @pytest.mark.one_of(2)
    def test_one_that_joins_or_leaves_ends_no_epoch(self, name, between_slices):
        with connect(2, 1, False) as cluster, Client(cluster, set_as_default=False) as client:

            def join():
                cluster.scale(3)
                client.wait_for_workers(3)

            def leave():
                (spare,) = set(client.nthreads()) - set(members_of(client))
                client.retire_workers([spare])

            between_slices += [join, leave]
            report = self.fitted(client, name)
        assert between_slices == []
        assert report["epochs"] == 1

    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("n_killed", [1, 3])
    def test_some_are_killed(self, n_killed, name, more, between_slices):
        """Members, or spare workers, or both."""

        def kill():
            for pid in pids(more, 4)[:n_killed]:
                os.kill(pid, signal.SIGKILL)

        between_slices.append(kill)
        report = self.fitted(more, name)
        assert between_slices == []
        assert report["lost_workers"] >= 1
