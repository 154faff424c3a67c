"""The data frame of a model says what its nodes say, in LightGBM's columns."""

import doctest
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from dtrees import DecisionTreeClassifier
from dtrees.export import dataframe, nodes, to_lightgbm, trees_to_dataframe
from tests.export.examples import NUMBERS, examples, fitted

LARGE = 1e300  # what stands for all numbers


@given(examples())
def test_rows_are_nodes(example):
    frame = trees_to_dataframe(example.model)
    found = list(nodes(example.model))
    assert len(frame) == len(found)
    assert frame["node_index"].is_unique
    kinds = ["L" if node.is_leaf else "S" for node in found]
    ids = {
        (n.tree, n.node): f"{n.tree}-{kind}{n.node}" for n, kind in zip(found, kinds, strict=True)
    }
    values = [name for name in frame if name.startswith("value")]
    told = frame.astype(object).where(frame.notna(), None)
    for row, node in zip(told.to_dict("records"), found, strict=True):
        assert row["node_index"] == ids[node.tree, node.node]
        assert (row["tree_index"], row["node_depth"]) == (node.tree, node.depth + 1)
        assert (row["weight"], row["count"]) == (node.weight, node.n_samples)
        assert [row[name] for name in values] == node.value.tolist()
        assert row["parent_index"] == ids.get((node.tree, node.parent))
        assert row["left_child"] == ids.get((node.tree, node.left))
        assert row["right_child"] == ids.get((node.tree, node.right))
        assert row["split_feature"] == node.name
        assert row["decision_type"] == node.test
        assert row["categories"] == node.categories
        if node.is_leaf:
            assert row["split_gain"] is row["threshold"] is row["missing_type"] is None
            assert row["missing_direction"] is row["unseen_direction"] is None
            continue
        assert row["split_gain"] == node.gain
        assert row["missing_direction"] == ("left" if node.missing_left else "right")
        assert row["unseen_direction"] == {True: "left", False: "right"}.get(node.unseen_left)
        assert row["threshold"] == node.threshold


def test_columns_are_those_of_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    example = fitted("GradientBoosting", ["number", "missing"])
    booster = lightgbm.train({"verbose": -1}, lightgbm.Dataset(example.X, example.y), 3)
    theirs = booster.trees_to_dataframe()
    ours = trees_to_dataframe(example.model)
    added = ["categories", "unseen_direction"]
    assert ours.columns.drop(added).tolist() == theirs.columns.tolist()
    assert set(ours["decision_type"].dropna()) == set(theirs["decision_type"].dropna())
    assert set(ours["missing_direction"].dropna()) <= {"left", "right"}
    assert ours["node_depth"].min() == theirs["node_depth"].min() == 1
    for name in ("tree_index", "node_depth", "split_gain", "value", "count"):
        assert ours[name].dtype == theirs[name].dtype


@given(examples(columns=NUMBERS, kinds=["GradientBoosting"]))
@settings(max_examples=20)
def test_lightgbm_says_the_same_of_its_text(example):
    lightgbm = pytest.importorskip("lightgbm")
    ours = trees_to_dataframe(example.model)
    theirs = lightgbm.Booster(model_str=to_lightgbm(example.model)).trees_to_dataframe()
    assert len(ours) == len(theirs)
    ours["split_feature"] = ours["split_feature"].str.replace(" ", "_")
    for name in ("tree_index", "node_depth", "split_feature", "decision_type", "missing_direction"):
        assert ours[name].equals(theirs[name].astype(ours[name].dtype)), name
    is_told = theirs["weight"].notna().to_numpy()  # not of trees of one leaf
    assert is_told[theirs["split_feature"].notna()].all()
    ours, theirs = ours[is_told], theirs[is_told]
    for name in ("threshold", "split_gain", "weight"):  # gains have six digits in the text
        found = np.minimum(theirs[name].to_numpy(dtype=np.float64), LARGE)
        np.testing.assert_allclose(found, np.minimum(ours[name], LARGE), rtol=1e-5, atol=1e-30)


def test_types():
    frame = trees_to_dataframe(fitted("RandomForest", ["number", "category"], n_classes=2).model)
    assert frame["threshold"].dtype == np.float64
    of_numbers = frame["split_feature"] == "number"
    assert frame.loc[of_numbers, "unseen_direction"].isna().all()
    assert frame.loc[frame["split_feature"] == "category", "unseen_direction"].notna().all()
    assert frame[["value_no", "value_yes"]].sum(axis=1).to_numpy() == pytest.approx(1.0)
    one_class = DecisionTreeClassifier().fit([[0.0], [1.0]], ["yes", "yes"])
    assert trees_to_dataframe(one_class)["value_yes"].tolist() == [1.0]
    frame = trees_to_dataframe(fitted("DecisionTree", ["date"]).model)
    assert frame["threshold"].dtype.kind == "M"
    frame = trees_to_dataframe(fitted("DecisionTree", ["date", "number"]).model)
    assert {type(t) for t in frame["threshold"].dropna()} == {np.datetime64, float}
    coded = trees_to_dataframe(fitted("DecisionTree", ["number"]).model.tree_.model)
    assert isinstance(coded, pd.DataFrame)
    assert set(coded["split_feature"].dropna()) == {"feature_0"}


def test_errors(monkeypatch):
    with pytest.raises(TypeError, match="must be a fitted tree, forest or boosted model"):
        trees_to_dataframe(3)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas.*pip install 'dask-dtrees\[pandas\]'"):
        trees_to_dataframe(3)


def test_the_example():
    assert doctest.testmod(dataframe).failed == 0
