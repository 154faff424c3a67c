"""The models of all splits, grown together once as far as anybody asks, and smaller ones in them.

::

    table, splits ──fit_splits──▶ FittedSplits: a model for each training side, and one of all rows
                                      │
                                      ├──whole─────────────▶ Cells of the models as they are
                                      ├──within(estimator)─▶ FittedSplits of narrower limits
                                      └──cells(candidates)─▶ Cells ──scores──▶ candidates x splits

Several sizes of a model (a surface, a path of pruning, a choice of a size) are taken from one of
these. Nothing is grown twice.

Scores that are sums over leaves are there for all candidates at once. Any other scorer is asked by
scikit-learn's own search, once for each different model. Scores that are not defined are told with
their reason: a test side lacks a class, or no label is the positive one.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import sklearn.model_selection
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning, UndefinedMetricWarning
from sklearn.metrics import check_scoring, get_scorer

from dtrees._warnings import warn
from dtrees.coding.labels import is_missing
from dtrees.coding.outputs import columns_of_outputs
from dtrees.core.model.nested_trees import PruningGrid
from dtrees.core.model.pruning import WHOLE
from dtrees.estimators.boosting import BaseBoosting
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import FittedSets, trees_of
from dtrees.estimators.scorers import refuse_unfit, with_positive_class
from dtrees.estimators.training_sets import TrainingTable, fit_table
from dtrees.inspection.importance import normalized, unseen_importances
from dtrees.model_selection.candidates import BoostedCells, Cells, Growth, cells_of
from dtrees.model_selection.folds import TEST, TRAIN, Split, sets_of
from dtrees.model_selection.leaf_scores import (
    LeafScore,
    exact_in_sums,
    held_out_of,
    leaf_scores,
    leaf_scores_of,
)
from dtrees.model_selection.prefitted_proxy import (
    PrefittedProxy,
    RowNumbers,
    asks_for_predictions,
    scoring_of_proxies,
)
from dtrees.model_selection.prepare import SplitTable
from dtrees.model_selection.sides import here, of_sides
from dtrees.parallel import LazyColumn, threaded
from dtrees.typing import serial

logger = logging.getLogger(__name__)

AS_THEY_ARE = PruningGrid.of([WHOLE])  # no tree ends earlier than it has grown
MANY_SUMS = 2**18  # rows times nested trees, below which threads wait for the interpreter


@dataclass(frozen=True)
class ModelScores:
    """Scores of candidates."""

    scores: dict[tuple[str, str], np.ndarray]  # float64 (n_candidates, n_splits) by side and scorer
    seconds: np.ndarray  # float64 (n_candidates,): to score a model, on average
    is_single: bool  # there is one scorer, without a name: "score"


def scores_by_leaves(
    cells: Cells,
    splits: Sequence[Split],
    scoring: Any,
    return_train_score: bool = False,
    sample_weight: Any = None,
) -> ModelScores | None:
    """Scores of cells that are sums over leaves, by side ("test", "train") and scorer.

    `sample_weight` is what rows count in the scores. None: a fit has failed, models are made of
    several trees, or scikit-learn should be asked.
    """
    target = cells.fitted.target
    of_classes = target.kind == "classification"
    by_name = leaf_scores_of(scoring, of_classes=of_classes, n_outputs=target.n_outputs)
    models = cells.fitted.models[: len(splits)]
    if by_name is None or isinstance(cells, BoostedCells):
        return None
    if any(isinstance(model, Exception) or len(trees_of(model)) > 1 for model in models):
        return None
    start = perf_counter()
    found: dict[tuple[str, str], np.ndarray] = {}
    for side in ("test", "train") if return_train_score else ("test",):
        scores = scores_of_splits(list(by_name.values()), cells, splits, side, sample_weight)
        if scores is None:
            return None
        found |= {(side, name): own for name, own in zip(by_name, scores, strict=True)}
    n_candidates = len(cells.growth.places)
    seconds = (perf_counter() - start) / (n_candidates * len(splits))
    is_single = not isinstance(scoring, Mapping | list | tuple | set)
    return ModelScores(found, np.full(n_candidates, seconds), is_single)


def scores_of_splits(
    scores: Sequence[LeafScore],
    cells: Cells,
    splits: Sequence[Split],
    side: str = "test",
    sample_weight: Any = None,
) -> np.ndarray | None:
    """Scores of one side of all splits, for all candidates.

    Returns float64 (n_scores, n_candidates, n_splits); None: scikit-learn should be asked.
    """
    fitted, place = cells.fitted, ("train", "test").index(side)
    is_much = len(fitted.y) * len(cells.growth.places) >= MANY_SUMS
    run = threaded(fitted.models[0].n_jobs) if is_much else serial
    function = partial(_leaf_scores_of_side, scores, side == "test")
    sides = [(number, place, function) for number in range(len(splits))]
    with warnings.catch_warnings():  # of a matrix there are few rows for each class
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        of_splits = list(of_sides(cells, splits, sides, [sample_weight], run=run))
    known = [found for found in of_splits if found is not None]
    return np.stack(known, axis=2) if len(known) == len(splits) else None


def _leaf_scores_of_side(
    scores: Sequence[LeafScore],
    keeps: bool,
    cells: Cells,
    number: int,
    rows: np.ndarray,
    sample_weight: Any,
) -> np.ndarray | None:
    """Scores of a side of a split, float64 (n_scores, n_candidates); `keeps` as `held_out_of`."""
    own = None
    if sample_weight is not None:
        own = exact_in_sums(np.asarray(sample_weight, dtype=np.float64))
    if len(rows) == 0 or (own is not None and (own <= 0).any()):  # not defined, some of them
        return None
    held_out = held_out_of(cells.fitted, number, rows, own, keeps)
    return leaf_scores(scores, held_out, cells.limits(number))


def scores_by_predictions(
    cells: Cells,
    X: Any,
    y: Any,
    splits: Sequence[Split],
    scoring: Any = None,
    return_train_score: bool = False,
) -> ModelScores | None:
    """What scorers say of predictions, as scikit-learn's loop does, one split after the other.

    Models that are the same trees are scored once. No training side is made for its rows' numbers.
    None: a scorer looks at more than predictions, or a fit or a score fails, and scikit-learn's
    loop says what that is worth.
    """
    if not asks_for_predictions(scoring):
        return None
    n_splits, asked = len(splits), scoring_of_proxies(scoring, X, cells.classes)
    distinct, place = _distinct(cells, n_splits, scoring)
    found: dict[tuple[str, str], np.ndarray] = {}
    start, is_single = perf_counter(), True
    sides = [
        (number, side, partial(_scores_of_side, asked, dict.fromkeys(distinct[:, number].tolist())))
        for number in range(n_splits)
        for side in ((TEST, TRAIN) if return_train_score else (TEST,))
    ]
    try:
        if cells.fitted.coded_rows.is_here:
            cells.bring(list(RowNumbers(len(y), splits).sides(return_train_score)))
        said = of_sides(cells, splits, sides, [y], with_targets=False)
        for (number, side, _), of_candidates in zip(sides, said, strict=True):
            for candidate, scores in of_candidates.items():
                is_single = not isinstance(scores, dict)
                same = distinct[:, number] == candidate
                for name, score in ({"score": scores} if is_single else scores).items():
                    key = ("test" if side == TEST else "train"), name
                    found.setdefault(key, np.empty(distinct.shape))[same, number] = score
    except Exception:
        return None
    scores = {key: own[place, np.arange(n_splits)] for key, own in found.items()}
    seconds = (perf_counter() - start) / place.size
    return ModelScores(scores, np.full(len(place), seconds), is_single)


def _scores_of_side(
    scoring: Any, candidates: Iterable[int], cells: Cells, number: int, rows: np.ndarray, y: Any
) -> dict[int, Any]:
    """What scorers say of a side of a split, of the models of some candidates."""
    found, nothing = {}, RowNumbers(0, ())  # a proxy is told which model it is
    for candidate in candidates:
        proxy = PrefittedProxy(cells, nothing, cells.growth.estimator, candidate)
        found[candidate] = check_scoring(proxy, scoring)(proxy.of_split(number), rows[:, None], y)
    return found


def _distinct(cells: Cells, n_splits: int, scoring: Any) -> tuple[np.ndarray, np.ndarray]:
    """Candidates whose models are scored, and which of them stands for a candidate.

    int64 (n_distinct, n_splits), the last one again in splits that have fewer; and int64
    (n_candidates, n_splits).
    """
    n_candidates = len(cells.growth.places)
    every = np.arange(n_candidates)
    found = [(every, every)] * n_splits
    if asks_for_predictions(scoring):  # others may look at parameters, too
        found = [
            (every[:1], 0 * every) if cells.error(number) is not None else cells.distinct(number)
            for number in range(n_splits)
        ]
    most = max(len(first) for first, _ in found)
    candidates = [np.pad(first, (0, most - len(first)), mode="edge") for first, _ in found]
    return np.column_stack(candidates), np.column_stack([place for _, place in found])


def score_models(
    cells: Cells,
    X: Any,
    y: Any,
    splits: Sequence[Split],
    scoring: Any,
    error_score: Any,
    return_train_score: bool = False,
    sample_weight: Any = None,
) -> ModelScores:
    """Score the models of cells by their predictions, at last in scikit-learn's own search.

    Models that are the same trees are scored once, unless a scorer is no one of scikit-learn's.
    `sample_weight` is for scorers that take it, if scikit-learn's search hands it to them.
    """
    if sample_weight is None:
        scored = scores_by_predictions(cells, X, y, splits, scoring, return_train_score)
        if scored is not None:
            return scored
    numbers = RowNumbers(len(y), splits)
    cells.bring(list(numbers.sides(return_train_score)))
    distinct, place = _distinct(cells, len(splits), scoring)
    search = sklearn.model_selection.GridSearchCV(
        PrefittedProxy(cells, numbers, cells.growth.estimator, distinct=distinct),
        {"candidate": list(range(len(distinct)))},
        scoring=scoring_of_proxies(scoring, X, cells.classes),
        cv=splits,
        refit=False,
        error_score=error_score,
        return_train_score=return_train_score,
    )
    weight = {} if sample_weight is None else {"sample_weight": here(sample_weight)}
    with warnings.catch_warnings():  # whoever asks says more
        warnings.filterwarnings("ignore", "One or more of the .* scores are non-finite")
        warnings.filterwarnings("ignore", category=FitFailedWarning)
        search.fit(numbers.table, here(y), **weight)
    results = search.cv_results_
    scores = {}
    for key in results:
        if key.startswith("split0_"):
            side, name = key.removeprefix("split0_").split("_", 1)
            columns = [results[f"split{i}_{side}_{name}"][place[:, i]] for i in range(len(splits))]
            scores[side, name] = np.column_stack(columns)
    seconds = results["mean_score_time"][place].mean(axis=1)
    return ModelScores(scores, seconds, not search.multimetric_)


SHOWN = 5  # splits or classes of a message


def undefined(
    scores: Mapping[str, np.ndarray], splits: Sequence[Split], y: Any, *, folds: bool = False
) -> str | None:
    """Which scores are nan as test sides lack classes, and which side lacks which class.

    `scores`, float64 (..., n_splits), are those of test sides by the names of their scorers. Splits
    are counted from 0, as in ``cv_results_``, and `folds` from 1. A scorer that is nan of a side
    with all classes fails for another reason, and is not named.
    """
    failed = {
        name: np.isnan(found).reshape(-1, len(splits)).any(axis=0)
        for name, found in scores.items()
        if found.dtype.kind == "f" and np.isnan(found).any()
    }
    if not failed:
        return None
    labels, classes = np.asarray(y).ravel(), _classes_of(y)
    lacking, complete = {}, np.zeros(len(splits), dtype=bool)
    for number in np.flatnonzero(np.any(list(failed.values()), axis=0)).tolist():
        present = set(labels[splits[number][1]].tolist())
        absent = [label for label in classes if label not in present]
        if present and absent:
            side = f"fold {number + 1}" if folds else f"split {number}"
            lacking[number] = f"{side} has no row of {_listed(absent)}"
        elif present:
            complete[number] = True
    failed = {name: sides for name, sides in failed.items() if not sides[complete].any()}
    said = [words for number, words in lacking.items() if any(s[number] for s in failed.values())]
    if not said:
        return None
    of = "" if list(failed) == ["score"] else f" of {', '.join(failed)}"
    return (
        f"Scores{of} are nan where test sides lack classes: {_listed(said, '; ')}. Take fewer "
        "or stratified folds, a score such as neg_log_loss, or join rare classes."
    )


def _classes_of(y: Any) -> list[Any]:
    """Labels, in the order in which they come."""
    labels = dict.fromkeys(np.asarray(y).ravel().tolist())
    return [label for label in labels if not is_missing(label)]


def _listed(values: Sequence[Any], between: str = ", ") -> str:
    more = f"{between}and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return between.join(map(str, values[:SHOWN])) + more


def without_positive_class(scores: Mapping[str, np.ndarray], scoring: Any, y: Any) -> str | None:
    """Which scores are nan as no label is their positive class, and what says which one is.

    Scorers of scikit-learn, of two classes; `scoring` is as for `cross_validate`.
    """
    failed = [name for name, own in scores.items() if own.dtype.kind == "f" and np.isnan(own).all()]
    classes = _classes_of(y) if failed else []
    if len(classes) != 2:
        return None
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    said = {}
    for name in failed:
        scorer = scoring.get(name) if isinstance(scoring, Mapping) else scoring
        if scorer is not None and asks_for_predictions(scorer):
            found = with_positive_class(get_scorer(scorer), np.unique(classes))
            if found is not None:
                said[name] = found
    if not said:
        return None
    reason = next(iter(said.values()))[0]
    if list(said) == ["score"]:
        return (
            f"Scores are nan of all splits: {reason}. Say which one is: scoring={said['score'][1]}."
        )
    calls = ", ".join(f"{name!r}: {call}" for name, (_, call) in said.items())
    return (
        f"Scores of {', '.join(said)} are nan of all splits: {reason}. Say which one is: {calls}."
    )


def refuse_unfit_scorer(scoring: Any, estimator: Any, work: SplitTable) -> None:
    """Refuse (ValueError), before anything grows, one scorer that is not defined for the classes.

    Where scikit-learn's functions go on, and every score is nan.
    """
    if scoring is None or not is_classifier(estimator) or columns_of_outputs(work.table.y):
        return
    if isinstance(work.table.y, LazyColumn):
        classes = work.table.rows_elsewhere(FitPlan.of(estimator)).target.classes
    else:
        classes = np.unique(_classes_of(work.table.y))
    refuse_unfit(scoring, classes)


def warn_of_undefined(
    scores: Mapping[str, np.ndarray], splits: Sequence[Split], y: Any, scoring: Any
) -> None:
    """Warn (UndefinedMetricWarning) of what `undefined` and `without_positive_class` find."""
    are_defined = not any(own.dtype.kind == "f" and np.isnan(own).any() for own in scores.values())
    if are_defined or columns_of_outputs(y) is not None:
        return
    for found in (undefined(scores, splits, y), without_positive_class(scores, scoring, y)):
        if found is not None:
            warn(found, UndefinedMetricWarning)


class SplitScores:
    """Scores whose last axis are the splits; not meant to be used itself.

    A pickle leaves behind what has grown for the splits (`_grown`).
    """

    scores: np.ndarray

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_grown": None}

    @property
    def mean(self) -> np.ndarray:
        """Mean over the splits, float64 array of the shape of `scores` without its last axis."""
        found: np.ndarray = self.scores.mean(axis=-1)
        return found

    @property
    def standard_error(self) -> np.ndarray:
        """Its standard error, ``s / sqrt(n_splits)``; nan for one split. The same shape."""
        n_splits = self.scores.shape[-1]
        if n_splits < 2:
            return np.full(self.scores.shape[:-1], np.nan)
        found: np.ndarray = self.scores.std(axis=-1, ddof=1) / math.sqrt(n_splits)
        return found

    def _allowed(self, best: int | tuple[int, ...]) -> float:
        """A standard error below one of the means; one split has no error."""
        return float(self.mean[best] - np.nan_to_num(self.standard_error[best]))


@dataclass(frozen=True, eq=False)
class FittedSplits:
    """The models of the training sides of splits, and of all rows."""

    estimator: Any  # that has grown; itself not fitted
    table: TrainingTable
    splits: Sequence[Split]  # row numbers of the table
    fitted: FittedSets  # a model for each split, and mostly one more; or the error of its fit

    @property
    def models(self) -> list[Any]:
        """Fitted estimators of the splits."""
        return self.fitted.models[: len(self.splits)]

    @property
    def final_estimator(self) -> Any:
        """The one of all rows."""
        return self.fitted.models[-1]

    def cells(
        self, given: Any, candidates: Sequence[Mapping[str, Any]], limits: PruningGrid | None = None
    ) -> Cells:
        """Smaller models, to be scored or cut out.

        `given` has what they have in common, and is not fitted. `candidates` say where a tree ends;
        so do `limits`, where they are known.
        """
        growth = Growth(given, self.estimator, range(len(candidates)), candidates, is_whole=False)
        return cells_of(growth, self.fitted, limits)

    def whole(self) -> Cells:
        """The models as they are: one candidate."""
        growth = Growth(self.estimator, self.estimator, range(1), [{}], is_whole=True)
        return cells_of(growth, self.fitted, AS_THEY_ARE)

    def within(self, estimator: Any) -> FittedSplits:
        """The models of an estimator of narrower limits, whose trees stand inside of these."""
        cells = self.cells(estimator, [{}])
        models = [cells.model(0, number) for number in range(len(self.fitted.models))]
        return FittedSplits(estimator, self.table, self.splits, replace(self.fitted, models=models))

    def only_final(self, splits: Sequence[Split]) -> FittedSplits:
        """The model of all rows in place of each split's, to be scored on their test sides."""
        models = [self.final_estimator] * (len(splits) + 1)
        return FittedSplits(self.estimator, self.table, splits, replace(self.fitted, models=models))

    def held_out_importances(self) -> np.ndarray | None:
        """What the test side of each split tells of the columns, float64 (n_splits, n_columns).

        As :func:`dtrees.inspection.held_out_importances`. None: steps of boosted models add up.
        """
        if any(isinstance(model, BaseBoosting) for model in self.models):
            return None
        numbers, found = np.arange(len(self.fitted.y)), []
        for model, (_, test) in zip(self.models, self.splits, strict=True):
            rows, trees, walked = numbers[test], trees_of(model), self.fitted.coded_rows
            walked.bring([(trees, rows)])
            of_trees = [
                unseen_importances(tree, walked.leaves(tree, rows), self.fitted.y[rows])
                for tree in trees
            ]
            found.append(normalized(np.mean(of_trees, axis=0)))
        return np.array(found)

    def scores(self, scoring: Any = None) -> np.ndarray:
        """Scores of the test sides by one scorer, float64 (n_splits,); as `scores_of_cells`."""
        of_whole: np.ndarray = self.scores_of_cells(self.whole(), {"score": scoring})["score"][0]
        return of_whole

    def scores_of_cells(
        self, cells: Cells, scoring: Mapping[str, Any], error_score: Any = "raise"
    ) -> dict[str, np.ndarray]:
        """Scores of smaller models on the test sides, float64 (n_candidates, n_splits).

        Rows count once. By several scorers (None: the estimator's ``score``), each under its name,
        as sums over leaves where they will do; the held-out rows walk once. `error_score` is for a
        scorer that fails.
        """
        of_classes, n_outputs = cells.classes is not None, cells.fitted.target.n_outputs
        sums = {
            name: scorer
            for name, scorer in scoring.items()
            if leaf_scores_of(scorer, of_classes=of_classes, n_outputs=n_outputs) is not None
        }
        by_leaves = scores_by_leaves(cells, self.splits, sums) if sums else None
        found = {} if by_leaves is None else by_leaves.scores
        others = {name: scorer for name, scorer in scoring.items() if ("test", name) not in found}
        if others:
            n_sizes, n_splits = len(cells.growth.places), len(self.splits)
            if n_sizes > 1:
                logger.info(
                    "up to %d scores by predictions, which are no sums over leaves: %d sizes, %d "
                    "splits; fewer sizes take less time",
                    *(n_sizes * n_splits, n_sizes, n_splits),
                )
            X, y = self.table.X, self.table.y
            found = found | score_models(cells, X, y, self.splits, others, error_score).scores
        scores = {name: found["test", name] for name in scoring}
        if of_classes:
            warn_of_undefined(scores, self.splits, self.table.y, scoring)
        return scores


def fit_splits(estimator: Any, work: SplitTable) -> FittedSplits:
    """Grow the models of all splits, and of all rows, together; `estimator` is not fitted itself.

    Raises ClusterError where a Dask cluster is in force, or asked for, and cannot be used.
    ValueError: a parameter or the table is not what it should be. Errors of fits are kept.
    """
    table, splits = work.table, work.splits
    sets = sets_of(splits, table, work.rows, work.has_last)
    fitted = fit_table(estimator, table, sets, bar=work.bar)
    return FittedSplits(estimator, table, splits, fitted)


def grow_splits(estimator: Any, work: SplitTable) -> FittedSplits:
    """Grow as `fit_splits`, and raise the error of a fit that fails."""
    grown = fit_splits(estimator, work)
    for model in grown.fitted.models:
        if isinstance(model, Exception):
            raise model
    return grown
