"""Models of several training sets of one table, and what they say of its rows.

What models say is read from the codes that are there. Codes that are on workers are passed once for
all rows that are announced (`FittedSets.bring`).

Models are cut out of fitted ones: what a fit with narrower limits learns, without its fit. What a
fit learns beside its trees does not depend on where the trees end, nor on how many they are.
So the fitted model holds all that a smaller one needs, and no table and no codes are asked for::

    fitted model ──cut──▶ trees, the columns that they test
        │                              │
        └── labels, names, codebook ───┴──▶ another estimator, fitted
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.coding.target import Target
from dtrees.core.model.pruning import PruningLimits
from dtrees.core.model.tree import Forest, Tree, mean_of_sums
from dtrees.core.predict.binned import LeafLookup
from dtrees.core.predict.intervals import spread_in_nodes
from dtrees.core.predict.out_of_bag import TREES_AT_A_PASS, SumsOfTrees, Votes
from dtrees.estimators.base import BaseModel
from dtrees.estimators.tree_view import TreeView, columns_tested, read_only
from dtrees.parallel import threaded
from dtrees.typing import serial

ROOT = PruningLimits(max_depth=0)
# Of what is learned at times.
KEPT = {"feature_names_in_", "target_names_in_", "_date_orders", "_fit_bags", "_fit_rows"}
KEPT |= {"_curves", "_oob_before", "_has_offset", "init_"}

# trees that rows go down, and what sums of their values begin with; None: leaves are asked for
Walks = Sequence[tuple[Sequence[Tree], float | None]]


@dataclass(frozen=True, eq=False)
class FittedSets:
    """Models of several training sets."""

    models: list[Any]  # a fitted estimator for each set, or the error that its fit would raise
    book: CodeBook  # of the table
    target: Target  # of all rows; knows the classes
    coded_rows: LeafLookup  # the table, ready to be walked
    y: Any  # numbers of classes, unsigned, or the target as given; (n_rows,), or a `LazyColumn`
    n_live: np.ndarray  # rows of positive weight in each set, int64 (n_sets,)
    _known: dict[int, tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, init=False, repr=False
    )

    _values: dict[int, tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, init=False, repr=False
    )

    def leaves(self, number: int, rows: np.ndarray, keeps: bool = True) -> np.ndarray:
        """Leaves of some rows in the tree of a set; `keeps`: they are at hand when asked again."""
        if self._has_leaves(number, rows):
            return self._known[number][1]
        found = self.coded_rows.leaves(trees_of(self.models[number])[0], rows)
        if keeps:
            self._known[number] = rows, found
        return found

    def values(self, number: int, rows: np.ndarray) -> np.ndarray:
        """What a model says of rows, int64 (n,): float64 (n, n_classes), or (n, 1) for regression.

        What was asked last of a model is at hand, where codes are on workers and of numbers; so are
        leaves of one tree.
        """
        known = self._values.get(number)
        if known is not None and np.array_equal(known[0], rows):
            return known[1]
        if self._has_leaves(number, rows):
            return trees_of(self.models[number])[0].value_of(self._known[number][1])
        found = self.values_of(self.models[number], rows)
        if self.target.classes is None or not self.coded_rows.is_here:
            self._values[number] = rows, found
        return found

    def values_of(self, model: Any, rows: np.ndarray) -> np.ndarray:
        """What any model that was grown from these codes says of rows, as `values`."""
        trees = trees_of(model)
        if len(trees) == 1:
            return trees[0].value_of(self.coded_rows.leaves(trees[0], rows))
        total = self.coded_rows.sums(trees, rows, threaded(model.n_jobs))
        return mean_of_sums(total, len(trees), [tree.offset for tree in trees])

    def spreads_of(self, sides: Sequence[tuple[Any, np.ndarray]]) -> list[np.ndarray]:
        """How sure trees or forests of numbers, grown from these codes, are of some rows each.

        float64 (n,) or (n, n_outputs) for each model, as ``spread`` of its predictor.
        """
        if not hasattr(sides[0][0], "forest_"):
            self.coded_rows.bring([(trees_of(model), rows) for model, rows in sides])
            return [
                spread_in_nodes(tree).take(self.coded_rows.leaves(tree, rows), axis=0)
                for model, rows in sides
                for tree in trees_of(model)
            ]
        sums = [SumsOfTrees(self.target, len(rows)) for _, rows in sides]

        def add(total: SumsOfTrees, trees: Sequence[Tree], rows: np.ndarray) -> None:
            for tree in trees:
                total.add(tree, Votes(np.arange(len(rows)), self.coded_rows.leaves(tree, rows)))

        run = threaded(sides[0][0].n_jobs) if self.coded_rows.is_here else serial
        for first in range(0, max(len(trees_of(model)) for model, _ in sides), TREES_AT_A_PASS):
            asked = [(trees_of(m)[first : first + TREES_AT_A_PASS], rows) for m, rows in sides]
            self.coded_rows.bring([one for one in asked if one[0]])
            run([partial(add, total, *one) for total, one in zip(sums, asked, strict=True)])
        if self.target.n_outputs == 1:
            return [total.spread() for total in sums]
        outputs = range(self.target.n_outputs)
        return [np.stack([total.spread(k) for k in outputs], axis=1) for total in sums]

    def walks(self, model: Any) -> Walks:
        """What is to be known of rows for what a model says of them."""
        trees = trees_of(model)
        return [(trees, 0.0 if len(trees) > 1 else None)]

    def bring(self, asked: Iterable[tuple[Walks, np.ndarray]]) -> None:
        """Get ready what is to be known of rows, in a pass over codes that are on workers."""
        if self.coded_rows.is_here:
            return
        each = [((trees, rows), start) for walks, rows in asked for trees, start in walks]
        self.coded_rows.bring([one for one, _ in each], [start for _, start in each])

    def bring_values(self, sides: Iterable[tuple[int, np.ndarray]]) -> None:
        """Get ready what `values` reads: sets, whose models are there, and rows of each."""
        self.bring((self.walks(self.models[number]), rows) for number, rows in sides)

    def alone(self, number: int, has_trees: bool) -> Self:
        """The model of a set without the table; without `has_trees` with no more than their roots.

        To be sent to where there are answers of its trees, and `y`.
        """
        model, about = self.models[number], self.target
        trees: Sequence[Tree] = trees_of(model)
        if not has_trees:
            trees = [ROOT.prune(tree) for tree in trees]
        own = model_of_trees(model, model, trees)
        own.n_jobs = 1
        book = self.book.without_values()
        if not hasattr(own, "forest_"):
            own.tree_ = TreeView(own.tree_.model, book, own.tree_.saw_missing)
        return replace(
            self,
            models=[own],
            book=book,
            target=about.sample,
            coded_rows=LeafLookup(),
            y=np.empty(0),
            n_live=self.n_live[number : number + 1],
        )

    def _has_leaves(self, number: int, rows: np.ndarray) -> bool:
        known = self._known.get(number)
        return known is not None and np.array_equal(known[0], rows)


def trees_of(model: Any) -> tuple[Tree, ...]:
    """The trees of a fitted estimator."""
    return model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)


def model_of_trees(estimator: BaseModel, fitted: Any, trees: Sequence[Tree]) -> Any:
    """An estimator, fitted: with what another one has learned, and trees cut out of its trees.

    `fitted` is of the same class, with the same parameters but for those that say where a tree
    ends, and how many there are. `trees` stand inside its first ones. O(nodes). The same as the
    fit of `estimator`, without out-of-bag scores; ``fit_report_`` is that of `fitted`.
    """
    made = estimator._unfitted()
    of_others = estimator._learns_at_times - KEPT | {"_estimators"}
    learned = {
        name: value
        for name, value in vars(fitted).items()
        if name not in estimator._constraints and name not in of_others
    }
    made.__dict__.update(learned)
    tested = columns_tested(trees, fitted.n_features_in_)
    if hasattr(fitted, "forest_"):
        made.forest_ = Forest(tuple(trees))
        made._saw_missing = read_only(fitted._saw_missing & tested)
    else:
        view: TreeView = fitted.tree_
        (tree,) = trees
        made.tree_ = TreeView(tree, view.codebook, read_only(view.saw_missing & tested))
    return made
