"""What the rows of a node add up to, against sums by hand."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.core.walk import rows_of_nodes
from tests.laws.tables import SEVEN_WAYS, coded, fit, grow_blocks, seeded
from tests.oracle.criterion import RowStatistics

WAYS = [{}, {"max_features": 2, "seed": 1}]  # sums of children: subtracted, or of row lists


def check(tree, example):
    """Rows, weight, values and impurity of every node are those of its rows."""
    statistics = RowStatistics(example.target, example.criterion)
    rows = rows_of_nodes(tree, example)
    for node in range(tree.node_count):
        mine = rows[node].tolist()
        sums = statistics.sums(mine)
        assert tree.n_node_samples[node] == len(mine)
        weight = float(sums.weight * statistics.weight_unit)
        assert tree.weighted_n_node_samples[node] == pytest.approx(weight, rel=1e-12)
        np.testing.assert_allclose(tree.value[node], statistics.value(sums), rtol=1e-9, atol=1e-12)
        expected = statistics.impurity(mine)
        largest = statistics.largest(mine) ** 2
        assert tree.impurity[node] == pytest.approx(expected, rel=1e-9, abs=1e-12 * (1 + largest))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("limits", WAYS, ids=["all columns", "drawn columns"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_every_node(case, limits):
    example = seeded(*case, n_rows=80, **limits)
    tree = fit(example, tuning=Tuning(counted_rows=0))
    assert tree.node_count > 9
    check(tree, example)


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_rows_in_several_places(case):
    example = seeded(*case, n_rows=80)
    matrix, target = coded(example.table), example.target
    parts = [(matrix.take(rows), target.take(rows)) for rows in np.split(np.arange(80), [7, 50])]
    tree = grow_blocks(parts, example.rules, example.thresholds, gather_rows=0)
    check(tree, example)
