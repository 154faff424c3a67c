"""Rounds of forests between workers: the same trees, and few messages."""

import gc
import time
from collections import Counter

import pytest
from distributed import Client
from sklearn.base import clone

from dtrees.parallel import exchange, forest_members, memory, partitioned, placed_blocks
from dtrees.parallel.boosted_members import MemberState
from dtrees.parallel.exchange import EpochEndedError
from dtrees.parallel.forest_members import MemberOfForest
from dtrees.parallel.placed_blocks import PlaceOfBlock
from dtrees.parallel.tasks import Tasks
from tests.parallel.clusters import connect
from tests.parallel.faults import (
    BOOSTED,
    FOREST,
    REWEIGHTED,
    assert_nothing_is_left,
    ending_the_epoch,
    expected,
    fitted,
)
from tests.parallel.test_collections import Folds, hash_of

MODEL = clone(FOREST).set_params(n_estimators=7)


@pytest.fixture(scope="module")
def five():
    """A client of five workers in this process, each with two threads."""
    with connect(5, 2, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.mark.one_of(6)
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


def test_copies_of_blocks_are_dropped(five, monkeypatch):
    """Dask would drop any of them, and the epoch would end."""
    settle, holders = placed_blocks.PlacedBlocks.settle, []

    def settled(blocks):
        five.replicate(blocks._kept.blocks)
        found = settle(blocks)
        holders.extend(blocks._tasks.holders(blocks._kept.blocks))
        return found

    monkeypatch.setattr(placed_blocks.PlacedBlocks, "settle", settled)
    found = fitted(five, clone(MODEL))
    assert hash_of(found) == expected(MODEL)
    assert {len(workers) for workers in holders} == {1}
    assert found.fit_report_["epochs"] == 1


def test_a_small_budget_is_shared_out(five):
    """Rounds have the histograms of a few nodes, whatever the number of members."""
    config = {"dtrees.histogram-budget": "1 B", "dtrees.gather-rows": 100}
    few = clone(MODEL).set_params(n_estimators=3)
    model = fitted(five, clone(few), **config)
    assert hash_of(model) == expected(few)
    assert model.fit_report_["rounds"] > fitted(five, clone(few)).fit_report_["rounds"]


@pytest.mark.usefixtures("rounds_one_by_one")
@pytest.mark.one_of(3)
@pytest.mark.parametrize("number", [11, 17, 24])
def test_rounds_of_an_epoch_that_is_lost_are_cut_in_another_way(number, five, monkeypatch):
    """The budget is for less than a level, so what comes next is not what came next there."""
    ending_the_epoch(monkeypatch, "gather", number)
    config = {"dtrees.histogram-budget": 40_000, "dtrees.gather-rows": 20}
    model = fitted(five, clone(MODEL), **config)
    assert hash_of(model) == expected(MODEL)
    assert model.fit_report_["epochs"] == 2


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "model", [MODEL, BOOSTED, REWEIGHTED], ids=["fit", "boosted", "reweighted"]
)
def test_workers_keep_nothing_of_an_epoch(model, five):
    """Not even until memory is looked through for cycles."""
    kinds = (MemberOfForest, MemberState, exchange.Exchange)

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
        PlaceOfBlock(0, 9, "codes", "rows").halves(Worker)


@pytest.fixture
def portions(monkeypatch, rounds_one_by_one):
    """Rows that members have taken out of their blocks at once, and nodes; and nodes finished.

    Few rows at a time, of which the client hears each time.
    """
    found = {"most": 150, "rows": [], "nodes": []}
    rows_of, grow_gathered = MemberOfForest._rows_of, forest_members.grow_gathered

    def noted_rows(member, dealt):
        rows = rows_of(member, dealt)
        n_rows = sum(own.coded.n_rows for each in rows for group in each for own in group)
        found["rows"].append((sum(len(nodes) for own in dealt for nodes in own), n_rows))
        return rows

    def noted(rows, node, *about):
        found["nodes"].append(node.node)
        return grow_gathered(rows, node, *about)

    n_bytes = found["most"] * (5 + memory.BESIDE_CODES)
    monkeypatch.setattr(partitioned, "bytes_of_portion", lambda *_: n_bytes)
    monkeypatch.setattr(MemberOfForest, "_rows_of", noted_rows)
    monkeypatch.setattr(forest_members, "grow_gathered", noted)
    return found


def test_rows_of_small_nodes_are_taken_in_portions(five, portions):
    """No member has more of them out of its blocks than there is room for, but of one node."""
    model = fitted(five, clone(MODEL))
    assert hash_of(model) == expected(MODEL)
    assert len(portions["rows"]) > 5 * 5
    assert all(n_nodes == 1 or n <= portions["most"] for n_nodes, n in portions["rows"])
    assert sum(n_nodes for n_nodes, _ in portions["rows"]) == 5 * len(portions["nodes"])
    assert_nothing_is_left(five)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("model", [MODEL, Folds(FOREST)], ids=["fit", "folds"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_was_heard_is_not_grown_again(model, number, five, portions, monkeypatch):
    ending_the_epoch(monkeypatch, "deal", number)
    found = fitted(five, clone(model))
    assert hash_of(found) == expected(model)
    assert found.fit_report_["epochs"] == 2
    assert set(Counter(portions["nodes"]).values()) == {1}


def test_tasks_are_as_many_as_members(five, monkeypatch):
    """However many nodes there are; those of blocks are as many as blocks."""
    tasks, submit = Counter(), Tasks.submit

    def submitted(self, calls):
        tasks.update(call.name for call in calls if call.name != "move-block")
        return submit(self, calls)

    monkeypatch.setattr(partitioned, "slice_seconds", lambda n_members: 60)
    monkeypatch.setattr(Tasks, "submit", submitted)
    of_blocks, of_members = {"block-rows": 7, "sum-bags": 7}, {"grow-rounds": 5, "finish-nodes": 5}
    for n_trees, gather_rows in ((3, 300), (3, 20), (9, 20)):
        tasks.clear()
        model = clone(MODEL).set_params(n_estimators=n_trees)
        fitted(five, model, **{"dtrees.gather-rows": gather_rows})
        assert tasks == of_blocks | of_members
