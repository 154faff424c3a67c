"""What scikit-learn finds out about a boosted model: importance by permutation, dependence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 3)), columns=list("abc")).assign(
    kind=pd.Categorical(RNG.choice(["up", "down"], 300))
)
SIGN = np.where(X["kind"] == "up", 1.0, -1.0)
F = (X["a"] * 2 + SIGN).to_numpy()
MODELS = {
    "numbers": (GradientBoostingRegressor(max_iter=30), F),
    "two classes": (GradientBoostingClassifier(max_iter=30), F > 0),
    "three classes": (GradientBoostingClassifier(max_iter=20), np.digitize(F, [-1, 1])),
}
GRID = [-1.0, 0.0, 1.0]


def fitted(name):
    model, y = MODELS[name]
    return model.fit(X, y), y


@pytest.mark.parametrize("name", MODELS)
def test_importance_by_permutation(name):
    model, y = fitted(name)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert set(np.argsort(found)[-2:]) == {0, 3}
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 3}
    assert np.abs(found[[1, 2]]).max() < found.max() / 10


def by_hand(model, response, column, values):
    """The mean answer of all rows with a column set to each of some values."""
    means = []
    for value in values:
        changed = X.assign(**{column: value})
        if column == "kind":
            changed["kind"] = pd.Categorical(changed["kind"], categories=X["kind"].cat.categories)
        means.append(getattr(model, response)(changed).mean(axis=0))
    return np.atleast_2d(np.transpose(means))


@pytest.mark.parametrize("name", MODELS)
def test_partial_dependence_is_the_mean_answer(name):
    model, _ = fitted(name)
    response = "predict" if name == "numbers" else "decision_function"
    asked = {"method": "brute", "custom_values": {"a": np.array(GRID)}}
    if name != "numbers":
        asked["response_method"] = response
    found = partial_dependence(model, X, ["a"], **asked)["average"]
    np.testing.assert_allclose(found, by_hand(model, response, "a", GRID), rtol=1e-12)
    assert np.ptp(found[-1]) > 0.3


def test_partial_dependence_of_shares_and_of_a_category():
    model, _ = fitted("two classes")
    asked = {"response_method": "predict_proba", "method": "brute"}
    found = partial_dependence(model, X, ["kind"], categorical_features=["kind"], **asked)
    expected = by_hand(model, "predict_proba", "kind", found["grid_values"][0])
    np.testing.assert_allclose(found["average"], expected[1:], rtol=1e-12)
    up = found["grid_values"][0].tolist().index("up")
    assert found["average"][0, up] > found["average"][0, 1 - up]


def test_partial_dependence_display():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    model, _ = fitted("two classes")
    display = PartialDependenceDisplay.from_estimator(
        model, X, ["a", ("a", "b"), "kind"], categorical_features=["kind"], grid_resolution=5
    )
    assert display.axes_.size == 3
