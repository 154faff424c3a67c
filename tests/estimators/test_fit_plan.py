"""A plan says how an estimator is fitted, and its steps make what a fit makes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from dtrees.estimators import InvalidParameterError
from dtrees.estimators.ensemble import SPARE_BITS
from dtrees.estimators.fit_plan import FitPlan, check_value
from dtrees.estimators.training import Training, rows_of
from dtrees.parallel import threaded
from tests.estimators.forest_cases import FORESTS

IRIS = load_iris(return_X_y=True)
KINDS = [DecisionTreeClassifier, DecisionTreeRegressor, *FORESTS]


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_make_the_model_of_a_fit(kind):
    X, y = load_diabetes(return_X_y=True) if "Regressor" in kind.__name__ else IRIS
    estimator = kind(random_state=4, max_depth=5)
    plan = FitPlan.of(estimator)
    encoded = plan.encode(X, (y, None), plan.seed(), threaded(1))
    model = plan.fit(Training(encoded, rows_of(encoded.coded), y, threaded(1)))
    assert model is not estimator
    assert not hasattr(estimator, "n_features_in_")
    np.testing.assert_array_equal(model.predict(X), estimator.fit(X, y).predict(X))


def test_a_plan_is_of_a_clone_with_checked_parameters():
    estimator = RandomForestClassifier(7)
    plan = FitPlan.of(estimator)
    estimator.set_params(n_estimators=8)
    assert (plan.name, plan.n_trees) == ("RandomForestClassifier", 7)
    assert plan.estimator.n_estimators == 7
    with pytest.raises(InvalidParameterError, match="max_depth"):
        FitPlan.of(RandomForestClassifier(max_depth=0))


def test_class_weights_are_of_the_target():
    tree = FitPlan.of(DecisionTreeClassifier(class_weight={0: 2.0}))
    assert (tree.class_weight, tree.spare_bits, tree.draws_weights) == ({0: 2.0}, 0, False)
    forest = RandomForestClassifier(class_weight="balanced_subsample")
    plan = FitPlan.of(forest)
    assert (plan.class_weight, plan.spare_bits) == ("balanced", SPARE_BITS)
    assert plan.draws_weights
    assert not FitPlan.of(forest.set_params(bootstrap=False)).draws_weights


def test_ties_of_a_tree_are_drawn_with_a_seed_only():
    assert not FitPlan.of(DecisionTreeClassifier()).random_ties
    assert FitPlan.of(DecisionTreeClassifier(random_state=0)).random_ties
    assert FitPlan.of(RandomForestClassifier()).random_ties


def test_codes_depend_on_few_parameters():
    def coding(seed=0, n_rows=100, **parameters):
        return FitPlan.of(RandomForestClassifier(**parameters)).coding(n_rows, seed)

    assert coding() == coding(seed=1, max_depth=3, criterion="entropy")
    assert coding() != coding(max_bins=20)
    assert coding() != coding(handle_unknown="error")
    assert coding(n_rows=10**9) != coding(seed=1, n_rows=10**9)  # cuts are those of a sample


def test_a_table_and_a_target_have_as_many_rows():
    plan = FitPlan.of(DecisionTreeClassifier())
    with pytest.raises(ValueError, match="X has 3 rows, y has 2 values"):
        plan.read(pd.DataFrame({"a": [1, 2, 3]}), [0, 1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        plan.read(np.ones((2, 1)), None)


def test_one_value_of_a_parameter():
    check_value(DecisionTreeClassifier(), "ccp_alpha", 0.5)
    with pytest.raises(InvalidParameterError, match=r"'ccp_alpha' .* DecisionTreeClassifier"):
        check_value(DecisionTreeClassifier(), "ccp_alpha", -1)
