"""A fitted forest answers for its trees."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dtrees import (
    RandomForestClassifier,
)
from tests.estimators.forest_cases import FORESTS, IRIS, mixed_table


@pytest.mark.parametrize("kind", FORESTS)
def test_the_forest_is_the_mean_of_its_estimators(kind):
    X, y = mixed_table()
    forest = kind(7, random_state=0).fit(X, y)
    assert len(forest) == len(forest.estimators_) == 7
    method = "predict_proba" if hasattr(forest, "classes_") else "predict"
    each = [getattr(tree, method)(X) for tree in forest]
    np.testing.assert_allclose(getattr(forest, method)(X), np.mean(each, axis=0), rtol=1e-13)
    leaves = forest.apply(X)
    assert leaves.shape == (len(X), 7)
    np.testing.assert_array_equal(leaves[:, 2], forest[2].apply(X))
    path, ends = forest.decision_path(X)
    assert path.shape[1] == ends[-1] == sum(tree.node_count for tree in forest.forest_.trees)
    assert np.all(path[np.arange(len(X)), ends[3] + leaves[:, 3]] == 1)
    shares = forest.feature_importances_
    assert shares.shape == (4,)
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", FORESTS)
def test_pickles(kind):
    X, y = mixed_table()
    forest = kind(3, random_state=0).fit(X, y)
    assert len(forest.estimators_) == 3
    again = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(forest.predict(X), again.predict(X))
    assert "_estimators" not in vars(again)


def test_unfitted():
    for method in ("predict", "predict_proba", "apply", "decision_path"):
        with pytest.raises(NotFittedError):
            getattr(RandomForestClassifier(), method)(IRIS[0])
    with pytest.raises(NotFittedError):
        _ = RandomForestClassifier().estimators_
