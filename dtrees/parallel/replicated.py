"""Trees grown on the workers of a Dask cluster, each of which holds the whole coded table.

The table is the result of a task, which workers fetch from each other, so that every worker gets it
once. Another task grows a few trees from it, on one thread, and returns them as a few flat arrays::

    client   table ──submit──▶ scheduler
    tasks    "coded-table-<fit>-<number>" : () ──▶ codes             worker A ──▶ worker B ──▶ ...
             "growth-<fit>-<number>" : () ──▶ targets, rules, sets
             ("grow-trees-<fit>", number) : (codes, growth, units) ──▶ packed trees
    client   ◀── every batch as soon as it is there

A unit is a tree, or the trees of several training sets that share their growth. The rows of each
set go with the growth (`dtrees.core.grow.forest`). A batch is a few units. Several
growths of one scope share the codes (`dtrees.parallel.coded_partitions`).

There are several batches per thread, if there are so many units, each a fraction of a second of
work. They wait in the scheduler's queue: a worker that joins takes the next one and gets the table
from a worker that has it.

What can go wrong, beside what `dtrees.parallel.tasks` says of any task, and what it costs:

    a worker dies                        its unfinished batches; the scheduler gives them to others
    and it had the only copy of the      the scheduler gives the table to another one
    table
    the cluster is restarted             the client sends the table again

The table is not scattered: `distributed.Client.scatter` with ``broadcast`` asks a worker that dies
meanwhile for ever, and holds a lock of the scheduler that every later call waits for.

A message costs a frame for each of its arrays, and arrays may come out of it unaligned, which the
kernels cannot read safely. So few large arrays go over the wire, without loss:

    the table    codes, and all else of a growth, ──▶ SharedArrays: every array is a buffer of its
                 own beside the pickle; buffers that arrive unaligned are copied once, when a worker
                 unpacks them
    the trees    trees ──▶ one array per attribute (`dtrees.core.model.flat`), integers in the
                 narrowest type that holds them, and nothing that the others imply

Within one process nothing is pickled, and the table is shared.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.core.grow.forest import ForestGrowth, Unit
from dtrees.core.membership.resampling import Resampling
from dtrees.core.model.flat import flatten, split_trees
from dtrees.core.model.tree import LEAF, NO_CHILD, UNITS, Tree
from dtrees.parallel.client import check_open
from dtrees.parallel.coded_partitions import KeptTable, kept_table
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.interrupts import interrupts_deferred_inside
from dtrees.parallel.memory import even_stretches, too_small
from dtrees.parallel.tasks import Call, TaskRunner, Tasks

if TYPE_CHECKING:
    from distributed import Client, Future


BATCHES_PER_THREAD = 8  # at least: enough to even out
ROWS_PER_BATCH = 2**20  # at most, of all its trees: a fraction of a second
SPREAD_BY_DASK = 2  # batches for each thread: the scheduler spreads more of them than that
ALIGNMENT = 64  # bytes: a cache line, and more than any item needs
NARROW = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)


@interrupts_deferred_inside
def grow_replicated(
    growth: ForestGrowth,
    resampling: Resampling,
    units: Sequence[Unit],
    client: Client,
    *,
    stats: FitStatistics | None = None,
) -> Generator[tuple[Unit, list[Tree]]]:
    """Grow trees on the workers of a cluster, each of which gets a copy of the growth's arrays.

    Yields units and their trees, as soon as they have come, in any order. Closing the iterator ends
    the growth and leaves nothing on the cluster. Close it (`contextlib.closing`). The client is
    synchronous; within a task it is that of a `worker_client`, or a thread of the worker is
    blocked. There are eight tasks per thread of the cluster, and more where the trees of a unit
    have many rows.

    Raises ClusterError, of workers with another version of dtrees; WorkerLostError, of no workers,
    or workers that die again and again; SchedulerLostError, of a connection that is lost.
    """
    if not units:
        return
    check_open(client)
    stats = FitStatistics() if stats is None else stats
    coded = growth.coded
    tasks = Tasks(client, stats, left_out=partial(too_small, client, coded.nbytes))
    with sys.modules["distributed"].span("dtrees.fit"), kept_table(coded, client) as kept:
        try:
            tasks.begin()
            n_threads = sum(tasks.able().values())
            batches = batches_of(coded.n_rows, units, n_threads)
            stats.counts["tasks"] += len(batches)
            calls = partial(_calls, tasks, kept, (growth, resampling), batches)
            for number, (packed, work) in tasks.each(len(batches), calls, kept.forget):
                stats.counts.update(work)
                stats.counts["bytes_moved"] += packed_bytes(packed)
                trees = iter(unpack(packed))
                for unit in batches[number]:
                    yield unit, list(islice(trees, len(unit.sets)))
        finally:
            tasks.end()


def batches_of(n_rows: int, units: Sequence[Unit], n_threads: int) -> list[Sequence[Unit]]:
    """Units by the task that grows them; `n_rows` are those of the table."""
    even = -(-len(units) // (BATCHES_PER_THREAD * max(1, n_threads)))
    n_trees = -(-len(units[0].sets) // 2)  # that cost as much as those that are shared
    units_per_task = max(1, min(even, ROWS_PER_BATCH // (n_rows * n_trees)))
    batches = even_stretches(len(units), -(-len(units) // units_per_task))
    return [units[start:end] for start, end in batches]


def _calls(
    tasks: Tasks,
    kept: KeptTable,
    of_sets: tuple[ForestGrowth, Resampling],
    batches: Sequence[Sequence[Unit]],
    left: Sequence[int],
) -> Iterator[Call]:
    """Send the table, unless it is there, and what else the growth is made of; then tasks.

    The scheduler spreads tasks that are many for its threads, wherever the table is, and gives few
    of them to the worker that has it. These are spread here, but where workers are left out: then
    a task has to be free to go to any of the others.
    """
    threads, stats = tasks.able(), tasks.stats
    growth, resampling = of_sets
    n_copies = min(len(threads), len(left))
    stats.seconds.setdefault("table", 0.0)
    table = SharedArrays(growth.coded)
    if kept.whole is not None:
        tasks.take_over(kept.whole, "coded-table", table)
    else:
        stats.counts["bytes_moved"] += n_copies * sys.getsizeof(table)
        began = time.perf_counter()
        kept.whole = tasks.send("coded-table", table)
        tasks.hand_over([kept.whole])

        def see_table(_: Future) -> None:
            stats.seconds["table"] += time.perf_counter() - began

        kept.whole.add_done_callback(see_table)
    rest = SharedArrays((replace(growth, coded=None), resampling))
    stats.counts["bytes_moved"] += n_copies * sys.getsizeof(rest)
    sent = kept.whole, tasks.send("growth", rest)
    numbered = [(number, address) for address in threads for number in range(threads[address])]
    workers: Iterator[tuple[str, ...]] = cycle([()])
    if len(left) <= SPREAD_BY_DASK * len(numbered) and not tasks.left_out():
        workers = cycle((address,) for _, address in sorted(numbered))
    for number, those in zip(left, workers, strict=False):
        units = batches[number]
        about = f"trees {units[0].number} to {units[-1].number}"
        if resampling.n_sets > 1:
            about += f" of {resampling.n_sets} training sets"
        yield Call("grow-trees", grow_batch, (*sent, list(units)), those, about)


def grow_batch(
    table: SharedArrays, rest: SharedArrays, units: Sequence[Unit]
) -> tuple[dict[str, Any], Counter[str]]:
    """What a task does: grow a few units on one thread, as long as somebody wants them.

    Returns the trees, packed, and what training sets have shared.
    """
    run, (growth, resampling) = TaskRunner(), rest.value
    growth = replace(growth, coded=table.value)
    work: Counter[str] = Counter()
    trees: list[Tree] = []
    for unit in units:
        if run.cancelled.is_set():
            raise CancelledError
        trees += growth.trees(unit, resampling, run, work=work)
    return pack(trees), work


class SharedArrays:
    """A value of many arrays that every worker has a copy of."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple:
        from distributed.protocol.pickle import dumps  # by value, what no module has

        buffers: list[pickle.PickleBuffer] = []
        rest = dumps(self.value, protocol=5, buffer_callback=buffers.append)
        return _unpickled, (rest, [np.asarray(buffer.raw()) for buffer in buffers])

    def __sizeof__(self) -> int:
        _, (rest, buffers) = self.__reduce__()
        return len(rest) + sum(buffer.nbytes for buffer in buffers)


def _unpickled(rest: bytes, buffers: Iterable[np.ndarray]) -> SharedArrays:
    return SharedArrays(pickle.loads(rest, buffers=[aligned(buffer) for buffer in buffers]))


def aligned(buffer: np.ndarray) -> np.ndarray:
    """The same bytes, uint8 (n,), at an address that suits every type; `buffer` where possible."""
    if buffer.ctypes.data % ALIGNMENT == 0:
        return buffer
    room = np.empty(len(buffer) + ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    out = room[start : start + len(buffer)]
    out[:] = buffer
    return out


def pack(trees: Sequence[Tree]) -> dict[str, Any]:
    """A few trees of one growth as `flatten` has them, integers in the narrowest type that does.

    `dtrees.core.model.packing` takes an eighth of the bytes, but too much time: the client unpacks
    what all threads of a cluster grow.

    measured (forests of 100,000 rows, 10^6 nodes; share of the time that a thread grows them):
    packed here 2%, unpacked 2%, 52 MB; by `packing` 39%, 34%, 7 MB
    """
    arrays, facts = flatten(trees)
    del arrays["children_left"]  # implied by the others
    return facts | {name: (_narrowed(array), array.dtype.str) for name, array in arrays.items()}


def packed_bytes(packed: dict[str, Any]) -> int:
    """Bytes of the arrays of `pack`."""
    return sum(sent[0].nbytes for sent in packed.values() if isinstance(sent, tuple))


def unpack(packed: dict[str, Any]) -> tuple[Tree, ...]:
    """The trees of `pack`; their arrays are aligned stretches of copies."""
    all_of: dict[str, Any] = {
        name: np.array(sent[0], dtype=sent[1])
        for name, sent in packed.items()
        if isinstance(sent, tuple)
    }
    n_nodes, n_words, words = (all_of.pop(name) for name in ("n_nodes", "n_words", "subset_words"))
    units = {name: all_of.pop(name) for name in UNITS}
    starts = np.repeat(np.cumsum(n_nodes) - n_nodes, n_nodes)
    following = np.arange(1, len(starts) + 1) - starts
    is_leaf = all_of["test"] == LEAF
    all_of["children_left"] = np.where(is_leaf, NO_CHILD, following).astype(np.int32)
    facts = {
        name: packed[name] for name in ("n_columns", "criterion", "n_classes") if name in packed
    }
    return split_trees(all_of, words, n_nodes, n_words, units=units, **facts)


def _narrowed(array: np.ndarray) -> np.ndarray:
    """The same integers in the narrowest type that holds them; other arrays as they are."""
    if array.dtype.kind not in "iu" or array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    for kind in NARROW:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return array.astype(kind, copy=False)
    return array
