"""Histograms of the cells, added up for sets that lack none, one or several of them."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, seeded
from tests.laws.test_shared import check_sets

TOGETHER = Tuning(shared_rows=0)
KINDS = ("ties", "counts", "missing", "categories")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("code", [lambda table: coded(table), lambda table: coded_sparse(table, 3)])
@pytest.mark.parametrize("n_lacking", [0, 1, 2, 5])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_sets_that_lack_some_cells(case, n_lacking, code):
    example = seeded(*case, kinds=KINDS, n_rows=300, max_depth=3)
    cell = np.random.default_rng(0).integers(0, 8, 300)
    lacks = [{(s + k) % 8 for k in range(n_lacking)} for s in range(4)]
    rows = np.array([[c not in own for c in cell.tolist()] for own in lacks])
    check_sets(example, rows, code(example.table), tuning=TOGETHER)
