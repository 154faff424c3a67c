"""What decides where a tree stops and how a split is scored.

`GrowthRules` is the only way in which a user's parameters reach the kernels. Everything in it is
resolved: no "sqrt", no fractions of the rows, no None that stands for a default. Limits that can
be applied to a grown tree as well (`dtrees.core.model.pruning`) stand here because growth may stop
early on them; both ways give the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class GrowthRules:
    """The rules of one growth.

    Parameters
    ----------
    criterion : str
        A name of `dtrees.core.data.criteria.CRITERIA`. "entropy" is measured in bits, "poisson" in
        half deviances, as in scikit-learn.
    score : callable or None, default=None
        Of both sides, for the criterion of a user.
    max_depth : int or None, default=None
        Nodes at this depth are leaves; the root has depth 0.
    min_samples_split, min_samples_leaf : int, default=2, 1
        Counted in rows of positive weight.
    min_weight_leaf : float, default=0.0
        Least weight of a leaf, in the user's units.
    min_impurity_decrease : float, default=0.0
        Least ``gain / total weight`` of a split.
    max_features : int or None, default=None
        Columns drawn at each node; None searches all of them and draws nothing.
    random_splits : bool, default=False
        One split per searched column, drawn at random, instead of the best one: extremely
        randomized trees (Geurts, Ernst and Wehenkel 2006).
    random_ties : bool, default=False
        Of columns whose splits gain the same, a node takes the one that a hash of (seed, tree,
        node, column) chooses; otherwise it takes the lowest.
    seed, tree : int, default=0
        Key of every draw (`dtrees._random`).
    category_penalty : float, default=0.0
        What each category of a column in a node takes off the gain of the column's best split, in
        impurities of a row within its category (`core.search._categories`). 0: nothing.
    in_bags : bool, default=False
        Weights are how often a row was drawn, and make it no more than one row.
    handle_unknown : {"missing", "majority"}, default="missing"
        Where categories go that a node has not seen: with the missing values or to the heavier
        child.
    monotonic : tuple of int or None, default=None
        By column: 1 where values rise along it, -1 where they fall, else 0. Of numbers, or of the
        share of class 1 of two; such a column has no categories. None: no column has a direction.
    interactions : tuple of tuple of int, or None, default=None
        Sets of columns; the tests on the way to a leaf look at columns of one of them. No test
        looks at a column in none of them, and it does not count as drawn. None: all columns
        interact.
    """

    criterion: str
    score: Callable[[np.ndarray, np.ndarray], float] | None = None
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    max_features: int | None = None
    random_splits: bool = False
    random_ties: bool = False
    category_penalty: float = 0.0
    in_bags: bool = False
    seed: int = 0
    tree: int = 0
    handle_unknown: str = "missing"
    monotonic: tuple[int, ...] | None = None
    interactions: tuple[tuple[int, ...], ...] | None = None

    @property
    def has_constraints(self) -> bool:
        """Whether what a node may do depends on its ancestors."""
        return self.monotonic is not None or self.interactions is not None


@dataclass(frozen=True, kw_only=True)
class BoostingRules:
    """The rules of the trees of a boosted model.

    Parameters
    ----------
    max_leaf_nodes, max_depth : int or None, default=31, None
    min_samples_leaf : int, default=20
        Rows of positive weight.
    min_child_weight : float, default=0.001
        Least sum of second derivatives of each side of a split.
    min_split_gain : float, default=0.0
        A split has to gain more.
    l2, l1 : float, default=0.0
        Added to the second derivative of every leaf, and taken off its absolute first one.
    max_delta_step : float, default=0.0
        Largest step of a leaf, before the learning rate. 0: no limit.
    path_smooth : float, default=0.0
        Weight, in rows of mean second derivative, that the step of the node above has.
    category_penalty : float, default=0.0
        What each of many categories that go left takes off the gain, in mean squares of the
        gradients divided by the mean of the hessians.
    handle_unknown : {"missing", "majority"}, default="missing"
        As for `GrowthRules`.
    monotonic : tuple of int or None, default=None
        As for `GrowthRules`, of raw predictions.
    interactions : tuple of tuple of int, or None, default=None
        As for `GrowthRules`.
    max_features : float, default=1.0
        Share of the columns, of those that may be used, that are drawn at each node.
    columns_by_tree : float, default=1.0
        The same share for each tree, from whose columns nodes draw theirs.
    seed : int, default=0
        Key of these draws.
    """

    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    min_child_weight: float = 1e-3
    min_split_gain: float = 0.0
    l2: float = 0.0
    l1: float = 0.0
    max_delta_step: float = 0.0
    path_smooth: float = 0.0
    category_penalty: float = 0.0
    handle_unknown: str = "missing"
    monotonic: tuple[int, ...] | None = None
    interactions: tuple[tuple[int, ...], ...] | None = None
    max_features: float = 1.0
    columns_by_tree: float = 1.0
    seed: int = 0

    @property
    def has_regularized_steps(self) -> bool:
        """Whether steps are not Newton's, beside `l2`."""
        return self.l1 > 0 or self.max_delta_step > 0 or self.path_smooth > 0


def sets_of_columns(interactions: Sequence[Sequence[int]], n_columns: int) -> np.ndarray:
    """The sets that each column is in, a bit each; uint64 (n_columns, n_sets // 64 + 1)."""
    found = np.zeros((n_columns, len(interactions) // 64 + 1), dtype=np.uint64)
    for number, columns in enumerate(interactions):
        found[list(columns), number // 64] |= np.uint64(1 << number % 64)
    return found
