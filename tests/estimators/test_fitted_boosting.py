"""What a fitted boosted model answers, beside what `test_boosting` asks."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dtrees import GradientBoostingRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + RNG.normal(size=120)


def test_stages_check_the_table_before_the_first():
    model = GradientBoostingRegressor(max_iter=2).fit(X, Y)
    with pytest.raises(ValueError, match="3 features"):
        model.staged_predict(X[:, :2])


def test_iterations_are_counted_of_a_fitted_model_only():
    with pytest.raises(NotFittedError):
        _ = GradientBoostingRegressor().n_iter_
    assert GradientBoostingRegressor(max_iter=3).fit(X, Y).n_iter_ == 3
