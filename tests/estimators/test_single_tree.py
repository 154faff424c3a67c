"""One tree: its leaves, its paths, and the steps of its pruning."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor

CASES = [
    (DecisionTreeClassifier, load_iris(return_X_y=True)),
    (DecisionTreeRegressor, load_diabetes(return_X_y=True)),
]


@pytest.mark.parametrize(("kind", "data"), CASES)
def test_every_step_of_the_path_is_a_smaller_tree(kind, data):
    path = kind(max_depth=4).cost_complexity_pruning_path(*data)
    assert path.ccp_alphas[0] == 0
    assert (np.diff(path.ccp_alphas) >= 0).all()
    assert (np.diff(path.impurities) >= 0).all()
    sizes = [
        kind(max_depth=4, ccp_alpha=alpha).fit(*data).get_n_leaves() for alpha in path.ccp_alphas
    ]
    assert sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(("kind", "data"), CASES)
def test_a_row_passes_the_nodes_from_the_root_to_its_leaf(kind, data):
    tree = kind(max_depth=3, random_state=0).fit(*data)
    leaves, paths = tree.apply(data[0]), tree.decision_path(data[0])
    assert paths.shape == (len(data[0]), tree.tree_.node_count)
    assert (paths[:, 0].toarray() == 1).all()
    assert (paths[np.arange(len(leaves)), leaves] == 1).all()
    assert paths.sum(axis=1).max() == tree.get_depth() + 1


def test_a_failed_fit_leaves_the_tree_as_it_was():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    grown = tree.tree_
    with pytest.raises(ValueError, match="inconsistent"):
        tree.fit(X, y[:-1])
    assert tree.tree_ is grown
