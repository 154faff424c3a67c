"""Boosted models as text: the start, and the trees of the first iterations."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor, export_text

X = pd.DataFrame({"x": np.arange(60.0), "c": pd.Categorical(["a", "b", "c"] * 20)})
TWO = np.where(X["x"] < 30, "no", "yes")
PARAMETERS = {"max_leaf_nodes": 2, "min_samples_leaf": 5, "max_iter": 5, "l2_regularization": 0}


def test_two_classes():
    model = GradientBoostingClassifier(**PARAMETERS).fit(X, TWO)
    assert export_text(model, max_iter=2) == (
        "start: [0.00] (log odds of class: yes)\n"
        "\n"
        "iteration 1\n"
        "|--- x <= 29.50\n"
        "|   |--- value: [-0.200]\n"
        "|--- x >  29.50\n"
        "|   |--- value: [0.200]\n"
        "\n"
        "iteration 2\n"
        "|--- x <= 29.50\n"
        "|   |--- value: [-0.182]\n"
        "|--- x >  29.50\n"
        "|   |--- value: [0.182]\n"
        "\n"
        "3 iterations more\n"
    )


def test_three_classes():
    y = X["c"].to_numpy(dtype=object)
    model = GradientBoostingClassifier(**PARAMETERS).fit(X, y)
    said = export_text(model, max_iter=1, class_names=["p", "q", "r"], feature_names=["u", "v"])
    heads = [line for line in said.split("\n") if line and not line.startswith("|")]
    assert heads == [
        *(f"start: [0.00] (class: {name})" for name in "pqr"),
        *(f"iteration 1, class: {name}" for name in "pqr"),
        "4 iterations more",
    ]
    assert "|--- v in {a}" in said


def test_numbers_and_their_logarithms():
    y = np.where(X["x"] < 30, 1.0, 3.0)
    said = export_text(GradientBoostingRegressor(**PARAMETERS).fit(X, y))
    assert said.startswith(
        "start: [2.00]\n\niteration 1\n|--- x <= 29.50\n|   |--- value: [-0.100]"
    )
    assert said.endswith("2 iterations more\n")
    said = export_text(GradientBoostingRegressor("poisson", **PARAMETERS).fit(X, y))
    assert said.startswith("start: [0.69] (logarithm of the prediction)\n")


@pytest.mark.parametrize("target", [TWO, X["c"].to_numpy(dtype=object)])
def test_a_reader_of_the_whole_text_predicts_what_the_model_does(target):
    model = GradientBoostingClassifier(max_iter=3, max_leaf_nodes=2).fit(X[["x"]], target)
    start, *trees = export_text(model, max_iter=None, decimals=8).split("\n\n")
    raw = np.repeat([[float(v) for v in re.findall(r"start: \[(.*?)\]", start)]], len(X), axis=0)
    for number, text in enumerate(trees):
        assert text.startswith(f"iteration {number // raw.shape[1] + 1}")
        values = [float(v) for v in re.findall(r"value: \[(.*?)\]", text)]
        step = np.full(len(X), values[0])
        if len(values) > 1:
            step[X["x"] > float(re.search("<= (.*)", text)[1])] = values[1]
        raw[:, number % raw.shape[1]] += step
    expected = model.decision_function(X[["x"]]).reshape(raw.shape)
    np.testing.assert_allclose(raw, expected, atol=1e-6)


def test_options_of_the_trees_hold():
    model = GradientBoostingClassifier(max_iter=2, min_samples_leaf=5).fit(X, TWO)
    said = export_text(model, max_depth=0, spacing=1, max_iter=1)
    assert all(line.startswith("|") or not line for line in said.split("\n")[3:-3])
    assert "1 iteration more" in said
    assert export_text(model, max_iter=0).endswith("\n\n2 iterations more\n")


def test_errors():
    with pytest.raises(NotFittedError):
        export_text(GradientBoostingClassifier())
    model = GradientBoostingClassifier(max_iter=1).fit(X, TWO)
    with pytest.raises(ValueError, match="'max_iter' parameter of export_text must be an int"):
        export_text(model, max_iter=-1)
    with pytest.raises(ValueError, match="feature_names must contain 2 elements, got 1"):
        export_text(model, feature_names=["a"])
    with pytest.raises(ValueError, match="Got 3 while the tree was fitted with 2 classes"):
        export_text(model, class_names=["a", "b", "c"])
