"""Columns searched as bins: no candidate is better, and where bins come from does not matter."""

import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, arrays_of, coded_sparse, fit, grow_tree, seeded
from tests.oracle.candidates import candidates
from tests.oracle.criterion import RowStatistics

MIXED = ("hybrid", "ties", "missing", "categories")


@pytest.mark.one_of(6)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("kind", ["hybrid", "ties", "counts"])
@pytest.mark.parametrize("least", [1, 20])
def test_the_best_candidate_is_found(case, kind, least):
    example = seeded(*case, kinds=("missing", kind), max_depth=1, min_samples_leaf=least)
    tree = fit(example, tuning=Tuning(counted_rows=0))
    statistics = RowStatistics(example.target, example.criterion)
    rows = statistics.rows()
    found = candidates(example.table, rows, statistics, example.rules)
    gains = [float(statistics.gain(statistics.sums(rows), each.sums)) for each in found]
    assert tree.gain[0] == pytest.approx(max(gains), rel=1e-6)


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_of_entries_and_of_histograms(case):
    example = seeded(*case, kinds=MIXED)
    counted = fit(example, tuning=Tuning(counted_rows=0))
    assert {1, 3} <= {*counted.test.tolist()}
    assert arrays_of(counted) == arrays_of(fit(example, tuning=Tuning(counted_rows=1 << 40)))
    assert arrays_of(counted) == arrays_of(grow_tree(example, coded_sparse(example.table, 5)))
