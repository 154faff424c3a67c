"""Models of sets answer for rows of their table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import dtrees
from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from dtrees.core.model.pruning import PruningLimits
from dtrees.estimators.fitted_sets import model_of_trees, trees_of
from dtrees.estimators.training_sets import fit_sets

X, Y = load_iris(return_X_y=True)
SETS = np.arange(150) % 2 != np.arange(2)[:, None]


def test_a_tree_and_its_leaves():
    fitted = fit_sets(DecisionTreeClassifier(max_depth=3), X, Y, None, SETS)
    rows = np.array([3, 80, 149])
    leaves = fitted.leaves(1, rows)
    np.testing.assert_array_equal(leaves, fitted.models[1].apply(X[rows]))
    assert fitted.leaves(1, rows) is leaves  # at hand
    np.testing.assert_array_equal(fitted.values(1, rows), fitted.models[1].predict_proba(X[rows]))
    assert fitted.target.classes.tolist() == [0, 1, 2]
    assert fitted.n_live.tolist() == [75, 75]


def test_a_forest():
    fitted = fit_sets(RandomForestClassifier(4, random_state=0), X, Y, None, SETS)
    assert len(trees_of(fitted.models[0])) == 4
    expected = fitted.models[0].predict_proba(X)
    np.testing.assert_array_equal(fitted.values(0, np.arange(150)), expected)


def test_numbers_have_no_classes():
    fitted = fit_sets(DecisionTreeRegressor(max_depth=1), X, Y, None, SETS)
    assert fitted.target.classes is None
    assert fitted.y.dtype == np.float64


KINDS = ("DecisionTree", "RandomForest", "ExtraTrees", "Bagging")
LIMITS = {
    "depth": ({"max_depth": 2}, PruningLimits(max_depth=2)),
    "root": ({"max_depth": 1, "min_samples_split": 1000}, PruningLimits(1, 1000)),
    "leaves": ({"max_leaf_nodes": 4}, PruningLimits(max_leaf_nodes=4)),
    "pruned": ({"ccp_alpha": 0.02}, PruningLimits(ccp_alpha=0.02)),
}


def table():
    """Numbers with holes and words; in one column nothing is missing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)).round(1), columns=["a", "b", "c"])
    frame["word"] = rng.choice(["p", "q", "r"], 200)
    y = frame["a"] + (frame["word"] == "q") + rng.normal(size=200)
    frame.loc[::7, "a"] = np.nan
    frame.loc[::9, "b"] = np.nan
    return frame, y.to_numpy()


@pytest.mark.one_of(8)
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
@pytest.mark.parametrize("kind", KINDS)
def test_against_a_fit(kind, task, limits):
    X, y = table()
    y = np.where(y > 0.5, "yes", "no") if task == "Classifier" else y
    large = getattr(dtrees, kind + task)(random_state=0)
    if kind != "DecisionTree":
        large.set_params(n_estimators=3)
    parameters, cut = LIMITS[limits]
    narrow = clone(large).set_params(**parameters)
    large.fit(X, y)
    before = vars(large).copy()
    mine = model_of_trees(narrow, large, [cut.prune(tree) for tree in trees_of(large)])
    alone = clone(narrow).fit(X, y)
    assert vars(large) == before
    assert mine.get_params() == alone.get_params()
    assert vars(mine).keys() == vars(alone).keys()
    assert mine.fit_report_ == large.fit_report_
    for a, b in zip(trees_of(mine), trees_of(alone), strict=True):
        assert a.equals(b)
    for name in ("n_features_in_", "n_outputs_", "max_features_", "_fit_seed", "_fit_bags"):
        assert getattr(mine, name, None) == getattr(alone, name, None)
    assert mine.feature_names_in_.tolist() == alone.feature_names_in_.tolist()
    missing = (
        [model.tree_.saw_missing.tolist() for model in (mine, alone)]
        if kind == "DecisionTree"
        else [model._saw_missing.tolist() for model in (mine, alone)]
    )
    assert missing[0] == missing[1]
    np.testing.assert_array_equal(mine.predict(X), alone.predict(X))


def test_fewer_trees_and_no_score_that_others_have_earned():
    X, y = table()
    large = dtrees.RandomForestRegressor(30, oob_score=True, random_state=0).fit(X, y)
    assert len(large.estimators_) == 30
    narrow = dtrees.RandomForestRegressor(2, random_state=0)
    mine = model_of_trees(narrow, large, trees_of(large)[:2])
    assert not [name for name in vars(mine) if name.startswith("oob_") and name.endswith("_")]
    assert len(mine.estimators_) == 2
    np.testing.assert_array_equal(mine.predict(X), clone(narrow).fit(X, y).predict(X))
