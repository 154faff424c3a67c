"""A user's limits, resolved: shares become numbers of rows, columns and weight.

`dtrees.core.rules.GrowthRules` knows plain numbers only. What 0.1 or "sqrt" means is decided here,
as scikit-learn decides it: an integer is a number, a float is a share of the training table, and
shares of rows are rounded up, shares of columns down. Rows are counted whether they have weight
or not.
"""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np

MOST_ROWS = 2**31 - 1  # a table has no more, so no limit needs to be larger


def rows_of_leaf(limit: int | float, n_rows: int) -> int:
    """Least number of rows of a leaf: ``limit``, or ``ceil(limit * n_rows)`` for a float."""
    if isinstance(limit, Integral):
        return min(int(limit), MOST_ROWS)
    return math.ceil(limit * n_rows)


def rows_of_split(limit: int | float, leaf_limit: int | float, n_rows: int) -> int:
    """Least number of rows of a node that is split: at least 2, and at least two leaves."""
    return max(2, rows_of_leaf(limit, n_rows), 2 * rows_of_leaf(leaf_limit, n_rows))


def depth_of(max_depth: int | None, max_leaf_nodes: int | None) -> int:
    """Greatest depth worth growing: a tree of k leaves is at most k - 1 deep."""
    limits = [MOST_ROWS]
    if max_depth is not None:
        limits.append(int(max_depth))
    if max_leaf_nodes is not None:
        limits.append(int(max_leaf_nodes) - 1)
    return min(limits)


def columns_per_split(max_features: int | float | str | None, n_columns: int) -> int:
    """Number of columns drawn at each node; an integer is returned as it is given."""
    if max_features is None:
        return n_columns
    if isinstance(max_features, Integral):
        return int(max_features)
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_columns)))
    if max_features == "log2":
        return max(1, int(np.log2(n_columns)))
    assert not isinstance(max_features, str)
    return max(1, int(max_features * n_columns))
