"""Intervals of ten real sets hold the share of targets that they promise."""

import numpy as np
import pytest

import dtrees
from dtrees.model_selection import cross_validate

pytestmark = [  # of 300 rows, some columns name nearly each
    pytest.mark.realdata,
    pytest.mark.filterwarnings("ignore:Columns? .* an id"),
    pytest.mark.filterwarnings("ignore:.* look like dates"),  # of weather, as the file has them
]

# Sets of classes have a column of numbers as their target.
TARGETS = {
    "abalone": None,
    "bike_sharing_hour": None,
    "california_housing": None,
    "nycflights_33k": None,
    "adult": "age",
    "covertype_20k": 0,
    "credit_default": 0,
    "letter": 0,
    "shuttle": 1,
    "weather_aus": 2,
}
N_ROWS, N_NEW, N_SPLITS = 300, 1500, 4
CONFIDENCE = 0.9


def splits(real_data, name):
    """Rows to fit and new ones, drawn anew each time."""
    X, y, _ = real_data(name)
    column = TARGETS[name]
    if column is not None:
        numbers = [c for c in X.columns if X[c].dtype == np.float64]
        column = column if isinstance(column, str) else numbers[column]
        y = X.pop(column).to_numpy()
        X, y = X[np.isfinite(y)], y[np.isfinite(y)]
    for seed in range(N_SPLITS):
        rows = np.random.default_rng(seed).permutation(len(y))[: N_ROWS + N_NEW]
        at_fit, new = rows[:N_ROWS], rows[N_ROWS:]
        yield X.iloc[at_fit], y[at_fit], X.iloc[new], y[new]


def of_forest(X, y):
    return dtrees.RandomForestRegressor(40, oob_score=True, random_state=0).fit(X, y)


def of_folds(X, y):
    tree = dtrees.DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
    return cross_validate(tree, X, y, cv=10, return_estimator=True)


@pytest.mark.one_of(7)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("fit", [of_forest, of_folds])
def test_coverage(real_data, name, fit):
    inside = []
    for X, y, new, y_new in splits(real_data, name):
        low, high = fit(X, y).prediction_interval(new, CONFIDENCE).T
        assert np.isfinite(low).all()
        assert (low <= high).all()
        inside.append(np.mean((low <= y_new) & (y_new <= high)))
    assert min(inside) > 2 * CONFIDENCE - 1  # what is guaranteed, less than what is usual
    # about the share itself: of new rows, and of the rows that calibrate
    spread = np.sqrt(CONFIDENCE * (1 - CONFIDENCE) * (1 / N_ROWS + 1 / N_NEW) / N_SPLITS)
    assert np.mean(inside) > CONFIDENCE - 4 * spread
