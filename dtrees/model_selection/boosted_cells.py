"""Candidates of boosted models that are prefixes of grown ones.

A model of fewer iterations is the first trees of one of more, also where it stops early: scores of
held-out rows depend on the trees so far, and so does the best iteration among them. So ``max_iter``
is decided on what has grown::

    trees of a set      0  1  2  3  4  5  6  7  8  9
    max_iter=4          ─────────▶ score
    max_iter=10         ─────────▶─────────────────▶ score        rows walk down each tree once
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dtrees.core.model.nested_trees import PruningGrid
from dtrees.estimators.boosted_sets import FittedBoosts, first_raw
from dtrees.estimators.fitted_boosting import first_iterations
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.model_selection.candidates import Growth
from dtrees.model_selection.cells import Cells
from dtrees.model_selection.prefitted_proxy import RowNumbers
from dtrees.parallel import threaded
from dtrees.typing import Runner, serial

MANY_ROWS = 2**13  # of one set: with fewer, threads cost more than they walk


def cells_of(growth: Growth, fitted: FittedSets, limits: PruningGrid | None = None) -> Cells:
    """The models of candidates, for the training sets of a growth, as `Cells`."""
    if isinstance(fitted, FittedBoosts):
        return BoostedCells(growth, fitted)
    return Cells(growth, fitted, limits)


@dataclass
class _Walked:
    """Rows, and their raw predictions by the first trees of a set."""

    rows: np.ndarray
    raw: np.ndarray
    stages: Iterator[np.ndarray]
    n_iterations: int = 0


class BoostedCells(Cells):
    """The models of candidates of different numbers of iterations."""

    fitted: FittedBoosts

    def __init__(self, growth: Growth, fitted: FittedBoosts) -> None:
        super().__init__(growth, fitted)
        self._has_shares = False
        self._stages: dict[int, list[_Walked]] = {}
        self._sides: dict[int, list[np.ndarray]] = {}  # rows that have not walked, by set

    def n_iterations(self, number: int) -> np.ndarray:
        """Iterations of every candidate, in a set; int64 (n_candidates,)."""
        model = self.fitted.models[number]
        asked = self.growth.n_iterations()
        return np.array([model._n_iter_of(each) for each in asked], dtype=np.int64)

    def model(self, candidate: int, number: int) -> Any:
        """The fitted estimator of a cell."""
        whole = self.fitted.models[number]
        if self.growth.is_whole:
            return whole
        return first_iterations(self.growth.estimator_of(candidate), whole)

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the model of a cell says of rows: float64 (n, n_classes) or (n, 1)."""
        predictor = self.fitted.models[number]._predictor()
        found: np.ndarray = predictor.values_of(self._raw(candidate, number, rows))
        return found

    def scores(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """Its raw predictions, float64 (n,) or (n, n_classes), as ``decision_function``."""
        predictor = self.fitted.models[number]._predictor()
        found: np.ndarray = predictor.scores_of(self._raw(candidate, number, rows))
        return found

    def distinct(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Candidates whose models are the same trees, in a set, those of fewer trees first.

        As `Cells.distinct`, but for the order: rows then walk down each tree once.
        """
        _, first, place = np.unique(
            self.n_iterations(number), return_index=True, return_inverse=True
        )
        return first, place.ravel()

    def bring(self, rows: RowNumbers, with_train: bool) -> None:
        """Remember the rows that scores are of: those of all sets walk when one is asked for."""
        if len(self.growth.places) > 1:
            return
        for number, side in rows.sides(with_train):
            if self.error(number) is None:
                self._sides.setdefault(number, []).append(side)

    def _walk_sides(self) -> None:
        """Let the rows that are remembered walk, a set on each thread; many of one set on all."""
        sides, self._sides = self._sides, {}
        is_one = len(sides) == 1

        def walk(number: int) -> None:
            for rows in sides[number]:
                self._raw(0, number, rows, None if is_one and len(rows) >= MANY_ROWS else serial)

        run = threaded(self.fitted.models[next(iter(sides))].n_jobs)
        run([partial(walk, number) for number in sides])

    def _raw(
        self, candidate: int, number: int, rows: np.ndarray, run: Runner | None = None
    ) -> np.ndarray:
        """Raw predictions, float64 (n, n_values); the same rows go on where they were."""
        if self._sides:
            self._walk_sides()
        n_iterations = int(self.n_iterations(number)[candidate])
        walked = self._walked_to(number, rows)
        if walked is None or walked.n_iterations > n_iterations:
            walked = self._begun(number, rows, run)
        while walked.n_iterations < n_iterations:
            walked.raw = next(walked.stages)
            walked.n_iterations += 1
        if walked.n_iterations == self.fitted.models[number].n_iter_:
            walked.stages = iter(())  # which holds what many trees say
            walked.raw = walked.raw.copy()
        return walked.raw.copy()

    def _walked_to(self, number: int, rows: np.ndarray) -> _Walked | None:
        for walked in self._stages.get(number, []):
            if np.array_equal(walked.rows, rows):
                return walked
        return None

    def _begun(self, number: int, rows: np.ndarray, run: Runner | None) -> _Walked:
        """Rows at the beginning, in the place of the same rows further on.

        Where no candidate is a prefix, they are at the end.
        """
        model = self.fitted.models[number]
        if self.growth.is_whole:
            begun = _Walked(
                rows.copy(), self.fitted.raw_of(model, rows, run), iter(()), model.n_iter_
            )
        else:
            stages = self.fitted.stages_of(model, rows, run)
            begun = _Walked(rows.copy(), first_raw(model, len(rows)), stages)
        others = [
            each for each in self._stages.get(number, []) if not np.array_equal(each.rows, rows)
        ]
        self._stages[number] = [*others, begun]
        return begun
