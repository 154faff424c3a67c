"""Keyed Poisson bags against the multinomial draw of a bootstrap.

Both forests are ours, with the same seeds: nodes of the same number draw the same columns. Only
how often a row is in the bag of a tree differs:

    keyed          Poisson with mean one, a draw per row; the size of a bag is n on average
    multinomial    n rows drawn with replacement, as scikit-learn does; the size is n
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import dtrees
from benchmarks import data
from benchmarks.accuracy.seeds import by_seed, compared, held_out_score, take
from benchmarks.cases import THREADS, Case, Scale, Survey, Table

TABLE = Table(
    (
        "bags of random forests, held-out rows",
        "trees",
        "keyed Poisson",
        "multinomial",
        "difference",
        "in standard errors",
        "verdict",
    ),
    "As above; both sides are dtrees, with the same columns drawn.",
)
SETS = ("adult", "letter", "covertype_20k", "credit_default", "california_housing")


@dataclass(frozen=True)
class Multinomial:
    """In the place of `dtrees.core.membership.resampling.Bags`."""

    seed: int
    n_rows: int

    def multiplicity(self, tree: int) -> np.ndarray:
        """Times that every row is in the bag of a tree; uint16 (n_rows,)."""
        rng = np.random.default_rng((self.seed, tree))
        drawn = rng.integers(0, self.n_rows, self.n_rows)
        return np.bincount(drawn, minlength=self.n_rows).astype(np.uint16)


class WithReplacement:
    """A forest whose bags are drawn as scikit-learn draws them."""

    def _bags(self, seed: int, n_rows: int, groups: Any) -> Any:
        return Multinomial(seed, n_rows)


class MultinomialClassifier(WithReplacement, dtrees.RandomForestClassifier): ...


class MultinomialRegressor(WithReplacement, dtrees.RandomForestRegressor): ...


def _lines(name: str, scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = data.real(name)
    trees = 5 if scale.quick else 100
    is_regression = y.dtype.kind == "f"

    def score(kind: Any, seed: int, train: np.ndarray, held_out: np.ndarray) -> float:
        share = 1 / 3 if is_regression else "sqrt"
        model = kind(trees, max_features=share, n_jobs=THREADS, random_state=seed)
        model.fit(take(X, train), y[train])
        return held_out_score(model, take(X, held_out), y[held_out])

    keyed, multinomial = (
        (dtrees.RandomForestRegressor, MultinomialRegressor)
        if is_regression
        else (dtrees.RandomForestClassifier, MultinomialClassifier)
    )
    sides = [partial(score, keyed), partial(score, multinomial)]
    ours, theirs = by_seed(name, scale, len(y), *sides)
    work = f"{name}, R²" if is_regression else name
    yield (work, str(trees), *compared(ours, theirs, scale))


def _survey(name: str, scale: Scale) -> Survey:
    data.real(name)  # or it is skipped
    return Survey(TABLE, partial(_lines, name, scale))


CASES = [
    Case(
        f"bags-{name}",
        "accuracy",
        f"keyed Poisson bags against a multinomial bootstrap, {name}, five seeds",
        partial(_survey, name),
    )
    for name in SETS
]
