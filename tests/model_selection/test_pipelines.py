"""Candidates of a pipeline by what they ask of its steps."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.model_selection.pipelines import (
    PipelineWork,
    Transformed,
    ends_in_dtrees,
    last_step,
    settings_of,
    unsupported_pipeline,
)
from dtrees.model_selection.prepare import NotShareableError

TREE = DecisionTreeClassifier()
PIPELINE = Pipeline([("scale", StandardScaler()), ("tree", TREE)])
NESTED = Pipeline([("scale", StandardScaler()), ("inner", Pipeline([("tree", TREE)]))])


def test_last_steps():
    assert last_step(PIPELINE) == ("tree", TREE)
    assert last_step(NESTED) == ("inner__tree", TREE)
    assert ends_in_dtrees(NESTED)
    assert not ends_in_dtrees(TREE)
    assert not ends_in_dtrees(Pipeline([("ridge", RidgeClassifier())]))


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


def test_other_last_steps():
    forest = RandomForestClassifier()
    (setting,) = settings_of(PIPELINE, [{"tree": TREE}, {"tree": forest}])
    assert [type(growth.given) for growth in setting.growths] == [type(TREE), type(forest)]
    with pytest.raises(NotShareableError, match="tree is RidgeClassifier in a candidate"):
        settings_of(PIPELINE, [{"tree": RidgeClassifier()}])
    with pytest.raises(NotShareableError, match="inner is a parameter of a candidate"):
        settings_of(NESTED, [{"inner": TREE}])


def test_reasons():
    assert unsupported_pipeline(PIPELINE, [0, 1], ["tree__sample_weight"]) is None
    assert unsupported_pipeline(PIPELINE, None, []) == "there is no y"
    assert unsupported_pipeline(PIPELINE, [0, 1], ["sample_weight"]) == "fit is given sample_weight"


X, Y = load_iris(return_X_y=True)
PIPELINE_OF_PIPELINE_SCORES = Pipeline([
    ("scale", StandardScaler()),
    ("tree", DecisionTreeClassifier(random_state=0)),
])  # fmt: skip
SPLIT = (np.arange(0, 150, 2), np.arange(1, 150, 2))
CANDIDATES = [{"tree__max_depth": depth} for depth in (1, 2, None, 0)]


def work(error_score=np.nan):
    return PipelineWork(PIPELINE_OF_PIPELINE_SCORES, X, Y, None, None, error_score, True)


def test_every_score_is_that_of_a_fit():
    (setting,) = settings_of(PIPELINE_OF_PIPELINE_SCORES, CANDIDATES)
    found = work().score(setting, SPLIT, 4)
    train, test = SPLIT
    for place in range(3):
        alone = (
            clone(PIPELINE_OF_PIPELINE_SCORES)
            .set_params(**CANDIDATES[place])
            .fit(X[train], Y[train])
        )
        assert found.test["score"][place, 0] == alone.score(X[test], Y[test])
        assert found.train["score"][place, 0] == alone.score(X[train], Y[train])
    assert np.isnan(found.test["score"][3, 0])
    assert sum(found.failures.values()) == 1


def test_scores_of_all_settings_and_splits():
    settings = settings_of(PIPELINE_OF_PIPELINE_SCORES, CANDIDATES)
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
