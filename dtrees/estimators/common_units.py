"""Which training sets of a table have sums in common units, and so can share them.

A fit chooses the unit of its integers by the rows that it has (`dtrees.coding.target`). Sets share
what rows add where their own fits would have the same integers, up to what is multiplied when sums
are read (`dtrees.core.membership.class_weights`)::

    class weights            rows count the same in all sets, classes what they weigh in each
    the same units           what a row adds is the same in all sets that have it
    units of other powers    classes: the same, times a power of two, where nothing was rounded;
    of two                   otherwise a growth for each unit
    fractions of rows        "balanced": rows in common units, and classes what they weigh in each
    times class weights      set; of a dict: products are rounded row by row
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dtrees.coding.target import Target
from dtrees.coding.weights import class_integers
from dtrees.core.membership.class_weights import ClassWeights, without_class_weights
from dtrees.core.membership.resampling import Resampling
from dtrees.estimators.fit_plan import FitPlan

LARGEST_SUM = 2.0**62  # of the rows of all sets that share
MOST_BITS = 52  # between two units
UNITS = ("offset", "y_exponent", "w_exponent", "wy_exponent")


@dataclass(eq=False)
class Company:
    """Sets that share sums.

    Attributes
    ----------
    target : Target
        What the rows of these sets add; it says nothing of other rows.
    numbers : list of int
        The sets.
    shifts : list of int
        By set: the power of two of its own integers, in those of the target.
    class_weights : ClassWeights or None, default=None
        Of the sets, where these have their own, in the integers of each.
    """

    target: Target
    numbers: list[int] = field(default_factory=list)
    shifts: list[int] = field(default_factory=list)
    class_weights: ClassWeights | None = None

    def of(self, sets: Resampling) -> Resampling:
        """Its sets, with what is multiplied when sums are read."""
        own = sets.some(self.numbers)
        shift = np.array(self.shifts, dtype=np.int64)
        weighs = self.class_weights
        if weighs is None and not any(self.shifts):
            return own
        if weighs is None:
            weighs = ClassWeights.ones(len(shift), self.target.n_classes)
        return own.weighing(weighs.shifted(shift))

    def take(self, number: int, own: Target, rows: np.ndarray) -> None:
        """Take in a set of these rows, whose integers are in the same unit."""
        weighs = ClassWeights.of_target(own, 1)
        plain = replace(own, class_multiplier=None, class_exponent=0)
        if self.numbers:
            self.target = _joined(self.target, plain, rows)
        else:
            self.target = plain
        self._gather([number], [0], weighs)

    def _gather(self, numbers: list[int], shifts: list[int], weighs: ClassWeights | None) -> None:
        """Take in sets; class weights have all sets of a company, or none."""
        if weighs is not None and self.class_weights is not None:
            weighs = self.class_weights.with_those(weighs)
        self.class_weights = weighs
        self.numbers += numbers
        self.shifts += shifts

    def alone(self, at: int, rows: np.ndarray) -> Company:
        """One of its sets, which has these rows."""
        weighs = None if self.class_weights is None else self.class_weights.some([at])
        return Company(self.target.only(rows), [self.numbers[at]], [self.shifts[at]], weighs)

    def joins(self, other: Company, rows: np.ndarray) -> bool:
        """Take in the sets of another one, if its integers are those of this, times a power of two.

        Parameters
        ----------
        rows : bool (n_rows,)
            Of the sets of the other one.
        """
        mine, theirs = self.target, other.target
        shift = theirs.w_exponent - mine.w_exponent
        if mine.kind != "classification" or mine.w is None or theirs.w is None:
            return False
        if (self.class_weights is None) != (other.class_weights is None):
            return False
        if not 0 < shift <= MOST_BITS or mine.w_exponent == 0 or theirs.w_exponent == 0:
            return False
        if not np.array_equal(mine.w[rows].astype(np.int64) << shift, theirs.w[rows]):
            return False
        self._gather(other.numbers, [shift] * len(other.numbers), other.class_weights)
        return True


class Companies:
    """Sets, put together one after the other.

    Parameters
    ----------
    whole : Target
        Of all rows.
    sets : Resampling
    plan : FitPlan
    """

    def __init__(self, whole: Target, sets: Resampling, plan: FitPlan) -> None:
        self._sets = sets
        self._first = Company(whole)
        self._by_unit: dict[Any, Company] = {}
        self._largest = LARGEST_SUM / 2**plan.spare_bits
        self._shares = plan.class_weight != "balanced"  # without class weights of their own
        self._plan = plan

    def add(self, number: int) -> None:
        """A set with the integers of all rows."""
        self._first.numbers.append(number)
        self._first.shifts.append(0)

    def join(self, number: int, own: Target) -> bool:
        """A set with integers of its own; False: it shares with none.

        What a row adds is a function of its weight, its y and the units.
        """
        weighs = own.class_multiplier is not None
        if own.w is None or own.means is not None or weighs == self._shares:
            return False
        key = tuple(getattr(own, unit) for unit in UNITS)
        self._by_unit.setdefault(key, Company(own)).take(number, own, self._sets.rows(number))
        return True

    def settled(self) -> list[Company]:
        """All of them, each with a set or more."""
        found: list[Company] = []
        if self._first.numbers:
            found.append(self._weighing(self._first))
        for company in sorted(self._by_unit.values(), key=lambda each: each.target.w_exponent):
            rows = self._rows(company)
            if any(other.joins(company, rows) for other in found):
                continue
            if len(company.numbers) == 1 or _largest_sum(company.target) < self._largest:
                found.append(company)
            else:
                for at, number in enumerate(company.numbers):
                    found.append(company.alone(at, self._sets.rows(number)))
        return found

    def _weighing(self, company: Company) -> Company:
        """The sets of all rows, with the class weights of their own fits."""
        plan, whole = self._plan, company.target
        if plan.class_weight is None or plan.draws_weights or whole.w_exponent != 0:
            return company  # or they are in the weights of the rows, or in bags
        counts = without_class_weights(whole)

        def integers(totals: list[int]) -> tuple[np.ndarray | None, int]:
            assert whole.classes is not None
            return class_integers(plan.class_weight, whole.classes, totals, plan.spare_bits)

        totals = self._sets.some(company.numbers).class_totals(counts)
        own = ClassWeights.of_totals(totals, integers)
        return replace(company, target=counts, class_weights=own)

    def _rows(self, company: Company) -> np.ndarray:
        """Rows of some of its sets; bool (n_rows,)."""
        rows = self._sets.rows(company.numbers[0])
        for number in company.numbers[1:]:
            rows |= self._sets.rows(number)
        return rows


def _joined(target: Target, own: Target, rows: np.ndarray) -> Target:
    """What rows add, of some sets and of one more, which has these rows."""
    assert target.w is not None
    assert own.w is not None
    w = np.where(rows, own.w, target.w)
    wy = None if own.wy is None or target.wy is None else np.where(rows, own.wy, target.wy)
    return replace(target, w=w, wy=wy)


def _largest_sum(target: Target) -> float:
    """Of the weights, or of the weighted targets without their signs."""
    sums = [
        np.abs(each).sum(dtype=np.float64) for each in (target.w, target.wy) if each is not None
    ]
    return float(max(sums))
