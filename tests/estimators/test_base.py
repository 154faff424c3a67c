"""Parameters are checked, fits are reported, and a file says what a fit may learn."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    RandomForestRegressor,
)
from tests.estimators.test_errors import CLASSES, both, refused
from tests.estimators.test_errors import X as TABLE

X, Y = np.arange(40.0).reshape(-1, 1), np.arange(40) % 2
MODELS = [
    DecisionTreeClassifier(),
    RandomForestRegressor(2, random_state=0),
    GradientBoostingClassifier(max_iter=2),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
class TestParts:
    def test_are_accepted_and_make_the_model_again(self, model):
        parts = model.fit(X, Y)._parts()
        model._check_parts(parts)
        again = model._of_parts(parts)
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_without_an_attribute_are_refused(self, model):
        parts = model.fit(X, Y)._parts()
        for name in parts.attributes:
            rest = {key: value for key, value in parts.attributes.items() if key != name}
            if name in model._learns_at_times:
                continue
            with pytest.raises(ValueError, match=f"there is no attribute {name!r}"):
                model._check_parts(replace(parts, attributes=rest))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_reports_are_of_the_fit_and_stay_behind(model):
    report = model.fit(X, Y).fit_report_
    assert (report["regime"], report["reason"]) == ("local", "no client")
    assert set(report["seconds"]) == {"coding", "growth"}
    report["seconds"].clear()
    assert model.fit_report_["seconds"]  # a copy
    with pytest.raises(AttributeError, match="no fit_report_: it was not made by fit"):
        _ = pickle.loads(pickle.dumps(model)).fit_report_


@both
def test_parameters_are_looked_at_before_the_table(kind):
    refused(kind(max_depth=-1), "max_depth", None, None)


@both
@pytest.mark.parametrize(
    "method",
    ["predict", "apply", "decision_path", "get_depth", "get_n_leaves", "feature_importances_"],
)
def test_unfitted(kind, method):
    def ask():
        value = getattr(kind(), method)
        return value(TABLE) if method in ("predict", "apply", "decision_path") else value()

    with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
        ask()


def test_unfitted_shares():
    for method in ("predict_proba", "predict_log_proba"):
        with pytest.raises(NotFittedError):
            getattr(DecisionTreeClassifier(), method)(TABLE)


@both
def test_names_do_not_outlive_a_new_fit(kind):
    tree = kind().fit(pd.DataFrame(TABLE, columns=["a", "b", "c"]), CLASSES)
    assert_array_equal(tree.feature_names_in_, ["a", "b", "c"])
    tree.fit(TABLE[:, :2], CLASSES)
    assert not hasattr(tree, "feature_names_in_")
    assert tree.n_features_in_ == 2


def test_tags():
    for tree in (DecisionTreeClassifier(), DecisionTreeRegressor()):
        tags = sklearn.utils.get_tags(tree)
        assert tags.input_tags.sparse
        assert tags.input_tags.allow_nan
        assert tags.input_tags.categorical
        assert tags.target_tags.required
        assert tags.target_tags.multi_output
        assert not tags.non_deterministic
        assert tags.requires_fit
    assert sklearn.base.is_classifier(DecisionTreeClassifier())
    assert sklearn.base.is_regressor(DecisionTreeRegressor())


@pytest.mark.parametrize(
    ("parameters", "attributes", "words"),
    [
        ({"max_depth": 0}, {}, "'max_depth' parameter"),
        ({}, {"n_classes_": 0}, "'n_classes_' attribute"),
        ({}, {"n_outputs_": True}, "'n_outputs_' attribute"),
        ({}, {"classes_": None}, "'classes_' attribute"),
        ({}, {"max_features_": ...}, "there is no attribute 'max_features_'"),
    ],
)
def test_parts_that_no_fit_has(parameters, attributes, words):
    parts = DecisionTreeClassifier().fit(TABLE, CLASSES)._parts()
    found = {**parts.attributes, **attributes}
    found = {name: value for name, value in found.items() if value is not ...}
    broken = replace(parts, parameters=parts.parameters | parameters, attributes=found)
    DecisionTreeClassifier._check_parts(parts)
    with pytest.raises(ValueError, match=words):
        DecisionTreeClassifier._check_parts(broken)


@pytest.mark.parametrize("random_state", [None, 3, np.random.RandomState(3)])
def test_an_unfitted_twin_is_what_clone_makes(random_state):
    tree = DecisionTreeClassifier(max_depth=2, random_state=random_state).fit(TABLE, CLASSES)
    twin, made = tree._unfitted(), clone(tree)
    assert vars(twin) | {"random_state": 0} == vars(made) | {"random_state": 0}
    assert type(twin.random_state) is type(random_state)
    if isinstance(random_state, np.random.RandomState):
        assert twin.random_state is not random_state  # as its draws are those of one fit
    assert not hasattr(twin, "tree_")


def test_constructors_keep_parameters_and_nothing_else():
    class Mine(DecisionTreeClassifier):
        def __init__(self, max_depth=2):
            note = "of the constructor"
            super().__init__(max_depth=max_depth)
            self._set_all(locals())
            assert note

    assert vars(Mine()) == vars(DecisionTreeClassifier(max_depth=2))
