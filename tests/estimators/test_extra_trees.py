"""Extremely randomized trees: where they cut, and how well they predict."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier as TheirExtraTrees
from sklearn.model_selection import cross_val_score

from dtrees import ExtraTreesClassifier, ExtraTreesRegressor

CANCER = load_breast_cancer(return_X_y=True)


def test_as_good_as_scikit_learn():
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
