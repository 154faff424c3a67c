"""Trees in DOT; and scikit-learn's function, which shows what it can and refuses the rest."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from dtrees.export import nodes
from dtrees.inspection import export_graphviz


@pytest.fixture(scope="module")
def jobs():
    """A tree that tests a set of categories."""
    job = ["clerk", "sales", 'the "boss"', "back\\slash"] * 30
    X = pd.DataFrame({"job": job, "age": np.arange(120) % 50})
    y = np.where(np.isin(X["job"], ["clerk", "sales"]) ^ (X["age"] > 40), "yes", "no")
    return DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def hybrid():
    """A tree that tests numbers above a threshold, in a column that has categories, too."""
    cells = pd.Series([*range(20), *["n/a"] * 20], dtype=object)
    y = [*[0] * 10, *[1] * 10, *[0] * 20]
    return DecisionTreeClassifier(max_depth=1).fit(pd.DataFrame({"size": cells}), y)


def test_scikit_learns_function_refuses_what_it_cannot_show(jobs, hybrid):
    for tree, column in ((jobs, "job"), (hybrid, "size")):
        with pytest.raises(ValueError, match=rf"column '{column}'.* dtrees\.inspection\.export_g"):
            sklearn.tree.export_graphviz(tree)


@pytest.mark.parametrize("function", [sklearn.tree.plot_tree, sklearn.tree.export_text])
def test_others_take_no_trees_but_their_own(function, jobs):
    with pytest.raises(ValueError, match="must be an instance of 'sklearn"):
        function(jobs)


def test_scikit_learns_function_shows_trees_of_numbers():
    iris = load_iris()
    tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    assert "nan" not in sklearn.tree.export_graphviz(tree)


def test_every_node_and_edge_of_a_tree_of_numbers_is_scikit_learns():
    iris = load_iris()
    limits = {"max_depth": 3, "min_samples_leaf": 6}
    tree = DecisionTreeClassifier(**limits).fit(iris.data, iris.target)
    ours, theirs = export_graphviz(tree, node_ids=True), sklearn.tree.export_graphviz(tree)
    edges = r"^(\d+) -> (\d+)"
    assert sorted(re.findall(edges, ours, re.M)) == sorted(re.findall(edges, theirs, re.M))
    for node in range(tree.tree_.node_count):
        (mine,) = re.findall(rf'^{node} \[label="node #{node}\\n(.*)"\]', ours, re.M)
        (other,) = re.findall(rf'^{node} \[label="([^"]*)"', theirs, re.M)
        facts = re.findall(r"samples = \d+", other)
        assert facts == re.findall(r"samples = \d+", mine)


def test_sets_are_told_in_words(jobs):
    dot = export_graphviz(jobs)
    assert "nan" not in dot
    assert "in {" in dot
    assert r"back\\slash" in dot
    assert r"back\\\\slash" not in dot
    assert r"\"boss\"" in dot
    assert '0 -> 1 [labeldistance=2.5, headlabel="True"] ;' in dot
    assert "class = yes" in dot
    short = export_graphviz(jobs, max_depth=0, impurity=False, class_names=["a", "b"])
    assert short.count("(...)") == 2
    assert "gini" not in short
    assert "class = b" in short or "class = a" in short


def test_files_and_regression(tmp_path):
    X = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=40)})
    tree = DecisionTreeRegressor(max_depth=1).fit(X, np.arange(40) // 20)
    path = tmp_path / "tree.dot"
    assert export_graphviz(tree, path) is None
    assert path.read_text(encoding="utf-8") == export_graphviz(tree)
    assert "when <= 2020-01-20" in export_graphviz(tree)
    assert "value = 0.50" in export_graphviz(tree)


def test_errors(jobs):
    with pytest.raises(NotFittedError):
        export_graphviz(DecisionTreeClassifier())
    with pytest.raises(ValueError, match="'max_depth' parameter of export_graphviz"):
        export_graphviz(jobs, max_depth=-1)
    with pytest.raises(ValueError, match="'decimals' parameter of export_graphviz"):
        export_graphviz(jobs, decimals=None)
    with pytest.raises(ValueError, match="'max_categories' parameter of export_graphviz"):
        export_graphviz(jobs, max_categories=0)
    with pytest.raises(ValueError, match=r"'max_depth' .* int in the range \[0, inf\) or None"):
        export_graphviz(jobs, max_depth="2")
    with pytest.raises(ValueError, match="feature_names must contain 2 elements"):
        export_graphviz(jobs, feature_names=["a"])


def test_boosted_trees_have_no_impurity():
    model = GradientBoostingClassifier(max_iter=2).fit(*load_iris(return_X_y=True))
    dot = export_graphviz(model, tree=4)
    assert "squared_error" not in dot
    assert "samples = 150" in dot
    assert "squared_error" not in export_graphviz(model.estimators_[1, 1])
    X = np.arange(5.0)[:, None]
    assert "squared_error" not in export_graphviz(GradientBoostingRegressor().fit(X, np.ones(5)))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_a_single_leaf_has_an_impurity(kind):
    tree = kind().fit(np.arange(5.0)[:, None], np.ones(5))
    assert " = 0.000\\nsamples = 5\\n" in export_graphviz(tree)
    (node,) = nodes(tree)
    assert node.impurity == 0.0


def test_filled(jobs):
    plain, filled = export_graphviz(jobs), export_graphviz(jobs, filled=True)
    assert "fillcolor" not in plain
    colours = re.findall(r', fillcolor="(#[0-9a-f]{6})"\]', filled)
    assert len(colours) == jobs.tree_.node_count
    assert len(set(colours)) > 2
    assert 'node [shape=box, style="filled", fontname="helvetica"] ;' in filled
    assert re.sub(r', (fillcolor|style)="[^"]*"', "", filled) == plain
