"""Sums over held-out rows in the nodes of a tree, against sums by hand."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.estimators.training_sets import fit_sets
from dtrees.model_selection.held_out import exact_in_sums, fixed_point, held_out_of


def of_half(estimator, X, y, weight=None):
    """A tree of half of the rows, the others, and the nodes that each of those passes."""
    train = np.arange(len(y)) % 2 == 0
    fitted = fit_sets(estimator, X, y, None, train[None])
    rows = np.flatnonzero(~train)
    weight = None if weight is None else weight[rows]
    paths = fitted.models[0].decision_path(X[rows]).toarray().astype(bool)
    return held_out_of(fitted, 0, rows, weight), rows, paths


@pytest.mark.parametrize("weighted", [False, True])
def test_classes(weighted):
    X, y = load_iris(return_X_y=True)
    weight = np.arange(1.0, 151.0) if weighted else None
    held_out, rows, paths = of_half(DecisionTreeClassifier(max_depth=3), X, y, weight)
    own = np.ones(len(rows)) if weight is None else weight[rows]
    for node in range(held_out.tree.node_count):
        expected = np.bincount(y[rows], own * paths[:, node], minlength=3)
        np.testing.assert_allclose(held_out.counts[node], expected)
    np.testing.assert_allclose(held_out.totals.sum(), own.sum())
    assert held_out.total == own.sum()


def test_numbers():
    X, y = load_diabetes(return_X_y=True)
    held_out, rows, paths = of_half(DecisionTreeRegressor(max_depth=3), X, y)
    away = y[rows] - y[rows].mean()
    for node in range(held_out.tree.node_count):
        mine = away[paths[:, node]]
        expected = [len(mine), mine.sum(), (mine**2).sum()]
        np.testing.assert_allclose(held_out.moments[node], expected, rtol=1e-9, atol=1e-6)


def test_fixed_point():
    counts, unit = fixed_point(np.array([3, 4]))
    assert (counts.tolist(), unit) == ([3, 4], 1.0)
    values = np.random.default_rng(0).normal(size=(50, 2))
    integers, unit = fixed_point(values)
    assert integers.dtype == np.int64
    np.testing.assert_allclose(integers * unit, values, atol=1e-15)


def test_weights_whose_sums_are_not_rounded():
    weight = exact_in_sums(np.random.default_rng(0).random(1000))
    assert weight.sum() == weight[::-1].sum() == weight[::2].sum() + weight[1::2].sum()
