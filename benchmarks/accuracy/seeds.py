"""Two sides over a few seeds.

    seed 0    the same rows to fit on, the same rows held out    score, score, difference
    seed 1    others                                             ...

A seed parts the rows and is the seed of both forests. A data set that came with a test part keeps
it; there the seed is that of the forests only. Sides are compared by the mean of the differences
d_s of a seed and its standard error, sd(d) / sqrt(seeds): what makes a part of the rows easy or
hard is the same for both and drops out.

"Within noise or better" is a mean difference of at least -t standard errors, t the 97.5 % point of
Student's distribution with seeds - 1 degrees of freedom: 2.78 for five seeds. When there is no
difference at all, one line in forty misses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.stats
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from benchmarks import data
from benchmarks.cases import Scale

SEEDS = 5
HELD_OUT = 1 / 3

Score = Callable[[int, np.ndarray, np.ndarray], float]


def parts(name: str, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit on, and rows held out."""
    rows = np.arange(n_rows)
    n_train = data.loader().train_rows(name)
    if n_train is not None:
        return rows[:n_train], rows[n_train:]
    train, held_out = train_test_split(rows, test_size=HELD_OUT, random_state=seed)
    return np.sort(train), np.sort(held_out)


def take(X: Any, rows: np.ndarray) -> Any:
    """Rows of a data frame, an array or a sparse matrix."""
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


def held_out_score(model: Any, X: Any, y: np.ndarray) -> float:
    """Accuracy, or R² of numbers."""
    predicted = model.predict(X)
    return float(r2_score(y, predicted) if y.dtype.kind == "f" else np.mean(predicted == y))


def by_seed(name: str, scale: Scale, n_rows: int, *sides: Score) -> list[np.ndarray]:
    """Scores of every side for every seed: float64 (n_seeds,) each."""
    found: list[list[float]] = [[] for _ in sides]
    for seed in range(2 if scale.quick else SEEDS):
        train, held_out = parts(name, n_rows, seed)
        if scale.quick:
            train, held_out = train[:: len(train) // 500], held_out[:: len(held_out) // 500]
        for scores, side in zip(found, sides, strict=True):
            scores.append(side(seed, train, held_out))
    return [np.array(scores) for scores in found]


def error(values: np.ndarray) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def with_error(values: np.ndarray, sign: str = "") -> str:
    """Mean and standard error, as ``.8123 ± .0004``."""
    return f"{values.mean():{sign}.4f} ± {error(values):.4f}"


def compared(ours: np.ndarray, theirs: np.ndarray, scale: Scale) -> Sequence[str]:
    """Cells: ours, theirs, their difference, that in standard errors, the verdict."""
    difference = ours - theirs
    noise = error(difference)
    ratio = difference.mean() / noise if noise > 0 else np.sign(difference.mean()) * np.inf
    limit = scipy.stats.t.ppf(0.975, len(difference) - 1)
    words = "better" if ratio > limit else "within noise"
    if scale.quick:
        words = "-"
    elif ratio < -limit:
        words = f"**missed**: lower by {-difference.mean():.4f}"
    return (
        with_error(ours),
        with_error(theirs),
        with_error(difference, "+"),
        f"{ratio:+.1f}" if np.isfinite(ratio) else "-",
        words,
    )
