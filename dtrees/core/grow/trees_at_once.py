"""Trees of one iteration, which do not depend on each other, on the threads of a team.

A boosted model of several classes grows a tree for each in every iteration. A thread takes a whole
tree, with a grower of its own, and nobody waits for anybody. Who finds no tree left helps with
those that still grow, node by node::

    chunks     0 ... 6 : trees                                  7 : help
    thread 0   tree 0 ─────▶ tree 2 ───▶ tree 4 ─────▶ tree 6 ─────────▶
    thread 1   tree 1 ───▶ tree 3 ─────▶ tree 5 ───────▶ helps with 6 ─▶

Chunks are claimed in their order, so whoever helps knows that each tree has a thread that leads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dtrees.core.grow._leaf_wise import LeafWiseGrower
from dtrees.core.grow._team import Helpers


def grow_at_once(
    helpers: Helpers,
    growers: Sequence[LeafWiseGrower],
    grow: Callable[[int, LeafWiseGrower], None],
    n_trees: int,
    n_threads: int,
) -> None:
    """Grow trees.

    Parameters
    ----------
    helpers : Helpers
        The team that this thread leads.
    growers : sequence of LeafWiseGrower
        As many as trees may grow at a time: all threads, or all trees. One: trees grow one after
        the other, with the helpers at their nodes.
    grow : callable (number, grower) -> None
        Called for each tree, on any thread.
    n_trees, n_threads : int
        Threads of the team, this one among them; more help chunks than helpers do nothing.

    Raises
    ------
    BaseException
        What `grow` has raised.
    """
    if len(growers) == 1:
        for number in range(n_trees):
            grow(number, growers[0])
        return
    free = list(growers)
    teams = [Helpers() for _ in range(n_trees)]

    def work(number: int) -> None:
        if number >= n_trees:
            for team in teams:
                team.help()
            return
        grower = free.pop()
        grower.helpers = teams[number]
        try:
            grow(number, grower)
        finally:
            teams[number].close()
            free.append(grower)

    helpers.share(work, n_trees + n_threads - 1)
