"""Several outputs: each as if it were the only one, and the means of what they say."""

from __future__ import annotations

from types import SimpleNamespace

from tests.oracle.criterion import RowStatistics, Sums
from tests.oracle.medians import MedianStatistics


def statistics_of(target, criterion: str) -> RowStatistics:
    """The integers of every row, of one output or of several."""
    if target.n_outputs == 1:
        kind = MedianStatistics if criterion == "absolute_error" else RowStatistics
        return kind(target, criterion)
    return OutputStatistics(target, criterion)


class OutputStatistics(RowStatistics):
    """The same of several outputs, from a `dtrees.coding.outputs.Outputs` (attributes only).

    The parts of sums are those of all outputs, one behind the other.
    """

    has_order = False  # all subsets of categories are tried

    def __init__(self, target, criterion: str) -> None:
        self.each = [
            RowStatistics(of_output(target, k), criterion) for k in range(target.n_outputs)
        ]
        first = self.each[0]
        self.criterion, self.is_classification = criterion, first.is_classification
        self.weight, self.weight_unit = first.weight, first.weight_unit
        self.offset = max(abs(own.offset) for own in self.each)

    def parts_of(self, sums: Sums) -> list[Sums]:
        """The sums of each output."""
        found, at = [], 0
        for own in self.each:
            n = own.n_parts if self.is_classification else 1
            found.append(Sums(sums.n, sums.weight, sums.parts[at : at + n]))
            at += n
        return found

    def sums(self, rows) -> Sums:
        found = [own.sums(rows) for own in self.each]
        parts = tuple(part for own in found for part in own.parts)
        return Sums(found[0].n, found[0].weight, parts)

    def mean_of(self, values):
        return sum(values) / len(self.each)

    def is_pure(self, rows) -> bool:
        return all(own.is_pure(rows) for own in self.each)

    def gain(self, whole: Sums, left: Sums):
        of_outputs = zip(self.each, self.parts_of(whole), self.parts_of(left), strict=True)
        return self.mean_of(own.gain(*both) for own, *both in of_outputs)

    def allows(self, left: Sums, right: Sums) -> bool:
        """Of outputs that are zero in a node, no side has any target."""
        of_outputs = zip(self.each, self.parts_of(left), self.parts_of(right), strict=True)
        return all(
            own.allows(*sides) or not any(side.parts[0] for side in sides)
            for own, *sides in of_outputs
        )

    def gain_error(self, whole: Sums, left: Sums) -> float:
        of_outputs = zip(self.each, self.parts_of(whole), self.parts_of(left), strict=True)
        return sum(own.gain_error(*both) for own, *both in of_outputs)

    def impurity(self, rows) -> float:
        return self.mean_of(own.impurity(rows) for own in self.each)

    def value(self, sums: Sums) -> list[float]:
        of_outputs = zip(self.each, self.parts_of(sums), strict=True)
        return [value for own, of_output in of_outputs for value in own.value(of_output)]

    def largest(self, rows) -> float:
        return max(own.largest(rows) for own in self.each)


def of_output(target, number: int) -> SimpleNamespace:
    """An output of a target as a target of its own."""
    own = target.of_outputs[number]
    return SimpleNamespace(
        kind=target.kind,
        y=target.y[:, number],
        w=target.w,
        wy=None if target.wy is None else target.wy[:, number],
        w_exponent=target.w_exponent,
        y_exponent=own.y_exponent,
        wy_exponent=own.wy_exponent,
        offset=own.offset,
        n_classes=own.n_classes,
        class_multiplier=None,
    )
