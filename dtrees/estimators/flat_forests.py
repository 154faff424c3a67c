"""Forests of several training sets that end each at a tree of its own (``oob_tol``).

Trees of one number grow together, for all sets that have not ended::

    wave        0..19   20..23   24..27   28..32  ...
    set 0       ------  ----|                          has enough after 22 trees
    set 1       ------  -----    -----    ---|
    sets left   2       2        1        1

No forest ends before tree 20 (`early_stopping`). A wave after that is a fifth of the trees that are
there: what is grown beyond the end of a set is lost, a tenth of its trees on average, while trees
that grow together cost a fraction of those that grow alone. Which tree is the last one of a set is
what its scores say, whatever the waves are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Resampling
from dtrees.core.model.tree import Tree
from dtrees.core.predict.out_of_bag import OutOfBag, add_to_sums
from dtrees.estimators.early_stopping import WINDOW, OobStopping
from dtrees.typing import Runner

FIRST = 2 * WINDOW  # trees of the first wave
SHARE = 5  # of the trees that are there: one more for so many


@dataclass(eq=False)
class FlatForest:
    """The forest of one set.

    Attributes
    ----------
    oob : OutOfBag
    stopping : OobStopping
    trees : list of Tree
    scores : list of float
        Of the first 1, 2, ... trees.
    error : ValueError or None
        Of the score, which ends the forest.
    """

    oob: OutOfBag
    stopping: OobStopping
    trees: list[Tree] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    error: ValueError | None = None

    def ends(self, n_trees: int) -> bool:
        """Whether the trees that were added up are enough."""
        try:
            return self.stopping.ends(self.scores, n_trees)
        except ValueError as error:
            self.error = error
            return True


def grow_until_flat(
    made: list[FlatForest],
    n_trees: int,
    resampling: Resampling,
    grow: Callable[[ForestGrowth, range, Resampling], list[tuple[Tree, ...]]],
    run: Runner,
    advance: Callable[[int], object],
) -> None:
    """Grow the trees of forests, one for each set, until these have enough.

    Parameters
    ----------
    made : list of FlatForest
        Without trees, of one growth.
    n_trees : int
        The most of a forest.
    resampling : Resampling
        The sets.
    grow : callable (growth, numbers, sets) -> trees by set
    run : Runner
        Adds up the trees, a set on a thread; scores are asked for there.
    advance : callable (int) -> object
        Hears of trees that are not wanted any more.
    """
    left = list(range(len(made)))
    first = 0
    while left and first < n_trees:
        numbers = range(first, min(n_trees, max(FIRST, first + max(1, first // SHARE))))
        sets = resampling if len(left) == len(made) else resampling.some(left)
        mine = [made[number] for number in left]
        trees = grow(mine[0].oob.growth, numbers, sets)
        ended = [False] * len(left)

        def enough(i: int, mine: list[FlatForest] = mine, ended: list[bool] = ended) -> bool:
            ended[i] = mine[i].ends(n_trees)
            return ended[i]

        add_to_sums([each.oob for each in mine], numbers, trees, sets, run, enough)
        for each, own in zip(mine, trees, strict=True):
            each.trees += own[: len(each.scores) - len(each.trees)]
        first = numbers.stop
        advance(sum(ended) * (n_trees - first))
        left = [number for number, end in zip(left, ended, strict=True) if not end]
