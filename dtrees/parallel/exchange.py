"""Members of a growth on the workers of a cluster: what they tell each other, without the client.

A member is a long task, one on each worker that has rows. In a round all members add up an array
each: the histogram of a node, say. Messages go from worker to worker over Dask's own connections,
by a handler as that of `distributed.shuffle`, so they have its addresses, ports and TLS::

    member 0    7 ─┬─ 7 + 5 ─┬─ 12 + 9 = 21       recursive doubling: log2 of the members rounds
    member 1    5 ─┴─ 5 + 7 ─│┬ 12 + 9            of messages, each with one partner
    member 2    6 ─┬─ 6 + 3 ─┴│ 9 + 12
    member 3    3 ─┴─ 3 + 6 ──┴ 9 + 12

Long arrays are halved instead: partners add up a half each, and a quarter, and so on; then they
give each other what they have, so that a member sends an array twice, however many there are
(Thakur, Rabenseifner and Gropp 2005, sections 4.4 and 4.5). Sums of integers are the same in any
order.

Members, and the order in which they are numbered, are those of an *epoch*. It ends when one of them
dies, hangs, leaves or joins. Then nobody waits for messages of the epoch any more, and those that
come late are dropped: an epoch has a name of its own. Whoever waits gets an `EpochEndedError`. A
member that is late is asked whether it is there: its event loop answers while its task waits for a
thread, or works. A worker that is paused begins no task, so it has left the epoch. Nobody waits for
others once his own task is cancelled, and a worker forgets an epoch in which nothing happens.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees._forks import lock_of_process
from dtrees.exceptions import ClusterError

if TYPE_CHECKING:
    from distributed import Worker

HANDLER, ALIVE = "dtrees_exchange", "dtrees_alive"
ASK_SECONDS = 5.0  # without a message, until a member is asked, and until it has answered
IDLE_SECONDS = 120.0  # without a task, until a worker forgets an epoch: its client may be gone
LONG = 2**16  # numbers of an array that is halved


class EpochEndedError(ClusterError):
    """A member is gone, so that the others cannot go on; the growth begins another epoch."""


@dataclass(eq=False)
class Box:
    """Messages to a member of an epoch: those that have come, and those that are waited for."""

    come: dict[Any, np.ndarray] = field(default_factory=dict)
    wanted: dict[Any, asyncio.Future[np.ndarray]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)  # of the member, from task to task
    n_calls: Counter[int] = field(default_factory=Counter)  # rounds so far, by tree
    at_work: set[asyncio.Task[None]] = field(default_factory=set)
    n_tasks: int = 0  # of the member, that have begun and not ended
    n_begun: int = 1  # since the last look
    is_over: bool = False

    def put(self, key: Any, numbers: np.ndarray) -> None:
        """Take a message; on the event loop."""
        waiting = self.wanted.pop(key, None)
        if waiting is None:
            self.come[key] = numbers
        elif not waiting.done():
            waiting.set_result(numbers)

    async def get(self, key: Any) -> np.ndarray:
        """Wait for a message."""
        if key in self.come:
            return self.come.pop(key)
        self.wanted[key] = asyncio.get_running_loop().create_future()
        return await self.wanted[key]

    async def until_end(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work, unless the epoch ends: to connect to a worker that is gone takes long."""
        task = asyncio.ensure_future(work)
        self.at_work.add(task)
        try:
            if self.is_over:
                task.cancel()
            await task
        except asyncio.CancelledError:
            raise EpochEndedError("The epoch has ended.") from None
        finally:
            self.at_work.discard(task)

    def end(self) -> None:
        """End what is at work; on the event loop."""
        self.is_over = True
        for task in self.at_work:
            task.cancel()


_lock = lock_of_process()
_boxes: dict[tuple[str, str], Box] = {}  # by address and epoch: workers may share a process


def open_epoch(epoch: str, dask_worker: Worker) -> None:
    """Let a worker take messages of an epoch; on its event loop."""
    own = dask_worker.address

    async def receive(epoch: str, key: list, numbers: Any) -> None:
        with _lock:
            box = _boxes.get((own, epoch))
        if box is not None:
            box.put(tuple(key), numbers)

    async def is_alive(epoch: str) -> bool:
        with _lock:
            box = _boxes.get((own, epoch))
        is_paused = dask_worker.status.name == "paused"
        return box is not None and (box.n_tasks > 0 or not is_paused)

    with _lock:
        _boxes[own, epoch] = Box()
    dask_worker.handlers.update({HANDLER: receive, ALIVE: is_alive})
    asyncio.get_running_loop().call_later(IDLE_SECONDS, _look, own, epoch)


def _look(address: str, epoch: str) -> None:
    """Forget an epoch in which nothing has happened since the last look."""
    with _lock:
        box = _boxes.get((address, epoch))
        if box is None:
            return
        is_idle, box.n_begun = box.n_begun == 0 and box.n_tasks == 0, 0
        if is_idle:
            del _boxes[address, epoch]
    if not is_idle:
        asyncio.get_running_loop().call_later(IDLE_SECONDS, _look, address, epoch)


def end_epoch(epoch: str, dask_worker: Worker) -> None:
    """Let a worker forget an epoch, and wake who waits; on its event loop."""
    with _lock:
        box = _boxes.pop((dask_worker.address, epoch), None)
    if box is not None:
        box.end()


@dataclass(frozen=True)
class Epoch:
    """Who the members are.

    Attributes
    ----------
    name : str
    addresses : tuple of str
        Of the workers of the members, by number.
    """

    name: str
    addresses: tuple[str, ...]

    @contextmanager
    def joined(self, rank: int, is_cancelled: Callable[[], bool]) -> Iterator[Exchange]:
        """The exchange of the member that is this task, as long as the context lasts.

        `is_cancelled` says whether nobody waits for the task any more.

        Raises
        ------
        EpochEndedError
            The epoch has ended, or the task has come to another worker.
        """
        from distributed import get_worker

        worker = get_worker()
        with _lock:
            box = _boxes.get((worker.address, self.name))
        if box is None or box.n_tasks > 0 or worker.address != self.addresses[rank]:
            raise EpochEndedError(f"{worker.address} has no such part in the epoch.")
        box.n_tasks += 1
        box.n_begun += 1
        try:
            yield Exchange(self, worker, box, is_cancelled)
        finally:
            box.n_tasks -= 1


class Exchange:
    """What a member tells the others, as `dtrees.typing.Members`; called in the thread of a task.

    Attributes
    ----------
    rank : int
        Number of the member.
    state : dict
        What it keeps until the epoch ends.
    work : Counter
        Rounds, and messages and bytes that this member has sent.
    """

    def __init__(
        self, epoch: Epoch, worker: Any, box: Box, is_cancelled: Callable[[], bool]
    ) -> None:
        self._epoch, self._worker, self._box = epoch, worker, box
        self._is_cancelled = is_cancelled
        self.rank = epoch.addresses.index(worker.address)
        self.state = box.state
        self.work: Counter[str] = Counter()
        self._tree = -1

    def of_tree(self, k: int) -> Exchange:
        """The exchange of one of several trees that grow at the same time."""
        other = copy.copy(self)
        other._tree = k
        return other

    def sum(self, numbers: np.ndarray) -> None:
        """Make of numbers the sums over all members, in place; int64 (n,), which wrap around."""
        self._reduce(numbers, np.add)

    def largest(self, numbers: np.ndarray) -> None:
        """Make of numbers the largest of all members, in place; float64 (n,)."""
        self._reduce(numbers, np.maximum)

    def _reduce(self, numbers: np.ndarray, add: Callable[..., Any]) -> None:
        loop = self._worker.loop.asyncio_loop
        work = self._box.until_end(self._reduced(numbers, add))
        asyncio.run_coroutine_threadsafe(work, loop).result()

    async def _reduced(self, own: np.ndarray, add: Callable[..., Any]) -> None:
        """Reduce with all others; those beyond a power of two let one of the first act for them."""
        n_members, rank = len(self._epoch.addresses), self.rank
        self.work["rounds"] += 1
        self._box.n_calls[self._tree] += 1
        n_paired = 1 << n_members.bit_length() - 1
        if rank >= n_paired:
            await self._send(rank - n_paired, "before", own)
            own[:] = await self._get(rank - n_paired, "after", own)
            return
        if rank + n_paired < n_members:
            add(own, await self._get(rank + n_paired, "before", own), out=own)
        distances = [1 << k for k in range(n_paired.bit_length() - 1)]
        if len(own) < LONG:
            for distance in distances:
                add(own, await self._swap(rank ^ distance, distance, own, own), out=own)
        else:
            first, last, halves = 0, len(own), []
            for distance in reversed(distances):
                middle = (first + last) // 2
                kept, given = (first, middle), (middle, last)
                if rank & distance:
                    kept, given = given, kept
                mine, theirs = own[slice(*kept)], own[slice(*given)]
                add(mine, await self._swap(rank ^ distance, distance, theirs, mine), out=mine)
                halves.append((distance, mine, theirs))
                first, last = kept
            for distance, mine, theirs in reversed(halves):
                theirs[:] = await self._swap(rank ^ distance, -distance, mine, theirs)
        if rank + n_paired < n_members:
            await self._send(rank + n_paired, "after", own)

    async def _swap(
        self, partner: int, step: Any, numbers: np.ndarray, like: np.ndarray
    ) -> np.ndarray:
        """Send numbers to a partner, who sends others, of the form of `like`."""
        await self._send(partner, step, numbers)
        return await self._get(partner, step, like)

    async def _send(self, partner: int, step: Any, numbers: np.ndarray) -> None:
        from distributed.protocol import to_serialize

        address = self._epoch.addresses[partner]
        message = {
            "epoch": self._epoch.name,
            "key": self._key(step, self.rank),
            "numbers": to_serialize(numbers.copy()),  # workers of one process share it
            "reply": False,
        }
        self.work.update(messages=1, bytes_moved=numbers.nbytes)
        try:
            await getattr(self._worker.rpc(address), HANDLER)(**message)
        except OSError as error:
            raise EpochEndedError(f"{address} cannot be reached: {error!r}.") from error

    async def _get(self, partner: int, step: Any, like: np.ndarray) -> np.ndarray:
        """Wait for numbers of a partner, of the form of `like`, as long as it is there."""
        coming = asyncio.ensure_future(self._box.get(self._key(step, partner)))
        try:
            while not (await asyncio.wait([coming], timeout=ASK_SECONDS))[0]:
                if self._is_cancelled():
                    raise EpochEndedError("Nobody waits for this task any more.")
                await self._ask(self._epoch.addresses[partner])
            found = coming.result()
            if found.shape != like.shape or found.dtype != like.dtype:
                raise EpochEndedError(
                    f"{self._epoch.addresses[partner]} has sent {found.dtype} {found.shape} for "
                    f"{like.dtype} {like.shape}."
                )
            return found
        finally:
            coming.cancel()

    async def _ask(self, address: str) -> None:
        """Raise EpochEndedError where a member does not answer, or knows the epoch no more."""
        asked = getattr(self._worker.rpc(address), ALIVE)(epoch=self._epoch.name)
        try:
            is_alive = await asyncio.wait_for(asked, ASK_SECONDS)
        except (OSError, TimeoutError) as error:
            raise EpochEndedError(f"{address} does not answer: {error!r}.") from error
        if not is_alive:
            raise EpochEndedError(f"{address} has no part in the epoch any more.")

    def _key(self, step: Any, sender: int) -> tuple[int, int, Any, int]:
        """What a message is told apart by, of those of the epoch."""
        return self._tree, self._box.n_calls[self._tree], step, sender
