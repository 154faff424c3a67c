"""Gains of a tree relative to each other, of targets of any size.

A gain is in the user's units: weight, times the square of the target (squared error) or the target
(poisson). Squares of targets of 1e-170 are nothing to a float64, although the tree was grown from
integers and knows all of it. Whoever compares nodes with each other asks for relative gains.
"""

from __future__ import annotations

import numpy as np

from dtrees.core.data.criteria import REGRESSION
from dtrees.core.model.tree import LEAF, Tree

SMALL = 1e-280  # of the largest gain of a tree; below, digits are lost


def relative_gains(tree: Tree) -> np.ndarray:
    """Gains of all nodes in one unit of the tree's own choice, float64 (n_nodes,); 0 in leaves.

    The user's unit, where a float64 holds the gains in it. O(nodes).
    """
    largest = tree.gain.max(initial=0.0)
    if tree.criterion not in REGRESSION or SMALL <= largest < np.inf:
        return tree.gain
    gains = np.zeros(tree.node_count)
    inner = np.flatnonzero(tree.test != LEAF)
    weight, total = tree.statistics.T.astype(np.float64)
    left, right = tree.children_left[inner], tree.children_right[inner]
    w, v, s, r = weight[left], weight[right], total[left], total[right]
    if tree.criterion == "poisson":
        both = s + r
        raw = _xlog(s, w) + _xlog(r, v) - _xlog(both, w + v)
    else:
        raw = (s / w - r / v) ** 2 * (w * (v / (w + v)))
    gains[inner] = np.maximum(raw, 0.0)
    return gains


def _xlog(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """``total * log(total / weight)``, 0 for 0."""
    ratio = np.divide(total, weight)
    logs: np.ndarray = np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0)
    return total * logs
