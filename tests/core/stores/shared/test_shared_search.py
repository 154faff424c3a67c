"""The search of a shared node is that of each set, whatever its columns are and which are drawn."""

import pytest

from dtrees.core.data.tuning import Tuning
from tests.laws.tables import SEVEN_WAYS, coded, seeded
from tests.laws.test_shared import check_sets, folds

KINDS = ("missing", "hybrid", "mostly a category", "ties")


@pytest.mark.parametrize("shared_rows", [0, 100])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_columns_of_32_bits_code_by_code(case, shared_rows):
    """Categories and hybrids among them."""
    example = seeded(*case, kinds=KINDS, n_rows=300)
    matrix = coded(example.table, 70_000)
    check_sets(example, folds(300, 4, 2), matrix, tuning=Tuning(shared_rows=shared_rows))


@pytest.mark.parametrize("max_features", [1, 3])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_columns_that_are_drawn(case, max_features):
    """Further ones are drawn for the sets that found no split."""
    example = seeded(*case, kinds=KINDS, n_rows=120, max_features=max_features, seed=1)
    check_sets(example, folds(120, 4, 2), tuning=Tuning(shared_rows=0))
