"""Scores of the models of cells: sums over leaves where they will do, or predictions.

Scores that are sums over leaves are there for all candidates at once. Any other scorer is asked by
scikit-learn's own search, once for each different model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import sklearn.model_selection
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import _safe_indexing

from dtrees.core.model.nested_trees import PruningGrid
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.model_selection.cells import Cells
from dtrees.model_selection.folds import Split, rows_of_side
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
    failed = [number for number in range(len(splits)) if cells.error(number) is not None]
    if by_name is None or failed or cells.fitted.has_many_trees:
        return None
    start = perf_counter()
    found: dict[tuple[str, str], np.ndarray] = {}
    for side in ("test", "train") if return_train_score else ("test",):
        scores = scores_of_splits(
            list(by_name.values()), cells.fitted, splits, cells.limits, side, sample_weight
        )
        if scores is None:
            return None
        found |= {(side, name): own for name, own in zip(by_name, scores, strict=True)}
    n_candidates = len(cells.growth.places)
    seconds = (perf_counter() - start) / (n_candidates * len(splits))
    is_single = not isinstance(scoring, Mapping | list | tuple | set)
    return ModelScores(found, np.full(n_candidates, seconds), is_single)


def scores_of_splits(
    scores: Sequence[LeafScore],
    fitted: FittedSets,
    splits: Sequence[Split],
    limits: Callable[[int], PruningGrid],
    side: str = "test",
    sample_weight: Any = None,
) -> np.ndarray | None:
    """Scores of one side of all splits, for all nested trees.

    Set i of `fitted` is the training side of split i; `limits` has as many limits for each set.
    Returns float64 (n_scores, n_limits, n_splits); None: scikit-learn should be asked.
    """
    row_numbers = np.arange(len(fitted.y))
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    rows_of = {
        number: row_numbers[rows_of_side(splits, number, side)] for number in range(len(splits))
    }

    def of_split(number: int) -> np.ndarray | None:
        rows = rows_of[number]
        own = None if weight is None else exact_in_sums(weight[rows])
        if len(rows) == 0 or (own is not None and (own <= 0).any()):  # not defined, some of them
            return None
        held_out = held_out_of(fitted, number, rows, own, keeps=side == "test")
        return leaf_scores(scores, held_out, limits(number))

    fitted.bring_leaves(rows_of, keeps=side == "test")
    is_much = len(row_numbers) * len(limits(0)) >= MANY_SUMS
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
