"""Models that share nothing: what they cost, and what the log says of them."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from dtrees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
)
from dtrees.core.grow import shared, source
from dtrees.core.stores._dataset import Dataset
from dtrees.estimators import training_sets
from dtrees.model_selection import GridSearchCV, cross_validate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).round(1)
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
SPARSE = sp.csr_array(np.where(X > 0.5, X, 0.0))
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
DRAWN = DecisionTreeClassifier(max_depth=2, max_features=2, random_state=0)
BALANCED = DecisionTreeClassifier(class_weight="balanced")
CUTS = ExtraTreesClassifier(2, random_state=0, max_bins=None)
MOSTLY = RNG.normal(size=(120, 4))  # as many values as rows


@pytest.fixture
def datasets(monkeypatch):
    """Datasets that grow whole trees, of one set or of several."""
    made = []

    def watched(*arguments, **named):
        made.append(Dataset(*arguments, **named))
        return made[-1]

    monkeypatch.setattr(source, "Dataset", watched)
    monkeypatch.setattr(shared, "Dataset", watched)
    return made


def lines(caplog):
    return [record.getMessage() for record in caplog.records if "one by one" in record.message]


def test_the_log_says_why(caplog):
    """Products with fractions are rounded row by row."""
    weight = np.linspace(0.1, 0.9, len(Y))
    with caplog.at_level(logging.INFO, "dtrees"):
        cross_validate(BALANCED, X, Y, cv=KFold(3), params={"sample_weight": weight})
    reason = "class_weight is counted in other units for each training side"
    assert lines(caplog) == [f"models are fitted one by one: {reason}"]


def test_one_line_for_all_growths(caplog):
    grid = {"criterion": ["gini", "entropy"], "min_samples_leaf": [1, 2]}
    given = {"sample_weight": np.linspace(0.1, 0.9, len(Y))}
    with caplog.at_level(logging.INFO, "dtrees"):
        GridSearchCV(BALANCED, grid, cv=3).fit(X, Y, **given)
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize(
    ("estimator", "table"),
    [
        (TREE, X),
        (TREE, SPARSE),
        (RandomForestClassifier(2, random_state=0), X),
        (RandomForestClassifier(2, random_state=0), SPARSE),
        (RandomForestClassifier(30, oob_tol=0.5, random_state=0), X),
        (ExtraTreesClassifier(2, random_state=0), SPARSE),
        (DecisionTreeClassifier(class_weight="balanced"), SPARSE),
        (DecisionTreeClassifier(class_weight="balanced"), X),
        (DecisionTreeClassifier(class_weight={0: 0.3, 1: 2}, criterion="entropy"), X),
        (ExtraTreesClassifier(2, class_weight="balanced", random_state=0), X),
        (ExtraTreesClassifier(2, random_state=0), X),
        (CUTS, MOSTLY),
    ],
)
def test_nothing_is_said_of_models_that_grow_together(estimator, table, caplog):
    with caplog.at_level(logging.INFO, "dtrees"):
        cross_validate(estimator, table, Y, cv=3)
    assert lines(caplog) == []


def test_some_that_have_no_company(caplog):
    # The scale of x log x is that of the rows of a set, in powers of two: 2,700 rows have another.
    table, y = np.tile(X, (25, 1)), np.tile(Y, 25)
    with caplog.at_level(logging.INFO, "dtrees"):
        cross_validate(DecisionTreeClassifier(criterion="entropy", max_depth=2), table, y, cv=4)
    reason = "no other one has the same scale of logarithms"
    assert lines(caplog) == [f"1 of 5 models are fitted one by one: {reason}"]


def test_nothing_is_counted_where_nobody_listens(caplog, monkeypatch):
    def counts(*arguments):
        raise AssertionError("nobody listens")

    monkeypatch.setattr(training_sets, "n_alone", counts)
    with caplog.at_level(logging.WARNING, "dtrees"):
        found = cross_validate(DecisionTreeClassifier(max_depth=2), X, Y, cv=4)
    assert np.isfinite(found["test_score"]).all()
    with caplog.at_level(logging.INFO, "dtrees"), pytest.raises(AssertionError, match="nobody"):
        cross_validate(DecisionTreeClassifier(max_depth=2), X, Y, cv=4)


def test_one_that_is_counted_in_other_units(caplog):
    weight = np.where(np.arange(120) == 0, 1000.5, 1.5)
    params = {"sample_weight": weight}
    with caplog.at_level(logging.INFO, "dtrees"):
        cross_validate(DecisionTreeRegressor(), X, X[:, 0], cv=4, params=params)
    reason = "sample_weight is counted in other units for each training side"
    assert lines(caplog) == [f"1 of 4 models are fitted one by one: {reason}"]


class TestWeightsOfZeroAndOne:
    """Sets grow by the kernels of a fit without weights, which end early where they can."""

    @pytest.mark.parametrize(
        "estimator",
        [
            DRAWN,
            DecisionTreeRegressor(max_depth=3, max_features=2),
            DecisionTreeRegressor(criterion="poisson", max_depth=3, max_features=2),
            DecisionTreeClassifier(criterion="entropy", max_features=2, random_state=0),
            ExtraTreesClassifier(2, random_state=0),
        ],
    )
    def test_sets_that_grow_together(self, estimator, datasets):
        cross_validate(estimator, SPARSE, Y, cv=3)
        assert 1 <= len(datasets) <= 2
        assert not any(dataset.is_weighted for dataset in datasets)

    def test_weights_of_the_user(self, datasets):
        weight = RNG.integers(0, 2, len(Y)).astype(float)
        for table in (X, SPARSE):
            cross_validate(DRAWN, table, Y, cv=3, params={"sample_weight": weight})
        assert len(datasets) >= 2
        assert not any(dataset.is_weighted for dataset in datasets)

    def test_other_weights_stay(self, datasets):
        weight = RNG.integers(0, 3, len(Y)).astype(float)
        cross_validate(DRAWN, SPARSE, Y, cv=3, params={"sample_weight": weight})
        assert all(dataset.is_weighted for dataset in datasets)
