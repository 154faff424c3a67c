"""Integer sums over rows, and the impurities of scikit-learn as functions of them, exactly.

Gini and squared error are rational numbers (`fractions.Fraction`): equal gains are equal. Entropy
and Poisson deviance are floats. "Weighted impurity" is impurity times weight, in the user's units;
the gain of a split is that of the node less those of the two sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

# How far a float gain of entropy or Poisson deviance may be off, as a share of the node's weight
# (entropy) or target (Poisson).
FLOAT_ERROR = 1e-11


@dataclass(frozen=True)
class Sums:
    """Over the rows of a node: how many, weight, weight per class or (weighted target,)."""

    n: int
    weight: int
    parts: tuple[int, ...]


class RowStatistics:
    """The integers of every row, from a `dtrees.coding.target.Target` (attributes only).

    Classification: weight times the multiplier of the class. Regression: w, w*y, w*y*y.
    """

    def __init__(self, target, criterion: str) -> None:
        self.criterion = criterion
        self.is_classification = target.kind == "classification"
        n_rows = len(target.y)
        self.y = [int(v) for v in target.y]
        self.weight = [1] * n_rows if target.w is None else [int(w) for w in target.w]
        self.weight_unit = Fraction(2) ** -target.w_exponent
        self.offset = target.offset
        if self.is_classification:
            self.n_parts = int(target.n_classes)
            if target.class_multiplier is not None:
                per_class = [int(m) for m in target.class_multiplier]
                self.weight = [w * per_class[k] for w, k in zip(self.weight, self.y, strict=True)]
                self.weight_unit /= Fraction(2) ** target.class_exponent
        else:
            self.wy = [int(v) for v in target.wy]
            self.wy_unit = Fraction(2) ** -target.wy_exponent
            self.y_unit = Fraction(2) ** -target.y_exponent

    @property
    def has_order(self) -> bool:
        """Whether the best subset of categories is a prefix in the order of their means."""
        return not self.is_classification or self.n_parts == 2

    def rows(self) -> list[int]:
        """Rows that count."""
        return [i for i, w in enumerate(self.weight) if w > 0]

    def sums(self, rows) -> Sums:
        weight = sum(self.weight[i] for i in rows)
        if not self.is_classification:
            return Sums(len(rows), weight, (sum(self.wy[i] for i in rows),))
        parts = [0] * self.n_parts
        for i in rows:
            parts[self.y[i]] += self.weight[i]
        return Sums(len(rows), weight, tuple(parts))

    def minus(self, whole: Sums, part: Sums) -> Sums:
        parts = tuple(a - b for a, b in zip(whole.parts, part.parts, strict=True))
        return Sums(whole.n - part.n, whole.weight - part.weight, parts)

    def kept(self, sums: Sums) -> tuple[int, ...]:
        """What a tree keeps of a node: of numbers, beside its weight."""
        return sums.parts

    def target(self, sums: Sums) -> int:
        """What a node keeps beside its weight: of two classes the weight of class 1."""
        return sums.parts[-1]

    def is_pure(self, rows) -> bool:
        return len({self.y[i] for i in rows}) == 1

    def mean(self, sums: Sums) -> Fraction:
        """What categories are ordered by: the share of class 1, or the mean target."""
        return Fraction(sums.parts[-1], sums.weight)

    @property
    def means(self) -> list:
        """Functions of sums that each give an order of the categories."""
        return [self.mean]

    def gain(self, whole: Sums, left: Sums) -> Fraction | float:
        """Weighted impurity decrease of a split in the user's units."""
        sides = (left, self.minus(whole, left))
        if self.criterion == "squared_error":
            unit = self.wy_unit**2 / self.weight_unit
            return (sum(map(_square_share, sides)) - _square_share(whole)) * unit
        if self.criterion == "poisson":
            return sum(map(self._log_share, sides)) - self._log_share(whole)
        return self.weighted_impurity(whole) - sum(map(self.weighted_impurity, sides))

    def weighted_impurity(self, sums: Sums) -> Fraction | float:
        """Of classes; that of regression needs the rows: see `impurity`."""
        if self.criterion == "gini":
            return (sums.weight - _square_share(sums)) * self.weight_unit
        shares = [p / sums.weight for p in sums.parts if p]
        return -float(sums.weight * self.weight_unit) * sum(p * math.log2(p) for p in shares)

    def impurity(self, rows) -> float:
        """Impurity of a node, not weighted."""
        sums = self.sums(rows)
        weight = sums.weight * self.weight_unit
        if self.is_classification:
            return float(self.weighted_impurity(sums) / weight)
        mean = sums.parts[0] * self.wy_unit / weight
        if self.criterion == "squared_error":
            around = (self.weight[i] * (self.y[i] * self.y_unit - mean) ** 2 for i in rows)
            return float(sum(around) * self.weight_unit / weight)
        targets = [(self.weight[i], float(self.y[i] * self.y_unit)) for i in rows]
        deviance = math.fsum(w * y * math.log(y / float(mean)) for w, y in targets if y > 0)
        return deviance * float(self.weight_unit / weight)

    def penalty(self, rows, kinds, of_each: float, gain: float) -> float:
        """What a column pays in a node for its categories, in units of a gain.

        kinds : the category of each row, None for a missing one. gain : of its best subset; what
        gains no more than chance pays an infinity.
        """
        present = set(kinds)
        count = len(present - {None})
        if count <= 2 or of_each == 0:
            return 0.0
        within = 0.0
        for kind in present:
            own = [i for i, k in zip(rows, kinds, strict=True) if k == kind]
            within += self.total_impurity(own)
        n = max(self._weight(rows), len(rows))
        of_row = (within + self.total_impurity(rows) * len(present) / n) / n
        if gain <= of_each * count * of_row * (1 + 1e-9):
            return math.inf
        return max(of_each * count - 1 - math.log2(n) / 2, 0.0) * of_row

    def total_impurity(self, rows) -> float:
        """Impurity times weight."""
        return self.impurity(rows) * self._weight(rows)

    def _weight(self, rows) -> float:
        return float(self.sums(rows).weight * self.weight_unit)

    def value(self, sums: Sums) -> list[float]:
        """Class shares, or the mean of the target."""
        if self.is_classification:
            return [p / sums.weight for p in sums.parts]
        mean = sums.parts[0] * self.wy_unit / (sums.weight * self.weight_unit)
        return [float(mean + Fraction(self.offset))]

    def allows(self, left: Sums, right: Sums) -> bool:
        """Poisson deviance is infinite without target: such a side is not a candidate."""
        return self.criterion != "poisson" or min(left.parts[0], right.parts[0]) > 0

    def gain_error(self, whole: Sums, left: Sums) -> float:
        """How far a gain that was computed in float64 from the integers may be off."""
        if self.criterion == "squared_error":
            return _square_error(whole, left) * float(self.wy_unit**2 / self.weight_unit)
        if self.criterion == "poisson":
            if whole.parts[0] == 0:
                return 0.0
            logarithm = abs(math.log(self._scale(whole)))
            return FLOAT_ERROR * float(whole.parts[0] * self.wy_unit) * (1 + logarithm)
        share = FLOAT_ERROR if self.criterion == "entropy" else 1e-14
        return share * float(whole.weight * self.weight_unit)

    def largest(self, rows) -> float:
        """Largest distance of a target from the offset; 0 for classes."""
        if self.is_classification:
            return 0.0
        return float(max(abs(self.y[i]) for i in rows) * self.y_unit)

    def _scale(self, sums: Sums) -> float:
        return float(sums.parts[0] * self.wy_unit / (sums.weight * self.weight_unit))

    def _log_share(self, sums: Sums) -> float:
        """s log(s / w)."""
        if sums.parts[0] == 0:
            return 0.0
        return float(sums.parts[0] * self.wy_unit) * math.log(self._scale(sums))


def _square_share(sums: Sums) -> Fraction:
    """Sum of the squared parts by the weight."""
    return Fraction(sum(p * p for p in sums.parts), sums.weight)


def _square_error(whole: Sums, left: Sums) -> float:
    """D*D / (W*w*(W-w)) with D = W*s - w*S: the products of D are rounded, 2**-52 each."""
    W, S, w, s = whole.weight, whole.parts[0], left.weight, left.parts[0]
    D, rounding = W * s - w * S, Fraction(abs(W * s) + abs(w * S), 2**52)
    exact = abs(D) + rounding
    return float((exact * exact - D * D) / (W * w * (W - w))) + 1e-13 * float(
        Fraction(D * D, W * w * (W - w))
    )
