"""Early stopping: a model ends when its score has not got better for some iterations.

    counted rows ──draw──▶ training rows ──▶ boost ──trees of an iteration──┐
                      └──▶ held-out rows ◀── walk, by their codes ──────────┘
                               └─ score ─▶ better within the last iterations? no: end

Held-out rows walk down each new tree once. Their raw predictions are the bits that the model
predicts. The iterations up to the best one are the model, as those that LightGBM, XGBoost and
CatBoost predict with; all of them are with ``use_best_model=False``. The table is coded as a whole,
so cut points depend on the values of held-out rows, but on nothing of their targets.

Or rows are given to be scored: ``X_val``, ``y_val``, ``sample_weight_val``.

    X_val ──columns as at fit──▶ walks down each new tree, by its values ──┐
    y_val ──numbers of the classes, or numbers─────────────────────────────┴──▶ score ──▶ end?

They are no rows of the table: no cut point, category or class is theirs, and all rows of the table
are grown from. As in scikit-learn, class weights do not concern them.

Callbacks hear of each iteration, too, and may end the fit.

    trees of an earlier fit ─▶ raw predictions ─▶ boost ──trees of an iteration──▶ score
                                                   ▲                                │ callbacks
                                                   └────────── go on? ──────────────┘

With ``warm_start`` a fit goes on where the one before it ended. Rows walk down the trees that are
there by their values, as the codes of these trees are those of another coding. Each iteration's
score is computed again. So the model is the one of a single fit, if nothing else has changed:
also its end by early stopping, after which no more trees are added.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from dtrees.callbacks import BoostingFit, Callback, told
from dtrees.coding.codebook import CodeBook
from dtrees.coding.tables import Table, row_values
from dtrees.coding.target import Target, check_weights
from dtrees.core.losses.losses import Loss, OwnLoss
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.binned import CodedRows, LeafLookup
from dtrees.core.predict.raw import apply, raw_predictions, staged_raw_predictions
from dtrees.estimators.fit_plan import one_target
from dtrees.estimators.forest_growth import check_same_labels
from dtrees.estimators.prediction import BoostedPredictor
from dtrees.estimators.scorers import refuse_unfit, with_labels
from dtrees.parallel import computed, is_lazy
from dtrees.typing import Runner

if TYPE_CHECKING:
    from dtrees.estimators.boosted_start import Start
    from dtrees.estimators.boosting import BaseBoosting


def has_stopped(scores: list[float], n_iter_no_change: int, tol: float) -> bool:
    """Whether none of the last scores is better than the one before them, by more than `tol`.

    `scores` are those of 0, 1, 2, ... iterations; higher is better.
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
    """Training and held-out rows of those that count, intp (n,), both ascending.

    `counted` are numbers of rows. `labels` are those of classes, whose shares are kept; None:
    numbers. ValueError: a side would have no row, or a class no row on one of them.
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
    walked, rows
        The table of the rows, and numbers of those that are scored.
    score : callable (raw, trees) -> float
        Higher is better. raw : float64 (n_rows, n_values); trees : all so far.
    n_iter_no_change, tol
        The fit ends when none of the last `n_iter_no_change` scores is better by more than `tol`
        than the one before them.
    is_apart : bool, default=True
        Whether none of the rows is grown from.
    scores : list of float
        Of 0, 1, 2, ... iterations.
    """

    predictor: BoostedPredictor
    walked: LeafLookup
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

    def __call__(self, trees: list[Tree], raw: np.ndarray) -> bool:
        """Take the trees of an iteration; whether it is the last one. `raw` is of other rows."""
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
    """Rows that scores are made of: their numbers in a table `X` of the fit, and their targets.

    `y` is as the user gave it, and `of_loss`, float64 (n,), as the loss wants it.
    """

    X: Any
    rows: np.ndarray
    y: np.ndarray
    of_loss: np.ndarray
    weight: np.ndarray | None


def scored(
    estimator: BaseBoosting, predictor: BoostedPredictor, held: Held, scoring: Any
) -> Callable[[np.ndarray, list[Tree]], float]:
    """How a model is scored: by its loss, a scorer of scikit-learn, or a function of the user.

    `estimator` has attributes of the fit, but for its trees. `scoring` is its parameter;
    ValueError: it is not defined for the classes.
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

    estimator: BaseBoosting
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

    estimator: BaseBoosting
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


SHOWN = 5  # labels in a message


@dataclass(frozen=True, eq=False)
class ValueRows(LeafLookup):
    """All rows of a table that was not coded, walked by their values; may be sent elsewhere.

    `table` is what ``book.check`` returned.
    """

    book: CodeBook
    table: Table

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, intp (n,). O(rows of the table x depth)."""
        found: np.ndarray = apply(tree, self.book, self.table)[rows]
        return found


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows to be scored, as the user has given them."""

    X: Any
    y: Any
    sample_weight: Any

    @classmethod
    def of(cls, X_val: Any, y_val: Any, sample_weight_val: Any, early_stopping: Any) -> GivenRows:
        """What was given, of which something is not None.

        ValueError: a part is missing, or the fit is not to stop early. TypeError: a Dask
        collection.
        """
        if X_val is None and y_val is None:
            raise ValueError("sample_weight_val is provided without X_val and y_val.")
        for name, other, value in (("X_val", "y_val", y_val), ("y_val", "X_val", X_val)):
            if value is None:
                raise ValueError(f"{name} is provided, but {other} was not provided.")
        if early_stopping is False:
            raise ValueError(
                "X_val and y_val are for early stopping, and early_stopping is False. Set it to "
                "'auto' or True, or leave them out."
            )
        if is_lazy(X_val):
            raise TypeError(
                "X_val is a Dask collection, and its rows walk down each tree in this process. "
                "Give X_val.compute()."
            )
        return cls(X_val, *map(row_values, computed(y_val, sample_weight_val)))

    def read(
        self, book: CodeBook, classes: np.ndarray | None, loss: Loss | OwnLoss, owner: str
    ) -> tuple[Held, ValueRows]:
        """The rows as they are scored, and as they walk.

        `classes` are the labels of the fit; None: numbers. `owner` is the estimator, for messages.
        ValueError: columns are not those of the fit, lengths differ, a label is none of the fit, or
        the loss has no use for a target.
        """
        table = book.check(self.X, estimator=owner)
        try:
            y = one_target(self.y, owner)
            if len(y) != table.n_rows:
                raise ValueError(f"X_val has {table.n_rows} rows, y_val has {len(y)} values.")
            of_loss = _numbers(y) if classes is None else _numbers_of_classes(y, classes)
            loss.check(of_loss)
            weight = self.sample_weight
            weight = None if weight is None else check_weights(weight, len(y))
        except ValueError as error:
            raise ValueError(f"Rows to be scored (X_val, y_val): {error}") from error
        return Held(self.X, np.arange(len(y)), y, of_loss, weight), ValueRows(book, table)


def _numbers(y: np.ndarray) -> np.ndarray:
    """Targets as float64; ValueError: they are none, or not finite."""
    Target.regression(y)
    return np.ascontiguousarray(y, dtype=np.float64)


def _numbers_of_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels as numbers of the classes of a fit, float64."""
    own = Target.classification(y)
    assert own.classes is not None
    known = {label: number for number, label in enumerate(classes.tolist())}
    labels = own.classes.tolist()
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise ValueError(f"y_val has labels that are none of y: {unknown[:SHOWN]}.")
    return np.array([known[label] for label in labels], dtype=np.float64)[own.y]


class Iterations:
    """Hears of the trees of each iteration: callbacks, and a watch that may end the fit.

    `trees` are there already.
    """

    def __init__(
        self, model: BaseBoosting, start: Start, trees: list[Tree], callbacks: Sequence[Callback]
    ) -> None:
        self.callbacks, self.watch = callbacks, start.watch
        self.rows, self.growing = start.rows, start.growing
        first = self.growing.first
        self.fit = BoostingFit(
            model,
            range(first, first + self.growing.n_iterations),
            trees,
            len(self.growing.initial),
            [] if self.watch is None else self.watch.scores,
            measure=self._training_score,
        )
        self._raw = self.rows.raw

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
    def ends(self) -> Watch | None:
        """What may be sent to a worker to end the growth there; None: nothing."""
        is_sent = self.watch is not None and not isinstance(self.watch.score, ByModel)
        return self.watch if is_sent else None

    def __call__(self, trees: list[Tree], raw: np.ndarray) -> bool:
        """Take the trees of an iteration; whether it is the last one."""
        self.fit.trees += trees
        self._raw = raw
        number = len(self.fit.trees) // self.fit.n_values - 1
        is_last = self.watch is not None and self.watch(trees, raw)
        stops = told([callback.on_iteration_end(self.fit, number) for callback in self.callbacks])
        return is_last or stops

    def replay(self, trees: list[Tree]) -> list[Tree]:
        """Hear of trees that have grown elsewhere; those up to the last one that is wanted."""
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
    """The trees that a fit with ``warm_start`` goes on with; ValueError: they are too many."""
    if not hasattr(model, "forest_"):
        return None
    if model.max_iter < model.n_iter_:
        raise ValueError(
            f"max_iter={model.max_iter} must be larger than or equal to n_iter_={model.n_iter_} "
            "when warm_start==True"
        )
    return model.forest_


def kept_predictions(
    model: BaseBoosting, book: CodeBook, classes: Any, table: Any, run: Runner
) -> tuple[np.ndarray, np.ndarray]:
    """Raw predictions before the first tree, (n_values,), and by all that are there, by value.

    `book` and `table` are those of this fit. ValueError: the trees know columns, classes or the
    loss by another number or meaning. TypeError: the table is not in memory.
    """
    check_same_labels(model, book, classes)
    if model._fit_loss != model._loss():
        raise ValueError(
            "warm_start=True keeps the trees that are there, so the loss must be that of the first "
            "fit. Set warm_start=False to begin anew."
        )
    if not isinstance(table, Table):
        raise TypeError(
            "warm_start=True walks the rows of X down the trees that are there, and X is a Dask "
            "collection. Give X.compute(), or set warm_start=False."
        )
    raw = raw_predictions(model.forest_, model._initial, book, table, run)
    return model._initial, np.ascontiguousarray(raw.T)


def going_on(model: BaseBoosting, start: Start, table: Any, run: Runner) -> Start:
    """The start of a fit that goes on: iterations that are there are scored, others are grown.

    No iteration is grown where one of those that are there was the last.
    """
    n_there, growing, watch = model.n_iter_, start.growing, start.watch
    n_values, is_over = len(growing.initial), False
    if watch is not None:
        table = watch.walked.table if isinstance(watch.walked, ValueRows) else table
        book, trees = start.learned["codebook_"], model.forest_.trees
        stages = staged_raw_predictions(model.forest_, growing.initial, book, table, run)
        for number, raw in enumerate(stages):
            own = trees[number * n_values : (number + 1) * n_values]
            is_over |= watch.see(own, np.ascontiguousarray(raw[watch.rows]))
    growing = replace(
        growing,
        n_iterations=0 if is_over else model.max_iter - n_there,
        first=n_there,
        n_there=n_there * n_values,
    )
    return replace(start, growing=growing)
