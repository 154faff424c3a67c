"""Steps of a grown tree: what its leaves add to the raw predictions of their rows.

    sums of gradients and hessians ──▶ step of each leaf ──▶ weights and weighted steps, in integers
                                             └──▶ rows are moved

A step is stored as the quotient of two integers, and rows are moved by that quotient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow._leaf_steps import (
    add_leaf_steps,
    add_newton_steps,
    newton_steps,
    weights_of_leaves,
)
from dtrees.core.grow._leaf_wise import LeafWiseGrower
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.step_bounds import bounds_of_nodes, few_bits, stretches, within
from dtrees.core.losses.losses import Loss
from dtrees.core.losses.own import OwnLoss


@dataclass(frozen=True, eq=False)
class LeafSteps:
    """Makes steps of the sums of leaves, and moves rows by them.

    Attributes
    ----------
    rules : BoostingRules
    learning_rate : float
    y : float64 (n_rows,)
    raw : float64 (n_values, n_rows)
        Raw predictions, which are moved.
    weight : int64 (n_rows,) or None
    weight_unit : float
    are_counts : bool
        Whether a row of weight two has the gradients of two rows, rounded one by one.
    """

    rules: BoostingRules
    learning_rate: float
    y: np.ndarray
    raw: np.ndarray
    weight: np.ndarray | None
    weight_unit: float
    are_counts: bool

    def of_tree(self, grower: LeafWiseGrower, k: int, shift: int, loss: Loss | OwnLoss) -> float:
        """Give the records of a tree steps instead of derivatives, and move its rows.

        Parameters
        ----------
        grower : LeafWiseGrower
            Which has grown it last.
        k : int
            The value whose raw predictions it moves.
        shift : int
            Bits of a unit of gradients, in those of a unit of hessians.
        loss : Loss or OwnLoss
            As it is in this iteration.

        Returns
        -------
        float
            The unit of its weighted steps.
        """
        monotonic, raw = self.rules.monotonic, self.raw[k]
        unit: float
        if monotonic is None and loss.level is None:
            of_rows = self.are_counts, self.weight, self.weight_unit
            unit = add_newton_steps(
                grower, shift, loss.largest_step, self.learning_rate, *of_rows, raw
            )
            return unit
        piece, leaves = grower.piece(), grower.leaves_of_tree()
        weights = weights_of_leaves(grower, self.weight)
        if monotonic is None:
            steps = self._steps_of(grower, piece, leaves, k, shift, loss) * self.learning_rate
        else:
            every = np.arange(len(piece.nodes))
            nodes = np.column_stack([every, *stretches(piece, leaves)])
            values = self._steps_of(grower, piece, nodes, k, shift, loss) * self.learning_rate
            lower, upper = bounds_of_nodes(piece, values, monotonic)
            own = leaves[:, 0]
            steps, weights = within(values[own], lower[own], upper[own]), few_bits(weights)
        unit = add_leaf_steps(grower, steps, weights, self.weight_unit, raw)
        return unit

    def _steps_of(
        self,
        grower: LeafWiseGrower,
        piece: PartialTree,
        nodes: np.ndarray,
        k: int,
        shift: int,
        loss: Loss | OwnLoss,
    ) -> np.ndarray:
        """The best step of some nodes, within the bound of the loss.

        nodes : int64 (n, 3)
            Number, first row, rows.
        """
        if loss.level is not None:
            return self._quantiles_of(grower, nodes, k, loss)
        sums, n_rounded = piece.statistics[nodes[:, 0]], nodes[:, 2].astype(np.float64)
        if self.are_counts and self.weight is not None:
            up_to = np.cumsum(np.append(0, self.weight[grower.rows_of_leaves])) * self.weight_unit
            n_rounded = up_to[nodes[:, 1] + nodes[:, 2]] - up_to[nodes[:, 1]]
        return newton_steps(sums, n_rounded, grower.l2, shift, loss.largest_step)

    def _quantiles_of(
        self, grower: LeafWiseGrower, leaves: np.ndarray, k: int, loss: Loss | OwnLoss
    ) -> np.ndarray:
        """The quantile of the residuals of each leaf, or what else a loss says of them."""
        steps = np.empty(len(leaves))
        for i, (_, first, n) in enumerate(leaves.tolist()):
            rows = grower.rows_of_leaves[first : first + n]
            weight = None if self.weight is None else self.weight[rows] * self.weight_unit
            steps[i] = loss.step(self.y[rows] - self.raw[k][rows], weight)
        return steps


def bits_of(value: float) -> int:
    """The least power of two that is above a number that is not negative; 0 of 0."""
    return math.frexp(value)[1]
