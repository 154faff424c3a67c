"""Trees that stay when a forest is fitted again (``warm_start``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees._warnings import warn
from dtrees.coding.codebook import CodeBook
from dtrees.core.membership.resampling import Bags
from dtrees.core.model.tree import Tree
from dtrees.core.predict.raw import leaves_by_tree
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.training import Encoded
from dtrees.parallel import LocalRunner, PartitionedTable, computed


@dataclass(frozen=True, eq=False)
class Kept:
    """Trees that are there before a fit, and stay."""

    trees: tuple[Tree, ...] = ()
    leaves: Callable[[], Iterator[np.ndarray]] = lambda: iter(())  # of all rows, by tree
    earlier: tuple[Tree, ...] = ()  # of this fit, behind `trees`, as if grown now


def kept_trees(forest: Any, plan: FitPlan) -> tuple[tuple[Tree, ...], int]:
    """The trees that are there and stay, and the seed of the forest."""
    if not (forest.warm_start and hasattr(forest, "forest_")):
        return (), plan.seed()
    kept = forest.forest_.trees
    if forest.n_estimators < len(kept):
        raise ValueError(
            f"n_estimators={forest.n_estimators} must be larger or equal to "
            f"len(estimators_)={len(kept)} when warm_start==True"
        )
    if forest.n_estimators == len(kept):
        warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
    return kept, forest._fit_seed


def has_same_columns(old: CodeBook, new: CodeBook) -> bool:
    """Whether trees of one book can be kept beside those of another.

    Trees name columns and categories by number. A category's number follows those of the numbers in
    its column, so a hybrid column needs as many of these. Other columns may have other numbers, as
    trees compare values with thresholds.
    """
    return (
        old.n_columns == new.n_columns
        and old.categories.keys() == new.categories.keys()
        and all(
            np.array_equal(old.categories[column], new.categories[column])
            and old.n_ordered[column] == new.n_ordered[column]
            for column in old.categories
        )
    )


def check_same_labels(forest: Any, encoded: Encoded) -> None:
    """Refuse other labels: trees that are kept name columns, categories and classes by number."""
    classes = getattr(forest, "classes_", None)
    same = classes is None or np.array_equal(classes, np.asarray(encoded.target.classes))
    if not (same and has_same_columns(forest.codebook_, encoded.book)):
        raise ValueError(
            "warm_start=True keeps the trees that are there, so X must have the columns and "
            "categories of the first fit and y its classes. Set warm_start=False to begin anew."
        )


def check_same_bags(forest: Any, bags: Bags | None) -> None:
    """Refuse out-of-bag scores where bags of trees that are kept were drawn otherwise."""
    if not forest.oob_score and forest.oob_tol is None:
        return
    if bags is None or getattr(forest, "_fit_bags", None) != bags.digest():
        raise ValueError(
            "warm_start=True keeps trees whose bags were drawn otherwise, so it is not known "
            "which rows are out of them. For out-of-bag scores keep bootstrap, max_samples, "
            "bootstrap_groups and the number of rows as they were, or set warm_start=False."
        )


def leaves_of(
    forest: Any, trees: Sequence[Tree], book: CodeBook, X: Any, run: LocalRunner
) -> Iterator[np.ndarray]:
    """Leaves of all rows in each of the trees that are there.

    The rows walk by their values, as the codes of these trees are those of another coding.
    """
    if not trees:
        return
    if isinstance(X, PartitionedTable):
        (leaves,) = computed(forest.apply(X.collection))
        yield from np.asarray(leaves).T
        return
    table = book.check(X, estimator=type(forest).__name__, run=run)
    yield from leaves_by_tree(trees, book, table, run)
