"""Errors of both sides of all boundaries: those of each side's median, by its definition."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor as Theirs

from dtrees import DecisionTreeRegressor
from tests.laws.tables import Example, fit


def median_of(y, w):
    """Half the sum of the two middle numbers: one, unless just half of the weight is below it."""
    order = np.argsort(y, kind="stable")
    passed = 2 * np.cumsum(w[order])
    lower = order[np.searchsorted(passed, passed[-1] / 2, side="left")]
    upper = order[np.searchsorted(passed, passed[-1] / 2, side="right")]
    return (y[lower] + y[upper]) / 2


def errors_of(y, w):
    return Fraction(float(w @ np.abs(y - median_of(y, w)))) if len(y) else 0


def best_gain(x, y, w):
    """Of the splits of a column by brute force, the missing values on either side."""
    order = np.argsort(x)
    x, y, w = x[order], y[order], w[order]
    n_known = int(np.count_nonzero(~np.isnan(x)))
    best = 0
    for missing_left in (False, True):
        for i in range(1, n_known + 1):
            if i == n_known if missing_left or n_known == len(x) else False:
                continue
            if i < n_known and x[i - 1] == x[i]:
                continue
            left = np.arange(len(x)) < i
            left[n_known:] = missing_left
            sides = errors_of(y[left], w[left]) + errors_of(y[~left], w[~left])
            best = max(best, errors_of(y, w) - sides)
    return float(best)


@pytest.mark.one_of(12)
@pytest.mark.parametrize("n_rows", [2, 3, 4, 5, 16, 17, 60, 201])
@pytest.mark.parametrize("weights", ["none", "whole", "halves"])
@pytest.mark.parametrize("style", ["distinct", "ties", "missing", "mostly one"])
def test_the_best_boundary_of_a_column(n_rows, weights, style):
    random = np.random.default_rng(n_rows)
    x = random.permutation(n_rows).astype(float)
    if style == "ties":
        x = np.floor(x / 3)
    elif style == "missing":
        x[random.random(n_rows) < 0.3] = np.nan
    elif style == "mostly one":
        x[random.random(n_rows) < 0.7] = np.floor(n_rows / 2) + 0.5
    y = np.round(random.normal(size=n_rows) * 20 + (x > n_rows / 2) * 9)
    w = {
        "none": np.ones(n_rows),
        "whole": random.integers(1, 5, n_rows).astype(float),
        "halves": random.integers(1, 5, n_rows) / 2,
    }[weights]
    weight = None if weights == "none" else w
    tree = DecisionTreeRegressor(criterion="absolute_error", max_depth=1).fit(x[:, None], y, weight)
    model = tree.tree_.model
    assert model.gain[0] == best_gain(x, y, w)
    assert model.impurity[0] == pytest.approx(float(errors_of(y, w)) / w.sum(), rel=1e-15)
    assert model.value[0, 0] == median_of(y, w)


def test_weights_of_any_size():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 300))
    for scale in (1e-20, 1.0, 1e20):
        w = random.random(300) * scale
        tree = DecisionTreeRegressor(criterion="absolute_error", max_depth=1)
        model = tree.fit(x[:, None], y, w).tree_.model
        np.testing.assert_allclose(model.gain[0], best_gain(x, y, w), rtol=1e-9)
        np.testing.assert_allclose(model.value[0, 0], median_of(y, w), rtol=1e-14)


def test_equal_targets_of_fractional_weights_have_no_order():
    random = np.random.default_rng(1)
    table = [random.normal(size=200).tolist(), random.integers(0, 4, 200).astype(float).tolist()]
    y, w = random.integers(0, 3, 200) * 1.7, random.random(200)
    example = Example(table, y, w, "absolute_error")
    rows = random.permutation(200)
    assert fit(example).equals(fit(example.take(rows)))


@pytest.mark.parametrize("weights", [False, True])
def test_medians_that_move_far(weights):
    """Rows come from both ends of y, so the next places of a side are many words apart."""
    n = 9000
    random = np.random.default_rng(2)
    x = np.arange(float(n))
    y = np.where(random.random(n) < 0.5, 1, -1) * (n - x) + 0.25 * (x > 7000)
    w = random.integers(1, 4, n).astype(float) if weights else None
    model = DecisionTreeRegressor(criterion="absolute_error", max_depth=1).fit(x[:, None], y, w)
    theirs = Theirs(criterion="absolute_error", max_depth=1).fit(x[:, None], y, w).tree_
    assert model.tree_.threshold[0] == theirs.threshold[0]
    np.testing.assert_allclose(model.tree_.impurity, theirs.impurity, rtol=1e-12)
    np.testing.assert_allclose(model.tree_.value, theirs.value, rtol=1e-12)
