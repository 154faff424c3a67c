"""Trees of which each follows from those before, grown where the rows are: AdaBoost."""

import os
import signal
import sys
from collections import Counter
from importlib import import_module

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from sklearn.base import clone

from dtrees import AdaBoostClassifier, AdaBoostRegressor
from dtrees.criteria import Criterion
from dtrees.parallel import exchange
from tests.pairs import parametrize_pairs
from tests.parallel.clusters import connect, digest, ours
from tests.parallel.faults import (
    REWEIGHTED,
    ROUNDS,
    Fault,
    assert_nothing_is_left,
    ending_the_epoch,
    pids,
)
from tests.parallel.test_collections import NUMBERS, WEIGHTS, X, Y, cut

BAGS = AdaBoostRegressor(4, loss="square", random_state=5, regime="partitioned")


class Largest(Criterion):
    """A criterion of a user."""

    def score(self, left, right):
        return float(abs(left / left.sum() - right / right.sum()).max())


MODELS = {
    "classes": (REWEIGHTED, Y, None),
    "weights": (clone(REWEIGHTED).set_params(learning_rate=0.5), Y, WEIGHTS),
    "leaves": (clone(REWEIGHTED).set_params(max_leaf_nodes=5, ccp_alpha=1e-3), Y, WEIGHTS),
    "bags": (BAGS, NUMBERS, None),
    "weights of bags": (clone(BAGS).set_params(loss="exponential"), NUMBERS, WEIGHTS),
    "deviance of bags": (clone(BAGS).set_params(criterion="poisson"), NUMBERS, WEIGHTS),
}
OWN = {"own": (clone(REWEIGHTED).set_params(criterion=Largest()), Y, None)}
LAYOUTS = ("1", "2", "7", "64")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Columns of tables stay, however short they are."""
    monkeypatch.setattr("dtrees.parallel.row_columns.FEW_ROWS", 0)


@pytest.fixture(scope="module")
def five():
    """A client of five workers in this process, each with two threads."""
    with connect(5, 2, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def state(model):
    return (
        digest(model.forest_.trees),
        model.estimator_weights_.tolist(),
        model.estimator_errors_.tolist(),
        model._saw_missing.tolist(),
    )


def expected(name):
    model, y, weight = MODELS[name]
    return state(clone(model).set_params(regime="local").fit(X, y, weight))


def fitted(client, name, layout="7", gather_rows=100, **given):
    """A model of collections, which stay where they are."""
    model, y, weight = (MODELS | OWN)[name]
    weight = None if weight is None else cut(weight, "7")
    with client.as_current(), dask.config.set({**ROUNDS, "dtrees.gather-rows": gather_rows}):
        return clone(model).fit(cut(X, layout), cut(y, "2"), weight, **given)


@pytest.mark.one_of(12)
@parametrize_pairs(name=MODELS, layout=LAYOUTS, gather_rows=[10, 100, 10**6])
def test_an_epoch_grows_all_trees(name, layout, gather_rows, five):
    model = fitted(five, name, layout, gather_rows)
    assert state(model) == expected(name)
    report = model.fit_report_
    assert (report["regime"], report["epochs"]) == ("partitioned", 1)
    assert (report["rounds"] > 0) == (gather_rows < len(X))
    assert report["passes"] >= len(model)
    assert_nothing_is_left(five)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["classes", "weights of bags"])
def test_the_scheduler_relays_messages(name, five, monkeypatch):
    async def no_connection(self, address):
        self._box.comms[address] = None

    monkeypatch.setattr(exchange.Exchange, "_comm_to", no_connection)
    model = fitted(five, name)
    assert state(model) == expected(name)
    assert model.fit_report_["relayed"] == model.fit_report_["messages"] > 0


@pytest.mark.one_of(4)
@parametrize_pairs(
    name=["weights", "weights of bags"], number=[1, 8, 20, 35], every_tree=[False, True]
)
def test_weights_follow_from_the_trees_so_far(name, number, every_tree, five, request, monkeypatch):
    """In another epoch, whether the client has heard of these trees or not."""
    if every_tree:
        request.getfixturevalue("rounds_one_by_one")
    ending_the_epoch(monkeypatch, "gather", number)
    model = fitted(five, name)
    assert state(model) == expected(name)
    assert model.fit_report_["epochs"] == 2
    assert_nothing_is_left(five)


@pytest.mark.long
@pytest.mark.rest
@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
@pytest.mark.usefixtures("rounds_one_by_one")
@pytest.mark.parametrize("number", [0, 2])
def test_a_worker_is_killed(number, processes):
    fault = Fault(lambda: os.kill(pids(processes, 2)[0], signal.SIGKILL), "rounds", number)
    with fault.set():
        model = fitted(processes, "weights")
    assert fault.has_happened
    assert state(model) == expected("weights")
    assert model.fit_report_["lost_workers"] >= 1
    assert_nothing_is_left(processes)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["classes", "bags"])
def test_workers_need_no_module_of_the_client(name, processes, tmp_path, monkeypatch):
    model, y, _ = MODELS[name]
    kind = type(model).__name__
    tmp_path.joinpath("only_here.py").write_text(
        f"from dtrees import {kind}\n\n\nclass Own({kind}):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "only_here", raising=False)
    own = import_module("only_here").Own(**model.get_params())
    with processes.as_current(), dask.config.set(ROUNDS):
        assert state(own.fit(cut(X, "7"), cut(y, "2"))) == expected(name)
    assert own.fit_report_["lost_workers"] == 0


@pytest.mark.one_of(2)
@pytest.mark.usefixtures("rounds_one_by_one")
@pytest.mark.parametrize("name", ["classes", "weights of bags"])
def test_a_fit_goes_on_from_a_checkpoint(name, five, tmp_path, monkeypatch):
    model, y, weight = MODELS[name]
    few = clone(model).set_params(n_estimators=2, regime="local")
    few.fit(X, y, weight, checkpoint=tmp_path)
    grown = Counter()
    grow = exchange.Exchange.deal

    def dealt(self, parts):
        grown[self.rank] += 1
        return grow(self, parts)

    monkeypatch.setattr(exchange.Exchange, "deal", dealt)
    assert state(fitted(five, name, gather_rows=10**6, checkpoint=tmp_path)) == expected(name)
    assert grown[0] == 2
    assert state(fitted(five, name, checkpoint=tmp_path)) == expected(name)
    assert grown[0] == 2


def test_errors_are_those_of_a_table_here(five):
    alike, y = np.zeros((100, 2)), np.arange(100) % 2
    with five.as_current():
        for rows in ((alike, y), (da.from_array(alike, 30), da.from_array(y, 40))):
            with pytest.raises(ValueError, match="wrong about 50% of the rows by weight"):
                AdaBoostClassifier(regime="partitioned").fit(*rows)
        with pytest.raises(ValueError, match="Trees of a criterion of your own need all rows"):
            fitted(five, "own")
    assert ours(five) == []
