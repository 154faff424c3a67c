import numpy as np

from dtrees import ExtraTreesClassifier
from dtrees.core.predict.used_columns import NOWHERE, slots_of, used_columns


def test_used_columns_are_those_of_inner_nodes():
    X = np.zeros((40, 5))
    X[:, 3] = np.arange(40)
    X[:, 1] = np.arange(40) % 7
    y = (X[:, 3] > 20).astype(int) + (X[:, 1] > 2)
    forest = ExtraTreesClassifier(1, max_features=None, random_state=0)
    used = used_columns(forest.fit(X, y).forest_[0])
    assert used.tolist() == [1, 3]
    assert used.dtype == np.int64
    assert used_columns(forest.fit(X, np.zeros(40)).forest_[0]).tolist() == []


def test_slots():
    places = slots_of(np.array([1, 3, 4]), 6)
    assert places.tolist() == [NOWHERE, 0, NOWHERE, 1, 2, NOWHERE]
    assert places.dtype == np.int32
    assert slots_of(np.empty(0, dtype=np.int64), 2).tolist() == [NOWHERE, NOWHERE]
