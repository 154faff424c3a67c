"""Gains and impurities as packed trees have them: predicted, and how far the prediction is off.

Predictions use additions, multiplications, divisions and conversions of IEEE doubles, each
rounded once, so they have the same bits on every machine. They are part of the format of model
files: a change of a formula below is a new version of it.

    W, S, w, s    weight and weighted target (two classes: weight of class 1) of a node and of its
                  left child, in integer units; u, v the units of weight and weighted target
    gain          two classes         (W s - w S)^2 / (w (W - w)) / W * 2 u
                  squared error       (W s - w S)^2 / (w (W - w)) / W * (v (v / u))
                  gini                ((L (W - w) + R w) / (w (W - w)) - T / W) u,
                                      L, R, T sums of squares of left, right and node
                  poisson             (s log(s/w) + (S-s) log((S-s)/(W-w)) - S log(S/W)) v
                  otherwise           0
    impurity      gini                (W^2 - T) / (W W)
                  otherwise           (gain + wl Il + wr Ir) / W of the children, in the user's
                                      units; leaves 0
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dtrees.core.model.integers import Arrays, narrow, typed, widen
from dtrees.core.model.preorder import Shape
from dtrees.core.model.tree import UNITS

_EXACT_TOTAL = 2**31  # squares of smaller weights are exact in int64


class Units:
    """Units of every node's statistics."""

    def __init__(self, arrays: Mapping[str, np.ndarray], shape: Shape) -> None:
        each = {name: typed(arrays, name, np.float64) for name in UNITS}
        if any(len(array) != len(shape.start) for array in each.values()):
            raise ValueError("There is not one unit for every tree.")
        self.weight = each["weight_unit"][shape.tree]
        self.target = each["unit"][shape.tree]


def residual(name: str, actual: np.ndarray, predicted: np.ndarray) -> Arrays:
    """How far predictions are off, in units in the last place; nothing where all are right."""
    mine = np.ascontiguousarray(actual).view(np.int64).ravel()
    off = mine - np.ascontiguousarray(predicted).view(np.int64).ravel()
    return narrow(name, off) if off.any() else {}


def corrected(arrays: Mapping[str, np.ndarray], name: str, predicted: np.ndarray) -> np.ndarray:
    """The inverse of `residual`; may write to ``predicted``."""
    if name not in arrays:
        return predicted
    off = widen(arrays, name, predicted.size).reshape(predicted.shape)
    return (np.ascontiguousarray(predicted).view(np.int64) + off).view(np.float64)


def _squares(statistics: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Sums of squares over the classes; exact integers, or doubles where these do not fit."""
    if total.max(initial=0) >= _EXACT_TOTAL:
        statistics = statistics.astype(np.float64)
    squares = statistics[:, 0] * statistics[:, 0]
    for k in range(1, statistics.shape[1]):
        squares += statistics[:, k] * statistics[:, k]
    return squares


def gini(statistics: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Gini impurity of every node."""
    squares = _squares(statistics, total)
    weight = total.astype(np.float64)
    own = (weight if squares.dtype == np.float64 else total) ** 2
    return (own - squares) / (weight * weight)


def gains(
    statistics: np.ndarray, total: np.ndarray, units: Units, shape: Shape, criterion: str
) -> np.ndarray:
    """Predicted gain of every inner node."""
    inner, left = shape.inner, shape.inner + 1
    unit = units.weight[inner]
    n_statistics = statistics.shape[1]
    is_gini = criterion == "gini"
    if criterion == "entropy" or n_statistics < 2:
        return np.zeros(len(inner))
    W, w = total[inner].astype(np.float64), total[left].astype(np.float64)
    with np.errstate(all="ignore"):
        if is_gini and n_statistics > 2:
            squares = _squares(statistics, total).astype(np.float64)
            score = squares[left] * (W - w) + squares[shape.right] * w
            raw = score / (w * (W - w)) - squares[inner] / W
        else:
            S, s = statistics[inner, 1].astype(np.float64), statistics[left, 1].astype(np.float64)
            target = units.target[inner]
            if criterion == "poisson":
                raw = s * log(s / w) + (S - s) * log((S - s) / (W - w)) - S * log(S / W)
                unit = target
            else:
                D = W * s - w * S
                raw = D * D / (w * (W - w)) / W
                unit = 2 * unit if is_gini else target * (target / unit)
        return np.where(raw > 0, raw * unit, 0.0)


def log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of positive numbers, not subnormal: as in `core.search._criterion`."""
    bits = np.ascontiguousarray(x).view(np.int64)
    k = (bits >> 52) - 1023
    m = (bits & 0xFFFFFFFFFFFFF | 0x3FF0000000000000).view(np.float64)
    large = m > 1.4142135623730951
    m = np.where(large, m * 0.5, m)
    power = (k + large).astype(np.float64)
    z = (m - 1.0) / (m + 1.0)
    z2 = z * z
    p = np.full(len(z), 1.0 / 23.0)
    for odd in range(21, 1, -2):
        p = p * z2 + 1.0 / odd
    p = 2.0 * z + 2.0 * z * z2 * p
    return power * 0.6931471803691238 + (power * 1.9082149292705877e-10 + p)


def impurity_above(
    impurity: np.ndarray,
    gain: np.ndarray,
    weight: np.ndarray,
    shape: Shape,
    nodes: np.ndarray,
    right: np.ndarray | None = None,
) -> np.ndarray:
    """Predicted impurity of some inner nodes, from those of their children."""
    left = nodes + 1
    right = shape.right if right is None else right
    with np.errstate(all="ignore"):
        below = weight[left] * impurity[left] + weight[right] * impurity[right]
        return (gain[nodes] + below) / weight[nodes]


def impurities(
    arrays: Mapping[str, np.ndarray], gain: np.ndarray, weight: np.ndarray, shape: Shape
) -> np.ndarray:
    """Impurities of all nodes, leaves first, then level by level towards the root."""
    inner, leaves = shape.inner, shape.leaves
    impurity = np.zeros(len(shape.last))
    impurity[leaves] = corrected(arrays, "leaf_impurity", np.zeros(len(leaves)))
    off = np.zeros(len(inner), dtype=np.int64)
    if "impurity" in arrays:
        off = widen(arrays, "impurity", len(inner))
    for level in shape.levels() if len(inner) else ():
        nodes, right = inner[level], shape.right[level]
        predicted = impurity_above(impurity, gain, weight, shape, nodes, right)
        impurity[nodes] = (predicted.view(np.int64) + off[level]).view(np.float64)
    return impurity
