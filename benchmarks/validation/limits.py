"""Searches over what leaves must hold, in units of one cross-validation.

Three sides take turns, one thread each, processor time, coding, scores and ``refit`` included:

    one           cross_validate(tree, X, y, cv=ten folds), a fully grown tree: the unit
    search        GridSearchCV(tree, grid, cv=ten folds).fit(X, y)
    one by one    the same, where no candidate knows the trees of another one

``cross_validate`` grows the final model as well, which the search grows for its best candidate. The
mean candidate is cheaper than the unit, as its trees are smaller: ten candidates one by one take
less than ten units.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from benchmarks import data
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.measure import in_turns
from benchmarks.validation.ratios import FOLDS, estimator_of
from dtrees.core.grow.known import KnownTrees
from dtrees.model_selection import GridSearchCV, cross_validate
from dtrees.model_selection.candidates import Growth

TURNS, BUDGET = 7, 30.0  # seconds
DEARER = 1.02  # than one by one, at most
FIVE = {"min_samples_leaf": [1, 5, 10, 20, 50]}
TEN = {"min_samples_leaf": [1, 2, 3, 5, 7, 10, 15, 20, 35, 50]}
CLASSES = {"criterion": ["gini", "entropy"]}
NUMBERS = {"criterion": ["squared_error", "poisson"]}
WORKS: dict[str, tuple[str, dict[str, Sequence[Any]], int | None, tuple[float, float] | None]] = {
    "adult, 5 leaf sizes x 2 criteria": ("adult", {**FIVE, **CLASSES}, None, (4.0, 2.5)),
    "adult, 255 codes, 5 leaf sizes x 2 criteria": ("adult", {**FIVE, **CLASSES}, 255, None),
    "adult, 10 leaf sizes": ("adult", TEN, None, None),
    "california, 5 leaf sizes x 2 criteria": (
        "california_housing",
        {**FIVE, **NUMBERS},
        None,
        None,
    ),
    "california, 10 leaf sizes": ("california_housing", TEN, None, None),
    "letter, 255 codes, 10 leaf sizes": ("letter", TEN, 255, None),
}
TABLE = Table(
    (
        f"search, {FOLDS} folds",
        "one cross-validation, s",
        "search, times one",
        "reach / aim",
        "one by one, times one",
        "search / one by one",
        "verdict",
    ),
    "Medians of turns side by side, processor time of one thread. The unit is `cross_validate` of "
    "a fully grown tree by the first criterion.",
)


def apart(growths: Sequence[Growth]) -> Iterator[tuple[Growth, KnownTrees]]:
    """Growths that know nothing of each other."""
    for growth in growths:
        yield growth, KnownTrees(keeps=False)


def _lines(work: str, X: Any, y: np.ndarray, scale: Scale) -> Iterator[tuple[str, ...]]:
    _, grid, max_bins, limits = WORKS[work]
    tree = estimator_of(y, 0, {"max_bins": max_bins, "n_jobs": 1})
    cv = KFold(FOLDS, shuffle=True, random_state=0)

    def search() -> None:
        GridSearchCV(clone(tree), grid, cv=cv).fit(X, y)

    def one_by_one() -> None:
        with patch("dtrees.model_selection.shared_search.with_known_trees", apart):
            search()

    sides = (lambda: cross_validate(clone(tree), X, y, cv=cv), search, one_by_one)
    (one, together, separate), _ = in_turns(sides, TURNS, BUDGET, time.process_time)
    times = together / one
    missed = [] if limits is None or times <= limits[0] else [f"{times:.2f} for {limits[0]:g}"]
    if together > DEARER * separate:
        missed.append(f"{together / separate:.2f} times one by one")
    aim = limits is not None and times <= limits[1]
    yield (
        work,
        f"{one:.3f}",
        f"{times:.2f}",
        "" if limits is None else f"{limits[0]:g} / {limits[1]:g}",
        f"{separate / one:.2f}",
        f"{together / separate:.2f}",
        scale.verdict(not missed, ", ".join(missed), aim=aim),
    )


def _survey(work: str, name: str, scale: Scale) -> Survey:
    X, y = data.real_part(name, scale)
    return Survey(TABLE, partial(_lines, work, X, y, scale))


CASES = [
    Case(
        f"search-limits-{work.replace(', ', '-').replace(' ', '_')}",
        "validation",
        f"search over leaves: {work}",
        partial(_survey, work, name),
    )
    for work, (name, *_) in WORKS.items()
]
