"""Trees of the same sets that have grown before, under limits that allow more.

Candidates of a search that differ in what the leaves must hold are grown from the widest to the
narrowest, and each goes down the trees of a wider one (`_known_tree`)::

    leaves of 1 row     grown
    leaves of 5         known from leaves of 1 where its tests are allowed, else grown
    leaves of 20        known from leaves of 5 ...

A growth that knows which leaves are asked for later grows much of these trees itself
(`_variants`), where it has found a test that they do not allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow._known_tree import KnownTree
from dtrees.core.grow._variants import VariantTrees
from dtrees.core.grow.node_record import PartialTree


@dataclass(eq=False)
class KnownTrees:
    """The trees of a growth, by set, and those of an earlier one.

    Attributes
    ----------
    wider : KnownTrees or None, default=None
        Of the same rows and sets, in the same units. What its rules have in common with those of
        this growth decides whether it is of use (`allow_more`), for each set.
    keeps : bool, default=True
        Whether somebody asks for the trees of this growth.
    narrower : sequence of int, default=()
        What leaves must hold in growths to come, ascending: more rows than in this one, which
        differ in nothing else.
    """

    wider: KnownTrees | None = None
    keeps: bool = True
    narrower: Sequence[int] = ()
    _variants: list[VariantTrees] = field(default_factory=list, repr=False)
    _grown: dict[int, tuple[PartialTree, GrowthRules]] = field(default_factory=dict, repr=False)
    _parts: dict[tuple[int, ...], KnownTrees] = field(default_factory=dict, repr=False)

    def part(self, numbers: Sequence[int]) -> KnownTrees:
        """Of some of the sets, numbered from 0, that are a growth of their own in each growth."""
        key = tuple(numbers)
        if key not in self._parts:
            wider = None if self.wider is None else self.wider.part(key)
            self._parts[key] = KnownTrees(wider, self.keeps, self.narrower)
        return self._parts[key]

    def forget_wider(self) -> None:
        """Hold the trees of this growth only, which is over."""
        self.wider = None
        for part in self._parts.values():
            part.forget_wider()

    def of_sets(
        self, numbers: Sequence[int], rules: Sequence[GrowthRules]
    ) -> list[KnownTree | None] | None:
        """What is known of some sets, which have these rules; None: nothing of any.

        numbers : of the sets. rules : of all sets.
        """
        grown = {} if self.wider is None else self.wider._grown
        found: list[KnownTree | None] = [
            KnownTree(*grown[number])
            if number in grown and allow_more(grown[number][1], rules[number])
            else None
            for number in numbers
        ]
        return None if all(tree is None for tree in found) else found

    def variants(self, least_rows: int) -> list[VariantTrees]:
        """What nodes of the wider trees are with so many rows in leaves, as far as it has grown."""
        grown = [] if self.wider is None else self.wider._variants
        return [some for some in grown if some.least_rows == least_rows]

    def keep_variants(self, grown: Sequence[VariantTrees]) -> None:
        """Keep what nodes are under narrower limits, with what was known before."""
        earlier = [] if self.wider is None else self.wider._variants
        mine = {id(some): some for some in (*earlier, *self._variants, *grown)}
        self._variants = [some for some in mine.values() if some.least_rows in self.narrower]

    def keep(self, number: int, piece: PartialTree, rules: GrowthRules) -> None:
        """Keep the tree of a set, in preorder."""
        if self.keeps:
            self._grown[number] = piece, rules


@lru_cache
def allow_more(rules: GrowthRules, others: GrowthRules) -> bool:
    """Whether some rules allow all splits that others do, and differ in nothing but limits.

    Of other limits than those of leaves any may be the narrower one.
    """
    of_leaves = rules.min_samples_leaf <= others.min_samples_leaf
    of_leaves &= rules.min_weight_leaf <= others.min_weight_leaf
    return of_leaves and _without_limits(rules) == _without_limits(others)


def _without_limits(rules: GrowthRules) -> GrowthRules:
    return replace(
        rules,
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_leaf=0.0,
        min_impurity_decrease=0.0,
    )
