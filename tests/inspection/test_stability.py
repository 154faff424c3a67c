"""Agreement of fold models, against recursion on dicts, and what reports say."""

import doctest
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier as TheirTree

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection import impurity_importances, stability, stability_report
from dtrees.inspection.stability import end_of_subtree
from dtrees.model_selection import cross_validate
from tests.inspection.tables import SEEDS, assert_levels, expected_levels, fold_models, table

IRIS = load_iris(return_X_y=True)


@given(seed=SEEDS, regression=st.booleans(), depth=st.sampled_from([0, 1, 3, None]))
def test_levels_as_by_recursion(seed, regression, depth):
    limits = {"min_samples_split": 100} if depth == 0 else {"max_depth": depth}
    models, final = fold_models(seed, regression=regression, **limits)
    trees = [[model] for model in models]
    assert_levels(stability_report(models, final), expected_levels(trees, [final]))
    assert_levels(stability_report(models), expected_levels(trees, [models[0]]))


def test_a_forest_is_compared_tree_by_tree():
    X, y = table(3)
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    found = cross_validate(forest, X, y, cv=KFold(3), return_estimator=True)
    models, final = found["estimator"], found["final_estimator"]
    report = stability_report(models, final)
    assert report.n_trees == 5
    assert_levels(
        report, expected_levels([model.estimators_ for model in models], final.estimators_)
    )
    shares = [model.feature_importances_ for model in models]
    assert_allclose(report.importances.mean, np.mean(shares, axis=0))
    assert_allclose(report.importances.deviation, np.std(shares, axis=0, ddof=1))
    assert_allclose(report.importances.final, final.feature_importances_)
    assert str(report).startswith("3 models of 5 trees against the final one\n")


def test_forests_of_different_sizes_are_compared_as_far_as_both_go():
    models = [RandomForestClassifier(n, random_state=0).fit(*IRIS) for n in (3, 5)]
    report = stability_report(models)
    assert report.n_trees == 3
    assert all(level.least_same_test == 2 for level in report.levels)
    assert_allclose(
        report.importances.mean, np.mean([model.feature_importances_ for model in models], axis=0)
    )


@given(seed=SEEDS, regression=st.booleans())
def test_equal_models_agree_on_every_level(seed, regression):
    _, final = fold_models(seed, regression=regression)
    for reference in (final, None):
        report = stability_report([final] * 3, reference)
        assert len(report.levels) == final.get_depth()
        depth = final.tree_.model.depth
        for level in report.levels:
            assert level.same_column == level.same_test == 3.0
            assert level.least_same_column == level.least_same_test == 3
            assert level.n_shared_nodes == np.count_nonzero(depth == level.depth)
        assert_allclose(report.importances.deviation, 0.0, atol=1e-15)


@given(seed=SEEDS)
def test_the_order_of_the_models_does_not_matter(seed):
    models, final = fold_models(seed, n_folds=5)
    order = np.random.default_rng(seed).permutation(5)
    one = stability_report(models, final).to_dict()
    other = stability_report([models[i] for i in order], final).to_dict()
    assert one["levels"] == other["levels"]
    for mine, theirs in zip(one["importances"], other["importances"], strict=True):
        assert mine == pytest.approx(theirs)


@given(seed=SEEDS)
def test_fewer_and_fewer_models_agree_further_down(seed):
    models, final = fold_models(seed)
    for level in stability_report(models, final).levels:
        assert len(models) >= level.same_column >= level.same_test
        assert level.same_column >= level.least_same_column >= level.least_same_test
        assert 0.0 < level.row_share <= 1.0


def test_subtrees_are_slices():
    _, final = fold_models(6)
    (tree,) = ModelNodes.of(final).trees

    def size(node):
        if tree.is_leaf[node]:
            return 1
        return 1 + size(tree.left[node]) + size(tree.right[node])

    for node in range(tree.n_nodes):
        assert end_of_subtree(tree, node) == node + size(node)


@pytest.mark.realdata
def test_adult(real_data):
    X, y, _ = real_data("adult")
    found = cross_validate(DecisionTreeClassifier(max_depth=7), X, y, cv=10, return_estimator=True)
    models, final = found["estimator"], found["final_estimator"]
    report = stability_report(models, final)
    assert [level.least_same_column for level in report.levels[:2]] == [10, 10]
    assert_levels(report, expected_levels([[model] for model in models], [final]))


def test_a_single_leaf_asks_nothing():
    X, y = np.zeros((6, 2)), np.arange(6) % 2
    leaf = DecisionTreeClassifier().fit(X, y)
    report = stability_report([leaf, leaf], leaf)
    assert report.levels == ()
    assert str(report).splitlines() == [
        "2 models against the final one",
        "",
        "The reference asks nothing: it is a single leaf.",
        "",
        "No model asks about a column.",
    ]
    stump = DecisionTreeClassifier(max_depth=1).fit(np.arange(6.0)[:, None] * [1, 0], y > 0)
    assert stability_report([leaf, stump], leaf).levels == ()
    (level,) = stability_report([leaf, leaf], stump).levels
    assert (level.same_column, level.n_shared_nodes) == (0.0, 1.0)


def test_one_model_has_no_deviation():
    tree = DecisionTreeRegressor(max_depth=2).fit(*load_diabetes(return_X_y=True))
    report = stability_report([tree])
    assert_allclose(report.importances.mean, tree.feature_importances_)
    assert not report.importances.deviation.any()


def test_trees_on_codes():
    models, final = fold_models(1, max_depth=3)
    report = stability_report([m.tree_.model for m in models], final.tree_.model)
    assert report.importances.names[:2] == ("feature_0", "feature_1")
    same = stability_report([m.tree_ for m in models], final.tree_)
    assert [a.same_column for a in report.levels] == [a.same_column for a in same.levels]
    assert same.to_dict() == stability_report(models, final).to_dict()


def test_the_text():
    X, y = load_iris(return_X_y=True, as_frame=True)
    one = DecisionTreeClassifier(max_depth=1).fit(X, y)
    other = DecisionTreeClassifier(max_depth=1).fit(X.drop(index=range(30)), y[30:])
    assert str(stability_report([one, one, other], one)).splitlines() == [
        "3 models against the final one",
        "",
        "level  tests  rows  shared nodes  same column  least  same test  least",
        "0          1  100%             2          2.0      2        2.0      2",
        "",
        "importance          final    mean            models",
        "petal length (cm)  1.0000  0.6667  ± 0.5774       2",
        "petal width (cm)   0.0000  0.3333  ± 0.5774       1",
    ]


def test_long_tables_are_cut():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 30)), rng.integers(0, 2, 300)
    tree = DecisionTreeClassifier().fit(X, y)
    text = str(stability_report([tree] * 2)).splitlines()
    assert text[0] == "2 models against the first of them"
    n_levels, n_columns = tree.get_depth(), np.count_nonzero(tree.feature_importances_)
    assert text[15] == f"... {n_levels - 12} more"
    assert text[-1] == f"... {n_columns - 20} more"


def test_a_report_is_ready_for_json():
    models, final = fold_models(2, max_depth=3)
    for reference in (final, None):
        report = stability_report(models, reference).to_dict()
        assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert [column["name"] for column in report["importances"]] == [
        "ties",
        "gaps",
        "letters",
        "holes",
        "hybrid",
    ]
    first = stability_report(models, final).to_dict()["importances"][0]
    assert first["final"] == pytest.approx(final.feature_importances_[0])


def test_importances_are_those_of_the_trees():
    models, final = fold_models(4)
    shares = [impurity_importances(model.tree_.model) for model in models]
    found = stability_report(models, final).importances
    assert_allclose(found.mean, np.mean(shares, axis=0))
    assert_allclose(found.deviation, np.std(shares, axis=0, ddof=1))
    assert len(found) == 5
    assert (np.diff(found.mean[found.order()]) <= 0.0).all()


class TestErrors:
    def test_no_model(self):
        with pytest.raises(ValueError, match="at least one fitted model is needed"):
            stability_report([])

    def test_a_single_tree(self):
        tree = DecisionTreeClassifier().fit(*IRIS)
        with pytest.raises(
            TypeError, match="'models' parameter of stability_report must be a list"
        ):
            stability_report(tree, tree)

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            stability_report([DecisionTreeClassifier()])

    @pytest.mark.parametrize("model", [TheirTree().fit(*IRIS), 3])
    def test_what_is_no_tree_of_ours(self, model):
        with pytest.raises(TypeError):
            stability_report([model])

    def test_other_columns(self):
        tree = DecisionTreeClassifier().fit(*IRIS)
        narrow = DecisionTreeClassifier().fit(IRIS[0][:, :2], IRIS[1])
        with pytest.raises(ValueError, match="model 1 has other columns than model 0"):
            stability_report([tree, narrow])
        with pytest.raises(ValueError, match="model 2 has other columns than model 0"):
            stability_report([tree, tree], narrow)

    def test_trees_and_forests(self):
        models = [DecisionTreeClassifier().fit(*IRIS), RandomForestClassifier(2).fit(*IRIS)]
        with pytest.raises(ValueError, match="trees and forests cannot be compared"):
            stability_report(models)


def test_the_example():
    results = doctest.testmod(stability)
    assert results.attempted > 4
    assert results.failed == 0


def test_boosted_models_have_their_own_importances():
    X, y = load_diabetes(return_X_y=True)
    models = [
        GradientBoostingRegressor(max_iter=20, max_leaf_nodes=4).fit(X[i::3], y[i::3])
        for i in range(3)
    ]
    report = stability_report(models, models[0])
    assert (report.n_models, report.n_trees) == (3, 20)
    shares = np.array([model.feature_importances_ for model in models])
    assert_allclose(report.importances.mean, shares.mean(axis=0), rtol=1e-12)
    assert_allclose(report.importances.final, shares[0], rtol=1e-12)
    three = GradientBoostingClassifier(max_iter=2).fit(*IRIS)
    assert stability_report([three, three]).n_trees == 6
