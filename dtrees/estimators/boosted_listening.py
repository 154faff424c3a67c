"""What happens after each iteration of a boosted fit, and the trees that were there before it.

    trees of an earlier fit ─▶ raw predictions ─▶ boost ──trees of an iteration──▶ score
                                                   ▲                                │ callbacks
                                                   └────────── go on? ──────────────┘

With ``warm_start`` a fit goes on where the one before it ended. Rows walk down the trees that are
there by their values, as the codes of these trees are those of another coding. Each iteration's
score is computed again. So the model is the one of a single fit, if nothing else has changed:
also its end by early stopping, after which no more trees are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.callbacks import BoostingFit, Callback, told
from dtrees.coding.codebook import CodeBook
from dtrees.coding.tables import Table
from dtrees.core.grow.boosting import BoostedRows, Growing
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.binned import CodedRows
from dtrees.core.predict.boosted import raw_predictions, staged_raw_predictions
from dtrees.estimators.boosted_stopping import ByModel, Watch
from dtrees.estimators.boosted_validation import ValueRows
from dtrees.estimators.warm_start import has_same_columns
from dtrees.typing import Runner

if TYPE_CHECKING:
    from dtrees.estimators.boosting_base import BaseBoosting


@dataclass(eq=False)
class Iterations:
    """Hears of the trees of each iteration.

    Attributes
    ----------
    fit : BoostingFit
    callbacks : sequence of Callback
    watch : Watch or None
        Scores held-out rows, and may end the fit.
    growing : Growing
    rows : BoostedRows
        That are grown from.
    """

    fit: BoostingFit
    callbacks: Sequence[Callback]
    watch: Watch | None
    growing: Growing
    rows: BoostedRows

    def __post_init__(self) -> None:
        self._raw = self.rows.raw
        self.fit.measure = self._training_score

    def _so_far(self) -> np.ndarray:
        """Raw predictions after the last iteration, float64 (n_values, n_rows)."""
        if self._raw is not None:
            return self._raw
        return np.repeat(self.growing.initial[:, None], len(self.rows.y), axis=1)

    def _training_score(self) -> float:
        rows, raw = self.rows, self._so_far()
        own = slice(None) if rows.chosen is None else rows.chosen
        weight = None if rows.weight is None else rows.weight[own] * rows.weight_unit
        return -self.growing.loss.mean(rows.y[own], raw[:, own].T, weight)

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return self.watch is not None or len(self.callbacks) > 0

    @property
    def ends(self) -> Watch | None:
        """What may be sent to a worker to end the growth there; None: nothing."""
        is_sent = self.watch is not None and not isinstance(self.watch.score, ByModel)
        return self.watch if is_sent else None

    def __call__(self, trees: list[Tree], raw: np.ndarray) -> bool:
        """Take the trees of an iteration; whether it is the last one."""
        self.fit.trees += trees
        self._raw = raw
        number = len(self.fit.trees) // self.fit.n_values - 1
        is_last = self.watch is not None and self.watch(trees)
        stops = told([callback.on_iteration_end(self.fit, number) for callback in self.callbacks])
        return is_last or stops

    def replay(self, trees: list[Tree]) -> list[Tree]:
        """Hear of trees that have grown elsewhere; those up to the last one that is wanted."""
        if not self.is_heard:
            return trees
        n_values = self.fit.n_values
        raw, walked = self._so_far().copy(), CodedRows(self.rows.coded)
        everywhere = np.arange(len(self.rows.y))
        for first in range(0, len(trees), n_values):
            own = trees[first : first + n_values]
            if len(self.callbacks) > 0:  # who may ask for the score of the training rows
                for k, tree in enumerate(own):
                    raw[k] += tree.value_of(walked.leaves(tree, everywhere))[:, 0]
            if self(own, raw):
                return trees[: first + n_values]
        return trees


def kept_forest(model: BaseBoosting) -> Forest | None:
    """The trees that a fit goes on with, or None.

    Raises
    ------
    ValueError
        They are more than the fit may have.
    """
    if not (model.warm_start and hasattr(model, "forest_")):
        return None
    if model.max_iter < model.n_iter_:
        raise ValueError(
            f"max_iter={model.max_iter} must be larger than or equal to n_iter_={model.n_iter_} "
            "when warm_start==True"
        )
    return model.forest_


def in_memory(table: Any) -> Table:
    """A table whose rows are here.

    Raises
    ------
    TypeError
        They are those of a Dask collection.
    """
    if not isinstance(table, Table):
        raise TypeError(
            "warm_start=True walks the rows of X down the trees that are there, and X is a Dask "
            "collection. Give X.compute(), or set warm_start=False."
        )
    return table


def check_goes_on(model: BaseBoosting, book: CodeBook, classes: Any, loss: Any) -> None:
    """Refuse (ValueError) what the trees that are there know by another number or meaning."""
    own = getattr(model, "classes_", None)
    same_columns = has_same_columns(model.codebook_, book)
    if not same_columns or (own is not None and not np.array_equal(own, np.asarray(classes))):
        raise ValueError(
            "warm_start=True keeps the trees that are there, so X must have the columns and "
            "categories of the first fit and y its classes. Set warm_start=False to begin anew."
        )
    if model._fit_loss != loss:
        raise ValueError(
            "warm_start=True keeps the trees that are there, so the loss must be that of the first "
            "fit. Set warm_start=False to begin anew."
        )


@dataclass(frozen=True, eq=False)
class Kept:
    """Trees that are there, and what they say of the table of this fit.

    Attributes
    ----------
    forest : Forest
    initial : float64 (n_values,)
        Raw predictions before the first tree.
    book : CodeBook
        Of this fit.
    table : Table
    """

    forest: Forest
    initial: np.ndarray
    book: CodeBook
    table: Table

    def raw_of(self, run: Runner) -> np.ndarray:
        """Raw predictions of all rows, float64 (n_values, n_rows)."""
        raw = raw_predictions(self.forest, self.initial, self.book, self.table, run)
        return np.ascontiguousarray(raw.T)

    def shown_to(self, watch: Watch, run: Runner) -> bool:
        """Score each iteration; whether one of them was the last."""
        is_last = False
        table = watch.walked.table if isinstance(watch.walked, ValueRows) else self.table
        stages = staged_raw_predictions(self.forest, self.initial, self.book, table, run)
        n_values = len(self.initial)
        for number, raw in enumerate(stages):
            trees = self.forest.trees[number * n_values : (number + 1) * n_values]
            is_last |= watch.see(trees, np.ascontiguousarray(raw[watch.rows]))
        return is_last
