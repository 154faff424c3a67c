"""Small tables of every kind of column, and the models of their folds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.model_selection import cross_validate


def table(seed: int, n_rows: int = 60, *, regression: bool = False):
    """Numbers, with ties, with missing values; categories, with missing values; both in one."""
    rng = np.random.default_rng(seed)
    ties = rng.integers(0, 5, n_rows).astype(float)
    gaps = np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows))
    letters = rng.choice(list("abcdef"), n_rows).astype(object)
    holes = np.where(rng.random(n_rows) < 0.2, None, rng.choice(list("xyz"), n_rows).astype(object))
    hybrid = np.array([*rng.integers(0, 4, n_rows)], dtype=object)
    hybrid[rng.random(n_rows) < 0.4] = "none"
    frame = pd.DataFrame(
        {"ties": ties, "gaps": gaps, "letters": letters, "holes": holes, "hybrid": hybrid}
    )
    signal = ties + np.nan_to_num(gaps) + (letters < "c") * 2 + (holes == "x") + (hybrid == "none")
    noisy = signal + rng.normal(size=n_rows)
    return frame, noisy if regression else np.digitize(noisy, np.quantile(noisy, [0.4, 0.7]))


def fold_models(seed: int, *, regression: bool = False, n_folds: int = 4, **limits):
    """The models of the folds, and the final one."""
    X, y = table(seed, regression=regression)
    kind = DecisionTreeRegressor if regression else DecisionTreeClassifier
    found = cross_validate(kind(**limits), X, y, cv=KFold(n_folds), return_estimator=True)
    return found["estimator"], found["final_estimator"]
