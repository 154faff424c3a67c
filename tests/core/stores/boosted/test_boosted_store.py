"""Rows are partitioned in place; sparse columns give the tree of the dense table."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.coding import CodeBook
from dtrees.core._testing import histogram_of, scores_of_child
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks
from tests.core.grow.boosted_cases import free_rules, grown, table_of

RNG = np.random.default_rng(0)


def text(rng, n_rows, n_columns, density=0.1):
    """Counts of words: most are in few rows."""
    share = rng.random(n_columns) ** 3 * 2 * density
    return np.where(rng.random((n_rows, n_columns)) < share, rng.integers(1, 4, (n_rows, 1)), 0.0)


@given(
    seed=st.integers(0, 200),
    min_rows=st.sampled_from([1, 3, 20]),
    n_classes=st.sampled_from([0, 2, 3]),
    weighted=st.booleans(),
    subsample=st.sampled_from([1.0, 0.6]),
    negative=st.booleans(),
    n_jobs=st.sampled_from([1, 2]),
)
def test_dense_and_sparse_are_the_same_model(
    seed, min_rows, n_classes, weighted, subsample, negative, n_jobs
):
    rng = np.random.default_rng(seed)
    table = text(rng, 120, int(rng.integers(1, 40)), 0.3)
    if negative:  # stored cells on both sides of the fill
        table *= rng.choice([-1, 1], table.shape)
    table[rng.random(table.shape) < 0.01] = np.nan
    signal = np.nan_to_num(table) @ rng.normal(size=table.shape[1]) + rng.normal(size=120)
    weight = rng.integers(0, 3, 120).astype(float) if weighted else None
    how = {"max_iter": 3, "min_samples_leaf": min_rows, "subsample": subsample, "random_state": 0}
    if n_classes == 0:
        y, model = signal, GradientBoostingRegressor(n_jobs=n_jobs, **how)
    else:
        y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
        model = GradientBoostingClassifier(n_jobs=n_jobs, **how)
    dense = model.fit(table, y, weight).forest_.trees
    for form in (sp.csr_array, sp.csc_array):
        sparse = model.fit(form(table), y, weight).forest_.trees
        assert all(a.equals(b) for a, b in zip(dense, sparse, strict=True))


def test_columns_of_few_stored_cells_are_left_out():
    table = np.zeros((100, 5))
    for j, n in enumerate([0, 1, 9, 10, 60]):
        table[:n, j] = 1 + np.arange(n) % 3
    _, coded = CodeBook.fit_encode(sp.csc_array(table))
    assert [ColumnBlocks(coded, n).n_laid_out for n in (1, 2, 10, 11, 61)] == [4, 3, 2, 1, 0]
    y = table[:, 3] + 10 * table[:, 2]
    model = GradientBoostingRegressor(max_iter=2, min_samples_leaf=10).fit(sp.csc_array(table), y)
    assert set(model.forest_[0].feature) <= {-2, 3, 4}
    none = GradientBoostingRegressor(max_iter=2, min_samples_leaf=41)
    assert none.fit(sp.csc_array(table[:, :4]), y).forest_[0].node_count == 1


@pytest.mark.parametrize("n_rows", [300, 5_000])
def test_many_stored_cells_stand_in_several_blocks(n_rows):
    table = sp.csc_array(text(RNG, n_rows, 100, 0.5))
    _, coded = CodeBook.fit_encode(table)
    blocks = ColumnBlocks(coded)
    assert (blocks.n_blocks > 1) == (table.nnz > 2**15)
    gradient, hessian = RNG.integers(-99, 99, n_rows), RNG.integers(0, 99, n_rows)
    packed = (gradient << 32 | hessian).view(np.uint64)
    rows = np.flatnonzero(RNG.random(n_rows) < 0.3).astype(np.uint32)
    for j in np.flatnonzero(np.diff(table.indptr))[::9].tolist():
        codes = coded.column(j)[rows]
        found = histogram_of(blocks, j, rows, packed)
        for k, values in enumerate((np.ones(len(rows), dtype=int), hessian[rows], gradient[rows])):
            wanted = np.bincount(codes, values, minlength=len(found))
            np.testing.assert_array_equal(found[:, k], wanted)


WHO = ("any", "stored", "fill")
WHAT = ("any", "steep", "heavy")


def by_code(codes, gradient, hessian):
    """Rows, hessian, gradient and its size, by code: int64 (7, 4)."""
    found = np.zeros((7, 4), dtype=np.int64)
    rows = np.column_stack([np.ones(len(codes), dtype=np.int64), hessian, gradient, abs(gradient)])
    np.add.at(found, codes, rows)
    return found


@given(
    seed=st.integers(0, 10**6),
    fill=st.integers(0, 6),
    stored=st.sampled_from([0.05, 0.2, 0.9]),
    min_rows=st.sampled_from([1, 5, 20]),
    min_weight=st.sampled_from([1, 2**22]),
    l2=st.sampled_from([0.0, 1.0, 2.0**20]),
    spread=st.sampled_from([0.0, 6.0]),
    shift=st.sampled_from([-1.0, 0.0, 3.0]),
    missing=st.booleans(),
)
def test_bounds_hold(seed, fill, stored, min_rows, min_weight, l2, spread, shift, missing):
    """Rows that leave are any, or those that move the mean, or are nothing but weight."""
    rng = np.random.default_rng(seed)
    n = 400
    codes = np.where(rng.random(n) < stored, rng.integers(0 if missing else 1, 7, n), fill)
    for who, what, leaving in product(WHO, WHAT, (0.0, 0.02, 0.3, 0.6)):
        hessian = (2.0 ** (20 - spread * rng.random(n))).astype(np.int64)
        gradient = ((rng.normal(size=n) + shift + (codes > 3)) * 2**20).astype(np.int64)
        leaves = rng.random(n) < leaving
        if who != "any":
            leaves &= (codes != fill) == (who == "stored")
        if what == "steep":
            gradient[leaves] *= rng.choice([-20, 20])
            hessian[leaves] //= 20
        elif what == "heavy":
            gradient[leaves] //= 20
            hessian[leaves] *= 20
        node = by_code(codes, gradient, hessian)
        removed = by_code(codes[leaves], gradient[leaves], hessian[leaves])
        score, bound = scores_of_child(node, removed, fill, min_rows, min_weight, l2)
        if bound < 0:
            assert score < 0 or (codes[~leaves] != fill).sum() < min_rows
        else:
            assert score <= bound
        if not leaves.any() and 0 <= bound < math.inf:
            assert score == pytest.approx(bound, rel=1e-6)


def test_few_columns_are_searched_in_larger_children():
    """Most words say nothing, and are left out; the tree is that of the dense table."""
    rng = np.random.default_rng(0)
    table = np.where(rng.random((3_000, 60)) < 0.1, rng.integers(1, 9, (3_000, 60)), 0).astype(
        float
    )
    signal = 3.0 * (table[:, 0] > 4) + 2.0 * (table[:, 1] > 2) + 1.5 * (table[:, 2] > 5)
    gradient = (-(signal + rng.normal(size=3_000) / 8) * 2**18).astype(np.int64)
    hessian = np.full(3_000, 2**16)
    rules = free_rules(min_samples_leaf=20, max_leaf_nodes=4)
    dense, sparse = (grown(each, gradient, hessian, rules) for each in (table, sp.csc_array(table)))
    np.testing.assert_array_equal(dense[1].nodes, sparse[1].nodes)
    np.testing.assert_array_equal(dense[1].statistics, sparse[1].statistics)
    assert dense[0].n_searched.sum() == 0
    # the root, and of three splits at most one smaller child each, have no bounds
    assert 60 < sparse[0].n_searched.sum() < 5 * 60


def tree_of(table, seed=0, **rules):
    rng = np.random.default_rng(seed)
    n = table.shape[0]
    gradient, hessian = rng.integers(-(2**18), 2**18, n), rng.integers(2**12, 2**17, n)
    return grown(table, gradient, hessian, free_rules(**rules))


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
