"""The size of a model, chosen by the folds that score it.

A tree that has grown to the end is too large for most data. Two ways make it smaller. One growth,
of the folds' trees and the one of all rows, tells both. The trees of the chosen size are cut out of
it::

               +--> limits    max_depth x min_samples_split   surface ([SF] 3)        best, simplest
    one growth +--> pruning   ccp_alpha                       cost-complexity (CART)  best, simplest
               +--> the models of the size that is chosen

*Best* has the best score, and *simplest* is the smallest model that is at most a standard error
worse. The way whose best model has the higher mean score is taken; of equal ones, the smaller
model. A cell of a forest costs a prediction, so forests have few limits to choose from, and no
pruning. A score that is no sum over leaves costs a prediction of a tree, too, which has as few
limits then. Boosted models have a way of their own, the number of iterations
(`dtrees.model_selection.boosting_curve`).

A score that was the highest of many is somewhat too good. `tuned_scores` tells what a choice is
worth on new rows. It chooses anew for each fold, from the rows outside of it, as nested searches do
(`dtrees.model_selection.search`)::

    all rows       [test side][training side ....................]
    tuned_size         ──▶    [test side][training side .........]   rows of the same table
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone, is_classifier

from dtrees.coding.outputs import columns_of_outputs
from dtrees.constraints import ARRAY, CV, SCORER, OneOf, checked
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.scorers import is_own_loss
from dtrees.model_selection.boosting_curve import BoostingCurve, grown_curve, has_loss_of_rows
from dtrees.model_selection.cost_complexity import CostComplexity
from dtrees.model_selection.fitted_splits import FittedSplits
from dtrees.model_selection.folds import RowsOfSides, Split, mean_and_standard_error, size_of
from dtrees.model_selection.leaf_scores import leaf_scores_of
from dtrees.model_selection.prepare import Arguments, SplitTable, is_boosted, prepare_shared
from dtrees.model_selection.surface import ValidationSurface, surface_of
from dtrees.parallel import tables_kept

Rule = Literal["best", "simplest"]
Way = Literal["limits", "pruning", "iterations"]

FEW_DEPTHS = (4, 8, 12, 16, 24, 64)
FEW_SPLITS = (2, 10)


@dataclass(frozen=True, eq=False)
class SizeChoice:
    """A size that was looked at.

    Attributes
    ----------
    way : 'limits', 'pruning' or 'iterations'
    rule : 'best' or 'simplest'
        What it is, of its way.
    parameters : dict
        ``max_depth`` and ``min_samples_split``, or ``ccp_alpha``; of a boosted model ``max_iter``
        and ``early_stopping=False``.
    scores : float64 (n_splits,)
        Of the held-out rows.
    n_leaves : int
        Of the model of all rows.
    """

    way: Way
    rule: Rule
    parameters: dict[str, Any]
    scores: np.ndarray
    n_leaves: int

    @property
    def mean_and_error(self) -> tuple[float, float]:
        """Mean of the scores, and its standard error over the splits."""
        return mean_and_standard_error(self.scores.tolist())


@dataclass(frozen=True, eq=False)
class TunedSize:
    """The size that was chosen, and the sizes that it was chosen from.

    Attributes
    ----------
    chosen : SizeChoice
    choices : tuple of SizeChoice
        The best and the simplest model of each way.
    untuned : float64 (n_splits,)
        Scores of the largest model: as deep as is allowed, with nodes of two rows split; of a
        boosted model, all iterations.
    surface : ValidationSurface or None
        None: of a boosted model.
    path : CostComplexity or None
        None: of a forest or a boosted model.
    curve : BoostingCurve or None
        None: of a tree or a forest.
    """

    chosen: SizeChoice
    choices: tuple[SizeChoice, ...]
    untuned: np.ndarray
    surface: ValidationSurface | None
    path: CostComplexity | None
    curve: BoostingCurve | None = None


@checked(X=ARRAY, y=ARRAY, splits=CV, rule=(OneOf(("best", "simplest")),), scoring=SCORER)
@tables_kept()
def tuned_size(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    splits: Sequence[Split],
    rule: Rule = "best",
    *,
    scoring: Any = None,
    checkpoint: Any = None,
) -> TunedSize:
    """Choose the size of a tree, a forest or a boosted model by cross-validation.

    Parameters
    ----------
    estimator : tree, forest or boosted model of dtrees
        Its ``max_depth`` is the largest that is tried. ``min_samples_split`` and ``ccp_alpha`` are
        what is chosen, so they are at their defaults; the other parameters stay as they are. Of a
        boosted model the number of iterations is chosen, from 1 to ``max_iter``, without early
        stopping.
    X : table of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
    splits : sequence of (train, test) pairs of row arrays, splitter or int
        At least two, as ``cv`` of `cross_validate`. There is no default: the size that is chosen
        depends on the folds, so rows that have an order are to be shuffled, as in the example.
    rule : 'best' or 'simplest', default='best'
        Of the way that is taken, the best size or the simplest.
    scoring : str or callable, default=None
        One scorer, by which limits and the way are chosen; the best and the simplest step of
        pruning are told by errors, as CART has it. None: the estimator's ``score``. Iterations of a
        regression by another loss than squared errors are then chosen by that loss, as R^2 is of
        means.
    checkpoint : str or path, default=None
        As for `cross_validate`.

    Returns
    -------
    TunedSize

    Raises
    ------
    TypeError
        `estimator` is not one of dtrees, or its models cannot be grown together.
    ClusterError
        A Dask cluster is in force, or asked for by ``regime`` or a Dask collection, and cannot be
        used.
    ValueError
        A fit or a score fails.

    Notes
    -----
    Costs one growth; for a forest also twelve predictions of every held-out row, and of a tree
    where the score is no sum over leaves (the area under the curve). For a boosted model, a score
    of the held-out rows for each iteration.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import StratifiedKFold
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import tuned_size
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> splits = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))
    >>> tuned = tuned_size(DecisionTreeClassifier(random_state=0), X, y, splits)
    >>> tree = DecisionTreeClassifier(random_state=0, **tuned.chosen.parameters)
    """
    arguments = Arguments("tuned_size", estimator, splits, checkpoint=checkpoint)
    work = prepare_shared(arguments, X, y, boosted=None)
    return tune(estimator, work, rule, scoring=scoring)[0]


def tune(
    estimator: Any, work: SplitTable, rule: Rule, *, scoring: Any = None
) -> tuple[TunedSize, FittedSplits]:
    """Choose as `tuned_size`, of a table and its splits; also the models of the chosen size."""
    if is_boosted(estimator):
        return _tune_iterations(estimator, work, rule, scoring)
    is_forest = hasattr(estimator, "n_estimators")
    n_outputs = len(columns_of_outputs(work.table.y) or [work.table.y])
    by_leaves = leaf_scores_of(scoring, of_classes=is_classifier(estimator), n_outputs=n_outputs)
    has_few = is_forest or by_leaves is None
    surface = surface_of(
        estimator,
        work,
        max_depth=_depths(estimator.max_depth, has_few),
        min_samples_split=FEW_SPLITS if has_few else None,
        scoring=scoring,
        error_score="raise",
    )
    choices = _limits(surface)
    grown, path = surface._grown, None
    assert grown is not None
    if not is_forest:
        path = surface.cost_complexity()
        choices += _prunings(path, estimator, grown, scoring)
    best = [choice for choice in choices if choice.rule == "best"]
    # without the last digits of a mean, which are of the order in which scores are added
    way = max(best, key=lambda each: (round(float(each.scores.mean()), 12), -each.n_leaves)).way
    chosen = next(choice for choice in choices if (choice.way, choice.rule) == (way, rule))
    tuned = TunedSize(chosen, tuple(choices), surface.scores[-1, 0], surface, path)
    return tuned, grown.within(clone(estimator).set_params(**chosen.parameters))


def _tune_iterations(
    estimator: Any, work: SplitTable, rule: Rule, scoring: Any
) -> tuple[TunedSize, FittedSplits]:
    """Choose the iterations of a boosted model, as `tune`."""
    by = "loss" if _goes_by_loss(scoring, estimator) else scoring
    curve = grown_curve(estimator, work, by)
    grown = curve._grown
    assert grown is not None
    found: dict[Rule, int] = {"best": curve.best, "simplest": curve.one_standard_error}
    choices, models = {}, {}
    for name, n in found.items():
        parameters = {"max_iter": n, "early_stopping": False}
        models[name] = grown.within(clone(estimator).set_params(**parameters))
        scores = curve.scores[n - 1] if by is scoring else models[name].scores(scoring)
        n_leaves = size_of(curve.model(n)).n_leaves
        choices[name] = SizeChoice("iterations", name, parameters, scores, n_leaves)
    untuned = curve.scores[-1] if by is scoring else grown.scores(scoring)
    tuned = TunedSize(choices[rule], tuple(choices.values()), untuned, None, None, curve)
    return tuned, models[rule]


def _goes_by_loss(scoring: Any, estimator: Any) -> bool:
    """Whether the loss of a boosted model is asked: as it is what a scorer tells, at less cost.

    Or as there is no scorer, and R^2 says little of the regression.
    """
    if scoring is not None:
        return is_own_loss(scoring, estimator)
    loss = estimator.loss
    return not is_classifier(estimator) and loss != "squared_error" and has_loss_of_rows(loss)


def tuned_scores(
    estimator: Any,
    work: SplitTable,
    folds_of: Callable[[np.ndarray], Sequence[Split]],
    rule: Rule = "best",
    *,
    scoring: Any = None,
) -> np.ndarray:
    """What a choice of the size is worth on rows that have no part in it: float64 (n_splits,).

    For each split, the size is chosen by folds of its training side alone. The model of that size
    and side is scored on the test side. `folds_of` gets row numbers, int64 (n,), and splits the
    numbers 0 to n - 1. Costs a growth, and what else `tuned_size` does, for each split; the table
    is coded once.
    """
    scores, bar = [], None if is_boosted(estimator) else work.bar  # iterations are not counted
    sides = RowsOfSides(work.splits, len(work.table.y))
    for number, split in enumerate(work.splits):
        rows = sides[number]
        numbers = np.flatnonzero(rows)
        own = [(numbers[train], numbers[test]) for train, test in folds_of(numbers)]
        n_trees = 0 if bar is None else (len(own) + 1) * FitPlan.of(estimator).n_trees
        if bar is not None and number == 0:  # of all sides at once, as a total that grows says less
            bar.expect(n_trees * len(work.splits))
        side = SplitTable(work.table, own, rows)
        _, grown = tune(estimator, side, rule, scoring=scoring)
        scores.append(grown.only_final([split]).scores(scoring)[0])
        if bar is not None:
            bar.advance(n_trees)
    return np.array(scores)


def _depths(most: int | None, has_few: bool) -> Sequence[int] | None:
    """Depths to try; None: all that there are."""
    if not has_few:
        return None if most is None else range(1, most + 1)
    if most is None:
        return FEW_DEPTHS
    return [*(depth for depth in FEW_DEPTHS if depth < most), most]


def _limits(surface: ValidationSurface) -> list[SizeChoice]:
    choices = []
    cells: list[tuple[Rule, dict[str, int]]] = [
        ("best", surface.best),
        ("simplest", surface.one_standard_error),
    ]
    for rule, cell in cells:
        depth = np.searchsorted(surface.max_depth, cell["max_depth"])
        split = np.searchsorted(surface.min_samples_split, cell["min_samples_split"])
        n_leaves = size_of(surface.model(**cell)).n_leaves
        choices.append(
            SizeChoice("limits", rule, dict(cell), surface.scores[depth, split], n_leaves)
        )
    return choices


def _prunings(
    path: CostComplexity, estimator: Any, grown: FittedSplits, scoring: Any
) -> list[SizeChoice]:
    steps: dict[Rule, int] = {"best": path.best_index, "simplest": path.one_standard_error_index}
    candidates = [{"ccp_alpha": alpha_of_step(path, step)} for step in steps.values()]
    cells = grown.cells(estimator, candidates)
    scores = grown.scores_of_cells(cells, {"score": scoring})["score"]
    return [
        SizeChoice("pruning", rule, candidate, own, int(path.n_leaves[step]))
        for (rule, step), candidate, own in zip(steps.items(), candidates, scores, strict=True)
    ]


def alpha_of_step(path: CostComplexity, step: int) -> float:
    """The alpha of a step of a path that the trees of the folds are pruned with, too.

    It stands in the middle of the interval in which the tree of all rows is the same one. The last
    interval, that of the root alone, has no middle: its beginning.
    """
    alpha = float(path.fold_alphas[step])
    return alpha if np.isfinite(alpha) else float(path.ccp_alphas[step])
