"""What the lines of a tree say of categories and missing values."""

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from hypothesis import given
from sklearn.datasets import load_iris

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    export_text,
)
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection import export_graphviz, shared_forest
from dtrees.inspection.tree_formatter import (
    category_word,
    column_number,
    date_format,
    duration_format,
    number_format,
)
from tests.export.examples import examples
from tests.inspection.tables import colours, lines, report


def test_numbers_of_columns():
    names = ["a", "b"]
    assert [column_number(column, names, "") for column in ("b", 1, np.int64(0))] == [1, 1, 0]
    for column in ("c", 2, -1, 0.5):
        with pytest.raises(ValueError, match=r"by: there is no column .* among the 2 of the fit"):
            column_number(column, names, "by")
    with pytest.raises(ValueError, match=r"there are 2 columns 'a'\. Give the number of one: 0, 2"):
        column_number("a", ["a", "b", "a"], "by")


def test_words_that_would_be_misread():
    assert [category_word(w) for w in ("plain words", "", " a", "a, b", "{", 3, 2.5, True)] == [
        *("plain words", "''", "' a'", "'a, b'", "'{'", "3", "2.5", "True")
    ]


def test_dates():
    days = pd.date_range("2024-01-01", periods=4, freq="D")
    text = report(pd.DataFrame({"day": days}), [0, 0, 1, 1])
    assert "|--- day <= 2024-01-02 12:00\n" in text
    text = report(pd.DataFrame({"day": days[[0, 1, 3]]}), [0, 0, 1])
    assert "|--- day <= 2024-01-03\n" in text


def test_durations():
    spans = pd.to_timedelta([1, 2, 3, 4], unit="h")
    text = report(pd.DataFrame({"span": spans}), [0, 0, 1, 1])
    assert "|--- span <= 2:30:00\n" in text
    assert duration_format(np.zeros(1), 2)(1.5 * 86_400e9) == "1 day, 12:00:00"


def test_booleans():
    text = report(pd.DataFrame({"flag": [True, False] * 4}), [1, 0] * 4)
    assert text.splitlines()[::2] == ["|--- flag is False", "|--- flag is True"]


def test_thresholds_that_would_look_equal():
    def shown(*values, decimals=2):
        form = number_format(np.array(values), decimals)
        return [form(v) for v in values]

    assert shown(0.5, 1.25) == ["0.50", "1.25"]
    assert shown(1.0, 1.001) == ["1.000", "1.001"]
    assert shown(1.0001, 1.0002, decimals=1) == ["1.0001", "1.0002"]
    assert shown(-0.004) == ["-0.004"]
    assert shown(0.0) == shown(-0.0) == ["0.00"]
    assert shown(0.0616, 0.0005) == ["0.0616", "0.0005"]
    assert shown(3e-12, 4e-12) == ["3e-12", "4e-12"]
    assert shown(1e15, 1e15 + 1) == ["1000000000000000.00", "1000000000000001.00"]
    assert shown(1.0, np.nextafter(1.0, 2.0)) == ["1.0", "1.0000000000000002"]
    assert shown(0.49, np.nextafter(0.49, 1.0), 9.95) == ["0.49", "0.49000000000000005", "9.95"]
    x = np.array([0.001, 0.002, 0.003, 0.004])
    tree = DecisionTreeRegressor().fit(x[:, None], [1.0, 5.0, 2.0, 9.0])
    thresholds = {line.split()[-1] for line in export_text(tree).splitlines() if "<=" in line}
    assert thresholds == {"0.0015", "0.0025", "0.0035"}


def test_dates_that_would_look_equal():
    base = np.datetime64("2024-05-01T10:11:12.345", "ns").astype(np.int64)
    form = date_format(np.array([base, base + 1e9]), 2)
    assert form(base) == "2024-05-01 10:11:12"
    form = date_format(np.array([base, base + 1e6]), 2)
    assert form(base) == "2024-05-01 10:11:12.345"


def test_small_values_show_digits():
    tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [1e-6, 2.5e-6])
    assert "value: [0.00000100]" in export_text(tree)
    assert "value: [0.00000250]" in export_text(tree)
    tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [1e-12, 2.5e-12])
    assert "value: [2.5e-12]" in export_text(tree)


def test_many_categories():
    text = report(*colours(100, 40))
    assert text.count("c019, ... 20 more}") == 2
    assert "c020" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert report(*colours(100, 21)).count("c020}") == 2  # never "... 1 more"
    assert report(*colours(100, 40), max_categories=None).count("c039}") == 2
    assert report(*colours(100, 40), max_categories=3).splitlines()[::2] == [
        "|--- colour in {c000, c001, c002, ... 37 more}",
        "|--- colour not in {c000, c001, c002, ... 37 more}",
    ]


def test_the_smaller_set_is_written_out():
    assert report(*colours(9, 7)).splitlines()[::2] == [
        "|--- colour not in {c007, c008}",
        "|--- colour in {c007, c008}",
    ]
    assert report(*colours(4, 2)).splitlines()[::2] == [
        "|--- colour in {c000, c001}",
        "|--- colour not in {c000, c001}",
    ]


def test_categories_that_went_elsewhere_are_not_listed():
    frame = pd.DataFrame({"colour": [*"ABCDEF"] * 10})
    tree = DecisionTreeRegressor().fit(frame, [0.0, 0.1, 0.2, 5.0, 7.0, 7.1] * 10)
    assert export_text(tree) == lines(
        "|--- colour in {A, B, C}",
        "|   |--- colour in {A}",
        "|   |   |--- value: [0.00]",
        "|   |--- colour not in {A}",
        "|   |   |--- colour in {B}",
        "|   |   |   |--- value: [0.10]",
        "|   |   |--- colour not in {B}",
        "|   |   |   |--- value: [0.20]",
        "|--- colour not in {A, B, C}",
        "|   |--- colour in {D}",
        "|   |   |--- value: [5.00]",
        "|   |--- colour not in {D}",
        "|   |   |--- colour in {E}",
        "|   |   |   |--- value: [7.00]",
        "|   |   |--- colour not in {E}",
        "|   |   |   |--- value: [7.10]",
    )


def test_categories_that_went_elsewhere_are_not_listed_with_the_heavier_side():
    # A and B would go with C to F, where more rows are
    rows = {"A": 30, "B": 30, "C": 9, "D": 9, "E": 9, "F": 9} | dict.fromkeys("GHIJKL", 1)
    frame = pd.DataFrame({"colour": [name for name, n in rows.items() for _ in range(n)]})
    y = frame["colour"].map(lambda name: -50.0 if name in "AB" else 5.0 + (name > "F"))
    assert export_text(DecisionTreeRegressor().fit(frame, y)) == lines(
        "|--- colour in {A, B}",
        "|   |--- value: [-50.00]",
        "|--- colour not in {A, B}",
        "|   |--- colour in {C, D, E, F}",
        "|   |   |--- value: [5.00]",
        "|   |--- colour not in {C, D, E, F}",
        "|   |   |--- value: [6.00]",
    )


def test_categories_and_missing_values_that_a_number_keeps_out():
    values = [1, 2, 3, 4, "x", None] * 10
    frame = pd.DataFrame({"mixed": pd.Series(values, dtype=object)})
    tree = DecisionTreeRegressor().fit(frame, [0.0, 1.0, 2.0, 3.0, 20.0, 22.0] * 10)
    assert export_text(tree).splitlines()[:3] == [
        "|--- mixed is a number",
        "|   |--- mixed <= 2.50",
        "|   |   |--- mixed <= 1.50",
    ]
    assert [line for line in export_text(tree).splitlines() if "value" not in line][3:] == [
        "|   |   |--- mixed >  1.50",
        "|   |--- mixed >  2.50",
        "|   |   |--- mixed <= 3.50",
        "|   |   |--- mixed >  3.50",
        "|--- mixed is a category or missing",
        "|   |--- mixed is not missing",
        "|   |--- mixed is missing",
    ]


def test_missing_values_take_a_side():
    x = np.array([1.0, 2.0, 3.0, 10.0, 11.0, np.nan])
    for y, side in (([0, 0, 0, 1, 1, 1], ">  6.50"), ([0, 0, 0, 1, 1, 0], "<= 6.50")):
        text = report(pd.DataFrame({"x": x}), y)
        assert f"|--- x {side} or missing" in text
        assert text.count("missing") == 1


def test_missing_values_alone():
    x = np.array([1.0, 2.0, 3.0, 1.0, 2.0, np.nan, np.nan])
    text = report(pd.DataFrame({"x": x}), [0, 0, 0, 0, 0, 1, 1])
    assert sorted(text.splitlines()[::2]) == ["|--- x is missing", "|--- x is not missing"]


def test_missing_categories():
    frame = pd.DataFrame({"colour": ["A", "B", None] * 3})
    text = report(frame, [0, 1, 1] * 3)
    assert ("not in {A} or missing" in text) or ("in {B} or missing" in text)


def test_no_missing_values_no_word_of_them():
    assert "missing" not in report(pd.DataFrame({"x": [1.0, 2.0]}), [0, 1])


def hybrid():
    values = [1, 2, 3, 4, "x", "y"] * 3
    return pd.DataFrame({"mixed": pd.Series(values, dtype=object)})


def test_hybrid_columns():
    low = report(hybrid(), [0, 0, 1, 1, 1, 1] * 3)
    assert "|--- mixed <= 2.50\n" in low
    assert "|--- mixed >  2.50 or a category\n" in low
    high = report(hybrid(), [0, 0, 1, 1, 0, 0] * 3)
    assert "|--- mixed >  2.50\n" in high
    assert "|--- mixed <= 2.50 or a category\n" in high
    words = report(hybrid(), [0, 0, 0, 0, 1, 0] * 3)
    assert "|--- mixed in {x}\n" in words
    assert "|--- mixed not in {x}\n" in words


def test_numbers_against_categories():
    text = report(hybrid(), [0, 0, 0, 0, 1, 1] * 3)
    first = text.splitlines()[0]
    assert first in ("|--- mixed is a number", "|--- mixed in {x, y}")


def test_what_can_be_given():
    iris = load_iris()
    tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    expected = export_text(tree)
    assert export_text(tree.tree_) == expected
    assert export_text(tree.tree_.model) == expected
    frame = pd.DataFrame({"colour": list("ABCABC")})
    coded = DecisionTreeClassifier().fit(frame, [0, 1, 1, 0, 1, 1]).tree_.model
    assert "{code " in export_text(coded)
    coded = DecisionTreeClassifier().fit(*colours(60, 40)).tree_.model
    known = "{" + ", ".join(f"code {i}" for i in range(1, 41)) + "}"  # how many more is not known
    text = export_text(coded, max_categories=None, max_width=None)
    assert text.splitlines()[::2] == [f"|--- feature_0 {word} {known}" for word in ("in", "not in")]


def test_where_one_tree_is_needed_the_trees_of_many_are_named():
    X, y = load_iris(return_X_y=True)
    boosted = GradientBoostingClassifier(max_iter=2).fit(X, y)
    with pytest.raises(ValueError, match=r"\[model.estimators_\[0, 0\] for model in models\]"):
        shared_forest([boosted, boosted])
    assert len(shared_forest([boosted.estimators_[0, 0]] * 2)) > 1


@given(examples())
def test_every_node_of_every_tree_is_written(example):
    for number, tree in enumerate(ModelNodes.of(example.model).trees):
        text = export_text(example.model, tree=number, max_depth=10**6, max_width=None)
        written = [line.lstrip("|- ") for line in text.splitlines()]
        leaves = [line for line in written if line.startswith(("class: ", "value: "))]
        assert len(leaves) == tree.is_leaf.sum()
        assert len(written) - len(leaves) == 2 * (~tree.is_leaf).sum()
        dot = export_graphviz(example.model, tree=number, filled=True)
        assert dot.count("fillcolor=") == len(tree.is_leaf)
        assert dot.count(" -> ") == len(tree.is_leaf) - 1


@pytest.mark.parametrize("write", [export_text, export_graphviz])
def test_one_tree_of_many(write):
    X, y = load_iris(return_X_y=True, as_frame=True)
    boosted = GradientBoostingClassifier(max_iter=2).fit(X, y)
    forest = RandomForestClassifier(2, random_state=0).fit(X, y)
    assert write(boosted, tree=5) == write(boosted.estimators_[1, 2])
    assert write(forest, tree=1) == write(forest[1])
    assert export_graphviz(forest) == export_graphviz(forest[0])
    with pytest.raises(ValueError, match=r"tree must be below 2: the model has 2 trees\. Got 2\."):
        write(forest, tree=2)
    with pytest.raises(ValueError, match=r"the model has one tree\. Got 1\."):
        write(forest[0], tree=1)
    with pytest.raises(ValueError, match="The 'tree' parameter of"):
        write(forest, tree=-1)


def test_trees_of_others_are_none_of_ours():
    X, y = load_iris(return_X_y=True)
    other = sklearn.tree.DecisionTreeClassifier().fit(X, y)
    with pytest.raises(
        TypeError,
        match=r"decision_tree must be a fitted tree, .* of dtrees. Got DecisionTreeClassifier",
    ):
        export_text(other)


def test_thresholds_beside_infinite_values_are_short():
    model = GradientBoostingClassifier(max_iter=1, max_leaf_nodes=2, min_samples_leaf=1)
    text = export_text(model.fit([[1.0], [np.inf]] * 30, [0, 1] * 30))
    assert "feature_0 <= 8.99e+307" in text
    assert number_format(np.array([0.123456, 9e99]), 2)(0.123456) == "0.123"
