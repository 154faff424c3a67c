"""Rain in Australia: 80 % of the 142,193 rows with a target, 22 columns, a tenth of it missing.

Six columns are categories, one of them (Date) with 3,436. scikit-learn gets them as numbers; dtrees
gets the table as it is, which makes another tree, and in the second line the same numbers.
"""

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.fits.pairs import same_fit


def _train(scale: Scale) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = data.real("weather_aus")
    kept = train_test_split(np.arange(len(y)), train_size=0.8, random_state=0)[0]
    kept = np.sort(kept)[: scale.rows(len(kept))]
    return X.iloc[kept].reset_index(drop=True), y[kept]


def ordinal(X: pd.DataFrame) -> np.ndarray:
    """Categories by number, float64; NaN for missing."""
    columns = [
        column.cat.codes.replace(-1, np.nan) if column.dtype == "category" else column
        for _, column in X.items()
    ]
    return np.column_stack(columns).astype(np.float64)


def _native(scale: Scale) -> Contest:
    X, y = _train(scale)
    return same_fit(X, y, ordinal(X))


def _ordinal(scale: Scale) -> Contest:
    X, y = _train(scale)
    return same_fit(ordinal(X), y)


CASES = [
    Case(
        "weather",
        "fits",
        "weather 113,754 × 22, fully grown; categories (scikit-learn: ordinal)",
        _native,
        8,
        14,
    ),
    Case(
        "weather-ordinal",
        "fits",
        "weather 113,754 × 22, fully grown; ordinal for both",
        _ordinal,
        8,
        14,
    ),
]
