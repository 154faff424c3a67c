"""The record of a node has the layout of the kernels."""

import numpy as np

from dtrees.core.grow.node_record import RECORD
from dtrees.core.grow.source import DatasetSource
from dtrees.core.model.tree import AT_MOST, LEAF
from tests.laws.tables import Example, coded


def test_kernels_write_these_fields():
    case = Example([[1.0, 2.0, 3.0, None]], np.array([0, 1, 1, 1]), None, "gini")
    nodes = DatasetSource(coded(case.table), case.target, case.rules).finish().nodes
    assert nodes.dtype == RECORD
    assert nodes.flags.aligned
    assert nodes["n"].tolist() == [4, 1, 3]
    assert (nodes["left"][0], nodes["right"][0]) == (1, 2)
    assert (nodes["column"][0], nodes["boundary"][0], nodes["beyond"][0]) == (0, 1, 2)
    assert nodes["test"].tolist() == [AT_MOST, LEAF, LEAF]
    assert nodes["missing_left"][0] == 0
    assert (nodes["impurity"][0], nodes["gain"][0]) == (0.375, 4 * 0.375)
