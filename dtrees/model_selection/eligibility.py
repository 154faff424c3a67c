"""Which models can be grown together, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sklearn

from dtrees.estimators.base import BaseTrees
from dtrees.estimators.boosting_base import BaseBoosting
from dtrees.model_selection.splits import Split
from dtrees.parallel import is_lazy, known_length


class NotShareableError(Exception):
    """Models cannot be grown together; scikit-learn's own function says what each is worth."""


MODULES = (  # and not what is made of them
    "dtrees.estimators.trees",
    "dtrees.estimators.random_forest",
    "dtrees.estimators.extra_trees",
    "dtrees.estimators.bagging",
)
BOOSTING = "dtrees.estimators.boosting"


def is_of_dtrees(estimator: Any) -> bool:
    """Whether an estimator is a tree or a forest of dtrees, and no subclass of one."""
    return isinstance(estimator, BaseTrees) and type(estimator).__module__ in MODULES


def is_boosted(estimator: Any) -> bool:
    """Whether an estimator is a boosted model of dtrees, and no subclass of one."""
    return isinstance(estimator, BaseBoosting) and type(estimator).__module__ == BOOSTING


def is_any_of_dtrees(estimator: Any) -> bool:
    """Whether an estimator is a tree, a forest or a boosted model of dtrees, and no subclass."""
    return is_of_dtrees(estimator) or is_boosted(estimator)


def unsupported_reason(estimator: Any, y: Any, params: Iterable[str]) -> str | None:
    """Why the models are not grown together; None: they are. `params` are names for ``fit``."""
    if not is_any_of_dtrees(estimator):
        return f"{type(estimator).__name__} is not an estimator of dtrees"
    return unsupported_fit(y, params, "sample_weight")


def unsupported_fit(y: Any, params: Iterable[str], known: str) -> str | None:
    """Why a fit to `y` is not one of many; `known` is the only parameter that it may be given."""
    if y is None:
        return "there is no y"
    if sklearn.get_config()["enable_metadata_routing"]:
        return "metadata routing is enabled"
    others = sorted(set(params) - {known})
    return f"fit is given {', '.join(others)}" if others else None


def unsupported_callbacks(*estimators: Any) -> str | None:
    """Why scikit-learn's own fits are needed: its callbacks hear of each of them."""
    for estimator in estimators:
        if getattr(estimator, "_skl_callbacks", None):  # from scikit-learn 1.9 on
            return f"{type(estimator).__name__} has callbacks, which hear of each fit"
    return None


def unsupported_splits(splits: Sequence[Split], n_rows: int) -> str | None:
    """Why splits are no sets of rows; None: they are."""
    if not splits:
        return "there are no splits"
    for split in splits:
        if not isinstance(split, tuple | list) or len(split) != 2:
            return "a split is no pair of a training side and a test side"
        for side in split:
            if not _are_rows(np.asarray(side), n_rows):
                return "a side of a split is no rows of X"
        train = np.asarray(split[0])
        listed = np.zeros(n_rows, dtype=bool)
        listed[train] = True
        if not listed.any():
            return "a training side is empty"
        if train.dtype != bool and np.count_nonzero(listed) < len(train):
            return "a training side lists rows twice"
    return None


def _are_rows(side: np.ndarray, n_rows: int) -> bool:
    """Whether these are numbers of rows, from the end where they are negative, or a mask."""
    if side.dtype == bool:
        return side.shape == (n_rows,)
    if side.ndim != 1 or side.dtype.kind not in "iu":
        return False
    return len(side) == 0 or bool(-n_rows <= side.min() and side.max() < n_rows)


def check_rows_can_be_taken(who: str, X: Any, reason: str | None) -> None:
    """Refuse a Dask collection whose rows scikit-learn's function would ask for in vain.

    Called before anything is computed. `who` asks; `reason` is why models are not grown together.
    Raises TypeError for a data frame, or an array of unknown block sizes or of sparse blocks.
    """
    if reason is None or not is_lazy(X):
        return
    if known_length(X) is None:
        lacks = "has no row numbers"
    elif not isinstance(getattr(X, "_meta", None), np.ndarray):
        lacks = "has sparse blocks, which scikit-learn does not read"
    else:
        return
    raise TypeError(
        f"{who} of a Dask collection: {reason}, so each model is fitted on rows taken by their "
        f"numbers, and this {type(X).__name__} {lacks}. Give the last step of a "
        "pipeline, and X as the steps before it leave it; or, where all columns are numbers, "
        "X.to_dask_array(lengths=True) of a data frame; or X.compute(), if it fits."
    )
