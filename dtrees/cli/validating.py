"""How a request for a cross-validation is answered.

::

    Request ──folds──▶ validate_folds ──▶ scores, models, a size if one is to be chosen
       │                                        │
       └──▶ scores of a guess on the same folds ┴──▶ Run
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dtrees.cli.description import SCORE_NAME
from dtrees.cli.run import Request, Run

if TYPE_CHECKING:
    import numpy as np

    from dtrees.callbacks import Bar
    from dtrees.model_selection import NestedStandardError
    from dtrees.model_selection.folds import Split


def validated(request: Request, estimator: Any, bar: Bar | None = None) -> Run:
    """Score the models of the folds and fit the estimator on all rows; all of it grows together.

    `estimator` is fitted itself only where scores out of bags are asked for.
    """
    from sklearn.base import clone

    from dtrees.model_selection import HashKFold
    from dtrees.model_selection.folds import shuffled_folds
    from dtrees.model_selection.validated import Questions, baseline_scores, validate_folds

    X, y = request.problem.X, request.problem.y
    start = perf_counter()
    is_classes = request.problem.task == "classification"
    keyed = HashKFold(request.n_folds, stratify=is_classes, random_state=estimator.random_state)

    def folds_of(rows: np.ndarray | slice) -> Sequence[Split]:
        if request.has_hash_folds:
            return keyed.split(y[rows], y[rows])
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # check_folds notes it
            return shuffled_folds(
                y[rows], request.n_folds, estimator.random_state, stratified=is_classes
            )

    of_fold = clone(estimator)
    if hasattr(of_fold, "oob_score"):  # the folds have better: their held-out rows
        of_fold.set_params(oob_score=False)
    splits = folds_of(slice(None))
    task = request.problem.task  # a score that is not defined on a fold is told before they grow
    baseline = baseline_scores(y, task, splits, request.scoring, request.quantile)
    found = validate_folds(
        of_fold,
        X,
        y,
        splits,
        Questions(
            rule=request.rule,
            with_path=request.wants_path,
            scoring=request.scoring,
            folds_of=folds_of if request.wants_nested else None,
        ),
        bar=bar,
    )
    final = found.final_estimator
    if getattr(estimator, "oob_score", False):
        if found.tuned is not None:
            estimator.set_params(**found.tuned.chosen.parameters)
        final = estimator.fit(X, y)
    nested = None if request.n_divisions is None else nested_error_of(request, of_fold)
    seconds = perf_counter() - start
    if not request.scoring:
        baseline = dict(zip([SCORE_NAME[request.problem.task]], baseline.values(), strict=False))
    return Run(request, found, final, seconds, baseline, nested)


def nested_error_of(request: Request, estimator: Any) -> NestedStandardError:
    """The standard error of an estimator by nested cross-validation."""
    from dtrees.model_selection import nested_standard_error
    from dtrees.model_selection.nested_errors import pinball_of_rows

    scoring = None if request.quantile is None else pinball_of_rows(request.quantile)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # check_folds notes it
        return nested_standard_error(
            estimator,
            *(request.problem.X, request.problem.y),
            scoring=scoring,
            cv=request.n_folds,
            n_repeats=request.n_divisions,
            random_state=estimator.random_state,
        )
