"""Steps of a boosted tree that keep the order of monotonic columns, to the last bit.

The kernel splits nodes as the bounds of their steps allow (`dtrees.core.search._monotonic`), and
steps of leaves are moved to these bounds here::

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

import numpy as np

from dtrees.core.grow.node_record import PartialTree

BOUND_BITS = 24  # of a bound, from the first bit of the largest step on
WEIGHT_BITS = 29  # of the weight of all rows; a product of the two is a double


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
