"""Partial dependence: scikit-learn's recursion, and predictions where there is one column."""

import doctest

import numpy as np
import pandas as pd
import pytest
import sklearn.inspection
import sklearn.tree
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.inspection import dependence, partial_dependence

RNG = np.random.default_rng(0)
N = 300
NUMBERS = RNG.normal(size=(N, 3))
NUMBERS[:, 1] += NUMBERS[:, 0]
F = NUMBERS[:, 0] * 2 + np.sin(3 * NUMBERS[:, 1])
GRID = np.linspace(-2, 2, 9)


def test_the_example():
    results = doctest.testmod(dependence)
    assert results.attempted > 4
    assert results.failed == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [(0,), (1,), (2,), (0, 1), (2, 0)])
def test_as_scikit_learns_recursion(columns, weighted):
    weight = RNG.exponential(size=N) if weighted else None
    limits = {"min_samples_leaf": 15, "random_state": 0}
    X = NUMBERS.astype(np.float32)
    grids = dict(zip(columns, (GRID, GRID[:4] + 0.1), strict=False))
    ours = DecisionTreeRegressor(**limits).fit(X, F, weight)
    theirs = sklearn.tree.DecisionTreeRegressor(**limits).fit(X, F, weight)
    np.testing.assert_array_equal(ours.tree_.feature, theirs.tree_.feature)
    asked = {"method": "recursion", "custom_values": grids}
    expected = sklearn.inspection.partial_dependence(theirs, X, list(columns), **asked)["average"]
    if len(columns) == 1:
        found = partial_dependence(ours, columns[0], values=GRID)
        assert found.missing is None
    else:
        found = partial_dependence(ours, columns, values=list(grids.values()))
        assert found.names == tuple(f"feature_{column}" for column in columns)
    np.testing.assert_allclose(found.average, expected, rtol=1e-7)


RECURSIVE = {
    DecisionTreeRegressor: {"max_depth": 4},
    RandomForestRegressor: {"n_estimators": 3, "max_depth": 4, "random_state": 0},
    GradientBoostingRegressor: {"max_iter": 5},
    GradientBoostingClassifier: {"max_iter": 5},
}


@pytest.mark.parametrize("kind", RECURSIVE)
def test_scikit_learns_function_asks_for_it(kind):
    words = np.array(list("abcd"), dtype=object)[np.arange(N) % 4]
    X = pd.DataFrame(NUMBERS, columns=list("xyz")).assign(word=pd.Categorical(words))
    y = np.digitize(F, [-1, 1]) if kind is GradientBoostingClassifier else F + (words == "b")
    model = kind(**RECURSIVE[kind]).fit(X, y)
    words = np.array(["a", "b", "new"], dtype=object)
    asked = {"method": "recursion", "categorical_features": ["word"]}
    custom = {"x": GRID, "word": words}
    found = sklearn.inspection.partial_dependence(model, X, ["x"], custom_values=custom, **asked)
    own = partial_dependence(model, "x", values=GRID)
    np.testing.assert_allclose(found["average"], own.average, rtol=1e-12)
    pair = ["word", "x"]
    found = sklearn.inspection.partial_dependence(model, X, pair, custom_values=custom, **asked)
    own = partial_dependence(model, pair, values=[["a", "b", None], GRID])
    np.testing.assert_allclose(found["average"], own.average, rtol=1e-12)
    found = sklearn.inspection.partial_dependence(model, X, ["x"], custom_values=custom)
    assert "individual" not in found  # "auto" is recursion


def test_as_brute_force_where_there_is_one_column():
    X = NUMBERS[:, :1]
    y = np.digitize(F, [-1, 1])
    model = GradientBoostingClassifier(max_iter=5).fit(X, y)
    found, brute = (
        sklearn.inspection.partial_dependence(
            model, X, [0], method=method, response_method="decision_function"
        )["average"]
        for method in ("recursion", "brute")
    )
    assert found.shape == (3, 100)
    np.testing.assert_allclose(found, brute, rtol=1e-9)


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_boosted_targets_are_those_of_each(strategy):
    y = np.column_stack([NUMBERS[:, 0], -NUMBERS[:, 1]])
    model = GradientBoostingRegressor(max_iter=3, multi_strategy=strategy).fit(NUMBERS, y)
    found = [
        sklearn.inspection.partial_dependence(each, NUMBERS, [0], grid_resolution=4)["average"]
        for each in (model, model.of_target(0), model.of_target(1))
    ]
    np.testing.assert_array_equal(found[0], np.concatenate(found[1:]))


@pytest.mark.parametrize("kind", [RandomForestClassifier, DecisionTreeClassifier])
def test_other_classes_have_no_recursion(kind):
    model = kind(max_depth=3).fit(NUMBERS, F > 0)
    with pytest.raises(ValueError, match="Only the following estimators support"):
        sklearn.inspection.partial_dependence(model, NUMBERS, [0], method="recursion")


KINDS = {
    "numbers": NUMBERS[:, 0],
    "gaps": np.where(RNG.random(N) < 0.2, np.nan, NUMBERS[:, 0]),
    "categories": pd.Categorical(RNG.choice(list("abcde"), N)),
    "categories with gaps": pd.Categorical(RNG.choice(["a", "b", "c", None], N)),
    "numbers and words": np.where(RNG.random(N) < 0.5, RNG.integers(0, 9, N), "w").astype(object),
    "flags": NUMBERS[:, 0] > 0,
    "numbers, words and gaps": np.array(
        [(1, 2, 3, 4, "u", "v", "w", None)[i] for i in RNG.integers(0, 8, N)], dtype=object
    ),
    "dates": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 99, N), unit="D"),
}
MODELS = {
    "tree": DecisionTreeClassifier(max_depth=5, category_penalty=0.0),
    "forest": RandomForestClassifier(4, random_state=0, category_penalty=0.0),
    "numbers": DecisionTreeRegressor(max_depth=5),
    "forest of numbers": RandomForestRegressor(4, random_state=0),
    "boosted classes": GradientBoostingClassifier(max_iter=4, min_samples_leaf=5),
    "boosted numbers": GradientBoostingRegressor(max_iter=4, min_samples_leaf=5),
}


def answer_of(model):
    """What a model says of rows, on the scale of its dependence."""
    names = ("decision_function", "predict_proba", "predict")
    return next(getattr(model, name) for name in names if hasattr(model, name))


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_of_the_only_column_it_is_the_prediction(kind, name):
    frame = pd.DataFrame({"x": KINDS[kind]})
    rank = np.argsort(np.argsort(frame["x"].astype(str)))
    y = rank + 50 * RNG.normal(size=N) if "numbers" in name else (rank // 7) % 3
    model = MODELS[name].fit(frame, y)
    found = partial_dependence(model, "x")
    again = partial_dependence(model, 0, values=found.values)
    np.testing.assert_array_equal(found.average, again.average)
    asked = pd.DataFrame({"x": pd.Series(found.values, dtype=frame["x"].dtype)})
    expected = np.reshape(answer_of(model)(asked), (len(asked), -1)).T
    np.testing.assert_allclose(found.average, expected, rtol=1e-12)
    gap = pd.DataFrame({"x": pd.Series([None], dtype=frame["x"].dtype)}) if "gaps" in kind else None
    assert (found.missing is None) == (gap is None)
    if gap is not None:
        np.testing.assert_allclose(found.missing, np.ravel(answer_of(model)(gap)), rtol=1e-12)
    assert found.name == "x"


@pytest.mark.parametrize("seed", range(6))
def test_numbers_do_not_go_where_missing_values_go_in_tests_of_categories(seed):
    rng = np.random.default_rng(seed)
    values = np.array([(1, 2, "u", "v", "w", None)[i] for i in rng.integers(0, 6, N)], dtype=object)
    y = np.array([v in ("u", None) for v in values]) + 0.1 * rng.normal(size=N)
    frame = pd.DataFrame({"x": values})
    tree = DecisionTreeRegressor(max_depth=2).fit(frame, y)
    found = partial_dependence(tree, "x", values=[1, 2, "u", "v", "w"])
    asked = pd.DataFrame({"x": pd.Series([1, 2, "u", "v", "w"], dtype=object)})
    np.testing.assert_allclose(found.average[0], tree.predict(asked), rtol=1e-12)


@settings(max_examples=25)
@given(kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=2), data=st.data())
def test_of_the_only_two_columns_it_is_the_prediction(kinds, data):
    name = data.draw(st.sampled_from(sorted(MODELS)))
    frame = pd.DataFrame({"a": KINDS[kinds[0]], "b": KINDS[kinds[1]]})
    rank = np.argsort(np.argsort(frame["a"].astype(str) + frame["b"].astype(str)))
    y = rank + 50 * np.sin(rank) if "numbers" in name else (rank // 7) % 3
    model = clone(MODELS[name]).fit(frame, y)
    found = partial_dependence(model, ["a", "b"], resolution=9)
    assert found.names == ("a", "b")
    first, second = (
        pd.Series(v, dtype=frame[c].dtype) for c, v in zip("ab", found.values, strict=True)
    )
    assert found.average.shape[1:] == (len(first), len(second))
    asked = pd.DataFrame(
        {
            "a": first.repeat(len(second)).reset_index(drop=True),
            "b": pd.concat([second] * len(first), ignore_index=True),
        }
    )
    expected = np.reshape(answer_of(model)(asked), (len(first), len(second), -1))
    np.testing.assert_allclose(found.average, np.moveaxis(expected, -1, 0), rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_two_columns_in_either_order_and_one_that_tells_nothing(name):
    y = F if "numbers" in name else np.digitize(F, [-1, 1])
    X = np.column_stack([NUMBERS, np.zeros(N)])
    model = clone(MODELS[name]).fit(X, y)
    found = partial_dependence(model, (0, 1), values=(GRID, None))
    turned = partial_dependence(model, (1, 0), values=(None, GRID))
    np.testing.assert_allclose(found.average, turned.average.swapaxes(1, 2), rtol=1e-12)
    alone = partial_dependence(model, 0, values=GRID).average
    beside = partial_dependence(model, (0, 3), values=(GRID, [0.0, 1.0, np.nan])).average
    np.testing.assert_allclose(beside, np.repeat(alone[:, :, None], 3, axis=2), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("tree", "numbers")])
@pytest.mark.parametrize("columns", [0, (0, 2)])
def test_trees_vote_or_add_up(name, columns):
    y = F if "numbers" in name else np.digitize(F, [-1, 1])
    model = clone(MODELS[name]).fit(NUMBERS, y)
    how = {"values": GRID if columns == 0 else (GRID, GRID[:3])}
    found = partial_dependence(model, columns, **how).average
    trees = np.reshape(model.estimators_, (-1, found.shape[0] if "boosted" in name else 1))
    each = [[partial_dependence(tree, columns, **how).average for tree in row] for row in trees]
    if "forest" in name:
        expected = np.mean(each, axis=(0, 1))
    else:
        start = np.reshape(model._initial, (-1, *[1] * (found.ndim - 1)))
        expected = start + np.sum(each, axis=0)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_missing_values_beside_others():
    X = np.column_stack([KINDS["gaps"], NUMBERS[:, 1]])
    model = GradientBoostingRegressor(max_iter=5).fit(X, F)
    found = partial_dependence(model, (0, 1), values=([0.0, np.nan], [0.5])).average
    np.testing.assert_allclose(found[0, :, 0], model.predict([[0.0, 0.5], [np.nan, 0.5]]))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kinds", [("gaps", "numbers"), ("numbers", "categories with gaps")])
def test_missing_values_of_two_columns(kinds, name):
    """As where they are asked for, and None where there were none at fit."""
    frame = pd.DataFrame({"a": KINDS[kinds[0]], "b": KINDS[kinds[1]]})
    model = clone(MODELS[name]).fit(frame, F if "numbers" in name else np.digitize(F, [-1, 1]))
    found = partial_dependence(model, ["a", "b"], resolution=5)
    with_gaps = [[*values, None] for values in found.values]
    if kinds[1] == "numbers":
        with_gaps[1] = found.values[1]
    else:
        with_gaps[0] = found.values[0]
    asked = partial_dependence(model, ["a", "b"], values=with_gaps).average
    first, second = found.missing
    if kinds[1] == "numbers":
        assert second is None
        np.testing.assert_array_equal(first, asked[:, -1])
        np.testing.assert_array_equal(found.average, asked[:, :-1])
    else:
        assert first is None
        np.testing.assert_array_equal(second, asked[:, :, -1])
        np.testing.assert_array_equal(found.average, asked[:, :, :-1])


def test_missing_values_of_both_columns():
    frame = pd.DataFrame({"a": KINDS["gaps"], "b": KINDS["categories with gaps"]})
    tree = DecisionTreeRegressor(max_depth=6).fit(frame, F)
    (n, m), found = (3, 2), partial_dependence(tree, ("a", "b"), values=([0, 1, 2], ["a", "c"]))
    asked = partial_dependence(tree, ("a", "b"), values=([0, 1, 2, None], ["a", "c", None]))
    assert found.average.shape == (1, n, m)
    assert [each.shape for each in found.missing] == [(1, m), (1, n)]
    np.testing.assert_array_equal(found.missing[0], asked.average[:, n, :m])
    np.testing.assert_array_equal(found.missing[1], asked.average[:, :n, m])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "gaps" in kind])
@pytest.mark.parametrize("gap", [None, np.nan, pd.NaT, pd.NA])
def test_a_missing_value_is_asked_for_as_users_write_it(kind, gap):
    tree = DecisionTreeRegressor(max_depth=4).fit(pd.DataFrame({"x": KINDS[kind]}), F)
    found = partial_dependence(tree, "x", values=[gap])
    np.testing.assert_array_equal(found.average, found.missing[:, None])


def test_a_missing_date():
    dates = pd.Series(KINDS["dates"]).where(NUMBERS[:, 1] < 1)
    frame = pd.DataFrame({"x": dates})
    tree = DecisionTreeRegressor(max_depth=4).fit(frame, F)
    gaps = partial_dependence(tree, "x", values=["NaT", dates[0]]).average[0]
    asked = pd.DataFrame({"x": pd.to_datetime([None, dates[0]])})
    np.testing.assert_allclose(gaps, tree.predict(asked))


def test_a_list_of_one_column():
    model = DecisionTreeRegressor(max_depth=3).fit(NUMBERS, F)
    found, alone = partial_dependence(model, [1]), partial_dependence(model, 1)
    np.testing.assert_array_equal(found.average, alone.average)
    assert found.name == "feature_1"


def test_classes_of_a_boosted_model_are_raw_predictions():
    model = GradientBoostingClassifier(max_iter=3).fit(NUMBERS, np.digitize(F, [-1, 1]))
    found = partial_dependence(model, 0)
    assert found.average.shape == (3, len(found.values))
    by_brute_force = sklearn.inspection.partial_dependence(
        model, NUMBERS, [0], response_method="decision_function", custom_values={0: GRID}
    )["average"]
    near = partial_dependence(model, 0, values=GRID).average
    assert np.corrcoef(near.ravel(), by_brute_force.ravel())[0, 1] > 0.95


def test_errors():
    with pytest.raises(NotFittedError):
        partial_dependence(DecisionTreeRegressor(), 0)
    tree = DecisionTreeRegressor().fit(NUMBERS, F)
    for column in (3, "x"):
        with pytest.raises(ValueError, match=f"column: there is no column {column!r} among the 3"):
            partial_dependence(tree, column)
    for column in (-1, 1.5, None):
        with pytest.raises(ValueError, match="'column' parameter of partial_dependence must be"):
            partial_dependence(tree, column)
    for columns in ((0, 0), [0, 1, 2], ()):
        with pytest.raises(ValueError, match="on one column or on two"):
            partial_dependence(tree, columns)
    with pytest.raises(ValueError, match="two sequences"):
        partial_dependence(tree, (0, 1), values=[1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="A tree on codes does not know"):
        partial_dependence(tree.tree_.model, 0)
    with pytest.raises(ValueError, match="'resolution' parameter of partial_dependence"):
        partial_dependence(tree, 0, resolution=1)
    words = pd.DataFrame({"c": pd.Categorical(["a", "b"] * 150)})
    with pytest.raises(ValueError, match="'z' was not in column 'c' at fit"):
        partial_dependence(DecisionTreeRegressor().fit(words, F), "c", values=["a", "z"])


DAYS = pd.Timestamp("1965-03-01") + pd.to_timedelta(np.arange(N) % 40, unit="D")


@pytest.mark.parametrize(
    ("column", "end"),
    [
        (DAYS, DAYS[39]),
        (DAYS[0] + pd.to_timedelta(np.arange(N) % 2, unit="D"), DAYS[1]),
        (DAYS[0] + pd.to_timedelta(np.arange(N) % 9, unit="s"), "1965-03-01T00:00:08"),
        (pd.Series(DAYS - DAYS[1]), pd.Timedelta(38, "D")),
        (pd.to_timedelta(-2 + np.arange(N) % 2, unit="s"), pd.Timedelta(-1, "s")),
        (DAYS + (pd.Timestamp("2262-04-11") - DAYS[39]), "2262-04-11"),
        (np.arange(N) % 2, 1),
        (1 + np.arange(N) % 2, 2),
        (2 * (np.arange(N) % 2) - 1.0, 1),
        (np.arange(N) % 2 * 0.25, 0.1375),
        (np.arange(N) % 3, 1.65),  # numbers of which nobody knows whether they are whole
        (np.arange(N) % 2 * 1e308, 5.5e307),
        (np.where(np.arange(N) % 2, 1.7e308, 1.6e308), np.finfo(np.float64).max),
    ],
)
def test_a_grid_ends_at_a_value_that_is_easy_to_read(column, end):
    frame = pd.DataFrame({"x": column})
    tree = DecisionTreeRegressor().fit(frame, np.arange(N) % 40 + F / 100)
    values = partial_dependence(tree, "x").values
    end = end if isinstance(end, int | float) else np.array([end]).astype(values.dtype)[0]
    assert values[-1] == pytest.approx(end) if isinstance(end, float) else values[-1] == end
    assert values[-2] < values[-1]


def test_a_grid_goes_beyond_a_threshold_of_zero():
    frame = pd.DataFrame({"x": np.array([-1.0, 1.0, 5.0])[np.arange(N) % 3]})
    found = partial_dependence(DecisionTreeRegressor().fit(frame, frame["x"] > 0), "x")
    assert found.values.tolist() == [0.0, 1.0]
    assert found.average.tolist() == [[0.0, 1.0]]


def test_a_grid_of_times_ends_where_times_end():
    last = pd.Timestamp.max.floor("us")
    frame = pd.DataFrame({"x": last - pd.to_timedelta(np.arange(N) % 3, unit="D")})
    tree = DecisionTreeRegressor().fit(frame, np.arange(N) % 3)
    values = partial_dependence(tree, "x").values
    assert not np.isnat(values).any()
    assert values[-2] < values[-1] <= pd.Timestamp.max


def test_few_numbers_are_taken_and_all_categories():
    model = DecisionTreeRegressor().fit(NUMBERS, F)
    assert len(partial_dependence(model, 0).values) <= 100
    found = partial_dependence(model, 0, resolution=7)
    assert len(found.values) == 7
    cuts = model.tree_.threshold[model.tree_.feature == 0]
    assert (found.values[0], found.values[-1] > cuts.max()) == (cuts.min(), True)
    alone = partial_dependence(DecisionTreeRegressor().fit(NUMBERS * 0, F), 0)
    assert alone.values.tolist() == [0.0]
    assert alone.average.tolist() == [[pytest.approx(F.mean())]]
    letters = pd.DataFrame({"c": pd.Categorical(RNG.integers(0, 200, N).astype(str))})
    many = partial_dependence(DecisionTreeRegressor().fit(letters, F), "c", resolution=2)
    assert len(many.values) == letters["c"].nunique()


def test_values_are_where_the_answer_changes():
    tree = DecisionTreeRegressor(max_leaf_nodes=6).fit(NUMBERS[:, :1], F)
    found = partial_dependence(tree, 0)
    (cuts,) = [np.sort(tree.tree_.threshold[tree.tree_.feature == 0])]
    assert found.values[:-1].tolist() == cuts.tolist()
    assert len(np.unique(found.average)) == 6
    between = (cuts[:-1] + cuts[1:]) / 2
    again = partial_dependence(tree, 0, values=between).average
    np.testing.assert_array_equal(again, found.average[:, 1:-1])
