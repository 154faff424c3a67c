"""Scores over the iterations of boosted models, by cross-validation, from one growth.

The models of all training sides grow side by side, to the last iteration that is asked for. Their
held-out rows walk down each tree once, and are scored after it::

    iterations    1     2     3   ...   100
    split 0     .71   .74   .76         .81      each a sum of one more step
    split 1     .69   .73   .74         .80
    mean        .70   .735  .75         .805     best, one standard error, early stopping

A model of n iterations is the first n of them, so nothing is fitted for a choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring

from dtrees.constraints import (
    ARRAY,
    AXES,
    CV,
    PARAMS,
    ROWS,
    SCORER,
    IntegerIn,
    Nothing,
    RealIn,
    checked,
)
from dtrees.core.model.tree import Forest, Tree
from dtrees.estimators.boosted_sets import FittedBoosts
from dtrees.estimators.boosted_stopping import ByLoss, Held, has_stopped, scored
from dtrees.estimators.boosting import shortened
from dtrees.losses import Loss
from dtrees.model_selection.candidates import BoostedCells, Cells, Growth
from dtrees.model_selection.fitted_splits import (
    FittedSplits,
    SplitScores,
    grow_splits,
    refuse_unfit_scorer,
)
from dtrees.model_selection.folds import TEST, FoldSplits
from dtrees.model_selection.prefitted_proxy import RowNumbers, asks_for_predictions
from dtrees.model_selection.prepare import Arguments, SplitTable, prepare_shared
from dtrees.model_selection.sides import of_sides
from dtrees.parallel import tables_kept, threaded
from dtrees.typing import serial

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class BoostingCurve(SplitScores):
    """Scores over ``max_iter``.

    Holds the table's codes and the trees of all splits, from which `shrunken` is computed. A copy
    that is pickled holds the model of all rows only.

    Attributes
    ----------
    max_iter : int64 array of shape (n_iterations,)
        1, 2, 3, ...
    scores : float64 array of shape (n_iterations, n_splits)
        Of the held-out rows; higher is better.
    scoring : str
        Name of the score.
    shrinkage : float
        What all steps are multiplied by.
    """

    max_iter: np.ndarray
    scores: np.ndarray
    scoring: str
    shrinkage: float
    _estimator: Any = field(repr=False)  # not fitted, as given
    _final: Any = field(repr=False)  # of all rows and iterations, not shrunken
    _grown: FittedSplits | None = field(repr=False)  # not in a pickle
    _scorer: Any = field(repr=False)

    def __repr__(self) -> str:
        found = "every mean is nan"
        if not np.isnan(self.mean).all():
            found = f"best: {np.nanmax(self.mean):.4g} after {self.best} iterations"
        return f"BoostingCurve({self.scoring}, shape {self.scores.shape}, {found})"

    @property
    def best(self) -> int:
        """The number of iterations of the highest mean; of equal ones the least.

        Raises
        ------
        ValueError
            Every mean is nan.
        """
        return int(self.max_iter[self._place_of_best()])

    @property
    def one_standard_error(self) -> int:
        """The least number of iterations whose mean is at most a standard error below the highest.

        Raises
        ------
        ValueError
            Every mean is nan.
        """
        allowed = self._allowed(self._place_of_best())
        return int(self.max_iter[np.flatnonzero(self.mean >= allowed)[0]])

    @checked(n_iter_no_change=(IntegerIn(1),), tol=(RealIn(0, math.inf, "[)"),))
    def stopped(self, n_iter_no_change: int = 10, tol: float = 1e-7) -> int:
        """Return the number of iterations after which early stopping would have ended the growth.

        By the mean of the splits, with the rule of a fit: none of the last `n_iter_no_change`
        means is better than the one before them.

        Parameters
        ----------
        n_iter_no_change : int, default=10
            At least 1.
        tol : float, default=1e-7
            Not negative. A gain of less than `tol` counts as none.

        Returns
        -------
        int
            All of them, if it would not.
        """
        mean = self.mean.tolist()
        for n in range(1, len(mean) + 1):
            if has_stopped(mean[:n], n_iter_no_change, tol):
                return n
        return len(mean)

    @checked(shrinkage=(RealIn(0, 1, "(]"),))
    def shrunken(self, shrinkage: float) -> BoostingCurve:
        """Score the same models with all their steps multiplied by a number.

        Nothing is grown. A model that has gone too far may predict better with smaller steps.

        Parameters
        ----------
        shrinkage : float
            Above 0 and at most 1.

        Returns
        -------
        curve : BoostingCurve

        Raises
        ------
        ValueError
            `shrinkage` is out of its range.
        RuntimeError
            The curve was pickled, and has left the trees of the splits behind.
        """
        if self._grown is None:
            raise RuntimeError(
                "A curve that was pickled or copied has left behind the table and the trees of the "
                "splits. Ask the first one, or call boosting_curve."
            )
        return _curve_of(self._estimator, self._grown, self._scorer, shrinkage)

    @checked(max_iter=(IntegerIn(1),))
    def model(self, max_iter: int) -> Any:
        """The estimator with that ``max_iter``, fitted to all rows; it is cut out, not grown.

        Steps are multiplied by `shrinkage`. It does not stop early.

        Parameters
        ----------
        max_iter : int
            From 1 to the largest of the curve.

        Raises
        ------
        ValueError
            The curve has no such number of iterations.
        """
        if max_iter > len(self.max_iter):
            raise ValueError(
                f"max_iter must be at most {len(self.max_iter)}, the iterations of the curve. Got "
                f"{max_iter} instead."
            )
        estimator = clone(self._final).set_params(max_iter=int(max_iter))
        return _shrunken(shortened(estimator, self._final), self.shrinkage)

    @checked(ax=AXES)
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean score and its standard error over the iterations, and a line each split.

        The score "loss" is drawn as a loss, without the minus of `scores`.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure.

        Raises
        ------
        ImportError
            matplotlib is not there.
        """
        from dtrees.model_selection.plots import plot_boosting_curve

        return plot_boosting_curve(self, ax)

    def _place_of_best(self) -> int:
        mean = self.mean
        if np.isnan(mean).all():
            raise ValueError("Every mean of the curve is nan, so that no iteration is the best.")
        return int(np.nanargmax(mean))


@checked(X=ARRAY, y=ARRAY, cv=(*CV, Nothing()), scoring=SCORER, groups=ROWS, params=PARAMS)
@tables_kept()
def boosting_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    scoring: Any = "loss",
    groups: Any = None,
    params: Mapping[str, Any] | None = None,
    checkpoint: Any = None,
) -> BoostingCurve:
    """Score a boosted model after each of its iterations, by cross-validation.

    Parameters
    ----------
    estimator : GradientBoostingClassifier or GradientBoostingRegressor
        Its ``max_iter`` is the last iteration. Early stopping is not looked at: it is decided
        afterwards.
    X : table of shape (n_rows, n_columns)
        Anything that the estimator takes. Codes of a Dask collection stay on the workers of a
        cluster, where the models grow.
    y : array-like of shape (n_rows,)
        The target.
    cv : int, cross-validation generator or iterable of (train, test), default=None
        None: 5 folds, stratified for classifiers.
    scoring : str or callable, default="loss"
        One scorer; "loss" is the mean loss of the estimator, times -1. None: its ``score``.
    groups : array-like of shape (n_rows,), default=None
        For the splitter.
    params : dict, default=None
        For the estimator's ``fit``: ``sample_weight`` and ``init_score``. Held-out rows count once,
        and begin with their ``init_score``.
    checkpoint : str or path, default=None
        As for `cross_validate`.

    Returns
    -------
    curve : BoostingCurve

    Raises
    ------
    TypeError
        `estimator` is not a boosted model of dtrees, or its models cannot be grown together.
    ValueError
        A fit fails, no row is held out in a split, or there is no such score: a loss of your own
        without ``of_rows`` has none, and some scorers are not defined for the classes. The last two
        are known before anything grows.

    Notes
    -----
    Costs the cross-validation of the estimator, and a score for each iteration and split. The area
    under the curve costs more than the iterations themselves; the loss costs a tenth of them. A
    scorer of your own predicts by all trees so far.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dtrees import GradientBoostingClassifier
    >>> from dtrees.model_selection import boosting_curve
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> curve = boosting_curve(GradientBoostingClassifier(max_iter=60), X, y, cv=5)
    >>> curve.scores.shape
    (60, 5)
    >>> curve.one_standard_error <= curve.best <= 60
    True
    >>> model = curve.model(curve.one_standard_error)
    """
    arguments = Arguments("boosting_curve", estimator, cv, groups, params, checkpoint=checkpoint)
    return grown_curve(estimator, prepare_shared(arguments, X, y, boosted=True), scoring)


def grown_curve(estimator: Any, work: SplitTable, scoring: Any) -> BoostingCurve:
    """The curve of a table and splits of it; raises as `boosting_curve`."""
    if scoring == "loss" and not has_loss_of_rows(estimator.loss):
        raise ValueError(
            f"{type(estimator.loss).__name__} has no method of_rows(y, raw), so that a curve has "
            "no loss of the held-out rows. Define it, or give another score (scoring=...)."
        )
    if scoring != "loss":
        check_scoring(estimator, scoring)
        refuse_unfit_scorer(scoring, estimator, work)
    if isinstance(work.splits, FoldSplits):
        held_out = set(work.splits.counts.numbers.tolist())
    else:
        sides = RowNumbers(len(work.table.y), work.splits).sides()
        held_out = {number for number, rows in sides if len(rows) > 0}
    for number in range(len(work.splits)):
        if number not in held_out:
            raise ValueError(f"Split {number} holds out no row, so that nothing can be scored.")
    grown = grow_splits(clone(estimator).set_params(early_stopping=False), work)
    return _curve_of(estimator, grown, scoring, 1.0)


def has_loss_of_rows(loss: Any) -> bool:
    """Whether held-out rows can be asked; a loss of the user's own need not say it."""
    return not isinstance(loss, Loss) or getattr(loss.of_rows, "__func__", None) is not Loss.of_rows


def _curve_of(estimator: Any, grown: FittedSplits, scoring: Any, shrinkage: float) -> BoostingCurve:
    """Scores of models that have grown."""
    final, fitted = grown.final_estimator, grown.fitted
    assert isinstance(fitted, FittedBoosts)
    models = [_shrunken(model, shrinkage) for model in fitted.models[: len(grown.splits)]]
    growth = Growth(estimator, estimator, range(1), [{}], is_whole=False)
    cells = BoostedCells(growth, replace(fitted, models=models))
    is_here = not asks_for_predictions(scoring)
    if is_here:
        numbers = RowNumbers(len(fitted.y), grown.splits)
        cells.bring(list(numbers.sides()))
    function = partial(_scores_of_side, scoring, grown.table.X if is_here else None)
    sides = [(number, TEST, function) for number in range(len(models))]
    columns, run = [None if scoring == "loss" else grown.table.y], threaded(estimator.n_jobs)
    scores = list(of_sides(cells, grown.splits, sides, columns, is_here=is_here, run=run))
    name = "loss" if scoring == "loss" else str(getattr(scoring, "__name__", scoring))
    if scoring is None:
        name = "accuracy" if hasattr(final, "classes_") else "r2"
    n_iterations = np.arange(1, final.n_iter_ + 1)
    return BoostingCurve(
        n_iterations, np.column_stack(scores), name, shrinkage, estimator, final, grown, scoring
    )


def _scores_of_side(
    scoring: Any, X: Any, cells: Cells, number: int, rows: np.ndarray, labels: Any
) -> np.ndarray:
    """Scores of rows by a model after each iteration, float64 (n_iterations,)."""
    fitted, model = cells.fitted, cells.fitted.models[number]
    assert isinstance(fitted, FittedBoosts)
    y, start = np.ascontiguousarray(fitted.y[rows].T, dtype=np.float64), fitted.offset
    start = None if start is None else start[rows]
    held = Held(X, rows, labels, y, None, start)
    score = scored(model, model._predictor(), held, scoring)
    if isinstance(score, ByLoss):
        blocks = fitted.blocks_of_stages(model, rows, serial)
        return np.concatenate([score.of_stages(block) for block in blocks])
    n_trees = model.n_trees_per_iteration_
    found: list[float] = []
    trees: list[Tree] = []
    for raw in fitted.stages_of(model, rows, serial):
        trees += model.forest_.trees[len(trees) : len(trees) + n_trees]
        found.append(score(raw, trees))
    return np.array(found)


def _shrunken(model: Any, shrinkage: float) -> Any:
    """A model with all steps multiplied by a number."""
    if shrinkage == 1.0:
        return model
    made = clone(model)
    made.__dict__.update(vars(model))
    made.forest_ = Forest(
        tuple(
            replace(tree, unit=tuple(unit * shrinkage for unit in tree.unit))
            if isinstance(tree.unit, tuple)
            else replace(tree, unit=tree.unit * shrinkage)
            for tree in model.forest_.trees
        )
    )
    return made
