"""The size of a model, chosen by the folds that score it.

A tree that has grown to the end is too large for most data. Two ways make it smaller, and both are
told by one growth of the folds' trees and the one of all rows::

    limits    max_depth x min_samples_split      surface ([SF] 3)           best, simplest
    pruning   ccp_alpha                          cost-complexity (CART)     best, simplest

*Best* has the best score, and *simplest* is the smallest model that is at most a standard error
worse. The way whose best model has the higher mean score is taken; of equal ones, the smaller
model. Forests are made of large trees for a reason, and a cell of theirs costs a prediction: they
have few limits to choose from, and no pruning.

A score that was the highest of many is somewhat too good. What a choice is worth on new rows tells
a search within a cross-validation (`dtrees.model_selection.nested`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from dtrees.model_selection.cost_complexity import CostComplexity
from dtrees.model_selection.folds import Split, mean_and_standard_error
from dtrees.model_selection.search import GridSearchCV
from dtrees.model_selection.size import size_of
from dtrees.model_selection.surface import ValidationSurface, validation_surface

Rule = Literal["best", "simplest"]
Way = Literal["limits", "pruning"]

FOREST_DEPTHS = (4, 8, 12, 16, 24, 64)
FOREST_SPLITS = (2, 10)


@dataclass(frozen=True, eq=False)
class SizeChoice:
    """A size that was looked at.

    Attributes
    ----------
    way : 'limits' or 'pruning'
    rule : 'best' or 'simplest'
        What it is, of its way.
    parameters : dict
        ``max_depth`` and ``min_samples_split``, or ``ccp_alpha``.
    scores : float64 (n_splits,)
        Of the held-out rows, by ``estimator.score``.
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
    """What was chosen, and from what.

    Attributes
    ----------
    chosen : SizeChoice
    choices : tuple of SizeChoice
        The best and the simplest model of each way.
    untuned : float64 (n_splits,)
        Scores of the largest model: as deep as is allowed, with nodes of two rows split.
    surface : ValidationSurface
    path : CostComplexity or None
        None: of a forest.
    """

    chosen: SizeChoice
    choices: tuple[SizeChoice, ...]
    untuned: np.ndarray
    surface: ValidationSurface
    path: CostComplexity | None


def tuned_size(
    estimator: Any, X: Any, y: np.ndarray, splits: Sequence[Split], rule: Rule = "best"
) -> TunedSize:
    """Choose the size of a tree or a forest by cross-validation.

    Parameters
    ----------
    estimator : tree or forest of dtrees
        Its ``max_depth`` is the largest that is tried. ``min_samples_split`` and ``ccp_alpha`` are
        what is chosen, so they are at their defaults; the other parameters stay as they are.
    X : table of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
    splits : sequence of (train, test) pairs of row arrays
        At least two.
    rule : 'best' or 'simplest', default='best'
        Of the way that is taken, the best size or the simplest.

    Returns
    -------
    TunedSize

    Notes
    -----
    Costs two growths for a tree. For a forest one, and twelve predictions of every held-out row.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import shuffled_folds, tuned_size
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> splits = shuffled_folds(y, 10, seed=0, stratified=True)
    >>> tuned = tuned_size(DecisionTreeClassifier(random_state=0), X, y, splits)
    >>> tree = DecisionTreeClassifier(random_state=0, **tuned.chosen.parameters)
    """
    is_forest = hasattr(estimator, "n_estimators")
    surface = validation_surface(
        estimator,
        X,
        y,
        max_depth=_depths(estimator.max_depth, is_forest),
        min_samples_split=FOREST_SPLITS if is_forest else None,
        cv=splits,
    )
    choices = _limits(surface)
    path = None
    if not is_forest:
        path = surface.cost_complexity()
        choices += _prunings(path, estimator, X, y, splits)
    best = [choice for choice in choices if choice.rule == "best"]
    way = max(best, key=lambda choice: (_rounded_mean(choice), -choice.n_leaves)).way
    chosen = next(choice for choice in choices if (choice.way, choice.rule) == (way, rule))
    return TunedSize(chosen, tuple(choices), surface.scores[-1, 0], surface, path)


def _rounded_mean(choice: SizeChoice) -> float:
    """The mean without its last digits: those of the order in which scores are added."""
    return round(float(choice.scores.mean()), 12)


def _depths(most: int | None, is_forest: bool) -> Sequence[int] | None:
    """Depths to try; None: all that there are."""
    if not is_forest:
        return None if most is None else range(1, most + 1)
    if most is None:
        return FOREST_DEPTHS
    return [*(depth for depth in FOREST_DEPTHS if depth < most), most]


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
    path: CostComplexity, estimator: Any, X: Any, y: np.ndarray, splits: Sequence[Split]
) -> list[SizeChoice]:
    steps: dict[Rule, int] = {"best": path.best_index, "simplest": path.one_standard_error_index}
    alphas = [alpha_of_step(path, step) for step in steps.values()]
    search = GridSearchCV(
        clone(estimator), {"ccp_alpha": alphas}, cv=splits, refit=False, error_score="raise"
    )
    found = search.fit(X, y).cv_results_
    scores = np.array([found[f"split{i}_test_score"] for i in range(len(splits))])
    return [
        SizeChoice("pruning", rule, {"ccp_alpha": alpha}, scores[:, k], int(path.n_leaves[step]))
        for k, ((rule, step), alpha) in enumerate(zip(steps.items(), alphas, strict=True))
    ]


def alpha_of_step(path: CostComplexity, step: int) -> float:
    """The alpha of a step of a path that the trees of the folds are pruned with, too.

    It stands in the middle of the interval in which the tree of all rows is the same one. The last
    interval, that of the root alone, has no middle: its beginning.
    """
    alpha = float(path.fold_alphas[step])
    return alpha if np.isfinite(alpha) else float(path.ccp_alphas[step])
