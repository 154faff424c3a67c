"""Losses of several outputs: one for each column of y, and their mean.

A boosted model of several outputs has raw predictions for each of them, output behind output::

    y       output 0       output 1 (of three classes)      output 2 (of two)
    raw     value 0        values 1, 2, 3                   value 4

Each output has a loss of its own, which sees nothing of the others. So its trees are those of a
model of this output alone. A score is the mean of all outputs, which does not depend on their
order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from dtrees.core.losses.losses import Loss, OwnLoss
from dtrees.typing import Members


@dataclass(frozen=True)
class OutputLosses:
    """The loss of each output; `n_values` are how many raw predictions each has.

    Targets are (n_outputs, n_rows); raw predictions (n_rows, n_values), of all outputs.
    """

    losses: tuple[Loss | OwnLoss, ...]
    n_values: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of all of them."""
        return self.losses[0].name

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.losses)

    @property
    def own(self) -> list[tuple[Loss | OwnLoss, slice]]:
        """The loss of each output, and its places among all raw predictions."""
        ends = pairwise(accumulate(self.n_values, initial=0))
        return [(loss, slice(*both)) for loss, both in zip(self.losses, ends, strict=True)]

    def check(self, y: np.ndarray) -> None:
        """Refuse (ValueError) targets that a loss has no use for, with the number of the output."""
        for output, (loss, of_output) in enumerate(zip(self.losses, y, strict=True)):
            try:
                loss.check(of_output)
            except ValueError as error:
                raise ValueError(f"Output {output}: {error}") from error

    def with_width(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> OutputLosses:
        """A copy of Huber's losses with the widths of residuals, as `Loss.with_width`."""
        of_outputs = zip(self.losses, y, raw, strict=True)
        found = [
            own.with_width(of_y, of_raw, weight)
            for own, of_y, of_raw in of_outputs
            if isinstance(own, Loss)
        ]
        return replace(self, losses=tuple(found))

    def mean(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray | None,
        members: Members | None = None,
    ) -> float:
        """The mean over outputs of their mean losses, as `Loss.mean`; the same in any order."""
        found = [
            loss.mean(of_output, np.ascontiguousarray(raw[:, values]), weight, members)
            for of_output, (loss, values) in zip(y, self.own, strict=True)
        ]
        return math.fsum(found) / len(found)

    def means(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The same of several raw predictions, as `Loss.means`."""
        found = [
            loss.means(of_output, np.ascontiguousarray(raw[:, values]), weight)
            for of_output, (loss, values) in zip(y, self.own, strict=True)
        ]
        return np.array([math.fsum(each) for each in zip(*found, strict=True)]) / len(found)


AnyLoss = Loss | OwnLoss | OutputLosses


def losses_by_output(loss: AnyLoss, n_values: int) -> list[tuple[Loss | OwnLoss, slice]]:
    """The loss of each output, and its places among raw predictions; of one output: all."""
    return loss.own if isinstance(loss, OutputLosses) else [(loss, slice(0, n_values))]
