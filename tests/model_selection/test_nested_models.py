"""Searches, pipelines and estimators of other libraries, beside a loop of separate fits."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.estimators.training_table import TrainingTable
from dtrees.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    nested_models,
    nested_standard_error,
)
from dtrees.model_selection.eligibility import NotShareableError
from tests.model_selection.test_nested_errors import agree, algorithm_1, noisy, right, squared

TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, 3]}


def data(estimator):
    if is_classifier(estimator):
        return noisy(60, 0)
    X, y = make_friedman1(60, random_state=0)
    return X, np.rint(y)  # whose sums are those of any unit


def fits(estimator, X, y, cv, rows_only=True):
    """Algorithm 1 with fits of the training rows alone."""
    tests = [test for _, test in cv.split(X, y)]
    loss = right if is_classifier(estimator) else squared
    return algorithm_1(estimator, X, y, [tests], loss, rows_only=rows_only)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "estimator",
    [
        GridSearchCV(TREE, DEPTHS, cv=KFold(3)),
        RandomizedSearchCV(
            DecisionTreeRegressor(random_state=0), DEPTHS, n_iter=2, cv=3, random_state=0
        ),
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)),
        make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3, random_state=0)),
        GridSearchCV(
            make_pipeline(StandardScaler(), TREE), {"decisiontreeclassifier__max_depth": [1, 3]}
        ),
        LogisticRegression(),
        LinearSVC(random_state=0),
        Ridge(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_loop_of_fits(estimator):
    X, y = data(estimator)
    cv = KFold(3, shuffle=True, random_state=0)
    agree(nested_standard_error(estimator, X, y, cv=cv), fits(estimator, X, y, cv))


def test_shares_of_classes_that_a_training_side_lacks():
    X, y = noisy(40, 0)
    y = np.where(np.arange(40) < 2, 2, y)  # in the first fold only
    cv, pipeline = KFold(4), make_pipeline(DecisionTreeClassifier(max_depth=2, random_state=0))
    for scoring in ("neg_log_loss", "neg_brier_score"):
        found = nested_standard_error(pipeline, X, y, cv=cv, scoring=scoring)
        alone = nested_standard_error(pipeline[-1], X, y, cv=cv, scoring=scoring)
        np.testing.assert_allclose(found.mean, alone.mean, rtol=1e-12)
        np.testing.assert_allclose(found.standard_error, alone.standard_error, rtol=1e-12)


def test_searches_code_the_table_once(monkeypatch):
    coded = []
    encoded = TrainingTable.encoded

    def watched(self, *arguments):
        coded.append(id(self))
        return encoded(self, *arguments)

    monkeypatch.setattr(TrainingTable, "encoded", watched)
    nested_standard_error(GridSearchCV(TREE, DEPTHS, cv=3), *noisy(60, 0), cv=3)
    assert len(coded) > 6
    assert len(set(coded)) == 1


def test_weights_frames_and_labels():
    X, y = noisy(60, 1)
    frame, labels = pd.DataFrame(X, columns=list("abc")), np.array(["no", "yes"])[y]
    weight = np.random.default_rng(0).integers(0, 3, 60)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    expected = nested_standard_error(tree, X, y, cv=cv, params={"sample_weight": weight})
    params = {"decisiontreeclassifier__sample_weight": weight}
    found = nested_standard_error(make_pipeline(tree), frame, labels, cv=cv, params=params)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-12)
    searched = GridSearchCV(tree, {"max_depth": [3]}, cv=3)
    found = nested_standard_error(searched, frame, labels, cv=cv, params={"sample_weight": weight})
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-12)


def test_searches_that_cannot_be_made_on_codes(monkeypatch):
    X, y = noisy(60, 0)
    search = GridSearchCV(TREE, DEPTHS, cv=3)
    expected = nested_standard_error(search, X, y, cv=KFold(3))

    def refuse(*arguments):
        raise NotShareableError("as asked")

    monkeypatch.setattr(nested_models, "search_rows", refuse)
    found = nested_standard_error(search, X, y, cv=KFold(3))
    assert found.mean == pytest.approx(expected.mean)
    assert found.standard_error == pytest.approx(expected.standard_error)
    with pytest.raises(ValueError, match="has refit=False, which leaves none"):
        nested_standard_error(GridSearchCV(TREE, DEPTHS, refit=False), X, y, cv=3)


def test_dask_collections():
    X, y = noisy(60, 0)
    lazy, lazy_y = da.from_array(X, chunks=(25, 3)), da.from_array(y, chunks=20)
    search = GridSearchCV(TREE, DEPTHS, cv=KFold(3))
    cv = KFold(3)
    expected = nested_standard_error(search, X, y, cv=cv)
    assert nested_standard_error(search, lazy, lazy_y, cv=cv) == expected
    with pytest.raises(TypeError, match="nested_standard_error of a Dask collection: Pipeline is"):
        nested_standard_error(make_pipeline(TREE), lazy, lazy_y, cv=cv)


def test_errors_of_fits():
    with pytest.raises(ValueError, match="max_depth"):
        nested_standard_error(make_pipeline(DecisionTreeClassifier(max_depth=-1)), *noisy(60, 0))
    with pytest.raises(ValueError, match="max_depth"):
        nested_standard_error(GridSearchCV(TREE, {"max_depth": [-1]}), *noisy(60, 0))
    twice = [([0, 0, 1], [2, 3]), ([2, 3], [0, 1])]
    with pytest.raises(ValueError, match="needs folds: a training side lists rows twice"):
        nested_standard_error(TREE, *noisy(4, 0), cv=twice)
