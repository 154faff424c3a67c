"""A search of some rows of a table is that of these rows alone."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

from dtrees import DecisionTreeClassifier
from dtrees.estimators.training_table import TrainingTable
from dtrees.model_selection import GridSearchCV
from dtrees.model_selection.eligibility import NotShareableError
from dtrees.model_selection.shared_search import search_rows

X, Y = load_iris(return_X_y=True)
ROWS = np.random.default_rng(0).random(150) < 0.7
GRID = {"max_depth": [1, 2, 3], "min_samples_split": [2, 30]}


def search(**how):
    how = {"cv": KFold(3, shuffle=True, random_state=0), **how}
    return GridSearchCV(DecisionTreeClassifier(random_state=0), GRID, **how)


def test_a_search_of_some_rows():
    given = search()
    found, fitted = search_rows(given, TrainingTable(X, Y, None), ROWS)
    alone = search().fit(X[ROWS], Y[ROWS])
    assert not hasattr(given, "best_params_")
    assert found.best_params_ == alone.best_params_
    name = "mean_test_score"
    np.testing.assert_allclose(found.cv_results_[name], alone.cv_results_[name])
    values = fitted.values_of(found.best_estimator_, np.arange(150))
    np.testing.assert_array_equal(values, found.best_estimator_.predict_proba(X))


def test_errors_of_a_search():
    table = TrainingTable(X, Y, None)
    assert isinstance(search_rows(search(cv=KFold(200)), table, ROWS), ValueError)
    with pytest.raises(NotShareableError, match="lists rows twice"):
        search_rows(search(cv=[([0, 0], [1])]), table, ROWS)


def test_the_splitter_of_a_search_stays_what_it_was():
    cv = iter([(np.arange(75), np.arange(75, 150))])
    given = search(cv=cv).fit(X, Y)
    assert given.cv is cv
    assert given.n_splits_ == 1
