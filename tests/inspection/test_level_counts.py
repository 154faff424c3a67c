"""Levels of a stability report are those of an oracle by recursion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.inspection import stability_report
from dtrees.inspection.level_counts import end_of_subtree
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
    tree = final.tree_.model

    def size(node):
        if tree.test[node] == 0:
            return 1
        return 1 + size(tree.children_left[node]) + size(tree.children_right[node])

    for node in range(tree.node_count):
        assert end_of_subtree(tree, node) == node + size(node)


@pytest.mark.realdata
def test_adult(real_data):
    X, y, _ = real_data("adult")
    found = cross_validate(DecisionTreeClassifier(max_depth=7), X, y, cv=10, return_estimator=True)
    models, final = found["estimator"], found["final_estimator"]
    report = stability_report(models, final)
    assert [level.least_same_column for level in report.levels[:2]] == [10, 10]
    assert_levels(report, expected_levels([[model] for model in models], [final]))
