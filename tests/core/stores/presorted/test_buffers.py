"""Nodes that move to buffers of their own, and entries that are sorted in every way."""

import numpy as np
import pytest

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.source import DatasetSource
from tests.coding.examples import coded_columns
from tests.laws.tables import (
    SEVEN_WAYS,
    arrays_of,
    coded,
    coded_sparse,
    grow_parts,
    seeded,
    tree_of_source,
)

N_ROWS = 70_000  # more than the rows of small entries: the root does not move, its children do
SAME = ("feature", "test", "code", "missing_go_to_left", "n_node_samples", "impurity", "gain")


def table(seed: int) -> CodedMatrix:
    """Codes of 8, 16 and 32 bits, one that most rows share, and categories."""
    rng = np.random.default_rng(seed)
    n_codes = [20, 3000, 80_000, 9, 6]
    columns = [rng.integers(0, n + 1, N_ROWS).astype(np.uint32) for n in n_codes]
    columns[3][rng.random(N_ROWS) < 0.9] = 4
    return coded_columns(columns, n_codes, [20, 3000, 80_000, 9, 0], n_codes)


def tree_of(matrix: CodedMatrix, target: Target, criterion: str, max_depth: int):
    rules = GrowthRules(criterion=criterion, max_depth=max_depth)

    def thresholds(columns, left, right, places=None):
        return np.asarray(left, dtype=np.float64), np.asarray(left, dtype=np.uint32)

    return tree_of_source(DatasetSource(matrix, target, rules), thresholds)


@pytest.mark.parametrize(
    ("criterion", "n_classes"), [("gini", 2), ("gini", 3), ("squared_error", 0)]
)
def test_the_subtree_of_a_node_is_the_tree_of_its_rows(criterion, n_classes):
    matrix, rng = table(n_classes), np.random.default_rng(1)
    first = np.asarray(matrix.column(0))
    n_values = n_classes or 5
    noise = rng.integers(0, n_values, N_ROWS)
    y = np.where(rng.random(N_ROWS) < 0.5, noise, (first > 11) * (n_values - 1))
    of_classes = n_classes > 0
    target = Target.classification(y) if of_classes else Target.regression(y / 4.0, center=False)
    whole = tree_of(matrix, target, criterion, 4)
    assert (whole.feature[0], whole.code[0]) == (0, 11)
    is_left = first <= 11
    if not whole.missing_go_to_left[0]:
        is_left &= first > 0
    right = int(whole.children_right[0])
    for rows, nodes in [
        (np.flatnonzero(is_left), slice(1, right)),
        (np.flatnonzero(~is_left), slice(right, None)),
    ]:
        part = tree_of(matrix.take(rows), target.take(rows), criterion, 3)
        assert part.node_count > 8
        for name in SAME:
            assert np.array_equal(getattr(part, name), getattr(whole, name)[nodes]), name


COUNTED, SORTED = Tuning(counted_rows=0), Tuning(counted_rows=1 << 40)
KINDS = ("mostly", "ties", "distinct", "missing", "mostly a category", "counts", "hybrid")


@pytest.mark.one_of(4)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("n_rows", [40, 63, 64, 400])
def test_every_way_to_sort(case, n_rows):
    """Few rows are merged; 400 distinct values need 16 bits; a majority has no entries."""
    example = seeded(*case, kinds=KINDS, n_rows=n_rows)
    expected = grow_parts(example, [(coded(example.table), example.target)], tuning=COUNTED)
    assert expected.node_count > 5
    for matrix in (
        coded(example.table),
        coded(example.table, 300),
        coded(example.table, 70_000),
        coded_sparse(example.table, 2),
    ):
        tree = grow_parts(example, [(matrix, example.target)], tuning=SORTED)
        assert arrays_of(tree) == arrays_of(expected)
