"""What fits the memory of a worker, or of this process, while a Dask collection is coded."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.utils import format_bytes

from dtrees.coding.sampling import CutRules, hash_bound
from dtrees.exceptions import TableTooLargeError
from dtrees.parallel.client import await_workers, has_places, limits_of
from dtrees.parallel.limits import PROCESS_BYTES, configured_bytes, free_bytes
from dtrees.parallel.partitions import PartitionedTable

if TYPE_CHECKING:
    from distributed import Client

COPIES = 2  # of the codes, while they are put together
KILLED_SHARE = 0.95  # of the memory of a worker: what takes more is killed by Dask
READING = 3  # times the bytes of a partition, that reading it takes
PARTITION_SHARE = 1 / 4  # of what a worker has free, that a partition had better take
STRETCH_SHARE = 1 / 16  # of what a worker has free, for the samples of columns that are merged
SAMPLES_SHARE = 1 / 4  # and for the samples of all columns; beyond, fewer rows are looked at,
FEWER = 1.25  # times the sample
SAMPLED_BYTES = 8  # of a value of a sample

logger = logging.getLogger(__name__)


def check_partitions(table: PartitionedTable, room: int | None) -> None:
    """Raise when a partition is more than a worker can hold, before workers die of it.

    `room` are bytes of the smallest worker; None: there is no limit. Less than a process takes that
    holds nothing is no limit, either: nobody keeps to it. The ValueError says how to cut.
    """
    if room is None or room <= PROCESS_BYTES:
        return
    per_row = _least_bytes_of_row(table.collection)
    n_rows = int(table.lengths.max())
    free = KILLED_SHARE * room - PROCESS_BYTES
    if READING * n_rows * per_row <= free:
        return
    most = max(1, int(PARTITION_SHARE * free / per_row))
    is_array = hasattr(table.collection, "rechunk")
    n_parts = -(-table.n_rows // most)
    cut = f"X.rechunk({{0: {most}}})" if is_array else f"X.repartition(npartitions={n_parts})"
    raise ValueError(
        f"A partition of X, {n_rows} rows, takes {format_bytes(n_rows * per_row)}, which is more "
        f"than a worker can work on: the smallest one of this Dask cluster has "
        f"{format_bytes(room)} of memory, of which its process takes "
        f"{format_bytes(PROCESS_BYTES)}. Make smaller partitions where X is made, or by {cut}, or "
        "start workers with a larger memory_limit."
    )


def _least_bytes_of_row(collection: Any) -> int:
    """Bytes of a row of a partition, as far as they are known before it is there."""
    types = getattr(collection, "dtypes", None)
    if types is None:
        is_dense = isinstance(collection._meta, np.ndarray)
        return int(is_dense) * collection.dtype.itemsize * int(collection.shape[1])
    return sum(int(getattr(each, "itemsize", 1)) for each in types)


def holds(limit: int | None, n_bytes: int) -> bool:
    """Whether a worker with this limit of memory, None: with none, can hold a table at all.

    Limits that a process exceeds that holds nothing are none, as for `check_partitions`.
    """
    if limit is None or limit <= PROCESS_BYTES:
        return True
    return n_bytes <= KILLED_SHARE * limit - PROCESS_BYTES


def too_small(client: Client, n_bytes: int) -> frozenset[str]:
    """Addresses of the workers that cannot hold a table of so many bytes."""
    limits = limits_of(client)
    return frozenset(address for address in limits if not holds(limits[address], n_bytes))


def able_workers(client: Client, n_bytes: int) -> dict[str, int]:
    """Threads of the workers that are to hold a table of so many bytes; none where none can.

    Where the user says on which workers tasks run, all of the cluster have to be able to.
    """
    threads, small = await_workers(client), too_small(client, n_bytes)
    if small and has_places():
        return {}
    able = {address: n for address, n in threads.items() if address not in small}
    if small and able:
        logger.info("workers that cannot hold the coded table are left out: %s", sorted(small))
    return able


def too_large_for_workers(n_bytes: int, limit: int) -> TableTooLargeError:
    """What is raised before a table is sent to workers that would be killed by it."""
    return TableTooLargeError(
        f"The coded table takes {format_bytes(n_bytes)}, which is more than a worker can hold: it "
        f"has {format_bytes(limit)} of memory, of which its process takes "
        f"{format_bytes(PROCESS_BYTES)}. Start workers with a larger memory_limit; or fit with "
        "regime='local', or a forest with regime='partitioned', in which each worker has some rows."
    )


def check_least_room(collection: Any, n_rows: int) -> None:
    """As `check_room`, before anything is read: each cell that is stored takes a byte at least."""
    types = getattr(collection, "dtypes", None)
    if types is None:
        n_dense = int(collection.shape[1]) * isinstance(collection._meta, np.ndarray)
    else:
        n_dense = sum(not hasattr(each, "fill_value") for each in types)
    check_room(n_rows * n_dense, (n_rows, int(collection.shape[1])))


def check_room(n_bytes: int, shape: tuple[int, int]) -> None:
    """Raise TableTooLargeError when codes of so many bytes cannot be gathered in this process.

    There is room for what the machine has free, or ``dask.config.get("dtrees.client-memory")``.
    """
    room = configured_bytes("dtrees.client-memory", _left_here)
    if COPIES * n_bytes > room:
        raise TableTooLargeError(
            f"The codes of X, {shape[0]} x {shape[1]} cells, take {format_bytes(n_bytes)}, and "
            f"twice that while they are put together, but this process has {format_bytes(room)} "
            "left. Fit where there is more memory, on fewer rows or columns, or with a smaller "
            "max_bins: at most 255 codes take a byte per cell."
        )


def _left_here() -> int:
    """Bytes that this process may still take."""
    import psutil
    from distributed.system import MEMORY_LIMIT

    mine = psutil.Process().memory_info().rss
    return max(0, min(psutil.virtual_memory().available, MEMORY_LIMIT - mine))


def sample_bound(shape: tuple[int, int], rules: CutRules, room: int | None) -> int | None:
    """Hashes of rows that are looked at, fewer where all of them are much for a worker."""
    n_rows, n_columns = shape
    n_bytes = SAMPLED_BYTES * min(n_rows, 2 * rules.sample_rows) * n_columns
    is_much = room is not None and n_bytes > SAMPLES_SHARE * free_bytes(room)
    return hash_bound(rules.sample_rows, n_rows, FEWER if is_much else 2.0)


def column_stretches(
    shape: tuple[int, int], rules: CutRules, bound: int | None, room: int | None
) -> list[tuple[int, int] | None]:
    """Columns that are merged together, so that a worker has room for their samples."""
    n_rows, n_columns = shape
    if room is None or rules.max_bins is None:
        return [None]
    n_sampled = min(n_rows, rules.sample_rows)
    most = int(max(1, STRETCH_SHARE * free_bytes(room) // (SAMPLED_BYTES * n_sampled)))
    ends = [*range(0, n_columns, most), n_columns]
    return [None] if len(ends) <= 2 else list(pairwise(ends))
