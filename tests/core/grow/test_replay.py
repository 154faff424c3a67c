"""A set that goes on alone, down its known tree, and grows where that ends."""

from dataclasses import replace

import pytest

from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.grower import grow
from dtrees.core.grow.known import KnownTrees
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.class_weights import without_class_weights
from dtrees.core.membership.resampling import of_sets
from tests.laws.tables import SEVEN_WAYS, coded, grow_tree, seeded
from tests.laws.test_class_weights import weighing
from tests.laws.test_growth import assert_equal
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


@pytest.mark.parametrize("draws", [{}, {"max_features": 2}], ids=["all", "drawn"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_class_weights_of_the_set(n_classes, draws):
    example = seeded("gini", n_classes, "integers", kinds=KINDS, n_rows=220, **draws)
    target, matrix, known = without_class_weights(example.target), coded(example.table), None
    sets = weighing(target, of_sets(folds(220, 4, 2)), "any", 3)
    for least in (1, 2, 5, 20):
        mine = replace(example, limits={**example.limits, "min_samples_leaf": least})
        how = {"tuning": Tuning(shared_rows=10**6), "values": mine.values}
        here = DatasetSource(matrix, target, mine.rules, **how)
        known = KnownTrees(known)
        trees = grow(here, mine.rules, sets, mine.thresholds, known=known).trees
        assert (here.work["known_nodes"] > 0) == (least > 1)
        for number, tree in enumerate(trees):
            assert_equal(grow_tree(mine, matrix, sets.target_of(number, target)), tree)
