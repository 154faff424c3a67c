"""Prediction intervals from the models of a cross-validation.

The models and the held-out predictions of a cross-validation are all that is needed: a row has an
error, of the models that have it in their test side, and these models predict new rows, give or
take the error (`dtrees.core.predict.intervals`). Trees and forests say how sure they are of a row,
and errors count in units of that::

    k folds, leave-one-out          one model for each row          CV+, jackknife+
    repeated folds, shuffle splits  the mean of several models      jackknife+ after subsampling
    rows in no test side            do not count

Errors are read from the codes of the table, when the models have been scored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from dtrees._forks import LockOfObject
from dtrees._html import html_table
from dtrees.constraints import ARRAY, CONFIDENCE, checked
from dtrees.core.membership.resampling import of_sets
from dtrees.core.predict.intervals import Calibration, one_blas_thread
from dtrees.estimators.base import BaseModel
from dtrees.estimators.forests import BaseTrees
from dtrees.estimators.prediction import ENDS, Predictor, scaled_errors, warn_of_infinite
from dtrees.model_selection.candidates import Cells
from dtrees.model_selection.folds import TEST, RowsOfSides, Split
from dtrees.model_selection.pipelines import last_step
from dtrees.model_selection.prepare import Arguments, has_starts
from dtrees.model_selection.search import FittedSearches, SharedSearch
from dtrees.parallel import Answer, Model, is_lazy, map_rows, threaded
from dtrees.typing import Runner, serial

NO_REGRESSOR = "they are of numbers, and it is of"
FINAL = "final_estimator"
MOST_FOLDS = 20  # that a notebook shows


class CrossValidation(dict[str, Any]):
    """The result of `cross_validate`: scikit-learn's dict, a model of all rows, and intervals.

    Items are those of :func:`sklearn.model_selection.cross_validate`, and nothing else.
    ``result["final_estimator"]`` and ``get`` give the attribute `final_estimator`, which is no
    item. Pickling and copying grow it, where it has not been. What ``result.copy()`` and ``|`` make
    are dicts.
    """

    _held_out: Calibration | str  # or why there are no intervals

    def __init__(
        self,
        entries: Mapping[str, Any],
        held_out: Calibration | str,
        final: Any = None,
        grow: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(entries)
        self._held_out, self._final, self._grow = held_out, final, grow
        self._growing = LockOfObject(RLock)  # several threads may ask

    def __missing__(self, key: str) -> Any:
        if key == FINAL:
            return self.final_estimator
        raise KeyError(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """The item of this name, or the final estimator; `default` where there is none."""
        return self.final_estimator if key == FINAL else super().get(key, default)

    def _repr_html_(self) -> str:
        """A line for each fold, and their means; the final estimator is not grown for it."""
        numbers = {
            name: np.asarray(values, dtype=float)
            for name, values in self.items()
            if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiu"
        }
        n_folds = max(map(len, numbers.values()), default=0)
        numbers = {name: values for name, values in numbers.items() if len(values) == n_folds}
        rows = [
            [str(i), *(f"{values[i]:.4g}" for values in numbers.values())] for i in range(n_folds)
        ]
        means = ["mean", *(f"{values.mean():.4g}" for values in numbers.values())]
        return html_table(
            f"Cross-validation, {n_folds} folds",
            ["fold", *numbers],
            [means, *rows[:MOST_FOLDS]],
            f"... {n_folds - MOST_FOLDS} more" if n_folds > MOST_FOLDS else "",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return CrossValidation, (dict(self), self._held_out, self.final_estimator)

    @property
    def final_estimator(self) -> Any:
        """The estimator, fitted to all rows; grown when it is first asked for, if it has not been.

        It is not fitted where its fit has failed and ``error_score`` is a number. Errors of a fit
        are those of who asks, who may ask again.
        """
        with self._growing.of_process():
            if self._grow is not None:
                self._final, self._grow = self._grow(), None
            return self._final

    @checked(X=ARRAY, confidence=CONFIDENCE)
    def prediction_interval(self, X: Any, confidence: float = 0.9) -> Any:
        """Predict an interval for every row, by the rows that were held out.

        CV+ and jackknife+: each row has an error, of the prediction by the model that was grown
        without it. The same model predicts the new row, give or take the error. The ends of the
        interval are order statistics over all rows. Nothing is fitted.

        Errors of forests are in units of the spread of their trees, and of trees in units of that
        of the targets in a leaf. The new row has its own spread, so intervals are wide where trees
        disagree or targets differ. Errors of boosted models count alike. Several targets have
        errors and spreads of their own; in a leaf of a tree, a part of the mean variance of all.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.
        confidence : float, default=0.9
            Share of rows whose target is to be in its interval, from 0.5 to below 1.

        Returns
        -------
        interval : float64 array of shape (n_rows, 2) or (n_rows, n_outputs, 2)
            Lower and upper end. They are infinite, with a warning, where too few rows were held
            out: fewer than ``(1 + confidence) / (1 - confidence)``; for boosted models, than
            ``confidence / (1 - confidence)``.

        Raises
        ------
        ValueError
            `cross_validate` was called without ``return_estimator=True``, a fit has failed, a test
            side has rows of its training side, or `confidence` is not in its range.
        TypeError
            The estimator is no regressor, or none of dtrees.

        Notes
        -----
        For rows that come from the same distribution, about `confidence` of the values of a target
        are in their intervals, and at least ``2 * confidence - 1 - sqrt(2 / n)`` of them in the
        worst case for folds (Barber, Candès, Ramdas, Tibshirani 2021, theorem 4; for errors in
        other units Gupta, Kuchibhotla, Ramdas 2022).

        A row of several test sides (repeated folds, shuffle splits) has the mean of their models,
        as the jackknife+ after bootstrap has (Kim, Xu, Barber 2020). Rows in no test side and rows
        without a weight do not count; all others count once. Rows of a time series are not alike,
        and neither number need hold for them.

        Costs a prediction of `X` by each model, and O(n) for each of its rows, in blocks of a few
        MB on the ``n_jobs`` threads of the models.
        """
        held_out = self._held_out
        if isinstance(held_out, str):
            raise (TypeError if held_out.startswith(NO_REGRESSOR) else ValueError)(
                f"There are no prediction intervals of this cross-validation: {held_out}."
            )
        models, is_scaled = self["estimator"], held_out.is_scaled
        fewest = max(_by_target(held_out), key=lambda own: np.count_nonzero(np.isinf(own.errors)))
        warn_of_infinite(fewest.errors, confidence, is_scaled)
        if is_lazy(X):
            models = [getattr(model, "best_estimator_", model) for model in models]
            if not all(isinstance(model, BaseModel) for model in models):
                raise TypeError(
                    "Intervals of a Dask collection are of trees, forests and boosted models, and "
                    f"searches over them, not of {type(models[0]).__name__}: give X.compute()."
                )
            predictors = Predictors(
                tuple(model._predictor() for model in models), held_out, confidence
            )
            return map_rows(predictors, "prediction_interval", X)
        values = [np.asarray(model.predict(X), dtype=np.float64) for model in models]
        run = threaded(getattr(models[0], "n_jobs", None))
        with one_blas_thread():
            spreads = [spread_at(model, X) for model in models] if is_scaled else None
            return _ends(held_out, values, confidence, run, spreads)


def _by_target(held_out: Calibration) -> list[Calibration]:
    """The rows that calibrate intervals of each target."""
    if held_out.errors.ndim == 1:
        return [held_out]
    return [replace(held_out, errors=np.ascontiguousarray(own)) for own in held_out.errors.T]


def _ends(
    held_out: Calibration,
    values: Sequence[np.ndarray],
    confidence: float,
    run: Runner = serial,
    spreads: Sequence[np.ndarray] | None = None,
) -> np.ndarray:
    """Ends for rows, (n_rows, 2) or (n_rows, n_outputs, 2), by values and spreads of each model."""
    if held_out.errors.ndim == 1:
        wide = None if spreads is None else np.column_stack(spreads)
        return held_out.ends(np.column_stack(values), confidence, run, wide)
    ends = []
    for k, own in enumerate(_by_target(held_out)):
        wide = None if spreads is None else np.column_stack([each[:, k] for each in spreads])
        of_models = np.column_stack([each[:, k] for each in values])
        ends.append(own.ends(of_models, confidence, run, wide))
    return np.stack(ends, axis=1)


@dataclass(frozen=True, eq=False)
class Predictors(Model):
    """The models of a cross-validation, and how far off they were."""

    models: tuple[Predictor, ...]
    held_out: Calibration
    confidence: float

    def check_columns(self, names: np.ndarray | None, n_columns: int | None) -> None:
        """Raise when a table of these columns is not one of those that were fitted."""
        self.models[0].check_columns(names, n_columns)

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of the answer."""
        n_targets = self.held_out.errors.shape[1:]
        return Answer(np.empty((0, *n_targets, 2)), columns=None if n_targets else ENDS)

    def of_block(self, method: str, block: Any, rows: Any = None) -> np.ndarray:
        """The ends for the rows of a block."""

        def of_models(what: str) -> list[np.ndarray]:
            return [model.of_block(what, block) for model in self.models]

        with one_blas_thread():
            spreads = of_models("spread") if self.held_out.is_scaled else None
            return _ends(self.held_out, of_models("predict"), self.confidence, spreads=spreads)


def unsupported_intervals(
    estimator: Any, return_estimator: Any, params: Mapping[str, Any] | None = None
) -> str | None:
    """Why a cross-validation has no intervals, as far as its arguments tell; None: it may."""
    model = estimator.estimator if isinstance(estimator, SharedSearch) else estimator
    last = last_step(model)[1] if isinstance(model, Pipeline) else model
    if not isinstance(last, BaseModel) or not is_regressor(model):
        return f"{NO_REGRESSOR} {type(model).__name__}, which is no regressor of dtrees"
    if not return_estimator:
        return "call cross_validate with return_estimator=True, which keeps its models"
    if has_starts(params):
        return "rows that are to be predicted have no init_score, and those of the fits have it"
    return None


def have_spread(models: Sequence[Any]) -> bool:
    """Whether fitted models, or those of searches and pipelines, are trees and forests."""
    models = [getattr(model, "best_estimator_", model) for model in models]
    return all(
        isinstance(last_step(m)[1] if isinstance(m, Pipeline) else m, BaseTrees) for m in models
    )


def spread_at(model: Any, X: Any) -> np.ndarray:
    """How sure a fitted tree or forest is of rows, or that of a search or pipeline."""
    model = getattr(model, "best_estimator_", model)
    while isinstance(model, Pipeline):
        X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
    found: np.ndarray = model._answer("spread", X)
    return found


def intervals_of(
    fitted: Sequence[Any], models: Cells | FittedSearches, prepared: Arguments
) -> Calibration | str:
    """The rows that calibrate intervals of models grown together; or why there are none."""
    for number in range(len(prepared.cv)):
        if models.error(number) is not None:
            return f"the fit of split {number} has failed"
    numbers, spreads = np.arange(len(prepared.y)), None
    sides = [(number, numbers[test]) for number, (_, test) in enumerate(prepared.cv)]
    if isinstance(models, Cells):
        models.fitted.bring_values(sides)
    if have_spread(fitted):
        spreads = models.spreads(fitted, sides)

    def predict(number: int, rows: np.ndarray) -> np.ndarray:
        return models.values(0, number, rows)

    return held_out_errors(predict, prepared.cv, prepared.y, prepared.sample_weight, spreads)


def intervals_by_sklearn(result: Mapping[str, Any], prepared: Arguments) -> Calibration | str:
    """As `intervals_of`, of a result of scikit-learn's function with estimators and indices."""
    models, indices = result["estimator"], result["indices"]
    for number, model in enumerate(models):
        try:
            check_is_fitted(model)
        except NotFittedError:
            return f"the fit of split {number} has failed"
    splits = list(zip(indices["train"], indices["test"], strict=True))

    def predict(number: int, rows: np.ndarray) -> np.ndarray:
        return np.asarray(models[number].predict(_safe_indexing(prepared.X, rows)))

    spreads = None
    if have_spread(models):
        tests = zip(models, indices["test"], strict=True)
        spreads = [spread_at(model, _safe_indexing(prepared.X, rows)) for model, rows in tests]
    return held_out_errors(predict, splits, prepared.y, prepared.sample_weight, spreads)


def held_out_errors(
    predict: Callable[[int, np.ndarray], np.ndarray],
    splits: Sequence[Split],
    y: Any,
    sample_weight: Any = None,
    spreads: Sequence[np.ndarray] | None = None,
) -> Calibration | str:
    """The rows of test sides, how far their predictions are off, and which models these are of.

    ``predict(number, rows)`` is what model `number` says of rows, by their numbers. `spreads` say
    how sure each model is of its test side. Returns why there are no intervals, where a test side
    has rows of its training side. Errors of several targets are (n, n_outputs).
    """
    y = np.asarray(y).astype(np.float64)
    n_rows, y = len(y), y[:, None] if y.ndim == 1 else y
    numbers = np.arange(n_rows)
    total, votes = np.zeros(y.shape), np.zeros((n_rows, 1), dtype=np.int64)
    model, spread = np.zeros(n_rows, dtype=np.int64), np.zeros(y.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for number, (train, test) in enumerate(splits):
            rows = numbers[test]
            votes[rows] += 1
            model[rows] = number
            is_test = model == number if number else votes[:, 0] > 0
            if is_test[train].any():
                return f"rows of the test side of split {number} are in its training side, too"
            total[rows] += predict(number, rows).reshape(len(rows), -1)
            if spreads is not None:
                spread[rows] += spreads[number].reshape(len(rows), -1)
        counts = votes[:, 0] > 0
        if sample_weight is not None:
            counts &= np.asarray(sample_weight) > 0
        means, is_scaled = total[counts] / votes[counts], spreads is not None
        if is_scaled:
            errors = scaled_errors(y[counts], means, spread[counts] / votes[counts])
        else:
            errors = np.abs(y[counts] - means)
    if y.shape[1] == 1:
        errors = errors[:, 0]
    if votes.max(initial=0) <= 1:
        return Calibration(errors, None, model[counts], is_scaled=is_scaled)
    sets = of_sets(RowsOfSides(splits, n_rows, side=TEST))
    assert sets.cells is not None
    used, pattern = np.unique(sets.cells[counts], return_inverse=True)
    unseen = np.stack([sets.has(number)[used] for number in range(sets.n_sets)], axis=1)
    return Calibration(errors, unseen, pattern.ravel(), is_scaled=is_scaled)
