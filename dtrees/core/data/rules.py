"""What decides where a tree stops and how a split is scored.

`GrowthRules` is the only way in which a user's parameters reach the kernels. Everything in it is
resolved: no "sqrt", no fractions of the rows, no None that stands for a default. Limits that can
be applied to a grown tree as well (`dtrees.core.model.pruning`) stand here because growth may stop
early on them; both ways give the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrees._random import COLUMNS, keyed_draws, keyed_sample
from dtrees.core.data._logarithm import log


@dataclass(frozen=True, kw_only=True)
class GrowthRules:
    """The rules of one growth."""

    # a name of `dtrees.core.data.criteria.CRITERIA`. "entropy" is measured in bits, "poisson" in
    # half deviances, as in scikit-learn.
    criterion: str
    # of both sides, for the criterion of a user
    score: Callable[[np.ndarray, np.ndarray], float] | None = None
    max_depth: int | None = None  # nodes at this depth are leaves; the root has depth 0
    # min_samples_split, min_samples_leaf: counted in rows of positive weight
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0  # least weight of a leaf, in the user's units
    min_impurity_decrease: float = 0.0  # least ``gain / total weight`` of a split
    # columns drawn at each node; None searches all of them and draws nothing
    max_features: int | None = None
    # columns drawn for each tree (`of_tree`), from which its nodes draw theirs; None: all of them
    columns_by_tree: int | None = None
    # one split per searched column, drawn at random, instead of the best one: extremely randomized
    # trees (Geurts, Ernst and Wehenkel 2006)
    random_splits: bool = False
    # of columns whose splits gain the same, a node takes the one that a hash of (seed, tree, node,
    # column) chooses; otherwise it takes the lowest
    random_ties: bool = False
    # what each category of a column in a node takes off the gain of the column's best split, in
    # impurities of a row within its category (`core.search._categories`). 0: nothing.
    category_penalty: float = 0.0
    in_bags: bool = False  # weights are how often a row was drawn, and make it no more than one row
    # seed, tree: key of every draw (`dtrees._random`)
    seed: int = 0
    tree: int = 0
    # "missing" or "majority": where categories go that a node has not seen, with the missing values
    # or to the heavier child
    handle_unknown: str = "missing"
    # by column: 1 where values rise along it, -1 where they fall, else 0. Of numbers, or of the
    # share of class 1 of two; such a column has no categories. None: no column has a direction.
    monotonic: tuple[int, ...] | None = None
    # sets of columns; the tests on the way to a leaf look at columns of one of them. No test looks
    # at a column in none of them, and it does not count as drawn. None: all columns interact.
    interactions: tuple[tuple[int, ...], ...] | None = None
    # by column: how likely it is drawn, in units (`units_of_weights`). None: all are as likely
    column_weights: tuple[int, ...] | None = None

    @property
    def has_constraints(self) -> bool:
        """Whether what a node may do depends on its ancestors."""
        drawn = self.interactions is not None or self.columns_by_tree is not None
        return self.monotonic is not None or drawn

    def of_tree(self, number: int, n_columns: int) -> GrowthRules:
        """The rules of a tree: no test of it looks at a column that is not drawn for it."""
        rules = replace(self, tree=number)
        if self.columns_by_tree is None:
            return rules
        sets = (range(n_columns),) if self.interactions is None else self.interactions
        usable = np.array(sorted(set().union(*sets)))
        places, n_drawn = np.arange(len(usable), dtype=np.uint64), self.columns_by_tree
        if self.column_weights is None:
            is_drawn = keyed_sample(self.seed, COLUMNS, number, places, len(usable), n_drawn)
        else:  # those that come first, where each comes as often as it weighs
            draws = keyed_draws(self.seed, COLUMNS, number, places)
            comes = -log((draws >> np.uint64(11)) * 2.0**-53 + 2.0**-54)
            comes /= np.array(self.column_weights)[usable]
            is_drawn = np.argsort(comes, kind="stable")[:n_drawn]
        drawn = set(usable[is_drawn].tolist())
        own = tuple(tuple(column for column in group if column in drawn) for group in sets)
        return replace(rules, interactions=own)


@dataclass(frozen=True, kw_only=True)
class BoostingRules:
    """The rules of the trees of a boosted model."""

    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    # min_samples_split, min_samples_leaf: counted in rows of positive weight
    min_samples_split: int = 2
    min_samples_leaf: int = 20
    min_child_weight: float = 1e-3  # least sum of second derivatives of each side of a split
    min_split_gain: float = 0.0  # a split has to gain more
    # l2, l1: added to the second derivative of every leaf, and taken off its absolute first one
    l2: float = 0.0
    l1: float = 0.0
    max_delta_step: float = 0.0  # largest step of a leaf, before the learning rate. 0: no limit.
    # weight, in rows of mean second derivative, that the step of the node above has
    path_smooth: float = 0.0
    # what each of many categories that go left takes off the gain, in mean squares of the gradients
    # divided by the mean of the hessians
    category_penalty: float = 0.0
    handle_unknown: str = "missing"  # as for `GrowthRules`
    monotonic: tuple[int, ...] | None = None  # as for `GrowthRules`, of raw predictions
    interactions: tuple[tuple[int, ...], ...] | None = None  # as for `GrowthRules`
    column_weights: tuple[int, ...] | None = None  # as for `GrowthRules`
    # share of the columns, of those that may be used, that are drawn at each node
    max_features: float = 1.0
    # share that is drawn for each tree, from whose columns nodes draw theirs
    columns_by_tree: float = 1.0
    seed: int = 0  # key of these draws

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
