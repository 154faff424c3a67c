"""Parameters and attributes that scikit-learn's models have, and that users rely on."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV as TheirSearch

from dtrees import (
    AdaBoostRegressor,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    GridSearchCV,
    RandomForestRegressor,
    cross_validate,
    load,
    save,
)

X, Y = load_diabetes(return_X_y=True)
REGRESSORS = (
    *(AdaBoostRegressor, BaggingRegressor, DecisionTreeRegressor),
    *(ExtraTreesRegressor, RandomForestRegressor),
)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_friedman_mse_is_the_squared_error(kind):
    with pytest.warns(FutureWarning, match="friedman_mse") as told:
        model = kind(criterion="friedman_mse", max_depth=3, random_state=0)
    assert told[0].filename == __file__
    assert model.get_params()["criterion"] == "squared_error"
    same = kind(max_depth=3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), same.predict(X))


@pytest.mark.parametrize("search", [GridSearchCV, TheirSearch])
def test_friedman_mse_in_a_grid(search):
    grid = {"criterion": ["squared_error", "friedman_mse"]}
    with pytest.warns(FutureWarning, match="friedman_mse") as told:
        tree = DecisionTreeRegressor(max_depth=2).set_params(criterion="friedman_mse")
    assert told[0].filename == __file__
    assert tree.criterion == clone(tree).criterion == "squared_error"
    with pytest.warns(FutureWarning, match="friedman_mse"):
        found = search(tree, grid, cv=3, error_score="raise").fit(X, Y)
    np.testing.assert_equal(*found.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    ("bootstrap", "size"),
    [(True, 0.5), (True, 200), (True, 1.0), (True, 1.7), (True, 800), (False, 0.5), (False, 200)],
)
def test_rows_of_bags(bootstrap, size, tmp_path):
    own = {"bootstrap": bootstrap, "max_samples": size, "random_state": 1}
    forest = RandomForestRegressor(5, **own).fit(X, Y)
    again = RandomForestRegressor(5, regime="partitioned", **own).fit(X, Y)
    np.testing.assert_array_equal(forest.predict(X), again.predict(X))
    save(forest, tmp_path / "forest")
    forest = load(tmp_path / "forest")
    mean = size if size >= 2 else size * len(Y)
    for tree, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        assert len(np.unique(rows)) == tree.tree_.n_node_samples[0]
        assert len(rows) == tree.tree_.weighted_n_node_samples[0]
        assert np.mean(Y[rows]) == pytest.approx(tree.tree_.value[0, 0, 0])
        assert abs(len(rows) - mean) <= (5 * mean**0.5 if bootstrap else 1)


def test_a_share_is_its_number_of_rows():
    share, number = (
        ExtraTreesRegressor(3, bootstrap=True, max_samples=size, random_state=0).fit(X, Y)
        for size in (1.5, 663)
    )
    np.testing.assert_array_equal(share.predict(X), number.predict(X))


@pytest.mark.parametrize(
    ("own", "given"),
    [
        ({"bootstrap": False}, {"sample_weight": np.arange(len(Y)) % 3 > 0}),
        ({}, {"sample_weight": 1 + Y}),
        ({}, {"sample_weight": np.arange(len(Y)) % 3 > 0}),
        ({"bootstrap": False, "max_samples": 0.5}, {"sample_weight": np.arange(len(Y)) % 3 > 0}),
        ({}, {"bootstrap_groups": np.arange(len(Y)) // 3}),
    ],
)
def test_bags_that_a_model_does_not_keep(own, given):
    forest = RandomForestRegressor(2, **own).fit(X, Y, **given)
    assert not hasattr(forest, "estimators_samples_")


@pytest.mark.parametrize("weight", [None, 1 + Y])
def test_rows_without_bags(weight, tmp_path):
    forest = RandomForestRegressor(2, bootstrap=False).fit(X, Y, weight)
    save(forest, tmp_path / "forest")
    for rows in load(tmp_path / "forest").estimators_samples_ + forest.estimators_samples_:
        assert rows.dtype == np.int32
        np.testing.assert_array_equal(rows, np.arange(len(Y)))


@pytest.mark.parametrize("bootstrap", [False, True])
def test_bags_of_folds_and_of_all_rows(bootstrap):
    forest = RandomForestRegressor(2, bootstrap=bootstrap, random_state=0)
    found = cross_validate(forest, X, Y, cv=3, return_estimator=True)
    for model in found["estimator"]:
        with pytest.raises(AttributeError, match="out of a fold"):
            model.estimators_samples_  # noqa: B018
    own = found.final_estimator.estimators_samples_
    np.testing.assert_equal(own, forest.fit(X, Y).estimators_samples_)


@pytest.mark.parametrize("kind", [AdaBoostRegressor, BaggingRegressor, RandomForestRegressor])
def test_unfitted_trees(kind):
    model = kind(n_estimators=2, max_depth=2, ccp_alpha=0.5)
    assert not hasattr(model, "estimator_")
    model.fit(X, Y)
    for tree in (model.estimator, model.estimator_):
        assert type(tree) is DecisionTreeRegressor
        assert not hasattr(tree, "tree_")
        assert tree.get_params() == model[0].get_params()


@pytest.mark.parametrize("kind", [AdaBoostRegressor, BaggingRegressor])
def test_ensembles_of_any_estimator_are_scikit_learns(kind):
    with pytest.raises(TypeError, match=r"are scikit-learn's, in sklearn\.ensemble"):
        kind(estimator=DecisionTreeRegressor())
    with pytest.raises(ValueError, match=r"are scikit-learn's, in sklearn\.ensemble"):
        kind(DecisionTreeRegressor()).fit(X, Y)


def test_friedman_mse_is_no_criterion_of_classes():
    tree = DecisionTreeClassifier(criterion="friedman_mse")
    with pytest.raises(ValueError, match="criterion"):
        tree.fit(X, Y > 100)
