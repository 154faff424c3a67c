"""A set that goes on alone, down its known tree, and grows where that ends."""

import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, coded, seeded
from tests.laws.test_known_trees import check_rules
from tests.laws.test_shared import folds

KINDS = ("ties", "distinct", "hybrid", "categories", "missing", "constant")
LEAVES = [(1, 0.0), (2, 0.0), (5, 1.5), (20, 1.5)]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("largest_code", [None, 300, 70_000])
@pytest.mark.parametrize("draws", [{}, {"max_features": 2}], ids=["all", "drawn"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_from_the_root(case, draws, largest_code):
    example = seeded(*case, kinds=KINDS, n_rows=220, **draws)
    how = {"matrix": coded(example.table, largest_code), "tuning": Tuning(shared_rows=10**6)}
    assert check_rules(example, folds(220, 4, 2), LEAVES, [{}] * 4, **how) > 0


def test_from_below():
    example = seeded("gini", 3, "none", kinds=KINDS, n_rows=300)
    for shared_rows in (30, 90, 200):
        how = {"tuning": Tuning(shared_rows=shared_rows)}
        assert check_rules(example, folds(300, 5, 2), LEAVES, [{}] * 4, **how) > 0
