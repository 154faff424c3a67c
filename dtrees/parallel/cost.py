"""What is known of a fit before it begins: its size, its place, and what rounds will cost.

Nothing of a table is computed but the lengths of partitions that do not know them::

    X ──▶ rows, columns, codes of each column at most ──▶ bytes of codes ──▶ regime, and why
    cluster ──▶ workers, threads, memory                ──▶ ┘

The model of costs follows the code (`dtrees.core.grow.rounds`, `dtrees.parallel.partitioned`)
by phase::

    target     y and weights, as integers                                   / threads
                 of a sequence, weights once more after each tree               / workers
                   and messages: errors, largest weights, sums              each worker
    coding     two passes over the cells of the table                       / threads
                 a few tasks for each block                                 the scheduler
    rounds     updates, the bags' rows x columns drawn, counts
                 rows parted and counted                                    / threads
                 requests of all trees told and looked up                   each worker
                 counts sent once and added up                              each worker
                 nodes searched                                             / workers or trees
                 messages of a round: twice the bits of the workers         each worker
                 of columns of many codes a second one, for some codes
                 a task of each worker, in a slice of a second or more      the scheduler
    subtrees   rows of small nodes taken out of blocks, and their subtrees  / threads
                 rows sent once                                             each worker
                 nodes told and looked up                                   each worker
                 messages of a portion: one to each other worker            each worker
                 a task of each worker, in a slice of a second or more      the scheduler

Of this follows how many workers are members of a growth (`members_that_pay`). The model takes its
constants from measurements (``python -m benchmarks partitioned-scaling`` takes them
anew, and compares what it says with fits). Those below are of two cores of an idle machine. Fits of
250,000 rows on one and two workers took 0.8 to 1.3 times its seconds there, and moved 0.8 times its
bytes. The model knows nothing of the data but their size. A split is always taken to send
`smaller_share` of the rows of a node to one side. On threads of one process nothing moves, see
`CostModel.on_threads`.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from dtrees.coding.sparse_positions import in_scipy
from dtrees.coding.tables import read_table
from dtrees.core.grow.boosting import WHOLE_CODES
from dtrees.core.grow.round_spec import HISTOGRAM_BUDGET
from dtrees.core.stores.blocks.messages import NUMBER_BYTES
from dtrees.parallel.block_tasks import room_of_positions
from dtrees.parallel.client import await_workers, current_client, limits_of, machines
from dtrees.parallel.encoding import size_of_codes
from dtrees.parallel.epochs import slice_seconds
from dtrees.parallel.executors import run_with_retries
from dtrees.parallel.lazy_collections import is_lazy
from dtrees.parallel.memory import (
    BESIDE_CODES,
    BLOCKS_PER_THREAD,
    COPIES,
    DEEPEST,
    DRAWN,
    ROWS_OF_INTERVAL,
    Least,
    able_workers,
    bytes_of_boosting,
    bytes_of_open_row,
    bytes_of_portion,
    check_growth,
    check_partitions,
    configured_bytes,
    configured_number,
    gather_rows_of,
    resolution_of,
    room_of_member,
    stored_cells,
    trees_at_once,
)
from dtrees.parallel.partitions import PartitionedTable, admitted
from dtrees.parallel.regimes import ASKED_FOR, TOO_LARGE, Choice, choose_regime
from dtrees.parallel.threads import threaded

CATEGORIES = 255  # of a column, where nobody knows how many there are
OF_BYTES = {1: 2**8, 2: 2**16}  # values of an integer of so many bytes


@dataclass(frozen=True, eq=False)
class TableSize:
    """How large a coded table is, at most."""

    n_rows: int
    n_columns: int
    n_codes: np.ndarray  # int64 (n_columns,), at most, by the types of the columns
    n_bytes: int  # of all codes
    table: PartitionedTable | None = None  # that is to be coded where it is


@dataclass(frozen=True)
class Machines:
    """Where a fit would run."""

    n_workers: int  # 1: this process, where there is no cluster
    n_threads: int  # of all of them
    memory: int | None  # bytes of the smallest worker; None: no limit is known
    is_cluster: bool = False  # whether they are workers of Dask


def size_of_table(X: Any, max_bins: int | None) -> TableSize:
    """The size of a table as for a fit, without its values.

    Lengths of partitions that are not known are counted, for which a Parquet file reads no column.
    Blocks of sparse arrays are taken to be dense.
    """
    if is_lazy(X):
        (parts,) = admitted(X, {})
        assert isinstance(parts, PartitionedTable)
        types = _types(parts.collection, parts.n_columns)
        return _dense(parts.n_rows, types, max_bins, parts)
    X = in_scipy(X)
    if scipy.sparse.issparse(X):
        n_rows, n_columns = X.shape
        codes = np.full(n_columns, min(max_bins or n_rows, n_rows), dtype=np.int64)
        return TableSize(n_rows, n_columns, codes, size_of_codes(codes, n_rows, X.nnz))
    if not (hasattr(X, "dtype") or hasattr(X, "dtypes")) or len(X.shape) != 2:
        table = read_table(X)
        return _dense(table.n_rows, [None] * table.n_columns, max_bins, None)
    return _dense(X.shape[0], _types(X, X.shape[1]), max_bins, None)


def place_of(
    size: TableSize,
    regime: str | None,
    n_jobs: int | None,
    *,
    n_trees: int | None = None,
    n_sets: int = 1,
    least: Least | None = None,
) -> tuple[Choice, Machines]:
    """Where trees would grow, and why there.

    `regime` is as the estimator has it, `n_jobs` as for `dtrees.parallel.threads.threaded`,
    `n_trees` and `n_sets` as for `dtrees.parallel.regimes.choose_regime`, and `least` as for
    `check_growth`. Raises what a fit raises before it reads: ClusterError, TableTooLargeError, and
    ValueError of a partition that is too large.
    """
    room = None
    if size.table is not None:
        room = run_with_retries([size.table.collection], lambda executor: executor.room())
        check_partitions(size.table, room)
    choice = choose_regime(
        regime,
        n_trees=n_trees,
        n_sets=n_sets,
        n_cells=size.n_rows * size.n_columns,
        n_bytes=size.n_bytes,
        room=room,
    )
    client = current_client(forced=True) if choice.on_cluster else None
    if client is None:
        return choice, Machines(1, threaded(n_jobs).n_threads, None)
    threads, limits = await_workers(client), limits_of(client)
    if choice.regime == "partitioned" and size.table is not None and least is not None:
        n_cells = stored_cells(size.table.collection, size.n_rows)
        check_growth(least, (size.n_rows, size.n_columns), n_cells, None, machines(client))
    if choice.regime == "replicated":
        able = able_workers(client, size.n_bytes)
        if not able and choice.reason != ASKED_FOR:
            return Choice("local", TOO_LARGE), Machines(1, threaded(n_jobs).n_threads, None)
        threads = able or threads
    memory = min(filter(None, map(limits.get, threads)), default=None)
    return choice, Machines(len(threads), sum(threads.values()), memory, is_cluster=True)


def _types(X: Any, n_columns: int) -> list[Any]:
    """The type of each column, as far as it is said."""
    types = getattr(X, "dtypes", None)
    if types is not None:
        return list(types)
    return [X.dtype] * n_columns


def _dense(n_rows: int, types: list[Any], max_bins: int | None, table: Any) -> TableSize:
    codes = np.array([_most_codes(each, n_rows, max_bins) for each in types], dtype=np.int64)
    n_bytes = size_of_codes(codes, n_rows)
    return TableSize(int(n_rows), len(codes), codes, n_bytes, table)


def _most_codes(kind: Any, n_rows: int, max_bins: int | None) -> int:
    """Codes of a column of a type, at most."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(kind, pandas.CategoricalDtype):
        categories = kind.categories
        known = categories is not None and "__UNKNOWN_CATEGORIES__" not in categories
        return min(n_rows, len(categories)) if known else min(n_rows, CATEGORIES)
    form, size = getattr(kind, "kind", "f"), getattr(kind, "itemsize", 8)
    if form == "b":
        return 2
    if form in "OUS":  # words, or anything
        return min(n_rows, CATEGORIES)
    most = n_rows if max_bins is None else min(max_bins, n_rows)
    return min(most, OF_BYTES.get(size, most)) if form in "iu" else most


SLOWER = 1.1  # times as long as need be: so much may a growth take for want of members
ROOM = 0.5  # of a member, that its rows may take; the rest is for copies
TARGET_BYTES = 16  # of a row: y and weights as integers
SUMS = 10  # numbers of a node, beside its classes
SMALL_ROWS = 1000  # nodes of fewer cost more for a row
THREADS_ROUND = 2e-4  # seconds of a round of tasks on threads
REQUEST_BYTES = 250  # of a node: how its parent was split, and what is asked, beside columns
BYTES_OF_CODE = 16  # of a column in a histogram of a boosted model
TASKS_OF_BLOCK = 6  # until its rows are ready
GATHERS = 7  # of a tree in a sequence, beside its rounds; for a bag as many again
CODED_COLUMNS = 1.5  # of a node, whose codes are asked for: where the target is no noise
CODED_ROWS = 2 * ROWS_OF_INTERVAL  # of the intervals of such a column that are alive


@dataclass(frozen=True)
class Cost:
    """What a growth costs."""

    rounds: int
    passes: int  # over the codes
    tree_batches: int
    tasks: int  # of blocks, rounds and subtrees
    bytes_moved: int  # counts and rows that leave a thread of a worker
    bytes_per_worker: int  # codes, targets and positions that it holds, or has on its disk
    seconds: dict[str, float] = field(default_factory=dict)  # by phase

    @property
    def total_seconds(self) -> float:
        """Of all phases."""
        return sum(self.seconds.values())


@dataclass(frozen=True, kw_only=True)
class GrowthSize:
    """What is to be grown, and where."""

    n_rows: int
    n_columns: int
    n_trees: int
    depth: int | None = None  # None: to the end, which is taken to be a few rows
    n_workers: int = 1
    n_threads: int = 1  # of each worker
    n_coding: int = 0  # workers that code the table; 0: these
    bytes_per_row: float | None = None  # of codes; None: by `n_codes`
    columns_drawn: int | None = None  # of a node; None: all
    n_codes: int = 255  # of a column, on average
    has_bounds: bool = True  # of splits inside of intervals of codes (`core.search._intervals`)
    has_sums: bool = True  # of nodes (`Criterion`); else the rows of a tree come to one worker
    n_classes: int = 2  # 0 for regression
    n_sets: int = 1  # that grow, and are taken to stay, together
    n_sequence: int = 1  # times so many trees, which follow from those before
    bootstrap: bool = True
    memory_limit: int | None = None  # of a worker; bounds batches of trees and of tasks
    # of boosted models: what says how large trees are, as their rules or an estimator do. Then
    # `n_trees` are iterations, and `n_sets` the trees of each.
    boosting: Any = None

    @property
    def slots(self) -> int:
        """Threads of all workers."""
        return self.n_workers * self.n_threads

    @property
    def drawn(self) -> int:
        """Columns of a node."""
        drawn = self.n_columns if self.columns_drawn is None else self.columns_drawn
        return min(drawn, self.n_columns)

    @property
    def row_bytes(self) -> float:
        """Of the codes."""
        if self.bytes_per_row is not None:
            return self.bytes_per_row
        return self.n_columns * (1 if self.n_codes <= 255 else 2)

    @property
    def intervals(self) -> int:
        """Of a column of many codes, which is counted by interval; 0: there is none."""
        resolution = resolution_of(self.n_rows)
        by_interval = self.has_bounds and self.n_codes > resolution.interval_codes
        return resolution.n_intervals if by_interval else 0

    @property
    def in_bag(self) -> float:
        """Rows of a bag."""
        return self.n_rows * (DRAWN if self.bootstrap else 1.0)

    @property
    def open_row_bytes(self) -> int:
        """Of a row in an open node."""
        return bytes_of_open_row(self.bootstrap, self.n_sets > 1)

    @property
    def tree_batches(self) -> int:
        """Waves of trees."""
        room = math.inf
        if self.memory_limit is not None:
            room = self.n_workers * room_of_positions(self.memory_limit, self.n_threads)
        most = trees_at_once(self.in_bag, self.drawn, room, self.open_row_bytes, self.slots)
        return math.ceil(self.n_trees / most)


def n_slices(seconds: float, n_workers: int) -> int:
    """Tasks that members get while they grow: one for each of them in a slice."""
    return math.ceil(seconds / slice_seconds(n_workers)) * n_workers


class _Rounds(NamedTuple):
    rounds: int
    code_rounds: int
    tasks: int
    bytes_moved: float
    seconds: float


@dataclass(frozen=True)
class CostModel:
    """Constants of a cluster, in seconds of one thread, unless said otherwise."""

    summarize: float = 1.5e-8  # of a cell, in the first pass over the table
    encode: float = 8.4e-9  # of a cell, in the second one
    target: float = 1.8e-7  # of a row: y is made an integer
    weigh: float = 2.7e-8  # of a row, after a tree that says what it weighs in the next one
    bag: float = 1.1e-8  # of a row and tree: whether it is in the bag, and how often
    part: float = 4.3e-9  # of a row of a bag in an open node
    count: float = 2.6e-9  # of such a row and a column that is drawn
    # of a row of a bag, a column and a level, in small nodes of a subtree that is finished in one
    # place; in large ones it is `count`
    finish: float = 8.5e-9
    gather: float = 3.5e-9  # of a byte of rows that are taken out of blocks and put together
    search: float = 1.2e-4  # of a node: its sums, its search, its children
    request: float = 5e-5  # of a node, for each worker: it is told, and its rows are looked up
    cell: float = 1e-9  # of a number of a histogram that is added up
    byte: float = 1.4e-9  # of a byte between two processes
    round: float = 2e-3  # of a round that does nothing, beside its messages
    exchange: float = 4.5e-4  # of a message that members of an epoch wait for
    task: float = 1.8e-3  # of a task, for the scheduler
    start: float = 0.2  # of a fit that does nothing
    # of a boosted tree, of a row, a column and a level; below the root half of one is counted, as
    # one of two children is
    boost: float = 6.8e-10
    boost_code: float = 7e-9  # of a boosted tree, of a code of a column in a leaf's histogram
    node_byte: float = 2.5e-9  # of a byte of the weights of classes in nodes
    smaller_share: float = 0.24  # of the rows of a node, on the side of a split that has fewer

    def on_threads(self) -> CostModel:
        """The same on threads of one process: nothing moves, nobody is told or asked."""
        nothing = dict.fromkeys(("target", "request", "byte", "task", "start"), 0.0)
        return replace(self, round=THREADS_ROUND, **nothing)

    def in_one_place(self, n_rows: float, depth: float) -> float:
        """Seconds of a row and a column in a tree that is grown where its rows are, to a depth."""
        s = self.smaller_share
        per_level = -s * math.log(s) - (1 - s) * math.log(1 - s)
        levels = min(depth, math.log(max(math.e, n_rows)) / per_level)
        large = min(levels, math.log(max(1.0, n_rows / SMALL_ROWS)) / per_level)
        return large * self.count + (levels - large) * self.finish

    def of_weights(self, size: GrowthSize) -> float:
        """Seconds of what rows weigh in the next trees of a sequence."""
        messages = GATHERS * (1 + size.bootstrap) * math.ceil(math.log2(size.n_workers))
        of_tree = size.n_rows * self.weigh / size.n_workers + messages * self.exchange
        return (size.n_sequence - 1) * of_tree

    def of_boosting(self, size: GrowthSize) -> Cost:
        """Estimate the growth of boosted models, from codes.

        Trees of an iteration share rounds. Of a histogram each member has a part that it searches,
        and the best of all splits are joined; where there are few codes, all have all of it.
        """
        rules, n_workers = size.boosting, size.n_workers
        deepest = min(DEEPEST, int(rules.max_depth or DEEPEST))
        leaves = min(rules.max_leaf_nodes or size.n_rows, size.n_rows, 2.0**deepest)
        n_trees, n_codes = size.n_trees * size.n_sets, size.n_codes * size.n_columns
        of_rows = size.n_rows * size.n_columns * (1 + math.log2(max(2.0, leaves)) / 2)
        rounds = int(size.n_trees * min(leaves, 5 + leaves / 4)) if n_workers > 1 else 0
        n_bytes = int(n_trees * leaves * BYTES_OF_CODE * n_codes * (1 - 1 / n_workers))
        exchanges = 1 if n_codes * size.n_sets <= WHOLE_CODES else 2
        messages = exchanges * rounds * math.ceil(math.log2(n_workers))
        of_tree = of_rows * self.boost + n_codes * leaves * self.boost_code
        growth = n_trees * of_tree / size.slots
        telling = messages * self.exchange + n_bytes * self.byte
        tasks = n_slices(growth + telling, n_workers)
        share, most = -(-size.n_rows // n_workers), size.n_rows // (2 * rules.min_samples_leaf)
        held = TARGET_BYTES * share + int(size.row_bytes * share)
        held += bytes_of_boosting(rules, size.n_sets, share, n_codes, most=max(1, most))
        seconds = {"growth": growth, "rounds": self.start + telling + tasks * self.task}
        return Cost(rounds, 1, 1, tasks, n_bytes * n_workers, held, seconds)

    def of(self, size: GrowthSize) -> Cost:
        """Estimate a growth."""
        if size.boosting is not None:
            return self.of_boosting(size)
        gather_rows = gather_rows_of(size.n_rows) if size.has_sums else size.n_rows
        depth = size.depth if size.has_sums else None
        levels = _levels(size.in_bag, depth, gather_rows, self.smaller_share)
        rounds = self._rounds(size, levels)
        _, rows, is_last = levels[-1]
        in_leaves = rows if is_last and size.depth is not None else 0.0  # that were counted
        gathered = size.n_trees * (size.in_bag - in_leaves)
        n_bytes = gathered * (size.row_bytes + BESIDE_CODES)
        n_times, moved = size.n_sequence, n_bytes * (1 - 1 / size.n_workers)
        portion = bytes_of_portion(size.n_workers, size.n_threads, size.memory_limit)
        of_batch = math.ceil(n_bytes / size.tree_batches / size.n_workers / portion)
        n_nodes = 1 + sum(nodes for nodes, _, is_leaf in levels if not is_leaf)  # of few rows
        below = math.inf if size.depth is None else max(0, size.depth - len(levels) + 1)
        of_cell = self.in_one_place(min(size.in_bag, gather_rows), below)
        working = gathered * size.drawn * size.n_sets * of_cell + n_bytes * self.gather
        subtrees = working / size.slots + moved / size.n_workers * self.byte
        if gathered > 0:
            subtrees += size.n_trees * n_nodes * self.request
            n_messages = size.n_workers - 1 + 2 * math.ceil(math.log2(size.n_workers))
            subtrees += size.tree_batches * of_batch * n_messages * self.exchange
        subtrees *= n_times
        coding = size.n_rows * size.n_columns * (self.summarize + self.encode)
        coding_slots = size.n_threads * (size.n_coding or size.n_workers)
        of_blocks = size.slots * BLOCKS_PER_THREAD * TASKS_OF_BLOCK
        held = size.n_rows * (size.row_bytes + (1 if size.n_classes else 16))
        held += size.in_bag * size.n_trees / size.tree_batches * size.open_row_bytes
        if not size.has_sums:  # a tree at once
            held += size.n_workers * COPIES * n_bytes / size.n_trees
        return Cost(
            rounds=rounds.rounds,
            passes=rounds.rounds + rounds.code_rounds + n_times * (1 + (gathered > 0)),
            tree_batches=size.tree_batches,
            tasks=of_blocks + rounds.tasks + n_slices(subtrees, size.n_workers),
            bytes_moved=int(rounds.bytes_moved + n_times * moved),
            bytes_per_worker=int(held / size.n_workers),
            seconds={
                "start": self.start,
                "target": size.n_rows * self.target / coding_slots + self.of_weights(size),
                "coding": coding / coding_slots + of_blocks * self.task,
                "rounds": rounds.seconds,
                "subtrees": subtrees + n_slices(subtrees, size.n_workers) * self.task,
            },
        )

    def _rounds(self, size: GrowthSize, levels: list[tuple[float, float, bool]]) -> _Rounds:
        """What the levels of all trees take that are counted where rows are.

        All members are told what the trees of each ask for, and each adds up what all have counted
        for its own trees: halves, quarters and so on, in as many messages as the members have bits.
        """
        words = max(2, size.n_classes)
        numbers = size.drawn * ((size.intervals or size.n_codes) + 1) * words
        sums = SUMS + size.n_classes
        tree_batches, n_workers = size.tree_batches, size.n_workers
        n_deciding = min(n_workers, math.ceil(size.n_trees / tree_batches))
        others, steps = 1 - 1 / n_workers, math.ceil(math.log2(n_workers))
        budget = configured_bytes("dtrees.histogram-budget", HISTOGRAM_BUDGET)
        rounds = code_rounds = 0
        told = counted = working = alone = 0.0  # bytes, and seconds
        for nodes, rows, is_last in levels:
            asked = 0 if is_last else numbers
            n_requests = size.n_trees * nodes
            n_nodes = n_requests * size.n_sets
            n_rounds = tree_batches * max(
                1, math.ceil(8 * n_nodes * asked / tree_batches / max(1, budget))
            )
            rounds += n_rounds
            of_row = self.part + (0 if is_last else self.count * size.drawn)
            working += size.n_trees * rows * of_row
            told += n_requests * (REQUEST_BYTES + 4 * size.drawn)
            counted += 8 * n_nodes * (asked + sums)
            alone += n_requests * self.request + n_nodes * self.search / n_deciding
            if size.intervals and not is_last:  # and then the codes of some of them
                codes = n_nodes * CODED_COLUMNS * min(rows / nodes, CODED_ROWS) * words
                code_rounds += n_rounds
                counted += NUMBER_BYTES * codes
                working += size.n_trees * rows * self.count * CODED_COLUMNS
        working += size.n_trees * size.n_rows * self.bag
        alone += others * (told + counted) * self.byte
        alone += (others + size.n_threads) * counted / 8 * self.cell
        alone += (rounds + code_rounds) * (self.round + 2 * steps * self.exchange)
        n_times = size.n_sequence
        spent = n_times * (working / size.slots + alone)
        tasks = n_slices(spent, n_workers)
        moved = n_times * n_workers * others * (told + counted)
        spent += tasks * self.task
        return _Rounds(n_times * rounds, n_times * code_rounds, tasks, moved, spent)


def _levels(
    in_bag: float, depth: int | None, gather_rows: int, share: float
) -> list[tuple[float, float, bool]]:
    """Nodes of a tree that are spread, their rows, and whether they are leaves; by depth.

    At depth d there are ``binomial(d, k)`` nodes of ``share^k (1 - share)^(d - k)`` of the rows.
    """
    found = [(1.0, in_bag, depth == 0)]
    while not found[-1][2]:
        d = len(found)
        is_last = depth is not None and d >= depth
        nodes = rows = 0.0
        for k in range(d + 1):
            part = share**k * (1 - share) ** (d - k)
            size = in_bag * part
            if size >= 1 and (is_last or size > gather_rows):
                nodes += math.comb(d, k)
                rows += math.comb(d, k) * size
        if is_last:  # leaves of the nodes that were spread; the others are not counted in rounds
            nodes, rows = 2 * found[-1][0], found[-1][1]
        if nodes < 1:
            break
        found.append((nodes, rows, is_last))
    return found


def members_that_pay(size: GrowthSize, n_workers: int, model: CostModel | None = None) -> int:
    """How many of the workers of a cluster should grow trees; all of them code the table.

    As few as take hardly longer than any number of them, and less time of processors. All of them
    where no fewer have room for the rows. ``dask.config`` may say how many, by "dtrees.members".
    """
    if given := configured_number("dtrees.members", 0):
        return min(given, n_workers)
    model, most = model or CostModel(), ROOM * room_of_member(size.memory_limit)
    numbers = [*(2**k for k in range((n_workers - 1).bit_length())), n_workers]
    costs = {n: model.of(replace(size, n_workers=n, n_coding=n_workers)) for n in numbers}
    spent = {n: own.total_seconds for n, own in costs.items() if own.bytes_per_worker <= most}
    least = SLOWER * min(spent.values(), default=0.0)
    return next((n for n, seconds in spent.items() if seconds <= least), n_workers)
