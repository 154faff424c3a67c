"""Targets near the ends of float64: models are those of the same target in another unit."""

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.inspection import partial_dependence

import dtrees
from dtrees.export import load, save
from dtrees.model_selection import (
    GridSearchCV,
    cost_complexity_cv,
    cross_val_predict,
    cross_validate,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.random((40, 3))
Y = np.round(4 * X[:, 0]) + (X[:, 1] > 0.5)
REGRESSORS = [
    dtrees.DecisionTreeRegressor(random_state=0),
    dtrees.DecisionTreeRegressor(random_state=0, criterion="poisson", max_depth=3),
    dtrees.RandomForestRegressor(12, random_state=0, oob_score=True),
    dtrees.ExtraTreesRegressor(12, random_state=0),
    dtrees.BaggingRegressor(n_estimators=12, random_state=0),
]
FORESTS = REGRESSORS[2:]
HUGE = 1.7e308
by_name = pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)


@pytest.mark.one_of(3)
@by_name
@pytest.mark.parametrize("power", [-1000, -560, 400])
def test_importances_do_not_depend_on_the_unit(model, power):
    plain = model.fit(X, Y).feature_importances_
    scaled = model.fit(X, np.ldexp(Y, power))
    assert plain.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(scaled.feature_importances_, plain, rtol=1e-9)
    assert np.isfinite(scaled.predict(X)).all()


@pytest.mark.parametrize("scale", [1e-170, 1e-310])
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_importances_of_tiny_targets(model, scale):
    found = model.fit(X[:10], np.arange(10) * scale).feature_importances_
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()


@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error"])
@pytest.mark.parametrize("power", [-900, -530, 300])
def test_boosted_models_do_not_depend_on_the_unit(loss, power):
    model = dtrees.GradientBoostingRegressor(
        loss, max_iter=5, min_samples_leaf=3, l2_regularization=0
    )
    plain = model.fit(X, Y)
    expected, shares, n_leaves = plain.predict(X), plain.feature_importances_, leaves_of(plain)
    scaled = model.fit(X, np.ldexp(Y, power))
    assert max(n_leaves) > 3
    assert leaves_of(scaled) == n_leaves
    np.testing.assert_array_equal(np.ldexp(scaled.predict(X), -power), expected)
    if loss != "absolute_error":  # whose gains have no unit
        np.testing.assert_allclose(scaled.feature_importances_, shares, rtol=0.1)


def leaves_of(model):
    return [tree.n_leaves for tree in model.forest_.trees]


def test_the_best_leaves_do_not_depend_on_the_unit():
    model = dtrees.DecisionTreeRegressor(max_leaf_nodes=4, random_state=0)
    plain, scaled = (model.fit(X, np.ldexp(Y, p)).apply(X).tolist() for p in (0, -700))
    assert scaled == plain


def test_splits_that_gain_nothing_have_no_importance():
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 2, dtype=float)
    y = np.array([0, 1, 1, 0] * 2)
    forest = dtrees.BaggingClassifier(n_estimators=3, bootstrap=False, max_depth=1).fit(corners, y)
    assert np.isfinite(forest.feature_importances_).all()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("model", FORESTS, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")  # of scikit-learn's scores
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
def test_a_huge_constant_is_predicted(model, sign, tmp_path):
    y = np.full(40, sign * HUGE)
    forest = model.fit(X, y)
    assert (forest.predict(X) == y).all()
    assert (forest.predict(X.astype(object)) == y).all()
    assert (forest.predict(np.c_[X, X][:, 3:]) == y).all()
    if getattr(forest, "oob_score", False):
        with_votes = ~np.isnan(forest.oob_prediction_)
        assert (forest.oob_prediction_[with_votes] == y[with_votes]).all()
    save(forest, tmp_path / "forest")
    assert (load(tmp_path / "forest").predict(X) == y).all()
    plain = forest.set_params(**({"oob_score": False} if hasattr(forest, "oob_score") else {}))
    assert (cross_val_predict(plain, X, y, cv=2) == y).all()
    found = cross_validate(plain, X, y, cv=2, return_estimator=True,
                           scoring="neg_mean_absolute_error")  # fmt: skip
    assert found["test_score"].tolist() == [0, 0]
    search = GridSearchCV(plain, {"n_estimators": [4, 12]}, scoring="neg_mean_absolute_error")
    assert np.nanmax(np.abs(search.fit(X, y).cv_results_["mean_test_score"])) == 0
    forest.fit(X, y / 16)  # the mean over rows is scikit-learn's
    averages = partial_dependence(forest, X[:8], [0], method="brute")["average"]
    assert np.isfinite(averages).all()


def test_trees_of_several_targets():
    y = np.full(40, HUGE)
    forest = dtrees.RandomForestRegressor(4, warm_start=True, random_state=0).fit(X, y)
    forest.set_params(n_estimators=8).fit(X, np.zeros(40))
    np.testing.assert_allclose(forest.predict(X), HUGE / 2)


@pytest.mark.parametrize("scale", [1e-170, 1e-160, 1e-154, 1e-150, 1e-100])
@pytest.mark.parametrize("search", [False, True])
def test_r2_of_tiny_targets_is_that_of_scikit_learn(scale, search):
    y, tree = Y * scale, dtrees.DecisionTreeRegressor(max_depth=2, random_state=0)
    expected = model_selection.cross_validate(tree, X, y, cv=3)["test_score"]
    if search:
        grid = GridSearchCV(tree, {"max_depth": [2]}, cv=3).fit(X, y)
        found = [grid.cv_results_[f"split{number}_test_score"][0] for number in range(3)]
    else:
        found = cross_validate(tree, X, y, cv=3)["test_score"]
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("power", [-480, -300, 260, 480])
def test_steps_of_pruning_do_not_depend_on_the_unit(power):
    """Fourth powers of these targets are beyond a float64, squares are not."""
    tree = dtrees.DecisionTreeRegressor(max_depth=4, random_state=0)
    plain = cost_complexity_cv(tree, X, Y, cv=3)
    scaled = cost_complexity_cv(tree, X, np.ldexp(Y, power), cv=3)
    assert plain.standard_errors.min() > 0
    assert scaled.n_leaves.tolist() == plain.n_leaves.tolist()
    assert scaled.best_index == plain.best_index
    assert scaled.one_standard_error_index == plain.one_standard_error_index
    for name in ("errors", "standard_errors", "ccp_alphas"):
        back = np.ldexp(getattr(scaled, name), -2 * power)
        np.testing.assert_allclose(back, getattr(plain, name), rtol=1e-9)
