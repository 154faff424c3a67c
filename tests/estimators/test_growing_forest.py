"""Out-of-bag results, and forests whose growth fails."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from dtrees import (
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.estimators.forest_cases import CANCER, DIABETES, FORESTS, IRIS


class TestOutOfBag:
    def test_regression_and_a_callable(self):
        X, y = DIABETES
        forest = RandomForestRegressor(40, random_state=1, oob_score=True).fit(X, y)
        assert forest.oob_prediction_.shape == y.shape
        assert 0.3 < forest.oob_score_ < 0.6
        worst = RandomForestRegressor(
            40, random_state=1, oob_score=lambda y, p: np.abs(y - p).max()
        ).fit(X, y)
        assert worst.oob_score_ == np.abs(y - forest.oob_prediction_).max()

    def test_balanced_accuracy(self):
        X, y = CANCER
        forest = RandomForestClassifier(
            30, random_state=0, oob_score=balanced_accuracy_score, class_weight="balanced"
        ).fit(X, y)
        assert forest.oob_score_ > 0.93

    def test_rows_without_a_vote(self):
        X, y = IRIS
        with pytest.warns(UserWarning, match="do not have OOB scores"):
            forest = RandomForestClassifier(1, random_state=1, oob_score=True).fit(X, y)
        assert np.isnan(forest.oob_decision_function_).any()
        assert 0.8 < forest.oob_score_ <= 1

    def test_needs_bags(self):
        with pytest.raises(ValueError, match="bootstrap=True"):
            RandomForestClassifier(oob_score=True, bootstrap=False).fit(*IRIS)

    def test_groups_are_left_out_together(self):
        # Every row is there eight times: without groups the forest has seen each row's twin.
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(60, 4)), 8, axis=0)
        y = np.repeat(rng.integers(0, 2, 60), 8)
        groups = np.repeat([f"patient {i}" for i in range(60)], 8)
        forest = RandomForestClassifier(60, random_state=0, oob_score=True)
        assert clone(forest).fit(X, y).oob_score_ > 0.95
        assert clone(forest).fit(X, y, bootstrap_groups=groups).oob_score_ < 0.7


@pytest.mark.parametrize("kind", FORESTS)
def test_out_of_bag_scores_need_bags_and_votes(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} got oob_score=True, bootstrap=Fal"):
        kind(2, oob_score=True, bootstrap=False).fit(*IRIS)
    with pytest.warns(UserWarning, match="do not have OOB scores"):
        forest = kind(1, random_state=1, oob_score=True, bootstrap=True).fit(*IRIS)
    name = "oob_prediction_" if "Regressor" in kind.__name__ else "oob_decision_function_"
    voted = ~np.isnan(getattr(forest, name))
    assert 0.2 < voted.mean() < 0.6  # 1/e of the rows are in no bag
    assert np.isfinite(forest.oob_score_)


def test_a_failed_fit_leaves_the_forest_as_it_was():
    X, y = IRIS
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    before = forest.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        forest.fit(X, np.where(y == 0, np.nan, y))
    np.testing.assert_array_equal(forest.predict(X), before)
