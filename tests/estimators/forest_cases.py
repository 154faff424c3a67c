"""Tables and forests that several files of tests share."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
FORESTS = [
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    BaggingClassifier,
    BaggingRegressor,
]


def mixed_table(n_rows: int = 400, seed: int = 0):
    """Numbers with missing values, categories and a hybrid column."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n_rows)
    number[rng.random(n_rows) < 0.1] = np.nan
    letters = rng.choice(list("abcdef"), n_rows).astype(object)
    hybrid = np.where(rng.random(n_rows) < 0.5, rng.integers(0, 9, n_rows), letters)
    columns = {"x": number, "letter": letters, "hybrid": hybrid, "k": rng.integers(0, 5, n_rows)}
    table = pd.DataFrame(columns)
    y = (np.nan_to_num(number) > 0).astype(int) + (letters == "a")
    return table, y


def assert_same(a, b) -> None:
    assert len(a.forest_) == len(b.forest_)
    for mine, theirs in zip(a.forest_.trees, b.forest_.trees, strict=True):
        assert mine.equals(theirs)
