"""`show`: what a model file says of itself."""

import numpy as np
import pytest

import dtrees
from dtrees.export import save
from tests.cli.asking import ask, ask_json, fit

pd = pytest.importorskip("pandas")


def test_json_of_fit_and_show(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    fitted = ask_json("fit", csv, "--target", "class", "--out", out, "--max-depth", 2)
    shown = ask_json("show", out)
    assert set(fitted) - set(shown) == {"target", "rows", "seconds"}
    assert {name: fitted[name] for name in shown} == shown
    assert set(shown) == {
        *("format", "dtrees", "file", "bytes", "estimator", "task", "trees", "depth", "n_leaves"),
        *("parameters", "columns", "classes"),
    }
    assert shown["format"] == "dtrees.model/1"
    assert shown["classes"] == ["no", "yes"]
    assert shown["parameters"]["max_depth"] == 2
    assert [column["name"] for column in shown["columns"]] == ["number", "word", "mixed", "amount"]


def test_show_a_tree_and_a_forest(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    fit(csv, out, "--target", "class")
    shown = ask("show", out).stdout
    assert "DecisionTreeClassifier(n_jobs=-1, random_state=0)" in shown
    assert "predicts 2 classes: no, yes" in shown
    assert "4 columns, 1 of them used" in shown
    assert "The tree:" in shown
    assert "|--- amount <= " in shown
    fit(csv, out, "--target", "amount", "--model", "bagging", "--oob", "--trees", 40)
    shown = ask("show", out).stdout
    assert "BaggingRegressor(n_estimators=40," in shown
    assert "40 trees, depth up to" in shown
    assert "predicts numbers" in shown
    assert "out-of-bag R² 0." in shown
    assert "\x1b" not in shown


def test_show_a_model_from_python(tmp_path):
    X = np.arange(40.0).reshape(20, 2)
    model = dtrees.DecisionTreeClassifier(class_weight={0: 1.0, 1: 2.0}).fit(X, X[:, 0] > 20)
    save(model, tmp_path / "a.dtrees")
    shown = ask_json("show", tmp_path / "a.dtrees")
    assert shown["classes"] == [False, True]
    assert shown["parameters"]["class_weight"] == "{0: 1.0, 1: 2.0}"
    assert [column["name"] for column in shown["columns"]] == ["0", "1"]
