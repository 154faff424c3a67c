"""How large a model is, by its trees' own account."""

import pytest
from sklearn.datasets import load_iris

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.model_selection.size import ModelSize, size_of


@pytest.mark.parametrize("depth", [1, None])
def test_the_size_of_a_forest_is_that_of_its_trees(depth):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(5, max_depth=depth, random_state=0).fit(X, y)
    depths = [tree.get_depth() for tree in forest]
    leaves = [tree.get_n_leaves() for tree in forest]
    assert size_of(forest) == ModelSize(trees=5, depth=max(depths), n_leaves=sum(leaves))
    tree = DecisionTreeClassifier(max_depth=depth).fit(X, y)
    assert size_of(tree) == ModelSize(1, tree.get_depth(), tree.get_n_leaves())
