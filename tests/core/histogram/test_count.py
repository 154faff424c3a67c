"""Rows counted in cells: the trees are those without histograms, for every width and kind."""

import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, arrays_of, coded, coded_sparse, fit, grow_parts, seeded

COUNTED, SORTED = Tuning(counted_rows=0), Tuning(counted_rows=1 << 40)


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("largest_code", [None, 300, 70_000], ids=["uint8", "uint16", "uint32"])
def test_of_one_table(case, largest_code):
    example = seeded(*case)
    part = (coded(example.table, largest_code), example.target)
    counted = grow_parts(example, [part], tuning=COUNTED)
    assert counted.node_count > 20
    assert arrays_of(counted) == arrays_of(fit(example, tuning=SORTED))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_of_blocks(case, sparse):
    """Blocks are counted by ascending rows, sparse columns by merging."""
    example = seeded(*case)
    matrix = coded_sparse(example.table, 3) if sparse else coded(example.table)
    parts = [
        (matrix.take(rows), example.target.take(rows)) for rows in ([*range(70)], [*range(70, 150)])
    ]
    tree = grow_parts(example, parts, gather_rows=0)
    assert arrays_of(tree) == arrays_of(fit(example, tuning=SORTED))
