"""What a cross-validation is of: which models can be grown together, or why not; and the splits."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from dtrees.coding.sparse_places import check_sparse
from dtrees.estimators.base import BaseDecisionTree, BaseTrees
from dtrees.estimators.sets import TrainingTable
from dtrees.model_selection.folds import KeyedKFold
from dtrees.model_selection.stand_in import Split, drawn
from dtrees.parallel import (
    Ledger,
    admitted,
    check_lengths,
    computed,
    is_lazy,
    known_length,
    lazy_keys,
    rows_as_array,
)


class TogetherError(Exception):
    """Models cannot be grown together; scikit-learn's own function says what each is worth."""


OURS = ("dtrees.estimators.trees", "dtrees.estimators.forests")  # and not what is made of them


def is_ours(estimator: Any) -> bool:
    """Whether an estimator is a tree or a forest of dtrees, and nothing that is made of one."""
    return isinstance(estimator, BaseTrees) and type(estimator).__module__ in OURS


def why_not(estimator: Any, y: Any, params: Iterable[str]) -> str | None:
    """Why the models of an estimator are not grown together; None: they are.

    Parameters
    ----------
    estimator : object
    y : object
    params : iterable of str
        Names of what is given to ``fit`` besides.
    """
    if not is_ours(estimator):
        return f"{type(estimator).__name__} is not an estimator of dtrees"
    if y is None:
        return "there is no y"
    others = sorted(set(params) - {"sample_weight"})
    if others:
        return f"fit is given {', '.join(others)}"
    if sklearn.get_config()["enable_metadata_routing"]:
        return "metadata routing is enabled"
    return None


def in_memory(
    X: Any, y: Any, groups: Any, params: Any, cv: Any, ledger: Ledger
) -> tuple[Any, Any, Any]:
    """What belongs to the rows of a table: fetched, where it is a Dask collection.

    Where folds are drawn by keys of groups, the keys are fetched, and not the labels. The table is
    looked at before scikit-learn converts it: a damaged sparse matrix would end the process.
    """
    check_sparse(X=X, y=y, groups=groups)
    if isinstance(params, Mapping):
        check_sparse(**{str(name): value for name, value in params.items()})
    if isinstance(cv, KeyedKFold):
        groups = lazy_keys(groups)
    if not isinstance(params, Mapping):
        _, y, groups = admitted(None, {"y": y, "groups": groups}, ledger)
        return y, _of_one_column(groups), params
    named = {f"params[{name!r}]": value for name, value in params.items()}
    _, y, groups, *values = admitted(None, {"y": y, "groups": groups, **named}, ledger)
    return y, _of_one_column(groups), dict(zip(params, values, strict=True))


def _of_one_column(groups: Any) -> Any:
    """Labels of a table of one column as a column, with scikit-learn's warning for such a y.

    Its splitters that ask for groups fail on a table ("object too deep for desired array").
    """
    shape: tuple[int, ...] = getattr(groups, "shape", ())
    if len(shape) != 2 or shape[1] != 1:
        return groups
    warnings.warn(
        f"A column-vector groups was passed when a 1d array was expected: its shape is {shape}. "
        "Change it to (n_rows,), for example by ravel().",
        DataConversionWarning,
        stacklevel=4,
    )
    return groups.iloc[:, 0] if hasattr(groups, "iloc") else np.asarray(groups)[:, 0]


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
    return draw_splits(splitter, X, y, groups)


def is_of_dask_ml(splitter: Any) -> bool:
    """Whether a splitter is one of dask-ml, or made of one: it knows Dask arrays only."""
    return any(base.__module__.partition(".")[0] == "dask_ml" for base in type(splitter).__mro__)


def draw_splits(splitter: Any, X: Any, y: Any, groups: Any) -> Sequence[Split]:
    """The splits of a splitter, drawn once.

    Those of dask-ml get the user's collection, and give Dask arrays of row numbers, which are
    computed together.
    """
    if not is_of_dask_ml(splitter):
        return drawn(splitter.split(X, y, groups), len(y))
    splits = [tuple(split) for split in splitter.split(rows_as_array(X, len(y)))]
    sides = iter(computed(*itertools.chain.from_iterable(splits)))
    return drawn([tuple(next(sides) for _ in split) for split in splits], len(y))


def check_rows_can_be_taken(who: str, X: Any, reason: str | None) -> None:
    """Refuse a Dask collection whose rows scikit-learn's function would ask for in vain.

    Called before anything is computed.

    Parameters
    ----------
    who : str
        Asks; for the message.
    X : table
    reason : str or None
        Why models are not grown together; None: they are.

    Raises
    ------
    TypeError
        `X` is a data frame, or an array of unknown block sizes.
    """
    if reason is None or not is_lazy(X) or known_length(X) is not None:
        return
    raise TypeError(
        f"{who} of a Dask collection: {reason}, so each model is fitted on rows taken by their "
        f"numbers, and this {type(X).__name__} has no row numbers. Give the last step of a "
        "pipeline, and X as the steps before it leave it; or, where all columns are numbers, "
        "X.to_dask_array(lengths=True) of a data frame; or X.compute(), if it fits."
    )


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
        y, groups, params = in_memory(X, y, groups, params, cv, ledger)
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
