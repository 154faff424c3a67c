"""What the rows of a shared node add up to for each member, against sums by hand."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.core.walk import rows_of_nodes
from tests.laws.tables import SEVEN_WAYS, coded, seeded
from tests.laws.test_shared import folds, grow_sets, masks
from tests.oracle.criterion import RowStatistics

TOGETHER = Tuning(shared_rows=0)


@pytest.mark.parametrize("cut", [folds, masks], ids=["folds", "masks"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_sums_of_every_node_of_every_set(case, cut):
    example = seeded(*case, kinds=("ties", "categories", "distinct"), n_rows=60, max_depth=5)
    sets = cut(60, 4, 1)
    statistics = RowStatistics(example.target, example.criterion)
    trees = grow_sets(example, coded(example.table), sets, tuning=TOGETHER).trees
    for has, tree in zip(sets, trees, strict=True):
        rows = rows_of_nodes(tree, example)  # of the whole table, wherever its tests send them
        for node in range(tree.node_count):
            mine = [row for row in rows[node].tolist() if has[row]]
            sums = statistics.sums(mine)
            assert tree.n_node_samples[node] == len(mine)
            weight = float(sums.weight * statistics.weight_unit)
            assert tree.weighted_n_node_samples[node] == pytest.approx(weight, rel=1e-12)
            value = statistics.value(sums)
            np.testing.assert_allclose(tree.value[node], value, rtol=1e-9, atol=1e-12)
            assert (tree.impurity[node] == 0.0) == (len({example.y[row] for row in mine}) == 1)


def test_a_set_of_one_row():
    example = seeded("squared_error", 0, "none", kinds=("distinct",), n_rows=12)
    sets = np.eye(12, dtype=bool)[:3]
    trees = grow_sets(example, coded(example.table), sets, tuning=TOGETHER).trees
    for number, tree in enumerate(trees):
        assert tree.node_count == 1
        assert tree.n_node_samples.tolist() == [1]
        assert tree.value[0, 0] == pytest.approx(example.y[number])
        assert tree.impurity[0] == 0.0
