"""Roots of trees that grow in rounds: what they know of their bags, and how they are searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrees._random import BOOTSTRAP, keyed_largest
from dtrees.coding.target import Target
from dtrees.core.data.scale import Scale, scale_of_sums
from dtrees.core.grow._round_tree import RoundTree
from dtrees.core.grow.round_spec import Blocks, RoundSpec
from dtrees.core.membership.class_weights import ClassWeights
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_counts import CLASS_0, HIGHEST, TARGET, WEIGHT, N
from dtrees.core.stores.blocks.messages import Root


@dataclass(frozen=True)
class Roots:
    """Where the trees of a batch begin.

    Attributes
    ----------
    roots : list of Root
    sums : list of int64 (n_sets, 10 + n_classes), or None
        By tree, as blocks count; None: they have not been asked.
    """

    roots: list[Root]
    sums: list[np.ndarray] | None = None


def roots_of(spec: RoundSpec, numbers: Sequence[int], blocks: Blocks) -> Roots:
    """The root of each tree, with what it needs to know of its bag.

    Bags are summed up before they are counted for the scale of a deviance, because they may be
    empty, or because they are gathered at once. With several sets, empty bags are seen when they
    are counted.
    """
    roots = [Root(node, number) for node, number in enumerate(numbers)]
    draws = spec.common.draws
    is_poisson = spec.common.rules.criterion == "poisson"
    may_be_empty = draws is not None and spec.may_be_empty and spec.n_sets == 1
    if not (may_be_empty or is_poisson or spec.is_small):
        return Roots(roots)
    bags = blocks.bags(roots, spec.n_sets)
    empty = [index for index, (counts, _) in enumerate(bags) if counts.sums[0, N] == 0]
    if empty and spec.n_sets == 1:
        assert draws is not None
        for index in empty:
            keys = np.array(sorted(set(bags[index][1])), dtype=np.uint64)
            key = int(keyed_largest(draws.seed, BOOTSTRAP, roots[index].number, keys))
            roots[index] = replace(roots[index], key=key)
        again = blocks.bags([roots[index] for index in empty], spec.n_sets)
        for index, bag in zip(empty, again, strict=True):
            bags[index] = bag
    for index, (counts, _) in enumerate(bags):
        if is_poisson:  # the same for all sets (`sets_of_scales`)
            scale = _scale_of(spec, spec.target, counts.sums[0])
            roots[index] = replace(roots[index], fixed_point=scale.fixed_point)
    return Roots(roots, [counts.sums for counts, _ in bags])


def sets_of_scales(spec: RoundSpec, begin: Roots) -> list[list[int]]:
    """Sets whose trees can grow together: those of a deviance, where they have the same scales.

    What a row adds depends on the scale then. A set without a row in one of the bags is alone.
    """
    if begin.sums is None or spec.common.rules.criterion != "poisson":
        return [list(range(spec.n_sets))]
    groups: dict[tuple[float, ...], list[int]] = {}
    alone = []
    for number in range(spec.n_sets):
        rows = [sums[number] for sums in begin.sums]
        if any(own[N] == 0 for own in rows):
            alone.append([number])
            continue
        scales = tuple(_scale_of(spec, spec.target, own).fixed_point for own in rows)
        groups.setdefault(scales, []).append(number)
    return [*groups.values(), *alone]


def target_of(spec: RoundSpec) -> Target:
    """Some rows of the target of a bag, as blocks count it: for its units."""
    target = spec.target
    if spec.common.draws is not None:
        target = target.bagged(np.ones(target.n_rows, dtype=np.uint16))
    return target


def columns_of(spec: RoundSpec, number: int) -> Dataset:
    """What columns of a tree are drawn from. Nothing is searched in it, so it needs no scale."""
    rules = replace(spec.common.rules, tree=number)
    return Dataset(spec.sample, target_of(spec), rules)


def weighed(sums: np.ndarray, class_weights: ClassWeights, sets: Sequence[int]) -> np.ndarray:
    """Sums of some sets with their class weights; int64 (n_sets, 10 + n_classes), a copy."""
    found = sums.copy()
    found[:, CLASS_0:] *= class_weights.multiplier[sets]
    found[:, WEIGHT] = found[:, CLASS_0:].sum(axis=1)
    found[:, TARGET] = found[:, CLASS_0 + 1] if found.shape[1] > CLASS_0 + 1 else 0
    return found


def tree_of(
    spec: RoundSpec,
    number: int,
    training_set: int,
    sums: np.ndarray,
    class_weights: ClassWeights | None = None,
) -> RoundTree:
    """A tree of a set whose root has these sums; without nodes.

    Parameters
    ----------
    spec : RoundSpec
    number : int
        Of the tree.
    training_set : int
    sums : int64 (10 + n_classes,)
        With class weights.
    class_weights : ClassWeights or None, default=None
        Of the sets, where blocks count without them.
    """
    target = target_of(spec)
    if class_weights is not None:
        target = class_weights.of(target, training_set)
    scale = _scale_of(spec, target, sums)
    n_rows = int(spec.n_rows[training_set])
    rules = spec.shares.applied(spec.common.rules, n_rows, int(sums[WEIGHT]) * target.weight_unit)
    rules = replace(rules, tree=number)
    dataset = Dataset(spec.sample, target, rules, scale, spec.values)
    if class_weights is None:
        return RoundTree(dataset, rules, scale)
    counted = columns_of(spec, number)
    return RoundTree(dataset, rules, scale, counted, class_weights.multiplier[training_set])


def _scale_of(spec: RoundSpec, target: Target, sums: np.ndarray) -> Scale:
    criterion = spec.common.rules.criterion
    weight, highest = sums[[WEIGHT, HIGHEST]].tolist()
    return scale_of_sums(weight, max(1, highest), target.weight_unit, criterion)
