"""The alpha of cost-complexity pruning and its standard error, against a direct computation."""

import pickle

import matplotlib as mpl
import numpy as np
import pytest
import sklearn.model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import dtrees
from dtrees.model_selection import cost_complexity_cv

mpl.use("agg")

DATA = {
    "cancer": (dtrees.DecisionTreeClassifier(random_state=0), *load_breast_cancer(return_X_y=True)),
    "wine": (dtrees.DecisionTreeClassifier(criterion="entropy"), *load_wine(return_X_y=True)),
    "few leaves": (
        dtrees.DecisionTreeClassifier(max_leaf_nodes=9, random_state=0),
        *load_breast_cancer(return_X_y=True),
    ),
    "diabetes": (dtrees.DecisionTreeRegressor(min_samples_leaf=5), *load_diabetes(return_X_y=True)),
}


def direct(estimator, X, y, splits):
    """Steps of CART 3.4, one fit for each alpha and fold."""
    whole = clone(estimator).fit(X, y)
    alphas = np.unique(whole.cost_complexity_pruning_path(X, y).ccp_alphas)
    middle = np.append(np.sqrt(alphas[:-1] * alphas[1:]), 1e9)
    errors, standard_errors, n_leaves = [], [], []
    for alpha, of_folds in zip(alphas, middle, strict=True):
        each = []
        for train, test in splits:
            model = clone(estimator).set_params(ccp_alpha=of_folds).fit(X[train], y[train])
            said = model.predict(X[test])
            each.append(said != y[test] if y.dtype.kind == "i" else (said - y[test]) ** 2)
        each = np.concatenate(each).astype(float)
        errors.append(each.mean())
        standard_errors.append(each.std() / np.sqrt(len(each)))
        n_leaves.append(clone(estimator).set_params(ccp_alpha=alpha).fit(X, y).get_n_leaves())
    errors = np.array(errors)
    best = np.flatnonzero(errors == errors.min())[-1]
    simple = np.flatnonzero(errors <= errors[best] + standard_errors[best])[-1]
    return alphas, n_leaves, errors, standard_errors, best, simple


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", DATA)
def test_against_a_direct_computation(name):
    estimator, X, y = DATA[name]
    cv = theirs.KFold(4, shuffle=True, random_state=1)
    path = cost_complexity_cv(estimator, X, y, cv=cv)
    alphas, n_leaves, errors, standard_errors, best, simple = direct(
        estimator, X, y, list(cv.split(X))
    )
    np.testing.assert_array_equal(path.ccp_alphas, alphas)
    np.testing.assert_array_equal(path.n_leaves, n_leaves)
    np.testing.assert_allclose(path.errors, errors, 1e-10)
    np.testing.assert_allclose(path.standard_errors, standard_errors, 1e-8)
    assert path.best_index == best
    assert path.one_standard_error_index == simple
    assert path.best_alpha == alphas[best]
    assert path.one_standard_error_alpha == alphas[simple] >= path.best_alpha


def test_models_are_fits():
    estimator, X, y = DATA["cancer"]
    path = cost_complexity_cv(estimator, X, y)
    for alpha in (0.0, path.best_alpha, path.one_standard_error_alpha, 1.0):
        model = path.model(alpha)
        alone = clone(estimator).set_params(ccp_alpha=alpha).fit(X, y)
        assert model.tree_.model.equals(alone.tree_.model)
        assert model.get_params() == alone.get_params()
    with pytest.raises(ValueError, match="ccp_alpha"):
        path.model(-1.0)


def test_what_a_path_says_of_itself():
    path = cost_complexity_cv(*DATA["wine"], cv=3)
    best = path.best_index
    said = repr(path)
    assert said.startswith(f"CostComplexity({len(path.ccp_alphas)} steps, best: ccp_alpha=")
    assert f"{path.n_leaves[best]} leaves, error {path.errors[best]:.4g} ± " in said
    assert len(said) < 200


def test_weights_are_for_the_models():
    estimator, X, y = DATA["cancer"]
    weight = np.where(y == 0, 3.0, 1.0)
    cv = theirs.KFold(3)
    path = cost_complexity_cv(estimator, X, y, cv=cv, params={"sample_weight": weight})
    wrong = 0
    for train, test in cv.split(X):
        model = clone(estimator).fit(X[train], y[train], sample_weight=weight[train])
        wrong += np.count_nonzero(model.predict(X[test]) != y[test])
    assert path.errors[0] == wrong / len(y)


def test_a_tree_that_is_a_leaf():
    path = cost_complexity_cv(
        dtrees.DecisionTreeClassifier(), np.zeros((20, 1)), np.arange(20) % 2, cv=2
    )
    assert path.ccp_alphas.tolist() == [0.0]
    assert path.n_leaves.tolist() == [1]
    assert path.errors.tolist() == [0.5]


@pytest.mark.parametrize("name", ["cancer", "diabetes"])
def test_a_path_holds_the_tree_and_not_the_table(name):
    estimator, X, y = DATA[name]
    path = cost_complexity_cv(clone(estimator).set_params(max_depth=3), X, y)
    kept = pickle.dumps(path)
    assert len(kept) < 20_000 < X.nbytes
    again = pickle.loads(kept)
    np.testing.assert_array_equal(again.errors, path.errors)
    alpha = path.one_standard_error_alpha
    assert again.model(alpha).tree_.model.equals(path.model(alpha).tree_.model)
    np.testing.assert_array_equal(again.model(alpha).predict(X), path.model(alpha).predict(X))
    assert again.plot().get_ylabel() == path.plot().get_ylabel()
    mpl.pyplot.close("all")


def test_errors():
    _, X, y = DATA["cancer"]
    with pytest.raises(TypeError, match="single tree"):
        cost_complexity_cv(dtrees.RandomForestClassifier(2), X, y)
    with pytest.raises(ValueError, match="min_samples_leaf"):
        cost_complexity_cv(dtrees.DecisionTreeClassifier(min_samples_leaf=0), X, y)
