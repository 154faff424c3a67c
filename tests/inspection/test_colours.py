"""Colours of nodes tell the class and how pure it is, or the mean."""

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_iris

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection.colours import COLOURS, colours_of, hexadecimal
from tests.export.examples import examples


def test_classes_have_colours_and_pure_nodes_are_stronger():
    (tree,) = ModelNodes.of(DecisionTreeClassifier().fit(*load_iris(return_X_y=True))).trees
    found = colours_of(tree)
    away = 1 - found  # from white
    for k, name in enumerate(COLOURS[:3]):
        mine = tree.value.argmax(axis=1) == k
        direction = 1 - np.array([int(name[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        strength = away[mine] @ direction / (direction @ direction)
        np.testing.assert_allclose(away[mine], strength[:, None] * direction, atol=1e-12)
        order = np.argsort(tree.value[mine, k], kind="stable")
        assert (np.diff(strength[order]) >= -1e-12).all()


def test_means():
    X = np.arange(8.0)[:, None]
    for y in (np.arange(8.0), 1e150 * np.linspace(-1, 1, 8), np.ones(8)):
        (tree,) = ModelNodes.of(DecisionTreeRegressor().fit(X, y)).trees
        darkness = 1 - colours_of(tree)[np.argsort(tree.value[:, 0])].mean(axis=1)
        assert (np.diff(darkness) >= 0).all()


@given(examples())
def test_colours_are_colours(example):
    for tree in ModelNodes.of(example.model).trees:
        found = colours_of(tree)
        assert found.shape == (len(tree.is_leaf), 3)
        assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize("name", COLOURS)
def test_hexadecimal(name):
    assert hexadecimal(np.array([int(name[i : i + 2], 16) for i in (1, 3, 5)]) / 255) == name
