"""What the classes weigh in each of several training sets of one table.

Class weights multiply when sums are read: the sums themselves are of rows (and their own weights),
and the same for all sets. So sets grow together, whatever their classes weigh::

    a cell of the shared node     |  12 |   3 |       rows of class 0 and 1, counted once
    set 0, weights 0.6, 2.9       | 7.2 | 8.7 |       as integers, in the unit of its own fit
    set 1, weights 0.7, 1.8       | 8.4 | 5.4 |

The integers are those of `dtrees.coding.target`: of a fit in which the rows outside of the set
weigh nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrees.coding.target import Target, exact_bincount

Integers = Callable[[list[int]], tuple[np.ndarray | None, int]]


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """Class weights of several sets, as integers.

    Attributes
    ----------
    multiplier : int64 (n_sets, n_classes)
        A class weighs nothing in all of the sets, or in none.
    exponent : int64 (n_sets,)
        ``class_weight = multiplier / 2**exponent``
    """

    multiplier: np.ndarray
    exponent: np.ndarray

    def __post_init__(self) -> None:
        weighs = self.multiplier > 0
        assert (weighs == weighs[:1]).all(), "a class weighs nothing in some sets only"

    def some(self, numbers: Sequence[int] | np.ndarray) -> ClassWeights:
        """Those of some of the sets."""
        return ClassWeights(self.multiplier[numbers], self.exponent[numbers])

    def with_those(self, others: ClassWeights) -> ClassWeights:
        """Those of these sets, and of others behind them."""
        multiplier = np.concatenate([self.multiplier, others.multiplier])
        return ClassWeights(multiplier, np.concatenate([self.exponent, others.exponent]))

    def of(self, target: Target, number: int) -> Target:
        """A target without class weights, with those of a set."""
        exponent = int(self.exponent[number])
        return replace(target, class_multiplier=self.multiplier[number], class_exponent=exponent)

    def unit(self, target: Target, number: int) -> float:
        """Of the weights of a set; that of the target is without class weights."""
        return math.ldexp(1.0, -target.w_exponent - int(self.exponent[number]))

    @classmethod
    def of_target(cls, target: Target, n_sets: int) -> ClassWeights | None:
        """The class weights of a target, if it has any, the same in all sets."""
        if target.class_multiplier is None:
            return None
        exponent = np.full(n_sets, target.class_exponent, dtype=np.int64)
        return cls(np.tile(target.class_multiplier, (n_sets, 1)), exponent)

    @classmethod
    def of_totals(cls, totals: np.ndarray, integers: Integers) -> ClassWeights:
        """Class weights as the fit of each set makes them.

        Parameters
        ----------
        totals : int64 (n_sets, n_classes)
            Weight of the rows of each class in each set.
        integers : callable
            Of the totals of a set: multipliers, None for ones, and their exponent.
        """
        found = [integers(own) for own in totals.tolist()]
        ones = np.ones(totals.shape[1], dtype=np.int64)
        multiplier = np.stack([ones if own is None else own for own, _ in found])
        return cls(multiplier, np.array([exponent for _, exponent in found], dtype=np.int64))


def without_class_weights(target: Target) -> Target:
    """The target without class weights; rows of classes that weigh nothing do not count."""
    if target.class_multiplier is None:
        return target
    plain = replace(target, class_multiplier=None, class_exponent=0)
    counts = target.class_multiplier > 0
    return plain if counts.all() else plain.only(counts[target.y])


def totals_of_cells(target: Target, cells: np.ndarray, n_cells: int) -> np.ndarray:
    """Weight of each class in each cell, without class weights; int64 (n_cells, n_classes)."""
    place = cells.astype(np.int64) * target.n_classes + target.y
    of_cell = exact_bincount(place, target.w, n_cells * target.n_classes)
    return of_cell.reshape(n_cells, target.n_classes)
