"""The trees of a forest, grown wherever that is to be done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dtrees.core.forest import ForestGrowth
from dtrees.core.model import Tree
from dtrees.parallel.client import choose_regime, cluster_client
from dtrees.parallel.local import LocalRunner


def grow_trees(
    growth: ForestGrowth,
    numbers: Sequence[int],
    run: LocalRunner,
    *,
    regime: str | None = None,
    on_tree: Callable[[int, Tree], object] | None = None,
) -> list[Tree]:
    """Grow some trees of a forest.

    Parameters
    ----------
    growth : ForestGrowth
    numbers : sequence of int
        Which trees.
    run : LocalRunner
        Carries the trees in the local regime: a tree is a task, and a single one uses all threads.
    regime : {"local", "replicated"} or None, default=None
        None: see `dtrees.parallel.client`.
    on_tree : callable, default=None
        Called with the number of every tree and the tree, as soon as it is there, in any order;
        one call at a time in the replicated regime, on the thread that has grown the tree in the
        local one. What it raises ends the growth.

    Returns
    -------
    list of Tree
        In the order of the numbers; the same trees in every regime.

    Raises
    ------
    ClusterError
        There is a cluster, or one is asked for, and it cannot be used.
    """
    if len(numbers) == 0:
        return []
    if choose_regime(regime).regime == "replicated":
        from dtrees.parallel.replicated import grow_replicated

        with cluster_client() as client:
            return grow_replicated(growth, numbers, client, on_tree=on_tree)

    def grow(number: int, n_threads: int | None = None) -> Tree:
        tree = growth.tree(number) if n_threads is None else growth.tree(number, run, n_threads)
        if on_tree is not None:
            on_tree(number, tree)
        return tree

    if len(numbers) == 1:
        return [grow(numbers[0], run.n_threads)]
    return run([partial(grow, number) for number in numbers])
