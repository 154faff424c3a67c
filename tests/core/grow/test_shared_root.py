"""The root of all sets: every row that counts, by cell."""

from dataclasses import replace

import numpy as np

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import coded, seeded
from tests.laws.test_shared import check_sets, folds, grow_sets


def test_rows_without_weight_are_left_out():
    example = seeded("squared_error", 0, "none", kinds=("ties", "distinct"), n_rows=80)
    weight = np.arange(80) % 3 > 0
    weighed = replace(example, weight=weight.astype(float))
    rows = folds(80, 4, 0)
    check_sets(weighed, rows, tuning=Tuning(shared_rows=0))
    trees = grow_sets(weighed, coded(weighed.table), rows, tuning=Tuning(shared_rows=0)).trees
    assert [tree.n_node_samples[0] for tree in trees] == [(mine & weight).sum() for mine in rows]
