"""Models cut out of fitted ones: what a fit with narrower limits learns, without its fit.

What a fit learns beside its trees does not depend on where the trees end, nor on how many they are.
So the fitted model holds all that a smaller one needs, and no table and no codes are asked for::

    fitted model ──cut──▶ trees, the columns that they test
        │                              │
        └── labels, names, codebook ───┴──▶ another estimator, fitted
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtrees.core.model.tree import Forest, Tree
from dtrees.estimators.base import BaseTrees
from dtrees.estimators.growing_forest import OF_SOME_FITS
from dtrees.estimators.tree_view import TreeView, columns_tested, read_only

OF_OTHER_TREES = frozenset(OF_SOME_FITS) - {"feature_names_in_"}


def model_of_trees(estimator: BaseTrees, fitted: Any, trees: Sequence[Tree]) -> Any:
    """An estimator, fitted: with what another one has learned, and trees cut out of its trees.

    `fitted` is of the same class, with the same parameters but for those that say where a tree
    ends, and how many there are. `trees` stand inside its first ones. O(nodes). The same as the
    fit of `estimator`, without out-of-bag scores; ``fit_report_`` is that of `fitted`.
    """
    made = estimator._unfitted()
    learned = {
        name: value
        for name, value in vars(fitted).items()
        if name not in estimator._constraints and name not in OF_OTHER_TREES
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
