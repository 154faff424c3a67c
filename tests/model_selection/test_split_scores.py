"""Means and standard errors over the last axis, and what a pickle leaves behind."""

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dtrees.model_selection.folds import mean_and_standard_error
from dtrees.model_selection.split_scores import SplitScores


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
