"""How much goes together, and what fits the memory of a worker or of this process.

Trees of a batch, rows of a task and bytes of histograms in the partitioned regime: what grows
(`dtrees.parallel.partitioned`) and what says beforehand how long it will take
(`dtrees.parallel.cost`) ask here. None of it changes a model. Then what is checked before a Dask
collection is coded.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from dask.utils import format_bytes, parse_bytes

from dtrees.coding.sampling import CutRules, hash_bound
from dtrees.core.data.criteria import CRITERIA
from dtrees.core.grow.round_spec import GATHER_ROWS
from dtrees.core.stores.blocks.block import Resolution
from dtrees.exceptions import TableTooLargeError
from dtrees.parallel.client import await_workers, has_places, limits_of
from dtrees.parallel.partitions import PartitionedTable

if TYPE_CHECKING:
    from distributed import Client


SPREAD_NODES = 2048  # of a level, at most: those of a tree are searched one after the other
WAVE_CELLS = 2**30  # of bags and drawn columns, that a thread counts in a level of all trees
ROW_BYTES = 4  # of a row in an open node: its number,
TIMES_BYTES = 2  # how often it is in the bag, where there are bags,
KIND_BYTES = 2  # and its kind, where there are several training sets
DRAWN = 1 - math.exp(-1.0)  # of the rows, in a bag
BESIDE_CODES = 16  # of a row that is gathered, beside its codes
BLOCKS_PER_THREAD = 2  # at least, where there are so many partitions
BLOCK_SHARE = 1 / 24  # of the memory of a worker, for the codes of a block or such rows, at most
LEAST_BYTES = 16 * 2**20  # of rows that a member takes out of its blocks at once,
PORTION_BYTES = 64 * 2**20  # that a thread finishes in a second or less,
MESSAGE_BYTES = 2 * 2**20  # and that are worth a message
PROCESS_BYTES = 200 * 2**20  # of a worker that holds nothing yet

BOOSTED_BYTES = 24  # of a row and a value of a boosted model: raw prediction, derivatives, orders;
MAPPED_BYTES = 16  # of these at a time, where they are in files
MEMBER_SHARE = 0.7  # of the memory of a worker, for a member without files: beyond, Dask spills
DEEPEST = 64  # levels that are taken into account
WAITING = 12  # histograms beside those of leaves: of nodes that are expanded, and in messages
CELL_BYTES = 16  # of a code in a histogram of a boosted model

RESOLUTION = Resolution()
ROWS_OF_INTERVAL = 1024  # of a column of many codes
MOST_INTERVALS = 1023


def gather_rows_of(n_rows: int) -> int:
    """Rows of a node that is gathered in one place, at most, of a table of so many.

    Raises ValueError where ``dask.config`` has no number of rows under "dtrees.gather-rows".
    """
    return configured_number("dtrees.gather-rows", max(GATHER_ROWS, n_rows // SPREAD_NODES))


def resolution_of(n_rows: int) -> Resolution:
    """How finely columns of many codes are counted, of a table of so many rows.

    Intervals of fewer rows leave fewer codes to be asked for, where nothing tells one split from
    another one; those of more are sent in fewer bytes.
    """
    n_intervals = min(max(RESOLUTION.n_intervals, n_rows // ROWS_OF_INTERVAL), MOST_INTERVALS)
    return replace(RESOLUTION, n_intervals=n_intervals)


def configured_number(key: str, default: int) -> int:
    """A number of ``dask.config``; raises ValueError, which names the key, where it is none."""
    given = dask.config.get(key, None)
    given = default if given is None else given
    is_number = isinstance(given, Integral) or str(given).isdecimal()
    if not is_number or isinstance(given, bool) or int(given) < 0:
        raise ValueError(f"dask.config has {key!r} = {given!r}; it must be a number, 0 or more.")
    return int(given)


def configured_bytes(key: str, default: int | str) -> int:
    """A number of bytes of ``dask.config``, in words or not.

    Raises ValueError, which names the key, where it is none.
    """
    given = dask.config.get(key, None)
    given = default if given is None else given
    try:
        found = int(parse_bytes(given))
    except (TypeError, ValueError) as error:
        raise ValueError(f"dask.config has {key!r} = {given!r}: {error}") from error
    if found < 0:
        raise ValueError(f"dask.config has {key!r} = {given!r}; it must be 0 bytes or more.")
    return found


def even_stretches(n: int, n_parts: int) -> list[tuple[int, int]]:
    """Begin and end of so many stretches of n things, all about as long."""
    return list(pairwise(n * part // n_parts for part in range(n_parts + 1)))


def free_bytes(room: int) -> int:
    """Bytes of a worker beside its process, an eighth at least."""
    return max(room - PROCESS_BYTES, room // 8)


def bytes_of_open_row(has_bags: bool, has_sets: bool) -> int:
    """Bytes of a row in an open node of a tree."""
    return ROW_BYTES + TIMES_BYTES * has_bags + KIND_BYTES * has_sets


def room_of_member(limit: int | None) -> float:
    """Bytes that a member may take beside its process; no limit, as for `is_too_much`."""
    if not limit or limit <= PROCESS_BYTES:
        return math.inf
    return MEMBER_SHARE * limit - PROCESS_BYTES


def bytes_of_boosting(
    rules: Any, n_values: int, n_rows: int, n_codes: int, of_row: int = BOOSTED_BYTES, most: int = 0
) -> int:
    """Bytes of a boosted model on a worker, beside its process, and the codes of its rows.

    `rules` say how large trees are, as an estimator does. `n_values` are trees of an iteration,
    `n_codes` those of all columns, `of_row` are bytes of a row and a value, and `most` leaves can
    be split at a time; 0: as many as there are rows.
    """
    leaves = deepest = min(DEEPEST, int(rules.max_depth or DEEPEST))  # that wait: last one first
    if rules.max_leaf_nodes is not None:
        leaves = min(int(rules.max_leaf_nodes), 2**deepest)
    histograms = CELL_BYTES * n_codes * (WAITING + min(leaves, most or n_rows))
    return n_rows + n_values * (of_row * n_rows + histograms)


def trees_at_once(n_rows: float, n_drawn: int, room: float, row_bytes: int, n_threads: int) -> int:
    """Trees of a batch; rows are of a bag, columns of a node, `room` are bytes of all workers.

    As many as there is memory for the rows of their nodes, and as are done in a minute or so. A
    lost cluster leaves the trees of the batches before.
    """
    n_rows = max(1.0, n_rows)
    of_time = WAVE_CELLS * n_threads / (n_drawn * n_rows)
    return max(1, int(min(of_time, room / (row_bytes * n_rows))))


def bytes_of_portion(n_members: int, n_threads: int, room: int | None) -> int:
    """Bytes of rows of small nodes that a member takes out of its blocks at once, at most.

    They go to all members, a message each, which finish them on so many threads. `room` is the
    memory of a worker, if it has a limit.
    """
    wanted = max(PORTION_BYTES * n_threads, MESSAGE_BYTES * n_members)
    return int(max(LEAST_BYTES, min(wanted, BLOCK_SHARE * (room or math.inf))))


COPIES = 2  # of the codes, while they are put together
KILLED_SHARE = 0.95  # of the memory of a worker: what takes more is killed by Dask
READING = 3  # times the bytes of a partition, that reading it takes
MERGING = 5  # times the bytes of values of columns, that putting them together takes
PARTITION_SHARE = 1 / 4  # of what a worker has free, that a partition had better take
STRETCH_SHARE = 1 / 16  # of what a worker has free, for the samples of columns that are merged
SAMPLES_SHARE = 1 / 4  # and for the samples of all columns; beyond, fewer rows are looked at,
FEWER = 1.25  # times the sample
SAMPLED_BYTES = 8  # of a value of a sample

logger = logging.getLogger(__name__)


def is_too_much(n_bytes: float, limit: int | None) -> bool:
    """Whether a worker that takes so many bytes beside its process is killed by Dask.

    None: there is no limit. Less than a process takes that holds nothing is no limit, either:
    nobody keeps to it.
    """
    if limit is None or limit <= PROCESS_BYTES:
        return False
    return n_bytes > KILLED_SHARE * limit - PROCESS_BYTES


def check_partitions(table: PartitionedTable, room: int | None) -> None:
    """Raise when a partition is more than a worker can hold, before workers die of it.

    `room` are bytes of the smallest worker. The ValueError says how to cut.
    """
    types, collection = getattr(table.collection, "dtypes", None), table.collection
    if types is None:  # as far as it is known before it is there
        is_dense = isinstance(collection._meta, np.ndarray)
        per_row = int(is_dense) * collection.dtype.itemsize * int(collection.shape[1])
    else:
        per_row = sum(int(getattr(each, "itemsize", 1)) for each in types)
    n_rows = int(table.lengths.max())
    if room is None or not is_too_much(READING * n_rows * per_row, room):
        return
    free = KILLED_SHARE * room - PROCESS_BYTES
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


@dataclass(frozen=True)
class Least:
    """What a worker needs to grow a model, an estimator; `n_values` are trees of an iteration."""

    model: Any
    n_values: int = 1

    def n_bytes(self, n_rows: int, code_bytes: int, n_codes: int, share: float) -> float:
        """Bytes for a share of the rows, at least; all else is on its disk, or on other workers."""
        model, gathered = self.model, gather_rows_of(n_rows)
        if model._adds_steps:
            own, most = math.ceil(share * n_rows), max(1, n_rows // (2 * model.min_samples_leaf))
            return bytes_of_boosting(model, self.n_values, own, n_codes, MAPPED_BYTES, most)
        if self._gathers_bags:
            gathered = int(n_rows * (DRAWN if getattr(model, "bootstrap", False) else 1.0))
        elif n_rows > gathered * 2.0 ** (min(DEEPEST, int(model.max_depth or DEEPEST)) - 1):
            return 0.0  # where nodes are cut into halves, a worker gathers none
        return COPIES * min(1.0, gathered / max(1, n_rows)) * (code_bytes + BESIDE_CODES * n_rows)

    @property
    def _gathers_bags(self) -> bool:
        """Whether all rows of a tree come to one worker (`RoundSpec.is_small`)."""
        criterion, bag = (getattr(self.model, name, None) for name in ("criterion", "max_samples"))
        if not isinstance(criterion, str) or criterion not in CRITERIA or bag not in (None, 1.0):
            return False
        return not CRITERIA[criterion].has_sums

    @property
    def word(self) -> str:
        """What may be smaller, that a worker needs less."""
        if self._gathers_bags or self.model._adds_steps:
            return "max_bins"
        return "'dtrees.gather-rows' in dask.config"


def check_growth(
    least: Least,
    shape: tuple[int, int],
    code_bytes: int,
    n_codes: int | None,
    workers: Mapping[str, tuple[int | None, int]],
) -> None:
    """Raise TableTooLargeError when workers cannot grow from a table that is dealt out to them.

    All codes take `code_bytes`, at least. `n_codes` are those of dense columns; None: nothing is
    known of them. `workers` are bytes and threads of each; the user may say which of them work.
    """
    if has_places():
        return
    n_codes = 2 * (code_bytes // max(1, shape[0])) if n_codes is None else n_codes
    n_threads = sum(threads for _, threads in workers.values())
    for address, (limit, threads) in sorted(workers.items()):
        needed = least.n_bytes(shape[0], code_bytes, n_codes, threads / n_threads)
        if limit is not None and is_too_much(needed, limit):
            always = least.n_bytes(shape[0], code_bytes, n_codes, 0.0)
            more = "" if is_too_much(always, limit) else "more workers, or "
            raise TableTooLargeError(
                f"A worker of the Dask cluster is too small to grow from {shape[0]} x {shape[1]} "
                f"cells: {address} needs {format_bytes(int(needed))} at least, beside the "
                f"{format_bytes(PROCESS_BYTES)} of its process, and has {KILLED_SHARE:.0%} of "
                f"{format_bytes(limit)} of memory before Dask ends it. Start {more}workers with a "
                f"larger memory_limit; or fit on fewer rows, or with a smaller {least.word}."
            )


def check_values(n_bytes: int, room: int | None) -> None:
    """Raise TableTooLargeError when so many bytes of values of columns cannot be put together.

    `room` are bytes of the smallest worker.
    """
    if room is not None and is_too_much(MERGING * n_bytes, room):
        raise TableTooLargeError(
            "Every value of a column of X is a code of its own, and one worker puts them together: "
            f"those of some partitions are {format_bytes(n_bytes)}, and it takes {MERGING} times "
            f"as much. The smallest worker of this Dask cluster has {format_bytes(room)} of "
            "memory. Fit with max_bins=255, or start workers with a larger memory_limit."
        )


def too_small(client: Client, n_bytes: int) -> frozenset[str]:
    """Addresses of the workers that cannot hold a table of so many bytes."""
    limits = limits_of(client)
    return frozenset(each for each in limits if is_too_much(n_bytes, limits[each]))


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


def too_large_for_workers(n_bytes: int, client: Client) -> TableTooLargeError:
    """What is raised before a table is sent to workers that would be killed by it."""
    limit = min(filter(None, limits_of(client).values()), default=0)
    return TableTooLargeError(
        f"The coded table takes {format_bytes(n_bytes)}, which is more than a worker can hold: it "
        f"has {format_bytes(limit)} of memory, of which its process takes "
        f"{format_bytes(PROCESS_BYTES)}. Start workers with a larger memory_limit; or fit with "
        "regime='local', or a forest with regime='partitioned', in which each worker has some rows."
    )


def stored_cells(collection: Any, n_rows: int) -> int:
    """Cells of a collection that are stored, as far as is known: each takes a byte at least."""
    types = getattr(collection, "dtypes", None)
    if types is None:
        n_dense = int(collection.shape[1]) * isinstance(collection._meta, np.ndarray)
    else:
        n_dense = sum(not hasattr(each, "fill_value") for each in types)
    return n_rows * n_dense


def check_room(n_bytes: int, shape: tuple[int, int]) -> None:
    """Raise TableTooLargeError when codes of so many bytes cannot be gathered in this process.

    There is room for what the machine has free, or ``dask.config.get("dtrees.client-memory")``.
    """
    import psutil
    from distributed.system import MEMORY_LIMIT

    left = min(
        psutil.virtual_memory().available,
        MEMORY_LIMIT - psutil.Process().memory_info().rss,
    )
    room = configured_bytes("dtrees.client-memory", max(0, left))
    if COPIES * n_bytes > room:
        raise TableTooLargeError(
            f"The codes of X, {shape[0]} x {shape[1]} cells, take {format_bytes(n_bytes)}, and "
            f"twice that while they are put together, but this process has {format_bytes(room)} "
            "left. Fit where there is more memory, on fewer rows or columns, or with a smaller "
            "max_bins: at most 255 codes take a byte per cell."
        )


def sample_bound(shape: tuple[int, int], rules: CutRules, room: int | None) -> int | None:
    """Hashes of rows that are looked at, fewer where all of them are much for a worker."""
    n_rows, n_columns = shape
    n_bytes = SAMPLED_BYTES * min(n_rows, 2 * rules.sample_rows) * n_columns
    is_much = room is not None and n_bytes > SAMPLES_SHARE * free_bytes(room)
    return hash_bound(rules.sample_rows, n_rows, FEWER if is_much else 2.0)


def column_stretches(shape: tuple[int, int], rules: CutRules, room: int) -> list[tuple[int, int]]:
    """Columns that are merged together, so that a worker has room for their samples."""
    n_rows, n_columns = shape
    n_sampled = min(n_rows, rules.sample_rows)
    most = int(max(1, STRETCH_SHARE * free_bytes(room) // (SAMPLED_BYTES * n_sampled)))
    return list(pairwise([*range(0, n_columns, most), n_columns]))
