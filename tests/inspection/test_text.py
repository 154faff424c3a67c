import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, export_text
from dtrees.core.model import Tree
from dtrees.inspection.text import category_word, date_format, duration_format, number_format


def lines(*text):
    return "\n".join(text) + "\n"


def report(table, y, *, kind=DecisionTreeClassifier, **options):
    return export_text(kind(max_depth=1).fit(table, y), **options)


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


def test_categories():
    frame = pd.DataFrame({"colour": list("ABCABC")})
    assert report(frame, [0, 1, 1, 0, 1, 1]).splitlines()[::2] in (
        ["|--- colour in {A}", "|--- colour not in {A}"],
        ["|--- colour in {B, C}", "|--- colour not in {B, C}"],
    )


def test_many_categories():
    names = [f"c{i:03d}" for i in range(100)]
    frame = pd.DataFrame({"colour": names * 2})
    text = report(frame, [0] * 40 + [1] * 60 + [0] * 40 + [1] * 60)
    assert "c003" in text or "c043" in text
    assert max(map(len, text.splitlines())) < 100
    assert "... 30 more}" in text or "... 50 more}" in text


def test_words_that_would_be_misread():
    assert [category_word(w) for w in ("plain words", "", " a", "a, b", "{", 3, 2.5, True)] == [
        *("plain words", "''", "' a'", "'a, b'", "'{'", "3", "2.5", "True")
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
    assert len(set(shown(1.0, np.nextafter(1.0, 2.0)))) == 2
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
        weighted_n_node_samples=np.ones(n),
        value=np.ones((n, 1)),
        n_columns=1,
        criterion="squared_error",
    )
    assert export_text(tree, max_depth=depth).count("value") == depth + 1
    assert export_text(tree).endswith(f"truncated branch of depth {depth - 10}\n")


def test_one_leaf():
    assert export_text(DecisionTreeClassifier().fit([[0.0]], ["a"])) == "|--- class: a\n"
    assert export_text(DecisionTreeRegressor().fit([[0.0]], [2.0])) == "|--- value: [2.00]\n"


def test_what_can_be_given():
    iris = load_iris()
    tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    expected = export_text(tree)
    assert export_text(tree.tree_) == expected
    assert export_text(tree.tree_.model) == expected
    frame = pd.DataFrame({"colour": list("ABCABC")})
    coded = DecisionTreeClassifier().fit(frame, [0, 1, 1, 0, 1, 1]).tree_.model
    assert "{code " in export_text(coded)


def test_errors():
    with pytest.raises(NotFittedError):
        export_text(DecisionTreeClassifier())
    tree = DecisionTreeClassifier().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(ValueError, match="feature_names must contain 2 elements, got 1"):
        export_text(tree, feature_names=["a"])
    with pytest.raises(ValueError, match="Got 3 while the tree was fitted with 2 classes"):
        export_text(tree, class_names=["a", "b", "c"])
    for name, value in (("max_depth", -1), ("spacing", 0), ("decimals", -1)):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of export_text must be"):
            export_text(tree, **{name: value})
