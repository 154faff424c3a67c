"""A million rows down one tree.

The tree is grown on 100,000 rows; the rows to predict are rows of the same table with noise, in
another order, so that they reach all its leaves and the processor cannot learn the way.
"""

import numpy as np

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.fits.pairs import ours, theirs


def _predict(scale: Scale) -> Contest:
    X, y = data.classification(scale.rows(100_000))
    rng = np.random.default_rng(1)
    rows = X[rng.integers(0, len(X), scale.rows(1_000_000))]
    rows += rng.normal(0, 0.3, rows.shape).astype(np.float32)
    own, other = ours(X, y), theirs(X, y)
    return Contest(
        lambda: own.predict(rows),
        {"scikit-learn": lambda: other.predict(rows)},
        lambda first, second: f"{np.mean(first == second):.1%} equal",
    )


CASES = [
    Case(
        "predict",
        "prediction",
        "predict 1,000,000 × 30 float32 with one fully grown tree",
        _predict,
        1.5,
        3,
        repeats=15,
    )
]
