"""Trees of all sizes, from the growth that validates one.

Four sides take turns in one process: `cross_validate` of a fully grown tree; `validation_surface`
over all its depths and 200 sizes of nodes, evenly from 2 to 4 % of the rows; the same and its
`cost_complexity`, the path of alpha; and our `GridSearchCV` over the same grid.

scikit-learn's `GridSearchCV` fits a tree for each cell and fold, which would take hours. `FITS` of
them are drawn at random, fitted and scored as it does (rows of a fold are taken, the tree is fitted
and says how many of the others it gets right), one after the other in one process::

    seconds of a search  =  mean of the drawn fits  x  cells  x  folds  +  one fit of all rows
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import sklearn.tree
from sklearn.model_selection import KFold

from benchmarks import data
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.measure import in_turns, timed
from benchmarks.report import seconds
from benchmarks.validation.ratios import FOLDS, estimator_of
from dtrees.model_selection import (
    GridSearchCV,
    ValidationSurface,
    cross_validate,
    validation_surface,
)

NAME = "adult"
TURNS, BUDGET = 7, 20.0  # seconds
SIZES, LARGEST_SHARE = 200, 0.04  # of nodes that are split; of the rows
FITS = 30  # of scikit-learn's
OF_ALONE = (1.3, 1.15)  # reach, aim: the surface and the path, times `cross_validate`
OF_SEARCH = (1_000, 5_000)  # times as fast as scikit-learn's search
TABLE = Table(
    (
        f"{NAME}, {FOLDS} folds and the final model, 255 codes",
        "s",
        "times `cross_validate`",
        "reach / aim",
        "verdict",
        "scikit-learn's GridSearchCV, s",
        "times as fast",
        "reach / aim",
        "verdict",
    ),
    "Medians of turns side by side, coding included. scikit-learn's search, over trees of ordinal "
    "codes in one process, was not run: it is extrapolated from fits drawn at random, and stands "
    "with the standard error of their mean. On two cores it would take half of it at best.",
)


def theirs(
    X: Any, y: np.ndarray, splits: list[Any], surface: ValidationSurface, n_drawn: int
) -> tuple[float, float]:
    """Seconds of scikit-learn's search, extrapolated, and the standard error."""
    X = data.ordinal(X)
    rng = np.random.default_rng(0)
    taken = []
    for _ in range(n_drawn):
        train, test = splits[rng.integers(len(splits))]
        tree = sklearn.tree.DecisionTreeClassifier(
            max_depth=int(rng.choice(surface.max_depth)),
            min_samples_split=int(rng.choice(surface.min_samples_split)),
            random_state=0,
        )
        taken.append(timed(partial(fit_and_score, tree, X, y, train, test))[0])
    final, _ = timed(lambda: sklearn.tree.DecisionTreeClassifier(random_state=0).fit(X, y))
    error = float(np.std(taken, ddof=1)) / n_drawn**0.5
    return float(np.mean(taken)) * surface.scores.size + final, error * surface.scores.size


def fit_and_score(tree: Any, X: np.ndarray, y: np.ndarray, train: Any, test: Any) -> float:
    """What a search does for a cell and a fold."""
    tree.fit(X[train], y[train])
    return float(tree.score(X[test], y[test]))


def _lines(X: Any, y: np.ndarray, scale: Scale) -> Iterator[tuple[str, ...]]:
    tree = estimator_of(y, 0, {})
    splits = list(KFold(FOLDS, shuffle=True, random_state=0).split(y))

    sizes = np.linspace(2, max(2, int(LARGEST_SHARE * len(y))), SIZES).astype(int)
    sizes = np.unique(sizes).tolist()

    def surface() -> ValidationSurface:
        return validation_surface(tree, X, y, min_samples_split=sizes, cv=splits)

    found = surface()
    grid = {"max_depth": found.max_depth.tolist(), "min_samples_split": sizes}
    sides = (
        lambda: cross_validate(tree, X, y, cv=splits),
        surface,
        lambda: surface().cost_complexity(),
        lambda: GridSearchCV(tree, grid, cv=splits).fit(X, y),
    )
    (alone, *others), _ = in_turns(sides, 1 if scale.quick else TURNS, BUDGET)
    n_drawn = 5 if scale.quick else FITS
    search, error = theirs(X, y, splits, found, n_drawn)
    cells = f"{len(grid['max_depth'])} depths × {len(sizes)} sizes of nodes"
    works = (
        (f"`validation_surface`, {cells}", None),
        ("the same, and `cost_complexity`", OF_ALONE),
        ("`GridSearchCV` over the same cells", None),
    )
    yield ("`cross_validate` alone, fully grown", seconds(alone), "1", *[""] * 6)
    for (work, limits), ours in zip(works, others, strict=True):
        times, faster = ours / alone, search / ours
        asked, verdict = "", ""
        if limits is not None:
            reach, aim = limits
            asked = f"{reach:g} / {aim:g}"
            verdict = scale.verdict(times <= reach, f"{times:.2f} for {reach:g}", aim=times <= aim)
        yield (
            work,
            seconds(ours),
            f"{times:.2f}",
            asked,
            verdict,
            f"{search:,.0f} ± {error:,.0f}, extrapolated from {n_drawn} of "
            f"{found.scores.size:,} fits",
            f"{faster:,.0f}",
            f"{OF_SEARCH[0]:,} / {OF_SEARCH[1]:,}",
            scale.verdict(
                faster >= OF_SEARCH[0],
                f"{faster:,.0f} for {OF_SEARCH[0]:,}",
                aim=faster >= OF_SEARCH[1],
            ),
        )


def _survey(scale: Scale) -> Survey:
    X, y = data.real_part(NAME, scale)
    return Survey(TABLE, partial(_lines, X, y, scale))


CASES = [
    Case(
        "surface",
        "validation",
        f"{NAME}, {FOLDS} folds: all depths × 200 values of min_samples_split, and the alpha path",
        _survey,
    )
]
