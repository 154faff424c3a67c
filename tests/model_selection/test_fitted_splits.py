"""Means and standard errors over the last axis, and what a pickle leaves behind."""

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

from dtrees import DecisionTreeClassifier, RandomForestClassifier
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


def test_one_split_has_no_error():
    found = Scores(np.array([[0.5], [0.25]]))
    assert np.isnan(found.standard_error).all()
    assert found._allowed(1) == 0.25


def test_a_pickle_leaves_behind_what_has_grown():
    found = pickle.loads(pickle.dumps(Scores(np.ones((1, 2)), _grown=[1])))
    assert found._grown is None
    assert found.mean.tolist() == [1.0]


X, Y = load_iris(return_X_y=True)
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(X))


def work(y=Y, weight=None, **how):
    return SplitTable(TrainingTable(X, y, weight), SPLITS, **how)


@pytest.mark.parametrize(
    "estimator", [DecisionTreeClassifier(random_state=0), RandomForestClassifier(3, random_state=0)]
)
def test_models_and_what_they_say(estimator):
    grown = grow_splits(estimator, work())
    cells = grown.whole()
    assert len(grown.models) == 3
    for number, (train, test) in enumerate(SPLITS):
        inside = np.isin(np.arange(150), train).astype(float)
        alone = clone(estimator).fit(X, Y, sample_weight=inside)
        expected = alone.predict_proba(X[test])
        np.testing.assert_array_equal(cells.values(0, number, test), expected)
        assert cells.error(number) is None
        assert grown.scores()[number] == alone.score(X[test], Y[test])
    expected = clone(estimator).fit(X, Y).predict(X)
    np.testing.assert_array_equal(grown.final_estimator.predict(X), expected)


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
