"""The growths of a search, in an order in which the later ones know much of their trees.

Candidates that differ in what leaves must hold are growths of their own. But the narrower ones go
down the trees of the wider ones (`dtrees.core.grow.known`)::

    min_samples_leaf=1  ───▶ grown
    min_samples_leaf=5  ───▶ grown where the tests of the first are not allowed
    min_samples_leaf=20 ───▶ grown where those of the second are not

A growth is told which leaves follow, and grows much of those trees itself
(`dtrees.core.grow._variants`).

Trees are held as long as a later growth asks for them: those of one growth, in a list of numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any

from dtrees.core.grow.known import KnownTrees
from dtrees.model_selection.candidates import LATE, Growth, key_of

OF_LEAVES = ("min_samples_leaf", "min_weight_fraction_leaf")  # the greater, the fewer splits


def with_known_trees(growths: Sequence[Growth]) -> Iterator[tuple[Growth, KnownTrees]]:
    """Growths, the widest first, and what is known of the trees of each, which keeps its own."""
    ordered = widest_first(growths)
    last = {id(wider): number for number, (_, wider) in enumerate(ordered) if wider is not None}
    narrower = larger_leaves(ordered)
    known: dict[int, KnownTrees] = {}
    for number, (growth, wider) in enumerate(ordered):
        keeps = id(growth) in last
        mine = KnownTrees(known.get(id(wider)), keeps, narrower.get(id(growth), ()))
        yield growth, mine
        mine.forget_wider()
        known[id(growth)] = mine
        known = {key: trees for key, trees in known.items() if last.get(key, 0) > number}


def larger_leaves(ordered: Sequence[tuple[Growth, Growth | None]]) -> dict[int, list[int]]:
    """What leaves must hold in the growths that know a growth, and those that know these.

    By the `id` of growths. Each is known to the first that comes which asks for more rows in
    leaves and differs in nothing else. Gains are not compared: leaves that gain too little may be
    none where they hold more rows.
    """
    found: dict[int, list[int]] = {}
    ladders: dict[int, list[Growth]] = {}  # by the id of their last growth
    for growth, wider in ordered:
        ladder: list[Growth] = []
        if wider is not None and _differ_in_rows(wider.estimator, growth.estimator):
            ladder = ladders.pop(id(wider), [])
        for other in ladder:
            found.setdefault(id(other), []).append(growth.estimator.min_samples_leaf)
        ladders[id(growth)] = [*ladder, growth]
    return found


def _differ_in_rows(wider: Any, narrower: Any) -> bool:
    """Whether an estimator asks for more rows in leaves, and is the same but for that."""
    rows = wider.min_samples_leaf, narrower.min_samples_leaf
    if not all(isinstance(least, Integral) for least in rows) or rows[0] >= rows[1]:
        return False
    names = ("min_weight_fraction_leaf", "max_depth", "min_samples_split")
    are_equal = all(getattr(wider, name) == getattr(narrower, name) for name in names)
    return are_equal and wider.min_impurity_decrease == narrower.min_impurity_decrease == 0


def widest_first(growths: Sequence[Growth]) -> list[tuple[Growth, Growth | None]]:
    """Growths in their order, and for each the narrowest one before it that allows more splits.

    Growths are compared that differ in limits only; shares and numbers of rows are not compared.
    """
    if not all(hasattr(growth.estimator, name) for growth in growths for name in OF_LEAVES):
        return [(growth, None) for growth in growths]  # of boosted models nothing is known
    if not all(isinstance(limit, Real) for growth in growths for limit in _of_leaves(growth)):
        return [(growth, None) for growth in growths]  # some fits will fail
    alike: dict[Hashable, list[Growth]] = {}
    found: list[tuple[Growth, Growth | None]] = []
    for growth in sorted(growths, key=_of_leaves):
        rows, weight = _of_leaves(growth)
        parameters = growth.estimator.get_params(deep=False)
        others = {name: parameters[name] for name in parameters.keys() - {*LATE, *OF_LEAVES}}
        key = isinstance(rows, Integral), key_of(others)
        wider = alike.setdefault(key, [])
        known = [each for each in wider if _of_leaves(each)[1] <= weight]
        found.append((growth, known[-1] if known else None))
        wider.append(growth)
    return found


def _of_leaves(growth: Growth) -> tuple[Any, ...]:
    """What the leaves of a growth must hold: rows, and a share of the weight."""
    return tuple(getattr(growth.estimator, name) for name in OF_LEAVES)
