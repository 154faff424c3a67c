"""Scores of the models of cells: sums over leaves where they will do, or predictions.

Scores that are sums over leaves are there for all candidates at once. Any other scorer is asked by
scikit-learn's own search, once for each different model. Scores that are not defined are told with
their reason: a test side lacks a class, or no label is the positive one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import sklearn.model_selection
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning, UndefinedMetricWarning
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing

from dtrees._warnings import warn
from dtrees.coding.labels import is_missing
from dtrees.estimators.scorers import refuse_unfit, with_positive_class
from dtrees.model_selection.cells import Cells
from dtrees.model_selection.folds import Split
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
from dtrees.parallel import threaded
from dtrees.typing import serial

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
    by_name = leaf_scores_of(scoring, of_classes=cells.classes is not None)
    has_failed = any(isinstance(model, Exception) for model in cells.fitted.models[: len(splits)])
    if by_name is None or has_failed or cells.fitted.has_many_trees:
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
    fitted = cells.fitted
    row_numbers = np.arange(len(fitted.y))
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    place = ("train", "test").index(side)
    rows_of = {number: row_numbers[split[place]] for number, split in enumerate(splits)}

    def of_split(number: int) -> np.ndarray | None:
        rows = rows_of[number]
        own = None if weight is None else exact_in_sums(weight[rows])
        if len(rows) == 0 or (own is not None and (own <= 0).any()):  # not defined, some of them
            return None
        held_out = held_out_of(fitted, number, rows, own, keeps=side == "test")
        return leaf_scores(scores, held_out, cells.limits(number))

    fitted.bring_leaves(rows_of, keeps=side == "test")
    is_much = len(row_numbers) * len(cells.growth.places) >= MANY_SUMS
    run = threaded(fitted.models[0].n_jobs) if is_much else serial
    with warnings.catch_warnings():  # of a matrix there are few rows for each class
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        of_splits = run([partial(of_split, number) for number in range(len(splits))])
    known = [found for found in of_splits if found is not None]
    return np.stack(known, axis=2) if len(known) == len(splits) else None


def scores_by_score(cells: Cells, y: Any, splits: Sequence[Split]) -> ModelScores | None:
    """What ``score`` of whole models says of the test sides.

    As scikit-learn's loop over the splits, which costs more than a walk of few rows. None: a fit
    or a score fails, and that loop says what it is worth.
    """
    start, numbers = perf_counter(), RowNumbers(len(y), splits)
    proxy = PrefittedProxy(cells, numbers, cells.growth.estimator)
    try:
        cells.bring(numbers, False)
        found = [
            proxy.of_split(number).score(rows[:, None], _safe_indexing(y, rows))
            for number, rows in numbers.sides()
        ]
    except Exception:
        return None
    seconds = (perf_counter() - start) / len(splits)
    return ModelScores({("test", "score"): np.array([found])}, np.array([seconds]), True)


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
    """Score the models of cells by their predictions, in scikit-learn's own search.

    Models that are the same trees are scored once, unless a scorer is no one of scikit-learn's.
    `sample_weight` is for scorers that take it, if scikit-learn's search hands it to them.
    """
    numbers = RowNumbers(len(y), splits)
    cells.bring(numbers, return_train_score)
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
    weight = {} if sample_weight is None else {"sample_weight": sample_weight}
    with warnings.catch_warnings():  # whoever asks says more
        warnings.filterwarnings("ignore", "One or more of the .* scores are non-finite")
        warnings.filterwarnings("ignore", category=FitFailedWarning)
        search.fit(numbers.table, y, **weight)
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
    if is_classifier(estimator):
        refuse_unfit(scoring, np.unique(_classes_of(work.table.y)))


def warn_of_undefined(
    scores: Mapping[str, np.ndarray], splits: Sequence[Split], y: Any, scoring: Any
) -> None:
    """Warn (UndefinedMetricWarning) of what `undefined` and `without_positive_class` find."""
    if not any(own.dtype.kind == "f" and np.isnan(own).any() for own in scores.values()):
        return
    for found in (undefined(scores, splits, y), without_positive_class(scores, scoring, y)):
        if found is not None:
            warn(found, UndefinedMetricWarning)
