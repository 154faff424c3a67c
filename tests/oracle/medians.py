"""Absolute errors about medians, from the weight of each number among the targets of a node.

Sums of two sets of rows are sums of these weights. So the criterion is that of a class for each
number, and all that a node says of its rows can be read from its sums.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tests.oracle.criterion import RowStatistics, Sums


class MedianStatistics(RowStatistics):
    """The same by absolute errors. The parts of sums are the weights of all numbers, ascending."""

    def __init__(self, target, criterion: str) -> None:
        super().__init__(target, criterion)
        self.numbers = sorted(set(self.y))
        self.place = {number: k for k, number in enumerate(self.numbers)}

    def sums(self, rows) -> Sums:
        parts = [0] * len(self.numbers)
        for i in rows:
            parts[self.place[self.y[i]]] += self.weight[i]
        return Sums(len(rows), sum(parts), tuple(parts))

    def twice_median(self, sums: Sums) -> int:
        """The sum of the two middle numbers, which differ where just half of the weight is below.

        scikit-learn's weighted median is the half of it.
        """
        passed, lower = 0, None
        for number, weight in zip(self.numbers, sums.parts, strict=True):
            if weight == 0:
                continue
            if lower is not None:
                return lower + number
            passed += weight
            if 2 * passed == sums.weight:
                lower = number
            elif 2 * passed > sums.weight:
                return 2 * number
        return 2 * lower

    def target(self, sums: Sums) -> int:
        exact = Fraction(sums.weight * self.twice_median(sums), 2)
        exact *= self.weight_unit * self.y_unit / self.wy_unit
        return math.floor(exact + Fraction(1, 2))

    def kept(self, sums: Sums) -> tuple[int, ...]:
        return (self.target(sums),)

    def mean(self, sums: Sums) -> int:
        return self.twice_median(sums)

    def weighted_impurity(self, sums: Sums) -> Fraction:
        median = Fraction(self.twice_median(sums), 2)
        of_numbers = zip(self.numbers, sums.parts, strict=True)
        errors = sum(weight * abs(number - median) for number, weight in of_numbers)
        return errors * self.weight_unit * self.y_unit

    def impurity(self, rows) -> float:
        sums = self.sums(rows)
        return float(self.weighted_impurity(sums) / (sums.weight * self.weight_unit))

    def value(self, sums: Sums) -> list[float]:
        return [float(Fraction(self.twice_median(sums), 2) * self.y_unit + Fraction(self.offset))]

    def allows(self, left: Sums, right: Sums) -> bool:
        return True

    def gain_error(self, whole: Sums, left: Sums) -> float:
        """Weighted targets are rounded to their unit, where they have digits beyond it."""
        of_rows = 0.0 if self.weight_unit * self.y_unit == self.wy_unit else 2.0 * whole.n
        return of_rows * float(self.wy_unit) + 1e-14 * float(self.weighted_impurity(whole))
