"""Random forests: the same from dense and sparse codes, and as good as scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier as TheirClassifier
from sklearn.ensemble import RandomForestRegressor as TheirRegressor
from sklearn.model_selection import cross_val_score

from dtrees import RandomForestClassifier, RandomForestRegressor

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("n_classes", [2, 40])
def test_more_codes_than_rows(kind, n_classes):
    # Dense columns of wide codes are sorted in small nodes; sparse columns always are.
    rng = np.random.default_rng(0)
    X = np.where(rng.random((3_000, 6)) < 0.9, rng.normal(size=(3_000, 6)), 0.0)
    y = (np.argsort(np.argsort(X[:, 0])) * n_classes // 3_000).astype(int)
    exact = kind(3, max_bins=None, random_state=0)
    dense, sparse = exact.fit(X, y), clone(exact).fit(sp.csc_array(X), y)
    assert all(a.equals(b) for a, b in zip(dense.forest_, sparse.forest_, strict=True))


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("ours", "theirs", "data"),
    [
        (RandomForestClassifier, TheirClassifier, CANCER),
        (RandomForestClassifier, TheirClassifier, IRIS),
        (RandomForestRegressor, TheirRegressor, DIABETES),
    ],
)
def test_as_good_as_scikit_learn(ours, theirs, data):
    mine = cross_val_score(ours(60, random_state=0, n_jobs=2), *data, cv=5)
    other = cross_val_score(theirs(60, random_state=0), *data, cv=5)
    assert mine.mean() > other.mean() - 2 * other.std() / np.sqrt(5)
