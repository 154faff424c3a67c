"""Members of a growth on the workers of a cluster: what they tell each other, without the client.

A member is a long task, one on each worker that has rows. In a round all members add up an array
each: the histogram of a node, say. Messages go from worker to worker over Dask's own connections,
by a handler as that of `distributed.shuffle`, so they have its addresses, ports and TLS::

    member 0    7 ─┬─ 7 + 5 ─┬─ 12 + 9 = 21       recursive doubling: log2 of the members rounds
    member 1    5 ─┴─ 5 + 7 ─│┬ 12 + 9            of messages, each with one partner
    member 2    6 ─┬─ 6 + 3 ─┴│ 9 + 12
    member 3    3 ─┴─ 3 + 6 ──┴ 9 + 12

Long arrays are halved instead: partners add up a half each, and a quarter, and so on. Then each
member has a part of the sums, which may be all that it needs (`Exchange.scatter`). Or they give
each other what they have, so that a member sends an array twice, however many there are (Thakur,
Rabenseifner and Gropp 2005, sections 4.4 and 4.5). Sums of integers are the same in any order.

Members also tell each other objects (`Exchange.gather`), add up what they have of them for each
(`Exchange.sum_parts`), and give each what it is to have (`Exchange.deal`).

A member has a connection to each partner that it sends to, as long as the epoch lasts. Where it
gets none, the scheduler relays its messages, which has one to every worker. Fresh memory
costs more than what is done to it: pages of a megabyte take a millisecond. So what is long is sent
from where it is.

Members, and the order in which they are numbered, are those of an *epoch*. It ends when one of them
dies, hangs, leaves or joins. Then nobody waits for messages of the epoch any more, and those that
come late are dropped: an epoch has a name of its own. Whoever waits gets an `EpochEndedError`. A
member that is late is asked whether it is there: its event loop answers while its task waits for a
thread, or works. A worker that is paused begins no task; where that lasts, it has left the epoch.
Nobody waits for others once his own task is cancelled, and a worker forgets an epoch in which
nothing happens.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import or_
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dtrees.exceptions import ClusterError
from dtrees.typing import Members, add

if TYPE_CHECKING:
    from distributed import Worker
    from distributed.comm import Comm

T = TypeVar("T")

HANDLER, RELAYED, ALIVE = "dtrees_exchange", "dtrees_relayed", "dtrees_alive"
ASK_SECONDS = 5.0  # without a message, until a member is asked
ANSWER_SECONDS = 5.0  # until it has answered, or there is a connection
PAUSED_SECONDS = 10.0  # until a worker that begins no task has left: its memory may do again
IDLE_SECONDS = 120.0  # without a task, until a worker forgets an epoch: its client may be gone
LONG = 2**17  # bytes of an array that is halved: fresh memory takes long from here on


class EpochEndedError(ClusterError):
    """A member is gone, so that the others cannot go on; the growth begins another epoch."""


@dataclass(eq=False)
class Box:
    """Messages to a member of an epoch: those that have come, and those that are waited for."""

    come: dict[Any, tuple[str, Any]] = field(default_factory=dict)
    wanted: dict[Any, asyncio.Future[None]] = field(default_factory=dict)
    # to others, by address; None: the scheduler relays messages
    comms: dict[str, Comm | None] = field(default_factory=dict)
    received: set[Comm] = field(default_factory=set)  # from others
    exchange: Exchange | None = None  # of the member, from task to task,
    state: dict[str, Any] = field(default_factory=dict)  # and what else it keeps
    n_calls: int = 0
    at_work: set[asyncio.Task[Any]] = field(default_factory=set)
    n_tasks: int = 0  # of the member, that have begun and not ended
    n_begun: int = 1  # since the last look
    paused_at: float | None = None  # when it was first seen that no task is begun here
    is_over: bool = False

    async def take_all(self, comm: Comm) -> None:
        """Take the messages of another member until it ends; on the event loop."""
        self.received.add(comm)
        comm.allow_offload = False
        try:
            while not self.is_over:
                self.put(*await comm.read())
        except OSError:
            pass
        finally:  # the member is gone, or a message is lost, or cannot be read
            self.stop()
            self.received.discard(comm)
            comm.abort()

    def put(self, key: Any, kind: str, sent: Any) -> None:
        """Take a message."""
        self.come[key] = kind, sent
        if key in self.wanted and not self.wanted[key].done():
            self.wanted[key].set_result(None)

    async def until_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work, unless the epoch ends: to connect to a worker that is gone takes long."""
        task = asyncio.current_task()
        assert task is not None
        self.at_work.add(task)
        try:
            if self.is_over:
                task.cancel()
            return await work
        except asyncio.CancelledError:
            raise EpochEndedError("The epoch has ended.") from None
        finally:
            self.at_work.discard(task)

    def stop(self) -> None:
        """End what is at work; on the event loop."""
        self.is_over = True
        for task in self.at_work:
            task.cancel()

    def end(self, dask_worker: Worker) -> None:
        """End what is at work, and all connections; on the event loop."""
        self.stop()
        comms = {address: comm for address, comm in self.comms.items() if comm is not None}
        for comm in (*comms.values(), *self.received):
            comm.abort()
        for address, comm in comms.items():
            dask_worker.rpc.reuse(address, comm)  # which sees that it is closed
        self.forget()

    def forget(self) -> None:
        """Drop what the member keeps, once the epoch is over and no task needs it.

        It is large, and there are cycles.
        """
        if self.is_over and self.n_tasks == 0:
            self.state.clear()
            self.come.clear()
            self.exchange = None


logger = logging.getLogger(__name__)

# by address and epoch: workers may share a process; each access is one step, and needs no lock
_boxes: dict[tuple[str, str], Box] = {}


def open_epoch(epoch: str, dask_worker: Worker) -> None:
    """Let a worker take messages of an epoch; on its event loop."""
    own = dask_worker.address

    async def receive(comm: Comm, epoch: str) -> None:
        box = _boxes.get((own, epoch))
        if box is None:
            comm.abort()
        else:
            await box.take_all(comm)

    async def receive_relayed(epoch: str, message: list) -> None:
        box = _boxes.get((own, epoch))
        if box is not None:
            key, kind, sent = message
            box.put(tuple(key), kind, sent)

    async def answer(epoch: str) -> bool:
        return is_alive(epoch, dask_worker)

    _boxes[own, epoch] = Box()
    dask_worker.handlers |= {HANDLER: receive, RELAYED: receive_relayed, ALIVE: answer}
    asyncio.get_running_loop().call_later(IDLE_SECONDS, _look, dask_worker, epoch)


def is_alive(epoch: str, dask_worker: Worker) -> bool:
    """Whether a worker has a part in an epoch, and will do what it is told; on its event loop."""
    box = _boxes.get((dask_worker.address, epoch))
    if box is None or box.is_over:
        return False
    if box.n_tasks > 0 or dask_worker.status.name != "paused":
        box.paused_at = None
        return True
    box.paused_at = box.paused_at or time.monotonic()
    return time.monotonic() < box.paused_at + PAUSED_SECONDS


def _look(dask_worker: Worker, epoch: str) -> None:
    """Forget an epoch in which nothing has happened since the last look."""
    box = _boxes.get((dask_worker.address, epoch))
    if box is None:
        return
    is_idle, box.n_begun = box.n_begun == 0 and box.n_tasks == 0, 0
    if is_idle:
        end_epoch(epoch, dask_worker)
    else:
        asyncio.get_running_loop().call_later(IDLE_SECONDS, _look, dask_worker, epoch)


def end_epoch(epoch: str, dask_worker: Worker) -> None:
    """Let a worker forget an epoch, and wake who waits; on its event loop."""
    box = _boxes.pop((dask_worker.address, epoch), None)
    if box is not None:
        box.end(dask_worker)


@dataclass(frozen=True)
class Epoch:
    """Who the members are."""

    name: str
    addresses: tuple[str, ...]  # of the workers of the members, by number

    @contextmanager
    def joined(self, rank: int, is_cancelled: Callable[[], bool]) -> Iterator[Exchange]:
        """The exchange of the member that is this task, as long as the context lasts.

        `is_cancelled` says whether nobody waits for the task any more. Raises EpochEndedError where
        the epoch has ended, or the task has come to another worker.
        """
        from distributed import get_worker

        worker = get_worker()
        box = _boxes.get((worker.address, self.name))
        is_free = box is not None and box.n_tasks == 0 and not box.is_over
        if box is None or not is_free or worker.address != self.addresses[rank]:
            raise EpochEndedError(f"{worker.address} has no such part in the epoch.")
        box.n_tasks += 1
        box.n_begun += 1
        try:
            if box.exchange is None:
                box.exchange = Exchange(self, worker, box)
            box.exchange.is_cancelled, box.exchange.work = is_cancelled, Counter()
            yield box.exchange
        except BaseException:
            box.is_over = True  # a second try would be behind the others
            raise
        finally:
            box.n_tasks -= 1
            box.forget()


class Exchange(Members):
    """What a member tells the others, as `dtrees.typing.Members`; called in the thread of a task.

    It is the same from task to task of an epoch. `rank` is the number of the member. `n_parts`
    members have a part of sums: as many as a power of two has.
    """

    def __init__(self, epoch: Epoch, worker: Any, box: Box) -> None:
        self._epoch, self._worker, self._box = epoch, worker, box
        self.is_cancelled: Callable[[], bool] = lambda: False  # as for `Epoch.joined`
        self.rank = epoch.addresses.index(worker.address)
        self.n_members = len(epoch.addresses)
        self.n_parts = 1 << self.n_members.bit_length() - 1
        self.state = box.state  # what the member keeps until the epoch ends
        # rounds of this task, and what it has sent: messages, those of them relayed, and bytes
        self.work: Counter[str] = Counter()

    def join(self, numbers: np.ndarray, join: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """As `Members.join`."""
        self._begin_round()
        if self.n_members > 1:
            self._run(self._joined(numbers, join, None))

    def scatter(self, numbers: np.ndarray, ends: Sequence[int]) -> np.ndarray:
        """As `Members.scatter`; the numbers are sent from where they are."""
        bounds = [0, *ends]
        self._begin_round()
        self._run(self._joined(numbers, add, bounds))
        if self.rank >= self.n_parts:
            return numbers[:0]
        return numbers[bounds[self.rank] : bounds[self.rank + 1]]

    def gather(self, own: Any) -> list[Any]:
        """What all members tell, by number: anything that can be pickled, and is not changed."""
        found = self._trade({self.rank: own}, lambda found, _: found, or_)
        return [found[rank] for rank in range(self.n_members)]

    def sum_parts(self, parts: Sequence[T], add: Callable[[T, T], T]) -> T:
        """The sum of this member's part over all members, each of which has a part for each.

        They add up halves, quarters and so on, in their threads: a part is sent about once.
        """

        def given(own: dict[int, T], distance: int) -> dict[int, T]:
            return {k: part for k, part in own.items() if (k ^ self.rank) & distance}

        def joined(own: dict[int, T], theirs: dict[int, T]) -> dict[int, T]:
            return {k: add(own[k], part) for k, part in theirs.items()}

        return self._trade(dict(enumerate(parts)), given, joined)[self.rank]

    def _trade(
        self,
        own: dict[int, T],
        given: Callable[[dict[int, T], int], dict[int, T]],
        joined: Callable[[dict[int, T], dict[int, T]], dict[int, T]],
    ) -> dict[int, T]:
        """Join things of all members; what is `given` to a partner depends on its distance."""
        self._begin_round()
        other = self.rank ^ self.n_parts
        if self.rank >= self.n_parts:  # one of the first acts for it
            return self._run(self._swapped(other, "before", own, "after"))
        if other < self.n_members:
            own = joined(own, self._run(self._hear(other, "before")))
        for distance in self._distances():
            swap = self._swapped(self.rank ^ distance, distance, given(own, distance), distance)
            own = joined(own, self._run(swap))
        if other < self.n_members:
            self._run(self._tell(other, "after", given(own, self.n_parts)))
        return own

    def deal(self, parts: Sequence[T]) -> list[T]:
        """What all members have for this one, by number; each has a part for each.

        Parts go straight to their members: once, but in a message for each. They are not changed.
        """
        self._begin_round()
        return self._run(self._dealt(parts)) if self.n_members > 1 else list(parts)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._worker.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(self._box.until_end(work), loop).result()

    def _begin_round(self) -> None:
        self.work["rounds"] += 1
        self._box.n_calls += 1

    def _distances(self) -> list[int]:
        """How far the partners of a member are, in a power of two of members."""
        return [self.n_parts >> k for k in range(1, self.n_parts.bit_length())]

    async def _joined(
        self,
        own: np.ndarray,
        join: Callable[[np.ndarray, np.ndarray], None],
        bounds: Sequence[int] | None,
    ) -> None:
        """Join with all others; those beyond a power of two let one of the first act for them.

        bounds : those of parts, where a member needs one of them
        """
        n_members, rank, n_parts = self.n_members, self.rank, self.n_parts
        is_whole, other = bounds is None, rank ^ n_parts
        if rank >= n_parts:
            await self._send(other, "before", own)
            if is_whole:
                own[:] = await self._get(other, "after", own)
            return
        if other < n_members:
            join(own, await self._get(other, "before", own))
        if bounds is None and own.nbytes >= LONG:
            bounds = [len(own) * part // n_parts for part in range(n_parts + 1)]
        first, last, halves = 0, n_parts, []
        for distance in self._distances():
            mine = theirs = own
            if bounds is not None:
                middle = (first + last) // 2
                kept, given = (first, middle), (middle, last)
                if rank & distance:
                    kept, given = given, kept
                mine, theirs = (own[bounds[start] : bounds[end]] for start, end in (kept, given))
                halves.append((distance, mine, theirs))
                first, last = kept
            await self._send(rank ^ distance, distance, theirs)
            join(mine, await self._get(rank ^ distance, distance, mine))
        if is_whole:  # numbers may change as soon as all are there, so copies are sent
            for distance, mine, theirs in reversed(halves):
                await self._send(rank ^ distance, -distance, mine.copy())
                theirs[:] = await self._get(rank ^ distance, -distance, theirs)
            if other < n_members:
                await self._send(other, "after", own.copy())

    async def _dealt(self, parts: Sequence[T]) -> list[T]:
        found, n_members = list(parts), self.n_members
        for distance in range(1, n_members):  # no member gets those of all others at once
            partner = (self.rank + distance) % n_members
            await self._tell(partner, "deal", parts[partner])
        for distance in range(1, n_members):
            partner = (self.rank - distance) % n_members
            found[partner] = await self._hear(partner, "deal")
        return found

    async def _send(self, partner: int, step: Any, numbers: np.ndarray) -> None:
        from distributed.protocol import Serialized, serialize

        is_long = numbers.nbytes >= LONG  # not even looked at: whether to compress takes too long
        sent = Serialized(*serialize(numbers.data.cast("B"))) if is_long else numbers.tobytes()
        await self._write(partner, step, numbers.dtype.str, sent, numbers.nbytes)

    async def _tell(self, partner: int, step: Any, thing: Any) -> None:
        from distributed.protocol import Serialized, serialize
        from distributed.utils import nbytes

        header, frames = serialize(thing)
        n_bytes = sum(map(nbytes, frames))
        await self._write(partner, step, "", Serialized(header, frames), n_bytes)

    async def _write(self, partner: int, step: Any, kind: str, sent: Any, n_bytes: int) -> None:
        address = self._epoch.addresses[partner]
        message = [(self._box.n_calls, step, self.rank), kind, sent]
        self.work["messages"] += 1
        self.work["bytes_moved"] += n_bytes
        try:
            comm = await self._comm_to(address)
            if comm is None:
                self.work["relayed"] += 1
                about = {"op": RELAYED, "epoch": self._epoch.name, "message": message}
                await self._worker.scheduler.proxy(worker=address, msg=about)
            else:
                await comm.write(message)
        except OSError as error:
            raise EpochEndedError(f"{address} cannot be reached: {error!r}.") from error

    async def _comm_to(self, address: str) -> Comm | None:
        """The connection to a member; None: there is none, but the scheduler has one."""
        comms = self._box.comms
        if address not in comms:
            try:
                comm = await asyncio.wait_for(self._worker.rpc.connect(address), ANSWER_SECONDS)
                comms[address] = comm
                comm.allow_offload = False  # to ask how large a message is takes too long
                await comm.write({"op": HANDLER, "epoch": self._epoch.name, "reply": False})
            except (OSError, TimeoutError) as error:
                if address in comms:
                    raise
                comms[address] = None
                await self._ask(address)
                logger.warning("%s is told by the scheduler: %r", address, error)
        return comms[address]

    async def _get(self, partner: int, step: Any, like: np.ndarray) -> np.ndarray:
        """Wait for numbers of a partner, of the form of `like`, as long as it is there."""
        kind, sent = await self._come(partner, step)
        found = np.frombuffer(sent, kind)
        if found.dtype != like.dtype or found.size != like.size:
            raise EpochEndedError(
                f"{self._epoch.addresses[partner]} has sent {kind} {found.shape} for "
                f"{like.dtype} {like.shape}."
            )
        return found.reshape(like.shape)

    async def _swapped(self, partner: int, step: Any, thing: Any, heard: Any) -> Any:
        """Tell a partner something, and wait for what it tells."""
        await self._tell(partner, step, thing)
        return await self._hear(partner, heard)

    async def _hear(self, partner: int, step: Any) -> Any:
        """Wait for what a partner tells, as long as it is there."""
        return (await self._come(partner, step))[1]

    async def _come(self, partner: int, step: Any) -> tuple[str, Any]:
        box, key = self._box, (self._box.n_calls, step, partner)
        while key not in box.come:
            if box.is_over:  # `stop` has cancelled what came before this, which did not heed it
                raise EpochEndedError("The epoch has ended.")
            box.wanted[key] = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(ASK_SECONDS):
                    await box.wanted[key]
            except TimeoutError:
                if self.is_cancelled():
                    raise EpochEndedError("Nobody waits for this task any more.") from None
                await self._ask(self._epoch.addresses[partner])
        box.wanted.pop(key, None)
        return box.come.pop(key)

    async def _ask(self, address: str) -> None:
        """Raise EpochEndedError where a member does not answer, or knows the epoch no more."""
        asked = getattr(self._worker.rpc(address), ALIVE)(epoch=self._epoch.name)
        if self._box.comms.get(address, asked) is None:
            asked.close()
            message = {"op": ALIVE, "epoch": self._epoch.name}
            asked = self._worker.scheduler.proxy(worker=address, msg=message)
        try:
            is_alive = await asyncio.wait_for(asked, ANSWER_SECONDS)
        except (OSError, TimeoutError) as error:
            raise EpochEndedError(f"{address} does not answer: {error!r}.") from error
        if not is_alive:
            raise EpochEndedError(f"{address} has no part in the epoch any more.")
