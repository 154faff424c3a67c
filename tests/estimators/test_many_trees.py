"""What forests and boosted models answer alike: leaves, paths, trees as estimators, parts."""

import pickle

import numpy as np
import pytest

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from tests.estimators.forest_cases import mixed_table

MODELS = {
    "forest": RandomForestClassifier(3, random_state=0),
    "two classes": GradientBoostingClassifier(max_iter=3),
    "numbers": GradientBoostingRegressor(max_iter=3),
}


def fitted(name):
    X, y = mixed_table()
    return MODELS[name].fit(X, y), X


@pytest.mark.parametrize("name", MODELS)
def test_leaves_and_paths_are_those_of_the_trees(name):
    model, X = fitted(name)
    each = np.ravel(model.estimators_)
    leaves = model.apply(X)
    np.testing.assert_array_equal(leaves, np.column_stack([tree.apply(X) for tree in each]))
    paths, ends = model.decision_path(X)
    assert ends.tolist() == np.cumsum([0, *(tree.tree_.node_count for tree in each)]).tolist()
    for i, tree in enumerate(each):
        own = paths[:, ends[i] : ends[i + 1]]
        np.testing.assert_array_equal(own.toarray(), tree.decision_path(X).toarray())


@pytest.mark.parametrize("name", MODELS)
def test_estimators_are_made_once_and_not_pickled(name):
    model, _ = fitted(name)
    assert np.ravel(model.estimators_)[0] is np.ravel(model.estimators_)[0]
    assert "_estimators" not in vars(pickle.loads(pickle.dumps(model)))


@pytest.mark.parametrize("name", MODELS)
def test_estimators_are_those_of_the_last_fit(name):
    model, X = fitted(name)
    first = np.ravel(model.estimators_)[0]
    again = np.ravel(model.fit(X[:100], np.arange(100) % 2).estimators_)[0]
    assert first.tree_.n_node_samples[0] != again.tree_.n_node_samples[0]


@pytest.mark.parametrize("name", MODELS)
def test_estimators_know_the_columns_of_the_model(name):
    model, X = fitted(name)
    for tree in np.ravel(model.estimators_):
        assert tree.n_features_in_ == X.shape[1]
        assert tree.feature_names_in_.tolist() == model.feature_names_in_.tolist()
        np.testing.assert_array_equal(tree.tree_.saw_missing, model._saw_missing)
        assert hasattr(tree, "classes_") == (name == "forest")
        assert tree.max_depth == model.max_depth
