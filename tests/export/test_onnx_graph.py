"""Models as ONNX files predict in onnxruntime what they predict here."""

import doctest
import re
import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import dtrees
from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.export import nodes, onnx_graph, to_onnx
from dtrees.export.model_nodes import ModelNodes
from tests.export.examples import COLUMNS, examples, fitted, predicted
from tests.pages import ROOT

OUTPUTS = ("label", "probabilities")

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime", minversion="1.23")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator


def inputs_of_the_page(session):
    """The function of the page on serving that makes inputs."""
    text = (ROOT / "docs" / "user_guide" / "deploy.md").read_text(encoding="utf-8")
    names = {"np": np, "session": session}
    exec(re.search(r"^DTYPES = .*?    return found$", text, re.M | re.S)[0], names)
    return names["inputs"]


def feeds_of(session, rows, missing=""):
    """The inputs of a session for a data frame, as the page makes them."""
    spans = rows.select_dtypes("timedelta")
    rows = rows.astype(object).where(rows.notna(), None)
    for name in spans:
        rows[name] = spans[name].astype("m8[ns]").astype("int64").astype(object)
    feeds = inputs_of_the_page(session)(rows)
    for wanted in session.get_inputs():
        if missing and wanted.type == "tensor(string)":
            feeds[wanted.name][rows[wanted.name].isna()] = missing
    return feeds


def run(made, rows, **parameters):
    """What onnxruntime says of a data frame or an array, by the name of the output."""
    onnx.checker.check_model(made, full_check=True)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    is_frame = isinstance(rows, pd.DataFrame)
    feeds = feeds_of(session, rows, **parameters) if is_frame else {"X": rows}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def assert_equal(model, made, rows, **parameters):
    found, expected = run(made, rows, **parameters), predicted(model, rows)
    if not hasattr(model, "classes_"):
        np.testing.assert_allclose(found["prediction"], expected, rtol=1e-12, atol=1e-12)
        return
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-12, atol=1e-14)
    best = np.sort(expected, axis=1)
    is_clear = best[:, -1] - best[:, :-1].max(axis=1, initial=0) > 1e-9
    assert (found["label"] == model.predict(rows))[is_clear].all()


@given(examples())
def test_predictions_are_those_of_the_model(example):
    made = to_onnx(example.model, dtype="float64")
    for rows in example.X, example.rows:
        assert_equal(example.model, made, rows)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("n_classes", [(0, 0), (0, 0, 0), (2, 3), (2, 1), (1, 1), (3, 2, 2)])
@pytest.mark.parametrize("large", [0, 1024])
@pytest.mark.parametrize("kind", ["DecisionTree", "RandomForest", "GradientBoosting", "joint"])
def test_several_targets(kind, n_classes, large, monkeypatch):
    monkeypatch.setattr(onnx_graph, "LARGE", large)
    how, of_numbers = {}, sum(n_classes) == 0
    if kind == "joint":
        kind, how = "GradientBoosting", {"multi_strategy": "multi_output_tree"}
        if not of_numbers:
            return
    example = fitted(kind, ["missing", "category", "hybrid"], n_classes=0 if of_numbers else 2)
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(120, len(n_classes))) + pd.factorize(example.y)[0][:, None] % 7
    if not of_numbers:
        Y = np.column_stack([np.argsort(y) % n for y, n in zip(Y.T, n_classes, strict=True)])
    model = clone(example.model).set_params(**how).fit(example.X, Y)
    found, rows = run(to_onnx(model, dtype="float64"), example.rows), example.rows
    if of_numbers:
        assert list(found) == ["prediction"]
        np.testing.assert_allclose(found["prediction"], model.predict(rows), rtol=1e-12)
        return
    shares = model.predict_proba(rows)
    assert list(found) == [f"{name}_{k}" for k in range(Y.shape[1]) for name in OUTPUTS]
    for k, own in enumerate(shares):
        np.testing.assert_allclose(found[f"probabilities_{k}"], own, rtol=1e-12, atol=1e-14)
        best = model.classes_[k][found[f"probabilities_{k}"].argmax(axis=1)]
        np.testing.assert_array_equal(found[f"label_{k}"], best)
    if kind == "DecisionTree":
        of_tree = run(to_onnx(model.tree_, dtype="float64"), rows)
        assert list(of_tree) == [f"probabilities_{k}" for k in range(Y.shape[1])]
        np.testing.assert_array_equal(of_tree["probabilities_1"], found["probabilities_1"])


def test_labels_of_several_types():
    example = fitted("RandomForest", ["number"])
    Y = pd.DataFrame({"word": np.where(example.y > 0, "yes", "no"), "number": example.y > 1})
    model = RandomForestClassifier(3, random_state=0).fit(example.X, Y)
    found = run(to_onnx(model, dtype="float64"), example.rows)
    for name, labels in zip(Y, model.predict(example.rows).T, strict=True):
        assert found[f"label_{name}"].tolist() == labels.tolist()


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", COLUMNS)
def test_the_evaluator_of_onnx_says_the_same(kind):
    for n_classes in (0, 2, 3):
        example = fitted("RandomForest", [kind], n_classes=n_classes, n_estimators=2)
        rows, made = example.rows[:20], to_onnx(example.model)
        feeds = feeds_of(onnxruntime.InferenceSession(made.SerializeToString()), rows)
        found = ReferenceEvaluator(made).run(None, feeds)[-1]
        np.testing.assert_allclose(found, predicted(example.model, rows), atol=1e-14)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", ["DecisionTree", "RandomForest", "GradientBoosting"])
def test_no_float32_row_goes_another_way(kind):
    model = fitted(kind, ["number"] * 4, n_rows=2_000, max_leaf_nodes=None).model
    cuts = np.array([n.threshold for n in nodes(model) if not n.is_leaf], dtype="f4")
    near = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)])
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(250_000, 4)).astype("f4")
    rows[:200_000] = rng.choice(near, size=(200_000, 4))
    rows[rng.random(rows.shape) < 0.01] = np.nan
    rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    made = to_onnx(model, dtype="float32")
    assert {i.type.tensor_type.elem_type for i in made.graph.input} == {onnx.TensorProto.FLOAT}
    assert_equal(model, made, rows)


def test_float32_columns_of_every_kind():
    for kind in COLUMNS:
        example = fitted("RandomForest", [kind, "float32"], n_classes=3, seed=1)
        numbers = example.rows.select_dtypes("floating").columns
        rows = example.rows.astype(dict.fromkeys(numbers, "f4"))
        assert_equal(example.model, to_onnx(example.model, dtype="float32"), rows)


def test_an_array_of_numbers_is_one_input():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) > 0
    for dtype, number in ("f4", onnx.TensorProto.FLOAT), ("f8", onnx.TensorProto.DOUBLE):
        model = RandomForestClassifier(5, random_state=0).fit(X.astype(dtype), y)
        made = to_onnx(model)
        (only,) = made.graph.input
        assert (only.name, only.type.tensor_type.elem_type) == ("X", number)
        assert_equal(model, made, X.astype(dtype))


def test_an_input_for_each_column_of_a_frame():
    example = fitted("RandomForest", ["number", "category", "date", "hybrid", "bool"])
    inputs = onnxruntime.InferenceSession(to_onnx(example.model).SerializeToString()).get_inputs()
    assert [i.name for i in inputs] == list(example.X.columns)
    assert [i.type for i in inputs] == [
        f"tensor({kind})" for kind in ("double", "string", "int64", "string", "double")
    ]


LABELS = [["no", "yes"], [3, 7], [False, True], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        *product(["RandomForest", "GradientBoosting"], LABELS),
        *product(["ExtraTrees", "GradientBoosting"], [["only"]]),
    ],
)
def test_labels_of_every_type(kind, labels):
    X = np.arange(40.0)[:, np.newaxis]
    y = np.array(labels)[np.arange(40) * len(labels) // 40]
    model = getattr(dtrees, kind + "Classifier")(random_state=0).fit(X, y)
    found = run(to_onnx(model), X)
    assert (found["label"] == model.predict(X)).all()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-14)


def test_labels_of_other_types_are_refused():
    for y in (
        np.array([np.datetime64("2020-01-01"), np.datetime64("2021-01-01")] * 5, dtype=object),
        np.array([3, 2**63 + 5] * 5, dtype="u8"),
    ):
        model = DecisionTreeClassifier().fit(np.arange(10.0)[:, np.newaxis], y)
        with pytest.raises(TypeError, match=r"The classes are of .* which ONNX cannot hold"):
            to_onnx(model)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie", "absolute_error"])
def test_losses_of_numbers(loss):
    example = fitted("GradientBoosting", ["number", "category"])
    model = GradientBoostingRegressor(loss, max_iter=5).fit(example.X, example.y + 3)
    assert_equal(model, to_onnx(model), example.rows)


def test_a_tree_that_is_one_leaf():
    X, y = np.zeros((9, 2)), np.arange(9.0)
    model = DecisionTreeRegressor().fit(X, y)
    assert model.tree_.node_count == 1
    assert_equal(model, to_onnx(model), X)
    forest = RandomForestRegressor(3, random_state=0).fit(np.vstack([X, X + 1]), [*y, *(y + 9)])
    assert_equal(forest, to_onnx(forest), X)


def test_a_tree_without_its_estimator_has_no_labels():
    example = fitted("DecisionTree", ["number", "category"], n_classes=3)
    found = run(to_onnx(example.model.tree_), example.rows)
    assert list(found) == ["probabilities"]
    expected = example.model.predict_proba(example.rows)
    np.testing.assert_allclose(found["probabilities"], expected)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("kind", ["RandomForest", "GradientBoosting"])
def test_large_trees_are_nodes_of_their_own(kind, n_classes, monkeypatch):
    example = fitted(kind, ["number", "category", "missing"], n_classes=n_classes)
    for large in (0, 9, 10_000):
        monkeypatch.setattr(onnx_graph, "LARGE", large)
        made = to_onnx(example.model)
        sizes = [len(tree.value) for tree in ModelNodes.of(example.model).trees]
        n_alone = sum(size > large for size in sizes)
        found = [n.op_type for n in made.graph.node].count("TreeEnsemble")
        assert found == n_alone + (n_alone < len(sizes))
        assert_equal(example.model, made, example.rows)


def test_a_root_has_no_node_and_leaf_of_one_number():
    # onnxruntime before 1.24 takes such a root for a leaf
    forest = fitted("RandomForest", ["number"], n_estimators=30, max_leaf_nodes=3).model
    (trees,) = [n for n in to_onnx(forest).graph.node if n.op_type == "TreeEnsemble"]
    of = {a.name: np.array(a.ints) for a in trees.attribute if a.ints}
    roots = of["tree_roots"]
    assert (of["nodes_truenodeids"][roots] != of["nodes_falsenodeids"][roots]).all()


def test_columns_may_have_the_names_of_outputs():
    X = pd.DataFrame({"label": [0.0, 1, 2, 3], "dtrees/Cast": [1.0, 0, 0, 1]})
    model = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])
    found = run(to_onnx(model), X)
    assert list(found) == ["label_", "probabilities"]
    assert found["label_"].tolist() == [0, 0, 1, 1]


@pytest.mark.filterwarnings("ignore:X has several columns of the name")
@pytest.mark.parametrize("names", [["a", "a"], ["", "b"]])
def test_columns_need_names(names):
    X = pd.DataFrame([[0.0, 1.0], [1.0, 0.0]], columns=names)
    with pytest.raises(ValueError, match=rf"columns with names, .* equal\. Got '{names[0]}'"):
        to_onnx(DecisionTreeClassifier().fit(X, [0, 1]))


def test_many_columns():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4_000)))
    model = RandomForestRegressor(10, random_state=0).fit(X.add_prefix("c"), X[0])
    made = to_onnx(model)
    assert max(len(node.output[0]) for node in made.graph.node) < 30
    assert_equal(model, made, X.add_prefix("c"))


def test_unused_columns_are_inputs_of_any_kind():
    X = pd.DataFrame({"a": [0.0, 1, 2, 3], "b": ["u", "v", "u", "v"], "c": ["u", 1, "u", 1]})
    X["d"] = pd.Timestamp("2020-01-01")
    X["e"] = pd.Categorical([(1, 2), (3, 4)] * 2)
    model = DecisionTreeClassifier(max_depth=1).fit(X, [0, 0, 1, 1])
    made = to_onnx(model)
    assert [value.name for value in made.graph.input] == list("abcde")
    assert run(made, X)["label"].tolist() == [0, 0, 1, 1]


def test_sets_hold_no_categories_that_are_absent():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": [f"c{i}" for i in rng.integers(0, 800, 4_000)]})
    model = DecisionTreeRegressor().fit(X, pd.util.hash_array(X["a"].to_numpy(dtype=object)) % 997)
    made = to_onnx(model)
    (trees,) = [n for n in made.graph.node if n.op_type == "TreeEnsemble"]
    (values,) = [a.t for a in trees.attribute if a.name == "membership_values"]
    n_nodes = model.tree_.node_count // 2
    assert n_nodes > 300
    assert values.dims[0] < 12 * n_nodes  # the depth, about; 400 * n_nodes with those
    assert_equal(model, made, X)


def test_the_default_type_holds_categories():
    for labels, number in ([0.1, 0.2], onnx.TensorProto.DOUBLE), ([3, 5], onnx.TensorProto.FLOAT):
        X = pd.DataFrame({"a": np.float32([0, 1] * 9), "b": pd.Categorical(labels * 9)})
        made = to_onnx(DecisionTreeClassifier().fit(X, [0, 1] * 9))
        assert {value.type.tensor_type.elem_type for value in made.graph.input} == {number}


def test_missing_strings():
    X = pd.DataFrame({"a": ["", "u", None, "v"] * 5})
    model = DecisionTreeClassifier().fit(X, [0, 1, 2, 3] * 5)
    with pytest.raises(ValueError, match="missing='' is a category of column 'a'"):
        to_onnx(model)
    assert_equal(model, to_onnx(model, missing="?"), X, missing="?")
    model = fitted("DecisionTree", ["hybrid"]).model
    with pytest.raises(ValueError, match="missing='-1' is a number, and column 'hybrid 0' has"):
        to_onnx(model, missing="-1")


def test_categories_that_onnx_cannot_hold():
    for labels, error, words in (
        ([(1, 2), (3, 4)], TypeError, "has categories of tuple"),
        ([2**60 + 1, 5], ValueError, "has the category 1152921504606846977"),
        ([1, "u"], TypeError, "has categories of int, str"),
    ):
        cells = pd.Series([labels[i % 2] for i in range(20)], dtype=object).astype("category")
        model = DecisionTreeClassifier().fit(pd.DataFrame({"a": cells}), np.arange(20) % 2)
        with pytest.raises(error, match=f"Column 'a' {words}"):
            to_onnx(model)
    X = pd.DataFrame({"a": pd.Categorical([2**24 + 1, 5] * 9)})
    model = DecisionTreeClassifier().fit(X, [0, 1] * 9)
    with pytest.raises(ValueError, match=r"no float32\. Give dtype='float64'"):
        to_onnx(model, dtype="float32")
    assert_equal(model, to_onnx(model, dtype="float64"), X)


@pytest.mark.parametrize(
    "text", ["1", "-2.5", "+.5", "1.", "1e3", "2E-1", " 1.5", "1_0", "x1", "."]
)
def test_numbers_that_are_text(text):
    X = pd.DataFrame({"a": pd.Series([None, "a", "b", 0.5, -2.0, 2.5, 900.0] * 9, dtype=object)})
    y = np.tile(np.arange(7.0), 9)
    model = DecisionTreeRegressor(handle_unknown="majority").fit(X, y)
    assert_equal(model, to_onnx(model), pd.DataFrame({"a": pd.Series([text], dtype=object)}))


@pytest.mark.parametrize(
    "text",
    ["1e-310", "1e-400", "1e400", "-2e308", "1" * 400, "٣", "\xa05", "2\x0b", "0." + "1" * 41],
)
def test_numbers_that_onnx_does_not_read_are_unseen(text):
    X = pd.DataFrame({"a": pd.Series([None, "a", "b", 0.5, -2.0, 2.5, 900.0] * 9, dtype=object)})
    model = DecisionTreeRegressor(handle_unknown="majority").fit(X, np.tile(np.arange(7.0), 9))
    rows = pd.DataFrame({"a": ["new", text, "2.5", "1e259", "-" + "9" * 40 + "e+259"]})
    found = run(to_onnx(model), rows)["prediction"].ravel()
    expected = model.predict(pd.DataFrame({"a": ["new", "new", 2.5, 900.0, -2.0]}))
    assert found.tolist() == expected.tolist()


def test_the_file(tmp_path):
    example = fitted("DecisionTree", ["number"])
    made = to_onnx(example.model, tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == made
    assert (tmp_path / "model.onnx").read_bytes() == to_onnx(example.model).SerializeToString()


def test_what_is_refused(monkeypatch):
    with pytest.raises(TypeError, match="must be a fitted tree, forest or boosted model"):
        to_onnx(3)
    with pytest.raises(NotFittedError):
        to_onnx(DecisionTreeClassifier())
    model = fitted("DecisionTree", ["number"]).model
    with pytest.raises(TypeError, match="A tree on codes does not know"):
        to_onnx(model.tree_.model)
    with pytest.raises(ValueError, match="'dtype' parameter"):
        to_onnx(model, dtype="float16")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="onnx, which is not installed: pip install"):
        to_onnx(model)


def test_the_example():
    assert doctest.testmod(sys.modules["dtrees.export.onnx_graph"]).failed == 0
