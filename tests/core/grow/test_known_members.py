"""Members whose tests are known go on together with those that are searched."""

import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, coded_mixed, coded_sparse, seeded
from tests.laws.test_known_trees import check_rules
from tests.laws.test_shared import folds

LEAVES = [(1, 0.0), (3, 0.0), (4, 2.0), (15, 2.0)]
KINDS = ("ties", "distinct", "many categories", "constant", "mostly")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
@pytest.mark.parametrize(
    "stored", [None, coded_sparse, coded_mixed], ids=["dense", "sparse", "mixed"]
)
def test_every_kind_of_sums(case, stored):
    example = seeded(*case, kinds=KINDS, n_rows=250)
    matrix = None if stored is None else stored(example.table, 3)
    rows = folds(250, 6, 1)
    known = check_rules(example, rows, LEAVES, [{}] * 4, matrix, tuning=Tuning(shared_rows=0))
    assert known > 0


@pytest.mark.parametrize("n_rows", range(30, 60))
def test_a_column_that_is_constant_for_those_that_are_searched_is_not_for_all(n_rows):
    """It is searched below, by members whose test was known above."""
    example = seeded("gini", 2, "none", kinds=("ties", "mostly", "counts"), n_rows=n_rows)
    leaves = [(1, 0.0), (2, 0.0), (3, 0.0)]
    check_rules(example, folds(n_rows, 3, 1), leaves, [{}] * 3, tuning=Tuning(shared_rows=0))
