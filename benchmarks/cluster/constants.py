"""The constants of the cost model, measured on this machine.

What a thread does is measured in this process, in rounds without a cluster: calls of the parts are
timed, and what they worked on is counted. What moves between processes is measured on the
cluster::

    BlockOfRows     bags, splits, counts, rows gathered ──┐
    grow_gathered   subtrees                              ├──▶ seconds / rows, columns, levels
    TreeBatch       requests and searches, by node        ┘
    members         messages of few and of many bytes
    cluster         tasks, rounds and fits that do nothing

The first three are seconds of the processor, which do not grow where others use the machine as
well. A message takes what half of them take at most; the others are the least of several turns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import dask
import numpy as np
from distributed import Client

from benchmarks.cases import Scale
from benchmarks.cluster.places import COLUMNS, forest, placed, table, workers
from benchmarks.measure import timed
from dtrees.coding.codebook import CodeBook
from dtrees.coding.sampling import CutRules
from dtrees.coding.summaries import TableSummary
from dtrees.coding.tables import read_table
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow import rounds
from dtrees.core.grow.tree_batch import TreeBatch
from dtrees.core.stores.blocks import block
from dtrees.core.stores.blocks.block import BlockOfRows
from dtrees.core.stores.blocks.messages import HistogramRequest, Root, SplitUpdate
from dtrees.parallel.cost import CostModel
from dtrees.parallel.exchange import Epoch, end_epoch, open_epoch

DRAWN = 5  # columns of 30
ROWS, TREES, GATHER = 200_000, 6, 10_000
MESSAGE = 32 * 2**20  # bytes
TASKS, MESSAGES = 300, 200
FEW = 64  # rows of a node that costs what its request does


@dataclass
class Watch:
    """Seconds of the calls of a function, and what they worked on."""

    seconds: float = 0.0
    units: float = 0.0
    calls: int = 0

    @property
    def each(self) -> float:
        """Seconds of a unit."""
        return self.seconds / max(1.0, self.units)


def worked(work: Callable[[], Any], clock: Callable[[], float] = time.thread_time) -> Any:
    """Seconds of the processor, and the result."""
    began = clock()
    result = work()
    return clock() - began, result


@contextmanager
def watched(owner: Any, name: str, units: Callable[..., float]) -> Iterator[Watch]:
    """Time the calls of a function; `units` is called with its result and its arguments."""
    watch, function = Watch(), getattr(owner, name)

    def timed_call(*arguments: Any, **named: Any) -> Any:
        began = time.thread_time()
        result = function(*arguments, **named)
        watch.seconds += time.thread_time() - began
        watch.units += units(result, *arguments)
        watch.calls += 1
        return result

    with patch.object(owner, name, timed_call):
        yield watch


def of_coding(X: np.ndarray) -> dict[str, float]:
    """Seconds of a cell, in both passes."""
    part = read_table(X[: ROWS // 2])
    rules = CutRules(max_bins=255, sample_rows=200_000, seed=0)
    of_summary, summary = worked(lambda: TableSummary.of(part, rules=rules))
    book = CodeBook.from_summary(summary)
    of_codes, _ = worked(lambda: book.encode_part(part))
    cells = part.n_rows * part.n_columns
    return {"summarize": of_summary / cells, "encode": of_codes / cells}


def of_rounds(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What a thread and the client do in rounds."""
    model = forest("partitioned", TREES, max_features=DRAWN).set_params(n_jobs=1)

    def count(found: Any, rows: Any, node: Any, members: Any, columns: Any, ways: Any) -> float:
        return float(len(node.rows) * len(columns))

    with ExitStack() as stack:
        see = stack.enter_context
        see(dask.config.set({"dtrees.gather-rows": GATHER, "scheduler": "synchronous"}))
        bags = see(
            watched(BlockOfRows, "_all_rows", lambda f, rows, root: rows._block.coded.n_rows)
        )
        parts = see(watched(BlockOfRows, "_partition", lambda f, rows, node, split: len(node.rows)))
        counts = see(watched(block, "count", count))
        gathered = see(
            watched(
                BlockOfRows, "gather", lambda found, *_: sum(each.coded.nbytes for each in found)
            )
        )
        finished = see(
            watched(
                rounds,
                "grow_gathered",
                lambda f, rows, node, *_: rows.coded.n_rows,
            )
        )
        requests = see(watched(TreeBatch, "requests", lambda found, *_: len(found)))
        taken = see(watched(TreeBatch, "take", lambda f, batch, nodes, c: c.histogram.size))
        model.fit(X, y)
    small = shares(model)
    unit = CostModel(count=0.0, finish=1.0, smaller_share=small)
    of_large = replace(unit, count=counts.each, finish=0.0).in_one_place(GATHER, math.inf)
    each_node = (requests.seconds + taken.seconds) / requests.units
    return {
        "bag": bags.each,
        "part": parts.each,
        "count": counts.each,
        "gather": gathered.each,
        "finish": (finished.each / DRAWN - of_large) / unit.in_one_place(GATHER, math.inf),
        "search": each_node,
        "request": of_requests(),
        "cell": 1e-9,  # an addition; the search of cells is in that of nodes
        "smaller_share": small,
    }


def shares(model: Any) -> float:
    """Rows in the smaller child of a large node: the share that halves as fast."""
    found = []
    for tree in model.forest_.trees:
        n, left = np.asarray(tree.n_node_samples), np.asarray(tree.children_left)
        right = np.asarray(tree.children_right)
        large = np.flatnonzero((left >= 0) & (n > GATHER))
        found.append(np.minimum(n[left[large]], n[right[large]]) / n[large])
    return float(np.clip(np.median(np.concatenate(found)), 0.05, 0.5))


def of_requests() -> float:
    """Seconds of a node of few rows, of a block that is asked for a few columns."""
    rng = np.random.default_rng(0)
    n_nodes = ROWS // FEW
    X, y = rng.normal(size=(ROWS, COLUMNS)), rng.integers(0, 2, ROWS)
    _, coded = CodeBook.fit_encode(X, max_bins=255)
    common = block.Common(GrowthRules(criterion="gini"), block.Draws(0, 1.0), None)
    rows = BlockOfRows(block.Block(coded, Target.classification(y), 0), common)
    (whole,) = rows.advance({}, SplitUpdate((Root(0, 0),), (), ())).values()
    parts = zip(np.split(whole.rows[: n_nodes * (FEW // 2)], n_nodes), strict=False)
    nodes = {
        number: replace(whole, rows=part, times=np.ones(len(part), dtype=np.uint16))
        for number, (part,) in enumerate(parts)
    }
    columns = np.arange(DRAWN, dtype=np.int32)
    requests = [HistogramRequest(number, 1, columns, 0) for number in nodes]
    spent = [worked(lambda: rows.count(nodes, requests))[0] for _ in range(5)]
    return min(spent) / len(requests)


def of_messages(client: Client) -> dict[str, float]:
    """Seconds of a message between members, and of a byte of it."""

    def exchanged(epoch: Epoch, rank: int, length: int) -> float:
        spent = []
        with epoch.joined(rank, lambda: False) as members:
            numbers = np.zeros(length, dtype=np.int64)
            half = length // members.n_parts
            for _ in range(MESSAGES if length == 1 else 9):
                began = time.perf_counter()
                members.scatter(numbers, [half, length])
                spent.append(time.perf_counter() - began)
                members.sum(np.zeros(1, dtype=np.int64))
        return float(np.median(spent)) if length == 1 else min(spent)

    epoch = Epoch(uuid4().hex, tuple(sorted(client.nthreads())))
    client.run(open_epoch, epoch.name)
    found = []
    for length in (1, MESSAGE // 8):
        futures = [
            client.submit(exchanged, epoch, rank, length, workers=[address], pure=False)
            for rank, address in enumerate(epoch.addresses)
        ]
        found.append(max(client.gather(futures)))
    client.run(end_epoch, epoch.name)
    few, many = found
    return {"exchange": few, "byte": max(0.0, many - few) / (MESSAGE / 2)}


def of_cluster(client: Client, scale: Scale) -> dict[str, float]:
    """What moves between processes, and what costs time though nothing is done."""

    def tasks() -> None:
        keys = [f"nothing-{uuid4().hex}-{i}" for i in range(TASKS)]
        client.gather([client.submit(int, 1, key=key, pure=False) for key in keys])

    of_tasks = min(timed(tasks)[0] for _ in range(5))
    tiny = placed(client, tuple(part[:400] for part in table(scale, 400)))
    of_rounds, of_fits = [], []
    with dask.config.set({"dtrees.gather-rows": 0, "dtrees.members": 2}):
        for _ in range(7):
            spent, model = timed(
                lambda: forest("partitioned", 1, max_depth=12).fit(*tiny.on_workers)
            )
            report = model.fit_report_
            of_rounds.append(report["seconds"]["rounds"] / report["rounds"])
            of_fits.append(spent - report["seconds"]["rounds"])
    of_message = of_messages(client)
    between = 2 * of_message["exchange"]
    return of_message | {
        "task": of_tasks / TASKS,
        "round": max(1e-3, min(of_rounds) - between),
        "start": min(of_fits),
    }


def measured(scale: Scale) -> CostModel:
    """All of them."""
    X, y, *_ = table(scale, ROWS)
    assert X.shape[1] == COLUMNS
    found = of_coding(X) | of_rounds(X, y)
    with workers() as client:
        found |= of_cluster(client, scale)
    found["target"] = min(worked(lambda: Target.classification(y))[0] for _ in range(3)) / len(y)
    return CostModel(**found)
