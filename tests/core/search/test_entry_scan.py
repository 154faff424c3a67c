"""Scans of presorted entries: no boundary is better, however the column is stored."""

import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import (
    ORDERED,
    SEVEN_WAYS,
    arrays_of,
    coded,
    coded_sparse,
    fit,
    grow_parts,
    seeded,
)
from tests.oracle.candidates import candidates, passes
from tests.oracle.criterion import RowStatistics
from tests.registers import wide_registers

SORTED = Tuning(counted_rows=1 << 40)


@pytest.mark.one_of(12)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("kind", [kind for kind in ORDERED if kind not in ("constant", "missing")])
@pytest.mark.parametrize(
    "limits", [{}, {"min_samples_leaf": 30}, {"min_weight_leaf": 25.5}], ids=str
)
def test_the_best_boundary_is_found(case, kind, limits):
    """Missing values in every second example; runs of distinct values, with ties and sparse."""
    example = seeded(*case, kinds=("constant", kind), max_depth=1, **limits)
    statistics = RowStatistics(example.target, example.criterion)
    rows = statistics.rows()
    found = candidates(example.table, rows, statistics, example.rules)
    gains = [float(statistics.gain(statistics.sums(rows), each.sums)) for each in found]
    trees = [
        grow_parts(example, [(matrix, example.target)], tuning=SORTED)
        for matrix in (coded(example.table), coded_sparse(example.table, 1))
    ]
    assert trees[0].gain[0] == pytest.approx(max(gains, default=0.0), rel=1e-6)
    assert arrays_of(trees[0]) == arrays_of(trees[1])


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_the_boundary_is_named_by_its_neighbours(case):
    """The threshold parts the rows as the counts of the children say."""
    example = seeded(*case, kinds=("mostly", "distinct"), max_depth=1)
    tree = fit(example, tuning=SORTED)
    column = example.table[tree.feature[0]]
    rows = RowStatistics(example.target, example.criterion).rows()
    is_left = [
        bool(tree.missing_go_to_left[0])
        if column[i] is None
        else passes("<=", (tree.threshold[0], None), None, column[i])
        for i in rows
    ]
    assert tree.n_node_samples.tolist() == [len(rows), sum(is_left), len(rows) - sum(is_left)]


@pytest.mark.one_of(9)
@pytest.mark.parametrize("limits", [{}, {"min_samples_leaf": 4}, {"min_weight_leaf": 3}], ids=str)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", [("gini", 2), ("entropy", 2), ("squared_error", 0)], ids=str)
def test_a_tree_is_the_same_with_and_without_registers(case, limits, seed):
    kinds = ("distinct", "distinct", "ties", "counts", "mostly", "missing", "ties")
    example = seeded(*case, "none", kinds=kinds, n_rows=300 + seed, **limits)
    trees = []
    for wide in (False, True):
        with wide_registers(wide):
            trees.append(arrays_of(fit(example, tuning=SORTED)))
    assert trees[0] == trees[1]
