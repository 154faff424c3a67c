"""What is asked of folds on the command line, all of it from one growth.

::

    grow_splits ──▶ as large as asked ──▶ path of pruning, choice of a size
                         │                          │
                         └────── models of the size that is taken: folds, final model

Scores are those of `dtrees.model_selection.cross_validate` of the estimator of that size, bit for
bit.

Beside them stands what a guess scores on the same folds: the largest class, the mean, or a
quantile. A score says little alone. Accuracy 0.76 is poor where one class has 0.76 of the rows, and
R² below 0 is worse than the mean of the training rows. The guess is scikit-learn's:
`DummyClassifier` answers the largest class and the shares of all classes, `DummyRegressor` the mean
or a quantile.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import cross_validate

from dtrees.callbacks import Bar
from dtrees.estimators.scorers import with_labels
from dtrees.io.problem import Task
from dtrees.model_selection.cost_complexity import CostComplexity, path_of
from dtrees.model_selection.fitted_splits import grow_splits, undefined
from dtrees.model_selection.folds import FoldResult, Split, fold_results
from dtrees.model_selection.prepare import Arguments, prepare_shared
from dtrees.model_selection.tuned_size import Rule, TunedSize, tune, tuned_scores

MOST_ROWS = 10_000_000  # for which a guess is scored


def baseline_scores(
    y: np.ndarray,
    task: Task,
    splits: Sequence[Split],
    scoring: Mapping[str, Any] | None = None,
    quantile: float | None = None,
) -> dict[str, float]:
    """Mean scores over the folds of a guess that does not look at X, by the names of the scorers.

    `splits` are pairs of row numbers. Without `scoring` the name is "score": accuracy or R². Of
    numbers the guess is the mean of the training rows, or their `quantile`. For more than
    `MOST_ROWS` rows nothing is found; a score that cannot be had is left out. O(n_rows) for each
    fold and score. ValueError: a score is nan, as a test side lacks a class.
    """
    if len(y) > MOST_ROWS:
        return {}
    guess: Any = DummyClassifier(strategy="prior")
    classes = np.unique(y) if task == "classification" else None
    if task == "regression":
        strategy = "mean" if quantile is None else "quantile"
        guess = DummyRegressor(strategy=strategy, quantile=quantile)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scores of a class that is never predicted
        found = cross_validate(
            guess,
            np.zeros((len(y), 1)),
            y,
            cv=splits,
            scoring=with_labels(scoring, classes) if scoring else None,
            error_score=np.nan,
        )
    if classes is not None:
        scores = {name: found[f"test_{name}"] for name in scoring or ["score"]}
        said = undefined(scores, splits, y, folds=True)
        if said is not None:
            raise ValueError(said)
    means = {name: float(np.mean(found[f"test_{name}"])) for name in scoring or ["score"]}
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}


@dataclass(frozen=True, eq=False)
class ValidatedFolds:
    """What was found out."""

    folds: list[FoldResult]  # with the first score
    scores: dict[str, np.ndarray]  # (n_splits,) by name; "score": the estimator's own
    models: list[Any]  # of the folds
    final_estimator: Any  # of all rows
    tuned: TunedSize | None = None  # if the size was to be chosen
    path: CostComplexity | None = None  # if it was asked for, or a tree's size was chosen
    tuned_scores: np.ndarray | None = None  # of choices without the rows that score them
    importances: np.ndarray | None = None  # of columns by held-out rows, (n_splits, n_columns)


@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked of folds."""

    rule: Rule | None = None  # by which the size is chosen; None: it is not
    with_path: bool = False  # of cost-complexity; ``ccp_alpha`` is not looked at
    scoring: Mapping[str, Any] = field(default_factory=dict)  # the first chooses the size
    folds_of: Callable[[np.ndarray], Sequence[Split]] | None = None


def validate_folds(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    splits: Sequence[Split],
    asked: Questions = Questions(),
    *,
    bar: Bar | None = None,
) -> ValidatedFolds:
    """Score the models of folds and fit the one of all rows, of a size that they may choose.

    `splits` are two at least. Raises as `tuned_size`. Costs one growth, and with `folds_of` one
    more for each split, from one coded table.
    """
    arguments = Arguments("validate_folds", estimator, splits)
    single = asked.with_path and asked.rule is None
    boosted = False if asked.with_path else None
    work = prepare_shared(arguments, X, y, single=single, boosted=boosted, bar=bar)
    tuned = path = of_others = None
    scoring = dict(asked.scoring) or {"score": None}
    first = next(iter(scoring.values()))
    if asked.rule is not None:
        tuned, grown = tune(estimator, work, asked.rule, scoring=first)
        path = tuned.path
        if asked.folds_of is not None:
            of_others = tuned_scores(estimator, work, asked.folds_of, asked.rule, scoring=first)
    elif asked.with_path:
        whole = clone(estimator).set_params(ccp_alpha=0.0)
        grown = grow_splits(whole, work)
        path = path_of(whole, grown)
        grown = grown.within(estimator)
    else:
        grown = grow_splits(estimator, work)
    of_whole = grown.scores_of_cells(grown.whole(), scoring)
    scores = {name: of_splits for name, (of_splits,) in of_whole.items()}
    told = next(iter(scores.values()))
    folds = fold_results(work.splits, told, grown.models)
    return ValidatedFolds(
        folds,
        scores,
        grown.models,
        grown.final_estimator,
        tuned,
        path,
        of_others,
        grown.held_out_importances(),
    )
