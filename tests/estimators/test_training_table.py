"""A table is read once, and coded once for each way of coding."""

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.training_table import TrainingTable
from dtrees.parallel import threaded

IRIS = load_iris(return_X_y=True)


def test_estimators_share_codes_that_are_equal():
    table, run = TrainingTable(*IRIS, None), threaded(1)
    plans = [
        FitPlan.of(estimator)
        for estimator in (
            RandomForestClassifier(random_state=0),
            RandomForestClassifier(random_state=0, criterion="entropy", max_depth=2),
            RandomForestClassifier(random_state=0, max_bins=5),
        )
    ]
    first, same, other = (table.coded(plan, run).coded for plan in plans)
    assert first is same
    assert other is not first
    np.testing.assert_array_equal(table.coded(plans[0], run).values, IRIS[1])


def test_without_a_random_state_there_is_one_seed():
    table, run = TrainingTable(*IRIS, None), threaded(1)
    plans = [FitPlan.of(DecisionTreeClassifier(random_state=seed)) for seed in (None, 5, None)]
    one, given, other = (table.coded(plan, run).seed for plan in plans)
    assert one == other
    assert given == plans[1].seed()


def test_estimators_share_targets_that_are_equal():
    """That of an estimator is what it makes of the target itself, whoever has asked before."""
    table, run = TrainingTable(*IRIS, None), threaded(1)
    weights = None, "balanced", "balanced_subsample", {0: 1.0, 1: 2.0, 2: 3.0}
    estimators = [
        *(DecisionTreeClassifier(class_weight=weight) for weight in weights[:2]),
        DecisionTreeClassifier(class_weight=weights[3]),
        *(
            RandomForestClassifier(class_weight=weight, bootstrap=bootstrap)
            for weight in weights
            for bootstrap in (True, False)
        ),
    ]
    for estimator in estimators:
        plan = FitPlan.of(estimator)
        found, expected = table.coded(plan, run).target, plan.target(IRIS[1], None)
        for name in ("y", "w", "class_multiplier"):
            np.testing.assert_equal(getattr(found, name), getattr(expected, name))
        assert found.class_exponent == expected.class_exponent
        other = FitPlan.of(clone(estimator).set_params(criterion="entropy"))
        is_plain = not isinstance(estimator.class_weight, dict)
        assert (table.coded(other, run).target is found) == is_plain
