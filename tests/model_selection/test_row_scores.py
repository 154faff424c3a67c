"""Scores of rows: their means are scikit-learn's scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    make_scorer,
    mean_absolute_error,
    mean_pinball_loss,
    mean_squared_error,
)

from dtrees import DecisionTreeRegressor, GradientBoostingRegressor
from dtrees.model_selection.row_scores import (
    OF_CLASSES,
    OF_NUMBERS,
    is_own_loss,
    pinball_of_rows,
    pinball_scorer,
    score_of_rows,
)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_losses_of_shares(n_classes):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(n_classes), 30)
    shares[:3] = np.eye(n_classes)[[0, 1, 0]]
    y = rng.integers(0, n_classes, 30)
    found = OF_CLASSES["neg_brier_score"](y, shares).mean()
    given_shares = shares[:, 1] if n_classes == 2 else shares
    assert math.isclose(-found, brier_score_loss(y, given_shares))
    found = OF_CLASSES["neg_log_loss"](y, shares).mean()
    assert math.isclose(-found, log_loss(y, shares))


def test_labels_and_numbers():
    y, said = np.array(["a", "b", "b"]), np.array(["a", "a", "b"])
    assert OF_CLASSES["accuracy"](y, said).mean() == accuracy_score(y, said)
    y, said = np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 1.0])
    assert -OF_NUMBERS["neg_mean_squared_error"](y, said).mean() == mean_squared_error(y, said)
    assert -OF_NUMBERS["neg_mean_absolute_error"](y, said).mean() == mean_absolute_error(y, said)


def test_names_and_functions():
    assert score_of_rows(None, is_class=True) is OF_CLASSES["accuracy"]
    assert score_of_rows(None, is_class=False) is OF_NUMBERS["neg_mean_squared_error"]
    assert score_of_rows(max, is_class=True) is max
    for name, is_class in (("r2", False), ("accuracy", False), ("roc_auc", True)):
        with pytest.raises(ValueError, match=f"a mean over rows: got {name!r}"):
            score_of_rows(name, is_class=is_class)


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
