"""A first look in floats never passes over the column that wins, and mostly leaves few."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import DecisionTreeRegressor
from dtrees.core.data import _cpu
from dtrees.core.search._first_look import worth_of
from tests.laws.tables import arrays_of

CONSTANT, HOPELESS, WORTH = 0, 1, 2


def scores_of(target, entries, least):
    """The best score of each column, as exact as doubles are; None without a boundary."""
    n = len(target)
    found = []
    for column in entries:
        rows, rank = column & 0xFFFF, column >> 16
        k = np.arange(1, n)
        sums = np.cumsum(target[rows])[:-1]
        d = float(n) * sums.astype(float) - k * float(target.sum())
        at = (rank[1:] != rank[:-1]) & (k >= least) & (n - k >= least)
        found.append(max((d * d / (k * (n - k)))[at], default=None))
    return found


def entries_of(rng, n, n_columns):
    """Columns without ties, with many, and constant ones."""
    entries = []
    for _ in range(n_columns):
        values = rng.integers(0, rng.choice([1, 3, n, 10 * n]), n)
        order = np.argsort(values, kind="stable")
        rank = np.unique(values, return_inverse=True)[1][order] + 1
        entries.append(rank.astype(np.uint32) << 16 | order.astype(np.uint32))
    return np.array(entries)


@given(
    st.integers(2, 300),
    st.integers(1, 12),
    st.integers(1, 9),
    st.integers(1, 50),
    st.sampled_from([(0, 0), (1000, 0), (0, 50)]),
    st.integers(0, 2**32 - 1),
)
def test_the_best_column_is_worth_a_look(n, n_columns, least, bits, away, seed):
    """Whatever the digits of the targets, and however far their mean is away."""
    rng = np.random.default_rng(seed)
    entries = entries_of(rng, n, n_columns)
    step, far = away
    values = rng.normal(size=n) + step * ((entries[0] & 0xFFFF) > n // 2)
    target = (values / np.abs(values).max() * 2.0**bits).astype(np.int64) + (far and 2**far)
    worth = worth_of(target, entries, least)
    if worth is None:
        return
    scores = scores_of(target, entries, least)
    for j, best in enumerate(scores):
        if best is not None and best == max(score for score in scores if score is not None):
            assert worth[j] == WORTH
        assert (worth[j] == CONSTANT) == (best is None)


@pytest.mark.parametrize("seed", range(30))
def test_scores_of_a_mean_far_away_are_rounded(seed):
    """Doubles of 53 bits tell targets near 2**50 apart, but not what they add up to."""
    rng = np.random.default_rng(seed)
    entries = entries_of(rng, 200, 12)
    target = rng.integers(0, 4, 200) + 2**50
    worth, scores = worth_of(target, entries), scores_of(target, entries, 1)
    most = max(score for score in scores if score is not None)
    for j, best in enumerate(scores):
        assert worth is None or best != most or worth[j] == WORTH


def test_sums_of_the_largest_targets():
    """The first row of 4,096 is as far from the mean as a target can be."""
    rng, n = np.random.default_rng(0), 4096
    target = rng.integers(0, 2**40, n)
    target[:2] = 2**52, -(2**52)
    target[1000:2000] += 2**45
    order = np.r_[1000:2000, 0:1000, 2000:n]
    step = np.repeat([1, 2], [1000, n - 1000]) << 16 | order
    noise = np.arange(1, n + 1) << 16 | rng.permutation(n)
    worth = worth_of(target, np.array([step, noise], dtype=np.uint32))
    assert worth is None or worth.tolist() == [WORTH, HOPELESS]


@pytest.mark.parametrize("seed", range(3))
def test_trees_whose_first_row_is_extreme(seed):
    """Fixed points use all bits that there are: sums of differences from a row would overflow."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(4000, 5)), rng.normal(size=4000)
    largest = np.abs(y).argmax()
    y[[0, largest]] = y[[largest, 0]]
    model = DecisionTreeRegressor(random_state=0, min_samples_leaf=20)
    tree = model.fit(X, y).tree_.model
    before = _cpu.use_wide(False)
    try:
        assert arrays_of(tree) == arrays_of(model.fit(X, y).tree_.model)
    finally:
        _cpu.use_wide(before)


def test_most_columns_of_many_rows_are_passed_over():
    rng = np.random.default_rng(0)
    entries = entries_of(rng, 4000, 30)
    target = (rng.normal(size=4000) * 2**30).astype(np.int64)
    worth = worth_of(target, entries)
    assert worth is None or (worth == WORTH).sum() <= 3
    varies = [len(set((column >> 16).tolist())) > 1 for column in entries]
    assert worth is None or ((worth == CONSTANT) == ~np.array(varies)).all()


LIMITS = [
    {},
    {"random_state": None, "min_samples_leaf": 7},
    {"min_weight_fraction_leaf": 0.01},
    {"interaction_cst": [[0, 1], [2, 3, 4], [5]]},
    {"monotonic_cst": [1, 0, 0, -1, 0, 0]},
    {"max_depth": 6, "criterion": "poisson"},
]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_those_without_it(limits, missing, weighted):
    """The column that floats prefer may be one that a node must not use."""
    rng = np.random.default_rng(len(limits))
    X = rng.normal(size=(600, 6))
    X[:, 4] = rng.integers(0, 5, 600)
    X[rng.random(600) < 0.7, 5] = 0.0
    if missing:
        X[rng.random(600) < 0.1, 0] = np.nan
    y = np.exp(np.nan_to_num(X[:, 0]) + (X[:, 1] > 0) * X[:, 2] + rng.normal(size=600))
    w = rng.integers(1, 3, 600) if weighted else None
    model = DecisionTreeRegressor(**{"random_state": 0, **limits})
    tree = model.fit(X, y, w).tree_.model
    before = _cpu.use_wide(False)
    try:
        other = model.fit(X, y, w).tree_.model
    finally:
        _cpu.use_wide(before)
    assert tree.node_count > 10
    assert arrays_of(tree) == arrays_of(other)
