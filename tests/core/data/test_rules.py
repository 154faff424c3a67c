"""Rules of a growth are frozen, and their defaults those of the oracle."""

from dataclasses import FrozenInstanceError

import pytest

from dtrees.core.data.criteria import CRITERIA
from dtrees.core.data.rules import GrowthRules
from tests.oracle.tree import Rules


@pytest.mark.parametrize("criterion", CRITERIA)
def test_defaults_are_those_of_the_oracle(criterion):
    rules, slow = GrowthRules(criterion=criterion), Rules(criterion)
    assert all(getattr(rules, name) == value for name, value in vars(slow).items())


def test_frozen():
    with pytest.raises(FrozenInstanceError):
        GrowthRules(criterion="gini").max_depth = 3
