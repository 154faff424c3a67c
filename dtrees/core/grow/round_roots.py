"""Roots of trees that grow in rounds: what they know of their bags, and how they are searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dtrees._random import BOOTSTRAP, keyed_largest
from dtrees.coding.target import Target
from dtrees.core.data.scale import Scale, scale_of_sums
from dtrees.core.grow._round_tree import RoundTree
from dtrees.core.grow.round_spec import Blocks, RoundSpec
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_counts import CLASS_0, HIGHEST, WEIGHT, N
from dtrees.core.stores.blocks.messages import Root


def roots_of(spec: RoundSpec, numbers: Sequence[int], blocks: Blocks) -> list[Root]:
    """The root of each tree, with what it needs to know of its bag.

    Bags are summed up before they are counted to be balanced, for the scale of a deviance, or
    because they may be empty. With several sets, empty bags are seen when they are counted.
    """
    roots = [Root(node, number) for node, number in enumerate(numbers)]
    draws = spec.common.draws
    is_poisson = spec.common.rules.criterion == "poisson"
    needs_counts = draws is not None and (draws.balanced or spec.may_be_empty)
    if spec.n_sets > 1 or not (is_poisson or needs_counts):
        return roots
    bags = blocks.bags(roots)
    empty = [index for index, (counts, _) in enumerate(bags) if counts.sums[0, N] == 0]
    if empty:
        assert draws is not None
        for index in empty:
            keys = np.array(sorted(set(bags[index][1])), dtype=np.uint64)
            key = int(keyed_largest(draws.seed, BOOTSTRAP, roots[index].number, keys))
            roots[index] = replace(roots[index], key=key)
        again = blocks.bags([roots[index] for index in empty])
        for index, bag in zip(empty, again, strict=True):
            bags[index] = bag
    return [
        _adjusted(spec, root, counts.sums[0]) for root, (counts, _) in zip(roots, bags, strict=True)
    ]


def _adjusted(spec: RoundSpec, root: Root, sums: np.ndarray) -> Root:
    """A root with the class weights and the scale of its bag."""
    draws = spec.common.draws
    if draws is not None and draws.balanced:
        multiplier, exponent = spec.target.balanced_multipliers(sums[CLASS_0:].tolist())
        root = replace(root, class_multiplier=multiplier, class_exponent=exponent)
    if spec.common.rules.criterion == "poisson":
        scale = _scale_of(spec, spec.target, sums)
        root = replace(root, fixed_point=scale.fixed_point)
    return root


def target_of(spec: RoundSpec, root: Root) -> Target:
    """Some rows of the target of a bag, for its units."""
    target = spec.target
    if spec.common.draws is not None:
        target = target.bagged(np.ones(target.n_rows, dtype=np.uint16))
    return root.balanced(target)


def columns_of(spec: RoundSpec, number: int) -> Dataset:
    """What columns of a tree are drawn from. Nothing is searched in it, so it needs no scale."""
    rules = replace(spec.common.rules, tree=number)
    return Dataset(spec.sample, target_of(spec, Root(0, number)), rules)


def tree_of(
    spec: RoundSpec, number: int, training_set: int, target: Target, sums: np.ndarray
) -> RoundTree:
    """A tree of a set whose root has these sums; without nodes.

    Parameters
    ----------
    spec : RoundSpec
    number : int
        Of the tree.
    training_set : int
    target : Target
        As `target_of`.
    sums : int64 (10 + n_classes,)
    """
    scale = _scale_of(spec, target, sums)
    n_rows = int(spec.n_rows[training_set])
    rules = spec.shares.applied(spec.common.rules, n_rows, int(sums[WEIGHT]) * target.weight_unit)
    rules = replace(rules, tree=number)
    dataset = Dataset(spec.sample, target, rules, scale, spec.values)
    return RoundTree(dataset, rules, scale)


def _scale_of(spec: RoundSpec, target: Target, sums: np.ndarray) -> Scale:
    criterion = spec.common.rules.criterion
    weight, highest = sums[[WEIGHT, HIGHEST]].tolist()
    return scale_of_sums(weight, max(1, highest), target.weight_unit, criterion)
