"""A search of some rows of a table is that of these rows alone."""

import numpy as np
import pytest
import sklearn.model_selection
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import DecisionTreeClassifier
from dtrees.estimators.training_table import TrainingTable
from dtrees.exceptions import NotSharedWarning
from dtrees.model_selection import GridSearchCV, cross_validate
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


class Counting:
    """A callback of scikit-learn's, from 1.9 on."""

    def __init__(self):
        self.fits = []

    def setup(self, estimator, context):
        self.fits.append("setup")

    def teardown(self, estimator, context):
        self.fits.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.fits.append(context.task_name)


@pytest.mark.skipif(not hasattr(GridSearchCV, "set_callbacks"), reason="scikit-learn 1.9 has them")
class TestCallbacks:
    def heard(self, fit, *searches):
        for each in searches:
            each.set_callbacks(heard := Counting())
        with pytest.warns(NotSharedWarning, match="has callbacks, which hear of each fit"):
            return fit(), heard.fits

    def test_a_search_calls_them_as_that_of_sklearn_does(self):
        ours = search()
        _, heard = self.heard(lambda: ours.fit(X, Y), ours)
        theirs = sklearn.model_selection.GridSearchCV(ours.estimator, GRID, cv=ours.cv)
        theirs.set_callbacks(expected := Counting()).fit(X, Y)
        assert heard == expected.fits
        assert heard.count("candidate-split-evaluation") == 18
        assert ours.best_params_ == theirs.best_params_
        scores = "mean_test_score"
        assert (ours.cv_results_[scores] == search().fit(X, Y).cv_results_[scores]).all()

    def test_searches_inside_of_a_validation(self):
        ours = search()
        _, heard = self.heard(lambda: cross_validate(ours, X, Y, cv=3), ours)
        assert heard.count("setup") == heard.count("teardown") == 4  # and all rows

    @pytest.mark.parametrize("on_search", [True, False])
    def test_a_pipeline(self, on_search):
        pipeline = Pipeline([("scale", StandardScaler()), ("tree", DecisionTreeClassifier())])
        ours = GridSearchCV(pipeline, {"tree__max_depth": [1, 2]}, cv=3)
        _, heard = self.heard(lambda: ours.fit(X, Y), ours if on_search else pipeline)
        assert heard.count("setup") == (1 if on_search else 7)

    def test_others_are_not_told_of_what_they_cannot_share(self):
        ours = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=3)
        ours.set_callbacks(heard := Counting()).fit(X, Y)
        assert heard.fits.count("candidate-split-evaluation") == 6
