"""Rows that go to the children of a node: those that the written tests send there."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.model.tree import AT_MOST, LEAF
from tests.laws.tables import SEVEN_WAYS, coded, coded_sparse, codes_of, grow_parts, seeded


def goes_left(tree, node: int, codes: np.ndarray, n_ordered: int) -> np.ndarray:
    """The test of a node on codes, by its definition."""
    code, test = tree.code[node], tree.test[node]
    if tree.subset_offset[node] >= 0:
        words = tree.subset_words[tree.subset_offset[node] :]
        found = np.array([bool(int(words[c >> 6]) >> int(c & 63) & 1) for c in codes])
    elif test == AT_MOST:
        found = codes <= code
    else:
        found = (codes > code) & (codes <= n_ordered)
    return np.where(codes == 0, bool(tree.missing_go_to_left[node]), found)


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
    live = np.arange(example.n_rows) if example.weight is None else np.flatnonzero(target.w)
    rows = {0: live}
    for node in range(tree.node_count):
        assert len(rows[node]) == tree.n_node_samples[node]
        if tree.test[node] != LEAF:
            codes, _, n_ordered = codes_of(table[tree.feature[node]])
            is_left = goes_left(tree, node, codes[rows[node]], n_ordered)
            rows[int(tree.children_left[node])] = rows[node][is_left]
            rows[int(tree.children_right[node])] = rows[node][~is_left]
    assert tree.node_count > 20
