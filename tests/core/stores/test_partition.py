"""Rows that go to the children of a node: those that the written tests send there."""

import pytest

from dtrees.core.data.tuning import Tuning
from tests.core.walk import rows_of_nodes
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, grow_parts, seeded


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize("counted_rows", [0, 1 << 40], ids=["counted", "sorted"])
@pytest.mark.parametrize("storage", ["uint8", "uint32", "sparse"])
def test_every_row_goes_where_its_tests_say(case, counted_rows, storage):
    example = seeded(*case)
    table, target = example.table, example.target
    matrix = {
        "uint8": lambda: coded(table),
        "uint32": lambda: coded(table, 70_000),
        "sparse": lambda: coded_sparse(table, 7),
    }[storage]()
    tree = grow_parts(example, [(matrix, target)], tuning=Tuning(counted_rows=counted_rows))
    rows = rows_of_nodes(tree, example)
    assert [len(rows[node]) for node in range(tree.node_count)] == tree.n_node_samples.tolist()
    assert tree.node_count > 20
