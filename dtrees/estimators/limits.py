"""What a user's limits mean: numbers or shares, of rows, columns and weight.

`dtrees.core.data.rules.GrowthRules` knows plain numbers only. What 0.1 or "sqrt" means is decided
here, as scikit-learn decides it: an integer is a number and a float is a share. Shares of columns
are rounded down, and are numbers from here on. Shares of rows are rounded up, once the rows of a
training set are known (`dtrees.core.membership.shares`).
"""

from __future__ import annotations

from numbers import Integral

import numpy as np

from dtrees.core.membership.shares import Shares, rows_of_share

MOST_ROWS = 2**31 - 1  # a table has no more, so no limit needs to be larger


def least_rows(limit: int | float) -> int:
    """A least number of rows; 1 where it is a share, which `shares_of` has."""
    return min(int(limit), MOST_ROWS) if isinstance(limit, Integral) else 1


def rows_of_split(limit: int | float, n_rows: int) -> int:
    """Least number of rows of a node that is split, in a training set of `n_rows` that count."""
    number = isinstance(limit, Integral)
    return max(2, least_rows(limit) if number else rows_of_share(limit, n_rows))


def shares_of(split: int | float, leaf: int | float, weight: float) -> Shares:
    """``min_samples_split``, ``min_samples_leaf``, ``min_weight_fraction_leaf`` that are shares."""
    return Shares(
        min_samples_split=0.0 if isinstance(split, Integral) else float(split),
        min_samples_leaf=0.0 if isinstance(leaf, Integral) else float(leaf),
        min_weight_leaf=float(weight),
    )


def depth_of(max_depth: int | None, max_leaf_nodes: int | None) -> int:
    """Greatest depth worth growing: a tree of k leaves is at most k - 1 deep."""
    limits = [MOST_ROWS]
    if max_depth is not None:
        limits.append(int(max_depth))
    if max_leaf_nodes is not None:
        limits.append(int(max_leaf_nodes) - 1)
    return min(limits)


def node_bytes(n_rows: int, n_classes: int, depth: int | None, least: int) -> int:
    """Bytes of the weights of the classes in all nodes of a tree, at most, while it grows.

    `depth` is the greatest one, and `least` the least number of rows of a leaf.
    """
    leaves = max(1, min(n_rows // max(1, least), 2 ** min(62 if depth is None else depth, 62)))
    return 8 * n_classes * 2 * leaves


def columns_per_split(max_features: int | float | str | None, n_columns: int) -> int:
    """Number of columns drawn at each node, at most all."""
    if max_features is None:
        return n_columns
    if isinstance(max_features, Integral):
        return min(int(max_features), n_columns)
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_columns)))
    if max_features == "log2":
        return max(1, int(np.log2(n_columns)))
    assert not isinstance(max_features, str)
    return max(1, int(max_features * n_columns))
