"""Epochs: who is told what, what ends one, and turns of fits on a cluster."""

import threading

import pytest
from distributed import Client

from dtrees.exceptions import WorkerLostError
from dtrees.parallel.epochs import Epochs, Turns
from dtrees.parallel.exchange import EpochEndedError
from dtrees.parallel.tasks import RESTARTS, Call, Tasks
from tests.parallel.clusters import connect


@pytest.fixture(scope="module")
def three():
    """A client of three workers in this process."""
    with connect(3, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


class Begun:
    """Places the blocks of a member each, and counts how often."""

    def __init__(self, tasks):
        self.tasks, self.n = tasks, 0

    def __call__(self):
        self.n += 1
        blocks = {address: [f"block of {address}"] for address in self.tasks.workers()}
        return blocks, self.tasks.send("model", f"model {self.n}")


@pytest.fixture
def epochs(three):
    """Epochs of a growth, and how they begin."""
    tasks = Tasks(three)
    tasks.begin()
    found = Epochs(tasks)
    yield found, Begun(tasks)
    found.end()
    tasks.end()


def told(epoch, rank, argument, blocks=None, sent=None):
    with epoch.joined(rank, lambda: False) as members:
        return rank, argument, blocks, sent, members.n_members


def test_members_are_told_once_what_they_begin_with(epochs, three):
    results, begin = epochs[0].results, epochs[1]
    addresses = sorted(three.nthreads())
    first = results(begin, Call("told", told, ("a",)))
    assert first == [
        (rank, "a", [f"block of {address}"], "model 1", 3) for rank, address in enumerate(addresses)
    ]
    assert results(begin, Call("told", told, ("b",))) == [
        (rank, "b", None, None, 3) for rank in range(3)
    ]
    epochs[0].end_epoch()
    assert results(begin, Call("told", told, ("c",)))[0][3] == "model 2"
    assert begin.tasks.stats.counts["epochs"] == begin.n == 2


LEFT = [0]  # epochs that are to end


def failing(epoch, rank, *arguments):
    if rank == 0 and LEFT[0] > 0:
        LEFT[0] -= 1
        raise EpochEndedError("a test")
    return told(epoch, rank, *arguments)


def test_another_epoch_begins(epochs):
    results, begin = epochs[0].results, epochs[1]
    call = Call("told", failing, ("a",))
    LEFT[0] = 2  # workers are in this process
    assert [found[3] for found in results(begin, call)] == ["model 3"] * 3
    LEFT[0] = RESTARTS + 1
    epochs[0].end_epoch()
    with pytest.raises(WorkerLostError, match=r"lost 5 times, without a result.* a test"):
        results(begin, call)
    assert LEFT == [0]


def test_a_worker_that_joins_is_in_the_next_epoch():
    with connect(1, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        tasks = Tasks(client)
        tasks.begin()
        epochs, begin = Epochs(tasks), Begun(tasks)
        call = Call("told", told, ("a",))
        assert [found[4] for found in epochs.results(begin, call)] == [1]
        cluster.scale(2)
        client.wait_for_workers(2)
        assert [found[4] for found in epochs.results(begin, call)] == [2, 2]
        epochs.end()
        tasks.end()


def test_one_fit_has_its_turn(three):
    """Members of two fits would wait for each other."""
    inside, most = [], []

    def work(turns):
        for _ in range(5):
            with turns.turn():
                inside.append(1)
                most.append(len(inside))
                inside.pop()
        turns.end()

    threads = [threading.Thread(target=work, args=(Turns(three),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 15
