"""The stored cells of sparse columns in the order of histograms."""

import numpy as np
import pytest

from dtrees.coding.coded import CodedMatrix
from dtrees.core.stores.blocks._stored_cells import cells_of
from tests.laws.tables import coded_mixed, coded_sparse, seeded

KINDS = ("distinct", "ties", "categories", "missing", "hybrid", "constant")


@pytest.mark.parametrize("layout", [coded_sparse, coded_mixed])
@pytest.mark.parametrize("seed", range(5))
def test_cells_lie_by_column_and_code_and_row(layout, seed):
    """Columns of many codes are sorted, those of few are counted; fill codes are left out."""
    matrix = layout(seeded("gini", 3, "none", kinds=KINDS, n_rows=90).table, seed)
    expected = []
    for j in np.flatnonzero(matrix.storage == 3).tolist():
        codes, fill = matrix.column(j), matrix.fill_code[matrix.slot[j]]
        expected += [(j, int(codes[i]), i) for i in np.flatnonzero(codes != fill).tolist()]
    found = list(zip(*(array.tolist() for array in cells_of(matrix)), strict=True))
    assert found == sorted(expected)
    assert len(found) > 0


def test_a_table_without_cells():
    matrix = CodedMatrix.sparse(3, np.zeros(3), [], [], [2, 0], [2, 0], [1, 0])
    assert [len(array) for array in cells_of(matrix)] == [0, 0, 0]
