"""Rows of a shared node by cell: histograms and sums of a set are all cells but those it lacks."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.core.walk import rows_of_nodes
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, seeded
from tests.laws.test_shared import check_sets, folds, grow_sets, masks
from tests.oracle.criterion import RowStatistics

KINDS = ("ties", "counts", "categories", "hybrid", "mostly")
COUNTED = Tuning(shared_rows=0, counted_rows=0)


@pytest.mark.parametrize("cut", [folds, masks], ids=["folds", "masks"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_every_kind_of_cell(case, cut):
    example = seeded(*case, kinds=KINDS, n_rows=90, min_samples_leaf=2)
    rows = cut(90, 4, 3)
    check_sets(example, rows, tuning=COUNTED)


@pytest.mark.parametrize("storage", [None, 300])
def test_every_width(storage):
    example = seeded("gini", 2, "none", kinds=KINDS, n_rows=90)
    matrix = coded(example.table, storage)
    check_sets(example, folds(90, 5, 0), matrix, tuning=COUNTED)


@pytest.mark.parametrize("n_sets", [1, 3, 12])
@pytest.mark.parametrize("n_classes", [2, 11])
def test_rows_that_only_some_members_have(n_sets, n_classes):
    kinds = ("distinct", "ties", "counts")
    example = seeded("gini", n_classes, "none", kinds=kinds, n_rows=100)
    check_sets(example, folds(100, n_sets + 1, n_sets), tuning=COUNTED)


def test_weights_that_one_number_cannot_hold():
    """Weights whose sum leaves its field: rows are not packed."""
    example = seeded("gini", 2, "none", kinds=("distinct", "ties"), n_rows=60)
    weight = np.full(60, 2.0**40)
    weight[::3] = 1.0
    heavy = type(example)(example.table, example.y, weight, "gini")
    check_sets(heavy, folds(60, 3, 0), tuning=COUNTED)


FEW_CODES = ("ties", "counts", "missing", "categories")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("code", [lambda table: coded(table), lambda table: coded_sparse(table, 3)])
@pytest.mark.parametrize("n_lacking", [0, 1, 2, 5])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_sets_that_lack_some_cells(case, n_lacking, code):
    example = seeded(*case, kinds=FEW_CODES, n_rows=300, max_depth=3)
    cell = np.random.default_rng(0).integers(0, 8, 300)
    lacks = [{(s + k) % 8 for k in range(n_lacking)} for s in range(4)]
    rows = np.array([[c not in own for c in cell.tolist()] for own in lacks])
    check_sets(example, rows, code(example.table), tuning=COUNTED)


# --------------------------------------------------------------------------------------------
# sums


@pytest.mark.parametrize("cut", [folds, masks], ids=["folds", "masks"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_sums_of_every_node_of_every_set(case, cut):
    example = seeded(*case, kinds=("ties", "categories", "distinct"), n_rows=60, max_depth=5)
    sets = cut(60, 4, 1)
    statistics = RowStatistics(example.target, example.criterion)
    trees = grow_sets(example, coded(example.table), sets, tuning=COUNTED).trees
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
    trees = grow_sets(example, coded(example.table), sets, tuning=COUNTED).trees
    for number, tree in enumerate(trees):
        assert tree.node_count == 1
        assert tree.n_node_samples.tolist() == [1]
        assert tree.value[0, 0] == pytest.approx(example.y[number])
        assert tree.impurity[0] == 0.0
