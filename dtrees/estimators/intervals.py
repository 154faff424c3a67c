"""Prediction intervals of forests, by the rows out of their bags.

A fit that predicts rows out of its bags leaves how far off these predictions are, a number per row.
Which trees have not seen a row is drawn anew from the seed of the bags, when intervals are asked
for. Nothing is fitted, and the table is not needed::

    fit      y, out-of-bag predictions, spread of the trees ──▶ errors (n_rows,)
    asked    seed ──▶ bags: rows x trees ──┐
             X ──▶ values of the trees ────┴──▶ `dtrees.core.predict.intervals`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees._forks import cached_property
from dtrees._warnings import warn
from dtrees.core.membership.resampling import Bags
from dtrees.core.predict.blas import one_blas_thread
from dtrees.core.predict.intervals import Calibration, floor_of, least_rows, ranks
from dtrees.core.predict.raw import forest_blocks
from dtrees.estimators.prediction import ForestPredictor
from dtrees.parallel import Answer
from dtrees.typing import Runner, serial

ENDS = ("lower", "upper")  # columns in a data frame


def scaled_errors(
    y: Any, mean: np.ndarray, spread: np.ndarray, counts: np.ndarray | None = None
) -> np.ndarray:
    """How far targets are from predictions, in units of a spread, float64 (n_rows,).

    inf: every bag has the row. nan: the row has no weight, and does not calibrate. `counts` says
    which rows have one; None: all.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        errors: np.ndarray = (np.asarray(y).ravel().astype(np.float64) - mean) / spread
    errors[~np.isfinite(errors)] = np.inf
    if counts is not None:
        errors[~counts] = np.nan
    return errors


def warn_of_infinite(errors: np.ndarray, confidence: float, apart: bool) -> None:
    """Warn where all ends are infinite, as too few rows calibrate; `apart` is as for `ranks`."""
    n, known = len(errors), np.count_nonzero(np.isfinite(errors))
    high = ranks(confidence, n, apart)[1]
    if high > known:
        more = " Rows that are in every bag have none: fit more trees." if known < n else ""
        warn(
            f"All ends of intervals are infinite: confidence={confidence} needs the errors of "
            f"{max(high, least_rows(confidence, apart))} rows, and there are {known}.{more}"
        )


@dataclass(eq=False)
class IntervalPredictor(ForestPredictor):
    """The answers of a forest, and intervals."""

    bags: Bags
    errors: np.ndarray  # as `scaled_errors`
    confidence: float
    is_scaled: bool = True  # not in models of older versions

    @classmethod
    def of(
        cls, predictor: ForestPredictor, learned: Mapping[str, Any], confidence: float
    ) -> IntervalPredictor:
        """What a forest predicts intervals with; `learned` is what it has learned.

        Raises ValueError where it has not predicted the rows out of its bags.
        """
        errors = learned.get("_oob_scaled_errors", learned.get("_oob_errors"))
        name = learned.get("_fit_bags")
        if errors is None or name is None:
            raise ValueError(
                f"prediction_interval of this {predictor.estimator} needs the errors of the rows "
                "out of its bags. Fit it with bootstrap=True and oob_score=True. Intervals of any "
                "regressor: call cross_validate(..., return_estimator=True) of "
                "dtrees.model_selection, and the prediction_interval of its result."
            )
        bags = Bags.of_digest(name, learned.get("_oob_keys"), learned.get("_oob_means"))
        if len(bags.row_id) != len(errors):
            raise ValueError("The bags of this forest are not of the rows that it was fitted to.")
        forest = predictor.forest
        return cls(
            *(predictor.book, None, predictor.estimator, forest, bags, errors, float(confidence)),
            is_scaled="_oob_scaled_errors" in learned,
        )

    @cached_property
    def calibration(self) -> Calibration:
        """The rows that have a weight, and out of which bags they are; O(n_rows x n_trees)."""
        counts = ~np.isnan(self.errors)
        unseen = np.zeros((len(counts), len(self.forest)), dtype=bool)
        floor = np.zeros(len(counts))
        for number in range(len(self.forest)):
            times = self.bags.multiplicity(number, None if counts.all() else counts)
            rows = self.bags.rows_out(times)
            unseen[rows, number] = True
            floor[rows] += floor_of(self.forest.trees[number])  # in the order of the fit
        floor = (floor / np.maximum(unseen.sum(axis=1), 1))[counts]
        least = floor if self.is_scaled else None
        return Calibration(self.errors[counts], unseen[counts], floor=least)

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""
        if method == "prediction_interval":
            return Answer(np.empty((0, 2)), columns=ENDS)
        return super().answer(method)

    def prediction_interval(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Lower and upper ends of every row, float64 (n_rows, 2)."""
        table = self.check(X, run)
        found = np.empty((table.n_rows, 2))
        calibration = self.calibration

        def see(first: int, end: int, values: np.ndarray) -> None:
            found[first:end] = calibration.ends(values, self.confidence)

        with one_blas_thread():  # blocks are what has threads
            forest_blocks(self.forest, self.book, table, run, see)
        return found
