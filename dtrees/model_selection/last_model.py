"""The model of all rows beside those of the splits: whether it grows with them, or when asked for.

Together with many models one more costs little. Beside few of them, or where trees are so deep that
they share little, it would cost a fit, which a loop over the splits does not pay::

    one split, of .9 of the rows         two fits instead of one
    three folds, fully grown trees       three instead of two
    three folds, trees of 6 levels       .62 of the loop with it, .61 without
    ten folds, fully grown trees         .96                      .91
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtrees.estimators.base import BaseTrees
from dtrees.estimators.boosting_base import BaseBoosting
from dtrees.model_selection.splits import Split

LEAST_FITS = 1.9  # of all rows, that the training sides are worth together
MANY_FITS = 8.0  # the same of trees that share little
SHALLOW_DEPTH = 10
FEW_LEAVES = 1_000
LARGE_LEAF = 20  # rows


def grows_with_splits(estimator: Any, splits: Sequence[Split], n_rows: int) -> bool:
    """Whether the model of all rows grows with the models of the training sides."""
    fits = sum(len(train) for train, _ in splits) / n_rows
    return fits >= (LEAST_FITS if shares_most(estimator, n_rows) else MANY_FITS)


def shares_most(estimator: Any, n_rows: int) -> bool:
    """Whether models of several training sides have most of their growth in common."""
    if isinstance(estimator, BaseBoosting) or not isinstance(estimator, BaseTrees):
        return False
    depth, leaves, rows = (
        getattr(estimator, name) for name in ("max_depth", "max_leaf_nodes", "min_samples_leaf")
    )
    if (depth is not None and depth <= SHALLOW_DEPTH) or (leaves or FEW_LEAVES) < FEW_LEAVES:
        return True
    return bool((rows if isinstance(rows, int | np.integer) else rows * n_rows) >= LARGE_LEAF)
