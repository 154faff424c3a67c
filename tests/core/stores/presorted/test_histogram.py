"""Histograms that go down with a node: counted for one child, subtracted for the other."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, arrays_of, coded, fit, grow_parts, seeded
from tests.oracle.greedy import assert_tree_is_greedy

COUNTED, SORTED = Tuning(counted_rows=0), Tuning(counted_rows=1 << 40)
FEW_CODES = ("ties", "counts", "mostly", "categories", "hybrid", "constant", "missing")


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_kept_ones_are_those_of_entries(case):
    """Eight rows for each cell keep the histogram with its node; below they are counted anew."""
    example = seeded(*case, kinds=FEW_CODES, n_rows=900, min_samples_leaf=2)
    counted = fit(example, tuning=COUNTED)
    assert counted.node_count > 100
    assert arrays_of(counted) == arrays_of(fit(example, tuning=SORTED))


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_no_boundary_is_better(case):
    example = seeded(*case, kinds=FEW_CODES, n_rows=60, max_depth=3)
    tree = fit(example, tuning=COUNTED)
    assert_tree_is_greedy(tree, example.table, example.target, example.rules)


@pytest.mark.parametrize("n_ways", [1, 2, 3])
def test_columns_of_many_codes_beside_counted_ones(n_ways):
    """Some columns have entries and some are counted, in blocks of one thread or of several."""
    example = seeded(
        "gini", 2, "none", kinds=("ties", "distinct", "counts", "distinct"), n_rows=500
    )
    wide = (coded(example.table, 300), example.target)
    found = grow_parts(
        example, [wide], tuning=Tuning(counted_rows=0, level_entries=0), n_threads=n_ways
    )
    assert arrays_of(found) == arrays_of(fit(example, tuning=SORTED))
    assert len(np.unique(found.feature)) > 3
