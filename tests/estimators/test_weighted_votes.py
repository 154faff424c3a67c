"""Votes with weights, and weighted medians."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris

from dtrees import AdaBoostClassifier, AdaBoostRegressor
from dtrees.coding.tables import read_table
from dtrees.estimators.weighted_votes import add_votes, votes_of, weighted_median
from dtrees.parallel import LocalRunner


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.sampled_from([0.25, 0.5, 1.0, 2.0])),
        min_size=1,
        max_size=6,
    )
)
def test_the_median_has_half_of_the_weight_up_to_it(pairs):
    values, weights = map(np.array, zip(*pairs, strict=True))
    (found,) = weighted_median(values[None].astype(float), weights)
    assert weights[values <= found].sum() >= weights.sum() / 2
    assert weights[values < found].sum() < weights.sum() / 2


def test_votes_are_added():
    total = np.zeros((3, 2))
    add_votes(total, np.array([0, 1, 1]), 0.5)
    add_votes(total, np.array([0, 0, 1]), 2.0)
    assert total.tolist() == [[2.5, 0.0], [2.0, 0.5], [0.0, 2.5]]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_votes_say(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 2 - n_classes][:, :2], y[y > 2 - n_classes]
    model = AdaBoostClassifier(6, max_depth=2).fit(X, y)
    total = np.zeros((len(X), n_classes))
    for tree, weight in zip(model.estimators_, model.estimator_weights_, strict=True):
        codes = np.searchsorted(model.classes_, tree.predict(X))
        assert_array_equal(votes_of(tree.tree_.model).take(tree.apply(X)), codes)
        total[np.arange(len(X)), codes] += weight
    share = total / model.estimator_weights_.sum()
    others = (1 - share) / (n_classes - 1)
    found = model.decision_function(X)
    assert_allclose(found, share - others if n_classes > 2 else 2 * (share - others)[:, 1])
    raw = (share - others) / (n_classes - 1) if n_classes > 2 else share - others
    odds = np.exp(raw)
    assert_allclose(model.predict_proba(X), odds / odds.sum(axis=1)[:, None])
    assert_array_equal(model.predict(X), model.classes_[total.argmax(axis=1)])


@pytest.mark.parametrize("kind", [AdaBoostClassifier, AdaBoostRegressor])
def test_threads_and_blocks_change_no_bit(kind):
    X, y = load_diabetes(return_X_y=True)
    model = kind(9, max_depth=3, random_state=0).fit(X, y > 140)
    large = np.tile(X, (25, 1))  # more rows than a block
    expected = np.tile(model.predict(X), 25)
    assert_array_equal(model.set_params(n_jobs=3).predict(large), expected, strict=True)
    assert_array_equal([model.predict(X[[i]])[0] for i in range(20)], expected[:20])
    *_, last = model._predictor().staged("predict", read_table(large), LocalRunner(2))
    assert_array_equal(last, expected, strict=True)
