"""Which nodes are one, and which tests are the same."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from dtrees import DecisionTreeClassifier
from dtrees.inspection import shared_forest, stability_report
from tests.inspection.tables import SEEDS, assert_levels, expected_levels, fold_models, table


def test_columns_part():
    X = np.random.default_rng(0).normal(size=(40, 2))
    trees = [DecisionTreeClassifier(max_depth=1).fit(X, X[:, j] > 0) for j in (1, 0, 0)]
    leaf = DecisionTreeClassifier(min_samples_split=100).fit(X, X[:, 0] > 0)
    forest = shared_forest([*trees, leaf])
    assert [(forest[i].column, forest[i].models) for i in forest.roots] == [
        (0, (1, 2)),
        (1, (0,)),
        (None, (3,)),
    ]


@given(seed=SEEDS, depth=st.integers(0, 4))
def test_everybody_is_somewhere(seed, depth):
    models, _ = fold_models(seed)
    forest = shared_forest(models, max_depth=depth)
    everybody = tuple(range(4))

    def check(places, whole, at):
        assert tuple(sorted(m for i in places for m in forest[i].models)) == whole
        sizes = [len(forest[i].models) for i in places]
        assert sizes == sorted(sizes, reverse=True)
        for i in places:
            node = forest[i]
            assert node.depth == at <= depth
            assert node.share == len(node.models) / 4
            assert tuple(sorted(m for _, who in node.tests for m in who)) == (
                () if node.is_leaf else node.models
            )
            assert node.is_leaf == (not node.left) == (not node.right)
            if not node.is_leaf:
                assert i < min(node.left + node.right)  # preorder
                check(node.left, node.models, at + 1)
                check(node.right, node.models, at + 1)

    check(forest.roots, everybody, 0)


def test_numbers_and_categories_of_one_column_part():
    column = np.array([1, 2, 3, 4, "a", "b"] * 5, dtype=object)
    frame = pd.DataFrame({"x": column})
    numbers = DecisionTreeClassifier(max_depth=1).fit(frame, [0, 0, 1, 1, 1, 1] * 5)
    category = DecisionTreeClassifier(max_depth=1).fit(frame, [0, 0, 0, 0, 1, 0] * 5)
    forest = shared_forest([numbers, category])
    assert [forest[i].text for i in forest.roots] == ["x <= 2.5", "x in {a}"]


def test_thresholds_part_the_test_and_not_the_column():
    X = np.arange(10.0)[:, None]
    one = DecisionTreeClassifier().fit(X, X[:, 0] > 4)
    other = DecisionTreeClassifier().fit(X, X[:, 0] > 5)
    (level,) = stability_report([one, other, one]).levels
    assert (level.same_column, level.same_test) == (3.0, 2.0)
    assert level.n_shared_nodes == 1


def test_other_columns_part():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    one = DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0] > 0)
    other = DecisionTreeClassifier(max_depth=1).fit(X, X[:, 1] > 0)
    (level,) = stability_report([one, other], one).levels
    assert (level.same_column, level.n_shared_nodes) == (1.0, 2.0)
    report = stability_report([one, other])
    assert report.importances.n_models.tolist() == [1, 1]
    assert_allclose(report.importances.mean, [0.5, 0.5])
    assert_allclose(report.importances.deviation, [0.5**0.5, 0.5**0.5])
    assert report.importances.final is None


def test_missing_values_count_where_there_were_some():
    X, y = np.arange(12.0)[:, None], np.arange(12) > 5
    left = DecisionTreeClassifier().fit(np.append(X, [[np.nan]], axis=0), np.append(y, False))
    right = DecisionTreeClassifier().fit(np.append(X, [[np.nan]], axis=0), np.append(y, True))
    assert stability_report([left, right]).levels[0].same_test == 1.0
    light = DecisionTreeClassifier().fit(X, y, sample_weight=np.where(y, 1, 2))
    heavy = DecisionTreeClassifier().fit(X, y, sample_weight=np.where(y, 2, 1))
    sides = [model.tree_.missing_go_to_left[0] for model in (light, heavy)]
    assert sides[0] != sides[1]  # by weight, as nothing else is known
    assert stability_report([light, heavy]).levels[0].same_test == 2.0


def test_models_with_codebooks_of_their_own():
    X, y = table(5)
    models = [DecisionTreeClassifier(max_depth=2).fit(X[i:], y[i:]) for i in (0, 0, 1)]
    copies = [DecisionTreeClassifier(max_depth=2).fit(X, y) for _ in range(3)]
    assert all(level.least_same_test == 3 for level in stability_report(copies).levels)
    assert_levels(stability_report(models), expected_levels([[m] for m in models], [models[0]]))
