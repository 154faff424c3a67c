"""What a worker remembers of a growth of partitions: where rows of its blocks are after an update.

What is remembered is bounded by bytes. What was used least recently goes first. Where the positions
of one growth are more than that, the first ones stay. Its blocks come one after the other in every
round, so some are spared the work. A growth that is over is forgotten, and what tasks of it do
afterwards is not remembered.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from dask.system import CPU_COUNT

from dtrees._forks import lock_of_process
from dtrees.core.stores.blocks.block import PositionIndex
from dtrees.parallel.client import this_worker
from dtrees.parallel.limits import configured_bytes, free_bytes

POSITIONS_SHARE = 0.25  # of what the process of a worker leaves, unless dask.config says otherwise
REMEMBERED = 1000  # names of growths that are over

_lock = lock_of_process()  # of all caches: there is one in a process


class PositionCache:
    """Positions by growth and block, the most recent ones, of at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[tuple[str, int], tuple[int, PositionIndex, int]] = OrderedDict()
        self._over: deque[str] = deque(maxlen=REMEMBERED)  # growths that are forgotten

    def get(self, growth: str, block: int) -> tuple[int, PositionIndex]:
        """How many updates were taken, and the positions after them; 0 where nothing is known."""
        with _lock:
            found = self._held.get((growth, block))
            if found is None:
                return 0, {}
            self._held.move_to_end((growth, block))
            return found[0], found[1]

    def put(self, growth: str, block: int, n_updates: int, positions: PositionIndex) -> None:
        """Remember positions, unless later ones are known, or there is no room."""
        key = growth, block
        with _lock:
            before = self._held.get(key)
            if growth in self._over or (before is not None and before[0] >= n_updates):
                return
            size = sum(held.nbytes for held in positions.values())
            self._held.pop(key, None)
            room = self._limit - size - sum(held[2] for held in self._held.values())
            for other, (n, _, gone) in list(self._held.items()):
                if room >= 0:
                    break
                if other[0] != growth or n < n_updates - 1:  # of no use in this round
                    del self._held[other]
                    room += gone
            if room >= 0:
                self._held[key] = n_updates, positions, size

    def forget(self, growth: str) -> None:
        """Drop what is known of a growth, for good."""
        with _lock:
            self._over.append(growth)
            for key in [key for key in self._held if key[0] == growth]:
                del self._held[key]


_cache: PositionCache | None = None
_making = lock_of_process()


def cache() -> PositionCache:
    """The positions that this process remembers."""
    global _cache
    with _making:
        if _cache is None:
            _cache = PositionCache(_room_here())
        return _cache


def room_of_positions(memory_limit: int | None, n_threads: int) -> int:
    """Bytes of positions that a worker may remember.

    A share of the memory that its process leaves, or what ``dask.config`` says under
    "dtrees.position-cache". A worker without a limit has the share of the machine that goes with
    its threads.
    """

    def share() -> int:
        room = memory_limit
        if not room:
            from distributed.system import MEMORY_LIMIT

            room = int(MEMORY_LIMIT * min(1, n_threads / CPU_COUNT))
        return int(POSITIONS_SHARE * free_bytes(room))

    return configured_bytes("dtrees.position-cache", share)


def _room_here() -> int:
    """The same for the worker of this task, or for all of this process."""
    worker = this_worker()
    if worker is None:
        return room_of_positions(None, CPU_COUNT)
    return room_of_positions(worker.memory_manager.memory_limit, worker.state.nthreads)
