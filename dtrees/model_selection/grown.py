"""The models of all splits, grown together once as far as anybody asks, and smaller ones in them.

::

    table, splits ──grow──▶ GrownSplits: a model for each training side, and one of all rows
                                │
                                ├──within(estimator)──▶ GrownSplits of narrower limits, cut out
                                └──cells(candidates)──▶ Cells ──scores──▶ candidates x splits

Who asks for several sizes of a model (a surface, a path of pruning, the choice of a size) takes all
of them from one of these, and nothing is grown twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dtrees.callbacks import Bar
from dtrees.core.resampling import of_sets
from dtrees.core.smaller import WHOLE, ManyLimits
from dtrees.estimators.sets import FittedSets, TrainingTable, fit_table
from dtrees.model_selection.candidates import Growth
from dtrees.model_selection.cells import Cells, score_models
from dtrees.model_selection.leaf_scores import leaf_scores_of, scores_of_splits
from dtrees.model_selection.stand_in import Split, TrainingRows

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class GrownSplits:
    """The models of the training sides of splits, and of all rows.

    Attributes
    ----------
    estimator : tree or forest
        That has grown; itself not fitted.
    table : TrainingTable
    splits : sequence of (train, test)
        Row numbers of the table.
    fitted : FittedSets
        A model for each split, and one more.
    """

    estimator: Any
    table: TrainingTable
    splits: Sequence[Split]
    fitted: FittedSets

    @property
    def models(self) -> list[Any]:
        """Fitted estimators of the splits."""
        return self.fitted.models[: len(self.splits)]

    @property
    def final(self) -> Any:
        """The one of all rows."""
        return self.fitted.models[-1]

    def cells(
        self,
        given: Any,
        candidates: Sequence[Mapping[str, Any]],
        limits: ManyLimits | None = None,
    ) -> Cells:
        """Smaller models, to be scored or cut out.

        Parameters
        ----------
        given : tree or forest
            Not fitted; has what they have in common.
        candidates : sequence of mapping
            Parameters that say where a tree ends.
        limits : ManyLimits or None, default=None
            The same, where that is known.
        """
        growth = Growth(given, self.estimator, range(len(candidates)), candidates, is_whole=False)
        return Cells(growth, self.fitted, limits)

    def within(self, estimator: Any) -> GrownSplits:
        """The models of an estimator whose trees stand inside of these.

        Parameters
        ----------
        estimator : tree or forest
            As `estimator`, with limits at least as narrow.
        """
        cells = self.cells(estimator, [{}])
        models = [cells.model(0, number) for number in range(len(self.fitted.models))]
        return GrownSplits(estimator, self.table, self.splits, replace(self.fitted, models=models))

    def only_final(self, splits: Sequence[Split]) -> GrownSplits:
        """The model of all rows in the place of those of splits, to be scored on their test sides.

        Parameters
        ----------
        splits : sequence of (train, test)
            Row numbers of the table.
        """
        models = [self.final] * (len(splits) + 1)
        return GrownSplits(self.estimator, self.table, splits, replace(self.fitted, models=models))

    def scores(self, scoring: Any = None, error_score: Any = "raise") -> np.ndarray:
        """Scores of the test sides, float64 (n_splits,); as `scores_of_cells` has them."""
        growth = Growth(self.estimator, self.estimator, range(1), [{}], is_whole=True)
        cells = Cells(growth, self.fitted, ManyLimits.of([WHOLE]))
        return self.scores_of_cells(cells, scoring, error_score)[0]

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
        by_name = leaf_scores_of(scoring, of_classes=cells.classes is not None)
        if by_name is not None and not self.fitted.has_forests:
            scores = list(by_name.values())
            found = scores_of_splits(scores, self.fitted, self.splits, cells.limits)
            if found is not None:
                of_name: np.ndarray = found[0]
                return of_name
        n_sizes, n_splits = len(cells.limits(0)), len(self.splits)
        if n_sizes > 1:
            logger.info(
                "up to %d scores by predictions, which are no sums over leaves: %d sizes, %d "
                "splits; fewer sizes take less time",
                *(n_sizes * n_splits, n_sizes, n_splits),
            )
        by_models = score_models(cells, self.table, self.splits, scoring, error_score, weigh=False)
        return by_models.scores["test", "score"]


def grow_splits(
    estimator: Any,
    table: TrainingTable,
    splits: Sequence[Split],
    *,
    rows: np.ndarray | None = None,
    bar: Bar | None = None,
) -> GrownSplits:
    """Grow the models of all splits and of all rows, together.

    Parameters
    ----------
    estimator : tree or forest of dtrees
        Never fitted itself.
    table : TrainingTable
    splits : sequence of (train, test)
        Row numbers of the table.
    rows : bool (n_rows,) or None, default=None
        Of the last model. None: all of them.
    bar : Bar or None, default=None
        Counts the trees of all models.

    Raises
    ------
    ClusterError
        A Dask cluster is in force, or asked for, and cannot be used.
    ValueError
        A fit fails.
    """
    n_rows = len(table.y)
    every = np.ones(n_rows, dtype=bool) if rows is None else rows
    fitted = fit_table(estimator, table, of_sets(TrainingRows(splits, n_rows, every)), bar=bar)
    for model in fitted.models:
        if isinstance(model, Exception):
            raise model
    return GrownSplits(estimator, table, splits, fitted)
