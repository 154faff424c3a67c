"""Which models can be grown together, and which splits are sets of rows."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import Ridge

from dtrees import BaggingClassifier, DecisionTreeRegressor, ExtraTreesClassifier
from dtrees.model_selection.eligibility import (
    is_of_dtrees,
    unsupported_reason,
    unsupported_splits,
)

TREE = DecisionTreeRegressor()


class Own(DecisionTreeRegressor):
    """May fit in its own way."""


def test_estimators():
    assert all(map(is_of_dtrees, (TREE, BaggingClassifier(), ExtraTreesClassifier())))
    assert not any(map(is_of_dtrees, (Own(), Ridge(), None)))


def test_reasons():
    assert unsupported_reason(TREE, [1], ["sample_weight"]) is None
    assert unsupported_reason(Ridge(), [1], []) == "Ridge is not an estimator of dtrees"
    assert unsupported_reason(TREE, None, []) == "there is no y"
    assert unsupported_reason(TREE, [1], ["b", "a"]) == "fit is given a, b"
    with sklearn.config_context(enable_metadata_routing=True):
        assert unsupported_reason(TREE, [1], []) == "metadata routing is enabled"


@pytest.mark.parametrize(
    ("splits", "reason"),
    [
        ([([0, 1], [2])], None),
        ([(np.array([True, False, False]), [-1])], None),
        ([], "there are no splits"),
        ([[0, 1, 2]], "no pair"),
        ([([0, 3], [1])], "no rows of X"),
        ([([0.0], [1])], "no rows of X"),
        ([(np.zeros(3, dtype=bool), [1])], "empty"),
        ([([0, -3], [1])], "twice"),
    ],
)
def test_splits(splits, reason):
    found = unsupported_splits(splits, 3)
    assert found is reason is None or reason in found
