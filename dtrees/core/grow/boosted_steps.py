"""Steps of a grown tree: what its leaves add to the raw predictions of their rows.

    sums of gradients and hessians ──▶ step of each leaf ──▶ weights and weighted steps, in integers
                                             └──▶ rows are moved

A step is stored as the quotient of two integers, and rows are moved by that quotient.

Steps keep the order of monotonic columns, to the last bit. The kernel splits nodes as the bounds of
their steps allow (`dtrees.core.search._monotonic`), and steps of leaves are moved to these bounds
here::

    node            bounds          step
    0               -inf .. inf
    +- 1 (x <= 3)   -inf .. 0.25     0.1
    +- 2 (x > 3)    0.25 .. inf      0.4
       +- 3         0.25 .. inf      0.25, moved from 0.2
       +- 4         0.25 .. inf      0.5

A stored tree has weights and weighted steps, so its steps are quotients of integers. Bounds have
few bits, and so have weights: then a bound times a weight is a whole number of units, and the
quotient is the bound again. All other roundings keep the order of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow._leaf_wise import (
    LeafWiseGrower,
    add_leaf_steps,
    newton_steps,
    weights_of_leaves,
)
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.losses.losses import Loss
from dtrees.core.losses.own import OwnLoss

BOUND_BITS = 24  # of a bound, from the first bit of the largest step on
WEIGHT_BITS = 29  # of the weight of all rows; a product of the two is a double


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
        monotonic = self.rules.monotonic
        piece, leaves = grower.piece(), grower.leaves_of_tree()
        weights = weights_of_leaves(grower, self.weight)
        if monotonic is None:
            counts = weights * self.weight_unit
            steps = self._steps_of(grower, piece, leaves, counts, k, shift, loss)
            steps *= self.learning_rate
        else:
            every = np.arange(len(piece.nodes))
            nodes = np.column_stack([every, *stretches(piece, leaves)])
            values = self._steps_of(
                grower, piece, nodes, self._counts_of(grower, nodes), k, shift, loss
            )
            values *= self.learning_rate
            lower, upper = bounds_of_nodes(piece, values, monotonic)
            own = leaves[:, 0]
            steps, weights = within(values[own], lower[own], upper[own]), few_bits(weights)
        unit: float = add_leaf_steps(grower, steps, weights, self.weight_unit, self.raw[k])
        return unit

    def _counts_of(self, grower: LeafWiseGrower, nodes: np.ndarray) -> np.ndarray:
        """The weight of the rows of some nodes, as `_steps_of` has them; float64 (n,)."""
        if self.weight is None:
            return nodes[:, 2].astype(np.float64)
        up_to = np.cumsum(np.append(0, self.weight[grower.rows_of_leaves])) * self.weight_unit
        counts: np.ndarray = up_to[nodes[:, 1] + nodes[:, 2]] - up_to[nodes[:, 1]]
        return counts

    def _steps_of(
        self,
        grower: LeafWiseGrower,
        piece: PartialTree,
        nodes: np.ndarray,
        counts: np.ndarray,
        k: int,
        shift: int,
        loss: Loss | OwnLoss,
    ) -> np.ndarray:
        """The best step of some nodes, within the bound of the loss.

        nodes : int64 (n, 3)
            Number, first row, rows.
        counts : float64 (n,)
            Weights of the nodes.
        """
        if loss.level is not None:
            return self._quantiles_of(grower, nodes, k, loss)
        is_weighted = self.are_counts and self.weight is not None
        n_rounded = counts if is_weighted else nodes[:, 2].astype(np.float64)
        sums = piece.statistics[nodes[:, 0]]
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


def bounds_of_nodes(
    piece: PartialTree, values: np.ndarray, monotonic: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest step of the leaves below each node.

    Parameters
    ----------
    piece : PartialTree
        Children stand behind their parents.
    values : float64 (n_nodes,)
        The step of each node, if it were a leaf.
    monotonic : sequence of int
        By column.

    Returns
    -------
    lower, upper : float64 (n_nodes,)
    """
    lower = np.full(len(values), -math.inf)
    upper = np.full(len(values), math.inf)
    nodes = piece.nodes
    tests = zip(*(nodes[name].tolist() for name in ("column", "left", "right")), strict=True)
    for node, (column, left, right) in enumerate(tests):
        if left < 0:
            continue
        both = [left, right]
        lower[both], upper[both] = lower[node], upper[node]
        if monotonic[column] != 0:
            at = 0.5 * np.clip(values[both], lower[node], upper[node])
            low, high = both if monotonic[column] > 0 else (right, left)
            upper[low] = lower[high] = at[0] + at[1]
    return lower, upper


def within(steps: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Steps, moved to bounds that are rounded to few bits; float64 (n,)."""
    largest = np.abs(np.clip(steps, lower, upper)).max(initial=0)
    quantum = math.ldexp(1.0, math.frexp(largest)[1] - BOUND_BITS)
    moved: np.ndarray = np.clip(
        steps, np.rint(lower / quantum) * quantum, np.rint(upper / quantum) * quantum
    )
    return moved


def few_bits(weights: np.ndarray) -> np.ndarray:
    """Weights of leaves, rounded where their sum has more than `WEIGHT_BITS`; int64 (n,)."""
    beyond = max(0, int(weights.sum()).bit_length() - WEIGHT_BITS)
    if beyond == 0:
        return weights
    rounded: np.ndarray = np.maximum((weights + (1 << beyond - 1)) >> beyond, 1) << beyond
    return rounded


def stretches(piece: PartialTree, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First row and number of rows of each node; rows lie leaf after leaf.

    Parameters
    ----------
    piece : PartialTree
    leaves : int64 (n_leaves, 3)
        Node, first row, rows.

    Returns
    -------
    first, n : int64 (n_nodes,)
    """
    first = np.zeros(len(piece.nodes), dtype=np.int64)
    n = np.zeros(len(piece.nodes), dtype=np.int64)
    first[leaves[:, 0]], n[leaves[:, 0]] = leaves[:, 1], leaves[:, 2]
    left, right = piece.nodes["left"], piece.nodes["right"]
    for node in range(len(first) - 1, -1, -1):
        if left[node] >= 0:
            children = [left[node], right[node]]
            first[node], n[node] = first[children].min(), n[children].sum()
    return first, n
