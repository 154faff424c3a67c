"""Trees, grown wherever that is to be done, in their order.

Work comes in units (`dtrees.core.grow.forest`): the trees of a forest, or of some training sets.
Where a cluster has more threads than there are numbers of trees, the sets of a number are split
into bundles. Every thread then has a unit::

    10 folds and all rows, a tree, four threads        0 1 | 2 3 4 | 5 6 7 | 8 9 10

Bundles share less than all sets do, but fully grown trees soon differ between sets anyway. Measured
on adult, covertype, california, letter and 300,000 x 30, against eleven sets together on a thread:

                       two bundles, in all   eleven bundles, in all   the longest of two, of eleven
    fully grown        1.0 to 1.1            1.0 to 1.6               0.55 to 0.6, 0.1
    6 or 8 levels      1.2                   1.4 to 1.9               0.6 to 0.65, 0.13 to 0.17
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import partial
from typing import Any, TypeVar

from dtrees.coding.coded import CodedMatrix
from dtrees.core.grow.forest import ForestGrowth, Unit, units_of
from dtrees.core.membership.resampling import Resampling, plain
from dtrees.core.model.tree import Tree
from dtrees.core.stores.shared._shared_nodes import MOST_SETS
from dtrees.exceptions import ClusterError
from dtrees.parallel.checkpoint import SavedTrees
from dtrees.parallel.client import cluster_client
from dtrees.parallel.coded_partitions import CodedPartitions, kept_table
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.forest_members import Follow
from dtrees.parallel.memory import able_workers, too_large_for_workers
from dtrees.parallel.partitioned import PartitionedGrowth, grow_here, grow_partitioned
from dtrees.parallel.regimes import ASKED_FOR, TOO_LARGE, Choice, choose_regime
from dtrees.parallel.replicated import grow_replicated
from dtrees.parallel.threads import LocalRunner

K = TypeVar("K")
T = TypeVar("T")

logger = logging.getLogger(__name__)


def grow_trees(
    growth: ForestGrowth,
    numbers: Sequence[int],
    run: LocalRunner,
    *,
    regime: str | None = None,
    look: Callable[[int, Tree], Any] | None = None,
    stats: FitStatistics | None = None,
) -> Generator[tuple[int, Tree, Any]]:
    """Grow trees of a forest; yields numbers, trees and what `look` has said of each.

    They come in the order of the numbers, and are the same in every regime. The caller may take its
    time: other trees grow meanwhile, in the local regime a few per thread and no more; one thread
    grows them as they are asked for. Closing the iterator ends the growth: no task is left on a
    cluster, and threads of `run` are cancelled. Close it (`contextlib.closing`).

    `run` has the tasks of the local regime: a tree is a task, and a single one uses all threads.
    `regime` None: see `dtrees.parallel.regimes`. `look` is called with the number of every tree and
    the tree: in the local regime on the thread that has grown it, in any order; otherwise in the
    calling thread, in the order of the numbers. `stats` are told what was done. Raises ClusterError
    where there is a cluster, or one is asked for, and it cannot be used.
    """
    if len(numbers) == 0:
        return
    stats = FitStatistics() if stats is None else stats
    with closing(_grown(growth, plain(), numbers, run, regime, stats, look)) as grown:
        for number, (_, (tree,), seen) in zip(numbers, grown, strict=True):
            yield number, tree, seen


def grow_sets(
    growth: ForestGrowth,
    numbers: Sequence[int],
    resampling: Resampling,
    run: LocalRunner,
    *,
    regime: str | None = None,
    advance: Callable[[int], object] | None = None,
    stats: FitStatistics | None = None,
    saved: SavedTrees | None = None,
) -> list[tuple[Tree, ...]]:
    """Grow the trees of these numbers of several training sets; returns those of each set.

    The sets are those of `resampling`, as for
    `ForestGrowth.trees_of_sets`. The other arguments are as for `grow_trees`, but sets of a single
    tree go to a cluster only if they are many enough, and the table large enough, unless it is
    asked for. `advance` is called in this thread with the number of trees that have come, as often
    as some have. `saved` has the first trees of each set, and gets the others. Raises ClusterError
    as `grow_trees`.
    """
    saved = SavedTrees([], range(resampling.n_sets)) if saved is None else saved
    stats = FitStatistics() if stats is None else stats
    n_there = [min(len(trees), len(numbers)) for trees in saved.trees()]
    for first in sorted(set(n_there) - {len(numbers)}):
        own = [number for number, n in enumerate(n_there) if n == first]
        sets, left = resampling.some(own), numbers[first:]
        grown = _grown(growth, sets, left, run, regime, stats, n_trees=len(left))
        with closing(grown) as of_sets:
            for some, found, _ in of_sets:
                for number, tree in zip(some, found, strict=True):
                    saved.add(own[number], [tree])
                if advance is not None:
                    advance(len(found))
    return [tuple(trees[: len(numbers)]) for trees in saved.trees()]


def grow_sequence(
    growth: ForestGrowth,
    follow: Follow,
    trees: Sequence[Tree],
    here: Any,
    *,
    regime: str | None,
    stats: FitStatistics,
) -> Generator[tuple[Tree | None, Any]]:
    """Grow trees each of which follows from those before; yields each, and what is told of it.

    `follow` is a generator function of rows, and of the first `trees`, which are there: for them it
    yields None. Rows are those `here`, or those of each member of a cluster (`MemberOfSequence`),
    to which `follow` is sent. Close it (`contextlib.closing`).
    """
    kept = growth.coded.reason if isinstance(growth.coded, CodedPartitions) else None
    choice = choose_regime(regime, n_trees=1, kept=kept)
    if choice.regime != "partitioned" or not choice.on_cluster:
        return follow(here, trees)
    stats.regime, stats.reason = choice.regime, choice.reason
    return _in_blocks(growth, plain(), trees, here.run, choice, stats, follow)


def _grown(
    growth: ForestGrowth,
    resampling: Resampling,
    numbers: Sequence[int],
    run: LocalRunner,
    regime: str | None,
    stats: FitStatistics,
    look: Callable[[int, Tree], Any] | None = None,
    n_trees: int | None = None,
) -> Generator[tuple[range, list[Tree], Any]]:
    """Sets, a tree of each, and what `look` has said of the first; in the order of the numbers.

    Sets that do not grow together come one bundle after the other. `n_trees` are as for
    `choose_regime`. Raises TableTooLargeError where workers are asked for, and none can hold the
    codes.
    """
    coded: Any = growth.coded
    choice = choose_regime(
        regime,
        n_trees=n_trees,
        n_sets=resampling.n_sets,
        n_cells=coded.n_rows * coded.n_columns,
        kept=coded.reason if isinstance(coded, CodedPartitions) else None,
    )
    logger.info("regime %s: %s", choice.regime, choice.reason)
    stats.regime, stats.reason = choice.regime, choice.reason
    if choice.regime == "partitioned":
        for first in range(0, resampling.n_sets, MOST_SETS):  # a bit each
            sets = range(resampling.n_sets)[first : first + MOST_SETS]
            blocks = _in_blocks(growth, resampling.some(sets), numbers, run, choice, stats)
            with closing(blocks) as found:
                for number, trees in in_order(numbers, found):
                    yield sets, trees, None if look is None else look(number, trees[0])
        return
    with cluster_client() if choice.regime == "replicated" else nullcontext() as client:
        n_bundles = 1
        if client is not None:
            n_threads = sum(able_workers(client, coded.nbytes).values())
            if n_threads == 0 and choice.reason == ASKED_FOR:
                raise too_large_for_workers(coded.nbytes, client)
            n_bundles = max(1, min(resampling.n_sets, -(-n_threads // len(numbers))))
            if n_threads == 0:
                client = None
                stats.regime, stats.reason = "local", TOO_LARGE
        if resampling.n_sets == 1 and not resampling.is_plain:  # its target is made once
            growth, resampling = growth.of_set(resampling, 0), plain()
        units = units_of(numbers, resampling.n_sets, n_bundles)
        if client is not None:
            of_units = grow_replicated(growth, resampling, units, client, stats=stats)
            with closing(ended_early(of_units)) as come:
                for unit, trees in in_order(units, come):
                    seen = None if look is None else look(unit.number, trees[0])
                    yield unit.sets, trees, seen
            return
    yield from _grown_here(growth, resampling, units, run, stats, look)


def _grown_here(
    growth: ForestGrowth,
    resampling: Resampling,
    units: Sequence[Unit],
    run: LocalRunner,
    stats: FitStatistics,
    look: Callable[[int, Tree], Any] | None,
) -> Generator[tuple[range, list[Tree], Any]]:
    """What `_grown` yields, of some units, grown on threads of this process."""

    def grow(unit: Unit, run: LocalRunner) -> tuple[list[Tree], Any, Counter[str]]:
        work: Counter[str] = Counter()
        trees = growth.trees(unit, resampling, run, run.n_threads, work)
        return trees, None if look is None else look(unit.number, trees[0]), work

    if min(len(units), run.n_threads) == 1:  # here, and one unit has all threads
        results = (grow(unit, run) for unit in units)
    else:
        alone = run.alone()
        results = run.stream([partial(grow, unit, alone) for unit in units])
    with closing(results) as found:
        for unit, (trees, said, work) in zip(units, found, strict=True):
            stats.counts.update(work)
            yield unit.sets, trees, said


def _in_blocks(
    growth: ForestGrowth,
    resampling: Resampling,
    numbers: Sequence[Any],
    run: LocalRunner,
    choice: Choice,
    stats: FitStatistics,
    follow: Follow | None = None,
) -> Generator[tuple[Any, Any]]:
    """Numbers and their trees by set, grown in rounds, in any order; as `grow_partitioned`."""
    place = cluster_client() if choice.on_cluster else nullcontext()
    with place as client, kept_table(growth.coded, client) as kept:
        if kept.parts is None:
            kept.parts = growth.coded
            if isinstance(growth.coded, CodedMatrix):
                kept.parts = CodedPartitions.cut(growth.coded, choice.reason)
        whole = PartitionedGrowth(growth, kept.parts, resampling)
        if client is None:
            yield from grow_here(whole, kept, numbers, run, stats)
            return
        grown = ended_early(grow_partitioned(whole, kept, numbers, client, stats, follow))
        with closing(grown) as found:
            yield from found


def ended_early(grown: Generator[T]) -> Generator[T]:
    """What grows on a cluster, whose errors are ClusterErrors: they may bring along what has grown.

    Before anything has, errors of X and of the configuration are as they are.
    """
    has_grown = False
    with closing(grown):
        try:
            for each in grown:
                has_grown = True
                yield each
        except ClusterError:
            raise
        except Exception as error:
            if isinstance(error, ValueError | TypeError) and not has_grown:
                raise
            raise ClusterError(f"A growth on a Dask cluster has ended early: {error!r}.") from error


def in_order(numbers: Iterable[K], found: Iterator[tuple[K, T]]) -> Iterator[tuple[K, T]]:
    """Numbered things in the order of the numbers; what comes too early waits.

    Each number is found once, in any order; `found` is read only as far as need be.
    """
    early: dict[K, T] = {}
    for number in numbers:
        while number not in early:
            other, thing = next(found)
            early[other] = thing
        yield number, early.pop(number)
