"""SHAP values are those of the definition: all sets of columns, one by one."""

import math

import numpy as np
import pytest
from hypothesis import given

from dtrees.core.predict.contributions import (
    contributions,
    interventional_weights,
    prepare_trees,
    rule_of,
)
from dtrees.export.model_nodes import ModelNodes
from dtrees.typing import serial
from tests.export.examples import examples
from tests.export.subsets import Oracle, cells


def parts_of(model):
    view = ModelNodes.of(model)
    trees = [nodes.coded_tree for nodes in view.trees]
    return view, trees, [tree.value for tree in trees]


def found(model, rows, **options):
    view, trees, values = parts_of(model)
    table = view.book.check(rows)
    if options.get("background") is not None:
        options["background"] = view.book.check(options["background"])
    ready = prepare_trees(trees, values, view.book, serial)
    return contributions(ready, view.book, table, serial, n_outputs=view.n_outputs, **options)


@given(examples())
def test_path_dependent_values_are_those_of_all_subsets(example):
    rows = example.rows[:3]
    phi, pairs = found(example.model, rows)
    assert pairs is None
    oracle = Oracle(example.model)
    expected = [oracle.shap(row, rows.shape[1]) for row in cells(rows)]
    np.testing.assert_allclose(phi, expected, rtol=1e-9, atol=1e-12)


@given(examples())
def test_interactions_are_those_of_all_subsets(example):
    rows = example.rows[:2]
    phi, pairs = found(example.model, rows, interactions=True)
    oracle = Oracle(example.model)
    expected = [oracle.interactions(row, rows.shape[1]) for row in cells(rows)]
    np.testing.assert_allclose(pairs, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pairs.sum(axis=2), phi, rtol=1e-9, atol=1e-12)


@given(examples())
def test_interventional_values_are_those_of_all_subsets(example):
    rows, background = example.rows[:2], example.X[:3]
    phi, _ = found(example.model, rows, background=background)
    oracle = Oracle(example.model)
    expected = [oracle.shap(row, rows.shape[1], cells(background)) for row in cells(rows)]
    np.testing.assert_allclose(phi, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_columns", [1, 2, 7, 30, 301])
def test_the_rule_integrates_powers(n_columns):
    points, weights = rule_of(n_columns)
    for power in {0, (n_columns - 1) // 2, n_columns - 1}:
        assert (weights * points**power).sum() == pytest.approx(1 / (power + 1), rel=1e-12)


def test_weights_of_interventional_values():
    weights = interventional_weights(4)
    for i in range(4):
        for j in range(4):
            expected = math.factorial(i) * math.factorial(j) / math.factorial(i + j + 1)
            assert weights[i, j] == pytest.approx(expected, rel=1e-12)
