"""Rounds of forests between workers: the same trees, and few messages."""

import gc
import time
from collections import Counter

import dask
import pytest
from distributed import Client
from sklearn.base import clone

from dtrees.parallel import exchange, partitioned
from dtrees.parallel.boosted_members import MemberState
from dtrees.parallel.exchange import EpochEndedError
from dtrees.parallel.forest_members import MemberOfRounds, PlaceOfBlock
from tests.parallel.clusters import connect
from tests.parallel.faults import BOOSTED, FOREST, assert_nothing_is_left, expected, fitted
from tests.parallel.test_collections import Folds, hash_of

MODEL = clone(FOREST).set_params(n_estimators=7)


@pytest.fixture(scope="module")
def five():
    """A client of five workers in this process, each with two threads."""
    with connect(5, 2, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seconds", [0, 60])
@pytest.mark.parametrize("n_trees", [1, 3, 7])
def test_trees_are_dealt_out(n_trees, seconds, five, monkeypatch):
    """To fewer members than there are, or more; the client hears of each round, or of the last."""
    monkeypatch.setattr(partitioned, "slice_seconds", lambda n_members: seconds)
    monkeypatch.setattr(partitioned, "PACKS_APART", 0)
    model = fitted(five, clone(MODEL).set_params(n_estimators=n_trees))
    assert hash_of(model) == expected(clone(MODEL).set_params(n_estimators=n_trees))
    report = model.fit_report_
    assert report["epochs"] == 1
    # gather and sum_parts: at most two messages for each bit, of four members and one beyond
    assert 0 < report["messages"] <= 5 * (2 * report["passes"] + 2) * 2 * 3
    assert_nothing_is_left(five)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("model", [MODEL, Folds(FOREST), BOOSTED], ids=["fit", "folds", "boosted"])
def test_the_scheduler_relays_messages(model, five, monkeypatch):
    async def no_connection(self, address):
        self._box.comms[address] = None

    monkeypatch.setattr(exchange.Exchange, "_comm_to", no_connection)
    found = fitted(five, clone(model))
    assert hash_of(found) == expected(model)
    assert found.fit_report_["relayed"] == found.fit_report_["messages"] > 0
    assert_nothing_is_left(five)


def test_a_small_budget_is_shared_out(five):
    """Rounds have the histograms of a few nodes, whatever the number of members."""
    config = {"dtrees.histogram-budget": "1 B", "dtrees.gather-rows": 100}
    model = fitted(five, clone(MODEL), **config)
    assert hash_of(model) == expected(MODEL)
    with dask.config.set({}):
        assert model.fit_report_["rounds"] > fitted(five, clone(MODEL)).fit_report_["rounds"]


@pytest.mark.usefixtures("rounds_one_by_one")
@pytest.mark.one_of(3)
@pytest.mark.parametrize("number", [11, 17, 24])
def test_rounds_of_an_epoch_that_is_lost_are_cut_in_another_way(number, five, monkeypatch):
    """The budget is for less than a level, so what comes next is not what came next there."""
    gather, calls = exchange.Exchange.gather, Counter()

    def fail(self, own):
        calls[self.rank] += 1
        if self.rank == 0 and calls[0] == number:
            raise exchange.EpochEndedError("a test")
        return gather(self, own)

    monkeypatch.setattr(exchange.Exchange, "gather", fail)
    config = {"dtrees.histogram-budget": 40_000, "dtrees.gather-rows": 20}
    model = fitted(five, clone(MODEL), **config)
    assert hash_of(model) == expected(MODEL)
    assert model.fit_report_["epochs"] == 2


@pytest.mark.parametrize("model", [MODEL, BOOSTED], ids=["fit", "boosted"])
def test_workers_keep_nothing_of_an_epoch(model, five):
    """Not even until memory is looked through for cycles."""
    kinds = (MemberOfRounds, MemberState, exchange.Exchange)

    def there():
        return {id(each) for each in gc.get_objects() if isinstance(each, kinds)}

    gc.collect()
    gc.disable()
    try:
        before = there()  # of clusters in this process that have gone in an epoch
        fitted(five, clone(model))
        limit = time.monotonic() + 60
        while there() - before:
            assert time.monotonic() < limit
            time.sleep(0.05)
    finally:
        gc.enable()


def test_a_block_that_has_gone_elsewhere():
    class Worker:
        data, address = {"codes": None}, "here"

    with pytest.raises(EpochEndedError, match="has left here"):
        PlaceOfBlock(0, "codes", "rows").block(Worker)
