"""Rows that go down many trees reach the leaves that they reach in each tree alone."""

import numpy as np
import pandas as pd
import pytest

from dtrees import ExtraTreesClassifier, RandomForestClassifier
from dtrees.coding import CodeBook
from dtrees.core.predict._binned import find_leaves
from dtrees.core.predict.binned import CodedRows
from tests.core.predict.test_binned import table

N_ROWS = 3_000


def columns(kind, rng):
    """Numbers of few or many codes, subsets of few or many categories, hybrid ones; with gaps."""
    numbers = rng.normal(size=(N_ROWS, 4))
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    if kind == "numbers":
        return numbers
    X = pd.DataFrame(numbers, columns=list("abcd"))
    n_categories = 63 if kind == "few categories" else 64
    X["k"] = pd.Categorical(rng.permutation(np.arange(N_ROWS) % n_categories))
    X.loc[rng.random(N_ROWS) < 0.1, "k"] = None
    X["hybrid"] = np.where(rng.random(N_ROWS) < 0.5, "word", X["a"].round(1).astype(object))
    return X


@pytest.mark.parametrize("max_bins", [255, None])
@pytest.mark.parametrize("kind", ["numbers", "few categories", "many categories"])
@pytest.mark.parametrize("model", [RandomForestClassifier, ExtraTreesClassifier])
def test_many_trees_lead_rows_as_each_alone(model, kind, max_bins):
    rng = np.random.default_rng(0)
    X = columns(kind, rng)
    y = rng.integers(0, 3, N_ROWS)
    forest = model(6, random_state=0, max_bins=max_bins).fit(X, y).forest_
    assert min(tree.node_count for tree in forest) > 200
    coded = CodeBook.fit_encode(X, max_bins=max_bins)[1]
    for rows in (np.arange(N_ROWS), np.array([7, 7, 2_999, 0]), np.arange(513), np.arange(0)):
        found = np.empty((6, len(rows)), dtype=np.intp)
        find_leaves(forest.trees, coded, rows, found)
        alone = [CodedRows(coded).leaves(tree, rows) for tree in forest]
        np.testing.assert_array_equal(found, alone)


def test_large_and_small_trees_together():
    X, y = table("numbers", 4_000)
    large = RandomForestClassifier(4, random_state=0).fit(X, y).forest_.trees
    small = RandomForestClassifier(4, random_state=0, max_depth=2).fit(X, y).forest_.trees
    coded = CodeBook.fit_encode(X)[1]
    rows, found = np.arange(4_000), np.empty((8, 4_000), dtype=np.intp)
    trees = [tree for pair in zip(large, small, strict=True) for tree in pair]
    find_leaves(trees, coded, rows, found)
    alone = [CodedRows(coded).leaves(tree, rows) for tree in trees]
    np.testing.assert_array_equal(found, alone)
