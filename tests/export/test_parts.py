"""A fitted estimator in pieces: every attribute of every fit, nothing else, and what fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dtrees import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.export import load, models, save
from dtrees.export.parts import check_attributes, is_name_of_bags
from dtrees.export.trees import check_trees
from tests.export.test_hostile_files import small_model


def test_what_users_add_is_not_saved(tmp_path):
    model, _ = small_model()
    model.note_ = "mine"
    save(model, tmp_path / "model")
    assert not hasattr(load(tmp_path / "model"), "note_")


def test_every_attribute_of_every_fit_is_saved(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
    X = pd.DataFrame(X, columns=list("abc"))
    for name in models.ESTIMATORS:
        kind = getattr(models.dtrees, name)
        forest = {} if name.startswith("Decision") else {"n_estimators": 30, "oob_tol": 0.0}
        if name.startswith("Isolation"):
            forest = {"n_estimators": 3}
        if name.startswith(("DecisionTreeR", "RandomForestR")):
            forest["keep_rows"] = True
        if name.startswith("Extra"):
            forest["bootstrap"] = True
        if name.startswith("AdaBoost"):
            forest = {"n_estimators": 3}
        if name.startswith("Gradient"):
            forest = {"max_iter": 3, "early_stopping": True}
        model = kind(random_state=0, **forest).fit(X, y)
        save(model, tmp_path / "model")
        left_out = {"_fit_report"}
        assert vars(load(tmp_path / "model")).keys() == vars(model).keys() - left_out


X = pd.DataFrame({"x": np.arange(60.0), "c": pd.Categorical(["a", "b", "c"] * 20)})
Y = np.arange(60) % 4 > 1
FOREST = RandomForestClassifier(2, random_state=0).fit(X, Y)
BOOSTED = GradientBoostingClassifier(max_iter=2, min_samples_leaf=2).fit(X, np.arange(60) % 3)


@pytest.mark.parametrize("model", [FOREST, BOOSTED])
def test_fitted_models_pass(model):
    parts = model._parts()
    check_trees(parts.trees, parts.book)
    check_attributes(parts.attributes, type(model), parts.trees, parts.book)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"n_features_in_": 3}, "n_features_in_ cannot be"),
        ({"feature_names_in_": np.array(["x"], dtype=object)}, "feature_names_in_"),
        ({"classes_": [1, 2]}, "classes_"),
        ({"classes_": np.array([[1, 2]])}, "classes_"),
        ({"classes_": np.array([1, 1])}, "classes_"),
        ({"n_classes_": 9}, "n_classes_"),
    ],
)
@pytest.mark.parametrize("model", [FOREST, BOOSTED])
def test_attributes(model, changes, match):
    parts = model._parts()
    attributes = {**parts.attributes, **changes}
    with pytest.raises(ValueError, match=match):
        check_attributes(attributes, type(model), parts.trees, parts.book)


def test_trees_of_another_kind():
    voted, added = FOREST._parts(), BOOSTED._parts()
    with pytest.raises(ValueError, match="the criterion cannot be"):
        check_attributes(voted.attributes, RandomForestClassifier, added.trees, added.book)
    with pytest.raises(ValueError, match="the criterion cannot be"):
        check_attributes(added.attributes, GradientBoostingClassifier, voted.trees, voted.book)
    five = {**voted.attributes, "classes_": np.arange(5), "n_classes_": 5}
    with pytest.raises(ValueError, match="classes_ cannot be"):
        check_attributes(five, RandomForestClassifier, voted.trees, voted.book)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [("feature", 7, "the column of a node"), ("threshold", np.nan, "the threshold of a node")],
)
def test_tests_of_nodes(name, value, match):
    model = GradientBoostingClassifier(max_iter=1).fit(X[["x"]], Y)
    tree, book = model.forest_[0], model.codebook_
    array = getattr(tree, name).copy()
    array[0] = value
    with pytest.raises(ValueError, match=match):
        check_trees((replace(tree, **{name: array}),), book)
    with pytest.raises(ValueError, match="the number of columns"):
        check_trees((replace(tree, n_columns=5),), book)


def test_codes_matter_where_categories_have_some():
    mixed = pd.DataFrame({"h": pd.Series([i if i % 3 else "w" for i in range(60)], dtype=object)})
    target = np.arange(60) % 3 * (np.arange(60) > 30)
    for table, is_refused in ((mixed, True), (X[["x"]], False)):
        model = GradientBoostingClassifier(max_iter=1, min_samples_leaf=2).fit(table, target)
        tree, book = model.forest_[0], model.codebook_
        assert (tree.code > 0).any()
        other = replace(tree, code=np.where(tree.code > 0, 10**6, 0).astype(np.uint32))
        if is_refused:
            with pytest.raises(ValueError, match="the code of a node"):
                check_trees((other,), book)
        else:  # of a warm start
            check_trees((other,), book)


def test_names_of_bags():
    name = f"7 0x1.0000000000000p+0 60 {'0' * 32}"
    assert is_name_of_bags(name, 7)
    assert not is_name_of_bags(name, 8)
    assert not is_name_of_bags(name.replace("60", "0"), 7)
    assert not is_name_of_bags(name.replace("p+0", "p+00"), 7)


@pytest.mark.parametrize("model", [RandomForestRegressor(2), GradientBoostingRegressor(max_iter=2)])
@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", 1], ["a", "b", "c"]])
def test_names_of_targets(model, names):
    parts = model.fit(X, pd.DataFrame({"a": X["x"], "b": -X["x"]}))._parts()
    wrong = {**parts.attributes, "target_names_in_": np.array(names, dtype=object)}

    def check():
        check_attributes(wrong, type(model), parts.trees, parts.book)
        model._check_parts(replace(parts, attributes=wrong))

    with pytest.raises(ValueError, match="target_names_in_"):
        check()
