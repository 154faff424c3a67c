"""Standard errors of a cross-validation that know that its folds share their training rows.

The errors of held-out rows are not independent: each row is tested once and trained on in all other
folds. So ``s / sqrt(n)`` is too small. Nested cross-validation (Bates, Hastie, Tibshirani 2023,
algorithm 1) looks at how far a fold's mean error is off an estimate of it that has not seen the
fold: the cross-validation of all other rows, whose models lack two folds::

    fold j held out        models without i and j, tested on i, for all i    mean e_in(j)
                           model without j, tested on j                      mean e_out(j)

    a = (mean e_in - mean e_out)^2      b = var(e_out) / rows of j           of each j and repeat
    squared standard error = (mean a - mean b) (k - 1) / k

The factor is there since ``mean a - mean b`` is of cross-validations of all rows but one fold. The
result is kept between the naive standard error, as if folds told k independent things, and that
times the root of k, as if they all told one. Of unequal folds all rows count.

k folds take k models without one fold and k (k - 1) / 2 without two. All are training sets of one
growth, 55 of them for ten folds.

Models grow together where they can, and are fitted one by one elsewhere::

    trees and forests of dtrees    training sets of one growth; answers are read from codes
    searches of dtrees             a search for each set, all on one coded table; from codes
    pipelines, other estimators    a fit for each set, and predictions of its rows

Scores are a number for each row, and their mean is the score of a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from numbers import Integral
from statistics import NormalDist
from typing import Any

import numpy as np
import sklearn.model_selection
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state

from dtrees.coding.outputs import columns_of_outputs, shares_by_output
from dtrees.constraints import (
    ARRAY,
    CONFIDENCE,
    CV,
    ESTIMATOR,
    PARAMS,
    RANDOM_STATE,
    ROWS,
    SCORER,
    IntegerIn,
    Nothing,
    checked,
)
from dtrees.core.membership.resampling import Rows, of_sets
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.prediction import labels_of_outputs, side_by_side
from dtrees.estimators.training_sets import TrainingTable, fit_table
from dtrees.model_selection.folds import LARGEST_SEED, Split, Splits, shuffled_folds
from dtrees.model_selection.prepare import (
    Arguments,
    NotShareableError,
    draw_splits,
    prepare,
    refuse_starts,
)
from dtrees.model_selection.search import SharedSearch, search_rows, unsupported_model
from dtrees.parallel import tables_kept


@dataclass(frozen=True, eq=False)
class FromCodes:
    """Answers of models that were grown from codes of the table, from these codes."""

    models: list[tuple[FittedSets, Any]]  # each with what it was grown with

    @property
    def y(self) -> np.ndarray:
        """Numbers of classes, or targets; (n_rows,) or (n_rows, n_outputs)."""
        return self.models[0][0].y

    @property
    def classes(self) -> Any:
        """Labels of the classes, of several targets a list; None for regression."""
        return self.models[0][0].target.labels

    def values(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Shares of all classes of all targets, or predictions of each, of a model."""
        fitted, model = self.models[number]
        if number < len(fitted.models) and model is fitted.models[number]:
            return fitted.values(number, rows)  # which are here, where codes are on workers
        return fitted.values_of(model, rows)

    def labels(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Predicted classes."""
        classes, shares = self.classes, self.values(number, rows)
        if isinstance(classes, list):
            return labels_of_outputs(classes, shares_by_output(shares, list(map(len, classes))))
        found: np.ndarray = classes.take(shares.argmax(axis=1))
        return found


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers of fitted estimators, by their own methods."""

    models: list[Any]
    X: Any
    y: np.ndarray
    classes: Any

    def values(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Shares of all classes, 0 of those that a model does not know; or predictions."""
        model, X = self.models[number], _safe_indexing(self.X, rows)
        if self.classes is None:
            return np.asarray(model.predict(X), dtype=np.float64).reshape(len(rows), -1)
        each = self.classes, model.classes_, model.predict_proba(X)
        of_targets = (own if type(own) is list else [own] for own in each)
        found = []
        for labels, known, said in zip(*of_targets, strict=True):
            shares = np.zeros((len(rows), len(labels)))
            shares[:, np.searchsorted(labels, known)] = said
            found.append(shares)
        return np.hstack(found)

    def labels(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Predicted classes."""
        return np.asarray(self.models[number].predict(_safe_indexing(self.X, rows)))


Answers = FromCodes | Predictions


@tables_kept()
def answers_of(
    given: Arguments, table: TrainingTable | None, sets: Rows, sides: Sequence[np.ndarray]
) -> Answers:
    """Fit a model for each training set, and answer for the rows of each side by it.

    `table` is coded once for all of them. None: each fit is scikit-learn's.
    """
    if table is None:
        return _one_by_one(given, sets, sides)
    if not isinstance(given.estimator, SharedSearch):
        fitted = fit_table(given.estimator, table, of_sets(sets))
        for model in fitted.models:
            if isinstance(model, Exception):
                raise model
        fitted.bring_values(enumerate(sides))
        return FromCodes([(fitted, model) for model in fitted.models])
    found = []
    for number in range(len(sets)):
        try:
            searched = search_rows(given.estimator, table, sets[number])
        except NotShareableError as error:
            if given.checkpoint is not None:
                raise (error.__cause__ or error) from None
            return _one_by_one(given, sets, sides)
        if isinstance(searched, Exception):
            raise searched
        search, fitted = searched
        found.append((fitted, search.best_estimator_))
    return FromCodes(found)


def _one_by_one(given: Arguments, sets: Rows, sides: Sequence[np.ndarray]) -> Answers:
    """Answers of any estimators, fitted and asked as scikit-learn does it."""
    X, y = given.X, given.y
    refuse_starts(given, given.reason)
    splits: list[Split] = [
        (np.flatnonzero(sets[number]), rows) for number, rows in enumerate(sides)
    ]
    found = sklearn.model_selection.cross_validate(
        given.estimator,
        *(X, y),
        cv=splits,
        params=given.params,
        scoring=_no_score,
        error_score="raise",
        return_estimator=True,
    )
    columns = columns_of_outputs(y) or [np.ravel(y)]
    classes: Any = None
    if is_classifier(given.estimator):
        each = [np.unique(own, return_inverse=True) for own in columns]
        classes, columns = [labels for labels, _ in each], [number for _, number in each]
    if len(columns) > 1:
        return Predictions(found["estimator"], X, np.column_stack(columns), classes)
    return Predictions(found["estimator"], X, columns[0], classes and classes[0])


def _no_score(model: Any, X: Any, y: Any) -> float:
    """A score that costs nothing; processes of joblib may be sent it."""
    return 0.0


# Of y and what a model says, by row: predictions, or shares of all classes of a target.
Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _accuracy(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.equal(predicted, y)
    if found.ndim > 1:
        found = np.all(found, axis=1)
    return found


def _mean_of_targets(of_rows: np.ndarray) -> np.ndarray:
    return of_rows if of_rows.ndim == 1 else of_rows.mean(axis=1)


def _log_loss(y: np.ndarray, shares: np.ndarray) -> np.ndarray:
    tiny = np.finfo(np.float64).eps
    found: np.ndarray = np.log(np.clip(shares[np.arange(len(y)), y], tiny, 1 - tiny))
    return found


def _brier_score(y: np.ndarray, shares: np.ndarray) -> np.ndarray:
    away = shares.copy()
    away[np.arange(len(y)), y] -= 1
    halves = 2 if shares.shape[1] == 2 else 1  # as scikit-learn: of two classes, of one of them
    found: np.ndarray = -(away**2).sum(axis=1) / halves
    return found


OF_CLASSES: dict[str, Scores] = {
    "accuracy": _accuracy,
    "neg_log_loss": _log_loss,
    "neg_brier_score": _brier_score,
}
OF_NUMBERS: dict[str, Scores] = {
    "neg_mean_squared_error": lambda y, predicted: _mean_of_targets(-((y - predicted) ** 2)),
    "neg_mean_absolute_error": lambda y, predicted: _mean_of_targets(-np.abs(y - predicted)),
}


def score_of_rows(scoring: Any, *, is_class: bool) -> Scores:
    """The score of rows that `scoring` stands for; ValueError: there is none."""
    if callable(scoring):
        found: Scores = scoring
        return found
    known = OF_CLASSES if is_class else OF_NUMBERS
    name = next(iter(known)) if scoring is None else scoring
    if name not in known:
        raise ValueError(
            f"scoring must be a mean over rows: got {scoring!r}. Give one of "
            f"{', '.join(map(repr, known))}, or a function of the true values and the predictions "
            "that returns a number for each row."
        )
    return known[name]


N_REPEATS = 20  # where folds are drawn here
LEAST_FOLDS = 3  # two of them are left out


@dataclass(frozen=True)
class NestedStandardError:
    """A mean score of held-out rows, and how uncertain it is.

    Attributes
    ----------
    mean : float
        Mean score of the held-out rows: that of a cross-validation, over all repeats.
    standard_error : float
        By nested cross-validation. At least `naive_standard_error`, and at most that times the root
        of the number of folds.
    naive_standard_error : float
        Standard deviation of the rows' scores, divided by the root of their number.
    nested_mean : float
        Mean score of the rows that models without two folds are tested on.
    n_folds, n_repeats : int
        Folds, and how often all rows were divided into them.
    """

    mean: float
    standard_error: float
    naive_standard_error: float
    nested_mean: float
    n_folds: int
    n_repeats: int

    @property
    def inflation(self) -> float:
        """The standard error in naive ones, from 1 to the root of the number of folds."""
        naive = self.naive_standard_error
        return self.standard_error / naive if naive > 0 else 1.0

    @property
    def corrected(self) -> float:
        """The mean score that a model of all rows has, as far as it is told by smaller ones.

        The bias is that of errors which are a constant more, in inverse proportion to the rows that
        a model is grown on: the paper's ``(1 + (k - 2) / k) (nested_mean - mean)``. The authors' R
        package has ``((k - 2) / k) ** 1.5`` in place of ``(k - 2) / k``.
        """
        k = self.n_folds
        bias = (1 + (k - 2) / k) * (self.nested_mean - self.mean)
        return self.nested_mean - bias

    @checked(confidence=CONFIDENCE)
    def interval(self, confidence: float = 0.9) -> tuple[float, float]:
        """Lower and upper end of an interval for the mean score of new rows.

        Parameters
        ----------
        confidence : float, default=0.9
            From 0.5 to below 1.

        Returns
        -------
        lower, upper : float
            `corrected`, give or take standard errors of a normal distribution.
        """
        width = NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_error
        return self.corrected - width, self.corrected + width


@checked(
    estimator=ESTIMATOR,
    X=ARRAY,
    y=ARRAY,
    groups=ROWS,
    scoring=SCORER,
    cv=(IntegerIn(LEAST_FOLDS), *CV[1:]),
    n_repeats=(IntegerIn(1), Nothing()),
    params=PARAMS,
    random_state=RANDOM_STATE,
)
def nested_standard_error(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    scoring: str | Scores | None = None,
    cv: Any = 10,
    n_repeats: int | None = None,
    params: Any = None,
    random_state: Any = None,
    checkpoint: Any = None,
) -> NestedStandardError:
    """Estimate the standard error of a cross-validation, by nested cross-validation.

    Parameters
    ----------
    estimator : estimator
        Never fitted itself. Models of trees and forests of dtrees grow together, boosted ones
        side by side. Searches of dtrees share one coded table. Pipelines and other
        estimators are fitted one by one.
    X : table of shape (n_rows, n_columns)
        As for `cross_validate`; a Dask collection for trees, forests and searches of dtrees.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        The target, or several.
    groups : array-like of shape (n_rows,), default=None
        For splitters that keep the rows of a group together.
    scoring : str or callable, default=None
        A score that is a mean over rows: "accuracy", "neg_log_loss" and "neg_brier_score" of
        classes, "neg_mean_squared_error" and "neg_mean_absolute_error" of numbers; or a function
        of the true values and the predictions that returns a number for each row. None: "accuracy",
        or "neg_mean_squared_error". Of several targets it is the mean over them, and "accuracy" of
        a row is 1 where all labels are right; functions get arrays (n, n_outputs).
    cv : int, cross-validation generator or iterable of (train, test), default=10
        A number of folds, at least 3: rows are shuffled, classes of one target are stratified.
        Otherwise folds whose test sides divide the rows, once or several times, as those of
        ``RepeatedKFold``.
    n_repeats : int, default=None
        How often all rows are divided anew, if `cv` is a number. None: 20. More of them make the
        standard error more exact.
    params : dict, default=None
        For ``fit``: ``sample_weight``, or what the fit of a pipeline takes. Scores are not
        weighted.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffles.
    checkpoint : str or path, default=None
        As for `cross_validate`; with a `random_state`, so that the folds are the same.

    Returns
    -------
    NestedStandardError
        The mean score, its standard error, the naive one beside it, and an interval.

    Raises
    ------
    TypeError
        There is no `y`, or rows of a Dask collection would have to be taken.
    ValueError
        There are less than three folds, a fold has less than two rows, test sides do not divide the
        rows, or `scoring` is no mean over rows; or a search leaves no model (``refit=False``).
        Errors of fits are raised.

    Notes
    -----
    Costs one coding of the table, and for each repeat one shared growth of ``k (k + 1) / 2`` models
    for k folds. Of searches these are ``k (k + 1) / 2 + 1`` searches, and of pipelines as many
    fits. The naive standard error ignores that folds share training rows, and its intervals
    hold the truth too seldom (Bates, Hastie, Tibshirani 2023).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import nested_standard_error
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=3)
    >>> found = nested_standard_error(tree, X, y, cv=5, n_repeats=4, random_state=0)
    >>> found.standard_error >= found.naive_standard_error
    True
    """
    score = score_of_rows(scoring, is_class=is_classifier(estimator))
    if isinstance(cv, Integral):
        n_repeats = N_REPEATS if n_repeats is None else n_repeats
    elif n_repeats is not None:
        raise ValueError("n_repeats is for cv as a number; RepeatedKFold says how often itself.")

    def draw(X: Any, y: Any, groups: Any) -> Sequence[Split]:
        if not isinstance(cv, Integral):
            splitter = check_cv(cv, y, classifier=is_classifier(estimator))
            return draw_splits(splitter, X, y, groups)
        draws = check_random_state(random_state)
        found: list[Split] = []
        stratified = is_classifier(estimator) and columns_of_outputs(y) is None
        for seed in draws.randint(LARGEST_SEED, size=n_repeats).tolist():
            found += shuffled_folds(y, int(cv), seed, stratified=stratified)
        return Splits(found, len(y))

    arguments = Arguments(
        "nested_standard_error", estimator, cv, groups, params, checkpoint=checkpoint
    )
    if not getattr(estimator, "refit", True):
        raise ValueError(
            f"nested_standard_error scores the model that a search ends with, and this "
            f"{type(estimator).__name__} has refit={estimator.refit!r}, which leaves none. Give "
            "refit=True, or the name of the score that decides."
        )
    prepared = prepare(arguments, X, y, reason=None, draw=draw)
    if prepared.reason is not None:
        raise ValueError(f"Nested cross-validation needs folds: {prepared.reason}.")
    reason = unsupported_model(estimator, prepared.y, prepared.params or {})
    prepared, table = replace(prepared, reason=reason), None
    if reason is None:
        table = prepared.shared().table
    else:
        prepared.refuse_partitions()
    answers = partial(answers_of, prepared, table)
    folds = divisions(prepared.cv, len(prepared.y))
    with nullcontext() if table is None else table.saving():
        repeats = [_of_repeat(answers, fold, score) for fold in folds]
    n_folds = {repeat.n_folds for repeat in repeats}
    if len(n_folds) > 1:
        raise ValueError(f"Every repeat needs as many folds: they have {sorted(n_folds)}.")
    return _combined(repeats)


def divisions(splits: Sequence[Split], n_rows: int) -> list[np.ndarray]:
    """The fold of each row, intp (n_rows,), for each time that test sides divide all rows.

    Raises ValueError where they do not, and where a training side is not all other rows.
    """
    found: list[np.ndarray] = []
    fold, number = np.full(n_rows, -1), 0
    for split in splits:
        train, test = _numbers(split)
        both = np.concatenate([train, test])
        is_split = len(both) == n_rows and len(np.unique(both)) == n_rows
        if not is_split or both.max() >= n_rows or (fold[test] >= 0).any():
            raise ValueError(
                "Nested cross-validation needs folds: test sides that divide all rows, and "
                "training sides of all other rows. Give a number, KFold or RepeatedKFold."
            )
        fold[test] = number
        number += 1
        if (fold >= 0).all():
            found.append(fold)
            fold, number = np.full(n_rows, -1), 0
    if number > 0:
        raise ValueError("The test sides leave rows out: nested cross-validation needs all rows.")
    return found


def _numbers(split: Split) -> list[np.ndarray]:
    sides = [np.asarray(side) for side in split]
    return [np.flatnonzero(side) if side.dtype == bool else side for side in sides]


@dataclass(frozen=True, eq=False)
class Repeat:
    """Sums of the scores of one division into folds."""

    outer: np.ndarray  # scores of all rows by the models without their folds, fold by fold
    squares: np.ndarray  # (n_folds,): (mean e_in - mean e_out)^2
    variances: np.ndarray  # (n_folds,): var(e_out) / rows of the fold
    inner_sum: float  # of the scores of all rows by models without two folds
    n_inner: int

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.squares)


class WithoutFolds:
    """The training sets that lack one fold, and two of them: `of_sets` takes them."""

    def __init__(self, fold: np.ndarray) -> None:
        self._fold = fold
        k = int(fold.max()) + 1
        self.lacking = [*((i,) for i in range(k)), *combinations(range(k), 2)]

    def __len__(self) -> int:
        return len(self.lacking)

    def __getitem__(self, number: int) -> np.ndarray:
        return ~np.isin(self._fold, self.lacking[number])


def _of_repeat(answers_of_sets: Callable[..., Answers], fold: np.ndarray, score: Scores) -> Repeat:
    """Fit all models of a division, and score them."""
    rows_of = [np.flatnonzero(fold == i) for i in range(int(fold.max()) + 1)]
    k, sizes = len(rows_of), np.array([len(rows) for rows in rows_of])
    if k < LEAST_FOLDS or sizes.min() < 2:
        raise ValueError(
            f"Nested cross-validation needs {LEAST_FOLDS} folds or more of 2 rows or more: there "
            f"are {k}, of {sizes.min()} to {sizes.max()} rows."
        )
    sets = WithoutFolds(fold)
    sides = [np.concatenate([rows_of[i] for i in lacking]) for lacking in sets.lacking]
    answers = answers_of_sets(sets, sides)
    outer: list[np.ndarray] = []
    inner_sum = np.zeros(k)
    for number, (lacking, rows) in enumerate(zip(sets.lacking, sides, strict=True)):
        found = _scores(answers, number, rows, score)
        if len(lacking) == 1:
            outer.append(found)
            continue
        i, j = lacking
        inner_sum[j] += found[: sizes[i]].sum()
        inner_sum[i] += found[sizes[i] :].sum()
    n_inner = sizes.sum() - sizes
    means = np.array([each.mean() for each in outer])
    return Repeat(
        np.concatenate(outer),
        (inner_sum / n_inner - means) ** 2,
        np.array([each.var(ddof=1) / len(each) for each in outer]),
        math.fsum(inner_sum),
        int(n_inner.sum()),
    )


def _scores(answers: Answers, number: int, rows: np.ndarray, score: Scores) -> np.ndarray:
    """The score of each row by a model."""
    y, classes = answers.y[rows], answers.classes
    if score in (_log_loss, _brier_score):
        shares = answers.values(number, rows)
        if not isinstance(classes, list):
            return score(y, shares)
        of_targets = zip(y.T, shares_by_output(shares, list(map(len, classes))), strict=True)
        found: np.ndarray = np.mean([score(*own) for own in of_targets], axis=0)
        return found
    if classes is None:
        values = answers.values(number, rows)
        said = score(y, values if values.shape[1] > 1 else values[:, 0])
    elif isinstance(classes, list):
        labels = [own.take(numbers) for own, numbers in zip(classes, y.T, strict=True)]
        said = score(side_by_side(labels), answers.labels(number, rows))
    else:
        said = score(classes.take(y), answers.labels(number, rows))
    found = np.asarray(said, dtype=np.float64)
    if found.shape != rows.shape:
        raise ValueError(
            f"scoring must return a number for each row: got shape {found.shape} for "
            f"{len(rows)} rows."
        )
    return found


def _combined(repeats: Sequence[Repeat]) -> NestedStandardError:
    """The estimate of algorithm 1, for all rows."""
    k, n_rows = repeats[0].n_folds, len(repeats[0].outer)
    squares = np.concatenate([repeat.squares for repeat in repeats])
    variances = np.concatenate([repeat.variances for repeat in repeats])
    squared = (squares.mean() - variances.mean()) * (k - 1) / k
    naive = math.sqrt(np.mean([repeat.outer.var(ddof=1) for repeat in repeats]) / n_rows)
    error = min(max(math.sqrt(max(squared, 0.0)), naive), math.sqrt(k) * naive)
    inner = math.fsum(repeat.inner_sum for repeat in repeats)
    return NestedStandardError(
        mean=float(np.mean([repeat.outer.mean() for repeat in repeats])),
        standard_error=error,
        naive_standard_error=naive,
        nested_mean=inner / sum(repeat.n_inner for repeat in repeats),
        n_folds=k,
        n_repeats=len(repeats),
    )
