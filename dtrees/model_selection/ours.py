"""What a cross-validation is of: which models can be grown together, or why not; and the splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from dtrees.estimators.base import BaseDecisionTree, BaseTrees
from dtrees.estimators.sets import TrainingTable
from dtrees.model_selection.folds import KeyedKFold
from dtrees.model_selection.stand_in import Split, drawn
from dtrees.parallel import Ledger, admitted, check_lengths, lazy_keys


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


def in_memory(y: Any, groups: Any, params: Any, cv: Any, ledger: Ledger) -> tuple[Any, Any, Any]:
    """What belongs to the rows of a table: fetched, where it is a Dask collection.

    Where folds are drawn by keys of groups, the keys are fetched, and not the labels.
    """
    if isinstance(cv, KeyedKFold):
        groups = lazy_keys(groups)
    if not isinstance(params, Mapping):
        return *admitted(None, {"y": y, "groups": groups}, ledger)[1:], params
    named = {f"params[{name!r}]": value for name, value in params.items()}
    _, y, groups, *values = admitted(None, {"y": y, "groups": groups, **named}, ledger)
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
    return drawn(splitter.split(X, y, groups), len(y))


def table_and_splits(
    who: str,
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any,
    groups: Any = None,
    params: Mapping[str, Any] | None = None,
    single: bool = False,
) -> tuple[TrainingTable, Sequence[Split]]:
    """What models of splits grow together from, for whom there is no other way.

    Parameters
    ----------
    who : str
        Asks; for the message.
    estimator, X, y, cv, groups, params
        As for `dtrees.model_selection.validation_surface`.
    single : bool, default=False
        Whether only a single tree will do.

    Raises
    ------
    TypeError
        The models cannot be grown together; said before a split is drawn, where it is known.
    ClusterError, ValueError
        The input, or a Dask cluster that it lies on, cannot be used.
    """
    reason = why_not(estimator, y, params or ())
    if reason is None and single and not isinstance(estimator, BaseDecisionTree):
        reason = f"{type(estimator).__name__} is not a single tree"
    splits: Sequence[Split] = []
    ledger = Ledger()
    if reason is None:
        y, groups, params = in_memory(y, groups, params, cv, ledger)
        X, y = indexable(*admitted(X, {"y": y}, ledger))
        check_lengths(len(y), {"groups": groups})
        splits = splits_of(estimator, X, y, cv, groups)
        reason = why_not_splits(splits, len(y))
    if reason is not None:
        remedy = ""
        if isinstance(estimator, Pipeline):
            remedy = " Give its last step, and X as the steps before it leave it."
        raise TypeError(f"{who} needs models that grow together: {reason}.{remedy}")
    return TrainingTable(X, y, (params or {}).get("sample_weight"), ledger), splits
