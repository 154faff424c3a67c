"""Held-out rows in the nodes of a tree: what they add up to there.

Sums over rows are known for every node once the rows have walked down the tree. They are exact:
losses and weights are added up in fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dtrees._forks import cached_property
from dtrees.core.model.nested_trees import sums_over_branches
from dtrees.core.model.tree import Tree
from dtrees.estimators.fitted_sets import FittedSets, trees_of

BITS = 60  # of sums in fixed point
BITS_OF_DOUBLE = 53


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A tree, and rows that it was not grown from."""

    tree: Tree
    leaves: np.ndarray  # intp (n_rows,)
    y: np.ndarray  # numbers of classes, int64, or the target, float64 (n_rows,)
    classes: np.ndarray | None  # labels; None for regression
    weight: np.ndarray | None = None  # float64 (n_rows,) above 0, exact in sums; None: 1

    @cached_property
    def values(self) -> np.ndarray:
        """Shares or means of all nodes."""
        return self.tree.value

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows of each class in every node, int64 (n_nodes, n_classes); or float64: weights."""
        shape = self.tree.node_count, self.tree.n_values
        cell = self.leaves * shape[1] + self.y
        counts = np.bincount(cell, self.weight, minlength=shape[0] * shape[1])
        if self.weight is None:
            counts = counts.astype(np.int64)
        return sums_over_branches(self.tree, counts.reshape(shape))

    @cached_property
    def said(self) -> np.ndarray:
        """The class that every node says; of equal shares the first."""
        found: np.ndarray = self.values.argmax(axis=1)
        return found

    @property
    def totals(self) -> np.ndarray:
        """Rows of each class, or their weight; (n_classes,)."""
        total: np.ndarray = self.counts[0]
        return total

    @cached_property
    def total(self) -> float:
        """Number of rows, or their weight."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    @cached_property
    def center(self) -> float:
        """What sums of squares are taken around: the mean of the rows."""
        return float(np.average(self.y, weights=self.weight))

    @cached_property
    def moments(self) -> np.ndarray:
        """Number, sum and sum of squares about `center`, in every node; float64 (n_nodes, 3)."""
        away = self.y - self.center
        return self.summed(np.column_stack([np.ones_like(away), away, away * away]))

    def summed(self, each: np.ndarray) -> np.ndarray:
        """What the rows of every node add up to; float64 (n_nodes, m) of (n_rows, m)."""
        columns = [self.summed_in_leaves(column) for column in each.T]
        return sums_over_branches(self.tree, np.column_stack(columns))

    def summed_in_leaves(self, each: np.ndarray) -> np.ndarray:
        """What the rows of every leaf add up to; float64 (n_nodes,) of (n_rows,)."""
        if self.weight is not None:
            each = each * self.weight
        return np.bincount(self.leaves, each, minlength=self.tree.node_count)


def held_out_of(
    fitted: FittedSets,
    number: int,
    rows: np.ndarray,
    weight: np.ndarray | None = None,
    keeps: bool = True,
) -> HeldOut:
    """The tree of a set, and some rows of the table; `keeps`: their leaves stay at hand."""
    tree = trees_of(fitted.models[number])[0]
    walk = partial(fitted.leaves, number) if keeps else partial(fitted.coded_rows.leaves, tree)
    leaves = walk(rows)
    return HeldOut(tree, leaves, fitted.y[rows], fitted.classes, weight)


def exact_in_sums(weight: np.ndarray) -> np.ndarray:
    """Weights in fixed point, so that a sum of them does not depend on its order."""
    _, exponent = np.frexp(weight.sum())
    whole = np.rint(np.ldexp(weight, BITS_OF_DOUBLE - exponent))
    fixed: np.ndarray = np.ldexp(whole, exponent - BITS_OF_DOUBLE)
    return fixed


def fixed_point(values: np.ndarray, bound: float | None = None) -> tuple[np.ndarray, float]:
    """Integers whose sums cannot overflow, and their unit.

    `bound` is what no value and no sum that is asked for exceeds; None: they are all added up.
    """
    if values.dtype.kind == "i":
        return values, 1.0
    if bound is None:
        bound = np.abs(values).sum(axis=0).max(initial=0)
    _, exponent = np.frexp(bound)
    scaled = np.rint(np.ldexp(values, BITS - exponent)).astype(np.int64)
    return scaled, float(np.ldexp(1.0, exponent - BITS))
