"""Cost-complexity pruning by cross-validation, as CART does it.

Breiman, Friedman, Olshen and Stone (1984), 3.4: the tree of all rows is pruned at its weakest links
(`dtrees.core.pruning`), which gives a sequence of trees, each the best of its size. How good they
are is told by the trees of the folds, pruned with an alpha in the middle of the interval in which a
tree of the sequence is the best::

    alphas of the final tree      0 .... a1 ....... a2 ......... a3
    pruned in the folds with      0   sqrt(a1 a2)  sqrt(a2 a3)   inf
    errors of held-out rows       E0      E1          E2         E3

Of these the one of least error is the best, and the *one-standard-error tree* is the smallest whose
error is at most a standard error above it. All of it comes from one growth: the trees of the folds
and of all rows grow together, and a pruned tree is a sum over its leaves (`dtrees.core.smaller`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import indexable

from dtrees.core import pruning
from dtrees.core.smaller import sums_over_alphas
from dtrees.estimators.base import BaseDecisionTree
from dtrees.estimators.sets import FittedSets, TrainingTable, fit_table, trees_of
from dtrees.model_selection.leaf_scores import errors_of_alphas, held_out_of
from dtrees.model_selection.ours import in_memory, splits_of, why_not, why_not_splits
from dtrees.model_selection.stand_in import Split, training_sets
from dtrees.parallel import admitted, threaded

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class CostComplexity:
    """The cost-complexity path of a tree, with cross-validated errors.

    Attributes
    ----------
    ccp_alphas : float64 array of shape (n_steps,)
        Ascending from 0: from each of them on the tree of all rows is the next smaller one.
    n_leaves : int64 array of shape (n_steps,)
        Of that tree.
    fold_alphas : float64 array of shape (n_steps,)
        What the trees of the folds are pruned with.
    errors : float64 array of shape (n_steps,)
        Share of held-out rows that are misclassified, or mean of their squared errors.
    standard_errors : float64 array of shape (n_steps,)
        Of the errors, over held-out rows.
    best_index, one_standard_error_index : int
        Steps.
    """

    ccp_alphas: np.ndarray
    n_leaves: np.ndarray
    fold_alphas: np.ndarray
    errors: np.ndarray
    standard_errors: np.ndarray
    best_index: int
    one_standard_error_index: int
    _estimator: Any = field(repr=False)
    _fitted: FittedSets = field(repr=False)

    @property
    def best_alpha(self) -> float:
        """Alpha of the least error; of equal errors, the largest."""
        return float(self.ccp_alphas[self.best_index])

    @property
    def one_standard_error_alpha(self) -> float:
        """The largest alpha whose error is at most a standard error above the least."""
        return float(self.ccp_alphas[self.one_standard_error_index])

    def model(self, ccp_alpha: float) -> Any:
        """The estimator with that ``ccp_alpha``, fitted to all rows; it is cut out, not grown.

        Parameters
        ----------
        ccp_alpha : float
            Not negative.
        """
        estimator = clone(self._estimator).set_params(ccp_alpha=ccp_alpha)
        estimator._check_parameters()
        tree = pruning.ccp(trees_of(self._fitted.models[-1])[0], ccp_alpha)
        return estimator._model_of(self._fitted.encoded, tree)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the errors with their standard errors over the number of leaves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure.

        Raises
        ------
        ImportError
            matplotlib is not there.
        """
        from dtrees.model_selection.plots import plot_cost_complexity

        return plot_cost_complexity(self, ax)


def cost_complexity_cv(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 10,
    groups: Any = None,
    params: Mapping[str, Any] | None = None,
) -> CostComplexity:
    """Cross-validate every step of minimal cost-complexity pruning.

    Parameters
    ----------
    estimator : DecisionTreeClassifier or DecisionTreeRegressor
        Its ``ccp_alpha`` is not looked at.
    X : table of shape (n_rows, n_columns)
        Anything that the estimator takes.
    y : array-like of shape (n_rows,)
        The target.
    cv : int, cross-validation generator or iterable of (train, test), default=10
        Folds, stratified for classifiers, or any splits.
    groups : array-like of shape (n_rows,), default=None
        For the splitter.
    params : dict, default=None
        For the estimator's ``fit``: ``sample_weight``. Held-out rows count once.

    Returns
    -------
    path : CostComplexity

    Raises
    ------
    TypeError
        `estimator` is no tree of dtrees, or its models cannot be grown together.
    ValueError
        The fits fail, or no row is held out.

    Notes
    -----
    Costs the cross-validation of the whole tree, and O(nodes log nodes) for each training side.
    After Breiman, Friedman, Olshen and Stone, *Classification and Regression Trees*, 1984, 3.4 and
    8.5.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import cost_complexity_cv
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = cost_complexity_cv(DecisionTreeClassifier(random_state=0), X, y)
    >>> tree = path.model(path.one_standard_error_alpha)
    >>> bool(tree.get_n_leaves() == path.n_leaves[path.one_standard_error_index])
    True
    """
    reason = why_not(estimator, y, params or ())
    if reason is None and not isinstance(estimator, BaseDecisionTree):
        reason = "it is of a single tree"
    y, groups, params = in_memory(y, groups, params)
    X, y = indexable(*admitted(X, {"y": y}))
    splits = splits_of(estimator, X, y, cv, groups)
    reason = reason or why_not_splits(splits, len(y))
    if reason is not None:
        raise TypeError(f"cost_complexity_cv: {reason}.")
    whole = clone(estimator).set_params(ccp_alpha=0.0)
    table = TrainingTable(X, y, (params or {}).get("sample_weight"))
    fitted = fit_table(whole, table, training_sets(splits, len(y)))
    for model in fitted.models:
        if isinstance(model, Exception):
            raise model
    return path_of(whole, fitted, splits)


def path_of(whole: Any, fitted: FittedSets, splits: Sequence[Split]) -> CostComplexity:
    """The path of trees that have grown.

    Parameters
    ----------
    whole : tree
        With ``ccp_alpha=0``.
    fitted : FittedSets
        Of `whole`: the training sides of the splits, and all rows.
    splits : sequence of (train, test)
    """
    final = trees_of(fitted.models[-1])[0]
    alphas = np.unique(pruning.cost_complexity_path(final)[0])
    alphas = alphas[alphas >= 0]
    of_folds = np.append(np.sqrt(alphas[:-1] * alphas[1:]), np.inf)
    of_folds[0] = 0.0 if len(alphas) > 1 else np.inf
    row_numbers = np.arange(len(fitted.y))
    sides = [row_numbers[test] for _, test in splits]

    def errors_of(number: int) -> tuple[np.ndarray, np.ndarray]:
        return errors_of_alphas(held_out_of(fitted, number, sides[number]), of_folds)

    run = threaded(whole.n_jobs)
    some = [number for number, rows in enumerate(sides) if len(rows) > 0]
    found = run([partial(errors_of, number) for number in some])
    n_rows = sum(map(len, sides))
    if n_rows == 0:
        raise ValueError("No row is held out: every test side is empty.")
    first, squares = (np.sum(sums, axis=0) for sums in zip(*found, strict=True))
    errors = first / n_rows
    standard_errors = np.sqrt(np.maximum(squares / n_rows - errors**2, 0) / n_rows)
    best = int(np.flatnonzero(errors == errors.min())[-1])
    simple = int(np.flatnonzero(errors <= errors[best] + standard_errors[best])[-1])
    ones = np.ones((final.node_count, 1), dtype=np.int64)
    n_leaves = sums_over_alphas(final, ones, alphas)[:, 0]
    n_leaves[alphas == 0] = final.n_leaves
    return CostComplexity(
        alphas, n_leaves, of_folds, errors, standard_errors, best, simple, whole, fitted
    )
