"""The trees of a forest: one table, a bag of its rows for each tree.

A tree is a function of the table, the rules, the seed and its number. So trees are grown anywhere,
in any order and as often as need be; the same number gives the same tree.

Where there are several training sets, every number stands for a tree of each of them. What is grown
in one go, a *unit*, is the trees of one number and one bundle of sets, which share their growth::

                 sets 0 1 2 3    sets 4 5 6
    number 0     unit 0          unit 1
    number 1     unit 2          unit 3

A forest that is fitted has one set, and its units are its trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.assembly import Thresholds, frozen
from dtrees.core.grow.shared import grow
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import Bags, Resampling
from dtrees.core.membership.shares import Shares
from dtrees.core.model.pruning import PruningLimits
from dtrees.core.model.tree import Tree
from dtrees.typing import Runner, serial

FIRST_ROWS = 1_024  # of which every set has one in a bag, as a rule


class Unit(NamedTuple):
    """The trees of a number, for a bundle of sets."""

    number: int
    sets: range


def units_of(numbers: Iterable[int], n_sets: int = 1, n_bundles: int = 1) -> list[Unit]:
    """The trees of some numbers for all sets, in bundles: the more there are, the less is shared.

    There are at most as many bundles as sets.
    """
    ends = [n_sets * bundle // n_bundles for bundle in range(n_bundles + 1)]
    return [Unit(number, range(*ends_of)) for number in numbers for ends_of in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class ForestGrowth:
    """What the trees of a forest are grown from.

    `coded` may stand for a table whose rows are elsewhere, for growth in rounds. `target` is that
    of all rows, in units with room for the multiplicities of a bag. ``rules.tree`` is set to the
    number of each tree. Without `bags` every tree sees every row once. `values` is
    `CodeBook.code_values`, for random splits. `shares` are limits that are shares of the rows of
    the table, or of the weight of the bag; None: there are none. `max_leaf_nodes` and `ccp_alpha`
    prune the grown tree. `arena` has memory that a tree leaves to the next one.
    """

    coded: Any
    target: Target
    rules: GrowthRules
    bags: Bags | None
    thresholds: Thresholds
    values: tuple[np.ndarray, np.ndarray] | None = None
    shares: Shares | None = None
    max_leaf_nodes: int | None = None
    ccp_alpha: float = 0.0
    arena: Arena = field(default_factory=Arena, repr=False)

    def tree(self, number: int, run: Runner = serial, n_threads: int = 1) -> Tree:
        """Grow a tree, on `n_threads`; a forest is better off with a tree per thread."""
        target = self.target
        if self.bags is not None:
            target = target.bagged(self.bags.multiplicity(number, target.has_weight))
        rules = self.rules.of_tree(number, self.coded.n_columns)
        if self.shares is not None:
            rules = self.shares.rules(rules, self.target, target)
        how: dict[str, Any] = {"values": self.values, "arena": self.arena}
        source = DatasetSource(self.coded, target, rules, run=run, n_threads=n_threads, **how)
        (tree,) = frozen([source.finish()], target, self.coded.n_codes, self.thresholds, rules)
        return self.pruned(tree)

    def trees(
        self,
        unit: Unit,
        resampling: Resampling,
        run: Runner = serial,
        n_threads: int = 1,
        work: Counter[str] | None = None,
    ) -> list[Tree]:
        """Grow the trees of a unit, one for each of its sets; arguments as for `trees_of_sets`."""
        if len(unit.sets) > 1:
            own = resampling.some(unit.sets)
            return self.trees_of_sets(unit.number, own, run, n_threads, work)
        growth = self  # a set alone shares nothing
        if not resampling.is_plain or resampling.class_weights is not None:
            growth = self.of_set(resampling, unit.sets[0])
        return [growth.tree(unit.number, run, n_threads)]

    def pruned(self, tree: Tree) -> Tree:
        """A grown tree, pruned by the limits that are decided afterwards."""
        if self.max_leaf_nodes is None and self.ccp_alpha == 0.0:
            return tree
        limits = PruningLimits(max_leaf_nodes=self.max_leaf_nodes, ccp_alpha=self.ccp_alpha)
        return limits.prune(tree)

    def trees_of_sets(
        self,
        number: int,
        resampling: Resampling,
        run: Runner = serial,
        n_threads: int = 1,
        work: Counter[str] | None = None,
    ) -> list[Tree]:
        """Grow a tree for each training set: the one of a forest in which other rows weigh nothing.

        Every set has a cell once or not at all, and rows of positive weight. The runner's event
        ``cancelled`` ends the growth. `work` is told what the sets have shared.
        """
        rules = self.rules.of_tree(number, self.coded.n_columns)
        target = self.target
        apart = np.zeros(resampling.n_sets, dtype=bool)
        if self.bags is not None:
            times = self.times(number)
            target = target.bagged(times)
            apart |= self._without_a_row(resampling, times)
        together = np.flatnonzero(~apart)
        trees = {}
        if len(together) > 0:
            how: dict[str, Any] = {"values": self.values, "arena": self.arena, "work": work}
            source = DatasetSource(self.coded, target, rules, run=run, n_threads=n_threads, **how)
            some = resampling.some(together)
            own = [rules] * len(together)
            if self.shares is not None:
                own = self.shares.rules_of_sets(rules, some, self.target, target)
            grown = grow(source, own, some, self.thresholds)
            trees = dict(zip(together.tolist(), map(self.pruned, grown), strict=True))
        for i in np.flatnonzero(apart).tolist():
            trees[i] = self.of_set(resampling, i).tree(number, run, n_threads)
        return [trees[i] for i in range(resampling.n_sets)]

    def of_set(self, resampling: Resampling, number: int) -> ForestGrowth:
        """The growth of a training set: other rows weigh nothing."""
        return replace(self, target=resampling.target_of(number, self.target))

    def _without_a_row(self, resampling: Resampling, times: np.ndarray) -> np.ndarray:
        """Sets that have no row in a bag of all rows, and so a bag of their own; bool (n_sets,)."""
        live = self.target.has_weight
        in_bag = (times > 0) if live is None else (times > 0) & live
        assert resampling.cells is not None
        first = replace(resampling, cells=resampling.cells[:FIRST_ROWS])
        seen: np.ndarray = first.totals(in_bag[:FIRST_ROWS]) > 0
        return ~seen if seen.all() else resampling.totals(in_bag) == 0

    def times_of_sets(self, number: int, resampling: Resampling) -> list[np.ndarray]:
        """`times` for each training set: one array for all that have the bag of all rows."""
        times = self.times(number)
        own = self._without_a_row(resampling, times).tolist()
        return [
            self.of_set(resampling, i).times(number) if is_own else times
            for i, is_own in enumerate(own)
        ]

    def times(self, number: int) -> np.ndarray:
        """How often each row is in the bag of a tree; uint16 (n_rows,)."""
        if self.bags is None:
            return np.ones(self.coded.n_rows, dtype=np.uint16)
        return self.bags.multiplicity(number, self.target.has_weight)

    def rows_out(self, times: np.ndarray) -> np.ndarray:
        """Rows that are not in a bag, by how often each row is; int64 (n,), ascending."""
        assert self.bags is not None
        return self.bags.rows_out(times)
