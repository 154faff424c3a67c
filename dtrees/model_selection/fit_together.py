"""The models of a cross-validation, grown together; or why scikit-learn has to fit them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring

from dtrees.callbacks import Bar
from dtrees.estimators.base import BaseTrees
from dtrees.estimators.boosting_base import BaseBoosting
from dtrees.estimators.ensemble import BaseForest
from dtrees.model_selection.cells import Cells
from dtrees.model_selection.eligibility import NotShareableError, unsupported_reason
from dtrees.model_selection.fitted_splits import fit_splits
from dtrees.model_selection.last_model import grows_with_splits
from dtrees.model_selection.nested import FittedSearches, unsupported_search
from dtrees.model_selection.prepare import (
    Arguments,
    OfCollections,
    Prepared,
    SplitTable,
    draw_splits,
    prepare,
)
from dtrees.model_selection.shared_search import SharedSearch
from dtrees.parallel import PartitionedTable, is_free

logger = logging.getLogger(__name__)

METHODS = ("predict", "predict_proba", "predict_log_proba")  # that are read from codes


@dataclass(frozen=True, eq=False)
class TogetherFitted:
    """Models that have grown together, and the one of all rows, if it has not grown with them."""

    models: Cells | FittedSearches
    late: Callable[[], Any] | None = None  # grows it, or raises the error of its fit
    estimator: Any = None  # a clone, from which it grows late

    def last(self) -> Any:
        """The model of all rows, if it has grown with the others; raises the error of its fit."""
        error = self.models.error(-1)
        if error is not None:
            raise error
        return self.models.model(0, -1)


def _grown_late(estimator: Any, work: SplitTable, told: Mapping[str, Any]) -> Any:
    """The model of all rows, alone; it tells what the others have shared."""
    alone = replace(work, splits=(), has_last=True, bar=None)
    model = TogetherFitted(fit_splits(estimator, alone).whole()).last()
    model._fit_report = {**told, **model._fit_report}
    return model


def fit_together(
    arguments: Arguments,
    X: Any,
    y: Any,
    options: Mapping[str, Any],
    *,
    has_last: bool | None = None,
) -> tuple[Prepared, TogetherFitted | None]:
    """Grow the models together; None: scikit-learn's function has to fit them itself.

    Input that no model can be grown from goes to scikit-learn as well. Its function, or each of its
    fits, then says what is wrong; ``error_score`` says what that is worth. `options` are other
    arguments of the function. `has_last`: whether one of all rows grows, too; None: it does, or
    it can grow later, if it would cost much.
    """
    estimator, params = arguments.estimator, arguments.params
    reason = _unsupported_reason(estimator, y, params, options.get("method", "predict"))
    check = partial(check_scoring, estimator, scoring=options.get("scoring"))
    prepared = prepare(arguments, X, y, reason=reason, check=check)
    fitted: TogetherFitted | None = None
    if prepared.reason is None:
        _check_one_per_row(prepared.arguments.sample_weight, len(prepared.y))
        try:
            fitted = _fitted_models(prepared, options, has_last)
        except NotShareableError as error:
            prepared = replace(prepared, reason=str(error))
            prepared.refuse_partitions()
        except (ValueError, TypeError, NotImplementedError) as error:  # of the input
            if isinstance(estimator, SharedSearch) or isinstance(prepared.X, PartitionedTable):
                raise
            prepared = replace(prepared, reason=str(error))
    if fitted is None:
        logger.info("%s is scikit-learn's: %s", arguments.who, prepared.reason)
        cv, groups = prepared.arguments.cv, prepared.arguments.groups
        if isinstance(cv, OfCollections):
            given = prepared.X if prepared.y is None else prepared.y
            cv = draw_splits(cv, prepared.X, given, groups)
            prepared = replace(prepared, arguments=replace(prepared.arguments, cv=cv))
    return prepared, fitted


def _fitted_models(
    prepared: Prepared, options: Mapping[str, Any], has_last: bool | None
) -> TogetherFitted:
    """The models of all splits, and of all rows."""
    estimator, given = prepared.arguments.estimator, prepared.arguments
    is_late = has_last is None and _may_be_late(prepared)
    if is_late:  # grown from what there is today, and with the same draws
        late, params = clone(estimator), deepcopy(given.params)
        prepared = replace(
            prepared, y=deepcopy(prepared.y), arguments=replace(given, params=params)
        )
    counts = options["verbose"] > 0 and isinstance(estimator, BaseForest)
    with Bar() if counts else nullcontext() as bar:
        work = prepared.shared(bar, has_last=not is_late and has_last is not False)
        if isinstance(estimator, SharedSearch):
            return TogetherFitted(FittedSearches(estimator, work))
        models = fit_splits(estimator, work).whole()
    if not is_late:
        return TogetherFitted(models)
    found = [each for each in models.fitted.models if not isinstance(each, Exception)]
    told = found[0]._fit_report if found else {}
    return TogetherFitted(models, partial(_grown_late, late, work, told), late)


def _may_be_late(prepared: Prepared) -> bool:
    """Whether the model of all rows had better grow when it is asked for, and can do so then."""
    estimator, splits = prepared.arguments.estimator, prepared.arguments.cv
    if not isinstance(estimator, BaseTrees | BaseBoosting):
        return False
    if isinstance(prepared.X, PartitionedTable) or not is_free(getattr(estimator, "regime", None)):
        return False
    return not grows_with_splits(estimator, splits, len(prepared.y))


def _unsupported_reason(
    estimator: Any, y: Any, params: Mapping[str, Any] | None, method: str
) -> str | None:
    """Why the models of an estimator, or of a search, are not grown together."""
    if isinstance(estimator, SharedSearch):
        reason = unsupported_search(estimator, y, list(params or ()))
    else:
        reason = unsupported_reason(estimator, y, params or ())
    if reason is None and not (method in METHODS and hasattr(estimator, method)):
        reason = f"method={method!r}"
    return reason


def _check_one_per_row(sample_weight: Any, n_rows: int) -> None:
    """scikit-learn hands weights of another length to each fit as they are."""
    shape = np.shape(sample_weight)
    if sample_weight is not None and shape != (n_rows,):
        raise ValueError(
            f"sample_weight in params has shape {shape}, but X has {n_rows} rows. Give one weight "
            "per row of X; the weights of each training side are taken from these."
        )
