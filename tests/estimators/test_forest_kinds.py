"""The kinds of forests: what they draw, and how well they predict beside those of scikit-learn."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier as TheirExtraTrees
from sklearn.ensemble import RandomForestClassifier as TheirClassifier
from sklearn.ensemble import RandomForestRegressor as TheirRegressor
from sklearn.model_selection import cross_val_score

from dtrees import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.estimators.forest_cases import CANCER, DIABETES, IRIS


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("n_classes", [2, 40])
def test_more_codes_than_rows(kind, n_classes):
    # Dense columns of wide codes are sorted in small nodes; sparse columns always are.
    rng = np.random.default_rng(0)
    X = np.where(rng.random((3_000, 6)) < 0.9, rng.normal(size=(3_000, 6)), 0.0)
    y = (np.argsort(np.argsort(X[:, 0])) * n_classes // 3_000).astype(int)
    exact = kind(3, max_bins=None, random_state=0)
    dense, sparse = exact.fit(X, y), clone(exact).fit(sp.csc_array(X), y)
    assert all(a.equals(b) for a, b in zip(dense.forest_, sparse.forest_, strict=True))


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("ours", "theirs", "data"),
    [
        (RandomForestClassifier, TheirClassifier, CANCER),
        (RandomForestClassifier, TheirClassifier, IRIS),
        (RandomForestRegressor, TheirRegressor, DIABETES),
    ],
)
def test_as_good_as_scikit_learn(ours, theirs, data):
    mine = cross_val_score(ours(60, random_state=0, n_jobs=2), *data, cv=5)
    other = cross_val_score(theirs(60, random_state=0), *data, cv=5)
    assert mine.mean() > other.mean() - 2 * other.std() / np.sqrt(5)


def test_extra_trees_are_as_good_as_scikit_learns():
    mine = cross_val_score(ExtraTreesClassifier(60, random_state=0, n_jobs=2), *CANCER, cv=5)
    other = cross_val_score(TheirExtraTrees(60, random_state=0), *CANCER, cv=5)
    assert mine.mean() > other.mean() - 2 * other.std() / np.sqrt(5)


class TestRandomCuts:
    def test_cuts_are_uniform(self):
        # One column of evenly spread values: the first cut is anywhere, equally often.
        X = np.arange(200.0)[:, None]
        y = np.random.default_rng(0).normal(size=200)
        forest = ExtraTreesRegressor(400, max_depth=1, random_state=0).fit(X, y)
        cuts = np.array([tree.threshold[0] for tree in forest.forest_.trees])
        counts = np.histogram(cuts, bins=8, range=(0, 199))[0]
        assert counts.min() > 25
        assert counts.max() < 80

    def test_values_count_and_not_ranks(self):
        # Half of the range lies between the last two values: half of the cuts do.
        X = np.r_[np.arange(100.0), 200.0][:, None]
        y = np.random.default_rng(0).normal(size=101)
        forest = ExtraTreesRegressor(300, max_depth=1, random_state=0).fit(X, y)
        cuts = np.array([tree.threshold[0] for tree in forest.forest_.trees])
        assert 0.4 < np.mean(cuts > 99) < 0.6

    def test_categories_are_parted_at_random(self):
        table = pd.DataFrame({"letter": list("abcd") * 25})
        y = np.arange(100) % 4
        forest = ExtraTreesRegressor(200, max_depth=1, random_state=0).fit(table, y)
        words = {int(tree.subset_words[0]) & 0b11110 for tree in forest.forest_.trees}
        assert len(words) >= 12  # of 14 proper subsets

    def test_leaves_are_large_enough(self):
        X, y = CANCER
        forest = ExtraTreesClassifier(10, min_samples_leaf=13, random_state=0).fit(X, y)
        for tree in forest.forest_.trees:
            assert tree.n_node_samples[tree.test == 0].min() >= 13


@pytest.mark.parametrize(
    ("bagging", "forest", "data"),
    [
        (BaggingClassifier, RandomForestClassifier, IRIS),
        (BaggingRegressor, RandomForestRegressor, DIABETES),
    ],
)
def test_the_trees_are_those_of_a_forest_that_searches_all_columns(bagging, forest, data):
    X, y = data
    mine = bagging(4, random_state=3).fit(X, y)
    other = forest(4, random_state=3, max_features=None).fit(X, y)
    for one, same in zip(mine.forest_.trees, other.forest_.trees, strict=True):
        assert one.equals(same)
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))


@pytest.mark.parametrize("kind", [BaggingClassifier, BaggingRegressor])
def test_there_is_no_max_features(kind):
    assert "max_features" not in inspect.signature(kind).parameters
    assert "max_features :" not in inspect.getdoc(kind)
