"""Candidates of a pipeline by what they ask of its steps."""

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.model_selection.eligibility import NotShareableError
from dtrees.model_selection.pipelines import (
    ends_in_dtrees,
    last_step,
    settings_of,
    unsupported_pipeline,
)

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
