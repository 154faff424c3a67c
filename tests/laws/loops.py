"""Loops over `fit(X[train], y[train])`, beside the cross-validation that they stand for."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from dtrees.core.data.criteria import CRITERIA
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import scale_of, scale_of_sums
from dtrees.core.model.tree import Tree, total_of
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.training_sets import fit_sets
from tests.laws.tables import fill_column, hash_of

FACTS = (
    *("children_left", "children_right", "feature", "missing_go_to_left"),
    *("n_node_samples", "weighted_n_node_samples", "impurity", "value"),
)


@dataclass
class Loop:
    """A model, a table, and the sides of a cross-validation."""

    model: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    splits: list[tuple[np.ndarray, np.ndarray]]

    def __post_init__(self) -> None:
        every = np.arange(len(self.y))
        self.sides = [*self.splits, (every, every)]  # the last one has all rows
        self.plan = FitPlan.of(self.model)

    def is_exact(self) -> bool:
        """Whether each side has some weight, all values of y, and logarithms in one unit."""
        values = set(self.y)
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        for train, _ in self.sides:
            if not (values <= set(self.y[train]) and (weight * self.y)[train].any()):
                return False
        units = {
            self.plan.estimator._encode_target(self.y[rows], weight[rows]).y_exponent
            for rows, _ in self.sides
        }
        return self.plan.criterion != "poisson" or len(units) == 1

    def fits(self) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """What the loop fits, and its two sides."""
        for train, test in self.sides:
            X = _safe_indexing(self.X, train)
            weight = None if self.weight is None else self.weight[train]
            yield clone(self.model).fit(X, self.y[train], weight), train, test

    def models(self) -> list[Any]:
        """The same from one growth."""
        rows = np.zeros((len(self.sides), len(self.y)), dtype=bool)
        for mine, (train, _) in zip(rows, self.sides, strict=True):
            mine[train] = True
        return fit_sets(self.model, self.X, self.y, self.weight, rows).models

    def is_known(self, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Rows whose categories in hybrid columns the training side has.

        A model of a cross-validation knows the others, too: they fail every test of such a column.
        """
        known = np.ones(len(test), dtype=bool)
        for name in self.X if isinstance(self.X, pd.DataFrame) else []:
            column = self.X[name]
            if {str, float} <= set(map(type, column.dropna())):
                known &= column.iloc[test].isin(column.iloc[train]).to_numpy()
        return known

    def unit(self, train: np.ndarray, tree: Tree) -> tuple:
        """Sides of the same one count in the same integers, in a tree."""
        weight = np.zeros(len(self.y))
        weight[train] = 1.0 if self.weight is None else self.weight[train]
        target, criterion = self.plan.estimator._encode_target(self.y, weight), self.plan.criterion
        found = target.units
        if criterion == "entropy" and target.class_multiplier is None:
            total = int(total_of(tree.statistics[:1], criterion)[0])
            found = (*found, scale_of_sums(total, 1, target.weight_unit, criterion).fixed_point)
        if criterion == "poisson":  # the largest y of the rows in a bag decides, which nobody keeps
            scale = scale_of(target, GrowthRules(criterion=criterion))
            bag = len(train) if getattr(self.model, "bootstrap", False) else 0
            found = (*found, scale.fixed_point, bag)
        if target.means is not None:  # how often a row is drawn depends on all weights of its side
            found = (*found, train.tobytes())
        return found


def check(loop: Loop, grown: list) -> Counter:
    """Models are those of the loop; nodes that two of them have in common were shared, no others.

    ``grown`` is of `staying_together`. Returns what it counts.
    """
    grown.clear()
    models, work = loop.models(), Counter()
    for sets in grown:
        work.update(shared=sets.n_shared_nodes, bounded=sets.n_bounded)
    common, met = Counter(), Counter()
    for model, (alone, train, test) in zip(models, loop.fits(), strict=True):
        assert_same(model, alone)
        X = _safe_indexing(loop.X, np.concatenate([train, test[loop.is_known(train, test)]]))
        np.testing.assert_array_equal(model.apply(X), alone.apply(X))
        for number, tree in enumerate(trees_of(alone)):
            unit = loop.unit(train, tree.model)
            for branch, is_leaf in branches(tree):
                met[number, branch] += 1
                common[number, branch, unit] += not is_leaf
    nodes = {key[:2] for key, n in common.items() if n > 1}
    if not CRITERIA[loop.plan.criterion].has_sums:  # medians: each model grows on its own
        nodes, met = set(), Counter()
    assert len(nodes) <= work["shared"]
    assert work["shared"] <= sum(n // 2 for n in met.values())
    return work


def trees_of(model: Any) -> list[Any]:
    return [each.tree_ for each in getattr(model, "estimators_", [model])]


def assert_same(model: Any, alone: Any) -> None:
    """The same trees, bit for bit, but for the numbers of codes."""
    for tree, other in zip(trees_of(model), trees_of(alone), strict=True):
        for name in FACTS:
            np.testing.assert_array_equal(getattr(tree, name), getattr(other, name), err_msg=name)
        for name in ("threshold", "gain"):
            np.testing.assert_array_equal(getattr(tree.model, name), getattr(other.model, name))


def branches(tree: Any) -> Iterator[tuple[tuple, bool]]:
    """Columns and sides from the root to each node, and whether it is a leaf.

    Sets whose tests are on one column go on together.
    """
    above: list[tuple[int, tuple]] = [(0, ())]
    while above:
        node, branch = above.pop()
        is_leaf = tree.children_left[node] < 0
        yield branch, is_leaf
        for side in () if is_leaf else (tree.children_left, tree.children_right):
            above.append((side[node], (*branch, tree.feature[node], side is tree.children_left)))


def table_of(kinds: list[str], n_rows: int, seed: int) -> pd.DataFrame:
    """Numbers as floats; categories, and columns that have some, as objects."""
    rng = random.Random(seed)
    found = {}
    for j, kind in enumerate(kinds):
        column = fill_column(kind, n_rows, rng, 9, rng.choice([0.0, 0.0, 0.2]))
        is_mixed = any(isinstance(value, str) for value in column)
        found[f"x{j}"] = pd.Series(column, dtype=object if is_mixed else float)
    return pd.DataFrame(found)


def target_of(X: pd.DataFrame, n_values: int, rng: np.random.Generator) -> np.ndarray:
    """0, 1, ..., which depend on two columns, and on noise."""
    ends = X.astype(object).where(X.notna(), None)[[X.columns[0], X.columns[-1]]]
    signal = np.array([hash_of(a) + hash_of(b) for a, b in ends.to_numpy()])
    noise = rng.integers(0, n_values, len(signal))
    return np.where(rng.random(len(signal)) < 0.4, noise, signal % n_values)


def sparse(X: pd.DataFrame, rng: np.random.Generator) -> sp.csr_array | sp.csc_array:
    """A sparse matrix that stores half of the cells, a tenth of them as zeros."""
    rows, columns = np.nonzero(rng.random(X.shape) < 0.5)
    values = X.to_numpy(float)[rows, columns]
    values[rng.random(len(values)) < 0.1] = 0.0
    found = sp.coo_array((values, (rows, columns)), shape=X.shape)
    return found.tocsr() if rng.random() < 0.5 else found.tocsc()
