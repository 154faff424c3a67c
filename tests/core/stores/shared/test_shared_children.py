"""Children of a shared node: members with tests on one column go on together, others part."""

import numpy as np
import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, Example, coded, seeded
from tests.laws.test_shared import check_sets, folds, grow_sets, masks

TOGETHER = Tuning(shared_rows=0)


def roots(example, rows):
    trees = grow_sets(example, coded(example.table), rows, tuning=TOGETHER).trees
    return [int(tree.feature[0]) for tree in trees]


@pytest.mark.parametrize("n_columns", [2, 5])
def test_members_that_choose_other_columns(n_columns):
    """Columns are copies of the target, each with noise in other rows."""
    rng = np.random.default_rng(n_columns)
    y = rng.integers(0, 2, 120)
    noise = rng.random((n_columns, 120)) < 0.12
    columns = np.where(noise, 1 - y, y) * 3.0 + rng.integers(0, 2, (n_columns, 120))
    example = Example([column.tolist() for column in columns], y, None, "gini")
    rows = folds(120, 9, 1)
    assert len(set(roots(example, rows))) > 1
    check_sets(example, rows, tuning=TOGETHER)


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_subsets_of_categories_differ_between_members(case):
    kinds = ("categories", "many categories", "hybrid", "mostly a category")
    example = seeded(*case, kinds=kinds, n_rows=110, min_samples_leaf=2)
    check_sets(example, masks(110, 6, 2), tuning=TOGETHER)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_members_that_have_few_rows_in_common(share):
    """Nearly every row is missing in some member, or nearly none."""
    example = seeded("gini", 3, "none", kinds=("ties", "distinct", "missing", "counts"), n_rows=130)
    rows = np.random.default_rng(0).random((7, 130)) < share
    rows[:, :3] = True
    check_sets(example, rows, tuning=TOGETHER)
