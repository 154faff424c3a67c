"""Early stopping: a model ends when its score has not got better for some iterations.

    counted rows ──draw──▶ training rows ──▶ boost ──trees of an iteration──┐
                      └──▶ held-out rows ◀── walk, by their codes ──────────┘
                               └─ score ─▶ better within the last iterations? no: end

Each row draws for itself, by the seed and its rank among the rows of its class, so the draw is the
same wherever the table is cut. Held-out rows walk down each new tree once. Their raw predictions
are the bits that the model predicts. The iterations up to the best one are the model, as those that
LightGBM, XGBoost and CatBoost predict with; all of them are with ``use_best_model=False``. The
table is coded as a whole, so cut points depend on the values of held-out rows, but on nothing of
their targets.

Or rows are given to be scored (`dtrees.estimators.eval_sets`): several sets, by several measures.
The first measure of the first set may end the fit::

    sets      "valid_0", "valid_1", "training"
    measures  loss, roc_auc                      ──▶ a curve of each measure on each set

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
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from itertools import repeat
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from dtrees._other_words import refuse_other_scorers
from dtrees._random import HELD_OUT, keyed_sample
from dtrees.callbacks import BoostingFit, Callback, told
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.tables import Table
from dtrees.coding.target import Target
from dtrees.core.grow._boosted_rows import RowDraws
from dtrees.core.grow.boosting import BoostedRows, Growing
from dtrees.core.losses.outputs import AnyLoss, losses_by_output
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.binned import CodedRows, LeafLookup
from dtrees.core.predict.raw import raw_predictions, staged_raw_predictions
from dtrees.estimators.forest_growth import check_same_labels
from dtrees.estimators.prediction import BoostedPredictor
from dtrees.estimators.scorers import refuse_unfit, with_labels
from dtrees.parallel import SavedTrees, is_lazy
from dtrees.typing import Members, Runner

if TYPE_CHECKING:
    from dtrees.estimators.boosted_start import Start
    from dtrees.estimators.boosting import BaseBoosting
    from dtrees.estimators.eval_sets import OtherTables

OF_CLASSES = (
    "sklearn.metrics._classification",
    "sklearn.metrics._ranking",
)  # scikit-learn's scores
OF_SHARES = ("log_loss", "brier_score_loss", "d2_log_loss_score", "d2_brier_score")


def has_stopped(scores: list[float], n_iter_no_change: int, tol: float) -> bool:
    """Whether none of the last scores is better than the one before them, by more than `tol`.

    `scores` are those of 0, 1, 2, ... iterations; higher is better, and any number than nan.
    """
    if len(scores) <= n_iter_no_change:
        return False
    before = scores[-n_iter_no_change - 1] + tol
    before = -np.inf if np.isnan(before) else before
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
    totals = counts_of_labels(labels, len(counted))
    sizes = sizes_held(totals, labels is not None, validation_fraction)
    held = drawn_held(len(counted), labels, np.zeros_like(totals), totals, sizes, seed)
    return counted[~held], counted[held]


def counts_of_labels(labels: np.ndarray | None, n_rows: int, n_classes: int = 0) -> np.ndarray:
    """Rows of each class, int64 (n_classes,); without labels, of all rows: (1,)."""
    if labels is None:
        return np.array([n_rows])
    return np.bincount(labels, minlength=n_classes)


def sizes_held(totals: np.ndarray, are_classes: bool, validation_fraction: Any) -> np.ndarray:
    """Rows that are held out of those of each class, int64 (n_classes,); ValueError as `split`.

    Of the rows of all classes they are the share, rounded up. Those of a class are its share
    rounded down, and one more where most was cut off.
    """
    if are_classes and 1 in totals:
        raise ValueError(
            "Early stopping holds out a share of each class, and a class has one row of positive "
            "weight only. Leave the row out, give X_val and y_val, or set early_stopping=False "
            "(--no-early-stopping)."
        )
    n_rows, n_present = int(totals.sum()), int(np.count_nonzero(totals))
    is_number = isinstance(validation_fraction, Integral)
    n_held = int(validation_fraction) if is_number else math.ceil(validation_fraction * n_rows)
    if min(n_held, n_rows - n_held) < n_present:
        of = f" of {n_present} classes" if are_classes else ""
        raise ValueError(
            f"Early stopping cannot hold out validation_fraction={validation_fraction!r} of "
            f"{n_rows} rows of positive weight: {n_held} would be held out and {n_rows - n_held} "
            f"grown from, and both sides need rows{of}. Give another validation_fraction, or X_val "
            "and y_val, or set early_stopping=False (--no-early-stopping)."
        )
    sizes = n_held * totals // n_rows
    cut_off = n_held * totals - sizes * n_rows
    sizes[np.argsort(-cut_off, kind="stable")[: n_held - int(sizes.sum())]] += 1
    return sizes


def drawn_held(
    n_rows: int,
    labels: np.ndarray | None,
    before: np.ndarray,
    totals: np.ndarray,
    sizes: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Which rows are held out, bool (n_rows,); each draws for itself, by its rank in its class.

    before, totals, sizes : int64 (n_classes,)
        Rows of each class that stand before these, that there are, and that are held out.
    """
    held = np.zeros(n_rows, dtype=bool)
    order = np.arange(n_rows) if labels is None else np.argsort(labels, kind="stable")
    first = 0
    for number, n in enumerate(counts_of_labels(labels, n_rows).tolist()):
        start, own = int(before[number]), order[first : first + n]
        ranks = np.arange(start, start + n, dtype=np.uint64)
        about = int(totals[number]), int(sizes[number])
        held[own] = keyed_sample(seed, HELD_OUT, number, ranks, *about)
        first += n
    return held


OF_PREDICTIONS = (
    "Of a function of y_true and y_pred, make a scorer: "
    "sklearn.metrics.make_scorer(function, greater_is_better=False)."
)
Score = Callable[[np.ndarray, list[Tree]], float]
ScoredParts = tuple[np.ndarray, LeafLookup, np.ndarray, np.ndarray | None, np.ndarray]
Curves = dict[str, dict[str, list[float]]]  # by name of rows and of measure


@dataclass(eq=False)
class ScoredRows:
    """Rows that are scored before the first iteration and after each one, by some measures.

    Attributes
    ----------
    name : str
    rows : intp (n,)
        Their numbers in a table.
    walked : LeafLookup or None
        That table. None: they are grown from, so the growth has their raw predictions.
    raw : float64 (n, n_values)
        Raw predictions after the last iteration.
    measures : dict of str to callable (raw, trees) -> float
        Higher is better. trees : all so far.
    scores : dict of str to list of float
        Of 0, 1, 2, ... iterations.
    """

    name: str
    rows: np.ndarray
    walked: LeafLookup | None
    raw: np.ndarray
    measures: dict[str, Score]

    def __post_init__(self) -> None:
        self.scores: dict[str, list[float]] = {name: [] for name in self.measures}
        self.see(self.raw, [])

    def see(self, raw: np.ndarray, trees: list[Tree]) -> None:
        """Score the raw predictions by all trees so far."""
        self.raw = raw
        for name, measure in self.measures.items():
            self.scores[name].append(measure(raw, trees))

    @property
    def is_apart(self) -> bool:
        """Whether they are not grown from."""
        return self.walked is not None

    @property
    def undrawn(self) -> ByUndrawn | None:
        """The measure, where only those are scored that an iteration has not drawn."""
        measure = self.measures.get("loss")
        return measure if isinstance(measure, ByUndrawn) else None

    @property
    def is_of_fit(self) -> bool:
        """Whether they are rows of the table of the fit."""
        return self.walked is None or isinstance(self.walked, CodedRows)

    def after(self, trees: list[Tree], raw: np.ndarray | None) -> np.ndarray:
        """Raw predictions after the trees of an iteration, of which the growth has made `raw`."""
        if self.walked is None:
            assert raw is not None
            return np.ascontiguousarray(raw[:, self.rows].T)
        for k, steps in enumerate(self.walked.means(trees, self.rows)):
            self.raw[:, k] += steps
        return self.raw


class ScoredElsewhere(ScoredRows):
    """Rows of a table that is not here: those who grow from it score them, and tell all scores.

    Measures that are functions of the user's are asked here.
    """

    told: Mapping[str, Sequence[float]] = {}
    which = "grown"

    @property
    def is_apart(self) -> bool:
        """As their name says."""
        return self.which in ("held", "others")

    @property
    def is_of_fit(self) -> bool:
        """They are."""
        return True

    def see(self, raw: np.ndarray, trees: list[Tree]) -> None:
        """Take the next scores, which may be told, or are those of `raw`."""
        for name, measure in self.measures.items():
            scores, told = self.scores[name], self.told.get(name, ())
            if len(scores) < len(told):
                scores.append(told[len(scores)])
            elif not (isinstance(measure, ByLoss) and len(measure.y) == 0):  # rows are here
                scores.append(measure(raw, trees))

    def hear(self, told: Mapping[str, Sequence[float]]) -> None:
        """Take all scores so far, the first of which may not be known."""
        self.told = told
        for name, scores in self.scores.items():
            if not scores:
                scores += told.get(name, ())[:1]

    def elsewhere(self) -> dict[str, tuple[Any, list[float]]]:
        """Measures for those who have the rows, and scores but for the last one."""
        return {
            name: (measure.loss if isinstance(measure, ByLoss) else measure, self.scores[name][:-1])
            for name, measure in self.measures.items()
            if not isinstance(measure, ByModel)
        }

    def after(self, trees: list[Tree], raw: np.ndarray | None) -> np.ndarray:
        """Those before the first tree: nobody asks for others."""
        return self.raw


class HeldElsewhere(ScoredElsewhere):
    """Those that are held out of the growth."""

    which = "held"


class OthersElsewhere(ScoredElsewhere):
    """Those of another table."""

    which = "others"


class UndrawnElsewhere(ScoredElsewhere):
    """Those that an iteration has not drawn (`ByUndrawn`)."""

    which = "undrawn"


@dataclass(frozen=True)
class SpreadScores:
    """How rows are scored by those who have them, as `dtrees.parallel.boosted_members.Scores`.

    Attributes
    ----------
    sets : dict of str to (str, dict)
        By name, whether the rows are those of the growth ("grown"), those of them that it has not
        drawn ("undrawn"), held out ("held"), or of another table ("others"); and by name of a
        measure a loss, or a measure of those who have all rows, and scores before the last one.
    n_iter_no_change, tol, decides
        As for `Watch`.
    join : callable or None
        Makes of the name of another table and parts of all of them what is scored.
    """

    sets: Mapping[str, tuple[str, dict[str, tuple[Any, list[float]]]]]
    n_iter_no_change: int
    tol: float
    decides: bool
    join: Callable[[str, Sequence[Any]], ScoredParts] | None

    def here(
        self,
        rows: BoostedRows,
        growing: Growing,
        held: np.ndarray | None,
        members: Members | None,
        others: Sequence[Any] = (),
    ) -> Watch:
        """The watch of one who has some of the rows, and `others`: parts of other tables."""
        found = []
        for name, (which, asked) in self.sets.items():
            walked: LeafLookup | None = None
            if which == "others":
                assert self.join is not None
                own, walked, y, weight, raw = self.join(name, others)
            else:
                chosen = held if which == "held" else rows.chosen
                own = np.arange(rows.n_rows) if chosen is None else chosen
                y, weight = rows.y[..., own], None
                if rows.weight is not None:
                    weight = rows.weight[own] * rows.weight_unit
                assert rows.raw is not None
                raw = np.ascontiguousarray(rows.raw[:, own].T)
                if which == "held" or (which == "grown" and members is None):
                    walked = CodedRows(rows.coded)
            measures = {
                each: ByLoss(how, y, weight, members) if isinstance(how, AnyLoss) else how
                for each, (how, _) in asked.items()
            }
            if which == "undrawn":
                measures = {"loss": ByUndrawn.of(rows, growing, asked["loss"][0], members)}
            scored = ScoredRows(name, own, walked, raw, measures)
            for each, (_, before) in asked.items():
                scored.scores[each][:0] = before
            found.append(scored)
        return Watch(found, self.n_iter_no_change, self.tol, self.decides)


@dataclass(eq=False)
class Watch:
    """Scores the model of each iteration on some sets of rows.

    Attributes
    ----------
    sets : list of ScoredRows
    n_iter_no_change, tol
        The fit ends when none of the last `n_iter_no_change` scores is better by more than `tol`
        than the one before them.
    decides : bool, default=True
        Whether the first measure of the first set may end the fit.
    is_apart : bool, default=True
        Whether none of the rows of the first set is grown from.
    others : OtherTables or None, default=None
        Sets that are other tables on the workers of a cluster.
    """

    sets: list[ScoredRows]
    n_iter_no_change: int
    tol: float
    decides: bool = True
    is_apart: bool = True
    others: OtherTables | None = None

    def __post_init__(self) -> None:
        self._trees: list[Tree] = []

    def __call__(self, trees: list[Tree], raw: np.ndarray | None) -> bool:
        """Take the trees of an iteration; whether it is the last one.

        raw : float64 (n_values, n_rows), of the rows of the table, where these are here
        """
        return self.see(trees, [each.after(trees, raw) for each in self.sets])

    @property
    def scores(self) -> list[float]:
        """Those that may end the fit, of 0, 1, 2, ... iterations; or none."""
        return next(iter(self.sets[0].scores.values())) if self.decides else []

    @property
    def reads_codes(self) -> bool:
        """Whether rows are some of the table that the model is grown from, and walk."""
        return any(isinstance(each.walked, CodedRows) for each in self.sets)

    def told(self) -> dict[str, dict[str, list[float]]]:
        """All scores, by name of the rows and of the measure."""
        return {each.name: each.scores for each in self.sets}

    def hear(self, told: Mapping[str, dict[str, list[float]]]) -> None:
        """Take what those tell who score rows elsewhere."""
        for each in self.sets:
            if isinstance(each, ScoredElsewhere):
                each.hear(told.get(each.name, {}))

    def elsewhere(self) -> SpreadScores | None:
        """How rows are scored that are not here; None: there are none."""
        there = {
            each.name: (each.which, asked)
            for each in self.sets
            if isinstance(each, ScoredElsewhere) and (asked := each.elsewhere())
        }
        if not there:
            return None
        first = self.sets[0]
        _, asked = there.get(first.name, ("", {}))
        decides = self.decides and next(iter(first.measures)) in asked
        join = None if self.others is None else self.others.join
        return SpreadScores(there, self.n_iter_no_change, self.tol, decides, join)

    def curves(self) -> Curves:
        """What the measures say after 1, 2, ... iterations; training rows first, undrawn ones last.

        Losses are positive.
        """
        found: Curves = {}
        for each in sorted(self.sets, key=lambda each: (each.undrawn is not None, each.is_apart)):
            of_rows = found[each.name] = {}
            for name, measure in each.measures.items():
                sign = -1.0 if isinstance(measure, ByLoss) else 1.0
                of_rows[name] = [sign * score for score in each.scores[name][1:]]
        return found

    def see(self, trees: Sequence[Tree], raws: Sequence[np.ndarray]) -> bool:
        """Take the trees of an iteration, with the raw predictions of each set; as a call."""
        self._trees += trees
        for each, raw in zip(self.sets, raws, strict=True):
            each.see(raw, self._trees)
        return self.decides and has_stopped(self.scores, self.n_iter_no_change, self.tol)


@dataclass(frozen=True, eq=False)
class Held:
    """Rows that scores are made of: their numbers in a table `X` of the fit, and their targets.

    `y` is as the user gave it, and `of_loss`, float64 (n,), as the loss wants it. `offset`, float64
    (n, n_values), is added to the raw predictions that the model begins with.
    """

    X: Any
    rows: np.ndarray
    y: np.ndarray
    of_loss: np.ndarray
    weight: np.ndarray | None
    offset: np.ndarray | None = None


def scored(
    estimator: BaseBoosting,
    predictor: BoostedPredictor,
    held: Held,
    scoring: Any,
    parameter: str = "scoring",
) -> Callable[[np.ndarray, list[Tree]], float]:
    """How a model is scored: by its loss, a scorer of scikit-learn, or a function of the user.

    `estimator` has attributes of the fit, but for its trees. `scoring` was given as `parameter`.
    ValueError: it is not defined for the classes. TypeError: it is a function of something else.
    """
    if isinstance(scoring, str) and scoring == "loss":
        return ByLoss(predictor.loss, held.of_loss, held.weight)
    from sklearn.metrics import check_scoring, get_scorer

    if scoring is None:  # as `score` of the estimator
        scoring = "accuracy" if is_classifier(estimator) else "r2"
    refuse_other_scorers(scoring)
    scorer = check_scoring(estimator, scoring)
    if isinstance(predictor.classes, list):  # of several outputs
        _refuse_outputs(scorer, scoring, predictor.classes, parameter)
    else:
        refuse_unfit(scoring, predictor.classes, parameter)
        scorer = with_labels(scorer, predictor.classes)
    is_of_numbers = getattr(scorer, "_response_method", "predict") == "predict"
    if predictor.classes is None and not is_of_numbers:
        raise ValueError(f"The scorer {scoring!r} is of classes, and the model predicts numbers.")
    if type(scorer).__module__ == get_scorer.__module__:
        return ByPredictions(estimator, predictor, scorer, (held.rows, held.y, held.weight))
    _check_call(scorer, parameter)
    if held.offset is not None:
        raise ValueError(
            "A function that is given as scoring or eval_metric predicts by the model, which knows "
            "no init_score of the rows. Name a scorer of scikit-learn, or say 'loss'."
        )
    is_whole = not is_lazy(held.X) and len(held.rows) == _num_samples(held.X)
    X = held.X if is_whole else _safe_indexing(held.X, held.rows)
    return ByModel(estimator, scorer, X, held.y)


def _refuse_outputs(scorer: Any, scoring: Any, classes: list[np.ndarray], parameter: str) -> None:
    """Refuse (ValueError) scikit-learn's scores of classes that do not know such targets."""
    known = {label for of_output in classes for label in of_output.tolist()}
    are_indicators = len(known) < 3 and all(labels.dtype.kind in "biuf" for labels in classes)
    function = getattr(scorer, "_score_func", None)
    is_known = are_indicators and getattr(function, "__name__", "") not in OF_SHARES
    if not is_known and getattr(function, "__module__", None) in OF_CLASSES:
        raise ValueError(
            f"{parameter}={scoring!r} does not take these targets: scikit-learn's scores take "
            "several targets where all labels are 0 and 1, and its losses of shares take one "
            f'target. Give {parameter}="loss", or a function of a model, X and y.'
        )


def _check_call(scorer: Callable[..., Any], parameter: str) -> None:
    """Refuse (TypeError) a function that is not of a model, `X` and `y`."""
    try:
        signature(scorer).bind(None, None, None)
    except ValueError:
        return  # nobody knows what it takes
    except TypeError as error:
        raise TypeError(
            f"A function that is given as {parameter} takes a model, X and y, and {scorer!r} does "
            f"not. {OF_PREDICTIONS}"
        ) from error


@dataclass(frozen=True, eq=False)
class ByLoss:
    """Scores by the loss; may be sent elsewhere."""

    loss: AnyLoss
    y: np.ndarray
    weight: np.ndarray | None
    members: Members | None = None  # that have other rows

    def __call__(self, raw: np.ndarray, trees: list[Tree]) -> float:
        """Minus the mean loss."""
        return -self.loss.mean(self.y, raw, self.weight, self.members)

    def of_stages(self, raw: np.ndarray) -> np.ndarray:
        """The same of several iterations, float64 (n,); raw : (n, n_values, n_rows)."""
        return -self.loss.means(self.y, raw, self.weight)


@dataclass(frozen=True, eq=False)
class ByUndrawn(ByLoss):
    """The loss of the rows that an iteration has not drawn: others each time.

    Which ones these are follows from the number of the iteration, so `draws` draws them once more.
    Before the first iteration they are those of the first one.
    """

    growing: Growing | None = None
    draws: RowDraws | None = None

    @classmethod
    def of(
        cls, rows: BoostedRows, growing: Growing, loss: AnyLoss, members: Members | None = None
    ) -> ByUndrawn:
        """Of the rows of a fit; `members` have others."""
        own = np.arange(rows.n_rows) if rows.chosen is None else rows.chosen
        numbers = (own if rows.numbers is None else rows.numbers[own]).astype(np.uint64)
        weight = None if rows.weight is None else rows.weight[own] * rows.weight_unit
        draws = RowDraws(len(own), None, numbers)
        return cls(loss, rows.y[..., own], weight, members, growing, draws)

    def __call__(self, raw: np.ndarray, trees: list[Tree]) -> float:
        """Minus the mean loss; nan where all rows are drawn."""
        assert self.growing is not None
        assert self.draws is not None
        growing, number = self.growing, len(trees) // self.growing.n_trees - 1
        number = max(0, growing.first + number)
        self.draws.draw(growing.seed, number, growing.subsample, self.members)
        rows = self.draws.others
        n_rows = np.array([len(rows)])
        if self.members is not None:
            self.members.sum(n_rows)
        if n_rows[0] == 0:
            return math.nan
        weight = None if self.weight is None else self.weight[rows]
        return -self.loss.mean(self.y[..., rows], raw[rows], weight, self.members)


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
        found = self.scorer(model, self.X, self.y)
        try:
            return float(found)
        except TypeError as error:
            raise TypeError(
                f"{self.scorer!r} scores a model by {found!r}, which is no number. {OF_PREDICTIONS}"
            ) from error


def _has_classes(stage: Stage) -> bool:
    return is_classifier(stage.estimator)


def _has_odds(stage: Stage) -> bool:
    return _has_classes(stage) and not isinstance(stage.predictor.classes, list)


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
        return self.predictor.of_raw("predict_proba", self.raw)

    @available_if(_has_odds)
    def decision_function(self, X: Any) -> np.ndarray:
        """Raw predictions."""
        return self.predictor.scores_of(self.raw)


class Iterations:
    """Hears of the trees of each iteration: callbacks, and a watch that may end the fit.

    `trees` are there already, and so are `earlier` ones of this fit, of which nobody has heard.
    `coded` are the codes of the rows, if these are here. `saved` gets trees that are new.
    """

    def __init__(
        self,
        model: BaseBoosting,
        start: Start,
        trees: list[Tree],
        callbacks: Sequence[Callback],
        coded: CodedMatrix | None,
        earlier: Sequence[Tree] = (),
        saved: SavedTrees | None = None,
    ) -> None:
        self.callbacks, self.watch = callbacks, start.watch
        self.rows, self.growing = start.rows, start.growing
        self._walked = None if coded is None else CodedRows(coded)
        self._grown: list[list[Tree]] = []  # elsewhere: the rows here have not walked down them
        self.n_heard, self.saved = len(trees), saved
        first, n_values = self.growing.first, self.growing.n_trees
        n_earlier = min(len(earlier) // n_values, self.growing.n_iterations)
        self.earlier = list(earlier[: n_earlier * n_values])
        self.fit = BoostingFit(
            model,
            range(first + n_earlier, first + self.growing.n_iterations),
            [*trees, *self.earlier],
            n_values,
            [] if self.watch is None else self.watch.scores,
            measure=self._training_score,
            curves=dict if self.watch is None else self.watch.curves,
        )
        self._raw = self.rows.raw
        self.is_over = False

    def _so_far(self) -> np.ndarray:
        """Raw predictions after the last iteration, float64 (n_values, n_rows)."""
        raw, grown = self._raw, self._grown
        if raw is None:
            raw = np.repeat(self.growing.initial[:, None], self.rows.n_rows, axis=1)
        if grown and self._walked is not None:
            raw, everywhere = raw.copy(), np.arange(self.rows.n_rows)
            for trees in grown:
                raw += self._walked.means(trees, everywhere)
        self._raw, self._grown = raw, []
        return raw

    def _training_score(self) -> float:
        if self._walked is None:
            raise ValueError(
                "The training rows are on their workers. Give them as eval_set=[(X, y)], too: then "
                "evals_result() has their scores."
            )
        rows, raw = self.rows, self._so_far()
        own = slice(None) if rows.chosen is None else rows.chosen
        weight = None if rows.weight is None else rows.weight[own] * rows.weight_unit
        return -self.growing.loss.mean(rows.y[..., own], raw[:, own].T, weight)

    def __call__(self, trees: list[Tree], raw: np.ndarray | None) -> bool:
        """Take the trees of an iteration; whether it is the last one.

        raw : as for `Watch`; None: they have grown elsewhere
        """
        self.n_heard += len(trees)
        is_new = self.n_heard > len(self.fit.trees)
        if is_new:
            self.fit.trees += trees
        if is_new and self.saved is not None:
            self.saved.add(0, trees)
        if raw is None:
            self._grown.append(trees)
        else:
            self._raw = raw
        number = self.n_heard // self.fit.n_values - 1
        is_last = self.watch is not None and self.watch(trees, raw)
        hear = self.callbacks if is_new else ()
        stops = told([callback.on_iteration_end(self.fit, number) for callback in hear])
        self.is_over = is_last or stops
        if self.is_over and not is_new:
            del self.fit.trees[self.n_heard :]
            self.fit.numbers = self.fit.numbers[:0]
        return self.is_over

    def replay(self, trees: Sequence[Tree]) -> None:
        """Hear of trees that have grown elsewhere, up to the last one that is wanted."""
        for own in self._iterations(trees):
            if self.is_over or self(own, None):
                return

    def begin(self, start: Start) -> Start:
        """Hear of the earlier trees, down which the rows walk by their codes; growth goes on."""
        for own in self._iterations(self.earlier):
            self._grown.append(own)
            if self(own, self._so_far()):
                break
        numbers = self.fit.numbers
        growing = replace(self.growing, n_iterations=len(numbers), first=numbers.start)
        return replace(start, rows=replace(self.rows, raw=self._so_far()), growing=growing)

    def _iterations(self, trees: Sequence[Tree]) -> Iterator[list[Tree]]:
        n_values = self.fit.n_values
        return (list(trees[at : at + n_values]) for at in range(0, len(trees), n_values))


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


def check_same_start(model: BaseBoosting, has_init: bool, has_offset: bool) -> None:
    """Refuse (ValueError) to go on where rows began otherwise: with a model, or raw predictions."""
    began = "init_" in model.__dict__, getattr(model, "_has_offset", False)
    if began != (has_init, has_init or has_offset):
        raise ValueError(
            "warm_start=True keeps the trees that are there, so give init_score, or init, if the "
            "first fit had it, and only then. Set warm_start=False to begin anew."
        )


def kept_predictions(
    model: BaseBoosting,
    book: CodeBook,
    target: Target,
    table: Any,
    offset: np.ndarray | None,
    run: Runner,
) -> tuple[np.ndarray, np.ndarray]:
    """Raw predictions before the first tree, (n_values,), and by all that are there, by value.

    `book`, `table` and `offset` are those of this fit. ValueError: the trees know columns, classes
    or the loss by another number or meaning. TypeError: the table is not in memory.
    """
    n_outputs = target.n_outputs
    check_same_labels(model, book, {**model._learned_of(book, target), "n_outputs_": n_outputs})
    if losses_by_output(model._fit_loss, 1)[0][0] != model._loss():
        raise ValueError(
            "warm_start=True keeps the trees that are there, so the loss must be that of the first "
            "fit. Set warm_start=False to begin anew."
        )
    if not isinstance(table, Table):
        raise TypeError(
            "warm_start=True walks the rows of X down the trees that are there, and X is a Dask "
            "collection. Give X.compute(), or set warm_start=False."
        )
    raw = raw_predictions(model.forest_, model._initial, book, table, run, offset)
    return model._initial, np.ascontiguousarray(raw.T)


def going_on(model: BaseBoosting, start: Start, table: Any, run: Runner) -> Start:
    """The start of a fit that goes on: iterations that are there are scored, others are grown.

    No iteration is grown where one of those that are there was the last. ValueError: the trees that
    are there are of one value, and others would be of all, or the reverse.
    """
    n_there, growing, watch = model.n_iter_, start.growing, start.watch
    if growing.n_trees != model.n_trees_per_iteration_:
        raise ValueError(
            "warm_start=True keeps the trees that are there, so multi_strategy must be that of the "
            "first fit. Set warm_start=False to begin anew."
        )
    n_values, is_over = growing.n_trees, False
    if watch is not None:
        book, trees = start.learned["codebook_"], model.forest_.trees
        stages: Iterator[np.ndarray | None] = repeat(None)
        if any(each.is_of_fit for each in watch.sets):
            about = growing.initial, book, table, run, start.offset
            stages = staged_raw_predictions(model.forest_, *about)
        for number, whole in zip(range(n_there), stages, strict=False):
            own = list(trees[number * n_values : (number + 1) * n_values])
            raws = [
                each.after(own, whole)
                if whole is None or not each.is_of_fit
                else np.ascontiguousarray(whole[each.rows])
                for each in watch.sets
            ]
            is_over |= watch.see(own, raws)
        for each in watch.sets:
            if each.undrawn is not None:  # what was drawn then is known from the scores only
                each.scores["loss"][: n_there + 1] = model._undrawn_scores(n_there)
    growing = replace(
        growing,
        n_iterations=0 if is_over else model.max_iter - n_there,
        first=n_there,
    )
    return replace(start, growing=growing)
