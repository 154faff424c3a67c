"""Gains relative to each other, where float64 holds those of the user's unit and where not."""

import numpy as np
import pytest

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.core.model.gains import relative_gains


def tree(scale, criterion="squared_error"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=200)) * scale
    return DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, y).tree_.model


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_tiny_targets_have_the_gains_of_others(criterion):
    usual, tiny = tree(1.0, criterion), tree(2.0**-1000, criterion)
    assert relative_gains(usual) is usual.gain
    assert tiny.gain.max() < 1e-280
    np.testing.assert_array_equal(usual.feature, tiny.feature)
    mine, theirs = relative_gains(tiny), relative_gains(usual)
    np.testing.assert_allclose(mine / mine.max(), theirs / theirs.max(), rtol=1e-9, atol=1e-12)


def test_classes_have_one_unit():
    X = np.arange(10.0)[:, None]
    grown = DecisionTreeClassifier().fit(X, np.arange(10) % 2).tree_.model
    assert relative_gains(grown) is grown.gain
