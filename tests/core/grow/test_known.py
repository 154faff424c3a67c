"""Which trees of an earlier growth are of use, and how long they are held."""

import pytest

from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.known import KnownTrees, allow_more
from tests.laws.tables import seeded
from tests.laws.test_known_trees import grow_known
from tests.laws.test_shared import folds


def rules(**limits):
    return GrowthRules(criterion="gini", **limits)


@pytest.mark.parametrize(
    ("mine", "others", "expected"),
    [
        ({}, {}, True),
        ({}, {"min_samples_leaf": 3, "min_weight_leaf": 0.5}, True),
        ({"min_samples_leaf": 4}, {"min_samples_leaf": 3}, False),
        ({"min_weight_leaf": 0.5}, {"min_samples_leaf": 3}, False),
        ({"max_depth": 2}, {"min_samples_split": 9, "min_impurity_decrease": 0.1}, True),
        ({}, {"seed": 1}, False),
        ({}, {"max_features": 2}, False),
        ({}, {"category_penalty": 1.0}, False),
        ({}, {"random_ties": True}, False),
    ],
)
def test_limits_may_differ_and_nothing_else(mine, others, expected):
    assert allow_more(rules(**mine), rules(**others)) == expected


def test_trees_are_kept_if_somebody_asks():
    example = seeded("gini", 2, "none", n_rows=60)
    kept, lost = KnownTrees(), KnownTrees(keeps=False)
    for known in (kept, lost):
        grow_known(example, folds(60, 2, 0), known)
    own = [example.rules] * 3
    assert KnownTrees().of_sets([0, 1], own) is None
    assert KnownTrees(lost).of_sets([0, 1], own) is None
    assert all(tree is not None for tree in KnownTrees(kept).of_sets([0, 1], own))
    narrower = GrowthRules(**{**vars(example.rules), "seed": 5})
    found = KnownTrees(kept).of_sets([0, 1], [narrower, example.rules])
    assert found[0] is None
    assert found[1] is not None
    assert KnownTrees(kept).of_sets([0], [narrower]) is None


def test_parts_are_those_of_the_wider_growth():
    wider = KnownTrees()
    mine = KnownTrees(wider, keeps=False)
    assert mine.part([0, 2]) is mine.part((0, 2))
    assert mine.part([0, 2]).wider is wider.part([0, 2])
    assert wider.part([0, 2]).keeps
    assert not mine.part([0, 2]).keeps
    mine.forget_wider()
    assert mine.wider is None
    assert mine.part([0, 2]).wider is None
