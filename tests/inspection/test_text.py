import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, export_text
from dtrees.core.model.tree import Tree
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


def colours(n, left):
    """A table of n categories twice, and a target that tells the first of them from the others."""
    names = [f"c{i:03d}" for i in range(n)]
    return pd.DataFrame({"colour": names * 2}), ([0] * left + [1] * (n - left)) * 2


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


def test_errors():
    with pytest.raises(NotFittedError):
        export_text(DecisionTreeClassifier())
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
