"""The models of one growth's candidates, for each training set.

A cell is a candidate and a training set. Its model is cut out of what has grown for the set when
somebody looks at it. What it says of held-out rows is read from the leaves of the large trees, to
which the rows have walked once::

    row ──walks──▶ leaf of the large tree ──the branch it is in──▶ leaf of the nested tree

Many cells of a grid are the same tree: no node is between their limits. Those are found without
cutting one of them, and scored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtrees._forks import cached_property
from dtrees.core.model.nested_trees import PruningGrid, sums_over_leaves
from dtrees.core.model.pruning import PruningLimits
from dtrees.core.model.tree import Tree
from dtrees.core.predict.means import mean_of_sums
from dtrees.estimators.fitted_sets import FittedSets, trees_of
from dtrees.estimators.nested_trees import model_of_trees
from dtrees.model_selection.candidates import Growth
from dtrees.model_selection.prefitted_proxy import RowNumbers


@dataclass
class _Walked:
    """Rows and their leaves in the trees of a set, and what the first trees have said of them."""

    rows: np.ndarray
    leaves: list[np.ndarray] = field(default_factory=list)
    limits: PruningLimits | None = None
    n_trees: int = 0
    total: Any = 0.0


class Cells:
    """The models of candidates, for the training sets of a growth.

    `limits` say where the trees of every candidate end, in any set; None: `growth` is asked.
    """

    def __init__(
        self, growth: Growth, fitted: FittedSets, limits: PruningGrid | None = None
    ) -> None:
        self.growth, self.fitted = growth, fitted
        self._has_shares = limits is None and growth.has_shares()
        self._limits: dict[int, PruningGrid] = {} if limits is None else {0: limits}
        self._walked: dict[int, list[_Walked]] = {}
        self._brought: set[int] = set()  # whose rows will be asked about first

    @cached_property
    def _n_trees(self) -> list[int | None]:
        return self.growth.n_trees()

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes; None for regression."""
        return self.fitted.classes

    def error(self, number: int) -> Exception | None:
        """Why there is no model of a set."""
        model = self.fitted.models[number]
        return model if isinstance(model, Exception) else None

    def limits(self, number: int) -> PruningGrid:
        """Where the trees of every candidate end, in a set."""
        n_rows = int(self.fitted.n_live[number]) if self._has_shares else 0
        if n_rows not in self._limits:
            self._limits[n_rows] = self.growth.limits(n_rows)
        return self._limits[n_rows]

    def trees(self, number: int) -> tuple[Tree, ...]:
        """What has grown for a set."""
        return trees_of(self.fitted.models[number])

    def model(self, candidate: int, number: int) -> Any:
        """The fitted estimator of a cell."""
        if self.growth.is_whole:
            return self.fitted.models[number]
        n_trees = self._n_trees[candidate]
        trees = tuple(map(self.limits(number)[candidate].prune, self.trees(number)[:n_trees]))
        estimator = self.growth.estimator_of(candidate)
        return model_of_trees(estimator, self.fitted.models[number], trees)

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the model of a cell says of rows: float64 (n, n_classes) or (n, 1).

        `rows` are numbers, int64 (n,). The same rows walk once, however often they are asked for.
        """
        if self.growth.is_whole:
            return self.fitted.values(number, rows)
        limits, walked = self.limits(number)[candidate], self._walked_rows(number, rows)
        trees = self.trees(number)
        n_trees = self._n_trees[candidate] or 1
        if limits != walked.limits or walked.n_trees > n_trees:
            walked.limits, walked.n_trees, walked.total = limits, 0, 0.0
        for place in range(walked.n_trees, n_trees):
            if place == len(walked.leaves):
                walked.leaves.append(self.fitted.coded_rows.leaves(trees[place], walked.rows))
            nested, leaves = limits.cut_and_leaves(trees[place], walked.leaves[place])
            with np.errstate(over="ignore", invalid="ignore"):
                walked.total = walked.total + nested.value_of(leaves)
        walked.n_trees = n_trees
        if n_trees == 1:
            return walked.total
        offsets = [tree.offset for tree in trees[:n_trees]]
        return mean_of_sums(walked.total, n_trees, offsets)

    def spreads(
        self, models: Sequence[Any], sides: Sequence[tuple[int, np.ndarray]]
    ) -> list[np.ndarray]:
        """How sure trees or forests of numbers, one of each set, are of rows; float64 (n,) each."""
        return self.fitted.spreads_of([(models[number], rows) for number, rows in sides])

    def scores(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """Trees and forests have no ``decision_function``."""
        raise NotImplementedError

    def distinct(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Candidates whose models are the same trees, in a set.

        A tree is known by its leaves. With two random numbers for every node, 128 bits, equal sums
        over leaves are equal leaves. Costs for every tree what `sums_over_leaves` does.

        Returns the first candidate of each model, int64 (n_distinct,), ascending; and the place of
        each candidate's model among them, int64 (n_candidates,).
        """
        n_candidates = len(self.growth.places)
        if n_candidates == 1:
            return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        n_trees = np.array([n or 1 for n in self._n_trees])
        limits, rng = self.limits(number), np.random.default_rng(0)
        keys = np.zeros((n_candidates, 2), dtype=np.int64)
        for place, tree in enumerate(self.trees(number)):
            has = n_trees > place
            values = rng.integers(-(2**63), 2**63 - 1, (tree.node_count, 2))
            keys[has] += sums_over_leaves(tree, values, limits)[has]  # modulo 2**64
        _, first, place_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return first[order], np.argsort(order)[place_of.ravel()]

    def bring(self, rows: RowNumbers, with_train: bool) -> None:
        """Let rows walk that models will be asked about, where the codes are on workers.

        All at once, but for leaves of train sides in all trees, which would be many at a time.
        """
        if self.fitted.coded_rows.is_here:
            return
        sides = rows.sides(with_train and self.growth.is_whole)
        known = [(number, side) for number, side in sides if self.error(number) is None]
        if self.growth.is_whole:
            self.fitted.bring_values(known)
        else:
            self.fitted.bring_leaves(dict(known), keeps=False)
            self._brought |= {number for number, _ in known}

    def _walked_rows(self, number: int, rows: np.ndarray) -> _Walked:
        known = self._walked.setdefault(number, [])
        for walked in known:
            if np.array_equal(walked.rows, rows):
                return walked
        known.append(_Walked(rows.copy()))
        if number not in self._brought:
            self.fitted.bring_leaves({number: known[-1].rows}, keeps=False)
        self._brought.discard(number)
        return known[-1]
