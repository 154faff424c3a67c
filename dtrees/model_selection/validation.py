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
                     results; final_estimator

Model i is that of ``clone(estimator).fit(X, y, sample_weight=w)``, with w zero outside of training
side i, bit for bit. Cuts of columns with more than ``max_bins`` values are those of all rows, also
of the held-out ones; no label is looked at for them. If that matters, set ``max_bins=None``, which
keeps every value. Where `max_bins` cuts a column, weights other than 0 and 1 move its cuts.

The model of all rows grows with those of the splits, or when it is asked for. Together with many
models one more costs little. Beside few of them, or where trees are so deep that they share little,
it would cost a fit, which a loop over the splits does not pay::

    one split, of .9 of the rows         two fits instead of one
    three folds, fully grown trees       three instead of two
    three folds, trees of 6 levels       .62 of the loop with it, .61 without
    ten folds, fully grown trees         .96                      .91
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import sklearn
import sklearn.model_selection
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.utils.metadata_routing import get_routing_for_object

from dtrees._warnings import warn
from dtrees.callbacks import Bar
from dtrees.constraints import CV, Nothing, checked
from dtrees.estimators.base import BaseModel
from dtrees.estimators.forests import BaseForest, BaseTrees
from dtrees.exceptions import ClusterError
from dtrees.model_selection.candidates import Cells
from dtrees.model_selection.fitted_splits import (
    fit_splits,
    scores_by_leaves,
    scores_by_predictions,
    warn_of_undefined,
)
from dtrees.model_selection.folds import TEST, TRAIN, FoldSplits, Split
from dtrees.model_selection.intervals import (
    CrossValidation,
    intervals_by_sklearn,
    intervals_of,
    unsupported_intervals,
)
from dtrees.model_selection.prefitted_proxy import (
    PrefittedProxy,
    RowNumbers,
    refuse_functions,
    scoring_of_proxies,
)
from dtrees.model_selection.prepare import (
    Arguments,
    NotShareableError,
    OfCollections,
    SplitTable,
    draw_splits,
    prepare,
    refuse_starts,
)
from dtrees.model_selection.search import (
    FittedSearches,
    SharedSearch,
    scoring_of_search,
    unsupported_model,
)
from dtrees.model_selection.sides import here, of_sides
from dtrees.parallel import PartitionedTable, is_free, tables_kept

LEAST_FITS = 1.9  # of all rows, that the training sides are worth together
MANY_FITS = 8.0  # the same of trees that share little
SHALLOW_DEPTH = 10
FEW_LEAVES = 1_000
LARGE_LEAF = 20  # rows


def grows_later(estimator: Any, X: Any, splits: Sequence[Split], n_rows: int) -> bool:
    """Whether the model of all rows had better grow when it is asked for, and can do so then."""
    if not isinstance(estimator, BaseModel) or isinstance(X, PartitionedTable):
        return False
    if not is_free(getattr(estimator, "regime", None)):
        return False
    shares_most = False  # of its growth with the models of the training sides
    if isinstance(estimator, BaseTrees):
        depth, leaves, rows = (
            getattr(estimator, name) for name in ("max_depth", "max_leaf_nodes", "min_samples_leaf")
        )
        shares_most = bool(
            (depth is not None and depth <= SHALLOW_DEPTH)
            or (leaves or FEW_LEAVES) < FEW_LEAVES
            or (rows if isinstance(rows, int | np.integer) else rows * n_rows) >= LARGE_LEAF
        )
    fits = sum(len(train) for train, _ in splits) / n_rows
    return fits < (LEAST_FITS if shares_most else MANY_FITS)


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
) -> tuple[Arguments, TogetherFitted | None]:
    """Grow the models together; None: scikit-learn's function has to fit them itself.

    Input that no model can be grown from goes to scikit-learn as well. Its function, or each of its
    fits, then says what is wrong; ``error_score`` says what that is worth. `options` are other
    arguments of the function. `has_last`: whether one of all rows grows, too; None: it does, or
    it can grow later, if it would cost much.
    """
    estimator, method = arguments.estimator, options.get("method", "predict")
    reason = unsupported_model(estimator, y, arguments.params or ())
    if reason is None and not (method in METHODS and hasattr(estimator, method)):
        reason = f"method={method!r}"
    if reason is None and "init_score" in (arguments.params or ()):
        refuse_functions(options.get("scoring"))
        refuse_functions(estimator.scoring if isinstance(estimator, SharedSearch) else None)
    check = partial(check_scoring, estimator, scoring=options.get("scoring"))
    prepared = prepare(arguments, X, y, reason=reason, check=check)
    fitted: TogetherFitted | None = None
    if prepared.reason is None:
        n_rows, shape = len(prepared.y), np.shape(prepared.sample_weight)
        if prepared.sample_weight is not None and shape != (n_rows,):
            # scikit-learn hands weights of another length to each fit as they are
            raise ValueError(
                f"sample_weight in params has shape {shape}, but X has {n_rows} rows. Give one "
                "weight per row of X; the weights of each training side are taken from these."
            )
        try:
            fitted = _fitted_models(prepared, options, has_last)
        except NotShareableError as error:
            if prepared.checkpoint is not None and error.__cause__ is not None:
                raise error.__cause__ from None
            prepared = replace(prepared, reason=str(error))
            prepared.refuse_partitions()
        except (ValueError, TypeError, NotImplementedError) as error:  # of the input
            is_needed = isinstance(estimator, SharedSearch)
            is_needed |= prepared.checkpoint is not None
            if is_needed or isinstance(prepared.X, PartitionedTable):
                raise
            prepared = replace(prepared, reason=str(error))
    if fitted is None:
        logger.info("%s is scikit-learn's: %s", arguments.who, prepared.reason)
        cv, groups = prepared.cv, prepared.groups
        if isinstance(cv, OfCollections):
            given = prepared.X if prepared.y is None else prepared.y
            cv = draw_splits(cv, prepared.X, given, groups)
            prepared = replace(prepared, cv=cv)
    return prepared, fitted


def _fitted_models(
    prepared: Arguments, options: Mapping[str, Any], has_last: bool | None
) -> TogetherFitted:
    """The models of all splits, and of all rows."""
    estimator = prepared.estimator
    of_rows = prepared.X, prepared.cv, len(prepared.y)
    is_late = has_last is None and grows_later(estimator, *of_rows)
    if is_late:  # grown from what there is today, and with the same draws
        late, params = deepcopy(estimator._unfitted()), deepcopy(prepared.params)
        prepared = replace(prepared, y=deepcopy(prepared.y), params=params)
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


@checked(sklearn.model_selection.cross_validate, cv=(*CV, Nothing()))
@tables_kept()
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
    checkpoint: Any = None,
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
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
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
        weighted. Of boosted models also ``init_score``, with which held-out rows begin, too. With
        others, and where metadata routing is enabled, scikit-learn's own function does the work.
    pre_dispatch : int or str, default="2*n_jobs"
        For scikit-learn's own function.
    return_train_score, return_estimator, return_indices : bool, default=False
        What else to return.
    error_score : "raise" or number, default=nan
        Score of a split whose fit or scorer fails, with a warning; "raise" raises its error.
    checkpoint : str or path, default=None
        A folder for trees that have grown, or its URL, as of forests. The same call goes on with
        them, and scores models anew.

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
    codes in common, and grow side by side. Of Dask collections `X` and `y` whose codes stay on the
    workers of a cluster, this process holds nothing for each row: sides are scored by a worker
    each. A fit or a scorer that fails, and prediction intervals, need the columns here.

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
    arguments = Arguments("cross_validate", estimator, cv, groups, params, checkpoint=checkpoint)
    start, refused = perf_counter(), unsupported_intervals(estimator, return_estimator, params)
    prepared, together = fit_together(arguments, X, y, options)
    if together is None:
        return _one_by_one(prepared, options, refused)
    models, n_splits, seconds = together.models, len(prepared.cv), perf_counter() - start
    result = None
    if not return_indices and verbose == 0:
        result = _scored_here(models, prepared, scoring, return_train_score)
    if result is None:
        result = _by_sklearn(sklearn.model_selection.cross_validate, prepared, models, options)
    if is_classifier(estimator):
        if scoring is None and isinstance(estimator, SharedSearch):
            scoring = scoring_of_search(estimator)
        warn_of_undefined(_of_test_sides(result), prepared.cv, prepared.y, scoring)
    result["fit_time"] = np.full(n_splits, seconds / (n_splits + (together.late is None)))
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


def _one_by_one(prepared: Arguments, options: dict[str, Any], refused: Any) -> CrossValidation:
    """Validation of models that do not grow together: scikit-learn's function fits them."""
    estimator, error_score = prepared.estimator, options["error_score"]
    only_here = options["return_indices"] is False
    options["return_indices"] = only_here or options["return_indices"]
    result = _by_sklearn(sklearn.model_selection.cross_validate, prepared, None, options)
    held_out = refused or intervals_by_sklearn(result, prepared)
    if is_classifier(estimator):
        splits = [(np.empty(0, dtype=np.intp), test) for test in result["indices"]["test"]]
        warn_of_undefined(_of_test_sides(result), splits, prepared.y, options["scoring"])
    if only_here:
        del result["indices"]
    fit = partial(_fitted, estimator, prepared.X, prepared.y, prepared.params)
    return CrossValidation(result, held_out, _final(fit, estimator, error_score))


def _of_test_sides(result: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Scores of test sides by the names of their scorers; 0 where a fit fails, which is told."""
    is_scored = result["score_time"] > 0
    return {
        name.removeprefix("test_"): np.where(is_scored, found, 0.0)
        for name, found in result.items()
        if name.startswith("test_")
    }


def _by_sklearn(
    function: Callable[..., Any],
    prepared: Arguments,
    models: Cells | FittedSearches | None,
    options: Mapping[str, Any],
) -> Any:
    """Result of scikit-learn's function for the models; where there are none, for its own."""
    y = here(prepared.y)
    if models is None:
        refuse_starts(prepared, prepared.reason)
        rest = {"groups": prepared.groups, "cv": prepared.cv, "params": prepared.params}
        return function(prepared.estimator, prepared.X, y, **rest, **options)
    rows, options = RowNumbers(len(y), prepared.cv), dict(options)
    del options["n_jobs"]
    if "scoring" in options:
        scoring = options["scoring"]
        if scoring is None and isinstance(prepared.estimator, SharedSearch):
            scoring = scoring_of_search(prepared.estimator)
        options["scoring"] = scoring_of_proxies(scoring, prepared.X, models.classes)
    if isinstance(models, Cells):
        models.bring(list(rows.sides(options.get("return_train_score", False))))
    by_label = options.get("method", "predict") == "predict"
    proxy = PrefittedProxy(models, rows, prepared.estimator, by_label=by_label)
    return function(proxy, rows.table, y, cv=prepared.cv, **options)


def _scored_here(
    models: Cells | FittedSearches, prepared: Arguments, scoring: Any, return_train_score: bool
) -> dict[str, Any] | None:
    """Scores without scikit-learn's loop over the splits; None: it should compute them."""
    if not isinstance(models, Cells):
        return None
    splits = prepared.cv
    scored = scores_by_leaves(models, splits, scoring, return_train_score)
    if scored is None:
        about = prepared.X, prepared.y, splits
        scored = scores_by_predictions(models, *about, scoring, return_train_score)
    if scored is None:
        return None
    seconds = np.repeat(scored.seconds, len(splits))
    result: dict[str, Any] = {"fit_time": None, "score_time": seconds}
    for name in dict.fromkeys(name for _, name in scored.scores):
        for side in dict.fromkeys(side for side, _ in scored.scores):
            (result[f"{side}_{name}"],) = scored.scores[side, name]
    return result


def _predicted_here(models: Cells, prepared: Arguments, method: str) -> np.ndarray | None:
    """Predictions without scikit-learn's loop; None: it says what is wrong with fits or sides."""
    splits, n_rows = prepared.cv, len(prepared.y)
    numbers, found, n_told = RowNumbers(n_rows, splits), None, 0
    classes = None if method == "predict" else models.classes
    if not isinstance(splits, FoldSplits) or np.ndim(prepared.y) != 1:
        return None
    for number in range(len(splits)):
        train = () if classes is None else models.fitted.y[splits.has(number, TRAIN)]
        if classes is not None and len(np.unique(train)) < len(classes):
            return None
    if models.fitted.coded_rows.is_here:
        models.bring(list(numbers.sides()))
    sides = [(number, TEST, partial(_predicted, method)) for number in range(len(splits))]
    of_splits = of_sides(models, splits, sides, with_targets=False)
    for number, own in enumerate(of_splits):
        found = np.empty((n_rows, *own.shape[1:]), own.dtype) if found is None else found
        rows = numbers.rows(number)
        found[rows] = own
        n_told += len(rows)
    return found if n_told == n_rows else None


def _predicted(method: str, cells: Cells, number: int, rows: np.ndarray) -> np.ndarray:
    """What the model of a split predicts for some rows."""
    proxy = PrefittedProxy(cells, RowNumbers(0, ()), cells.growth.estimator).of_split(number)
    found: np.ndarray = getattr(proxy, method)(rows[:, None])
    return found


@checked(sklearn.model_selection.cross_val_score, cv=(*CV, Nothing()))
@tables_kept()
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
    checkpoint: Any = None,
) -> np.ndarray:
    """Score an estimator by cross-validation.

    As :func:`sklearn.model_selection.cross_val_score`.

    Parameters
    ----------
    estimator, X, y, groups, cv, n_jobs, verbose, params, pre_dispatch, error_score
        As for `cross_validate`.
    scoring : str or callable, default=None
        One scorer; None: the estimator's ``score``.
    checkpoint : str or path, default=None
        As for `cross_validate`.

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
    arguments = Arguments("cross_val_score", estimator, cv, groups, params, checkpoint=checkpoint)
    prepared, together = fit_together(arguments, X, y, options, has_last=False)
    models = None if together is None else together.models
    is_single = not isinstance(scoring, Mapping | list | tuple | set)
    result = None
    if models is not None and verbose == 0 and is_single:
        result = _scored_here(models, prepared, scoring, False)
    own = sklearn.model_selection.cross_val_score
    scores = result["test_score"] if result else _by_sklearn(own, prepared, models, options)
    failed = models is None or any(models.error(i) for i in range(len(scores)))
    if not failed and is_classifier(estimator):
        warn_of_undefined({str(scoring): scores}, prepared.cv, prepared.y, scoring)
    return scores


@checked(sklearn.model_selection.cross_val_predict, cv=(*CV, Nothing()))
@tables_kept()
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
    checkpoint: Any = None,
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
    checkpoint : str or path, default=None
        As for `cross_validate`.

    Returns
    -------
    predictions : array of shape (n_rows,), (n_rows, n_classes) or (n_rows, n_outputs), or a list
        In the order of the rows of `X`; shares of several targets are a list of arrays. Columns are
        the sorted classes of all rows; one that a training side lacks has share 0 there, or the
        least finite float for its logarithm.

    Raises
    ------
    ValueError, TypeError, IndexError
        As `cross_validate`; any fit that fails; test sides that are no partition of the rows.

    Warns
    -----
    RuntimeWarning
        A training side lacks a class, and `method` is not "predict".
    """
    options = {"method": method, "verbose": verbose, "n_jobs": n_jobs, "pre_dispatch": pre_dispatch}
    arguments = Arguments("cross_val_predict", estimator, cv, groups, params, checkpoint=checkpoint)
    prepared, together = fit_together(arguments, X, y, options, has_last=False)
    models = None if together is None else together.models
    if isinstance(models, Cells) and verbose == 0:
        found = _predicted_here(models, prepared, method)
        if found is not None:
            return found
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
