"""scikit-learn's estimators of our trees predict what the models predict, and tools read them."""

import doctest
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestRegressor,
)
from dtrees.export import nodes, sklearn_trees, to_sklearn
from dtrees.export.model_nodes import ModelNodes
from tests.export.examples import NUMBERS, examples, fitted, predicted

FORESTS = ("DecisionTree", "RandomForest", "ExtraTrees", "Bagging")


def of_float32(rows):
    """The rows with numbers that float32 holds, and the same as a float32 matrix."""
    rows = rows.copy()
    for name in rows.select_dtypes("floating"):
        rows[name] = rows[name].astype(np.float32).astype(rows[name].dtype)
    return rows, rows.astype(np.float32).to_numpy()


def at_thresholds(example):
    """Rows at the thresholds of the model and right beside them, in float32."""
    found = [node for node in nodes(example.model) if not node.is_leaf]
    if not found:
        return example.X
    rows = example.X.sample(3 * len(found), replace=True, random_state=0).reset_index(drop=True)
    for i, node in enumerate(found):
        if np.isfinite(node.threshold) and rows[node.name].dtype.kind == "f":
            middle = np.float32(node.threshold)
            ends = np.nextafter(middle, np.float32([-np.inf, np.inf]))
            rows.loc[3 * i : 3 * i + 2, node.name] = [ends[0], middle, ends[1]]
    return rows


def said(estimator, matrix):
    if hasattr(estimator, "classes_"):
        return estimator.predict_proba(matrix)
    return estimator.predict(matrix)[:, None]


@given(examples(columns=NUMBERS, kinds=FORESTS))
def test_predictions_are_equal_and_so_are_leaves(example):
    other = to_sklearn(example.model)
    for given_rows in example.X, example.rows, at_thresholds(example):
        rows, matrix = of_float32(given_rows)
        frame = pd.DataFrame(matrix, columns=rows.columns)
        np.testing.assert_allclose(said(other, frame), predicted(example.model, rows), rtol=1e-12)
        assert np.array_equal(other.apply(frame), example.model.apply(rows))
        if hasattr(example.model, "classes_"):
            assert np.array_equal(other.predict(frame), example.model.predict(rows))


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_tree_of_a_boosted_model_predicts_its_steps(n_classes):
    example = fitted("GradientBoosting", ["number", "missing"], n_classes=n_classes)
    model, view = example.model, ModelNodes.of(example.model)
    rows, matrix = of_float32(example.rows)
    frame = pd.DataFrame(matrix, columns=rows.columns)
    raw = np.tile(view.start, (len(rows), 1))
    for number in range(len(view.trees)):
        tree = to_sklearn(model, tree=number)
        assert isinstance(tree, sklearn.tree.DecisionTreeRegressor)
        raw[:, number % len(view.start)] += tree.predict(frame)
    expected = model.decision_function(rows) if n_classes else model.predict(rows)
    np.testing.assert_allclose(raw.squeeze(), expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(TypeError, match=r"add up.*to_lightgbm.*to_sklearn\(model, tree=0\)"):
        to_sklearn(model)


def test_what_is_there_is_scikit_learns():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["a", "b", "c"], dtype=object)[y]
    tree = DecisionTreeClassifier(max_depth=3).fit(X, names)
    other = to_sklearn(tree)
    theirs = sklearn.tree.DecisionTreeClassifier(max_depth=3).fit(X, names)
    missing = {name for name in vars(theirs) if name.endswith("_")} - set(vars(other))
    assert missing <= {"min_samples_split_", "min_samples_leaf_"}
    assert other.classes_.tolist() == ["a", "b", "c"]
    assert other.feature_names_in_.tolist() == X.columns.tolist()
    np.testing.assert_allclose(other.feature_importances_, tree.feature_importances_)
    assert other.get_depth() == tree.get_depth()
    text = sklearn.tree.export_text(other, feature_names=list(X.columns))
    assert text.startswith("|--- petal")
    assert other.criterion == "gini"
    for name, said in (("entropy", "entropy"), ("chi_square", "gini")):
        drawn = to_sklearn(DecisionTreeClassifier(criterion=name, max_depth=2).fit(X, names))
        assert f"{said} = " in sklearn.tree.export_graphviz(drawn)
    assert to_sklearn(tree.tree_).classes_.tolist() == [0, 1, 2]
    forest = ExtraTreesClassifier(3, random_state=0).fit(X, names)
    other = to_sklearn(forest)
    assert isinstance(other, RandomForestClassifier)
    np.testing.assert_allclose(other.feature_importances_, forest.feature_importances_)
    one = to_sklearn(forest, tree=1)
    np.testing.assert_allclose(one.predict_proba(X), forest[1].predict_proba(X))


def test_columns_that_are_no_numbers_are_refused_by_name():
    for kind in ("category", "hybrid", "date"):
        model = fitted("DecisionTree", ["number", kind]).model
        with pytest.raises(ValueError, match=rf"cannot write '{kind} 1': .*to_onnx writes all"):
            to_sklearn(model)
    assert to_sklearn(fitted("DecisionTree", ["bool", "whole"]).model)
    X = pd.DataFrame({"a": [0.0, 1.0] * 5, "day": pd.Timestamp("2020-01-01")})
    other = to_sklearn(DecisionTreeClassifier().fit(X, [0, 1] * 5))
    assert other.predict(X.assign(day=9.0)).tolist() == [0, 1] * 5


@pytest.mark.one_of(2)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", FORESTS)
def test_rows_of_float64_that_the_model_was_fitted_on_come_to_the_same_leaves(kind):
    example = fitted(kind, ["number"] * 4, n_rows=600)  # more numbers than bins
    assert np.array_equal(
        to_sklearn(example.model).apply(example.X), example.model.apply(example.X)
    )
    single = example.X.astype(np.float32)
    model = clone(example.model).fit(single, example.y)
    rows = at_thresholds(replace(example, model=model, X=single))
    assert np.array_equal(to_sklearn(model).apply(rows), model.apply(rows))


def beside_thresholds(model, X):
    """Rows of the fit, with cells at thresholds and around them: in float64, and in float32."""
    found = [node for node in nodes(model) if not node.is_leaf and np.isfinite(node.threshold)]
    parts = [X]
    for node in found[:40]:
        middle = node.threshold
        single = np.nextafter(np.float32(middle), np.float32([-np.inf, np.inf])).astype(float)
        half = (np.float32(middle).astype(float) + single) / 2
        cells = [middle, *np.nextafter(middle, [-np.inf, np.inf]), *single, *half]
        rows = X.sample(len(cells), replace=True, random_state=node.node)
        parts.append(rows.assign(**{node.name: cells}))
    return pd.concat(parts, ignore_index=True)


@given(
    examples(columns=("number", "missing"), kinds=FORESTS),
    st.sampled_from([0.0, 0.1, 1e3, 2.0**24, 1e12]),
    st.sampled_from([1e-9, 1e-3, 1.0, 1e6]),
)
def test_rows_of_float64_part_only_where_float32_takes_a_cell_to_a_threshold(example, start, step):
    X = start + step * example.X
    model = clone(example.model).fit(X, example.y)
    try:
        other = to_sklearn(model)
    except ValueError:  # float32 does not tell the numbers of a column apart
        return
    rows = beside_thresholds(model, X)
    leaves = (np.reshape(each.apply(rows), (len(rows), -1)) for each in (other, model))
    parted = np.argwhere(np.not_equal(*leaves))
    view = ModelNodes.of(model)
    trees = {number: list(view.of_tree(number)) for number in set(parted[:, 1].tolist())}
    for row, number in parted.tolist():
        node, met = trees[number][0], False
        while not node.is_leaf and not met:
            cell = rows.at[row, node.name]
            met = np.float32(cell) == np.float32(node.threshold)
            left = node.missing_left if np.isnan(cell) else cell <= node.threshold
            node = trees[number][node.left if left else node.right]
        assert met


@pytest.mark.one_of(2)
@pytest.mark.parametrize("depth", [2, None])
@pytest.mark.parametrize("estimator", [DecisionTreeRegressor, RandomForestRegressor])
def test_numbers_that_float32_does_not_tell_apart_are_refused(estimator, depth):
    X = pd.DataFrame({"a": np.zeros(40), "id": 1e8 + np.arange(40)})
    model = estimator(max_depth=depth, random_state=0)
    with pytest.raises(ValueError, match=r"cannot write 'id': .* does not tell its numbers apart"):
        to_sklearn(model.fit(X, np.arange(40)))
    single = X.astype(np.float32)
    model.fit(single, np.arange(40))
    assert np.array_equal(to_sklearn(model).predict(X), model.predict(single))
    X["id"] = 2e8 + 64 * np.arange(40)  # whole numbers that float32 holds
    model.fit(X, np.arange(40))
    assert np.array_equal(to_sklearn(model).predict(X), model.predict(X))


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_leaves_without_a_float32_are_refused(order):
    X = (0.1 + np.array([0.0, 1e-10, 2e-10]))[np.arange(60) % 3][:, None]
    y = 10.0 ** np.array(order)[np.arange(60) % 3]
    assert to_sklearn(DecisionTreeRegressor(max_depth=1).fit(X, y))
    with pytest.raises(ValueError, match=r"cannot write 'feature_0': .* does not tell its numbers"):
        to_sklearn(DecisionTreeRegressor().fit(X, y))


def test_errors():
    model = fitted("RandomForest", ["number"]).model
    with pytest.raises(ValueError, match=r"tree must be below 4: the model has 4 trees\. Got 4\."):
        to_sklearn(model, tree=4)
    with pytest.raises(ValueError, match="The 'tree' parameter of to_sklearn"):
        to_sklearn(model, tree=-1)
    with pytest.raises(TypeError, match="must be a fitted tree, forest or boosted model"):
        to_sklearn(3)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_shap_reads_them(n_classes):
    shap = pytest.importorskip("shap")
    example = fitted("RandomForest", ["number", "float32"], n_classes=n_classes)
    rows, matrix = of_float32(example.rows)
    found = shap.TreeExplainer(to_sklearn(example.model))(matrix)
    sums = found.base_values + found.values.sum(axis=1)
    expected = predicted(example.model, rows)
    np.testing.assert_allclose(sums.reshape(expected.shape), expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # as of their trees
def test_dtreeviz_reads_them():
    dtreeviz = pytest.importorskip("dtreeviz")
    pytest.importorskip("matplotlib").use("Agg")
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    about = {
        "feature_names": list(X.columns),
        "target_name": "kind",
        "class_names": ["a", "b", "c"],
    }
    with pytest.raises(ValueError, match="you passed a DecisionTreeClassifier"):
        dtreeviz.model(tree, X, y, **about)
    shown = dtreeviz.model(to_sklearn(tree), X, y, **about)
    assert shown.shadow_tree.nnodes() == tree.tree_.node_count
    assert [node.id for node in shown.shadow_tree.leaves] == np.unique(tree.apply(X)).tolist()
    shown.leaf_sizes()
    from matplotlib import pyplot

    pyplot.close("all")


def test_supertree_reads_them(tmp_path):
    supertree = pytest.importorskip("supertree")
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    shown = supertree.SuperTree(to_sklearn(tree), X, y, list(X.columns), ["a", "b", "c"])
    shown.save_json_tree(str(tmp_path / "tree"))
    root = json.loads((tmp_path / "tree.json").read_text())["node_data"]
    assert (root["feature"], root["samples"]) == (int(tree.tree_.feature[0]), 150)
    assert root["left_node"]["is_leaf"] == (tree.tree_.feature[1] < 0)


def test_the_example():
    assert doctest.testmod(sklearn_trees).failed == 0
