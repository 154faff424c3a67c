"""Means and standard errors over the last axis, and what a pickle leaves behind."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

from dtrees import DecisionTreeClassifier
from dtrees.estimators.training_table import TrainingTable
from dtrees.model_selection.fitted_splits import SplitScores, fit_splits, grow_splits
from dtrees.model_selection.folds import mean_and_standard_error
from dtrees.model_selection.prepare import SplitTable


@dataclass(frozen=True, eq=False)
class Scores(SplitScores):
    """Scores of anything."""

    scores: np.ndarray
    _grown: Any = None


@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 2, 4)])
def test_they_are_those_of_each_row_of_splits(shape):
    scores = np.random.default_rng(0).normal(size=shape)
    found = Scores(scores)
    assert found.mean.shape == found.standard_error.shape == shape[:-1]
    for place in np.ndindex(shape[:-1]):
        mean, error = mean_and_standard_error(scores[place])
        assert found.mean[place] == pytest.approx(mean, rel=1e-14)
        assert found.standard_error[place] == pytest.approx(error, rel=1e-14)
        assert found._allowed(place) == found.mean[place] - found.standard_error[place]


X, Y = load_iris(return_X_y=True)
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(X))


def work(y=Y, weight=None, **how):
    return SplitTable(TrainingTable(X, y, weight), SPLITS, **how)


def test_smaller_models_stand_inside():
    tree = DecisionTreeClassifier(random_state=0)
    grown = grow_splits(tree, work())
    small = grown.within(clone(tree).set_params(max_depth=1))
    assert [model.get_depth() for model in small.models] == [1, 1, 1]
    assert small.final_estimator.get_params()["max_depth"] == 1
    of_final = grown.only_final(SPLITS[:1])
    assert of_final.models == [grown.final_estimator]


def test_the_last_model_is_of_the_rows_that_are_asked_for():
    half = np.arange(150) % 2 == 0
    grown = grow_splits(DecisionTreeClassifier(random_state=0), work(rows=half))
    alone = DecisionTreeClassifier(random_state=0).fit(X, Y, sample_weight=half.astype(float))
    np.testing.assert_array_equal(grown.final_estimator.predict(X), alone.predict(X))


def test_errors_of_fits_are_kept_or_raised():
    weight = np.ones(150)
    weight[SPLITS[1][0]] = 0.0
    tree = DecisionTreeClassifier(class_weight="balanced")
    cells = fit_splits(tree, work(weight=weight)).whole()
    assert isinstance(cells.error(1), ValueError)
    assert cells.error(0) is cells.error(-1) is None
    with pytest.raises(ValueError, match="weight"):
        grow_splits(tree, work(weight=weight))
