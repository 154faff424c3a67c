"""No boundary scores more than its bound says, whatever rows leave a node."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.stores.boosted._stored_bounds import scores_of_child
from tests.core.grow.boosted_cases import free_rules, grown

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
