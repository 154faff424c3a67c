"""Nodes of few rows: columns are integers, searched and parted as lists of rows would be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import DecisionTreeRegressor
from dtrees.core.data.tuning import Tuning
from tests.laws.tables import Example, arrays_of, coded_sparse, fit, grow_tree
from tests.oracle.greedy import assert_tree_is_greedy
from tests.registers import wide_registers


@given(
    st.integers(2, 16),
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 52),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_the_tree_of_entries(n, n_columns, least, bits, random_ties, seed):
    """Columns of values that all differ, of few values, of one; targets of few and of many digits,
    about a mean that may be far away."""
    rng = np.random.default_rng(seed)
    most = rng.choice([1, 2, 4, 1000], n_columns)
    table = [rng.integers(0, k, n).astype(float).tolist() for k in most]
    offset = int(rng.choice([0, 2 ** (bits - 1)]))
    y = (rng.integers(0, 2 ** rng.integers(0, bits), n) + offset).astype(float)
    limits = {"min_samples_leaf": least, "random_ties": random_ties, "seed": seed % 97}
    example = Example(table, y, None, "squared_error", limits)
    tree = fit(example)
    with wide_registers(False):
        assert arrays_of(tree) == arrays_of(fit(example))


def test_more_columns_than_there_is_room_for():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (4097, 8)).astype(float).tolist()
    example = Example(table, rng.normal(size=8), None, "squared_error")
    tree = fit(example)
    assert arrays_of(tree) == arrays_of(grow_tree(example, coded_sparse(example.table, 0)))


def example_of(kinds, criterion, n, limits):
    """Columns that may be packed, but for the kinds that are named."""
    rng = np.random.default_rng(n)
    table = [rng.normal(size=n).tolist() for _ in range(3)]
    table += [rng.integers(0, 3, n).astype(float).tolist() for _ in range(2)]
    table.append(np.where(rng.random(n) < 0.8, 4.0, rng.normal(4, 1, n)).tolist())  # most: one
    if "missing" in kinds:
        for share in (0.1, 0.8):
            table.append([None if rng.random() < share else x for x in rng.normal(size=n).tolist()])
    if "categories" in kinds:
        table.append([f"c{i}" for i in rng.integers(0, 4, n)])
    y = rng.integers(0, 2, n) if criterion == "gini" else rng.normal(size=n)
    return Example(table, y, None, criterion, limits)


@pytest.mark.one_of(8)
@pytest.mark.parametrize("kinds", [(), ("missing",), ("categories",)], ids=str)
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize("limits", [{}, {"min_samples_leaf": 2, "random_ties": True, "seed": 3}])
def test_trees_are_those_of_entries(kinds, criterion, limits):
    """Also where most rows share a value, which has no entries, and on few rows of many digits."""
    for n in (2, 5, 16, 17, 150):
        example = example_of(kinds, criterion, n, limits)
        tree = fit(example)
        sparse = coded_sparse(example.table, n)
        assert arrays_of(tree) == arrays_of(grow_tree(example, sparse)), n
        with wide_registers(False):
            assert arrays_of(tree) == arrays_of(fit(example)), n
        assert_tree_is_greedy(tree, example.table, example.target, example.rules)


@pytest.mark.parametrize("counted_rows", [0, 1, 4, 16, 128])
def test_few_rows_are_not_relocated(counted_rows):
    """Columns that are counted in smaller nodes than these move them to buffers of their own."""
    rng = np.random.default_rng(counted_rows)
    columns = rng.integers(0, 2, 200), rng.normal(size=200), rng.normal(size=200)
    table = [column.astype(float).tolist() for column in columns]
    example = Example(table, rng.normal(size=200), None, "squared_error", {})
    tree = fit(example, tuning=Tuning(counted_rows=counted_rows))
    assert arrays_of(tree) == arrays_of(fit(example, tuning=Tuning(counted_rows=1 << 40)))


@pytest.mark.parametrize("seed", range(20))
def test_scores_that_are_roundings(seed):
    """Two targets that differ in the sixteenth digit, beside one of the other sign: a column that
    most rows share a value of may win by a rounding, whether it has entries for them or not."""
    rng = np.random.default_rng(seed)
    y = np.r_[-1e15, -1e15, 1e15 - 4 + rng.integers(0, 2, 14)]
    columns = [np.r_[5.0, 5.0, rng.normal(size=14)]]
    columns += [np.r_[0.0, 0.0, np.eye(14)[i] * 0.5] for i in rng.permutation(14)[:6]]
    columns += [np.r_[0.0, 0.0, rng.integers(0, 3, 14)] for _ in range(3)]
    limits = {"random_ties": True, "seed": seed}
    table = [column.tolist() for column in columns]
    example = Example(table, y, None, "squared_error", limits)
    tree = fit(example)
    with wide_registers(False):
        assert arrays_of(tree) == arrays_of(fit(example))


@pytest.mark.parametrize("seed", range(3))
def test_trees_whose_first_row_is_extreme(seed):
    """Fixed points use all bits that there are: sums of differences from a row would overflow."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(4000, 5)), rng.normal(size=4000)
    largest = np.abs(y).argmax()
    y[[0, largest]] = y[[largest, 0]]
    model = DecisionTreeRegressor(random_state=0, min_samples_leaf=20)
    tree = model.fit(X, y).tree_.model
    with wide_registers(False):
        assert arrays_of(tree) == arrays_of(model.fit(X, y).tree_.model)


LIMITS = [
    {},
    {"random_state": None, "min_samples_leaf": 7},
    {"min_weight_fraction_leaf": 0.01},
    {"interaction_cst": [[0, 1], [2, 3, 4], [5]]},
    {"monotonic_cst": [1, 0, 0, -1, 0, 0]},
    {"max_depth": 6, "criterion": "poisson"},
]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_those_of_plain_loops(limits, missing, weighted):
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
    with wide_registers(False):
        other = model.fit(X, y, w).tree_.model
    assert tree.node_count > 10
    assert arrays_of(tree) == arrays_of(other)
