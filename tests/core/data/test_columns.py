"""Columns of a coded matrix as the kernels see them: any storage, and as long as it lives."""

import weakref

import numpy as np
import pytest

from dtrees.core.data import _columns
from dtrees.core.stores._dataset import Dataset
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, fit, grow_tree, seeded
from tests.oracle.greedy import assert_tree_is_greedy

MAJORITIES = ("mostly", "mostly a category", "constant", "ties")


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_a_code_that_most_rows_hold_changes_no_split(case):
    example = seeded(*case, kinds=MAJORITIES, n_rows=70, max_depth=4)
    for column in example.table[:2]:  # seven of eight rows, anywhere
        column[3:] = [column[2] if i % 9 else value for i, value in enumerate(column[3:])]
    tree = fit(example)
    assert tree.node_count > 3
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)


def test_structs_live_as_long_as_their_matrix():
    example = seeded("gini", 2, "none", n_rows=20)
    matrix = coded_sparse(example.table, 1)
    Dataset(matrix, example.target, example.rules)
    columns = _columns._remembered[matrix]
    Dataset(matrix, example.target, example.rules)
    assert _columns._remembered[matrix] is columns  # trees of one matrix share them
    of_matrix = weakref.ref(matrix)
    del matrix
    assert of_matrix() is None  # they do not keep it


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_layout_are_read(order):
    example = seeded("gini", 3, "none", kinds=("ties", "ties", "counts"), n_rows=60)
    matrix = coded(example.table)
    other = matrix.take(np.arange(60))
    other.u8.flags.writeable = True
    object.__setattr__(other, "u8", np.array(other.u8, order=order))
    assert grow_tree(example, other).equals(grow_tree(example, matrix))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("kind", ["distinct", "ties", "one value", "missing", "gaps"])
def test_intervals_have_about_as_many_rows(kind, dtype):
    rng = np.random.default_rng(0)
    n_rows, n_codes = 5_000, 3_000
    codes = {
        "distinct": rng.permutation(n_rows) % n_codes + 1,
        "ties": np.minimum(rng.geometric(0.01, n_rows), n_codes),
        "one value": np.full(n_rows, 700),
        "missing": np.zeros(n_rows, dtype=int),
        "gaps": rng.integers(0, 30, n_rows) * 100,
    }[kind]
    numbers, last = _columns.intervals_of(codes.astype(dtype), n_codes)
    assert numbers.dtype == np.uint8
    assert last[0] == 0
    assert last[-1] == n_codes
    assert (np.diff(last) > 0).all()
    assert len(last) <= 256
    assert (codes <= last[numbers]).all()
    assert (codes[codes > 0] > last[numbers[codes > 0] - 1]).all()
    assert ((numbers == 0) == (codes == 0)).all()
    most = np.bincount(codes[codes > 0], minlength=1).max(initial=0)
    rows = np.bincount(numbers)[1:]
    assert rows.max(initial=0) <= n_rows / 255 + most + 1
