"""Codes are walked where they are."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from dtrees.coding import CodeBook
from dtrees.core.membership.shares import Shares
from dtrees.core.predict.binned import CodedRows
from dtrees.estimators import InvalidParameterError, fit_plan
from dtrees.estimators.fit_plan import (
    MOST_ROWS,
    FitPlan,
    Training,
    columns_per_split,
    least_rows,
    rows_of,
    rows_of_split,
)
from dtrees.parallel import threaded
from tests.estimators.forest_cases import FORESTS, IRIS


def test_numbers_of_rows():
    assert least_rows(7) == 7
    assert least_rows(np.int64(7)) == 7
    assert least_rows(2**40) == MOST_ROWS
    assert least_rows(0.5) == 1
    assert least_rows(1.0) == 1


KINDS = [DecisionTreeClassifier, DecisionTreeRegressor, *FORESTS]


def encoded(estimator):
    return FitPlan.of(estimator).encode(IRIS[0], (IRIS[1], None), 0, threaded(1))


def test_rows_of_a_split():
    assert rows_of_split(7, 100) == 7
    assert rows_of_split(0.041, 100) == 5
    assert rows_of_split(1e-9, 100) == 2
    assert rows_of_split(1.0, 100) == 100


def test_shares():
    def shares(split, leaf, weight):
        limits = {"min_samples_split": split, "min_samples_leaf": leaf}
        tree = DecisionTreeClassifier(**limits, min_weight_fraction_leaf=weight)
        return encoded(tree).shares

    assert shares(2, 1, 0.0) is None
    assert shares(np.int64(2), 0.1, 0) == Shares(min_samples_leaf=0.1)
    assert shares(1.0, 3, 0.2) == Shares(min_samples_split=1.0, min_weight_leaf=0.2)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_trees_know_whether_rows_are_in_bags(bootstrap):
    assert encoded(RandomForestClassifier(bootstrap=bootstrap)).rules.in_bags is bootstrap


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [(None, 10), (3, 3), (30, 10), (0.35, 3), (0.01, 1), (1.0, 10), ("sqrt", 3), ("log2", 3)],
)
def test_columns(max_features, expected):
    assert columns_per_split(max_features, 10) == expected


def test_a_coded_matrix_is_walked_here():
    _, coded = CodeBook.fit_encode(np.arange(6.0).reshape(3, 2))
    rows = rows_of(coded)
    assert isinstance(rows, CodedRows)
    assert rows.is_here


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_make_the_model_of_a_fit(kind):
    X, y = load_diabetes(return_X_y=True) if "Regressor" in kind.__name__ else IRIS
    estimator = kind(random_state=4, max_depth=5)
    plan = FitPlan.of(estimator)
    encoded = plan.encode(X, (y, None), plan.seed(), threaded(1))
    model = plan.estimator._unfitted()._fit_coded(Training(encoded, y, threaded(1)))
    assert model is not estimator
    assert not hasattr(estimator, "n_features_in_")
    np.testing.assert_array_equal(model.predict(X), estimator.fit(X, y).predict(X))


def test_a_plan_is_of_a_clone_with_checked_parameters():
    estimator = RandomForestClassifier(7)
    plan = FitPlan.of(estimator)
    estimator.set_params(n_estimators=8)
    assert plan.n_trees == 7
    assert plan.estimator.n_estimators == 7
    with pytest.raises(InvalidParameterError, match="max_depth"):
        FitPlan.of(RandomForestClassifier(max_depth=0))


def test_class_weights_are_of_the_target():
    tree = FitPlan.of(DecisionTreeClassifier(class_weight={0: 2.0}))
    assert tree.class_weight == {0: 2.0}
    forest = RandomForestClassifier(class_weight="balanced_subsample")
    assert FitPlan.of(forest).class_weight == "balanced"


def test_ties_of_a_tree_are_drawn_with_a_seed_only():
    assert not encoded(DecisionTreeClassifier()).rules.random_ties
    assert encoded(DecisionTreeClassifier(random_state=0)).rules.random_ties
    assert encoded(RandomForestClassifier()).rules.random_ties


def test_a_table_and_a_target_have_as_many_rows():
    plan = FitPlan.of(DecisionTreeClassifier())
    with pytest.raises(ValueError, match="X has 3 rows, y has 2 values"):
        plan.read(pd.DataFrame({"a": [1, 2, 3]}), [0, 1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        plan.read(np.ones((2, 1)), None)


@pytest.mark.parametrize("n_classes", [499, 500])
@pytest.mark.parametrize("limit", [{}, {"max_depth": 3}, {"min_samples_leaf": 300}])
def test_many_classes_in_many_nodes_are_told(n_classes, limit, monkeypatch):
    """Each node keeps a weight for each class."""
    monkeypatch.setattr(fit_plan, "MANY_BYTES", 10**6)
    X, y = np.zeros((1_000, 1)), np.arange(1_000) % n_classes
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        DecisionTreeClassifier(**limit).fit(X, y)
        DecisionTreeRegressor(**limit).fit(X, y)
    said = [str(each.message) for each in heard]
    assert len(said) == (n_classes == 500 and not limit)
    assert all("y has 500 classes" in text and "min_samples_leaf" in text for text in said)
