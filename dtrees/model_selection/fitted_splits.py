"""The models of all splits, grown together once as far as anybody asks, and smaller ones in them.

::

    table, splits ──fit_splits──▶ FittedSplits: a model for each training side, and one of all rows
                                      │
                                      ├──values────────────▶ what a model says of held-out rows
                                      ├──within(estimator)─▶ FittedSplits of narrower limits
                                      └──cells(candidates)─▶ Cells ──scores──▶ candidates x splits

Several sizes of a model (a surface, a path of pruning, the choice of a size) are all taken from one
of these, and nothing is grown twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dtrees.core.membership.resampling import of_sets
from dtrees.core.model.nested_trees import PruningGrid
from dtrees.core.model.pruning import WHOLE
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.training_sets import fit_table
from dtrees.estimators.training_table import TrainingTable
from dtrees.model_selection.candidates import Growth
from dtrees.model_selection.cell_scores import score_models, scores_of_splits
from dtrees.model_selection.cells import Cells
from dtrees.model_selection.leaf_scores import LeafScore, leaf_scores_of
from dtrees.model_selection.prefitted_proxy import RowNumbers
from dtrees.model_selection.prepare import SplitTable
from dtrees.model_selection.splits import Split, TrainingRows

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class FittedSplits:
    """The models of the training sides of splits, and of all rows: `prefitted_proxy.Models`.

    Attributes
    ----------
    estimator : tree or forest
        That has grown; itself not fitted.
    table : TrainingTable
    splits : sequence of (train, test)
        Row numbers of the table.
    fitted : FittedSets
        A model for each split, and one more; or the error of its fit.
    with_train : bool, default=False
        Whether models will be asked about their training rows, too.
    """

    estimator: Any
    table: TrainingTable
    splits: Sequence[Split]
    fitted: FittedSets
    with_train: bool = False
    _has_brought: bool = field(default=False, init=False, repr=False)

    @cached_property
    def rows(self) -> RowNumbers:
        """The rows of the table by number."""
        return RowNumbers(len(self.table.y), self.splits)

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        return self.fitted.classes

    def error(self, number: int) -> Exception | None:
        """Why there is no model of a split; -1: of all rows."""
        model = self.fitted.models[number]
        return model if isinstance(model, Exception) else None

    def model(self, candidate: int, number: int) -> Any:
        """The model of a split; there is one candidate."""
        return self.fitted.models[number]

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the model of a split says of rows: float64 (n, n_classes) or (n, 1)."""
        if not self._has_brought:
            self._has_brought = True
            sides = self.rows.sides(self.with_train)
            self.fitted.bring_values(one for one in sides if self.error(one[0]) is None)
        return self.fitted.values(number, rows)

    @property
    def models(self) -> list[Any]:
        """Fitted estimators of the splits."""
        return self.fitted.models[: len(self.splits)]

    @property
    def final_estimator(self) -> Any:
        """The one of all rows."""
        return self.fitted.models[-1]

    def cells(
        self,
        given: Any,
        candidates: Sequence[Mapping[str, Any]],
        limits: PruningGrid | None = None,
    ) -> Cells:
        """Smaller models, to be scored or cut out.

        Parameters
        ----------
        given : tree or forest
            Not fitted; has what they have in common.
        candidates : sequence of mapping
            Parameters that say where a tree ends.
        limits : PruningGrid or None, default=None
            The same, where that is known.
        """
        growth = Growth(given, self.estimator, range(len(candidates)), candidates, is_whole=False)
        return Cells(growth, self.fitted, limits)

    def whole(self) -> Cells:
        """The models as they are: one candidate."""
        growth = Growth(self.estimator, self.estimator, range(1), [{}], is_whole=True)
        return Cells(growth, self.fitted, PruningGrid.of([WHOLE]))

    def within(self, estimator: Any) -> FittedSplits:
        """The models of an estimator whose trees stand inside of these.

        Parameters
        ----------
        estimator : tree or forest
            As `estimator`, with limits at least as narrow.
        """
        cells = self.cells(estimator, [{}])
        models = [cells.model(0, number) for number in range(len(self.fitted.models))]
        return FittedSplits(estimator, self.table, self.splits, replace(self.fitted, models=models))

    def only_final(self, splits: Sequence[Split]) -> FittedSplits:
        """The model of all rows in the place of those of splits, to be scored on their test sides.

        Parameters
        ----------
        splits : sequence of (train, test)
            Row numbers of the table.
        """
        models = [self.final_estimator] * (len(splits) + 1)
        return FittedSplits(self.estimator, self.table, splits, replace(self.fitted, models=models))

    def scores(self, scoring: Any = None) -> np.ndarray:
        """Scores of the test sides, float64 (n_splits,); as `scores_of_cells` has them."""
        return self.scores_by_name({"score": scoring})["score"]

    def scores_by_name(self, scoring: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The same by several scorers, each under its name; the held-out rows walk once."""
        found = self._scores_of_cells(self.whole(), scoring, "raise")
        return {name: scores[0] for name, scores in found.items()}

    def scores_of_cells(
        self, cells: Cells, scoring: Any = None, error_score: Any = "raise"
    ) -> np.ndarray:
        """Scores of smaller models.

        Parameters
        ----------
        cells : Cells
            Of these models.
        scoring : str, callable or None, default=None
            One scorer; None: the estimator's ``score``.
        error_score : "raise" or number, default="raise"
            Where a scorer fails.

        Returns
        -------
        float64 (n_candidates, n_splits)
            Of the test sides, whose rows count once. Sums over leaves, where they will do.
        """
        return self._scores_of_cells(cells, {"score": scoring}, error_score)["score"]

    def _scores_of_cells(
        self, cells: Cells, scoring: Mapping[str, Any], error_score: Any
    ) -> dict[str, np.ndarray]:
        by_leaves: dict[str, LeafScore] = {}
        if not self.fitted.has_many_trees:
            for name, scorer in scoring.items():
                known = leaf_scores_of(scorer, of_classes=cells.classes is not None)
                by_leaves |= {} if known is None else {name: known["score"]}
        found: dict[str, np.ndarray] = {}
        if by_leaves:
            scores = list(by_leaves.values())
            of_leaves = scores_of_splits(scores, self.fitted, self.splits, cells.limits)
            if of_leaves is not None:
                found = dict(zip(by_leaves, of_leaves, strict=True))
        others = {name: scorer for name, scorer in scoring.items() if name not in found}
        if others:
            found |= self._scores_of_models(cells, others, error_score)
        return {name: found[name] for name in scoring}

    def _scores_of_models(
        self, cells: Cells, scoring: Mapping[str, Any], error_score: Any
    ) -> dict[str, np.ndarray]:
        n_sizes, n_splits = len(cells.limits(0)), len(self.splits)
        if n_sizes > 1:
            logger.info(
                "up to %d scores by predictions, which are no sums over leaves: %d sizes, %d "
                "splits; fewer sizes take less time",
                *(n_sizes * n_splits, n_sizes, n_splits),
            )
        by_models = score_models(cells, self.table, self.splits, scoring, error_score, weigh=False)
        return {name: by_models.scores["test", name] for name in scoring}


def fit_splits(estimator: Any, work: SplitTable, *, with_train: bool = False) -> FittedSplits:
    """Grow the models of all splits and of all rows, together.

    Parameters
    ----------
    estimator : tree or forest of dtrees
        Never fitted itself.
    work : SplitTable
    with_train : bool, default=False
        For `FittedSplits`.

    Raises
    ------
    ClusterError
        A Dask cluster is in force, or asked for, and cannot be used.
    ValueError
        A parameter or the table is not what it should be; the errors of single fits are kept.
    """
    table, splits = work.table, work.splits
    n_rows = len(table.y)
    every = np.ones(n_rows, dtype=bool) if work.rows is None else work.rows
    sets = of_sets(TrainingRows(splits, n_rows, every))
    fitted = fit_table(estimator, table, sets, bar=work.bar)
    return FittedSplits(estimator, table, splits, fitted, with_train)


def grow_splits(estimator: Any, work: SplitTable) -> FittedSplits:
    """The same, where no fit may fail.

    Raises
    ------
    ClusterError, ValueError
        As `fit_splits`, and where a fit fails.
    """
    grown = fit_splits(estimator, work)
    for model in grown.fitted.models:
        if isinstance(model, Exception):
            raise model
    return grown
