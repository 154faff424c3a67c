"""Entries sorted by counting, by radix and by merging: all of them give the same tree."""

import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import (
    SEVEN_WAYS,
    arrays_of,
    coded,
    coded_sparse,
    grow_parts,
    seeded,
)

COUNTED, SORTED = Tuning(counted_rows=0), Tuning(counted_rows=1 << 40)
KINDS = ("mostly", "ties", "distinct", "missing", "mostly a category", "counts", "hybrid")


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
