"""Validation on real data: scikit-learn's own loops over our estimators have the same results."""

import numpy as np
import pytest
import sklearn.model_selection as theirs
from sklearn.base import clone

import dtrees
from dtrees.estimators.fitted_sets import trees_of
from dtrees.model_selection import GridSearchCV, cost_complexity_cv, cross_validate

pytestmark = pytest.mark.realdata

CLASSIFIER = dtrees.DecisionTreeClassifier(random_state=0, n_jobs=2)
REGRESSOR = dtrees.DecisionTreeRegressor(random_state=0, n_jobs=2)
# `make test` takes two of them.
SETS = {
    "adult": (CLASSIFIER, ["accuracy", "roc_auc", "neg_log_loss"]),
    "letter": (CLASSIFIER, ["accuracy", "balanced_accuracy"]),
    "california_housing": (REGRESSOR, ["r2", "neg_mean_absolute_error"]),
    "nursery": (CLASSIFIER, ["accuracy", "f1_macro"]),
}
some_sets = pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.long) for name in ("adult", "letter")),
        *("california_housing", "nursery"),
    ],
)
CV = theirs.KFold(4, shuffle=True, random_state=0)
GRID = [
    {"max_depth": [3, 12, None], "ccp_alpha": [0.0, 3e-4], "min_samples_leaf": [1, 20]},
    {"max_leaf_nodes": [10, 200], "min_samples_split": [2, 50], "max_features": [None, 3]},
]


def table(real_data, name):
    X, y, _ = real_data(name)
    if name == "adult":  # enough of it for brute force
        X, y = X.iloc[:20_000], y[:20_000]
    return X, y


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["nursery", *(pytest.param(n, marks=pytest.mark.long) for n in SETS if n != "nursery")]
)
def test_searches(real_data, name):
    estimator, scoring = SETS[name]
    how = {"cv": CV, "scoring": scoring, "refit": scoring[-1], "return_train_score": True}
    data = table(real_data, name)
    ours = GridSearchCV(estimator, GRID, **how).fit(*data)
    brute = theirs.GridSearchCV(estimator, GRID, **how).fit(*data)
    assert ours.cv_results_.keys() == brute.cv_results_.keys()
    for key, values in brute.cv_results_.items():
        if "_test_" in key or "_train_" in key:
            np.testing.assert_allclose(ours.cv_results_[key], values, 1e-9, 1e-12, err_msg=key)
    assert ours.best_params_ == brute.best_params_
    mine, other = trees_of(ours.best_estimator_)[0], trees_of(brute.best_estimator_)[0]
    assert mine.equals(other)


@pytest.mark.one_of(2)
@some_sets
def test_cross_validations(real_data, name):
    estimator, scoring = SETS[name]
    how = {"cv": CV, "scoring": scoring, "return_train_score": True, "return_estimator": True}
    data = table(real_data, name)
    ours = cross_validate(estimator, *data, **how)
    brute = theirs.cross_validate(estimator, *data, **how)
    for key, values in brute.items():
        if key.startswith(("test_", "train_")):
            np.testing.assert_allclose(ours[key], values, 1e-9, 1e-12, err_msg=key)
    assert trees_of(ours["final_estimator"])[0].equals(trees_of(clone(estimator).fit(*data))[0])
    for a, b in zip(ours["estimator"], brute["estimator"], strict=True):
        mine, other = trees_of(a)[0], trees_of(b)[0]
        np.testing.assert_array_equal(mine.feature, other.feature)
        np.testing.assert_array_equal(mine.n_node_samples, other.n_node_samples)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "name", [pytest.param("adult", marks=pytest.mark.long), "california_housing", "nursery"]
)
def test_the_alpha_that_cart_chooses(real_data, name):
    """The errors of some steps, by fits, and the choice, from all errors."""
    estimator, _ = SETS[name]
    X, y = table(real_data, name)
    estimator = clone(estimator).set_params(min_samples_leaf=5)
    path = cost_complexity_cv(estimator, X, y, cv=CV)
    whole = clone(estimator).fit(X, y)
    alphas = np.unique(whole.cost_complexity_pruning_path(X, y).ccp_alphas)
    np.testing.assert_array_equal(path.ccp_alphas, alphas)
    chosen = {path.best_index, path.one_standard_error_index, 0, len(alphas) - 1}
    take = getattr(X, "iloc", X)
    for step in sorted(chosen):
        middle = np.sqrt(alphas[step] * alphas[step + 1]) if step + 1 < len(alphas) else 1e30
        own = clone(estimator).set_params(ccp_alpha=float(middle))
        loss = []
        for train, test in CV.split(y):
            said = clone(own).fit(take[train], y[train]).predict(take[test])
            wrong = y[test] != said if y.dtype.kind != "f" else (y[test] - said) ** 2
            loss.append(wrong.astype(float))
        loss = np.concatenate(loss)
        assert path.errors[step] == pytest.approx(loss.mean(), rel=1e-9)
        error = loss.std() / np.sqrt(len(loss))
        assert path.standard_errors[step] == pytest.approx(error, rel=1e-6)
        n_leaves = clone(estimator).set_params(ccp_alpha=float(alphas[step])).fit(X, y)
        assert path.n_leaves[step] == n_leaves.get_n_leaves()
    least = path.errors[path.best_index]
    assert (path.errors >= least).all()
    allowed = least + path.standard_errors[path.best_index]
    assert (path.errors[path.one_standard_error_index + 1 :] > allowed).all()
    assert path.errors[path.one_standard_error_index] <= allowed
