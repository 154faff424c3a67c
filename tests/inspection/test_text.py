"""Trees and boosted models as text: what scikit-learn prints, and what a reader follows."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    export_text,
)
from dtrees.core.model.tree import Tree
from tests.inspection.tables import colours, lines, report


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_depth": 0},
        {"max_depth": 1},
        {"spacing": 1, "decimals": 3},
        {"show_weights": True},
        {"feature_names": ["a", "b", "c", "d"]},
        {"class_names": ["one", "two", "three"], "show_weights": True, "decimals": 4},
    ],
)
def test_plain_numbers_as_scikit_learn_prints_them(options):
    iris = load_iris()
    limits = {"max_depth": 3, "min_samples_leaf": 6}
    ours = DecisionTreeClassifier(**limits).fit(iris.data, iris.target)
    theirs = next(  # the first that decides its ties as we do
        tree
        for tree in (
            sklearn.tree.DecisionTreeClassifier(**limits, random_state=seed) for seed in range(100)
        )
        if np.array_equal(tree.fit(iris.data, iris.target).tree_.feature, ours.tree_.feature)
    )
    assert export_text(ours, **options) == sklearn.tree.export_text(theirs, **options)


def test_values_as_scikit_learn_prints_them():
    X, y = load_diabetes(return_X_y=True)
    ours = DecisionTreeRegressor(max_depth=3, min_samples_leaf=20).fit(X, y)
    theirs = sklearn.tree.DecisionTreeRegressor(max_depth=3, min_samples_leaf=20).fit(X, y)
    options = {"decimals": 5}
    assert export_text(ours, **options) == sklearn.tree.export_text(theirs, **options)


def test_column_names_of_the_fit():
    frame = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0]})
    y = ["no", "no", "yes", "yes"]
    assert report(frame, y) == lines(
        "|--- age <= 35.00", "|   |--- class: no", "|--- age >  35.00", "|   |--- class: yes"
    )
    assert "|--- years <= 35.00" in report(frame, y, feature_names=["years"])


def table_of_all_kinds(rng, n):
    """Categories, hybrid values and numbers with few values, all with gaps."""
    words = rng.choice([f"w{i}" for i in range(6)], size=n).astype(object)
    mixed = np.where(rng.random(n) < 0.5, rng.integers(0, 8, n).astype(object), words)
    frame = pd.DataFrame(
        {
            "colour": rng.choice([f"c{i}" for i in range(25)], size=n),
            "mixed": pd.Series(mixed, dtype=object),
            "number": rng.integers(0, 12, n).astype(float),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.1)


def holds(side, row):
    """Whether a row passes one side of a test, told by its words alone."""
    column, _, words = side.partition(" ")
    value, words = row[column], words.strip()
    if words in ("is missing", "is not missing"):
        return pd.isna(value) == (words == "is missing")
    test = words.removesuffix(" or missing")
    if pd.isna(value):
        return words != test
    is_category = isinstance(value, str)
    if test in ("is a number", "is a category"):
        return is_category == (test == "is a category")
    word, _, rest = test.partition("{")
    if rest:
        return (value in rest.removesuffix("}").split(", ")) == (word == "in ")
    comparison = test.removesuffix(" or a category")
    if is_category:
        return comparison != test
    sign, bound = comparison.split()
    return value <= float(bound) if sign == "<=" else value > float(bound)


def read_by(text, row):
    """The leaf that a reader of the text finds for a row, and the sides of tests on the way."""
    split = [line.split("|--- ") for line in text.splitlines()]
    level, way = 0, []
    for i, (frame, words) in enumerate(split):
        if len(frame) != 4 * level:
            continue
        if words.startswith(("class: ", "value: ")):
            return words, way
        if holds(words, row):
            level += 1
            way.append(words)
            later = next(
                (side for side in split[i + 1 :] if len(side[0]) <= len(frame)), (None, "")
            )
            assert later[0] != frame or not holds(later[1], row)  # the contrary, if this is left
    raise AssertionError(f"no side of a test takes {row}")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("handle_unknown", ["missing", "majority", "error"])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_a_reader_follows_every_row(kind, handle_unknown):
    rng = np.random.default_rng(3)
    X = table_of_all_kinds(rng, 400)
    y = rng.integers(0, 3, 400)
    tree = kind(max_depth=8, handle_unknown=handle_unknown).fit(X, y)
    text = export_text(tree, max_categories=None, max_width=None)
    new = table_of_all_kinds(rng, 200)  # known categories in nodes that have not seen them
    for table in (X, new):
        for prediction, (_, row) in zip(tree.predict(table), table.iterrows(), strict=True):
            said, way = read_by(text, row)
            assert said in (f"class: {prediction}", f"value: [{prediction:.2f}]")
            for i, side in enumerate(way):
                column, _, members = side.partition(" ")
                above = [line for line in way[:i] if line.split()[0] == column]
                for word in members.partition("{")[2].partition("}")[0].split(", "):
                    assert not word or all(holds(line, {column: word}) for line in above)
                if side.endswith("missing"):
                    assert all(holds(line, {column: None}) for line in above)
                if side.endswith("or a category"):
                    assert not any("<=" in x and "category" not in x for x in above)


@pytest.mark.parametrize("spacing", [1, 3])
@pytest.mark.parametrize("max_width", [1, 40, 60, 100, 1000])
def test_broken_lines_say_the_same(max_width, spacing):
    rng = np.random.default_rng(4)
    X = table_of_all_kinds(rng, 300)
    tree = DecisionTreeClassifier(max_depth=5).fit(X, rng.integers(0, 12, 300))
    options = {"spacing": spacing, "show_weights": True}
    whole = export_text(tree, max_width=None, **options).splitlines()
    joined = []
    for line in export_text(tree, max_width=max_width, **options).splitlines():
        assert len(line) <= max(max_width, 80)
        frame, bar, text = line.rpartition("|")
        if text.startswith("-"):
            joined.append(line)
            above, begin = frame + bar, 1 + max(line.find("{"), line.find("["))
        else:
            assert frame + bar == above
            assert max_width < 100 or len(line) - len(text.lstrip()) == begin
            joined[-1] += " " + text.lstrip()
    assert joined == whole
    assert (max(map(len, whole)) < max_width) == (max_width == 1000)


def test_a_broken_line_goes_on_below_its_first_category():
    assert report(*colours(20, 10), max_width=50).splitlines()[:3] == [
        "|--- colour in {c000, c001, c002, c003, c004,",
        "|               c005, c006, c007, c008, c009}",
        "|   |--- class: 0",
    ]
    frame, y = colours(20, 10)
    frame.columns = ["the colour of the front door"]
    assert report(frame, y, max_width=50).splitlines()[:4] == [
        "|--- the colour of the front door in {c000, c001,",
        "|        c002, c003, c004, c005, c006, c007, c008,",
        "|        c009}",
        "|   |--- class: 0",
    ]


def test_truncated_branches():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    tree = DecisionTreeRegressor().fit(X, y)
    text = export_text(tree, max_depth=2)
    assert "|   |   |   |--- truncated branch of depth" in text
    depths = [int(line.split()[-1]) for line in text.splitlines() if "truncated" in line]
    assert max(depths) == tree.get_depth() - 2
    assert "truncated" not in export_text(tree, max_depth=100)


def test_deep_trees_do_not_recurse():
    depth = 3000
    n = 2 * depth + 1  # every left child is a leaf
    inner = np.arange(n) % 2 == 0
    inner[-1] = False
    tree = Tree(
        feature=np.where(inner, 0, -2).astype(np.int32),
        children_left=np.where(inner, np.arange(n) + 1, -1).astype(np.int32),
        children_right=np.where(inner, np.arange(n) + 2, -1).astype(np.int32),
        test=inner.astype(np.uint8),
        code=np.zeros(n, dtype=np.uint32),
        threshold=np.where(inner, np.arange(n), np.nan),
        missing_go_to_left=np.zeros(n, dtype=np.uint8),
        subset_offset=np.full(n, -1),
        subset_words=np.zeros(0, dtype=np.uint64),
        n_node_samples=np.ones(n, dtype=np.int64),
        statistics=np.ones((n, 2), dtype=np.int64),
        impurity=np.ones(n),
        gain=inner.astype(np.float64),
        n_columns=1,
        criterion="squared_error",
    )
    assert export_text(tree, max_depth=depth).count("value") == depth + 1
    assert export_text(tree).endswith(f"truncated branch of depth {depth - 10}\n")


def test_one_leaf():
    assert export_text(DecisionTreeClassifier().fit([[0.0]], ["a"])) == "|--- class: a\n"
    assert export_text(DecisionTreeRegressor().fit([[0.0]], [2.0])) == "|--- value: [2.00]\n"


def test_errors():
    with pytest.raises(NotFittedError):
        export_text(DecisionTreeClassifier())
    with pytest.raises(NotFittedError):
        export_text(RandomForestClassifier(2))
    with pytest.raises(TypeError, match=r"The model has 2 trees\. Give the number of one: tree=0"):
        export_text(RandomForestClassifier(2).fit([[0.0]], ["a"]))
    tree = DecisionTreeClassifier().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(ValueError, match="feature_names must contain 2 elements, got 1"):
        export_text(tree, feature_names=["a"])
    with pytest.raises(ValueError, match="Got 3 while the tree was fitted with 2 classes"):
        export_text(tree, class_names=["a", "b", "c"])
    for name, value in (
        *(("max_depth", -1), ("spacing", 0), ("decimals", -1), ("max_depth", None)),
        *(("max_categories", 0), ("max_width", 0), ("spacing", 1.5), ("decimals", "2")),
    ):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of export_text must be"):
            export_text(tree, **{name: value})


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
