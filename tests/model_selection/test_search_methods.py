"""What searches have from scikit-learn's, with an eye on sparse tables."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from dtrees import DecisionTreeClassifier
from dtrees.model_selection import GridSearchCV

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def search():
    return GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}).fit(X, Y)


def test_answers_are_those_of_the_best_model(search):
    best = search.best_estimator_
    for method in ("predict", "predict_proba", "predict_log_proba"):
        np.testing.assert_array_equal(getattr(search, method)(X), getattr(best, method)(X))
    assert search.score(X, Y) == best.score(X, Y)


def test_methods_that_a_tree_does_not_have(search):
    for method in ("transform", "decision_function", "score_samples", "inverse_transform"):
        assert not hasattr(search, method)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score"])
def test_damaged_sparse_matrices_are_refused(search, method):
    damaged = sp.csr_matrix(X)
    damaged.indices[0] = 1000
    arguments = (damaged, Y) if method == "score" else (damaged,)
    with pytest.raises(ValueError, match="sparse"):
        getattr(search, method)(*arguments)


def test_splitters_that_do_not_know_their_number():
    class Odd:
        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

        def split(self, X, y=None, groups=None):
            yield np.arange(75), np.arange(75, 150)

    with pytest.raises(ValueError, match="Expected 2 splits, got 1"):
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=Odd()).fit(X, Y)
