"""What the picture of one tree shows."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    plot_tree,
)
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection import export_graphviz
from dtrees.inspection.tree_formatter import formatter_of
from dtrees.inspection.tree_plot import _boxes
from tests.inspection.test_plots import boxes, edges, texts

pytest.importorskip("matplotlib").use("Agg")

IRIS = load_iris(as_frame=True)


@pytest.fixture(autouse=True)
def no_figure_stays():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def tree():
    return DecisionTreeClassifier(max_depth=3).fit(IRIS.data, IRIS.target)


def test_a_node_has_its_test_impurity_rows_and_classes(tree):
    ax = plot_tree(tree, max_depth=1, class_names=IRIS.target_names)
    shown = texts(ax)
    for text in ("petal length (cm) <= 2.45", "gini 0.667  ·  150 rows", "50  ·  50  ·  50"):
        assert text in shown
    assert shown.count("setosa") == 2  # a leaf, and the legend
    assert "gini 0.5  ·  100 rows" in shown
    assert shown.count("yes") == shown.count("no") == 1
    assert shown.count("•••") == 1
    assert len(boxes(ax)) == 3
    assert len(edges(ax)) == 2


def test_depth(tree):
    sizes = [len(boxes(plot_tree(tree, max_depth=depth))) for depth in (0, 1, 2, None)]
    assert sizes[:2] == [1, 3]
    assert sizes[-1] == tree.tree_.node_count
    assert "•••" not in texts(plot_tree(tree, max_depth=None))


def test_a_tree_that_is_deeper_than_python_calls():
    number = np.arange(1_100)
    chain = DecisionTreeClassifier().fit(number[:, None], number % 2)
    assert chain.get_depth() > sys.getrecursionlimit()
    assert (
        len(_boxes(formatter_of(ModelNodes.of(chain), 0, None, None), None, True).all())
        == chain.tree_.node_count
    )


def test_a_criterion_without_an_impurity_shows_that_of_gini():
    tree = DecisionTreeClassifier(criterion="chi_square", max_depth=2).fit(IRIS.data, IRIS.target)
    assert "gini 0.667  ·  150 rows" in texts(plot_tree(tree))
    assert "gini = 0.667" in export_graphviz(tree)


def test_classes_have_colours_that_are_stronger_where_they_are_pure(tree):
    drawn = boxes(plot_tree(tree, max_depth=1))
    root, setosa, others = (np.array(box.get_facecolor()[:3]) for box in drawn)
    assert setosa.sum() < root.sum()
    assert (setosa - others)[0] < 0 < (setosa - others)[2]  # blue, and orange


def test_many_classes_have_no_counts():
    y = np.repeat(np.arange(5), 4)
    shown = texts(plot_tree(DecisionTreeClassifier(max_depth=1).fit(np.c_[y], y)))
    assert not any("·" in text and "rows" not in text for text in shown)


def test_numbers():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = DecisionTreeRegressor(max_depth=1).fit(X, y)
    ax = plot_tree(model, decimals=1)
    assert "mean 152.1" in texts(ax)
    assert any(text.startswith("squared error ") for text in texts(ax))
    low, high = sorted(boxes(ax)[1:], key=lambda box: sum(box.get_facecolor()[:3]), reverse=True)
    assert low.get_facecolor() != high.get_facecolor()
    boosted = GradientBoostingRegressor(max_iter=1, max_depth=1).fit(X, y).estimators_[0, 0]
    assert "442 rows" in texts(plot_tree(boosted))


def test_options(tree):
    shown = texts(plot_tree(tree, impurity=False, feature_names=list("abcd"), max_depth=0))
    assert "c <= 2.45" in shown
    assert "150 rows" in shown
    from matplotlib import pyplot

    ax = pyplot.subplots()[1]
    assert plot_tree(tree, ax=ax) is ax


def test_trees_of_forests(tree):
    forest = RandomForestClassifier(2, random_state=0).fit(IRIS.data, IRIS.target)
    for number in (0, 1):
        assert texts(plot_tree(forest, tree=number)) == texts(plot_tree(forest[number]))
    with pytest.raises(ValueError, match="the model has 2 trees"):
        plot_tree(forest, tree=2)
    with pytest.raises(NotFittedError):
        plot_tree(DecisionTreeClassifier())


def test_without_matplotlib(tree, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="plot_tree needs matplotlib, which is not installed"):
        plot_tree(tree)
