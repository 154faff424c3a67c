"""What a cross-validation is of: which models can be grown together, or why not; and the splits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from dtrees.estimators.base import BaseTrees
from dtrees.model_selection.stand_in import Split
from dtrees.parallel import is_lazy

OURS = ("dtrees.estimators.trees", "dtrees.estimators.forests")  # and not what is made of them


def why_not(estimator: Any, X: Any, y: Any, params: Iterable[str]) -> str | None:
    """Why the models of an estimator are not grown together; None: they are.

    Parameters
    ----------
    estimator : object
    X, y : object
    params : iterable of str
        Names of what is given to ``fit`` besides.
    """
    if not isinstance(estimator, BaseTrees) or type(estimator).__module__ not in OURS:
        return f"{type(estimator).__name__} is not an estimator of dtrees"
    if y is None:
        return "there is no y"
    if is_lazy(X) or is_lazy(y):
        return "X or y is a Dask collection"
    others = sorted(set(params) - {"sample_weight"})
    if others:
        return f"fit is given {', '.join(others)}"
    if sklearn.get_config()["enable_metadata_routing"]:
        return "metadata routing is enabled"
    return None


def why_not_splits(splits: Sequence[Split], n_rows: int) -> str | None:
    """Why splits are no sets of rows; None: they are."""
    for train, _ in splits:
        listed = np.zeros(n_rows, dtype=bool)
        if train.dtype != bool and len(train) > 0:
            listed[train] = True
            if np.count_nonzero(listed) < len(train):
                return "a training side lists rows twice"
    return None


def splits_of(estimator: Any, X: Any, y: Any, cv: Any, groups: Any) -> list[Split]:
    """The splits, drawn once."""
    X, y = indexable(X, y)
    found = check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups)
    return [(np.asarray(train), np.asarray(test)) for train, test in found]
