"""LightGBM predicts from our text what the model predicts, and other readers take it."""

import doctest
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from dtrees.constraints import InvalidParameterError
from dtrees.export import lightgbm_text, model_nodes, to_lightgbm
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection import shap_values
from tests.export.examples import CATEGORIES, KINDS, NUMBERS, examples, fitted, predicted

SAID = (*NUMBERS, *CATEGORIES)
MISSING_ELSEWHERE = "categories that were not there at fit do not go where missing"


def read(text):
    """LightGBM's model of a text; the test is skipped where LightGBM is not installed."""
    return pytest.importorskip("lightgbm").Booster(model_str=text)


def as_read(model, rows):
    """Rows as LightGBM wants them: columns of categories have that type."""
    rows = rows.copy()
    for j in ModelNodes.of(model).book.categories:
        rows.isetitem(j, rows.iloc[:, j].astype("category"))
    return rows


def expected(model, rows):
    """Predictions in LightGBM's form: of two classes, shares of the second."""
    values = predicted(model, rows)
    return values[:, -1] if values.shape[1] < 3 else values


def booster_of(example):
    """The model in LightGBM; None where a category would go another way."""
    view = ModelNodes.of(example.model)
    differs = {
        node.name for node in view if node.test == "in" and node.missing_left != node.unseen_left
    }
    if not differs:
        return read(to_lightgbm(example.model))
    with pytest.raises(ValueError, match=MISSING_ELSEWHERE) as error:
        to_lightgbm(example.model)
    assert any(repr(name) in str(error.value) for name in differs)
    return None


@given(examples(SAID))
def test_lightgbm_predicts_what_the_model_predicts_and_explains_it_as_we_do(example):
    booster = booster_of(example)
    if booster is None:
        return
    for rows in example.X, example.rows:
        found = booster.predict(as_read(example.model, rows))
        np.testing.assert_allclose(found, expected(example.model, rows), rtol=1e-12, atol=1e-15)

    rows = example.rows[:20]
    found = booster.predict(as_read(example.model, rows), pred_contrib=True)
    ours = shap_values(example.model, rows)
    values, base = ours.values, ours.base_values
    if ModelNodes.of(example.model).start is None and values.ndim == 3 and values.shape[2] == 2:
        values, base = values[:, :, 1], base[:, 1]
    if values.ndim == 3:
        values = np.moveaxis(values, 2, 1)
    parts = np.concatenate([values, base[..., None]], axis=-1).reshape(len(rows), -1)
    np.testing.assert_allclose(found, parts, rtol=1e-9, atol=1e-9)


def test_contributions_of_weights_that_are_not_whole():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(200, 3)), rng.random(200)
    model = DecisionTreeRegressor(min_samples_leaf=5).fit(X, X[:, 0] + X[:, 1], weight)
    text = to_lightgbm(model)
    found = read(text).predict(X, pred_contrib=True)
    np.testing.assert_allclose(found[:, :3], shap_values(model, X).values, rtol=1e-6, atol=1e-7)
    told = [float(w) for w in re.search("leaf_weight=(.*)", text)[1].split()]
    is_leaf = ModelNodes.of(model).trees[0].is_leaf
    assert told == model.tree_.weighted_n_node_samples[is_leaf].tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "poisson"},
        {"loss": "gamma"},
        {"loss": "tweedie"},
        {"loss": "absolute_error"},
        {"l1_regularization": 1.0, "max_delta_step": 0.5},
        {"path_smooth": 5.0, "colsample_bytree": 0.5},
    ],
    ids=str,
)
def test_losses_and_penalties_of_boosting(parameters):
    example = fitted("GradientBoosting", ["number", "missing"])
    model = GradientBoostingRegressor(max_iter=3, min_samples_leaf=5, **parameters)
    model.fit(example.X, np.abs(example.y) + 0.1)
    for each in (model, model[:2]):
        found = read(to_lightgbm(each)).predict(example.rows)
        np.testing.assert_allclose(found, each.predict(example.rows), rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_one_output_has_an_objective_that_all_readers_know(kind):
    example = fitted(kind, ["number"], n_classes=2)
    name = "binary sigmoid:1" if kind == "GradientBoosting" else "regression"
    assert f"\nobjective={name}\n" in to_lightgbm(example.model)


def test_a_threshold_of_zero_is_that_of_lightgbm():
    model = DecisionTreeRegressor().fit([[-1.0], [1.0]] * 10, [0, 1] * 10)
    text = to_lightgbm(model)
    assert float(re.search("threshold=(.*)", text)[1]) == 1e-35
    found = read(text).predict([[-1e-34], [0.0], [-0.0], [1e-34]])
    assert found.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_lightgbm_goes_on_where_we_stopped():
    example = fitted("GradientBoosting", ["number", "missing"])
    booster = read(to_lightgbm(example.model))
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(example.X, example.y)
    longer = lightgbm.train({"verbose": -1}, data, 5, init_model=booster)
    assert longer.num_trees() == booster.num_trees() + 5
    errors = [((each.predict(example.X) - example.y) ** 2).mean() for each in (booster, longer)]
    assert errors[1] < errors[0]


def test_boosted_classes_have_the_objective_by_name():
    for n_classes, name in [(2, "binary"), (3, "multiclass")]:
        example = fitted("GradientBoosting", ["number"], n_classes=n_classes)
        text = to_lightgbm(example.model)
        assert f"\n[objective: {name}]\n" in text
        booster = read(text)
        raw = booster.predict(example.rows, raw_score=True)
        np.testing.assert_array_equal(raw, example.model.decision_function(example.rows))
        assert booster.num_model_per_iteration() == (1 if n_classes == 2 else 3)


@pytest.mark.parametrize("model", [ExtraTreesClassifier, GradientBoostingClassifier])
def test_arrays_name_categories_by_whole_numbers(model):
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=300), rng.choice([2.0, 70.0, 64.0, 9.0, np.nan], 300)], axis=1)
    y = np.isin(X[:, 1], [70.0, 9.0]) ^ (X[:, 0] > 1)
    fit = model(random_state=0, categorical_features=[1]).fit(X, y)
    rows = np.vstack([X, [[0.0, value] for value in (0.0, 3.0, 65.0, 1e6, -5.0, np.nan)]])
    booster = read(to_lightgbm(fit))
    np.testing.assert_allclose(booster.predict(rows), expected(fit, rows), rtol=1e-14)


def test_sets_are_as_long_as_their_largest_category():
    rng = np.random.default_rng(0)
    X = rng.choice([*range(40), 2**16 - 1], (2000, 1)).astype(float)
    y = rng.normal(size=41)[np.minimum(X[:, 0], 40).astype(int)] + rng.normal(size=2000)
    forest = ExtraTreesRegressor(20, random_state=0, categorical_features=[0]).fit(X, y)
    text = to_lightgbm(forest)
    np.testing.assert_allclose(read(text).predict(X), forest.predict(X), rtol=1e-12)
    found = [part.partition("\n")[0].split() for part in re.split("cat_[a-z]+=", text)[1:]]
    for ends, words in zip(found[::2], found[1::2], strict=True):
        ends = np.array(ends, dtype=int)
        assert (np.array(words)[ends[1:] - 1] != "0")[np.diff(ends) > 1].all()


def test_columns_without_a_value_at_fit_are_floats():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("xyz"), 200), "empty": pd.Categorical([None] * 200)})
    model = DecisionTreeRegressor(max_depth=2).fit(X, X["a"] == "x")
    rows = X.astype({"a": "category", "empty": "float"})
    np.testing.assert_allclose(read(to_lightgbm(model)).predict(rows), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("kind", ["hybrid", "date", "span"])
def test_columns_that_cannot_be_said_are_refused_by_name(kind):
    example = fitted("RandomForest", ["number", kind])
    with pytest.raises(ValueError, match=f"to_lightgbm cannot write '{kind} 1': "):
        to_lightgbm(example.model)


def test_columns_that_are_not_tested_may_hold_anything():
    X = pd.DataFrame({"a": [0.0, 1, 2, 3] * 5, "day": pd.Timestamp("2020-01-01")})
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta([0, 1, 1, 0], "D")
    X["c"] = pd.Categorical(days.tolist() * 5)
    X["d"] = pd.Categorical(["x", "y"] * 10)
    model = DecisionTreeRegressor(max_depth=2).fit(X, (X["a"] > 1) + 2.0 * (X["d"] == "y"))
    rows = X.assign(day=0.0)
    assert read(to_lightgbm(model)).predict(rows).tolist() == model.predict(X).tolist()


def test_all_columns_that_are_refused_are_named_or_counted():
    X = pd.DataFrame({f"c{i}": pd.Timestamp("2020-01-01") for i in range(7)}, index=range(40))
    for i, name in enumerate(X):
        X.loc[i, name] = pd.Timestamp("2020-01-02")
    with pytest.raises(ValueError, match="cannot write 'c0', 'c1', 'c2', 'c3', 'c4' and 2 more: "):
        to_lightgbm(DecisionTreeRegressor().fit(X, np.arange(40) < 7))


def test_boosted_models_of_one_class_say_that_it_is_certain():
    X = np.arange(30.0)[:, None]
    model = GradientBoostingClassifier(max_iter=3).fit(X, np.full(30, 7))
    assert read(to_lightgbm(model)).predict(X).tolist() == [1.0] * 30
    assert model.predict_proba(X).tolist() == [[1.0]] * 30


def test_categories_that_cannot_be_said_are_refused_by_name():
    y = np.arange(40) % 2
    days = pd.DataFrame(
        {"day": pd.Categorical(pd.Timestamp("2020-01-01") + pd.to_timedelta(y, "D"))}
    )
    with pytest.raises(ValueError, match="'day': categories must be strings"):
        to_lightgbm(DecisionTreeClassifier().fit(days, y))
    for labels in (["a", "b"], [-2, 1], [0.5, 1.0], [0, 2**16], [0, np.inf]):
        cells = np.array(labels, dtype=object)[y][:, None]
        model = DecisionTreeClassifier(categorical_features=[0]).fit(cells, y)
        with pytest.raises(
            ValueError, match=r"'feature_0': categories of columns without names must be"
        ):
            to_lightgbm(model)


def test_numbers_that_are_zero_to_lightgbm_are_refused():
    X = pd.DataFrame({"tiny": [0.0, 1e-40] * 20})
    model = DecisionTreeClassifier().fit(X, [0, 1] * 20)
    with pytest.raises(ValueError, match="'tiny': to LightGBM, thresholds nearer to 0 than 1e-35"):
        to_lightgbm(model)


def test_all_numbers_pass_where_only_missing_values_do_not():
    X = np.append(np.full(30, np.nan), np.arange(30.0))[:, None]
    model = DecisionTreeRegressor().fit(X, np.isnan(X[:, 0]))
    booster = read(to_lightgbm(model))
    rows = np.array([[np.nan], [1e308], [-1e308], [3.0]])
    assert booster.predict(rows).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_names_of_columns_are_cleaned_and_stay_apart():
    X = np.random.default_rng(0).normal(size=(50, 4))
    frame = pd.DataFrame(X, columns=["größe m", 'a"b:c', "größe_m", "{}"])
    model = DecisionTreeRegressor().fit(frame, X.sum(axis=1))
    booster = read(to_lightgbm(model))
    assert booster.feature_name() == ["größe_m_0", "a_b_c_1", "größe_m_2", "___3"]
    assert set(booster.trees_to_dataframe()["split_feature"].dropna()) <= set(
        booster.feature_name()
    )
    model = DecisionTreeRegressor().fit(frame[['a"b:c', "größe_m"]], X[:, 1])
    assert read(to_lightgbm(model)).feature_name() == ["a_b_c", "größe_m"]


def test_labels_of_categories_are_read_back():
    labels = ['a "quoted"\nlabel', "ö", "pandas_categorical:", "", 3, 2.5, True]
    X = pd.DataFrame({"c": pd.Categorical(labels * 10), "d": pd.Categorical(["x", "y"] * 35)})
    model = DecisionTreeRegressor().fit(X, np.arange(70) % 7)
    booster = read(to_lightgbm(model))
    np.testing.assert_array_equal(booster.predict(X), model.predict(X))
    assert len(booster.pandas_categorical) == 2


def test_files_have_the_text(tmp_path):
    example = fitted("Bagging", ["number", "category"], n_classes=3)
    path = tmp_path / "model.txt"
    assert to_lightgbm(example.model, path) == path.read_text(encoding="utf-8")
    rows = as_read(example.model, example.rows)
    booster = pytest.importorskip("lightgbm").Booster(model_file=path)
    np.testing.assert_allclose(booster.predict(rows), expected(example.model, example.rows))
    again = read(booster.model_to_string())
    np.testing.assert_array_equal(again.predict(rows), booster.predict(rows))
    assert to_lightgbm(example.model, str(path)) == to_lightgbm(example.model)
    with pytest.raises(FileNotFoundError):
        to_lightgbm(example.model, tmp_path / "nowhere" / "model.txt")


def test_sparse_tables():
    X = sparse.random(200, 6, density=0.3, format="csr", random_state=0)
    X.data -= 0.5
    model = GradientBoostingRegressor(max_iter=5).fit(X, X @ np.arange(6))
    found = read(to_lightgbm(model)).predict(X)
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-14)


def test_a_leaf_and_a_tree_by_itself():
    X = np.arange(10.0)[:, None]
    for y in (np.zeros(10), np.full(10, 2.5)):
        booster = read(to_lightgbm(DecisionTreeRegressor().fit(X, y)))
        assert booster.predict(X).tolist() == y.tolist()
        assert booster.predict(X, pred_contrib=True).tolist() == [[0.0, value] for value in y]
    model = DecisionTreeClassifier().fit(X, X[:, 0] > 4)
    assert to_lightgbm(model.tree_) == to_lightgbm(model)


def test_sets_of_many_nodes_are_read_in_parts(monkeypatch):
    example = fitted("RandomForest", ["many categories", "category"])
    text = to_lightgbm(example.model)
    monkeypatch.setattr(model_nodes, "CELLS", 200)
    assert to_lightgbm(example.model) == text


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_treelite_reads_the_text(kind, n_classes, tmp_path):
    treelite = pytest.importorskip("treelite")
    example = fitted(kind, ["number", "category", "bool", "missing"], n_classes=n_classes)
    path = tmp_path / "model.txt"
    to_lightgbm(example.model, path)
    if n_classes == 3 and kind != "GradientBoosting":
        with pytest.raises(treelite.TreeliteError, match="'multiclass' or 'multiclassova'"):
            treelite.frontend.load_lightgbm_model(path)
        return
    labels = ModelNodes.of(example.model).book.categories[1]
    codes = {label: float(code) for code, label in enumerate(labels)}
    rows = example.rows.copy()
    rows.isetitem(1, rows.iloc[:, 1].map(codes))
    found = treelite.gtil.predict(
        treelite.frontend.load_lightgbm_model(path), rows.to_numpy(np.float64)
    )
    values = expected(example.model, example.rows)
    np.testing.assert_allclose(found.reshape(values.shape), values, rtol=1e-6)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_shap_reads_the_text(kind, n_classes):
    shap = pytest.importorskip("shap")
    example = fitted(kind, ["number", "category", "missing"], n_classes=n_classes)
    booster = read(to_lightgbm(example.model))
    rows = as_read(example.model, example.rows)
    explainer = shap.TreeExplainer(booster)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of two classes: the form has changed
        values = np.asarray(explainer.shap_values(rows))
    total = values.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, booster.predict(rows, raw_score=True), atol=1e-9)


def test_what_is_no_fitted_model_is_refused(tmp_path):
    with pytest.raises(TypeError, match="must be a fitted tree, forest or boosted model"):
        to_lightgbm(LinearRegression().fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(NotFittedError):
        to_lightgbm(RandomForestClassifier())
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="A tree on codes does not know"):
        to_lightgbm(model.tree_.model)
    with pytest.raises(InvalidParameterError, match="The 'path' parameter of to_lightgbm"):
        to_lightgbm(model, 3)


def test_the_example():
    assert doctest.testmod(lightgbm_text).failed == 0
