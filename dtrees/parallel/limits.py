"""How much goes together in the partitioned regime: trees of a batch, rows of a task, histograms.

What grows (`dtrees.parallel.partitioned`) and what says beforehand how long it will take
(`dtrees.parallel.cost`) ask here. None of it changes a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from numbers import Integral

import dask
from dask.utils import parse_bytes

from dtrees.core.grow.round_spec import GATHER_ROWS, HISTOGRAM_BUDGET
from dtrees.core.stores.blocks.block import Resolution

SPREAD_NODES = 2048  # of a level, at most: the client searches them one after the other
WAVE_CELLS = 2**30  # of bags and drawn columns, that a thread counts in a level of all trees
ROW_BYTES = 4  # of a row in an open node: its number,
TIMES_BYTES = 2  # how often it is in the bag, where there are bags,
KIND_BYTES = 2  # and its kind, where there are several training sets
BESIDE_CODES = 16  # of a row that is gathered, beside its codes
BLOCK_SHARE = 1 / 24  # of the memory of a worker, for the codes of a block or a batch, at most
BATCH_BYTES = 16 * 2**20  # of rows that are gathered by a task, where memory is little
EVEN_BATCHES = 32  # at least, to even out; where threads are more, one for each
PROCESS_BYTES = 200 * 2**20  # of a worker that holds nothing yet
CLIENT_BYTES = "8 MiB"  # of histograms that the client adds up itself
STRETCH_BYTES = 32 * 2**20  # of a histogram that a task adds up, at most
ADDED_AT_ONCE = 8  # counts that a task adds up


RESOLUTION = Resolution()
ROWS_OF_INTERVAL = 1024  # of a column of many codes
MOST_INTERVALS = 1023


def histogram_budget() -> int:
    """Bytes of the histograms of a round."""
    return configured_bytes("dtrees.histogram-budget", HISTOGRAM_BUDGET)


def client_bytes() -> int:
    """Bytes of what all threads send in a round, above which workers add it up."""
    return configured_bytes("dtrees.client-histograms", CLIENT_BYTES)


def gather_rows_of(n_rows: int) -> int:
    """Rows of a node that is gathered in one place, at most, of a table of so many.

    Raises ValueError where ``dask.config`` has no number of rows under "dtrees.gather-rows".
    """
    given = dask.config.get("dtrees.gather-rows", None)
    if given is None:
        return max(GATHER_ROWS, n_rows // SPREAD_NODES)
    if not (isinstance(given, Integral) or str(given).isdecimal()) or int(given) < 0:
        raise ValueError(
            f"dask.config has 'dtrees.gather-rows' = {given!r}; it must be a number of rows, 0 or "
            "more."
        )
    return int(given)


def resolution_of(n_rows: int) -> Resolution:
    """How finely columns of many codes are counted, of a table of so many rows.

    Intervals of fewer rows leave fewer codes to be asked for, where nothing tells one split from
    another one; those of more are sent in fewer bytes.
    """
    n_intervals = min(max(RESOLUTION.n_intervals, n_rows // ROWS_OF_INTERVAL), MOST_INTERVALS)
    return replace(RESOLUTION, n_intervals=n_intervals)


def configured_bytes(key: str, default: int | str | Callable[[], int]) -> int:
    """A number of bytes of ``dask.config``, in words or not; a default may be computed.

    Raises ValueError, which names the key, where it is none.
    """
    given = dask.config.get(key, None)
    if given is None:
        given = default() if callable(default) else default
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


def trees_at_once(n_rows: float, n_drawn: int, room: float, row_bytes: int, n_threads: int) -> int:
    """Trees of a batch; rows are of a bag, columns of a node, `room` are bytes of all workers.

    As many as there is memory for the rows of their nodes, and as are done in a minute or so. A
    lost cluster leaves the trees of the batches before.
    """
    n_rows = max(1.0, n_rows)
    of_time = WAVE_CELLS * n_threads / (n_drawn * n_rows)
    return max(1, int(min(of_time, room / (row_bytes * n_rows))))


def bytes_of_batch(total: float, n_threads: int, of_threads: Iterable[float]) -> int:
    """Bytes of the rows that one task finishes, at most; `total` of all batches.

    Each batch takes a task for each of the `n_threads`: where these are many, one batch for each
    has to do. `of_threads` is the memory of the workers that have a limit, for each thread.
    """
    most = max(BATCH_BYTES, BLOCK_SHARE * min(of_threads, default=0.0))
    return max(1, int(min(most, total // max(n_threads, EVEN_BATCHES))))


def n_stretches(n_bytes: float, n_workers: int) -> int:
    """Stretches that histograms are cut into, to be added up side by side."""
    return min(n_workers, max(1, int(-(-n_bytes // STRETCH_BYTES))))
