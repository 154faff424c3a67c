"""What a node inherits: bounds of the values of its leaves, and which columns it may test.

The values are the doubles that the product compares, as an order decides here, not a size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.oracle.candidates import Candidate
from tests.oracle.criterion import RowStatistics, Sums


@dataclass(frozen=True)
class Above:
    """Of a root, by default."""

    lower: float = -math.inf
    upper: float = math.inf
    used: frozenset[int] = frozenset()  # columns that ancestors have tested


def value_of(statistics: RowStatistics, sums: Sums) -> float:
    """The share of class 1, the mean or the median, in integer units."""
    return float(statistics.target(sums)) / float(sums.weight)


def values_of(statistics, whole, split: Candidate) -> tuple[float, float]:
    rest = statistics.minus(whole, split.sums)
    return value_of(statistics, split.sums), value_of(statistics, rest)


def is_allowed(statistics, whole, split: Candidate, above: Above, rules) -> bool:
    interactions = getattr(rules, "interactions", None)
    path = above.used | {split.column}
    if interactions is not None and not any(path <= set(group) for group in interactions):
        return False
    monotonic = getattr(rules, "monotonic", None)
    if monotonic is None:
        return True
    left, right = values_of(statistics, whole, split)
    inside = all(above.lower <= value <= above.upper for value in (left, right))
    return inside and (right - left) * monotonic[split.column] >= 0


def below(statistics, whole, split: Candidate, above: Above, rules) -> tuple[Above, Above]:
    """What both children inherit."""
    used = above.used | {split.column}
    monotonic = getattr(rules, "monotonic", None)
    direction = 0 if monotonic is None else monotonic[split.column]
    same = Above(above.lower, above.upper, used)
    if direction == 0:
        return same, same
    left, right = values_of(statistics, whole, split)
    middle = 0.5 * left + 0.5 * right
    low, high = Above(above.lower, middle, used), Above(middle, above.upper, used)
    return (low, high) if direction > 0 else (high, low)
