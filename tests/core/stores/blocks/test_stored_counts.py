"""Histograms of sparse columns as lists, beside those of the same columns in dense storage."""

import numpy as np
import pytest

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._histogram_store import histogram_sizes
from dtrees.core.stores.blocks._node_counts import count
from dtrees.core.stores.blocks._stored_counts import StoredCounter
from dtrees.core.stores.blocks._stored_lists import of_sets
from dtrees.core.stores.blocks.block import EVERYONE, NodeRows
from dtrees.core.stores.blocks.messages import Root
from tests.laws.tables import coded, coded_mixed, coded_sparse, seeded

N_ROWS = 900
KINDS = ("distinct", "ties", "categories", "missing", "counts", "hybrid", "mostly", "constant")
TABLE = seeded("gini", 3, "none", kinds=KINDS, n_rows=N_ROWS).table
RNG = np.random.default_rng(0)
WEIGHT = RNG.integers(1, 9, N_ROWS) * 0.5
TARGETS = {
    "two classes": Target.classification(RNG.integers(0, 2, N_ROWS)),
    "classes": Target.classification(RNG.integers(0, 3, N_ROWS)),
    "many classes": Target.classification(np.arange(N_ROWS) % 150),
    "weights": Target.classification(RNG.integers(0, 2, N_ROWS), WEIGHT),
    "weights of classes": Target.classification(RNG.integers(0, 130, N_ROWS), WEIGHT),
    "regression": Target.regression(RNG.integers(-4, 5, N_ROWS).astype(float), center=False),
    "weights of values": Target.regression(RNG.normal(size=N_ROWS), WEIGHT),
}
COLUMNS = np.array([6, 0, 3, 5], dtype=np.int32)


def datasets(target, matrix):
    rules = GrowthRules(
        criterion="gini" if TARGETS[target].kind == "classification" else "squared_error"
    )
    return Dataset(coded(TABLE), TARGETS[target], rules), Dataset(matrix, TARGETS[target], rules)


def from_dense(dense, matrix, node, members, columns):
    """Dense histograms as lists, without the cells that hold the fill code."""
    sizes = histogram_sizes(dense)
    n_words = int(sizes[0]) // (int(matrix.n_codes[0]) + 1)
    n_sets = members.bit_count()
    found = [([], []) for _ in range(n_sets)]
    before = 0
    for j in range(matrix.n_columns):
        if j in columns and matrix.storage[j] == 3:
            _, histogram = count(dense, node, members, np.array([j], dtype=np.int32))
            cells = histogram.reshape(n_sets, int(matrix.n_codes[j]) + 1, -1)
            n_words = cells.shape[2]
            cells[:, matrix.fill_code[matrix.slot[j]]] = 0
            for number, own in enumerate(cells.reshape(n_sets, -1)):
                places = np.flatnonzero(own)
                found[number][0].extend((places + before * n_words).tolist())
                found[number][1].extend(own[places].tolist())
        before += int(matrix.n_codes[j]) + 1
    return found


@pytest.mark.one_of(2)
@pytest.mark.parametrize("in_bags", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.6])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("layout", [coded_sparse, coded_mixed])
def test_lists_are_the_histograms_of_dense_columns(layout, target, share, in_bags):
    """Of sets, too, and of some columns in any order; each way is taken."""
    matrix = layout(TABLE, 1)
    dense, sparse = datasets(target, matrix)
    rows = np.flatnonzero(RNG.random(N_ROWS) < share).astype(np.uint32)
    times = RNG.integers(1, 4, len(rows)).astype(np.uint16) if in_bags else None
    masks = np.array([0b0111, 0b1011, 0b0001, 0b1000], dtype=np.uint64)
    combination = RNG.integers(0, 4, len(rows)).astype(np.uint16)
    counter = StoredCounter(sparse, matrix)
    for node, members in (
        (NodeRows(Root(0, 0), rows, times, None, EVERYONE), 1),
        (NodeRows(Root(0, 0), rows, times, combination, masks), 0b1111),
        (NodeRows(Root(0, 0), rows, times, combination, masks), 0b1010),
    ):
        for columns in (None, COLUMNS, COLUMNS[:1], COLUMNS[:0]):
            asked = range(matrix.n_columns) if columns is None else columns.tolist()
            expected = from_dense(dense, matrix, node, members, asked)
            found = of_sets(*counter.count(node, members, columns), members.bit_count())
            assert [(a.tolist(), b.tolist()) for a, b in found] == [tuple(e) for e in expected]
    assert (counter.by_row > 0) == (share < 0.1), "few rows are marked"
    assert (counter.by_column > 0) >= (share > 0.1)


def test_no_rows_have_no_cells():
    matrix = coded_sparse(TABLE, 1)
    _, sparse = datasets("classes", matrix)
    node = NodeRows(Root(0, 0), np.zeros(0, dtype=np.uint32), None, None, EVERYONE)
    places, values, who = StoredCounter(sparse, matrix).count(node, 1)
    assert len(places) == len(values) == 0
    assert who is None
