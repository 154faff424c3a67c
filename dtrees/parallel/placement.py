"""Which worker works on which block of rows.

A round takes as long as the thread with the most rows. Dask makes blocks wherever there is room at
the moment, on two idle workers often all of them on one, and workers come and go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def share_out(
    lengths: Sequence[int], holders: Sequence[Sequence[str]], threads: Mapping[str, int]
) -> list[str]:
    """The worker of each block, one that has it: of several, the one with the least to do.

    `lengths` are rows of the blocks. Of their `holders`, those that are gone do not count, and
    where none is left, any may make the block again. `threads` are those of all workers.
    """
    loads = dict.fromkeys(threads, 0)
    workers = [""] * len(lengths)
    for number in _largest_first(lengths):
        have_it = [worker for worker in holders[number] if worker in threads]
        workers[number] = _freest(have_it or threads, loads, threads, lengths[number])
        loads[workers[number]] += lengths[number]
    return workers


def even_moves(
    lengths: Sequence[int], workers: Sequence[str], threads: Mapping[str, int]
) -> dict[int, str]:
    """Workers that blocks should go to, by number, so that threads have about as many rows each.

    `workers` are as from `share_out`. Blocks go one by one from the worker with the most rows per
    thread to the one that would have the fewest. Each is the largest that makes it better.
    """
    loads = dict.fromkeys(threads, 0)
    held: dict[str, list[int]] = {worker: [] for worker in threads}
    for number in _largest_first(lengths):
        held[workers[number]].append(number)
        loads[workers[number]] += lengths[number]
    moves: dict[int, str] = {}
    while True:
        full = max(threads, key=lambda worker: loads[worker] / threads[worker])
        most = loads[full] / threads[full]
        for number in held[full]:
            size = lengths[number]
            free = _freest(threads, loads, threads, size)
            if free != full and (loads[free] + size) / threads[free] < most:
                break
        else:
            return {i: worker for i, worker in moves.items() if worker != workers[i]}
        held[full].remove(number)
        held[free].append(number)
        loads[full] -= size
        loads[free] += size
        moves[number] = free


def _largest_first(lengths: Sequence[int]) -> list[int]:
    return sorted(range(len(lengths)), key=lambda number: (-lengths[number], number))


def _freest(
    workers: Sequence[str] | Mapping[str, int],
    loads: Mapping[str, int],
    threads: Mapping[str, int],
    size: int,
) -> str:
    """The worker that has the fewest rows for each of its threads, with so many more."""
    return min(workers, key=lambda worker: ((loads[worker] + size) / threads[worker], worker))
