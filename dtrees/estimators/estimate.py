"""``estimate_cost``: what a fit will take, before it begins.

Sizes, rounds, bytes and seconds come from `dtrees.parallel.cost`. A table that is held in one place
costs what its subtrees cost there. Let a row and a column cost u seconds on a level of large nodes,
v on one of small nodes. A row passes L and S such levels on average:

    seconds = trees x rows of a bag x columns drawn x (L x u + S x v) / threads

A boosted model grows in one place, or where its rows are (`dtrees.parallel.boosted`).
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np

from dtrees._html import html_table
from dtrees.constraints import ARRAY, Having, InstanceOf, IntegerIn, Nothing, checked
from dtrees.core.data.criteria import CRITERIA
from dtrees.core.membership.shares import rows_of_share
from dtrees.core.stores._dataset import LEAST_BY_ROW, MOST_BY_ROW
from dtrees.estimators.adaboost import BaseAdaBoost
from dtrees.estimators.boosting import BaseBoosting
from dtrees.estimators.fit_plan import FitPlan, columns_per_split, depth_of, least_rows, node_bytes
from dtrees.estimators.forests import BaseForest, BaseTrees
from dtrees.parallel import format_bytes, format_time
from dtrees.parallel.cost import (
    TARGET_BYTES,
    CostModel,
    GrowthSize,
    Machines,
    TableSize,
    members_that_pay,
    place_of,
    size_of_table,
)
from dtrees.parallel.memory import (
    Least,
    check_room,
    room_of_member,
    stored_cells,
)

ROW_BYTES = 16  # of a row of a bag, in a tree that grows
DEEPEST = 64  # levels beyond which no tree is spread
NARROW = 255  # codes of a column that take a byte each
SLOTS = 32  # columns whose codes random splits read side by side


@dataclass(frozen=True)
class CostEstimate:
    """The cost of a fit before it runs; see `estimate_cost`.

    Attributes
    ----------
    n_rows, n_columns, n_trees : int
        Trees of all training sets.
    code_bytes : int
        Of the coded table, at most: what types of columns allow.
    bytes_per_worker : int
        Codes, target and rows of open nodes that a worker holds, or this process.
    n_workers, n_threads : int
        Workers that grow trees (1: this process) and the threads of all of them.
    memory : int or None
        Bytes of the smallest worker; None: no limit is known.
    regime, reason : str
        Where trees will grow, and why there.
    rounds, passes : int
        Of growth in rounds, and its passes over the codes; 0 and 1 where there are none.
    bytes_moved : int
        Between processes: codes, counts and rows.
    seconds : dict of str to float
        By phase, without what the graph of a Dask collection takes by itself.
    is_cluster : bool
        Whether trees will grow on workers, or in this process.
    """

    n_rows: int
    n_columns: int
    n_trees: int
    code_bytes: int
    bytes_per_worker: int
    n_workers: int
    n_threads: int
    memory: int | None
    regime: str
    reason: str
    rounds: int
    passes: int
    bytes_moved: int
    seconds: dict[str, float] = field(default_factory=dict)
    is_cluster: bool = False

    @property
    def total_seconds(self) -> float:
        """Sum of the seconds of all phases."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        of = "" if self.memory is None else f" of {format_bytes(self.memory)}"
        where = _counted(self.n_workers, "worker") if self.is_cluster else "this process"
        threads = _counted(self.n_threads, "thread")
        lines = [
            f"{_counted(self.n_rows, 'row')} x {_counted(self.n_columns, 'column')}, "
            f"{_counted(self.n_trees, 'tree')}",
            f"{format_bytes(self.code_bytes)} of codes, at most; "
            f"{format_bytes(self.bytes_per_worker)} a worker{of}",
            f"regime {self.regime}, on {threads} of {where}: {self.reason}",
            f"{_counted(self.rounds, 'round')}, {_counted(self.passes, 'pass', 'passes')}, "
            f"{format_bytes(self.bytes_moved)} between processes",
            f"about {format_time(self.total_seconds)}",
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        what = f"{_counted(self.n_rows, 'row')} x {_counted(self.n_columns, 'column')}"
        phases = [[name, format_time(seconds)] for name, seconds in self.seconds.items()]
        rows = [
            ["trees", f"{self.n_trees:,}"],
            ["time, about", format_time(self.total_seconds)],
            *[[f"    {name}", seconds] for name, seconds in phases],
            ["regime", self.regime],
            ["threads", f"{self.n_threads:,}"],
            ["workers", f"{self.n_workers:,}"],
            ["codes, at most", format_bytes(self.code_bytes)],
            ["memory of a worker, at most", format_bytes(self.bytes_per_worker)],
            ["between processes", format_bytes(self.bytes_moved)],
        ]
        return html_table(f"Cost of a fit: {what}", ["", "estimate"], rows, self.reason)


def _counted(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


@checked(
    X=ARRAY,
    client=(Having("as_current"), Nothing()),
    n_sets=(IntegerIn(1),),
    n_classes=(IntegerIn(1),),
    model=(InstanceOf(CostModel, "CostModel"), Nothing()),
)
def estimate_cost(
    estimator: Any,
    X: Any,
    *,
    client: Any = None,
    n_sets: int = 1,
    n_classes: int = 2,
    model: CostModel | None = None,
) -> CostEstimate:
    """Estimate what a fit will take, before it begins.

    Parameters
    ----------
    estimator : tree, forest, boosted model or AdaBoost of dtrees
        Unfitted, or not: it is only looked at.
    X : table of shape (n_rows, n_columns)
        As for `fit`. No value is looked at; of Dask collections whose partitions do not know their
        lengths, these are counted, for which a Parquet file reads no column.
    client : distributed.Client or None, default=None
        A cluster. None: the one that a fit would use now, if there is one.
    n_sets : int, default=1
        Training sets that grow together: 11 for ten folds and the final model.
    n_classes : int, default=2
        Of a classifier.
    model : dtrees.parallel.cost.CostModel or None, default=None
        Constants of the machines; None: those of two cores, measured once.

    Returns
    -------
    CostEstimate
        ``print`` it for five lines.

    Raises
    ------
    TypeError
        `estimator` is no such model.
    ValueError
        A parameter of it is not what it should be, or a partition is larger than workers can read.
    dtrees.exceptions.TableTooLargeError
        The codes of a Dask collection come to this process for a boosted model, and do not fit; or
        workers, to which its rows are dealt out, are too small, as the fit would say.
    dtrees.exceptions.ClusterError
        There is a cluster that cannot be used.

    Notes
    -----
    Seconds are good for a factor of two or three, or 0.5 to 1.9 for forests that grow without a
    cluster: how deep trees grow is a matter of the data,
    which nobody has looked at. Bytes of codes are an upper bound, by which a regime may be
    "partitioned" here and "replicated" in the fit, which counts the values. ``fit_report_`` says
    what a fit has taken.

    Examples
    --------
    >>> import numpy as np
    >>> from dtrees import RandomForestClassifier, estimate_cost
    >>> cost = estimate_cost(RandomForestClassifier(max_depth=8), np.zeros((10_000, 20)))
    >>> cost.regime, cost.code_bytes
    ('local', 200000)
    """
    model = CostModel() if model is None else model
    if isinstance(estimator, BaseBoosting):
        with nullcontext() if client is None else client.as_current():
            return _of_boosting(estimator, X, n_sets, n_classes, model)
    in_sequence = isinstance(estimator, BaseAdaBoost)
    if not (in_sequence or isinstance(estimator, BaseTrees)):
        raise TypeError(
            "The 'estimator' parameter of estimate_cost must be a tree, forest, boosted model or "
            f"AdaBoost of dtrees. Got {estimator!r} instead."
        )
    plan = FitPlan.of(estimator)
    is_forest = isinstance(estimator, BaseForest)
    regime = getattr(estimator, "regime", None)
    with nullcontext() if client is None else client.as_current():
        size = size_of_table(X, estimator.max_bins)
        n_trees = None if is_forest else 1
        choice, machines = place_of(
            *(size, regime, estimator.n_jobs),
            n_trees=n_trees,
            n_sets=n_sets,
            least=Least(estimator),
        )
    depth = depth_of(estimator.max_depth, estimator.max_leaf_nodes)
    growth = GrowthSize(
        n_rows=size.n_rows,
        n_columns=size.n_columns,
        n_trees=1 if in_sequence else plan.n_trees,
        n_sequence=plan.n_trees if in_sequence else 1,
        depth=depth if depth <= DEEPEST else None,
        n_workers=machines.n_workers,
        n_threads=max(1, machines.n_threads // machines.n_workers),
        bytes_per_row=size.n_bytes / max(1, size.n_rows),
        columns_drawn=columns_per_split(estimator.max_features, size.n_columns),
        n_codes=int(np.mean(size.n_codes)),
        has_bounds=CRITERIA[plan.criterion].has_bounds
        and n_classes <= 64
        and estimator.splitter != "random",
        has_sums=CRITERIA[plan.criterion].has_sums,
        n_classes=n_classes if hasattr(estimator, "predict_proba") else 0,
        n_sets=n_sets,
        bootstrap=bool(estimator.bootstrap),
        memory_limit=machines.memory,
    )
    n_workers, n_threads = machines.n_workers, machines.n_threads
    if choice.regime == "partitioned":
        n_workers, found = _in_rounds(growth, machines, model)
        n_threads = max(n_workers, n_threads * n_workers // machines.n_workers)
    else:
        found = _in_one_place(growth, size, machines, model, choice.regime == "replicated")
        if estimator.splitter == "random":
            found["bytes_per_worker"] += _bytes_by_row(size, growth.drawn)
    if growth.n_classes > 2:  # of less, nodes are nothing beside the rows
        leaf: int | float = estimator.min_samples_leaf
        least = least_rows(leaf) if isinstance(leaf, Integral) else rows_of_share(leaf, size.n_rows)
        of_tree = node_bytes(int(growth.in_bag), growth.n_classes, depth, least)
        at_once = min(growth.n_trees * n_sets, n_threads) / n_workers
        found["bytes_per_worker"] += int(of_tree * max(1.0, at_once))
        seconds = plan.n_trees * n_sets * of_tree * model.node_byte / n_threads
        found["seconds"]["nodes"] = seconds
    return CostEstimate(
        n_rows=size.n_rows,
        n_columns=size.n_columns,
        n_trees=plan.n_trees * n_sets,
        code_bytes=size.n_bytes,
        n_workers=n_workers,
        n_threads=n_threads,
        memory=machines.memory,
        regime=choice.regime,
        reason=choice.reason,
        is_cluster=machines.is_cluster and choice.regime != "local",
        **found,
    )


def _bytes_by_row(size: TableSize, drawn: int) -> int:
    """Of the codes that random splits keep by row besides, at most."""
    n_dense = size.n_bytes // max(1, size.n_rows)  # or fewer: sparse columns are not among them
    n_columns = min(int(np.sum(size.n_codes <= NARROW)), n_dense)
    is_read = LEAST_BY_ROW <= n_columns <= MOST_BY_ROW * drawn
    return -(-n_columns // SLOTS) * SLOTS * size.n_rows * is_read


def _of_boosting(
    estimator: BaseBoosting, X: Any, n_sets: int, n_classes: int, model: CostModel
) -> CostEstimate:
    """The estimate of a boosted model; with early stopping, of all iterations."""
    estimator._check_parameters()
    size = size_of_table(X, estimator.max_bins)
    least = Least(estimator)
    choice, machines = place_of(size, estimator.regime, estimator.n_jobs, least=least)
    n_values = n_sets * (n_classes if hasattr(estimator, "predict_proba") and n_classes > 2 else 1)
    is_spread = choice.regime == "partitioned" and machines.is_cluster
    is_sent = choice.regime == "replicated"
    if size.table is not None and not (is_spread or is_sent):
        check_room(stored_cells(size.table.collection, size.n_rows), size.table.shape)
    growth = GrowthSize(
        boosting=estimator,
        n_rows=size.n_rows,
        n_columns=size.n_columns,
        n_trees=int(estimator.max_iter),
        n_sets=n_values,
        n_threads=max(1, machines.n_threads // machines.n_workers),
        bytes_per_row=size.n_bytes / max(1, size.n_rows),
        n_codes=int(np.mean(size.n_codes)),
        memory_limit=machines.memory,
    )
    n_workers = min(machines.n_workers, n_sets) if is_sent else 1
    if is_spread:
        n_workers = members_that_pay(growth, machines.n_workers, model)
    n_threads = machines.n_threads * n_workers // machines.n_workers
    cost = model.of(replace(growth, n_workers=n_workers if is_spread else 1))
    moved, held, growing = cost.bytes_moved, cost.bytes_per_worker, cost.seconds["growth"]
    if is_spread and held > room_of_member(machines.memory):
        held -= size.n_bytes // n_workers  # which are on its disk
    if is_sent:  # blocks come to all workers first, and of these to those that grow
        n_copies = n_workers - 1 / machines.n_workers + (size.table is None)
        moved = int(size.n_bytes * n_copies)
    coding = size.n_rows * size.n_columns * (model.summarize + model.encode)
    is_coded_here = is_sent and size.table is None
    seconds = {
        "coding": coding if is_coded_here else coding / machines.n_threads,
        "growth": growing if is_spread else growing / n_workers,
    }
    if is_spread:
        seconds["rounds"] = cost.seconds["rounds"]
    if is_sent:
        seconds["table"] = model.start + moved * model.byte
    return CostEstimate(
        n_rows=size.n_rows,
        n_columns=size.n_columns,
        n_trees=int(estimator.max_iter) * n_values,
        code_bytes=size.n_bytes,
        bytes_per_worker=held,
        n_workers=n_workers,
        n_threads=max(1, n_threads),
        memory=machines.memory,
        regime=choice.regime,
        reason=choice.reason,
        is_cluster=machines.is_cluster and choice.regime != "local",
        rounds=cost.rounds,
        passes=1,
        bytes_moved=moved,
        seconds=seconds,
    )


def _in_rounds(
    growth: GrowthSize, machines: Machines, model: CostModel
) -> tuple[int, dict[str, Any]]:
    """On how many workers, and what it costs."""
    model = model if machines.is_cluster else model.on_threads()
    n_workers = members_that_pay(growth, machines.n_workers, model)
    cost = model.of(replace(growth, n_workers=n_workers, n_coding=machines.n_workers))
    return n_workers, {
        "bytes_per_worker": cost.bytes_per_worker,
        "rounds": cost.rounds,
        "passes": cost.passes,
        "bytes_moved": cost.bytes_moved if machines.is_cluster else 0,
        "seconds": cost.seconds,
    }


def _in_one_place(
    growth: GrowthSize, size: TableSize, machines: Machines, model: CostModel, is_sent: bool
) -> dict[str, Any]:
    n_cells = size.n_rows * size.n_columns
    table = size.n_bytes + TARGET_BYTES * size.n_rows
    of_cell = model.in_one_place(growth.in_bag, growth.depth or math.inf)
    of_tree = growth.n_sets * growth.in_bag * growth.drawn * of_cell + size.n_rows * model.bag
    grown = growth.n_trees * growth.n_sequence * of_tree / machines.n_threads
    seconds = {
        "coding": n_cells * (model.summarize + model.encode),
        "growth": grown + model.of_weights(replace(growth, n_workers=1)),
    }
    moved = 0
    if is_sent:
        moved = table * machines.n_workers
        seconds["table"] = model.start + moved * model.byte
    else:
        seconds["coding"] /= machines.n_threads
    threads_of_worker = machines.n_threads / machines.n_workers
    return {
        "bytes_per_worker": int(table + ROW_BYTES * growth.in_bag * threads_of_worker),
        "rounds": 0,
        "passes": 1,
        "bytes_moved": int(moved),
        "seconds": seconds,
    }
