"""`tree_`: a grown tree under the names that scikit-learn's users know."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.core.model.tree import AT_MOST
from dtrees.estimators.tree_view import columns_tested
from tests.estimators.forest_cases import mixed_table


def test_a_fitted_tree_is_as_large_as_its_nodes():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20_000, 5)), rng.normal(size=20_000)
    assert len(pickle.dumps(DecisionTreeRegressor(max_depth=2).fit(X, y))) < 10_000


def test_output_of_plain_scikit_learn_is_the_same():
    # drop-in: what reads scikit-learn's flat arrays reads ours
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int) + 2 * (X[:, 2] > 1)
    ours = DecisionTreeClassifier(max_depth=3).fit(X, y).tree_
    theirs = sklearn.tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y).tree_
    for name in [
        "children_left",
        "children_right",
        "feature",
        "threshold",
        "impurity",
        "value",
        "n_node_samples",
        "weighted_n_node_samples",
        "n_classes",
        "missing_go_to_left",
    ]:
        mine, other = np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name))
        assert mine.shape == other.shape, name
        assert mine.dtype == other.dtype, name
    for name in [
        "node_count",
        "capacity",
        "n_leaves",
        "max_depth",
        "n_features",
        "n_outputs",
        "max_n_classes",
    ]:
        assert isinstance(getattr(ours, name), int), name
        assert getattr(ours, name) == getattr(theirs, name) or name == "capacity"
    assert ours.predict(X).shape == theirs.predict(X.astype(np.float32)).shape
    assert ours.apply(X).shape == (300,)
    assert ours.decision_path(X).shape == (300, ours.node_count)
    leaf = ours.children_left == -1
    assert np.all(ours.threshold[leaf] == -2)
    assert np.all(ours.feature[leaf] == -2)
    assert "node_count=" in repr(ours)
    with pytest.raises(ValueError, match="read-only"):
        ours.value[0] = 0


@pytest.fixture(scope="module")
def hybrid():
    """A tree on numbers, categories and gaps."""
    X, y = mixed_table(200)
    return X, y, DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y).tree_


def test_sets_of_categories_have_no_threshold(hybrid):
    view = hybrid[2]
    names = {view.codebook.name(j) for j in view.model.feature[view.model.test > AT_MOST].tolist()}
    with pytest.raises(ValueError, match=r"no threshold .*dtrees\.export_text") as refused:
        view.threshold  # noqa: B018
    assert all(name in str(refused.value) for name in names)
    many = pd.DataFrame(np.array(list("ab"))[np.random.default_rng(0).integers(0, 2, (400, 9))])
    tree = DecisionTreeClassifier().fit(many, (many == "a").sum(axis=1) % 2)
    with pytest.raises(ValueError, match=r"column 0, 1, 2, 3, 4 and 4 more: "):
        tree.tree_.threshold  # noqa: B018


def test_arrays_are_those_of_rows_counted_by_hand(hybrid):
    X, y, view = hybrid
    leaves = view.apply(X)
    on_path = view.decision_path(X).toarray().astype(bool)
    assert on_path[np.arange(len(X)), leaves].all()
    labels = np.unique(y)
    for node in range(view.node_count):
        rows = on_path[:, node]
        assert view.n_node_samples[node] == rows.sum() == view.weighted_n_node_samples[node]
        shares = (y[rows][:, None] == labels).mean(axis=0)
        np.testing.assert_allclose(view.value[node, 0], shares, rtol=1e-12)
    assert_array_equal(view.predict(X), view.value[leaves, 0])
    assert (view.n_outputs, view.max_n_classes, view.n_classes.tolist()) == (1, 3, [3])


def test_arrays_cannot_be_written_to_and_are_not_pickled():
    X = np.random.default_rng(0).normal(size=(40, 2))
    view = DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0]).tree_
    for name in ("threshold", "feature", "children_left", "children_right", "value",
                 "n_node_samples", "weighted_n_node_samples"):  # fmt: skip
        array = getattr(view, name)
        assert getattr(view, name) is array
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert vars(view).keys() > view.__getstate__().keys() == {"model", "codebook", "saw_missing"}
    twin = pickle.loads(pickle.dumps(view))
    assert_array_equal(twin.threshold, view.threshold)


def test_missing_values_are_told_of_columns_that_are_tested():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] > 0
    X[::7, 0] = X[::5, 2] = np.nan
    one, none = (DecisionTreeClassifier(max_depth=1).fit(X, labels) for labels in (y, np.zeros(60)))
    assert one.tree_.saw_missing.tolist() == [True, False, False]
    assert none.tree_.saw_missing.tolist() == [False] * 3
    trees = [each.tree_.model for each in (one, none)]
    assert columns_tested(trees, 3).tolist() == [True, False, False]
    assert columns_tested([], 3).tolist() == [False] * 3
