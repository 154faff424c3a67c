"""Records of grown nodes, and the subsets that they point to."""

import numpy as np
import pytest

from dtrees.core.grow import _node_buffer
from dtrees.core.grow.node_record import RECORD
from dtrees.core.grow.source import DatasetSource
from dtrees.core.model.tree import IN_SUBSET, LEAF
from tests.core.walk import rows_of_nodes
from tests.laws.tables import SEVEN_WAYS, Example, coded, fit, seeded


def test_record_is_the_twin_of_the_kernels_record():
    size, offsets = _node_buffer.record_offsets()
    assert size == RECORD.itemsize
    assert offsets == {name: RECORD.fields[name][1] for name in RECORD.names}


@pytest.mark.parametrize("n_categories", [5, 63, 64, 130])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_subsets_have_a_bit_for_each_code_that_there_is(case, n_categories):
    """Those of the left child; bit 0 is for missing values, and there is none behind the last."""
    rng = np.random.default_rng(n_categories)
    column = [f"c{k:03d}" for k in rng.permutation(np.arange(300) % n_categories)]
    y = rng.integers(0, 3, 300) if case[1] else rng.gamma(2.0, size=300)
    weight = None if case[2] == "none" else rng.integers(0, 3, 300).astype(float)
    limits = {"category_penalty": 0.0, "max_depth": 3}
    example = Example([column], y, weight, case[0], limits)
    tree = fit(example)
    rows, n_words = rows_of_nodes(tree, example), n_categories // 64 + 1
    splits = np.flatnonzero(tree.test == IN_SUBSET)
    assert len(splits) > 0
    assert len(tree.subset_words) == n_words * len(splits)
    for node in splits:
        words = tree.subset_words[tree.subset_offset[node] :][:n_words]
        bits = [k for k in range(64 * n_words) if int(words[k // 64]) >> (k % 64) & 1]
        assert max(bits) <= n_categories
        left, right = (
            {column[row] for row in rows[int(children[node])]}
            for children in (tree.children_left, tree.children_right)
        )
        assert left <= {f"c{k - 1:03d}" for k in bits}
        assert not left & right
        assert (0 in bits) == bool(tree.missing_go_to_left[node])


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_records_are_in_preorder(case):
    example = seeded(*case, n_rows=90)
    nodes = DatasetSource(coded(example.table), example.target, example.rules).finish().nodes
    stack = [0]
    for i, node in enumerate(nodes):
        assert stack.pop() == i
        if node["test"] != LEAF:
            assert node["left"] == i + 1
            assert node["n"] == nodes["n"][node["left"]] + nodes["n"][node["right"]]
            stack += [int(node["right"]), int(node["left"])]
    assert stack == []
