"""Early stopping: a model ends when its score has not got better for some iterations.

    counted rows ──draw──▶ training rows ──▶ boost ──trees of an iteration──┐
                      └──▶ held-out rows ◀── walk, by their codes ──────────┘
                               └─ score ─▶ better within the last iterations? no: end

Held-out rows walk down each new tree once. Their raw predictions are the bits that the model
predicts. The iterations up to the best one are the model, as those that LightGBM, XGBoost and
CatBoost predict with; all of them are with ``use_best_model=False``. The table is coded as a whole,
so cut points depend on the values of held-out rows, but on nothing of their targets.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from dtrees.core.losses.losses import Loss
from dtrees.core.losses.own import OwnLoss
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.binned import CodedRows, Walked
from dtrees.estimators.prediction import BoostedPredictor
from dtrees.estimators.scorers import refuse_unfit, with_labels

if TYPE_CHECKING:
    from dtrees.estimators.boosted_start import StartingBoosting

ENOUGH_ROWS = 10_000  # more of them stop early by themselves, as in scikit-learn


def is_wanted(early_stopping: Any, n_rows: int) -> bool:
    """Whether a fit to so many rows may stop early."""
    return n_rows > ENOUGH_ROWS if isinstance(early_stopping, str) else bool(early_stopping)


def has_stopped(scores: list[float], n_iter_no_change: int, tol: float) -> bool:
    """Whether none of the last scores is better than the one before them.

    Parameters
    ----------
    scores : list of float
        Of 0, 1, 2, ... iterations; higher is better.
    n_iter_no_change : int
    tol : float
        Less than that is not better.
    """
    if len(scores) <= n_iter_no_change:
        return False
    before = scores[-n_iter_no_change - 1] + tol
    return not any(score > before for score in scores[-n_iter_no_change:])


def best_iteration(scores: Sequence[float] | np.ndarray) -> int:
    """Iterations after which the score was highest: at least one; of equal ones the first.

    scores : of 0, 1, 2, ... iterations; nan is lower than any number.
    """
    later = np.asarray(scores[1:], dtype=np.float64)
    return int(np.where(np.isnan(later), -np.inf, later).argmax()) + 1


def split(
    counted: np.ndarray, labels: np.ndarray | None, validation_fraction: Any, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out rows of those that count, both ascending.

    Parameters
    ----------
    counted : intp (n,)
        Numbers of rows.
    labels : array (n,) or None
        Of classes, whose shares are kept; None: numbers.
    validation_fraction : float or int
    seed : int

    Raises
    ------
    ValueError
        A side would have no row, or a class no row on one of them.
    """
    from sklearn.model_selection import train_test_split

    if labels is not None and 1 in np.bincount(labels):
        raise ValueError(
            "Early stopping holds out a share of each class, and a class has one row of positive "
            "weight only. Leave the row out, give X_val and y_val, or set early_stopping=False "
            "(--no-early-stopping)."
        )
    try:
        train, held = train_test_split(
            counted, test_size=validation_fraction, stratify=labels, random_state=seed
        )
    except ValueError as error:
        raise ValueError(
            f"Early stopping cannot hold out validation_fraction={validation_fraction!r} of "
            f"{len(counted)} rows of positive weight: {error} Give another validation_fraction, or "
            "X_val and y_val, or set early_stopping=False (--no-early-stopping)."
        ) from error
    return np.sort(train), np.sort(held)


@dataclass(eq=False)
class Watch:
    """Scores the model of each iteration on some rows.

    Attributes
    ----------
    predictor : BoostedPredictor
        Without trees.
    walked : Walked
        The table of the rows.
    rows : intp (n,)
        Numbers of those that are scored.
    score : callable (raw, trees) -> float
        Higher is better. raw : float64 (n_rows, n_values); trees : all so far.
    n_iter_no_change : int
    tol : float
    is_apart : bool, default=True
        Whether none of the rows is grown from.
    scores : list of float
        Of 0, 1, 2, ... iterations.
    """

    predictor: BoostedPredictor
    walked: Walked
    rows: np.ndarray
    score: Callable[[np.ndarray, list[Tree]], float]
    n_iter_no_change: int
    tol: float
    is_apart: bool = True
    scores: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._raw = np.repeat(self.predictor.initial[None, :], len(self.rows), axis=0)
        self._trees: list[Tree] = []
        self.scores.append(self.score(self._raw, self._trees))

    def __call__(self, trees: list[Tree]) -> bool:
        """Take the trees of an iteration; whether it is the last one."""
        for k, steps in enumerate(self.walked.means(trees, self.rows)):
            self._raw[:, k] += steps
        return self.see(trees, self._raw)

    @property
    def reads_codes(self) -> bool:
        """Whether the rows are some of the table that the model is grown from."""
        return isinstance(self.walked, CodedRows)

    def copied(self) -> Watch:
        """One that has seen the same, and goes on by itself."""
        other = copy.copy(self)
        other._raw, other._trees = self._raw.copy(), list(self._trees)
        other.scores = list(self.scores)
        return other

    def see(self, trees: Sequence[Tree], raw: np.ndarray) -> bool:
        """Take the trees of an iteration with the raw predictions of all so far; as a call."""
        self._raw = raw
        self._trees += trees
        self.scores.append(self.score(self._raw, self._trees))
        return has_stopped(self.scores, self.n_iter_no_change, self.tol)


@dataclass(frozen=True, eq=False)
class Held:
    """Rows that scores are made of.

    Attributes
    ----------
    X : table
        Of the fit.
    rows : intp (n,)
        Their numbers.
    y : array (n,)
        Their targets, as the user gave them.
    of_loss : float64 (n,)
        The same as the loss wants them.
    weight : float64 (n,) or None
    """

    X: Any
    rows: np.ndarray
    y: np.ndarray
    of_loss: np.ndarray
    weight: np.ndarray | None


def scored(
    estimator: StartingBoosting, predictor: BoostedPredictor, held: Held, scoring: Any
) -> Callable[[np.ndarray, list[Tree]], float]:
    """How a model is scored: by its loss, a scorer of scikit-learn, or a function of the user.

    Parameters
    ----------
    estimator : StartingBoosting
        With attributes of the fit, but for its trees.
    predictor : BoostedPredictor
    held : Held
    scoring : str, callable or None
        As the parameter of the estimator. ValueError: it is not defined for the classes.
    """
    if isinstance(scoring, str) and scoring == "loss":
        return ByLoss(predictor.loss, held.of_loss, held.weight)
    from sklearn.metrics import check_scoring, get_scorer

    refuse_unfit(scoring, predictor.classes)
    scorer = with_labels(check_scoring(estimator, scoring), predictor.classes)
    if scoring is None or type(scorer).__module__ == get_scorer.__module__:
        return ByPredictions(estimator, predictor, scorer, (held.rows, held.y, held.weight))
    return ByModel(estimator, scorer, _safe_indexing(held.X, held.rows), held.y)


@dataclass(frozen=True, eq=False)
class ByLoss:
    """Scores by the loss; may be sent elsewhere."""

    loss: Loss | OwnLoss
    y: np.ndarray
    weight: np.ndarray | None

    def __call__(self, raw: np.ndarray, trees: list[Tree]) -> float:
        """Minus the mean loss."""
        return -self.loss.mean(self.y, raw, self.weight)

    def of_stages(self, raw: np.ndarray) -> np.ndarray:
        """The same of several iterations, float64 (n,); raw : (n, n_values, n_rows)."""
        return -self.loss.means(self.y, raw, self.weight)


@dataclass(frozen=True, eq=False)
class ByPredictions:
    """Scores by a scorer of scikit-learn's, which looks at predictions only; may be sent."""

    estimator: StartingBoosting
    predictor: BoostedPredictor
    scorer: Any
    held: tuple[np.ndarray, np.ndarray, np.ndarray | None]  # numbers of rows, y, weight

    def __call__(self, raw: np.ndarray, trees: list[Tree]) -> float:
        """What the scorer says of the raw predictions."""
        rows, y, weight = self.held
        kwargs = {} if weight is None else {"sample_weight": weight}
        stage = Stage(self.estimator, self.predictor, raw)
        return float(self.scorer(stage, rows[:, None], y, **kwargs))


@dataclass(frozen=True, eq=False)
class ByModel:
    """Scores by a function of the user's, which may ask anything and be anything."""

    estimator: StartingBoosting
    scorer: Any
    X: Any
    y: np.ndarray

    def __call__(self, raw: np.ndarray, trees: list[Tree]) -> float:
        """What the function says of the model of all trees so far."""
        model = copy.copy(self.estimator)
        model.forest_ = Forest(tuple(trees))
        return float(self.scorer(model, self.X, self.y))


def _has_classes(stage: Stage) -> bool:
    return is_classifier(stage.estimator)


class Stage(BaseEstimator):
    """A model in the middle of its fit, for scorers that look at predictions only."""

    def __init__(self, estimator: Any, predictor: BoostedPredictor, raw: np.ndarray) -> None:
        self.estimator = estimator
        self.predictor = predictor
        self.raw = raw

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    @property
    def classes_(self) -> Any:
        """Labels of the classes."""
        return self.estimator.classes_

    def predict(self, X: Any) -> np.ndarray:
        """A label or a number for every row."""
        return self.predictor.labels_of(self.predictor.values_of(self.raw))

    @available_if(_has_classes)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Shares of the classes."""
        return self.predictor.values_of(self.raw)

    @available_if(_has_classes)
    def decision_function(self, X: Any) -> np.ndarray:
        """Raw predictions."""
        return self.predictor.scores_of(self.raw)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """What the estimator's ``score`` says: accuracy, or R^2."""
        from sklearn.metrics import get_scorer

        scorer = get_scorer("accuracy" if is_classifier(self.estimator) else "r2")
        return float(scorer(self, X, y, sample_weight=sample_weight))
