"""SHAP values are those of the definition: all sets of columns, one by one."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given

from dtrees.core.predict.contributions import contributions, parting_weights, rule_of
from dtrees.export.model_nodes import ModelNodes
from dtrees.typing import serial
from tests.export.examples import examples, passes


def parts_of(model):
    view = ModelNodes.of(model)
    trees = [nodes.grown for nodes in view.trees]
    return view, trees, [tree.value for tree in trees]


def found(model, rows, **options):
    view, trees, values = parts_of(model)
    table = view.book.check(rows)
    if options.get("background") is not None:
        options["background"] = view.book.check(options["background"])
    return contributions(
        trees, values, view.book, table, serial, n_outputs=view.n_outputs, **options
    )


class Oracle:
    """Payouts of sets of columns, by the words of nodes."""

    def __init__(self, model):
        self.view = ModelNodes.of(model)
        self.trees = [list(self.view.of_tree(t)) for t in range(len(self.view.trees))]
        self.known = {j: set(c.tolist()) for j, c in self.view.book.categories.items()}

    def passes(self, node, row):
        return passes(node, row[node.column], self.known.get(node.column, ()))

    def payout(self, row, columns, other=None):
        """Of a set of columns that are the row's; the others are of another row, or not known."""
        total = np.zeros(self.view.n_outputs)
        for nodes in self.trees:
            value = self.expected(nodes, nodes[0], row, columns, other)
            if nodes[0].output is None:
                total += value
            else:
                total[nodes[0].output] += value[0]
        return total

    def expected(self, nodes, node, row, columns, other):
        if node.is_leaf:
            return node.value
        if node.column in columns or other is not None:
            passed = self.passes(node, row if node.column in columns else other)
            below = nodes[node.left if passed else node.right]
            return self.expected(nodes, below, row, columns, other)
        sides = [nodes[node.left], nodes[node.right]]
        return sum(
            side.weight * self.expected(nodes, side, row, columns, other) for side in sides
        ) / sum(side.weight for side in sides)

    def shap(self, row, n_columns, others=(None,)):
        phi = np.zeros((n_columns, self.view.n_outputs))
        for other in others:
            worth = {
                s: self.payout(row, s, other)
                for k in range(n_columns + 1)
                for s in combinations(range(n_columns), k)
            }
            for s in worth:
                for i in set(range(n_columns)) - set(s):
                    share = math.factorial(len(s)) * math.factorial(n_columns - len(s) - 1)
                    more = worth[tuple(sorted((*s, i)))] - worth[s]
                    phi[i] += share / math.factorial(n_columns) * more
        return phi / len(others)

    def interactions(self, row, n):
        found = np.zeros((n, n, self.view.n_outputs))
        for i, j in combinations(range(n), 2):
            rest = [k for k in range(n) if k not in (i, j)]
            for size in range(len(rest) + 1):
                share = math.factorial(size) * math.factorial(n - size - 2)
                share /= 2 * math.factorial(n - 1)
                for s in combinations(rest, size):
                    both = self.payout(row, {*s, i, j}) - self.payout(row, {*s, i})
                    both += self.payout(row, set(s)) - self.payout(row, {*s, j})
                    found[i, j] += share * both
            found[j, i] = found[i, j]
        diagonal = np.arange(n)
        found[diagonal, diagonal] = self.shap(row, n) - found.sum(axis=1)
        return found


def cells(rows):
    return list(rows.itertuples(index=False))


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


def test_weights_of_parting():
    weights = parting_weights(4)
    for i in range(5):
        assert weights[i, 0] == 0
        for j in range(1, 5):
            expected = math.factorial(i) * math.factorial(j - 1) / math.factorial(i + j)
            assert weights[i, j] == pytest.approx(expected, rel=1e-12)
