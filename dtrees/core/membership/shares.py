"""Limits that are shares of what a training set has.

A share of the rows is one of the rows of positive weight: those that weigh nothing do not count. So
the same share is another number in each training set of a table, as it would be for a fit of the
rows of the set alone::

    all rows           100 rows     min_samples_leaf=0.05 -> 5
    without fold 0      90 rows                           -> 5
    without half        50 rows                           -> 3

`GrowthRules` knows numbers only: they are made from the shares here, as soon as it is known which
rows there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import units_of
from dtrees.core.membership.resampling import Resampling


def rows_of_share(share: float, n_rows: int) -> int:
    """A share as a number of rows: rounded up."""
    return math.ceil(share * n_rows)


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Limits of growth as shares; 0: the limit is a number, and stands in the rules."""

    # min_samples_split, min_samples_leaf: of the rows of positive weight of a training set, rounded
    # up
    min_samples_split: float = 0.0
    min_samples_leaf: float = 0.0
    min_weight_leaf: float = 0.0  # of its weight

    def rules(self, rules: GrowthRules, table: Target, bag: Target | None = None) -> GrowthRules:
        """The rules of one training set: limits that are shares are replaced, whatever they were.

        Rows of `table` are counted, and the weight of `bag`; None: that of the table.
        """
        weighed = table if bag is None else bag
        return self.applied(rules, table.n_live, weighed.total_weight)

    def rules_of_sets(
        self, rules: GrowthRules, resampling: Resampling, table: Target, bag: Target | None = None
    ) -> list[GrowthRules]:
        """The rules of each training set; arguments as for `rules`, of all rows.

        Every set has a cell once or not at all.
        """
        n_rows, weight = np.zeros(resampling.n_sets, dtype=np.int64), np.zeros(resampling.n_sets)
        if max(self.min_samples_split, self.min_samples_leaf) > 0:
            n_rows = resampling.totals(table.has_weight)
        if self.min_weight_leaf > 0:
            weighed = table if bag is None else bag
            if resampling.class_weights is None:
                weight = resampling.totals(units_of(weighed)) * weighed.weight_unit
            else:  # as of its own target, bit for bit
                own = [resampling.target_of(i, weighed) for i in range(resampling.n_sets)]
                weight = np.array([each.total_weight for each in own])
        return [
            self.applied(rules, n, w) for n, w in zip(n_rows.tolist(), weight.tolist(), strict=True)
        ]

    def applied(self, rules: GrowthRules, n_rows: int, weight: float) -> GrowthRules:
        """The rules of a training set with so many rows of positive weight, and this weight."""
        limits: dict[str, Any] = {}
        if self.min_samples_split > 0:
            limits["min_samples_split"] = max(2, rows_of_share(self.min_samples_split, n_rows))
        if self.min_samples_leaf > 0:
            limits["min_samples_leaf"] = max(1, rows_of_share(self.min_samples_leaf, n_rows))
        if self.min_weight_leaf > 0:
            limits["min_weight_leaf"] = self.min_weight_leaf * weight
        return replace(rules, **limits)
