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
from dtrees.model_selection.leaf_scores import LeafScore, leaf_scores_of, scores_of_splits
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

    def scores(self, scoring: Any = None) -> np.ndarray:
        """Scores of the test sides, float64 (n_splits,); as `scores_of_cells` has them."""
        return self.scores_by_name({"score": scoring})["score"]

    def scores_by_name(self, scoring: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The same by several scorers, each under its name; the held-out rows walk once."""
        growth = Growth(self.estimator, self.estimator, range(1), [{}], is_whole=True)
        cells = Cells(growth, self.fitted, ManyLimits.of([WHOLE]))
        found = self._scores_of_cells(cells, scoring, "raise")
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
        if not self.fitted.has_forests:
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
