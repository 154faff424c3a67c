"""Ten folds and the final model, in units of one fit: grown together, and one by one.

Four sides take turns in one process, on two threads: one fit, `fit_sets` (one coding, eleven models
grown together), eleven fits with zero weights, and the whole of `cross_validate`. What it does
beside `fit_sets` is the accuracy of the held-out rows: of a tree a sum over leaves, to which they
walk by their codes; of a forest scikit-learn's scorer, which is handed predictions from codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

import dtrees
from benchmarks import data
from benchmarks.cases import THREADS, Case, Scale, Survey, Table
from benchmarks.measure import in_turns
from benchmarks.validation.loop import table_of
from dtrees.estimators.training_sets import fit_sets
from dtrees.model_selection import cross_validate

FOLDS = 10
TURNS, BUDGET = 7, 30.0  # of a line, seconds
SHARE_OF_SEPARATE = 1.05
HEAD = (
    "10 folds and the final model",
    "one fit, ms",
    "together, ms",
    "times one fit",
    "reach / aim",
    "verdict",
    "one by one, times one fit",
    "one by one / together",
    "`cross_validate`, times one fit",
)
NOTE = (
    "Medians of turns side by side, coding included; 255 codes, or exact ones. Verdicts are on "
    "*times one fit*, and on "
    f"*together* being at most {SHARE_OF_SEPARATE} times *one by one*."
)
DEPTH = {"max_depth": 6}
EXACT: dict[str, Any] = {"max_bins": None}
WORKS = {  # data set, parameters, trees of a forest, reach, aim
    "adult, depth 6": ("adult", DEPTH, 0, 1.9, 1.5),
    "weather, depth 6": ("weather_aus", DEPTH, 0, 3.0, 2.4),
    "adult, leaves of 50": ("adult", {"min_samples_leaf": 50}, 0, 5.2, 4.5),
    "mushroom, fully grown": ("mushroom", {}, 0, 1.3, 1.0),
    "adult, 50 trees of depth 8": ("adult", {"max_depth": 8}, 50, 2.8, 2.2),
    "adult, fully grown": ("adult", {}, 0, None, None),
    "letter, fully grown": ("letter", {}, 0, None, None),
    "covertype_20k, fully grown": ("covertype_20k", {}, 0, None, None),
    "california, fully grown": ("california_housing", {}, 0, None, None),
    "credit default, depth 6": ("credit_default", DEPTH, 0, None, None),
    "adult, balanced, leaves of 50": (
        *("adult", {"min_samples_leaf": 50, "class_weight": "balanced"}, 0),
        *(4.5, 3.7),
    ),
    "100,000 x 30 exact, depth 6": ("classes", EXACT | DEPTH, 0, 3.0, 2.0),
    "100,000 x 30 exact, leaves of 10": ("classes", EXACT | {"min_samples_leaf": 10}, 0, 6.0, 4.5),
    "100,000 x 30 exact, fully grown": ("classes", EXACT, 0, 8.0, 6.5),
    "60,000 x 8 exact, depth 6": ("exact", EXACT | DEPTH, 0, 3.0, 2.0),
}
PAPER = {  # [CV] table 1; seconds of CLUS on two cores for all, in units of its single tree
    "connect4": (3.00, 3.1),
    "adult": (2.65, 4.9),
    "letter": (0.71, 2.6),
    "nursery": (0.039, 2.6),
    "mushroom": (None, None),
    "spambase": (None, None),
    "abalone": (None, None),
    "car": (None, None),
}
THERE = {  # seconds of scikit-learn's ten folds and fit on the machine on which CLUS was run
    "connect4": 1.24,
    "adult": 0.99,
    "letter": 0.42,
    "nursery": 0.07,
}
FASTER = {"connect4": 25, "adult": 40, "letter": 20, "nursery": 6}  # times CLUS: the reach
AIM = 40


def medians(X: Any, y: np.ndarray, estimator: Any, *others: Callable[[], Any]) -> list[float]:
    """Seconds of one fit, of all together, one by one, of `cross_validate`, and of others."""
    cv = KFold(FOLDS, shuffle=True, random_state=0)
    splits = list(cv.split(y))
    rows = np.ones((FOLDS + 1, len(y)), dtype=bool)
    for mine, (_, test) in zip(rows, splits, strict=False):
        mine[test] = False

    def one_by_one() -> None:
        for mine in rows:
            clone(estimator).fit(X, y, sample_weight=mine.astype(float))

    sides = (
        lambda: clone(estimator).fit(X, y),
        lambda: fit_sets(estimator, X, y, None, rows),
        one_by_one,
        lambda: cross_validate(estimator, X, y, cv=splits),
        *others,
    )
    return in_turns(sides, TURNS, BUDGET)[0]


def estimator_of(y: np.ndarray, n_trees: int, parameters: dict[str, Any]) -> Any:
    """A tree or a forest, with 255 codes unless told otherwise."""
    kind = "Classifier" if y.dtype.kind != "f" else "Regressor"
    given = {"max_bins": 255, "random_state": 0, "n_jobs": THREADS, **parameters}
    if n_trees > 0:
        return getattr(dtrees, f"RandomForest{kind}")(n_trees, **given)
    return getattr(dtrees, f"DecisionTree{kind}")(**given)


def _lines(work: str, X: Any, y: np.ndarray, scale: Scale) -> Iterator[tuple[str, ...]]:
    _, parameters, n_trees, reach, aim = WORKS[work]
    one, together, separate, whole = medians(X, y, estimator_of(y, n_trees, parameters))
    times = together / one
    missed = [] if reach is None or times <= reach else [f"{times:.2f} for {reach}"]
    if together > SHARE_OF_SEPARATE * separate:
        missed.append(f"{together / separate:.2f} times one by one")
    aim_reached = aim is not None and times <= aim
    verdict = scale.verdict(not missed, ", ".join(missed), aim=aim_reached)
    yield (
        work,
        f"{1e3 * one:.1f}",
        f"{1e3 * together:.1f}",
        f"{times:.2f}",
        "" if reach is None else f"{reach} / {aim}",
        verdict,
        f"{separate / one:.1f}",
        f"{separate / together:.1f}",
        f"{whole / one:.2f}",
    )


def _paper_lines(name: str, X: Any, y: np.ndarray, scale: Scale) -> Iterator[tuple[str, ...]]:
    codes, limits = data.ordinal(X), {"min_samples_leaf": 10}
    theirs = DecisionTreeClassifier(**limits, random_state=0)
    cv = KFold(FOLDS, shuffle=True, random_state=0)

    def scikit_learn() -> None:
        model_selection.cross_validate(theirs, codes, y, cv=cv)
        theirs.fit(codes, y)

    others = [scikit_learn] if name in THERE else []
    one, together, separate, _, *of_theirs = medians(X, y, estimator_of(y, 0, limits), *others)
    seconds, of_single = PAPER[name]
    faster, ratio, verdict = "", "", ""
    if seconds is not None and of_single is not None:
        times = seconds * (of_theirs[0] / THERE[name]) / together
        reach, limit = FASTER[name], 1.2 * of_single
        missed = [] if times >= reach else [f"{times:.1f} times CLUS for {reach}"]
        if together / one > limit:
            missed.append(f"{together / one:.1f} single trees for {limit:.1f}")
        faster, ratio = f"{times:.1f}", f"{of_single}"
        verdict = scale.verdict(not missed, ", ".join(missed), aim=times >= AIM)
    yield (
        name,
        f"{1e3 * one:.1f}",
        f"{1e3 * together:.1f}",
        f"{separate / together:.1f}",
        f"{together / one:.1f}",
        ratio,
        faster,
        verdict,
    )


def _survey(lines: Any, table: Table, work: str, name: str, scale: Scale) -> Survey:
    if name == "classes":
        X, y = data.classification(scale.rows(100_000))
    else:
        X, y = table_of(name, scale)
    return Survey(table, partial(lines, work, X, y, scale))


PAPER_TABLE = Table(
    (
        "leaves of at least 10",
        "one fit, ms",
        "together, ms",
        "one by one / together",
        "times one fit",
        "CLUS: times its single tree",
        "times as fast as CLUS",
        "verdict",
    ),
    "The data of [CV] table 1, which reports 1.3 to 6.3 for *one by one / together*. CLUS is the "
    "system of its authors, run on two cores of another machine. Its seconds are multiplied by "
    "what scikit-learn's ten folds and a fit take here, in the same turns, over what they took "
    "there.",
)


CASES = [
    *(
        Case(
            f"ratio-{work.replace(', ', '-').replace(',', '').replace(' ', '_')}",
            "validation",
            f"10 folds and the final model: {work}",
            partial(_survey, _lines, Table(HEAD, NOTE), work, name),
        )
        for work, (name, *_) in WORKS.items()
    ),
    *(
        Case(
            f"paper-{name}",
            "validation",
            f"10 folds and the final model: {name}, leaves of at least 10, 255 codes",
            partial(_survey, _paper_lines, PAPER_TABLE, name, name),
        )
        for name in PAPER
    ),
]
