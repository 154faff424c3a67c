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
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import sklearn
import sklearn.model_selection
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils import indexable

from dtrees.core.smaller import Limits
from dtrees.estimators.sets import FittedSets, TrainingTable, fit_table, trees_of
from dtrees.model_selection.leaf_scores import names_of_scores, scores_of_splits
from dtrees.model_selection.nested import GrownSearches, scoring_of_search, why_not_nested
from dtrees.model_selection.ours import splits_of, why_not, why_not_splits
from dtrees.model_selection.search import SharedSearch
from dtrees.model_selection.stand_in import (
    RowNumbers,
    Split,
    StandIn,
    scoring_of_stand_ins,
    training_rows,
)

logger = logging.getLogger(__name__)


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
        Anything that the estimator takes.
    y : array-like of shape (n_rows,)
        The target.
    groups : array-like of shape (n_rows,), default=None
        For splitters that keep the rows of a group together.
    scoring : str, callable, list, tuple or dict, default=None
        One scorer or several; None: the estimator's ``score``.
    cv : int, cross-validation generator or iterable of (train, test), default=None
        None: 5 folds, stratified for classifiers. Training sides may overlap test sides of other
        splits, leave rows out, and share rows in any way.
    n_jobs : int, default=None
        For scikit-learn's own function. Trees grow on the estimator's ``n_jobs`` threads.
    verbose : int, default=0
        As scikit-learn's.
    params : dict, default=None
        For the estimator's ``fit``: ``sample_weight``, one weight per row of `X`. With others, and
        where metadata routing is enabled, scikit-learn's own function does the work.
    pre_dispatch : int or str, default="2*n_jobs"
        For scikit-learn's own function.
    return_train_score, return_estimator, return_indices : bool, default=False
        What else to return.
    error_score : "raise" or number, default=nan
        Score of a split whose fit or scorer fails; "raise" raises its error.

    Returns
    -------
    results : dict
        ``test_score`` (or ``test_<name>`` for several scorers), ``fit_time`` and ``score_time`` in
        seconds, float64 of shape (n_splits,), and what was asked for. Models grow together, so
        ``fit_time`` is the time of all of them, divided by their number. ``final`` is the
        estimator fitted to all rows.

    Raises
    ------
    ValueError
        As scikit-learn's function does.

    Notes
    -----
    Costs one coding of the table and one shared growth ([CV] 2.2.2 and 3.4); the trees that splits
    have in common are grown once.

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
        "groups": groups,
        "scoring": scoring,
        "return_train_score": return_train_score,
        "return_estimator": return_estimator,
        "return_indices": return_indices,
        "error_score": error_score,
        "verbose": verbose,
    }
    if scoring is None and isinstance(estimator, SharedSearch):
        arguments["scoring"] = scoring = scoring_of_search(estimator)
    reason = _why_not(estimator, X, y, params)
    if reason is None:
        cv = splits_of(estimator, X, y, cv, groups)
        reason = why_not_splits(cv, len(y))
    if reason is not None:
        logger.info("cross_validate is scikit-learn's: %s", reason)
        result = sklearn.model_selection.cross_validate(
            estimator,
            X,
            y,
            cv=cv,
            n_jobs=n_jobs,
            params=params,
            pre_dispatch=pre_dispatch,
            **arguments,
        )
        result["final"] = clone(estimator).fit(X, y, **(params or {}))
        return result
    X, y = indexable(X, y)
    start = perf_counter()
    grown = _grown(estimator, X, y, cv, params)
    seconds = perf_counter() - start
    result = None
    if not return_indices and verbose == 0:
        result = _scored_by_leaves(grown, cv, scoring, return_train_score)
    if result is None:
        result = sklearn.model_selection.cross_validate(
            StandIn(grown, grown.rows, estimator),
            grown.rows.table,
            y,
            cv=cv,
            **(arguments | {"groups": None, "scoring": scoring_of_stand_ins(scoring, X)}),
        )
    result["fit_time"] = np.full(len(cv), seconds / (len(cv) + 1))
    if return_estimator:
        models = [
            grown.model(0, i) if grown.error(i) is None else clone(estimator)
            for i in range(len(cv))
        ]
        result["estimator"] = models
    error = grown.error(-1)
    if error is not None:
        raise error
    result["final"] = grown.model(0, -1)
    return result


def _why_not(estimator: Any, X: Any, y: Any, params: Mapping[str, Any] | None) -> str | None:
    """Why the models of an estimator, or of a search, are not grown together."""
    if isinstance(estimator, SharedSearch):
        return why_not_nested(estimator, X, y, list(params or ()))
    return why_not(estimator, X, y, params or ())


def _grown(
    estimator: Any, X: Any, y: Any, splits: Sequence[Split], params: Mapping[str, Any] | None
) -> Grown | GrownSearches:
    """The models of all splits and of all rows."""
    kind = GrownSearches if isinstance(estimator, SharedSearch) else Grown
    return kind(estimator, X, y, splits, (params or {}).get("sample_weight"))


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
    names = names_of_scores(scoring, of_classes=grown.classes is not None)
    if names is None or any(len(trees_of(model)) > 1 for model in fitted.models):
        return None
    result: dict[str, Any] = {"fit_time": None, "score_time": None}
    by_side = {}
    for side in ("test", "train") if return_train_score else ("test",):
        scores = scores_of_splits(list(names.values()), fitted, splits, [Limits()], side)
        if scores is None:
            return None
        by_side[side] = scores[:, 0]
    for place, name in enumerate(names):
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
    one = check_scoring(estimator, scoring=scoring)
    result = cross_validate(
        estimator,
        X,
        y,
        groups=groups,
        scoring=scoring if scoring is None or isinstance(scoring, str) else {"score": one},
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        error_score=error_score,
    )
    scores: np.ndarray = result["test_score"]
    return scores


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
        In the order of the rows of `X`.
    """
    ours = {"predict", "predict_proba", "predict_log_proba"}
    reason = _why_not(estimator, X, y, params)
    if reason is None and method not in ours:
        reason = f"method={method!r}"
    if reason is None:
        cv = splits_of(estimator, X, y, cv, groups)
        reason = why_not_splits(cv, len(y))
    arguments = {"groups": groups, "method": method, "verbose": verbose}
    if reason is not None:
        logger.info("cross_val_predict is scikit-learn's: %s", reason)
        return sklearn.model_selection.cross_val_predict(
            estimator,
            X,
            y,
            cv=cv,
            n_jobs=n_jobs,
            params=params,
            pre_dispatch=pre_dispatch,
            **arguments,
        )
    X, y = indexable(X, y)
    grown = _grown(estimator, X, y, cv, params)
    stand_in = StandIn(grown, grown.rows, estimator, by_label=method == "predict")
    return sklearn.model_selection.cross_val_predict(
        stand_in, grown.rows.table, y, cv=cv, method=method, verbose=verbose
    )


class Grown:
    """The models of all splits and of all rows.

    Parameters
    ----------
    estimator : tree or forest of dtrees
    X, y
        As for ``fit``.
    splits : sequence of (train, test)
    sample_weight : array-like of shape (n_rows,) or None

    Attributes
    ----------
    rows : RowNumbers
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, splits: Sequence[Split], sample_weight: Any
    ) -> None:
        self.rows = RowNumbers(len(y), splits)
        self.fitted: FittedSets | None = None
        try:
            table = TrainingTable(X, y, sample_weight)
            self.fitted = fit_table(estimator, table, training_rows(splits, len(y), final=True))
        except Exception as error:  # the error of every fit: scikit-learn decides what it is worth
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
        return self.fitted.values(number, rows)
