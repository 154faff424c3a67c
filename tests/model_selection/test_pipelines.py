"""Candidates of a pipeline by what they ask of its steps."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.exceptions import NotSharedWarning
from dtrees.model_selection import (
    GridSearchCV,
)
from dtrees.model_selection.pipelines import Transformed, settings_of

TREE = DecisionTreeClassifier()
PIPELINE = Pipeline([("scale", StandardScaler()), ("tree", TREE)])


def test_a_setting_has_candidates_with_the_same_steps():
    candidates = [
        {"scale__with_mean": mean, "tree__max_depth": depth, "tree__criterion": criterion}
        for mean in (True, False)
        for criterion in ("gini", "entropy")
        for depth in (1, 2)
    ]
    settings = settings_of(PIPELINE, candidates)
    assert [setting.places for setting in settings] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [growth.places for growth in settings[1].growths] == [[4, 5], [6, 7]]
    assert settings[0].steps == {"scale__with_mean": True}


def test_values_that_no_fit_takes():
    (setting,) = settings_of(PIPELINE, [{"tree__max_depth": 1}, {"tree__max_depth": 0}])
    assert list(setting.errors) == [1]
    assert "max_depth" in str(setting.errors[1])


X, Y = load_iris(return_X_y=True)


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


@pytest.mark.one_of(2)
@pytest.mark.parametrize("made", [np.asarray, np.ndarray.tolist, pd.DataFrame])
@pytest.mark.parametrize("tree", [DecisionTreeRegressor, DecisionTreeClassifier])
def test_several_targets_are_shared(tree, made):
    both = X[:, :2] + 0.1 if tree is DecisionTreeRegressor else (X[:, :2] > [5.8, 3]).astype(int)
    pipeline = Pipeline([("scale", StandardScaler()), ("tree", tree(random_state=0))])
    given = pipeline, {"tree__max_depth": [1, 2]}
    folds = KFold(3, shuffle=True, random_state=0)
    with warnings.catch_warnings(action="error", category=NotSharedWarning):
        ours = GridSearchCV(*given, cv=folds).fit(X, made(both)).cv_results_
    theirs = sklearn.model_selection.GridSearchCV(*given, cv=folds).fit(X, both).cv_results_
    np.testing.assert_allclose(ours["split1_test_score"], theirs["split1_test_score"])
