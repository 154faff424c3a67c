"""Splits that part the rows alike gain alike, to the last bit, whatever the target is.

A column and its negative part the rows of a node alike, with the sides exchanged. In small nodes
other columns do, too. So the models below meet ties of real targets in most of their nodes: two
fixed points of the same target, or two ways to count the same rows, must not tell them apart.
"""

import numpy as np
import pytest
from sklearn.model_selection import KFold

import dtrees
from dtrees.core.data.tuning import Tuning
from dtrees.model_selection import cross_validate
from tests.laws.tables import (
    Example,
    arrays_of,
    coded_sparse,
    cut_in_parts,
    fit,
    grow_parts,
    grow_tree,
)

TARGETS = {
    "real": lambda rng, n: rng.normal(size=n),
    "far from zero": lambda rng, n: 1e6 + rng.normal(size=n),
    "of many sizes": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-4, 5, n),
    "whole": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "mirrored": lambda rng, n: rng.integers(0, 3, n) * rng.choice([-1.0, 1.0], n),
}
MODELS = {
    "tree": dtrees.DecisionTreeRegressor(),
    "leaves of five": dtrees.DecisionTreeRegressor(min_samples_leaf=5),
    "forest": dtrees.RandomForestRegressor(
        n_estimators=2, bootstrap=False, max_features=0.5, random_state=0
    ),
    "extra trees": dtrees.ExtraTreesRegressor(n_estimators=2, random_state=0),
}


def table_of(rng, n_rows):
    """Numbers, a few values, missing ones, and the negative of a column."""
    X = rng.normal(size=(n_rows, 5))
    X[:, 1] = rng.integers(0, 6, n_rows)
    X[rng.random(n_rows) < 0.1, 2] = np.nan
    X[:, 4] = -X[:, 0]
    return X


@pytest.mark.one_of(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", MODELS)
def test_folds_are_fits_and_weights_are_repeated_rows(target, model):
    estimator = MODELS[model]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n_rows = int(rng.integers(20, 240))
        X, y = table_of(rng, n_rows), TARGETS[target](rng, n_rows)
        times = rng.integers(1, 4, n_rows)
        near = {"rtol": 1e-9, "atol": 1e-9 * np.ptp(y)}
        if model != "leaves of five":  # a row of weight two is one row of a leaf
            weighted = estimator.fit(X, y, sample_weight=times).predict(X)
            repeated = estimator.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict(X)
            np.testing.assert_allclose(weighted, repeated, **near)
        found = cross_validate(estimator, X, y, cv=KFold(4), return_estimator=True)
        for (train, test), of_fold in zip(KFold(4).split(X), found["estimator"], strict=True):
            alone = estimator.fit(X[train], y[train]).predict(X[test])
            np.testing.assert_allclose(of_fold.predict(X[test]), alone, **near)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_first_of_two_mirrored_columns_is_taken(target, weighted):
    """In every node, from entries, histograms, sparse entries, few rows and sums of blocks."""
    rng = np.random.default_rng(len(target))
    for n_rows, n_values in ((60, 60), (300, 40), (1500, 1500)):
        x = rng.permutation(n_rows) % n_values - n_values / 2 + 0.25
        y = TARGETS[target](rng, n_rows)
        weight = rng.random(n_rows) * 3 if weighted else None
        example = Example([x.tolist(), (-x).tolist()], y, weight, "squared_error", {})
        for tuning in (Tuning(), Tuning(counted_rows=0), Tuning(counted_rows=1 << 40)):
            tree = fit(example, tuning=tuning)
            assert set(tree.feature.tolist()) <= {0, -2}
        if n_rows < 1000:
            assert arrays_of(grow_tree(example, coded_sparse(example.table, 0), None)) == arrays_of(
                tree
            )
            rounds = grow_parts(example, cut_in_parts(example, n_rows // 2), gather_rows=0)
            assert arrays_of(rounds) == arrays_of(tree)
