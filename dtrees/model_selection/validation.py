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

import itertools
import logging
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import sklearn
import sklearn.model_selection
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import accuracy_score, check_scoring, get_scorer, r2_score
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from dtrees.estimators.base import BaseTrees
from dtrees.estimators.sets import FittedSets, fit_sets
from dtrees.parallel import is_lazy

logger = logging.getLogger(__name__)

Split = tuple[np.ndarray, np.ndarray]

OURS = ("dtrees.estimators.trees", "dtrees.estimators.forests")  # and not what is made of them


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
    estimator : tree or forest of dtrees
        Never fitted itself. Others are handed to scikit-learn's own function, and the final model
        is one fit more.
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
    reason = _why_not(estimator, X, y, params)
    if reason is None:
        cv = _splits(estimator, X, y, cv, groups)
        reason = _why_not_splits(cv, len(y))
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
    grown = Grown(estimator, X, y, cv, (params or {}).get("sample_weight"))
    seconds = perf_counter() - start
    by_number = _asks_for_predictions(scoring)
    result = sklearn.model_selection.cross_validate(
        StandIn(grown, by_number=by_number),
        grown.row_numbers if by_number else X,
        y,
        cv=cv,
        **(arguments | {"groups": None, "scoring": _of_models(scoring)}),
    )
    result["fit_time"] = np.full(len(cv), seconds / (len(cv) + 1))
    if return_estimator:
        result["estimator"] = [
            getattr(stand_in, "model", clone(estimator)) for stand_in in result["estimator"]
        ]
    result["final"] = grown.final()
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
    scorer = check_scoring(estimator, scoring=scoring)
    result = cross_validate(
        estimator,
        X,
        y,
        groups=groups,
        scoring={"score": scorer},
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
        cv = _splits(estimator, X, y, cv, groups)
        reason = _why_not_splits(cv, len(y))
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
    grown = Grown(estimator, X, y, cv, (params or {}).get("sample_weight"))
    stand_in = StandIn(grown, by_label=method == "predict")
    return sklearn.model_selection.cross_val_predict(
        stand_in, grown.row_numbers, y, cv=cv, method=method, verbose=verbose
    )


def _why_not(estimator: Any, X: Any, y: Any, params: Mapping[str, Any] | None) -> str | None:
    """Why the models of an estimator are not grown together; None: they are."""
    if not isinstance(estimator, BaseTrees) or type(estimator).__module__ not in OURS:
        return f"{type(estimator).__name__} is not an estimator of dtrees"
    if y is None:
        return "there is no y"
    if is_lazy(X) or is_lazy(y):
        return "X or y is a Dask collection"
    if set(params or {}) - {"sample_weight"}:
        return f"params has {', '.join(sorted(set(params or {}) - {'sample_weight'}))}"
    if sklearn.get_config()["enable_metadata_routing"]:
        return "metadata routing is enabled"
    return None


def _splits(estimator: Any, X: Any, y: Any, cv: Any, groups: Any) -> list[Split]:
    """The splits, drawn once."""
    X, y = indexable(X, y)
    found = check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups)
    return [(np.asarray(train), np.asarray(test)) for train, test in found]


def _why_not_splits(splits: Sequence[Split], n_rows: int) -> str | None:
    """Why splits are no sets of rows; None: they are."""
    for train, _ in splits:
        listed = np.zeros(n_rows, dtype=bool)
        if train.dtype != bool and len(train) > 0:
            listed[train] = True
            if np.count_nonzero(listed) < len(train):
                return "a training side lists rows twice"
    return None


def _asks_for_predictions(scoring: Any) -> bool:
    """Whether scorers look at predictions only, as those of scikit-learn do."""
    if scoring is None or isinstance(scoring, str):
        return True
    if isinstance(scoring, Mapping):
        return all(map(_asks_for_predictions, scoring.values()))
    if isinstance(scoring, list | tuple | set):
        return all(isinstance(name, str) for name in scoring)
    return type(scoring).__module__ == get_scorer.__module__


def _of_models(scoring: Any) -> Any:
    """Scorers of a stand-in that see the model itself."""
    if isinstance(scoring, Mapping):
        return {name: _of_models(one) for name, one in scoring.items()}
    if _asks_for_predictions(scoring):
        return scoring

    def score(stand_in: StandIn, X: Any, y: Any) -> Any:
        return scoring(stand_in.model, X, y)

    return score


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
    row_numbers : int64 (n_rows, 1)
        Stands for X where only predictions are asked for.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, splits: Sequence[Split], sample_weight: Any
    ) -> None:
        self.estimator = estimator
        n_rows = len(y)
        rows = np.ones((len(splits) + 1, n_rows), dtype=bool)
        for mine, (train, _) in zip(rows, splits, strict=False):
            mine[:] = False
            if len(train) > 0:
                mine[train] = True
        self.row_numbers = np.arange(n_rows)[:, None]
        self.error: Exception | None = None
        self.fitted: FittedSets | None = None
        try:
            self.fitted = fit_sets(estimator, X, y, sample_weight, rows)
        except Exception as error:  # the error of every fit: scikit-learn decides what it is worth
            self.error = error

    def model(self, number: int) -> Any:
        """The model of a set, or the error of its fit."""
        if self.fitted is None:
            assert self.error is not None
            raise self.error
        model = self.fitted.models[number]
        if isinstance(model, Exception):
            raise model
        return model

    def final(self) -> Any:
        """The model of all rows; raises the error of its fit."""
        return self.model(-1)


class StandIn(BaseEstimator):
    """What scikit-learn clones and fits once for each split: the models, in their order.

    Parameters
    ----------
    grown : Grown
    by_label : bool, default=True
        Whether classes go by their labels, or by their numbers.
    by_number : bool, default=True
        Whether rows go by their numbers, and are predicted from their codes.
    """

    def __init__(self, grown: Grown, by_label: bool = True, by_number: bool = True) -> None:
        self.grown = grown
        self.by_label = by_label
        self.by_number = by_number
        self._numbers = itertools.count()

    def __sklearn_clone__(self) -> StandIn:
        made = StandIn(self.grown, self.by_label, self.by_number)
        made.number = next(self._numbers)
        return made

    def __sklearn_tags__(self) -> Any:
        return self.grown.estimator.__sklearn_tags__()

    def fit(self, X: Any, y: Any = None) -> StandIn:
        """Take the model of the split."""
        self.model = self.grown.model(self.number)
        if hasattr(self.model, "classes_"):
            classes = self.model.classes_
            self.classes_ = classes if self.by_label else np.arange(len(classes))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """A label or a number for every row."""
        values = self._values(X)
        if not hasattr(self, "classes_"):
            return values[:, 0]
        labels: np.ndarray = self.classes_.take(values.argmax(axis=1))
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Shares of the classes."""
        return self._values(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the shares."""
        with np.errstate(divide="ignore"):
            return np.log(self._values(X))

    def score(self, X: Any, y: Any) -> float:
        """What the estimator's ``score`` says: accuracy, or R^2."""
        metric = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(metric(y, self.predict(X)))

    def _values(self, X: Any) -> np.ndarray:
        if self.by_number:
            assert self.grown.fitted is not None
            return self.grown.fitted.values(self.number, X[:, 0])
        if hasattr(self, "classes_"):
            return self.model.predict_proba(X)
        return self.model.predict(X)[:, None]
