"""A model as ``init`` of a boosted one: its predictions are what rows begin with.

    X, y of the training rows ──▶ init_ ──predict──▶ raw predictions ──▶ trees that add to them

It is fitted to the rows that are grown from, so those that are held out score both models together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from dtrees.coding.target import Target
from dtrees.core.data._logarithm import log
from dtrees.core.losses.losses import Loss
from dtrees.core.losses.outputs import AnyLoss
from dtrees.estimators.eval_sets import EvalSets
from dtrees.estimators.prediction import offsets_of
from dtrees.parallel import is_lazy

if TYPE_CHECKING:
    from dtrees.estimators.boosted_start import Sides

LEAST = np.finfo(np.float64).eps  # share of a class, as in scikit-learn
BY_MODEL = "init is a model, which is fitted to each training side"


def is_model(init: Any) -> bool:
    """Whether ``init`` is a model, and no word."""
    return not isinstance(init, str | None)


def check_arguments(starts: Iterable[Any], columns: Iterable[Any]) -> None:
    """Refuse what goes with no model as ``init``.

    ValueError: rows begin with raw predictions as well. TypeError: a table is a Dask collection.
    """
    if any(each is not None for each in starts):
        raise ValueError("init is a model, and so is what init_score says. Give one of them.")
    if any(map(is_lazy, columns)):
        raise TypeError(
            "A model as init is fitted and asked in this process, and X or y is a Dask collection. "
            "Give X.compute(), or raw predictions of that model as init_score."
        )


def check_rows(loss: AnyLoss, target: Target) -> None:
    """Refuse (ValueError) what no model can begin."""
    if not isinstance(loss, Loss):
        what = "one target" if target.n_outputs > 1 else "a loss that has a name"
        raise ValueError(f"A model as init needs {what}. Give its raw predictions as init_score.")


def fitted_init(
    init: Any, X: Any, y: np.ndarray, target: Target, sides: Sides, sample_weight: Any
) -> Any:
    """A clone of ``init``, fitted to the rows that are grown from.

    Of classes it learns their numbers. ValueError: it takes no weights, and there are some.
    """
    values = target.y if target.kind == "classification" else y
    rows = np.arange(target.n_rows)[sides.train]
    given = [values[rows].ravel()]
    if sample_weight is not None:
        given.append(np.asarray(sample_weight)[rows])
        if isinstance(init, Pipeline) or not has_fit_parameter(init, "sample_weight"):
            raise ValueError(
                f"The initial estimator {type(init).__name__} does not support sample weights."
            )
    if len(rows) < target.n_rows:
        X = _safe_indexing(X.tocsr() if issparse(X) else X, rows)
    return clone(init).fit(X, *given)


def raw_of_init(init: Any, loss: AnyLoss, n_classes: int, X: Any) -> np.ndarray:
    """Raw predictions by a fitted ``init``, float64 (n_rows, n_values).

    `n_classes` is 0 of numbers. ValueError: it does not know all classes, or predicts numbers that
    have no logarithm.
    """
    if n_classes == 0:
        found = np.asarray(init.predict(X), dtype=np.float64)
        if isinstance(loss, Loss) and loss.is_log:
            if not (found > 0).all():
                raise ValueError(
                    f"init predicts {found.min():g}, and the loss {loss.name!r} needs positive "
                    "numbers, for their logarithms."
                )
            found = log(found)
        return offsets_of(found, len(found), 1)
    shares = np.asarray(init.predict_proba(X), dtype=np.float64)
    if shares.shape[1] != n_classes:
        raise ValueError(
            f"init tells {shares.shape[1]} classes apart, and y has {n_classes}: the rows that are "
            "grown from lack some."
        )
    shares = np.ascontiguousarray(shares.clip(LEAST, 1 - LEAST))
    if n_classes <= 2:
        own = np.ascontiguousarray(shares[:, -1])
        return (log(own) - log(1 - own))[:, None]
    logarithms = log(shares)
    return logarithms - logarithms.mean(axis=1, keepdims=True)


def with_starts(evals: EvalSets, raw_of: Callable[[Any], np.ndarray]) -> EvalSets:
    """Rows to be scored, which begin with raw predictions, too."""
    sets = tuple(replace(each, init_score=raw_of(each.X)) for each in evals.sets)
    return replace(evals, sets=sets)
