"""The view of a fitted model says what the model does."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import dtrees
from dtrees import DecisionTreeClassifier, GradientBoostingRegressor
from dtrees.export import model_nodes, nodes
from dtrees.export.model_nodes import ModelNodes
from tests.export.examples import (
    COLUMNS,
    KINDS,
    examples,
    fitted,
    predicted,
    predicted_by_nodes,
)


@given(examples())
def test_nodes_predict_what_the_model_predicts(example):
    for rows in example.X, example.rows:
        expected = predicted(example.model, rows)
        np.testing.assert_allclose(predicted_by_nodes(example.model, rows), expected, rtol=1e-12)


@given(examples())
def test_nodes_are_a_tree(example):
    view = ModelNodes.of(example.model)
    for number in range(len(view.trees)):
        tree = list(view.of_tree(number))
        assert [node.node for node in tree] == list(range(len(tree)))
        assert all(node.tree == number for node in tree)
        for node in tree:
            if node.is_leaf:
                assert (node.column, node.left, node.right, node.gain) == (None, None, None, 0)
                continue
            assert node.name == example.X.columns[node.column]
            below = [tree[node.left], tree[node.right]]
            assert node.left == node.node + 1
            for child in below:
                assert (child.parent, child.depth) == (node.node, node.depth + 1)
            assert sum(child.weight for child in below) == pytest.approx(node.weight)
            assert sum(child.n_samples for child in below) == node.n_samples
            assert node.gain >= 0
            assert np.isnan(node.impurity) == (view.start is not None)
            mean = sum(child.weight * child.value for child in below) / node.weight
            np.testing.assert_allclose(node.value, mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("link", [("squared_error", "identity"), ("poisson", "log")])
def test_links_of_numbers(link):
    example = fitted("GradientBoosting", ["number"])
    y = np.abs(example.y)
    model = GradientBoostingRegressor(link[0], max_iter=3).fit(example.X, y)
    assert ModelNodes.of(model).link == link[1]
    np.testing.assert_allclose(predicted_by_nodes(model, example.X), predicted(model, example.X))


@pytest.mark.parametrize("kind", KINDS)
def test_thresholds_are_in_the_units_of_their_column(kind):
    seen = {}
    for column in COLUMNS:
        example = fitted(kind, [column], n_classes=2)
        tests = [node for node in nodes(example.model) if not node.is_leaf]
        assert tests
        seen[column] = {type(node.threshold).__name__ for node in tests}
    assert seen["date"] == {"datetime64"}
    assert seen["span"] == {"timedelta64"}
    assert seen["number"] == {"float"}
    assert seen["category"] == {"NoneType"}


def test_a_book_is_asked_for():
    tree = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
    view, book = ModelNodes.with_book(tree)
    assert book is view.book is tree.tree_.codebook
    with pytest.raises(TypeError, match="tree on codes"):
        ModelNodes.with_book(tree.tree_.model)


def test_a_tree_on_codes_has_codes():
    example = fitted("DecisionTree", ["category", "number"], n_classes=2)
    named = list(nodes(example.model.tree_))
    coded = list(nodes(example.model.tree_.model))
    assert len(named) == len(coded)
    first = next(i for i, node in enumerate(named) if node.test == "in")
    labels = example.model.tree_.codebook.categories[0].tolist()
    assert {labels.index(name) + 1 for name in named[first].categories} == {
        code for code in coded[first].categories if 0 < code <= len(labels)
    }
    assert coded[first].name == "feature_0"


def test_what_is_no_fitted_model_is_refused():
    with pytest.raises(TypeError, match="must be a fitted tree, forest or boosted model"):
        nodes(LinearRegression().fit([[0.0], [1.0]], [0, 1]))
    searched = dtrees.GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=2)
    X, y = np.arange(8.0)[:, None], [0, 1] * 4
    for model, hint in (
        (make_pipeline(DecisionTreeClassifier()).fit(X, y), "Give its last step"),
        (searched.fit(X, y), "Give its best_estimator_"),
    ):
        with pytest.raises(TypeError, match=hint):
            nodes(model)
    with pytest.raises(TypeError, match="Got 3"):
        nodes(3)
    with pytest.raises(NotFittedError):
        nodes(DecisionTreeClassifier())


def test_the_example():
    assert doctest.testmod(model_nodes).failed == 0
