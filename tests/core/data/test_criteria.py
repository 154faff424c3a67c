"""The table of criteria names what estimators accept."""

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.core.data.criteria import CRITERIA, OF_USER, OF_USER_NUMBERS, REGRESSION


def test_estimators_accept_the_criteria_of_the_table():
    of_classes = set(DecisionTreeClassifier._criteria.values())
    of_numbers = set(DecisionTreeRegressor._criteria.values())
    assert of_classes | of_numbers | {OF_USER, OF_USER_NUMBERS} == set(CRITERIA)
    assert of_numbers | {OF_USER_NUMBERS} == set(REGRESSION)
