"""The trees of a forest, grown wherever that is to be done, and handed over in their order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

from dtrees.core.forest import ForestGrowth
from dtrees.core.model import Tree
from dtrees.parallel.client import choose_regime, cluster_client
from dtrees.parallel.local import LocalRunner

T = TypeVar("T")


def grow_trees(
    growth: ForestGrowth,
    numbers: Sequence[int],
    run: LocalRunner,
    *,
    regime: str | None = None,
    look: Callable[[int, Tree], Any] | None = None,
) -> Generator[tuple[int, Tree, Any]]:
    """Grow some trees of a forest.

    Closing the iterator ends the growth: no task is left on a cluster, and `run` is cancelled.
    Close it (`contextlib.closing`).

    Parameters
    ----------
    growth : ForestGrowth
    numbers : sequence of int
        Which trees.
    run : LocalRunner
        Carries the trees in the local regime: a tree is a task, and a single one uses all threads.
    regime : {"local", "replicated"} or None, default=None
        None: see `dtrees.parallel.client`.
    look : callable, default=None
        Called with the number of every tree and the tree: in the local regime on the thread that
        has grown it, in any order; otherwise in the calling thread, in the order of the numbers.

    Yields
    ------
    (int, Tree, object)
        Number, tree and what `look` has said of it, in the order of the numbers; the same trees in
        every regime. The caller may take its time: other trees grow meanwhile, in the local regime
        a few per thread and no more.

    Raises
    ------
    ClusterError
        There is a cluster, or one is asked for, and it cannot be used.
    """
    if len(numbers) == 0:
        return
    if choose_regime(regime).regime == "replicated":
        from dtrees.parallel.replicated import grow_replicated

        with (
            cluster_client() as client,
            closing(grow_replicated(growth, numbers, client)) as grown,
        ):
            for number, tree in in_order(numbers, grown):
                yield number, tree, None if look is None else look(number, tree)
        return

    def grow(number: int, run: LocalRunner) -> tuple[Tree, Any]:
        tree = growth.tree(number, run, run.n_threads)
        return tree, None if look is None else look(number, tree)

    if len(numbers) == 1:
        yield numbers[0], *grow(numbers[0], run)
        return
    alone = run.alone()
    with closing(run.stream([partial(grow, number, alone) for number in numbers])) as results:
        for number, (tree, seen) in zip(numbers, results, strict=True):
            yield number, tree, seen


def in_order(numbers: Iterable[int], found: Iterator[tuple[int, T]]) -> Iterator[tuple[int, T]]:
    """Numbered things in the order of the numbers; what comes too early waits.

    Parameters
    ----------
    numbers : iterable of int
    found : iterator of (int, object)
        Each of the numbers once, in any order. Read only as far as need be.
    """
    early: dict[int, T] = {}
    for number in numbers:
        while number not in early:
            other, thing = next(found)
            early[other] = thing
        yield number, early.pop(number)
