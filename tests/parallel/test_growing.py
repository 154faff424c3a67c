"""Trees of every regime come in the order of their numbers."""

import logging

import dask
import pytest
from distributed import Client, get_worker

from dtrees.exceptions import ClusterError, TableTooLargeError, WorkerLostError
from dtrees.parallel import tasks, threaded
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.growing import ended_early, grow_trees, in_order
from dtrees.parallel.regimes import TOO_LARGE
from dtrees.parallel.tasks import Tasks
from tests.parallel.clusters import connect, digest, make_small, ours
from tests.parallel.test_replicated import GROWTH, LOCAL, SlowGrowth, as_kind


def test_what_comes_early_waits():
    taken = []
    found = (taken.append(number) or (number, -number) for number in (2, 0, 3, 1))
    ordered = in_order(range(4), found)
    assert next(ordered) == (0, 0)
    assert taken == [2, 0]  # no further than need be
    assert list(ordered) == [(1, -1), (2, -2), (3, -3)]


@pytest.mark.parametrize("regime", ["local", "replicated", "partitioned"])
def test_in_order_and_looked_at(regime, here):
    stats = FitStatistics()
    grown = grow_trees(
        GROWTH, range(20), threaded(2), regime=regime, look=lambda n, tree: -n, stats=stats
    )
    numbers, trees, seen = zip(*grown, strict=True)
    assert numbers == tuple(range(20))
    assert seen == tuple(-number for number in numbers)
    assert digest(trees) == LOCAL
    assert (stats.regime, stats.reason) == (regime, "asked for")


@pytest.mark.parametrize("regime", [None, "replicated"])
def test_a_table_that_workers_cannot_hold(regime, here, monkeypatch):
    """It is not sent: it is grown here, or refused where it is to go there."""
    monkeypatch.setattr("dtrees.parallel.memory.limits_of", lambda client: {"a": 250 * 2**20})
    make_small(monkeypatch, here.nthreads())
    monkeypatch.setattr(Tasks, "send", lambda *_: pytest.fail("sent"))
    stats = FitStatistics()
    grown = grow_trees(GROWTH, range(20), threaded(2), regime=regime, stats=stats)
    if regime is None:
        assert digest(tree for _, tree, _ in grown) == LOCAL
        assert (stats.regime, stats.reason) == ("local", TOO_LARGE)
    else:
        with pytest.raises(
            TableTooLargeError, match="larger memory_limit; or fit with regime='loc"
        ):
            next(grown)


@pytest.mark.parametrize("n_trees", [3, 20])
def test_workers_that_cannot_hold_the_table_are_left_out(n_trees, monkeypatch, caplog):
    got_it = []
    monkeypatch.setattr(
        tasks, "identity", lambda table: got_it.append(get_worker().address) or table
    )
    with connect(3, 1, False) as cluster, Client(cluster) as client:
        small, *able = sorted(client.nthreads())
        make_small(monkeypatch, [small])
        stats = FitStatistics()
        with caplog.at_level(logging.INFO, "dtrees"):
            grown = grow_trees(as_kind(SlowGrowth), range(n_trees), threaded(2), stats=stats)
            trees = [tree for _, tree, _ in grown]
        assert ours(client) == []
    assert digest(trees) == digest(GROWTH.tree(number) for number in range(n_trees))
    assert stats.regime == "replicated"
    assert f"cannot hold the coded table are left out: ['{small}']" in caplog.text
    assert {*got_it, *(address for address, _ in SlowGrowth.grown)} <= {*able}


def test_where_the_user_says_who_gets_tasks_all_workers_have_to_hold_the_table(monkeypatch):
    with connect(2, 1, False) as cluster, Client(cluster) as client:
        small, able = sorted(client.nthreads())
        make_small(monkeypatch, [small])
        stats = FitStatistics()
        with dask.annotate(workers=[able]):
            trees = [tree for _, tree, _ in grow_trees(GROWTH, range(20), threaded(2), stats=stats)]
    assert digest(trees) == LOCAL
    assert (stats.regime, stats.reason) == ("local", TOO_LARGE)


@pytest.mark.parametrize("n_trees", [0, 2])
@pytest.mark.parametrize(
    ("error", "as_it_is"),
    [
        (WorkerLostError("it"), True),
        (ValueError("a partition of X"), False),
        (OSError("no way there"), False),
    ],
)
def test_growth_that_ends_early(error, as_it_is, n_trees):
    """Before there is a tree, what is wrong with X is not the cluster's fault."""
    ended, come = [], []

    def grown():
        try:
            yield from range(n_trees)
            raise error
        finally:
            ended.append(True)

    as_it_is = as_it_is or (isinstance(error, ValueError) and n_trees == 0)
    with pytest.raises(type(error) if as_it_is else ClusterError) as caught:
        come.extend(ended_early(grown()))
    assert (caught.value is error) == as_it_is
    if not as_it_is:  # it may be an error of this process
        assert caught.value.__cause__ is error
        assert f"has ended early: {error!r}" in str(caught.value)
    found = ended_early(grown())
    if n_trees:
        assert next(found) == 0
        found.close()
        assert len(ended) == 2
