"""Ten folds and the final model of boosted models, against eleven fits and LightGBM's `cv`.

    ours     `cross_validate`: one coding, eleven models side by side, the loss of held-out rows
    fits     eleven fits of dtrees, each on all threads, no score; the same models
    curve    `boosting_curve`: the same as ours, and a loss after every iteration
    theirs   `lightgbm.cv`: ten models, a loss after every iteration, and no final model

100 iterations of 31 leaves, learning rate 0.1, 255 bins. `boost-folds-processor-` cases have one
thread and are in processor time, for busy machines; they tell nothing of how threads share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

import dtrees
from benchmarks import data
from benchmarks.cases import THREADS, Case, Scale, Survey, Table
from benchmarks.forests.opponents import is_regression, wanted
from benchmarks.measure import in_turns
from dtrees.model_selection import boosting_curve, cross_validate

FOLDS, ITERATIONS = 10, 100
TURNS, BUDGET = 5, 40.0
FITS, THEIRS = (
    (0.8, 0.5),
    (0.6, 0.4),
)  # reach and aim, in times of eleven fits, and of `lightgbm.cv`
WORKS = {
    "random": "100,000 × 30, two classes",
    "adult": "adult",
    "california_housing": "california",
}
TABLE = Table(
    (
        "work",
        "`cross_validate`, s",
        "eleven fits, s",
        "`boosting_curve`, s",
        "`lightgbm.cv`, s",
        "of the fits",
        "verdict",
        "curve, of `lightgbm.cv`",
        "verdict",
    ),
    f"Medians of turns in one process, coding included. At most {FITS[0]} of eleven fits is asked "
    f"({FITS[1]} is the aim), and {THEIRS[0]} of `lightgbm.cv` ({THEIRS[1]}).",
)


def sides(name: str, scale: Scale, n_threads: int) -> list[Callable[[], Any]]:
    """`cross_validate`, eleven fits, `boosting_curve`, `lightgbm.cv`."""
    library = wanted("lightgbm", "lightgbm")
    X, y = data.classification(scale.rows(100_000))
    if name != "random":
        X, y = data.real_part(name, scale)
    kind = "Regressor" if is_regression(y) else "Classifier"
    model = getattr(dtrees, f"GradientBoosting{kind}")(
        max_iter=ITERATIONS, early_stopping=False, n_jobs=n_threads
    )
    splits = list(KFold(FOLDS, shuffle=True, random_state=0).split(y))
    scoring = "neg_mean_squared_error" if is_regression(y) else "neg_log_loss"
    rounds = {
        "objective": "regression" if is_regression(y) else "binary",
        "num_leaves": 31,
        "learning_rate": 0.1,
        "max_bin": 255,
        "num_threads": n_threads,
        "verbosity": -1,
    }
    numbers = y if is_regression(y) else np.unique(y, return_inverse=True)[1]

    def fits() -> None:
        for train, _ in splits:
            weight = np.zeros(len(y))
            weight[train] = 1
            clone(model).fit(X, y, sample_weight=weight)
        clone(model).fit(X, y)

    def theirs() -> Any:
        table = library.Dataset(X, numbers, params={"verbosity": -1})
        return library.cv(rounds, table, ITERATIONS, folds=splits)

    return [
        lambda: cross_validate(model, X, y, cv=splits, scoring=scoring),
        fits,
        lambda: boosting_curve(model, X, y, cv=splits),
        theirs,
    ]


def _survey(name: str, n_threads: int, clock: Callable[[], float], scale: Scale) -> Survey:
    def lines() -> Iterable[tuple[str, ...]]:
        turns = 1 if scale.quick else TURNS
        seconds, _ = in_turns(sides(name, scale, n_threads), turns, BUDGET, clock)
        of_fits, of_theirs = seconds[0] / seconds[1], seconds[2] / seconds[3]
        told = [WORKS[name], *(f"{taken:.3g}" for taken in seconds)]
        for found, (reach, aim) in ((of_fits, FITS), (of_theirs, THEIRS)):
            missed = f"{found / reach:.2f} times the reach"
            told += [f"{found:.2f}", scale.verdict(found <= reach, missed, aim=found <= aim)]
        yield tuple(told)

    return Survey(TABLE, lines)


CASES = [
    Case(
        f"{prefix}{name}",
        group,
        f"boosting, {FOLDS} folds and the final model, {work}, {what}",
        partial(_survey, name, n_threads, clock),
    )
    for prefix, group, what, n_threads, clock in (
        ("boost-folds-", "boost-folds", f"{THREADS} threads", THREADS, time.perf_counter),
        (
            "boost-folds-processor-",
            "boost-folds-processor",
            "processor time of one thread",
            1,
            time.process_time,
        ),
    )
    for name, work in WORKS.items()
]
