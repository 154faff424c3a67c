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

    def __init__(self, target, criterion: str) -> None:
        self.each = [
            statistics_of(of_output(target, k), criterion) for k in range(target.n_outputs)
        ]
        self.order = target.order.tolist()
        first = self.each[0]
        self.criterion, self.is_classification = criterion, first.is_classification
        self.weight, self.weight_unit = first.weight, first.weight_unit
        self.offset = max(abs(own.offset) for own in self.each)

    @property
    def has_order(self) -> bool:
        """Whether categories have an order, of each output; else all their subsets are tried."""
        return self.criterion == "absolute_error"

    @property
    def means(self) -> list:
        return [lambda sums, k=k: self.each[k].mean(self.parts_of(sums)[k]) for k in self.order]

    def parts_of(self, sums: Sums) -> list[Sums]:
        """The sums of each output."""
        found, at = [], 0
        for own in self.each:
            n = len(own.sums([]).parts)
            found.append(Sums(sums.n, sums.weight, sums.parts[at : at + n]))
            at += n
        return found

    def sums(self, rows) -> Sums:
        found = [own.sums(rows) for own in self.each]
        parts = tuple(part for own in found for part in own.parts)
        return Sums(found[0].n, found[0].weight, parts)

    def kept(self, sums: Sums) -> tuple[int, ...]:
        of_outputs = zip(self.each, self.parts_of(sums), strict=True)
        return tuple(part for own, of_output in of_outputs for part in own.kept(of_output))

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
        n_outputs=1,
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
