"""What a cross-validation is of: which models can be grown together, or why not; and the splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from dtrees.estimators.base import BaseTrees
from dtrees.model_selection.stand_in import Split, Splits
from dtrees.parallel import admitted


class TogetherError(Exception):
    """Models cannot be grown together; scikit-learn's own function says what each is worth."""


OURS = ("dtrees.estimators.trees", "dtrees.estimators.forests")  # and not what is made of them


def why_not(estimator: Any, y: Any, params: Iterable[str]) -> str | None:
    """Why the models of an estimator are not grown together; None: they are.

    Parameters
    ----------
    estimator : object
    y : object
    params : iterable of str
        Names of what is given to ``fit`` besides.
    """
    if not isinstance(estimator, BaseTrees) or type(estimator).__module__ not in OURS:
        return f"{type(estimator).__name__} is not an estimator of dtrees"
    if y is None:
        return "there is no y"
    others = sorted(set(params) - {"sample_weight"})
    if others:
        return f"fit is given {', '.join(others)}"
    if sklearn.get_config()["enable_metadata_routing"]:
        return "metadata routing is enabled"
    return None


def in_memory(y: Any, groups: Any, params: Any) -> tuple[Any, Any, Any]:
    """What belongs to the rows of a table: fetched, where it is a Dask collection."""
    if not isinstance(params, Mapping):
        return *admitted(None, {"y": y, "groups": groups})[1:], params
    named = {f"params[{name!r}]": value for name, value in params.items()}
    _, y, groups, *values = admitted(None, {"y": y, "groups": groups, **named})
    return y, groups, dict(zip(params, values, strict=True))


def why_not_splits(splits: Sequence[Split], n_rows: int) -> str | None:
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


def splits_of(estimator: Any, X: Any, y: Any, cv: Any, groups: Any) -> Sequence[Split]:
    """The splits, drawn once; sides are what the splitter gives, for `why_not_splits` to judge."""
    X, y = indexable(X, y)
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    return Splits(splitter.split(X, y, groups), len(y))
