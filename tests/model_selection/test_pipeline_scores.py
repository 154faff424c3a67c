"""Scores of one split of a pipeline, whose steps are fitted once."""

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel

from dtrees import DecisionTreeClassifier
from dtrees.model_selection.pipeline_scores import PipelineWork, Transformed
from dtrees.model_selection.pipelines import settings_of

X, Y = load_iris(return_X_y=True)
PIPELINE = Pipeline([
    ("scale", StandardScaler()),
    ("tree", DecisionTreeClassifier(random_state=0)),
])  # fmt: skip
SPLIT = (np.arange(0, 150, 2), np.arange(1, 150, 2))
CANDIDATES = [{"tree__max_depth": depth} for depth in (1, 2, None, 0)]


def work(error_score=np.nan):
    return PipelineWork(PIPELINE, X, Y, None, None, error_score, True)


def test_every_score_is_that_of_a_fit():
    (setting,) = settings_of(PIPELINE, CANDIDATES)
    found = work().score(setting, SPLIT, 4)
    train, test = SPLIT
    for place in range(3):
        alone = clone(PIPELINE).set_params(**CANDIDATES[place]).fit(X[train], Y[train])
        assert found.test["score"][place, 0] == alone.score(X[test], Y[test])
        assert found.train["score"][place, 0] == alone.score(X[train], Y[train])
    assert np.isnan(found.test["score"][3, 0])
    assert sum(found.failures.values()) == 1


def test_scores_of_all_settings_and_splits():
    settings = settings_of(PIPELINE, CANDIDATES)
    found = work().score_all(settings, [SPLIT, SPLIT[::-1]], 4, Parallel(n_jobs=1))
    assert found.test["score"].shape == found.train["score"].shape == (4, 2)
    assert np.isnan(found.test["score"][3]).all()
    assert found.failures.total() == 2


def test_a_side_is_transformed_once():
    seen = []

    class Steps:
        def transform(self, X):
            seen.append(len(X))
            return X * 2

    transformed = Transformed(Steps(), X)
    first, table = transformed.rows(np.arange(5))
    assert transformed.rows(np.arange(5))[1] is table
    assert transformed.rows(np.arange(7))[0] != first
    assert seen == [5, 7]
