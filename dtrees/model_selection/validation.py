"""Cross-validation with scikit-learn's interface and results, at about the price of one fit.

scikit-learn splits, scores, counts failures and puts the results together. What is ours is the
fits: before it asks for the first one, the models of all splits and the one of all rows have been
grown from one coded table (`dtrees.estimators.sets`), and a scorer that asks for predictions of
held-out rows gets them from their codes::

    cv ──▶ splits ──▶ training sets, and all rows ──▶ one growth ──▶ models
                                                                        │
    sklearn.model_selection.cross_validate ◀── fit: the next model ─────┤
                        │                  ◀── predict: rows by number ─┘
                        ▼
                     results, and `final`

Model i is that of ``clone(estimator).fit(X, y, sample_weight=w)``, with w zero outside of training
side i, bit for bit. Cuts of columns with more than ``max_codes`` values are those of all rows, also
of the held-out ones: no label is looked at for them, but who minds sets ``max_codes=None``, which
keeps every value.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral, Real
from time import perf_counter
from typing import Any

import numpy as np
import sklearn
import sklearn.model_selection
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import get_routing_for_object

from dtrees.callbacks import Bar
from dtrees.core.smaller import WHOLE, ManyLimits
from dtrees.estimators.ensemble import BaseForest
from dtrees.estimators.sets import FittedSets, TrainingTable, fit_table, trees_of
from dtrees.model_selection.leaf_scores import leaf_scores_of, scores_of_splits
from dtrees.model_selection.nested import GrownSearches, scoring_of_search, why_not_nested
from dtrees.model_selection.ours import (
    TogetherError,
    check_rows_can_be_taken,
    draw_splits,
    in_memory,
    is_of_dask_ml,
    splits_of,
    why_not,
    why_not_splits,
)
from dtrees.model_selection.search import SharedSearch
from dtrees.model_selection.stand_in import (
    RowNumbers,
    Split,
    StandIn,
    scoring_of_stand_ins,
    training_sets,
)
from dtrees.parallel import Ledger, PartitionedTable, admitted, check_lengths, known_length

logger = logging.getLogger(__name__)

WHOLE_TREES = ManyLimits.of([WHOLE])
METHODS = ("predict", "predict_proba", "predict_log_proba")  # that are read from codes
TYPES: Mapping[str, Any] = {  # of arguments that scikit-learn's function may not be asked about
    "n_jobs": Integral | None,
    "params": dict | None,
    "pre_dispatch": Integral | str,
    "verbose": Integral,
    "error_score": Real | str,
    "return_train_score": bool | np.bool_,
    "return_estimator": bool | np.bool_,
    "return_indices": bool | np.bool_,
}


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
) -> dict[str, Any]:
    """Fit and score an estimator by cross-validation.

    As :func:`sklearn.model_selection.cross_validate`, whose parameters and results these are, but
    for one more result, ``final``.

    Parameters
    ----------
    estimator : tree or forest of dtrees, or a search of dtrees.model_selection over one
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
        a mask. Sides may overlap, also the two of one split, share rows in any way (shuffle-split),
        and leave rows out.
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
    results : dict
        ``test_score`` (or ``test_<name>`` for several scorers), ``fit_time`` and ``score_time`` in
        seconds, float64 of shape (n_splits,), and what was asked for. Models grow together, so
        ``fit_time`` is the time of all of them, divided by their number. ``final`` is the
        estimator fitted to all rows; where that fails and `error_score` is a number, it is not
        fitted, and there is a warning. ``fit_report_`` of all models is that of the growth that
        they share.

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

    Notes
    -----
    Costs one coding of the table and one shared growth ([CV] 2.2.2 and 3.4); the trees that splits
    have in common are grown once.

    Models know the classes of all rows. Where a training side lacks one, scorers of shares
    ("neg_log_loss", "roc_auc") see a column of zeros for it. Models of scikit-learn's function do
    not know it, so that most of these scores are nan there. Scores of predictions are the same.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate(DecisionTreeClassifier(max_depth=3), X, y, cv=10)
    >>> found["test_score"].shape
    (10,)
    >>> found["final"].get_depth()
    3
    """
    arguments = {
        "scoring": scoring,
        "return_train_score": return_train_score,
        "return_estimator": return_estimator,
        "return_indices": return_indices,
        "error_score": error_score,
        "verbose": verbose,
        "pre_dispatch": pre_dispatch,
    }
    _check_before("cross_validate", estimator, X, y, params)
    ledger = Ledger()
    y, groups, params = in_memory(X, y, groups, params, cv, ledger)
    given = {"groups": groups, "n_jobs": n_jobs, "params": params}
    start = perf_counter()
    work = _plan("cross_validate", estimator, X, y, cv, given | arguments, ledger)
    if work.grown is None:
        result = sklearn.model_selection.cross_validate(
            estimator, X, y, cv=work.cv, **given, **arguments
        )
        result["final"] = _final(lambda: _fitted(estimator, X, y, params), estimator, error_score)
        return result
    grown, splits, seconds = work.grown, work.cv, perf_counter() - start
    scoring = _scoring_of(estimator, scoring)
    result = None
    if not return_indices and verbose == 0:
        result = _scored_by_leaves(grown, splits, scoring, return_train_score)
    if result is None:
        result = sklearn.model_selection.cross_validate(
            StandIn(grown, grown.rows, estimator),
            grown.rows.table,
            y,
            cv=splits,
            **(arguments | {"scoring": scoring_of_stand_ins(scoring, work.X)}),
        )
    result["fit_time"] = np.full(len(splits), seconds / (len(splits) + 1))
    if return_estimator:
        models = [
            grown.model(0, i) if grown.error(i) is None else clone(estimator)
            for i in range(len(splits))
        ]
        result["estimator"] = models
    result["final"] = _final(lambda: _grown_final(grown), estimator, error_score)
    return result


def _why_not(
    estimator: Any, y: Any, params: Mapping[str, Any] | None, method: str = "predict"
) -> str | None:
    """Why the models of an estimator, or of a search, are not grown together."""
    if isinstance(estimator, SharedSearch):
        reason = why_not_nested(estimator, y, list(params or ()))
    else:
        reason = why_not(estimator, y, params or ())
    if reason is None and not (method in METHODS and hasattr(estimator, method)):
        reason = f"method={method!r}"
    return reason


def _check_before(
    name: str, estimator: Any, X: Any, y: Any, params: Any, method: str = "predict"
) -> None:
    """Refuse, before anything is computed, what neither we nor scikit-learn's function can do."""
    if isinstance(params, Mapping | None):  # others are for scikit-learn to refuse
        check_rows_can_be_taken(name, X, _why_not(estimator, y, params, method))


def _scoring_of(estimator: Any, scoring: Any) -> Any:
    """What to score by; a search knows it itself."""
    if scoring is None and isinstance(estimator, SharedSearch):
        return scoring_of_search(estimator)
    return scoring


def _grown(
    estimator: Any,
    X: Any,
    y: Any,
    splits: Sequence[Split],
    arguments: Mapping[str, Any],
    ledger: Ledger,
) -> Grown | GrownSearches:
    """The models of all splits and of all rows."""
    sample_weight = (arguments["params"] or {}).get("sample_weight")
    if isinstance(estimator, SharedSearch):
        return GrownSearches(estimator, X, y, splits, sample_weight, ledger)
    with_train = arguments.get("return_train_score", False)
    return Grown(estimator, X, y, splits, sample_weight, ledger, arguments["verbose"], with_train)


def _scored_by_leaves(
    grown: Grown | GrownSearches, splits: Sequence[Split], scoring: Any, return_train_score: bool
) -> dict[str, Any] | None:
    """Scores that are sums over leaves; None: scikit-learn should compute them."""
    start = perf_counter()
    if not isinstance(grown, Grown):
        return None
    if any(grown.error(number) is not None for number in range(len(splits))):
        return None
    fitted = grown.fitted
    assert fitted is not None
    by_name = leaf_scores_of(scoring, of_classes=grown.classes is not None)
    if by_name is None or any(len(trees_of(model)) > 1 for model in fitted.models):
        return None
    result: dict[str, Any] = {"fit_time": None, "score_time": None}
    by_side = {}
    for side in ("test", "train") if return_train_score else ("test",):
        wanted = list(by_name.values())
        scores = scores_of_splits(wanted, fitted, splits, lambda _: WHOLE_TREES, side)
        if scores is None:
            return None
        by_side[side] = scores[:, 0]
    for place, name in enumerate(by_name):
        for side, scores in by_side.items():
            result[f"{side}_{name}"] = scores[place]
    result["score_time"] = np.full(len(splits), (perf_counter() - start) / len(splits))
    return result


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
    arguments = {
        "scoring": scoring,
        "error_score": error_score,
        "verbose": verbose,
        "pre_dispatch": pre_dispatch,
    }
    _check_before("cross_val_score", estimator, X, y, params)
    ledger = Ledger()
    y, groups, params = in_memory(X, y, groups, params, cv, ledger)
    given = {"groups": groups, "n_jobs": n_jobs, "params": params}
    work = _plan("cross_val_score", estimator, X, y, cv, given | arguments, ledger)
    if work.grown is None:
        return sklearn.model_selection.cross_val_score(
            estimator, X, y, cv=work.cv, **given, **arguments
        )
    scoring = _scoring_of(estimator, scoring)
    if verbose == 0 and not isinstance(scoring, Mapping | list | tuple | set):
        result = _scored_by_leaves(work.grown, work.cv, scoring, False)
        if result is not None:
            scores: np.ndarray = result["test_score"]
            return scores
    return sklearn.model_selection.cross_val_score(
        StandIn(work.grown, work.grown.rows, estimator),
        work.grown.rows.table,
        y,
        cv=work.cv,
        **(arguments | {"scoring": scoring_of_stand_ins(scoring, work.X)}),
    )


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
    arguments = {"method": method, "verbose": verbose, "pre_dispatch": pre_dispatch}
    _check_before("cross_val_predict", estimator, X, y, params, method)
    ledger = Ledger()
    y, groups, params = in_memory(X, y, groups, params, cv, ledger)
    given = {"groups": groups, "n_jobs": n_jobs, "params": params}
    work = _plan("cross_val_predict", estimator, X, y, cv, given | arguments, ledger)
    if work.grown is None:
        return sklearn.model_selection.cross_val_predict(
            estimator, X, y, cv=work.cv, **given, **arguments
        )
    return sklearn.model_selection.cross_val_predict(
        StandIn(work.grown, work.grown.rows, estimator, by_label=method == "predict"),
        work.grown.rows.table,
        y,
        cv=work.cv,
        **arguments,
    )


@dataclass(frozen=True, eq=False)
class Work:
    """What has been done before scikit-learn's function is called.

    Attributes
    ----------
    X : table
        Whose rows can be taken.
    cv : list of (train, test), or what was given
        Drawn once, where they had to be looked at.
    grown : Grown, GrownSearches or None
        None: scikit-learn's function fits the models itself.
    """

    X: Any
    cv: Any
    grown: Grown | GrownSearches | None = None


def _plan(
    name: str,
    estimator: Any,
    X: Any,
    y: Any,
    cv: Any,
    arguments: Mapping[str, Any],
    ledger: Ledger,
) -> Work:
    """Grow the models together, or find out why scikit-learn has to fit them.

    Input that no model can be grown from goes to scikit-learn as well: its function, or each of its
    fits, then says what is wrong, and what that is worth is for ``error_score`` to say.

    Parameters
    ----------
    name : str
        Of the function, for the log.
    estimator, X, y, cv
    arguments : mapping
        Of the function, by name.
    ledger : Ledger
        Where it is written down what was done, also before.
    """
    params = arguments["params"]
    reason = _why_not_arguments(arguments)
    if reason is None:
        reason = _why_not(estimator, y, params, arguments.get("method", "predict"))
    grown = None
    if reason is None:
        (X,) = admitted(X, {}, ledger)
        n_rows = known_length(X)
        if n_rows is not None:
            check_lengths(n_rows, {"groups": arguments["groups"]})
        try:
            check_scoring(estimator, scoring=arguments.get("scoring"))  # before the work is done
            X, y = indexable(X, y)
            cv = splits_of(estimator, X, y, cv, arguments["groups"])
        except Exception as error:
            # an iterator cannot be asked again, and rows of a collection cannot be taken
            if isinstance(cv, Iterator) or isinstance(X, PartitionedTable):
                raise
            reason = str(error)
        else:
            reason = why_not_splits(cv, len(y))
            if reason is not None and isinstance(X, PartitionedTable):
                raise TypeError(f"{name} of a Dask collection: {reason}.")
    if reason is None:
        _check_one_per_row((params or {}).get("sample_weight"), len(y))
        try:
            grown = _grown(estimator, X, y, cv, arguments, ledger)
        except TogetherError as error:
            if isinstance(X, PartitionedTable):
                raise TypeError(f"{name} of a Dask collection: {error}.") from error
            reason = str(error)
        if isinstance(grown, Grown) and grown.fitted is None:
            failure = grown.error(0)
            if isinstance(X, PartitionedTable) and failure is not None:
                raise failure
            reason = str(failure)
    if reason is not None:
        logger.info("%s is scikit-learn's: %s", name, reason)
        if is_of_dask_ml(cv):
            cv = draw_splits(cv, X, X if y is None else y, arguments["groups"])
        return Work(X, cv)
    return Work(X, cv, grown)


def _why_not_arguments(arguments: Mapping[str, Any]) -> str | None:
    """Which argument is for scikit-learn to judge, or to refuse."""
    for name, types in TYPES.items():
        if name in arguments and not isinstance(arguments[name], types):
            return f"{name}={arguments[name]!r}"
    error_score = arguments.get("error_score")
    if isinstance(error_score, str) and error_score != "raise":
        return f"error_score={error_score!r}"
    return None


def _check_one_per_row(sample_weight: Any, n_rows: int) -> None:
    """scikit-learn hands weights of another length to each fit as they are.

    Raises
    ------
    ValueError
    """
    shape = np.shape(sample_weight)
    if sample_weight is not None and shape != (n_rows,):
        raise ValueError(
            f"sample_weight in params has shape {shape}, but X has {n_rows} rows. Give one weight "
            "per row of X; the weights of each training side are taken from these."
        )


def _fitted(estimator: Any, X: Any, y: Any, params: Mapping[str, Any] | None) -> Any:
    """A clone, fitted to all rows with those parameters that are meant for its fit."""
    params = dict(params or {})
    if sklearn.get_config()["enable_metadata_routing"]:
        used = get_routing_for_object(estimator).consumes("fit", params)
        params = {name: value for name, value in params.items() if name in used}
    return clone(estimator).fit(X, y, **params)


def _grown_final(grown: Grown | GrownSearches) -> Any:
    """The model of all rows; raises the error of its fit."""
    error = grown.error(-1)
    if error is not None:
        raise error
    return grown.model(0, -1)


def _final(fit: Callable[[], Any], estimator: Any, error_score: Any) -> Any:
    """The model of all rows; unfitted where its fit fails and scores of failures are numbers."""
    try:
        return fit()
    except Exception as error:
        if isinstance(error_score, str):  # "raise"
            raise
        warnings.warn(
            f"The fit to all rows failed, so that 'final' is not fitted. {type(error).__name__}: "
            f"{error}",
            FitFailedWarning,
            stacklevel=3,
        )
        return clone(estimator)


class Grown:
    """The models of all splits and of all rows.

    Parameters
    ----------
    estimator : tree or forest of dtrees
    X, y
        As for ``fit``.
    splits : sequence of (train, test)
    sample_weight : array-like of shape (n_rows,) or None
    ledger : Ledger
        Where it is written down what has been done for the table so far.
    verbose : int, default=0
        Above 0: a bar counts the trees of forests.
    with_train : bool, default=False
        Whether models are asked about their training rows, too.

    Attributes
    ----------
    rows : RowNumbers
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        splits: Sequence[Split],
        sample_weight: Any,
        ledger: Ledger,
        verbose: int = 0,
        with_train: bool = False,
    ) -> None:
        self.rows = RowNumbers(len(y), splits)
        self._with_train = with_train
        self._error: Exception | None = None
        self._has_brought = False
        self.fitted: FittedSets | None = None
        counts = verbose > 0 and isinstance(estimator, BaseForest)
        try:
            table = TrainingTable(X, y, sample_weight, ledger)
            sets = training_sets(splits, len(y))
            with Bar() if counts else nullcontext() as bar:
                self.fitted = fit_table(estimator, table, sets, bar=bar)
        except (ValueError, TypeError, NotImplementedError) as error:  # of the input
            self._error = error

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        return None if self.fitted is None else self.fitted.classes

    def error(self, number: int) -> Exception | None:
        """Why there is no model of a set."""
        if self.fitted is None:
            return self._error
        model = self.fitted.models[number]
        return model if isinstance(model, Exception) else None

    def model(self, candidate: int, number: int) -> Any:
        """The model of a set; there is one candidate."""
        assert self.fitted is not None
        return self.fitted.models[number]

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the model of a set says of rows."""
        assert self.fitted is not None
        if not self._has_brought:
            self._has_brought = True
            sides = self.rows.sides(self._with_train)
            self.fitted.bring_values(one for one in sides if self.error(one[0]) is None)
        return self.fitted.values(number, rows)
