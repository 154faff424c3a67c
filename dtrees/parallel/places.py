"""What workers do in a growth of partitions, and what they remember of it.

Tasks are pure: they return the same for the same arguments, wherever and however often they run. A
worker keeps the places of its blocks after a step (`dtrees.core.blocks`) under the name of the
growth, the block and the step; the next round goes on from there. Where they are not there, on a
worker that has just got the block or after others have pushed them out, they are computed again
from the steps so far::

    round r of block b     places after step r - 1 here?     yes: one step
                                                             no: all steps from the first one

What is remembered is bounded by bytes. What was used least recently goes first; but where the
places of one growth are more than that, as its blocks come one after the other in every round, the
first ones stay: some blocks are spared the work, instead of none. A growth that is over is
forgotten, and what tasks of it do afterwards is not remembered.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.system import CPU_COUNT
from dask.utils import parse_bytes

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core._pool import Pool
from dtrees.core.assembly import Piece
from dtrees.core.blocks import (
    Block,
    BlockOfRows,
    Brought,
    Common,
    Counts,
    Places,
    Request,
    Root,
    Step,
    Unfinished,
    add_up,
    grow_brought,
    stacked,
)
from dtrees.parallel.encoding import PROCESS_BYTES, PartFacts
from dtrees.typing import Runner, serial

PLACES_SHARE = 0.25  # of what the process of a worker leaves, unless its dask.config says otherwise
REMEMBERED = 1000  # names of growths that are over


class PlacesCache:
    """Places by growth and block, the most recent ones.

    Parameters
    ----------
    limit : int
        Bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, int], tuple[int, Places, int]] = OrderedDict()
        self._over: deque[str] = deque(maxlen=REMEMBERED)  # growths that are forgotten

    def __len__(self) -> int:
        return len(self._held)

    @property
    def nbytes(self) -> int:
        """Bytes of all that is remembered."""
        with self._lock:
            return sum(held[2] for held in self._held.values())

    def get(self, growth: str, block: int) -> tuple[int, Places]:
        """How many steps were taken, and the places after them; 0 steps where nothing is known."""
        with self._lock:
            found = self._held.get((growth, block))
            if found is None:
                return 0, {}
            self._held.move_to_end((growth, block))
            return found[0], found[1]

    def put(self, growth: str, block: int, n_steps: int, places: Places) -> None:
        """Remember places, unless later ones are known, or there is no room."""
        key = growth, block
        with self._lock:
            before = self._held.get(key)
            if growth in self._over or (before is not None and before[0] >= n_steps):
                return
            size = sum(held.nbytes for held in places.values())
            self._held.pop(key, None)
            room = self._limit - size - sum(held[2] for held in self._held.values())
            for other, (n, _, gone) in list(self._held.items()):
                if room >= 0:
                    break
                if other[0] != growth or n < n_steps - 1:  # of no use in this round
                    del self._held[other]
                    room += gone
            if room >= 0:
                self._held[key] = n_steps, places, size

    def forget(self, growth: str) -> None:
        """Drop what is known of a growth, for good."""
        with self._lock:
            self._over.append(growth)
            for key in [key for key in self._held if key[0] == growth]:
                del self._held[key]


_cache: PlacesCache | None = None
_making = threading.Lock()


def cache() -> PlacesCache:
    """The places that this process remembers."""
    global _cache
    with _making:
        if _cache is None:
            _cache = PlacesCache(_room_here())
        return _cache


def room_of_places(memory_limit: int | None, n_threads: int) -> int:
    """Bytes of places that a worker may remember.

    A share of the memory that its process leaves, or ``dask.config.get("dtrees.places-cache")``. A
    worker without a limit has the share of the machine that goes with its threads.

    Parameters
    ----------
    memory_limit : int or None
    n_threads : int
    """
    given = dask.config.get("dtrees.places-cache", None)
    if given is not None:
        return int(parse_bytes(given))
    if not memory_limit:
        from distributed.system import MEMORY_LIMIT

        memory_limit = int(MEMORY_LIMIT * min(1, n_threads / CPU_COUNT))
    return int(PLACES_SHARE * max(memory_limit - PROCESS_BYTES, memory_limit // 8))


def _room_here() -> int:
    """The same for the worker of this task, or for all of this process."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return room_of_places(None, CPU_COUNT)
    return room_of_places(worker.memory_manager.memory_limit, worker.state.nthreads)


@dataclass(frozen=True)
class GrowthOfBlocks:
    """What a task has to know of a growth.

    Attributes
    ----------
    name : str
    common : Common
    """

    name: str
    common: Common


@dataclass
class Work:
    """What a task did, beside its result.

    Attributes
    ----------
    hits, rebuilds : int
        Places that were known, and those that were computed from the first step on.
    seconds : float
    """

    hits: int = 0
    rebuilds: int = 0
    seconds: float = 0.0


def make_block(
    coded: Sequence[CodedMatrix],
    targets: Sequence[Target],
    first_row: int,
    keys: Sequence[np.ndarray],
    cells: Sequence[np.ndarray],
) -> Block:
    """A block from codes of partitions that lie one behind the other, and from what goes with them.

    Parameters
    ----------
    coded : sequence of CodedMatrix
    targets : sequence of Target
        Cut in any way.
    first_row : int
    keys, cells : sequence of arrays
        As the attributes of `Block`, cut in any way; empty for None.
    """
    return Block(
        coded[0] if len(coded) == 1 else CodedMatrix.stack(coded),
        targets[0] if len(targets) == 1 else Target.stack(targets),
        first_row,
        np.concatenate(keys) if keys else None,
        np.concatenate(cells) if cells else None,
    )


def facts_of_block(block: Block) -> PartFacts:
    """What a growth learns of the codes of a block."""
    return PartFacts.of(block.coded, block.first_row)


def places_of(
    block: Block,
    number: int,
    growth: GrowthOfBlocks,
    steps: Sequence[Step],
    work: Work,
) -> tuple[BlockOfRows, Places]:
    """The places of a block after some steps."""
    rows = BlockOfRows(block, growth.common)
    known, places = cache().get(growth.name, number)
    if known > len(steps):
        known, places = 0, {}
    if known > 0 or len(steps) == 1:
        work.hits += 1
    else:
        work.rebuilds += 1
    for step in steps[known:]:
        places = rows.advance(places, step)
    cache().put(growth.name, number, len(steps), places)
    return rows, places


def sum_bags(
    blocks: Sequence[Block], growth: GrowthOfBlocks, roots: Sequence[Root]
) -> list[list[tuple[Counts, list[int]]]]:
    """What `BlockOfRows.bags` says of each block."""
    return [BlockOfRows(block, growth.common).bags(roots) for block in blocks]


def count_blocks(
    blocks: Sequence[Block],
    numbers: Sequence[int],
    growth: GrowthOfBlocks,
    before: Sequence[Step],
    step: Step,
    requests: Sequence[Request],
) -> tuple[Counts, Work]:
    """A round of some blocks: a step, and what some nodes add up to.

    Parameters
    ----------
    blocks : sequence of Block
    numbers : sequence of int
        Of the blocks.
    growth : GrowthOfBlocks
    before : sequence of Step
    step : Step
    requests : sequence of Request
    """
    began = time.perf_counter()
    work = Work()

    def of_block(block: Block, number: int) -> Counts:
        rows, places = places_of(block, number, growth, [*before, step], work)
        return rows.count(places, requests)

    total = add_up(map(of_block, blocks, numbers))
    work.seconds = time.perf_counter() - began
    return total, work


def cut_counts(counted: tuple[Counts, Work], first: int, last: int) -> tuple[Counts, Work]:
    """A stretch of the histograms of a task; the sums, and what was done, go with the first."""
    counts, work = counted
    sums = counts.sums if first == 0 else counts.sums[:0]
    return Counts(sums, counts.histogram[first:last]), work if first == 0 else Work()


def add_counts(parts: Sequence[tuple[Counts, Work]]) -> tuple[Counts, Work]:
    """One stretch of all tasks, added up."""
    work = Work()
    for _, done in parts:
        work.hits += done.hits
        work.rebuilds += done.rebuilds
        work.seconds += done.seconds
    return add_up([counts for counts, _ in parts]), work


def joined(parts: Sequence[Counts]) -> Counts:
    """Stretches of histograms, one behind the other."""
    return Counts(parts[0].sums, np.concatenate([part.histogram for part in parts]))


def bring_rows(
    blocks: Sequence[Block],
    numbers: Sequence[int],
    growth: GrowthOfBlocks,
    steps: Sequence[Step],
    nodes: Sequence[int],
) -> tuple[list[Brought], Work]:
    """The rows of some nodes, from some blocks; one entry for each node."""
    began = time.perf_counter()
    work = Work()
    of_blocks = []
    for block, number in zip(blocks, numbers, strict=True):
        rows, places = places_of(block, number, growth, steps, work)
        of_blocks.append(rows.bring(places, nodes))
    nodes_of = zip(*of_blocks, strict=True)
    found = [of_node[0] if len(of_node) == 1 else stacked(of_node) for of_node in nodes_of]
    work.seconds = time.perf_counter() - began
    return found, work


@dataclass(frozen=True, eq=False)
class PackedPieces:
    """Pieces of trees, one behind the other.

    Attributes
    ----------
    nodes, statistics, words : arrays, as those of `Piece`
    n_nodes, n_words : int64 (n_pieces,)
    """

    nodes: np.ndarray
    statistics: np.ndarray
    words: np.ndarray
    n_nodes: np.ndarray
    n_words: np.ndarray

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> PackedPieces:
        """Pack pieces."""
        raw = [piece.nodes.view(np.uint8) for piece in pieces]
        return cls(
            np.concatenate(raw).view(pieces[0].nodes.dtype),
            np.concatenate([piece.statistics for piece in pieces]),
            np.concatenate([piece.words for piece in pieces]),
            np.array([len(piece.nodes) for piece in pieces], dtype=np.int64),
            np.array([len(piece.words) for piece in pieces], dtype=np.int64),
        )

    def pieces(self) -> list[Piece]:
        """The pieces; their arrays are aligned."""
        nodes, statistics, words = (
            np.require(array, requirements=["A", "C"])
            for array in (self.nodes, self.statistics, self.words)
        )
        node_ends, word_ends = np.cumsum(self.n_nodes), np.cumsum(self.n_words)
        return [
            Piece(nodes[end - n : end], statistics[end - n : end], words[last - m : last])
            for end, n, last, m in zip(
                node_ends.tolist(),
                self.n_nodes.tolist(),
                word_ends.tolist(),
                self.n_words.tolist(),
                strict=True,
            )
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(array.nbytes) for array in vars(self).values())


def finish_nodes(
    brought: Sequence[tuple[list[Brought], Work]],
    nodes: Sequence[Unfinished],
    values: tuple[np.ndarray, np.ndarray] | None,
    run: Runner = serial,
) -> tuple[PackedPieces, Any]:
    """The subtrees of some nodes, a piece for each node and set of it.

    Parameters
    ----------
    brought : sequence
        What `bring_rows` has taken out of all blocks.
    nodes : sequence of Unfinished
    values : as for `grow_brought`
    run : Runner, default=serial
    """
    began = time.perf_counter()
    pool = Pool()
    pieces: list[Piece] = []
    n_bytes = 0
    for place, node in enumerate(nodes):
        rows = [of_blocks[place] for of_blocks, _ in brought]
        n_bytes += sum(each.coded.nbytes for each in rows)
        pieces += grow_brought(rows, node, values, pool, run)
    work = [done for _, done in brought]
    facts = {
        "cache_hits": sum(done.hits for done in work),
        "rebuilds": sum(done.rebuilds for done in work),
        "bytes_moved": n_bytes,
        "seconds": time.perf_counter() - began,
    }
    return PackedPieces.of(pieces), facts
