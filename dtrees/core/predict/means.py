"""Means over trees, of targets of any size.

The values of leaves are added up in the order of the trees and divided by their number. A sum of
means overflows only where they are more than the largest float64 divided by the number of trees.
The squares of a target's distances from its middle are bounded (`dtrees.coding.target`), so means
of such a size are all the same float64, which the tree has as its offset: the mean over trees is
that of their offsets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dtrees.core.model.tree import are_bounded


def mean_of_sums(
    total: np.ndarray, n_added: int | np.ndarray, offsets: Sequence[float]
) -> np.ndarray:
    """Sums of values of leaves, divided by how many were added.

    Parameters
    ----------
    total : float64 (n_rows, n_values)
    n_added : int or int64 (n_rows, 1)
        0: the mean is nan.
    offsets : sequence of float
        Of the trees, at least one.

    Returns
    -------
    float64 (n_rows, n_values)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean: np.ndarray = total / n_added
    if are_bounded(offsets):
        return mean
    first = offsets[0]
    is_one = all(offset == first for offset in offsets)
    of_offsets = first if is_one else math.fsum(offset / len(offsets) for offset in offsets)
    lost = ~np.isfinite(total) & (np.asarray(n_added) > 0)
    return np.where(lost, of_offsets, mean)
