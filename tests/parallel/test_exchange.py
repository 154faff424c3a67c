"""Members on the workers of a cluster: sums that all of them have, and epochs that end."""

import asyncio
import time
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from uuid import uuid4

import dask
import numpy as np
import pytest
from distributed import Client

from dtrees.parallel import exchange
from dtrees.parallel.exchange import LONG, Epoch, EpochEndedError, end_epoch, open_epoch
from tests.parallel.clusters import connect, epochs_of, paused


@pytest.fixture(scope="module")
def five():
    """A client of five workers in this process, each with two threads."""
    with connect(5, 2, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def epoch_of(client, n_members):
    """An epoch of some of the workers."""
    epoch = Epoch(uuid4().hex, tuple(sorted(client.nthreads())[:n_members]))
    client.run(partial(open_epoch, epoch.name), workers=list(epoch.addresses))
    try:
        yield epoch
    finally:
        client.run(partial(end_epoch, epoch.name))


def results(client, epoch, function, *arguments):
    """What each member returns."""

    def member(epoch, rank, *arguments):
        with epoch.joined(rank, lambda: False) as members:
            return function(members, *arguments)

    futures = [
        client.submit(member, epoch, rank, *arguments, workers=[address], pure=False)
        for rank, address in enumerate(epoch.addresses)
    ]
    return client.gather(futures)


def reduced(members, length):
    """A sum, a maximum, and a sum that wraps around."""
    own = np.arange(length) * (members.rank + 1)
    members.sum(own)
    largest = np.linspace(0.0, 1.0, length) * (-1.0) ** members.rank
    members.largest(largest)
    wrapped = np.full(length, 2**62)
    members.sum(wrapped)
    return own, largest, wrapped, members.work


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n_members", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("length", [1, 7, LONG + 3])
def test_all_members_have_the_sums(n_members, length, five):
    with epoch_of(five, n_members) as epoch:
        found = results(five, epoch, reduced, length)
    ranks = np.arange(n_members)
    expected = np.arange(length) * (ranks + 1).sum()
    signed = np.linspace(0.0, 1.0, length)  # of the first
    for own, largest, wrapped, work in found:
        np.testing.assert_array_equal(own, expected)
        np.testing.assert_array_equal(largest, signed)
        assert set(wrapped) == {np.array([2**62] * n_members).sum()}
        assert work["rounds"] == 3


def told(members):
    """What others tell, the sum of what they have for this member, and what they give it."""
    found = members.gather({"rank": members.rank, "array": np.full(3, members.rank)})
    n_members = len(found)
    own = members.sum_parts([(1, [members.rank, k]) for k in range(n_members)], added)
    dealt = members.deal([(members.rank, k) for k in range(n_members)])
    return [(each["rank"], each["array"].tolist()) for each in found], own, dealt, members.work


def added(one, other):
    return one[0] + other[0], [one[1][0] + other[1][0], one[1][1]]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("n_members", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("is_beyond", [False, True])
def test_all_members_are_told(n_members, is_beyond, five):
    with epoch_of(five, n_members) as epoch, closed_ports(five) if is_beyond else nullcontext():
        found = results(five, epoch, told)
    for rank, (others, own, dealt, work) in enumerate(found):
        assert others == [(k, [k] * 3) for k in range(n_members)]
        assert own == (n_members, [sum(range(n_members)), rank])
        assert dealt == [(k, rank) for k in range(n_members)]
        assert work["relayed"] == (work["messages"] if is_beyond else 0)
        assert work["rounds"] == 3
        assert work["messages"] <= 2 * (n_members - 1).bit_length() + n_members - 1


def test_sums_of_members_that_cannot_be_reached(five):
    with epoch_of(five, 3) as epoch, closed_ports(five):
        found = results(five, epoch, reduced, LONG)
    for own, *_, work in found:
        np.testing.assert_array_equal(own, np.arange(LONG) * 6)
        assert work["relayed"] == work["messages"] > 0


class Unreadable:
    def __reduce__(self):
        return unread, ()


def unread():
    raise MemoryError("a test")


def test_a_message_that_cannot_be_read_ends_the_epoch(processes):
    def tell(members):
        return members.gather(Unreadable() if members.rank == 0 else None)

    with epoch_of(processes, 2) as epoch, pytest.raises((EpochEndedError, MemoryError)):
        results(processes, epoch, tell)


def test_an_end_that_a_connection_does_not_heed(five, monkeypatch):
    """`asyncio.wait_for` of Python 3.11 swallows an end that comes as a connection is there."""
    plain = exchange.Exchange._tell

    async def told(self, *arguments):
        await plain(self, *arguments)
        self._box.stop()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)

    def tell(members):
        return members.gather(0) if members.rank == 1 else None

    monkeypatch.setattr(exchange.Exchange, "_tell", told)
    with epoch_of(five, 2) as epoch, pytest.raises(EpochEndedError):
        results(five, epoch, tell)


def test_a_member_that_has_failed_does_not_try_again(five):
    """It would be behind the others."""

    def fail(members):
        raise ZeroDivisionError

    with epoch_of(five, 1) as epoch:
        with pytest.raises(ZeroDivisionError):
            results(five, epoch, fail)
        with pytest.raises(EpochEndedError, match="has no such part"):
            results(five, epoch, lambda members: None)


@contextmanager
def closed_ports(client):
    """No worker reaches another one; the scheduler reaches all."""
    workers = set(client.nthreads())

    def close(dask_worker):
        async def connect(address, *arguments, **how):
            if address in workers:
                raise OSError("a closed port")
            return await type(dask_worker.rpc).connect(dask_worker.rpc, address, *arguments, **how)

        dask_worker.rpc.connect = connect

    client.run(close)
    try:
        yield
    finally:
        client.run(lambda dask_worker: vars(dask_worker.rpc).pop("connect"))


@pytest.mark.parametrize("length", [7, LONG])
def test_messages_are_few(length, five):
    """Recursive doubling: the logarithm of the members; of halves, twice as many."""
    with epoch_of(five, 4) as epoch:
        found = results(five, epoch, reduced, length)
    for *_, work in found:
        assert work["messages"] == 3 * (2 if length < LONG else 4)
        assert work["bytes_moved"] <= 3 * 8 * length * 2


def test_bytes_that_are_told_do_not_depend_on_chance(five):
    """Dask estimates the size of long lists by some of their elements."""
    own = [np.zeros(10**6 if k == 7 else 1) for k in range(40)]

    def tell(members):
        members.gather(own)
        members.deal([[own], [own]])
        return members.work["bytes_moved"]

    with epoch_of(five, 2) as epoch:
        found = results(five, epoch, tell)
    assert found[0] == found[1]
    assert 2 * 8 * 10**6 < found[0] < 2.1 * 8 * 10**6


def test_what_a_member_keeps_lasts_as_long_as_the_epoch(five):
    def count(members):
        members.state["calls"] = members.state.get("calls", 0) + 1
        numbers = np.array([members.state["calls"]])
        members.sum(numbers)
        return int(numbers[0])

    with epoch_of(five, 2) as epoch:
        assert results(five, epoch, count) == [2, 2]
        assert results(five, epoch, count) == [4, 4]
    with epoch_of(five, 2) as epoch:
        assert results(five, epoch, count) == [2, 2]
    assert not epochs_of(five)


def join(epoch, is_cancelled=lambda: False):
    """Add up some numbers as the first member."""
    with epoch.joined(0, is_cancelled) as members:
        members.sum(np.zeros(2, dtype=np.int64))


def spread(members, sizes):
    """The part of a member, of sums of which others have the other parts."""
    own = np.arange(sum(sizes[: members.n_parts])) * (members.rank + 1)
    ends = np.cumsum(sizes[: members.n_parts]).tolist()
    part = members.scatter(own, ends).copy()
    members.sum(np.zeros(1, dtype=np.int64))
    return part, members.work


@pytest.mark.parametrize("n_members", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("sizes", [(2, 0, 5, 1), (LONG, 7, LONG + 3, 0)], ids=["short", "long"])
def test_members_have_a_part_each(sizes, n_members, five):
    """As many as a power of two; the parts are of any length. What is sent is each part once."""
    with epoch_of(five, n_members) as epoch:
        found = results(five, epoch, spread, sizes)
    n_parts = 2 ** (n_members.bit_length() - 1)
    own = np.split(
        np.arange(sum(sizes[:n_parts])) * sum(range(1, n_members + 1)),
        np.cumsum(sizes[:n_parts])[:-1],
    )
    for rank, (part, work) in enumerate(found):
        np.testing.assert_array_equal(part, own[rank] if rank < n_parts else [])
        assert work["bytes_moved"] < 8 * sum(sizes[:n_parts]) + 100


def test_records_are_joined_as_they_are_told(five):
    """Rows of any kind, the best of each; in any order."""

    def best(members):
        rng = np.random.default_rng(members.rank)
        records = np.column_stack([rng.integers(0, 3, 4000), np.full(4000, members.rank)])
        own = records.copy()

        def join(own, others):
            is_less = (others[:, 0] > own[:, 0]) | (
                (others[:, 0] == own[:, 0]) & (others[:, 1] < own[:, 1])
            )
            own[is_less] = others[is_less]

        members.join(own, join)
        return records, own

    with epoch_of(five, 5) as epoch:
        found = results(five, epoch, best)
    each = np.array([records for records, _ in found])
    first = each[..., 0].argmax(axis=0)
    for _, own in found:
        np.testing.assert_array_equal(own, each[first, np.arange(4000)])


class TestEnds:
    def test_a_connection_that_breaks(self, five):
        """Messages may be lost: who waits for them does not wait for ever."""

        def add(members):
            numbers = np.zeros(1, dtype=np.int64)
            members.sum(numbers)
            if members.rank == 0:
                (comm,) = members._box.comms.values()
                members._worker.loop.add_callback(comm.abort)
            else:
                members.sum(numbers)

        with epoch_of(five, 2) as epoch, pytest.raises(EpochEndedError, match="The epoch has end"):
            results(five, epoch, add)

    @pytest.mark.parametrize("other", [np.zeros(1, np.int64), np.zeros(3)], ids=["one", "floats"])
    def test_numbers_of_another_form(self, other, five):
        """They would be broadcast, or converted, without a word."""

        def add(members):
            (members.sum if members.rank == 0 else members.largest)(
                np.zeros(3, dtype=np.int64) if members.rank == 0 else other.copy()
            )

        with epoch_of(five, 2) as epoch, pytest.raises(EpochEndedError, match="has sent"):
            results(five, epoch, add)

    def test_a_task_on_another_worker(self, five):
        with epoch_of(five, 2) as epoch:
            other = sorted(five.nthreads())[4]
            future = five.submit(join, epoch, workers=[other])
            with pytest.raises(EpochEndedError, match="has no such part in the epoch"):
                future.result()

    def test_a_second_task_of_a_member(self, five):
        with epoch_of(five, 1) as epoch:
            exchange._boxes[epoch.addresses[0], epoch.name].n_tasks = 1
            future = five.submit(join, epoch, workers=list(epoch.addresses), pure=False)
            with pytest.raises(EpochEndedError, match="has no such part in the epoch"):
                future.result()

    def test_a_task_that_nobody_waits_for(self, five, monkeypatch):
        monkeypatch.setattr(exchange, "ASK_SECONDS", 0.05)
        monkeypatch.setattr(exchange, "PAUSED_SECONDS", 0)
        with epoch_of(five, 2) as epoch:
            address = epoch.addresses[0]
            future = five.submit(join, epoch, lambda: True, workers=[address], pure=False)
            with pytest.raises(EpochEndedError, match="Nobody waits for this task"):
                future.result()

    def test_an_epoch_in_which_nothing_happens_is_forgotten(self, five, monkeypatch):
        monkeypatch.setattr(exchange, "IDLE_SECONDS", 0.05)
        with epoch_of(five, 2):
            limit = time.monotonic() + 60
            while epochs_of(five) and time.monotonic() < limit:
                time.sleep(0.01)
            assert not epochs_of(five)

    def test_who_waits_is_woken(self, five):
        """One member does not come; the epoch ends."""
        with epoch_of(five, 2) as epoch:
            first = five.submit(join, epoch, workers=[epoch.addresses[0]])
            box = exchange._boxes[epoch.addresses[0], epoch.name]
            while not box.wanted:
                time.sleep(0.01)
            five.run(partial(end_epoch, epoch.name))
            with pytest.raises(EpochEndedError, match="The epoch has ended"):
                first.result()

    def test_a_member_that_is_late_is_asked(self, five, monkeypatch):
        """It has not begun its task, and answers; once it has left the epoch, nobody waits."""
        monkeypatch.setattr(exchange, "ASK_SECONDS", 0.05)
        monkeypatch.setattr(exchange, "PAUSED_SECONDS", 0)
        asked = []
        ask = exchange.Exchange._ask

        async def noted(self, address, *how):
            asked.append(address)
            if len(asked) == 3:
                five.loop.add_callback(leave)
            await ask(self, address, *how)

        def leave():
            exchange._boxes.pop((epoch.addresses[1], epoch.name))

        monkeypatch.setattr(exchange.Exchange, "_ask", noted)
        with epoch_of(five, 2) as epoch:
            first = five.submit(join, epoch, workers=[epoch.addresses[0]], pure=False)
            with pytest.raises(EpochEndedError, match="has no part in the epoch any more"):
                first.result()
        assert len(asked) >= 3

    def test_a_paused_worker_that_has_not_begun(self, five, monkeypatch):
        monkeypatch.setattr(exchange, "ASK_SECONDS", 0.05)
        monkeypatch.setattr(exchange, "PAUSED_SECONDS", 0)
        with epoch_of(five, 2) as epoch:
            paused(five, epoch.addresses[1:])
            try:
                first = five.submit(join, epoch, workers=[epoch.addresses[0]], pure=False)
                with pytest.raises(EpochEndedError, match="has no part in the epoch any more"):
                    first.result()
            finally:
                paused(five, epoch.addresses[1:], "running")

    def test_a_member_that_cannot_be_reached(self, five):
        with epoch_of(five, 1) as epoch:
            host, _, _ = epoch.addresses[0].rpartition("/")
            gone = Epoch(epoch.name, (*epoch.addresses, f"{host}/999999"))
            with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
                future = five.submit(join, gone, workers=list(epoch.addresses))
                with pytest.raises(EpochEndedError, match="does not answer"):
                    future.result()
