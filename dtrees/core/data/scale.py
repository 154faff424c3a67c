"""Scales that must be the same wherever the rows of a node are.

x log x is kept as an integer: a power of two times its value, the largest with which no sum over
the rows that count overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dtrees.coding.target import Target
from dtrees.core.data.criteria import CRITERIA
from dtrees.core.data.rules import GrowthRules


@dataclass(frozen=True)
class Scale:
    """What must be the same wherever a node's rows are."""

    # the power of two that x log x is multiplied by before it is rounded to an integer
    fixed_point: float
    total_weight: float  # of all rows, in the user's units


def units_of(target: Target) -> np.ndarray | None:
    """Weight of every row, class weights included, in units of the target; None: all are one."""
    if target.class_multiplier is None:
        return target.w
    weight = np.ones(target.n_rows, dtype=np.int64) if target.w is None else target.w
    of_row: np.ndarray = weight * target.class_multiplier[target.y]
    return of_row


def gain_unit_of(
    criterion: str, n_classes: int, weight_unit: float, fixed_point: float, n_outputs: int = 1
) -> float:
    """What a raw gain of classes is multiplied by to be in the user's units.

    `n_classes` are those of the output that has most; gains of outputs are a mean.
    """
    if CRITERIA[criterion].is_function:
        return 1.0
    if criterion == "entropy":
        return weight_unit / (fixed_point * math.log(2.0)) / n_outputs
    return (2 * weight_unit if n_classes <= 2 else weight_unit) / n_outputs


def scale_of_sums(
    units: int, largest: int, weight_unit: float, criterion: str, n_outputs: int = 1
) -> Scale:
    """The scale of rows with these sums.

    `units` are the weight of the rows that count, in units of the target, and `largest`, of
    Poisson, the largest y among them.
    """
    if criterion == "poisson":
        bound, bits = largest * math.log(largest + 1) + 1, 58
    else:
        bound, bits = 2 * n_outputs * (units + 1) * (math.log2(units + 2) + 1), 61
    fixed_point = 2.0 ** min(45, bits - math.ceil(math.log2(bound)))
    return Scale(fixed_point, units * weight_unit)


def scale_of(target: Target, rules: GrowthRules) -> Scale:
    """The scale of all rows that count."""
    weight = units_of(target)
    units = target.n_rows if weight is None else int(weight.sum())
    largest = 1
    if rules.criterion == "poisson":
        y = target.y if target.w is None else target.y[target.w > 0]
        largest = max(largest, int(y.max(initial=1)))
    sums = units, largest, target.weight_unit
    return scale_of_sums(*sums, rules.criterion, target.n_outputs)
