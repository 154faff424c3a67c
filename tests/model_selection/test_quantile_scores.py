"""The pinball loss as a scorer, of each row, and as the loss that a model grows by."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.metrics import make_scorer, mean_pinball_loss

from dtrees import DecisionTreeRegressor, GradientBoostingRegressor
from dtrees.model_selection.quantile_scores import is_own_loss, pinball_of_rows, pinball_scorer

Y = np.random.default_rng(0).exponential(size=200)


@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_rows_have_the_mean_that_scikit_learn_tells(quantile):
    for said in (0.3, 1.0, 2.5):
        rows = pinball_of_rows(quantile)(Y, np.full(len(Y), said))
        assert (rows <= 0).all()
        assert -rows.mean() == pytest.approx(mean_pinball_loss(Y, 0 * Y + said, alpha=quantile))


def test_the_quantile_scores_best():
    X, scorer = np.zeros((len(Y), 1)), pinball_scorer(0.9)
    scores = {
        q: scorer(DummyRegressor(strategy="quantile", quantile=q).fit(X, Y), X, Y)
        for q in (0.1, 0.5, 0.85, 0.9, 0.95, 1.0)
    }
    assert max(scores, key=scores.get) == 0.9
    assert max(scores.values()) < 0


def test_which_scorers_are_minus_the_loss_of_a_model():
    model = GradientBoostingRegressor(loss="quantile", quantile=0.9)
    assert is_own_loss(pinball_scorer(0.9), model)
    others = [
        *(None, "r2", pinball_scorer(0.8), mean_pinball_loss),
        make_scorer(mean_pinball_loss, alpha=0.9),
        make_scorer(mean_pinball_loss, alpha=0.9, sample_weight=Y, greater_is_better=False),
    ]
    assert not any(is_own_loss(scorer, model) for scorer in others)
    for other in (GradientBoostingRegressor(quantile=0.9), DecisionTreeRegressor()):
        assert not is_own_loss(pinball_scorer(0.9), other)
