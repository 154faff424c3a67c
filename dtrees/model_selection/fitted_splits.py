"""The models of all splits, grown together once as far as anybody asks, and smaller ones in them.

::

    table, splits ──fit_splits──▶ FittedSplits: a model for each training side, and one of all rows
                                      │
                                      ├──whole─────────────▶ Cells of the models as they are
                                      ├──within(estimator)─▶ FittedSplits of narrower limits
                                      └──cells(candidates)─▶ Cells ──scores──▶ candidates x splits

Several sizes of a model (a surface, a path of pruning, a choice of a size) are taken from one of
these. Nothing is grown twice.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dtrees.core.membership.resampling import of_sets
from dtrees.core.model.nested_trees import PruningGrid
from dtrees.core.model.pruning import WHOLE
from dtrees.estimators.fitted_sets import FittedSets, trees_of
from dtrees.estimators.training_sets import fit_table
from dtrees.estimators.training_table import TrainingTable
from dtrees.inspection.alignment import adds_steps
from dtrees.inspection.importance import normalized, unseen_importances
from dtrees.model_selection.candidates import Growth
from dtrees.model_selection.cell_scores import score_models, scores_by_leaves, warn_of_undefined
from dtrees.model_selection.cells import Cells, cells_of
from dtrees.model_selection.folds import RowsOfSides, Split
from dtrees.model_selection.leaf_scores import leaf_scores_of
from dtrees.model_selection.prepare import SplitTable


class SplitScores:
    """Scores whose last axis are the splits; not meant to be used itself.

    A pickle leaves behind what has grown for the splits (`_grown`).
    """

    scores: np.ndarray

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_grown": None}

    @property
    def mean(self) -> np.ndarray:
        """Mean over the splits, float64 array of the shape of `scores` without its last axis."""
        found: np.ndarray = self.scores.mean(axis=-1)
        return found

    @property
    def standard_error(self) -> np.ndarray:
        """Its standard error, ``s / sqrt(n_splits)``; nan for one split. The same shape."""
        n_splits = self.scores.shape[-1]
        if n_splits < 2:
            return np.full(self.scores.shape[:-1], np.nan)
        found: np.ndarray = self.scores.std(axis=-1, ddof=1) / math.sqrt(n_splits)
        return found

    def _allowed(self, best: int | tuple[int, ...]) -> float:
        """A standard error below one of the means; one split has no error."""
        return float(self.mean[best] - np.nan_to_num(self.standard_error[best]))


logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class FittedSplits:
    """The models of the training sides of splits, and of all rows."""

    estimator: Any  # that has grown; itself not fitted
    table: TrainingTable
    splits: Sequence[Split]  # row numbers of the table
    fitted: FittedSets  # a model for each split, and mostly one more; or the error of its fit

    @property
    def models(self) -> list[Any]:
        """Fitted estimators of the splits."""
        return self.fitted.models[: len(self.splits)]

    @property
    def final_estimator(self) -> Any:
        """The one of all rows."""
        return self.fitted.models[-1]

    def cells(
        self, given: Any, candidates: Sequence[Mapping[str, Any]], limits: PruningGrid | None = None
    ) -> Cells:
        """Smaller models, to be scored or cut out.

        `given` has what they have in common, and is not fitted. `candidates` say where a tree ends;
        so do `limits`, where they are known.
        """
        growth = Growth(given, self.estimator, range(len(candidates)), candidates, is_whole=False)
        return cells_of(growth, self.fitted, limits)

    def whole(self) -> Cells:
        """The models as they are: one candidate."""
        growth = Growth(self.estimator, self.estimator, range(1), [{}], is_whole=True)
        return cells_of(growth, self.fitted, PruningGrid.of([WHOLE]))

    def within(self, estimator: Any) -> FittedSplits:
        """The models of an estimator of narrower limits, whose trees stand inside of these."""
        cells = self.cells(estimator, [{}])
        models = [cells.model(0, number) for number in range(len(self.fitted.models))]
        return FittedSplits(estimator, self.table, self.splits, replace(self.fitted, models=models))

    def only_final(self, splits: Sequence[Split]) -> FittedSplits:
        """The model of all rows in place of each split's, to be scored on their test sides."""
        models = [self.final_estimator] * (len(splits) + 1)
        return FittedSplits(self.estimator, self.table, splits, replace(self.fitted, models=models))

    def held_out_importances(self) -> np.ndarray | None:
        """What the test side of each split tells of the columns, float64 (n_splits, n_columns).

        As :func:`dtrees.inspection.held_out_importances`. None: steps of boosted models add up.
        """
        if any(adds_steps(model) for model in self.models):
            return None
        numbers, found = np.arange(len(self.fitted.y)), []
        for model, (_, test) in zip(self.models, self.splits, strict=True):
            rows, trees, walked = numbers[test], trees_of(model), self.fitted.coded_rows
            walked.bring([(trees, rows)])
            of_trees = [
                unseen_importances(tree, walked.leaves(tree, rows), self.fitted.y[rows])
                for tree in trees
            ]
            found.append(normalized(np.mean(of_trees, axis=0)))
        return np.array(found)

    def scores(self, scoring: Any = None) -> np.ndarray:
        """Scores of the test sides by one scorer, float64 (n_splits,); as `scores_of_cells`."""
        of_whole: np.ndarray = self.scores_of_cells(self.whole(), {"score": scoring})["score"][0]
        return of_whole

    def scores_of_cells(
        self, cells: Cells, scoring: Mapping[str, Any], error_score: Any = "raise"
    ) -> dict[str, np.ndarray]:
        """Scores of smaller models on the test sides, float64 (n_candidates, n_splits).

        Rows count once. By several scorers (None: the estimator's ``score``), each under its name,
        as sums over leaves where they will do; the held-out rows walk once. `error_score` is for a
        scorer that fails.
        """
        of_classes = cells.classes is not None
        sums = {
            name: scorer
            for name, scorer in scoring.items()
            if leaf_scores_of(scorer, of_classes=of_classes) is not None
        }
        by_leaves = scores_by_leaves(cells, self.splits, sums) if sums else None
        found = {} if by_leaves is None else by_leaves.scores
        others = {name: scorer for name, scorer in scoring.items() if ("test", name) not in found}
        if others:
            n_sizes, n_splits = len(cells.growth.places), len(self.splits)
            if n_sizes > 1:
                logger.info(
                    "up to %d scores by predictions, which are no sums over leaves: %d sizes, %d "
                    "splits; fewer sizes take less time",
                    *(n_sizes * n_splits, n_sizes, n_splits),
                )
            X, y = self.table.X, self.table.y
            found = found | score_models(cells, X, y, self.splits, others, error_score).scores
        scores = {name: found["test", name] for name in scoring}
        if of_classes:
            warn_of_undefined(scores, self.splits, self.table.y, scoring)
        return scores


def fit_splits(estimator: Any, work: SplitTable) -> FittedSplits:
    """Grow the models of all splits, and of all rows, together; `estimator` is not fitted itself.

    Raises ClusterError where a Dask cluster is in force, or asked for, and cannot be used.
    ValueError: a parameter or the table is not what it should be. Errors of fits are kept.
    """
    table, splits = work.table, work.splits
    n_rows = len(table.y)
    every = np.ones(n_rows, dtype=bool) if work.rows is None else work.rows
    sets = of_sets(RowsOfSides(splits, n_rows, every if work.has_last else None))
    fitted = fit_table(estimator, table, sets, bar=work.bar)
    return FittedSplits(estimator, table, splits, fitted)


def grow_splits(estimator: Any, work: SplitTable) -> FittedSplits:
    """The same, where no fit may fail: its error is raised."""
    grown = fit_splits(estimator, work)
    for model in grown.fitted.models:
        if isinstance(model, Exception):
            raise model
    return grown
