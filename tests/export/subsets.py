"""SHAP values by their definition: all sets of columns, one by one, by the words of nodes."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from dtrees.export.model_nodes import ModelNodes
from tests.export.examples import passes


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
    """The rows of a data frame, as an oracle takes them."""
    return list(rows.itertuples(index=False))
