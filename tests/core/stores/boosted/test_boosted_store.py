"""Rows are partitioned in place, whatever their column is stored as."""

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("pandas")

from tests.core.grow.boosted_cases import free_rules, grown, table_of


def tree_of(table, seed=0, **rules):
    rng = np.random.default_rng(seed)
    n = table.shape[0]
    gradient, hessian = rng.integers(-(2**18), 2**18, n), rng.integers(2**12, 2**17, n)
    return grown(table, gradient, hessian, free_rules(**rules))


@pytest.mark.parametrize("seed", range(4))
def test_sparse_columns_grow_the_tree_of_dense_ones(seed):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((300, 5)) < 0.3, rng.integers(-3, 4, (300, 5)), 0).astype(float)
    dense, sparse = (tree_of(each, max_leaf_nodes=20) for each in (table, sp.csc_array(table)))
    np.testing.assert_array_equal(dense[1].nodes, sparse[1].nodes)
    np.testing.assert_array_equal(dense[1].statistics, sparse[1].statistics)
    np.testing.assert_array_equal(dense[0].rows_of_leaves, sparse[0].rows_of_leaves)


@pytest.mark.parametrize("n_categories", [5, 60, 400])
def test_categories_of_any_number(n_categories):
    rng = np.random.default_rng(n_categories)
    labels = [f"k{k}" for k in rng.integers(0, n_categories, 2_000)]
    grower, piece = tree_of(table_of([labels]), max_leaf_nodes=4, min_samples_leaf=50)
    sides = []
    for _, first, n in grower.leaves_of_tree().tolist():
        assert n >= 50
        sides.append({labels[row] for row in grower.rows_of_leaves[first : first + n]})
    assert len(piece.words) > 0
    assert sum(map(len, sides)) == len(set(labels))  # each category is on one side only


def test_histograms_are_used_again():
    """A leaf that is not searched any more gives its cells to another one."""
    grower, _ = tree_of(table_of([list(np.arange(400.0))]), min_samples_leaf=5)
    assert grower.n_histograms < len(grower.leaves_of_tree())
