"""Cross-validation with scikit-learn's interface and results, at about the price of one fit.

scikit-learn splits, scores, counts failures and puts the results together. The fits are made here.
Before scikit-learn asks for the first one, all models have grown from one coded table
(`dtrees.estimators.training_sets`). A scorer that asks for predictions of held-out rows gets them
from their codes::

    cv ──▶ splits ──▶ training sets, and all rows ──▶ one growth ──▶ models
                                                                        │
    sklearn.model_selection.cross_validate ◀── fit: the next model ─────┤
                        │                  ◀── predict: rows by number ─┘
                        ▼
                     results; final_estimator (`last_model`)

Model i is that of ``clone(estimator).fit(X, y, sample_weight=w)``, with w zero outside of training
side i, bit for bit. Cuts of columns with more than ``max_bins`` values are those of all rows, also
of the held-out ones; no label is looked at for them. If that matters, set ``max_bins=None``, which
keeps every value. Where `max_bins` cuts a column, weights other than 0 and 1 move its cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import sklearn
import sklearn.model_selection
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.utils.metadata_routing import get_routing_for_object

from dtrees._warnings import warn
from dtrees.constraints import CV, Nothing, checked
from dtrees.exceptions import ClusterError
from dtrees.model_selection.cell_scores import scores_by_leaves, scores_by_score
from dtrees.model_selection.cells import Cells
from dtrees.model_selection.fit_together import fit_together
from dtrees.model_selection.intervals import (
    CrossValidation,
    intervals_by_sklearn,
    intervals_of,
    unsupported_intervals,
)
from dtrees.model_selection.missing_classes import warn_of_undefined
from dtrees.model_selection.nested import FittedSearches, scoring_of_search
from dtrees.model_selection.prefitted_proxy import PrefittedProxy, RowNumbers, scoring_of_proxies
from dtrees.model_selection.prepare import Arguments, Prepared
from dtrees.model_selection.shared_search import SharedSearch


@checked(sklearn.model_selection.cross_validate, cv=(*CV, Nothing()))
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: Any = np.nan,
) -> CrossValidation:
    """Fit and score an estimator by cross-validation.

    As :func:`sklearn.model_selection.cross_validate`, whose parameters and results these are. The
    result also has the estimator fitted to all rows, and prediction intervals.

    Parameters
    ----------
    estimator : tree, forest or boosted model of dtrees, or a search of dtrees over one
        Never fitted itself. Others are handed to scikit-learn's own function, and the final model
        is one fit more. A search is made anew on every training side (nested cross-validation),
        all of them from one coded table.
    X : table of shape (n_rows, n_columns)
        Anything that the estimator takes, Dask collections included; `y`, `groups` and weights may
        be such, too.
    y : array-like of shape (n_rows,)
        The target.
    groups : array-like of shape (n_rows,), default=None
        For splitters that keep the rows of a group together.
    scoring : str, callable, list, tuple or dict, default=None
        One scorer or several; None: the estimator's ``score``.
    cv : int, cross-validation generator or iterable of (train, test), default=None
        None: 5 folds, stratified for classifiers. A side is an array or a list of row numbers, or
        a mask; Dask collections of these are computed once. Sides may overlap, also the two of one
        split, share rows in any way (shuffle-split), and leave rows out.
    n_jobs : int, default=None
        For scikit-learn's own function. Trees grow on the estimator's ``n_jobs`` threads.
    verbose : int, default=0
        As scikit-learn's, whose lines come as the models are scored; the trees of forests, by model
        and number, are counted by a bar on the standard error stream before.
    params : dict, default=None
        For the estimator's ``fit``: ``sample_weight``, one weight per row of `X`; scores are not
        weighted. With others, and where metadata routing is enabled, scikit-learn's own function
        does the work.
    pre_dispatch : int or str, default="2*n_jobs"
        For scikit-learn's own function.
    return_train_score, return_estimator, return_indices : bool, default=False
        What else to return.
    error_score : "raise" or number, default=nan
        Score of a split whose fit or scorer fails, with a warning; "raise" raises its error.

    Returns
    -------
    results : CrossValidation
        A dict: ``test_score`` (or ``test_<name>`` for several scorers), ``fit_time`` and
        ``score_time`` in seconds, float64 of shape (n_splits,), and what was asked for. Models grow
        together, so ``fit_time`` is the time of all of them, divided by their number.
        The attribute ``final_estimator``, also ``results["final_estimator"]``, is the estimator
        fitted to all rows. It is no item of the dict. Where its fit fails and `error_score` is a
        number, it is not fitted, and there is a warning. It grows with the other models, or,
        where these are few or share little, when it is first asked for. Without memory for it then,
        there is a MemoryError, and it can be asked for again. ``fit_report_`` of all
        models is that of the growth that they share. With `return_estimator`, the result of a
        regressor has the method ``prediction_interval(X, confidence=0.9)``.

    Raises
    ------
    ClusterError
        A Dask cluster is in force, or asked for by ``regime``, and cannot be used.
    ValueError, TypeError, IndexError
        Where scikit-learn's function does, and with its message: it is called for all input that
        models cannot be grown together from.
    ValueError
        ``params["sample_weight"]`` has not one weight per row of `X`, or `groups` not one label.

    Warns
    -----
    sklearn.exceptions.FitFailedWarning
        The fit of a split, or of the final model, failed.
    UserWarning
        A scorer failed, or a class has fewer rows than there are folds.
    sklearn.exceptions.UndefinedMetricWarning
        A score is nan, and its test side lacks a class, or no label is its positive class.

    Notes
    -----
    Costs one coding of the table and one shared growth ([CV] 2.2.2 and 3.4); the trees that splits
    have in common are grown once. The final model grows with them if the training sides are worth
    1.9 fits of all rows (of deep trees and boosted models: 8), or on a cluster. Otherwise the
    result keeps the table and its codes until that model is asked for. Boosted models have the
    codes in common, and grow side by side.

    Models know the classes of all rows. Where a training side lacks one, scorers of shares
    ("neg_log_loss", "roc_auc") see a column of zeros for it. Models of scikit-learn's function do
    not know it, so that most of these scores are nan there. Scores of predictions are the same.
    Where a test side lacks a class, scores of shares that can be had ("neg_log_loss",
    "neg_brier_score") are those with the labels of all classes. scikit-learn's are nan.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate(DecisionTreeClassifier(max_depth=3), X, y, cv=10)
    >>> found["test_score"].shape
    (10,)
    >>> found.final_estimator.get_depth()
    3
    """
    options = {
        "scoring": scoring,
        "return_train_score": return_train_score,
        "return_estimator": return_estimator,
        "return_indices": return_indices,
        "error_score": error_score,
        "verbose": verbose,
        "n_jobs": n_jobs,
        "pre_dispatch": pre_dispatch,
    }
    arguments = Arguments("cross_validate", estimator, cv, groups, params)
    start, refused = perf_counter(), unsupported_intervals(estimator, return_estimator)
    prepared, together = fit_together(arguments, X, y, options)
    if together is None:
        only_here = return_indices is False
        options["return_indices"] = only_here or return_indices
        result = _by_sklearn(sklearn.model_selection.cross_validate, prepared, None, options)
        held_out = refused or intervals_by_sklearn(result, prepared)
        if is_classifier(estimator):
            splits = [(np.empty(0, dtype=np.intp), test) for test in result["indices"]["test"]]
            warn_of_undefined(_of_test_sides(result), splits, prepared.y, scoring)
        if only_here:
            del result["indices"]
        params = prepared.arguments.params
        final = _final(
            lambda: _fitted(estimator, prepared.X, prepared.y, params), estimator, error_score
        )
        return CrossValidation(result, held_out, final)
    models, has_last = together.models, together.late is None
    n_splits, seconds = len(prepared.arguments.cv), perf_counter() - start
    result = None
    if not return_indices and verbose == 0:
        result = _scored_here(models, prepared, scoring, return_train_score)
    if result is None:
        result = _by_sklearn(sklearn.model_selection.cross_validate, prepared, models, options)
    if is_classifier(estimator):
        scorers = _scoring_of(estimator, scoring)
        warn_of_undefined(_of_test_sides(result), prepared.arguments.cv, prepared.y, scorers)
    result["fit_time"] = np.full(n_splits, seconds / (n_splits + has_last))
    if return_estimator:
        result["estimator"] = [
            models.model(0, i) if models.error(i) is None else clone(estimator)
            for i in range(n_splits)
        ]
    held_out = refused or intervals_of(result["estimator"], models, prepared)
    if together.late is not None:
        late = partial(_final, together.late, together.estimator, error_score, is_late=True)
        return CrossValidation(result, held_out, grow=late)
    return CrossValidation(result, held_out, _final(together.last, estimator, error_score))


def _of_test_sides(result: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Scores of test sides by the names of their scorers; 0 where a fit fails, which is told."""
    prefix, is_scored = "test_", result["score_time"] > 0
    return {
        name.removeprefix(prefix): np.where(is_scored, found, 0.0)
        for name, found in result.items()
        if name.startswith(prefix)
    }


def _by_sklearn(
    function: Callable[..., Any],
    prepared: Prepared,
    models: Cells | FittedSearches | None,
    options: Mapping[str, Any],
) -> Any:
    """Result of scikit-learn's function for the models; where there are none, for its own."""
    given, y = prepared.arguments, prepared.y
    if models is None:
        rest = {"groups": given.groups, "cv": given.cv, "params": given.params}
        return function(given.estimator, prepared.X, y, **rest, **options)
    rows, options = RowNumbers(len(y), given.cv), dict(options)
    del options["n_jobs"]
    if "scoring" in options:
        scoring = _scoring_of(given.estimator, options["scoring"])
        options["scoring"] = scoring_of_proxies(scoring, prepared.X, models.classes)
    if isinstance(models, Cells):
        models.bring(rows, options.get("return_train_score", False))
    by_label = options.get("method", "predict") == "predict"
    proxy = PrefittedProxy(models, rows, given.estimator, by_label=by_label)
    return function(proxy, rows.table, y, cv=given.cv, **options)


def _scoring_of(estimator: Any, scoring: Any) -> Any:
    """The scorer: that of the call, or that of a search."""
    if scoring is None and isinstance(estimator, SharedSearch):
        return scoring_of_search(estimator)
    return scoring


def _scored_here(
    models: Cells | FittedSearches, prepared: Prepared, scoring: Any, return_train_score: bool
) -> dict[str, Any] | None:
    """Scores without scikit-learn's loop over the splits; None: it should compute them."""
    if not isinstance(models, Cells):
        return None
    splits = prepared.arguments.cv
    scored = scores_by_leaves(models, splits, scoring, return_train_score)
    if scored is None and scoring is None and not return_train_score:
        scored = scores_by_score(models, prepared.y, splits)
    if scored is None:
        return None
    seconds = np.repeat(scored.seconds, len(splits))
    result: dict[str, Any] = {"fit_time": None, "score_time": seconds}
    for name in dict.fromkeys(name for _, name in scored.scores):
        for side in dict.fromkeys(side for side, _ in scored.scores):
            (result[f"{side}_{name}"],) = scored.scores[side, name]
    return result


@checked(sklearn.model_selection.cross_val_score, cv=(*CV, Nothing()))
def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    error_score: Any = np.nan,
) -> np.ndarray:
    """Score an estimator by cross-validation.

    As :func:`sklearn.model_selection.cross_val_score`.

    Parameters
    ----------
    estimator, X, y, groups, cv, n_jobs, verbose, params, pre_dispatch, error_score
        As for `cross_validate`.
    scoring : str or callable, default=None
        One scorer; None: the estimator's ``score``.

    Returns
    -------
    scores : float64 array of shape (n_splits,)
        The scores of the held-out rows.
    """
    options = {
        "scoring": scoring,
        "error_score": error_score,
        "verbose": verbose,
        "n_jobs": n_jobs,
        "pre_dispatch": pre_dispatch,
    }
    arguments = Arguments("cross_val_score", estimator, cv, groups, params)
    prepared, together = fit_together(arguments, X, y, options, has_last=False)
    models = None if together is None else together.models
    is_single = not isinstance(scoring, Mapping | list | tuple | set)
    if models is not None and verbose == 0 and is_single:
        result = _scored_here(models, prepared, scoring, False)
        if result is not None:
            return result["test_score"]
    scores = _by_sklearn(sklearn.model_selection.cross_val_score, prepared, models, options)
    failed = models is None or any(models.error(i) for i in range(len(scores)))
    if not failed and is_classifier(estimator):
        warn_of_undefined({str(scoring): scores}, prepared.arguments.cv, prepared.y, scoring)
    return scores


@checked(sklearn.model_selection.cross_val_predict, cv=(*CV, Nothing()))
def cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    method: str = "predict",
) -> np.ndarray:
    """Predict every row by the model that was grown without it.

    As :func:`sklearn.model_selection.cross_val_predict`.

    Parameters
    ----------
    estimator, X, y, groups, n_jobs, verbose, params, pre_dispatch
        As for `cross_validate`.
    cv : int, cross-validation generator or iterable of (train, test), default=None
        Every row is in exactly one test side.
    method : {"predict", "predict_proba", "predict_log_proba"}, default="predict"
        What is asked of the models.

    Returns
    -------
    predictions : array of shape (n_rows,) or (n_rows, n_classes)
        In the order of the rows of `X`. Columns are the sorted classes of all rows; one that a
        training side lacks has share 0 there, or the least finite float for its logarithm.

    Raises
    ------
    ValueError, TypeError, IndexError
        As `cross_validate`; any fit that fails; test sides that are no partition of the rows.

    Warns
    -----
    RuntimeWarning
        A training side lacks a class, and `method` is not "predict".
    """
    options = {
        "method": method,
        "verbose": verbose,
        "n_jobs": n_jobs,
        "pre_dispatch": pre_dispatch,
    }
    arguments = Arguments("cross_val_predict", estimator, cv, groups, params)
    prepared, together = fit_together(arguments, X, y, options, has_last=False)
    models = None if together is None else together.models
    return _by_sklearn(sklearn.model_selection.cross_val_predict, prepared, models, options)


def _fitted(estimator: Any, X: Any, y: Any, params: Mapping[str, Any] | None) -> Any:
    """A clone, fitted to all rows with those parameters that are meant for its fit."""
    params = dict(params or {})
    if sklearn.get_config()["enable_metadata_routing"]:
        used = get_routing_for_object(estimator).consumes("fit", params)
        params = {name: value for name, value in params.items() if name in used}
    return clone(estimator).fit(X, y, **params)


def _final(fit: Callable[[], Any], estimator: Any, error_score: Any, is_late: bool = False) -> Any:
    """The model of all rows; unfitted where its fit fails and scores of failures are numbers.

    A late one may be asked for again when there is memory.
    """
    try:
        return fit()
    except ClusterError:
        raise
    except Exception as error:
        if isinstance(error_score, str) or (is_late and isinstance(error, MemoryError)):  # "raise"
            raise
        warn(
            "The fit to all rows failed, so that final_estimator is not fitted. "
            f"{type(error).__name__}: {error}",
            FitFailedWarning,
        )
        return clone(estimator)
