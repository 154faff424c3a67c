"""Rules are resolved before they reach the core; what is not is a programming error."""

from dataclasses import FrozenInstanceError

import pytest

from dtrees.core.data.rules import CRITERIA, GrowthRules
from tests.oracle.tree import Rules


@pytest.mark.parametrize("criterion", CRITERIA)
def test_defaults_are_those_of_the_oracle(criterion):
    rules, slow = GrowthRules(criterion=criterion), Rules(criterion)
    assert all(getattr(rules, name) == value for name, value in vars(slow).items())


@pytest.mark.parametrize(
    "wrong",
    [
        {"criterion": "log_loss"},
        {"criterion": "gini", "min_samples_split": 1},
        {"criterion": "gini", "min_samples_leaf": 0},
        {"criterion": "gini", "handle_unknown": "error"},
    ],
)
def test_unresolved(wrong):
    with pytest.raises(AssertionError):
        GrowthRules(**wrong)


def test_frozen():
    with pytest.raises(FrozenInstanceError):
        GrowthRules(criterion="gini").max_depth = 3
