"""The shared forest: who is where, against recursion on dicts, and what its nodes say."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from dtrees.inspection import shared_forest
from tests.inspection.tables import SEEDS, chain, fold_models
from tests.oracle.agreement import nested, shared_nodes


@given(seed=SEEDS, regression=st.booleans())
def test_nodes_as_by_recursion(seed, regression):
    models, final = fold_models(seed, regression=regression)
    forest = shared_forest([*models, final])
    found = Counter(
        (node.depth, node.models, None if node.is_leaf else (node.column, node.tests[0][0].kind))
        for node in forest.nodes
    )
    assert found == shared_nodes([nested(model) for model in [*models, final]])
    assert forest.n_models == 5
    assert not any(node.is_cut for node in forest.nodes)


def test_one_model_is_its_tree():
    _, final = fold_models(0)
    tree = final.tree_.model
    forest = shared_forest([final])
    assert len(forest) == tree.node_count
    for i, node in enumerate(forest.nodes):
        assert (node.models, node.share, node.n_rows) == ((0,), 1.0, tree.n_node_samples[i])
        assert_allclose(node.value, tree.value[i])
        if tree.test[i]:
            assert node.left + node.right == (tree.children_left[i], tree.children_right[i])
            assert node.column == tree.feature[i]
            if tree.test[i] != 3:
                assert node.interval == (tree.threshold[i],) * 2


def test_thresholds_are_a_range():
    forest = shared_forest(chain(4, 6, 4), feature_names=["age"], class_names=["no", "yes"])
    assert forest.roots == (0,)
    root, left, right = forest.nodes
    assert root.interval == (4.5, 6.5)
    assert [(test.threshold, who) for test, who in root.tests] == [(4.5, (0, 2)), (6.5, (1,))]
    assert [test.missing_left for test, _ in root.tests] == [None, None]
    assert [node.text for node in forest.nodes] == ["age <= 4.5 .. 6.5", "no", "yes"]
    assert (left.n_rows, right.n_rows) == (17 / 3, 13 / 3)
    assert left.left == left.right == left.tests == ()
    assert left.column is left.interval is None
    assert_allclose(left.value, [1.0, 0.0])


def test_cut_nodes_speak_as_leaves():
    models, _ = fold_models(0, max_depth=3)
    forest = shared_forest(models, max_depth=0)
    (root,) = forest.nodes
    assert root.is_cut
    assert root.is_leaf
    assert root.models == (0, 1, 2, 3)
    shares = [model.tree_.model.value[0] for model in models]
    assert_allclose(root.value, np.mean(shares, axis=0))
    assert not any(node.is_cut for node in shared_forest(models, max_depth=3).nodes)


def test_sets_of_categories():
    frame = pd.DataFrame({"colour": list("ABCD") * 5, "n": 0.0})
    one = DecisionTreeClassifier().fit(frame, frame.colour.isin(["A", "B"]))
    other = DecisionTreeClassifier().fit(frame, frame.colour.isin(["A"]))
    forest = shared_forest([one, other, one])
    root = forest[0]
    assert root.interval is None
    assert [test.categories for test, _ in root.tests] == [{"C", "D"}, {"B", "C", "D"}]
    assert [who for _, who in root.tests] == [(0, 2), (1,)]
    assert root.text == "colour in {C, D}"
    assert shared_forest([other])[0].text == "colour not in {A}"
    on_codes = shared_forest([one.tree_.model])[0]
    assert on_codes.tests[0][0].categories == {3, 4}
    assert on_codes.text == "feature_0 in {code 3, code 4}"


@pytest.mark.parametrize(
    ("column", "y", "text"),
    [
        ([1.0, 2.0, np.nan, 4.0], [0, 0, 0, 1], "x <= 3.0 or missing"),
        ([1.0, 2.0, 4.0, np.nan], [0, 0, 1, 1], "x <= 3.0"),
        ([1.0, 2.0, np.nan, np.nan], [0, 0, 1, 1], "x is not missing"),
        ([True, False, True, False], [1, 0, 1, 0], "x is False"),
        (pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-04", "2024-01-05"]), [0, 0, 1, 1],
         "x <= 2024-01-03"),
        ([0.001, 0.002, 0.004, 0.005], [0, 0, 1, 1], "x <= 0.003"),
    ],
)  # fmt: skip
def test_words(column, y, text):
    tree = DecisionTreeClassifier().fit(pd.DataFrame({"x": column}), y)
    root = shared_forest([tree, tree])[0]
    assert root.text == text
    has_missing = pd.isna(column).any()
    assert root.tests[0][0].missing_left == (text.endswith("or missing") if has_missing else None)


def test_a_leaf_of_numbers_tells_their_mean():
    tree = DecisionTreeRegressor(max_depth=1).fit(np.arange(4.0)[:, None], [1.0, 1.0, 2.5, 2.5])
    assert [node.text for node in shared_forest([tree]).nodes] == ["feature_0 <= 1.5", "1.0", "2.5"]


class TestErrors:
    def test_forests(self):
        forest = RandomForestClassifier(2).fit(*load_iris(return_X_y=True))
        with pytest.raises(ValueError, match=r"has many trees.*model\.estimators_\[0\]"):
            shared_forest([forest])
        assert shared_forest([forest.estimators_[0]]).n_models == 1

    def test_a_single_tree(self):
        with pytest.raises(TypeError, match="'models' parameter of shared_forest must be a list"):
            shared_forest(DecisionTreeRegressor().fit([[0.0]], [2.0]))

    def test_no_model(self):
        with pytest.raises(ValueError, match="at least one fitted model is needed"):
            shared_forest([])

    def test_negative_depth(self):
        with pytest.raises(
            ValueError, match=r"'max_depth' parameter of shared_forest must be .* Got -1"
        ):
            shared_forest(chain(3), max_depth=-1)

    def test_other_classes(self):
        X = np.arange(4.0)[:, None]
        models = [DecisionTreeClassifier().fit(X, y) for y in ([0, 0, 1, 1], [0, 0, 2, 2])]
        with pytest.raises(ValueError, match="model 1 has other classes than model 0"):
            shared_forest(models)
        numbers = DecisionTreeRegressor().fit(X, [0, 0, 1, 1])
        with pytest.raises(ValueError, match="model 1 has other classes than model 0"):
            shared_forest([models[0], numbers])

    def test_names(self):
        with pytest.raises(ValueError, match="feature_names must contain 1 elements, got 2"):
            shared_forest(chain(3), feature_names=["a", "b"])
        with pytest.raises(ValueError, match="`class_names` is an array"):
            shared_forest(chain(3), class_names=["a"])
