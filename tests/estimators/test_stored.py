"""Parameters are checked, fits are reported, and a file says what a fit may learn."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dtrees import DecisionTreeClassifier, GradientBoostingClassifier, RandomForestRegressor
from dtrees.constraints import InvalidParameterError

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

    def test_of_another_type_are_refused(self, model):
        parts = model.fit(X, Y)._parts()
        attributes = {**parts.attributes, "n_features_in_": 1.0}
        with pytest.raises(InvalidParameterError, match="'n_features_in_' attribute of"):
            model._check_parts(replace(parts, attributes=attributes))
        parameters = {**parts.parameters, "max_depth": 0}
        with pytest.raises(InvalidParameterError, match="'max_depth' parameter of"):
            model._check_parts(replace(parts, parameters=parameters))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_reports_are_of_the_fit_and_stay_behind(model):
    report = model.fit(X, Y).fit_report_
    assert (report["regime"], report["reason"]) == ("local", "no client")
    assert set(report["seconds"]) == {"coding", "growth"}
    report["seconds"].clear()
    assert model.fit_report_["seconds"]  # a copy
    with pytest.raises(AttributeError, match="no fit_report_: it was not made by fit"):
        _ = pickle.loads(pickle.dumps(model)).fit_report_
