"""Cost-complexity pruning by cross-validation, as CART does it.

Breiman, Friedman, Olshen and Stone (1984), 3.4: the tree of all rows is pruned at its weakest links
(`dtrees.core.model.pruning`). That gives a sequence of trees, each the best of its size in an
interval of alphas. The trees of the folds, pruned with an alpha in the middle of the interval, tell
how good each is::

    alphas of the final tree      0 .... a1 ....... a2 ......... a3
    pruned in the folds with      0   sqrt(a1 a2)  sqrt(a2 a3)   inf
    errors of held-out rows       E0      E1          E2         E3

The tree of least error is the best. The *one-standard-error tree* is the smallest whose error is at
most a standard error above it. The trees of the folds and of all rows grow together, and a pruned
tree is a sum over its leaves (`dtrees.core.model.nested_trees`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from dtrees.constraints import ARRAY, AXES, CV, PARAMS, ROWS, Nothing, RealIn, checked
from dtrees.core.model.nested_trees import sums_over_alphas
from dtrees.core.model.pruning import WHOLE, PruningLimits, cost_complexity_path
from dtrees.estimators.fitted_sets import model_of_trees, trees_of
from dtrees.model_selection.candidates import Cells
from dtrees.model_selection.fitted_splits import FittedSplits, grow_splits
from dtrees.model_selection.folds import TEST
from dtrees.model_selection.leaf_scores import errors_of_alphas, held_out_of
from dtrees.model_selection.prepare import Arguments, prepare_shared
from dtrees.model_selection.sides import of_sides
from dtrees.parallel import threaded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BITS_OF_SPREAD = 51  # in the integers of a target


@dataclass(frozen=True, eq=False)
class CostComplexity:
    """The cost-complexity path of a tree, with cross-validated errors.

    Holds the tree of all rows, but neither the table nor the trees of the folds.

    Attributes
    ----------
    ccp_alphas : float64 array of shape (n_steps,)
        Ascending from 0: from each of them on the tree of all rows is the next smaller one.
    n_leaves : int64 array of shape (n_steps,)
        Of that tree.
    fold_alphas : float64 array of shape (n_steps,)
        What the trees of the folds are pruned with.
    errors : float64 array of shape (n_steps,)
        Share of held-out rows that are misclassified, or mean of their squared errors; of several
        targets the mean over these.
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
    _final: Any = field(repr=False)  # of all rows, not pruned

    def __repr__(self) -> str:
        best, simple = self.best_index, self.one_standard_error_index
        return (
            f"CostComplexity({len(self.ccp_alphas)} steps, best: {self._step(best)}, "
            f"one standard error: {self._step(simple)})"
        )

    def _step(self, step: int) -> str:
        return (
            f"ccp_alpha={self.ccp_alphas[step]:.4g}, {self.n_leaves[step]} "
            f"{'leaf' if self.n_leaves[step] == 1 else 'leaves'}, error {self.errors[step]:.4g} ± "
            f"{self.standard_errors[step]:.2g}"
        )

    @property
    def best_alpha(self) -> float:
        """Alpha of the least error; of equal errors, the largest."""
        return float(self.ccp_alphas[self.best_index])

    @property
    def one_standard_error_alpha(self) -> float:
        """The largest alpha whose error is at most a standard error above the least."""
        return float(self.ccp_alphas[self.one_standard_error_index])

    @checked(ccp_alpha=(RealIn(0, math.inf, "[)"),))
    def model(self, ccp_alpha: float) -> Any:
        """The estimator with that ``ccp_alpha``, fitted to all rows; it is cut out, not grown.

        Parameters
        ----------
        ccp_alpha : float
            Not negative.

        Raises
        ------
        ValueError
            `ccp_alpha` is negative, or no finite number.
        """
        estimator = clone(self._estimator).set_params(ccp_alpha=ccp_alpha)
        tree = PruningLimits(ccp_alpha=ccp_alpha).prune(trees_of(self._final)[0])
        return model_of_trees(estimator, self._final, (tree,))

    @checked(ax=AXES)
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


@checked(X=ARRAY, y=ARRAY, cv=(*CV, Nothing()), groups=ROWS, params=PARAMS)
def cost_complexity_cv(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 10,
    groups: Any = None,
    params: Mapping[str, Any] | None = None,
    checkpoint: Any = None,
) -> CostComplexity:
    """Cross-validate every step of minimal cost-complexity pruning.

    Parameters
    ----------
    estimator : DecisionTreeClassifier or DecisionTreeRegressor
        Its ``ccp_alpha`` is not looked at.
    X : table of shape (n_rows, n_columns)
        Anything that the estimator takes.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        The target.
    cv : int, cross-validation generator or iterable of (train, test), default=10
        Folds, stratified for classifiers, or any splits.
    groups : array-like of shape (n_rows,), default=None
        For the splitter.
    params : dict, default=None
        For the estimator's ``fit``: ``sample_weight``. Held-out rows count once.
    checkpoint : str or path, default=None
        As for `cross_validate`.

    Returns
    -------
    path : CostComplexity

    Raises
    ------
    TypeError
        `estimator` is no tree of dtrees, or its models cannot be grown together.
    ClusterError
        A Dask cluster is in force, or asked for by a Dask collection, and cannot be used.
    ValueError
        A fit fails, or no row is held out.

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
    arguments = Arguments(
        "cost_complexity_cv", estimator, cv, groups, params, checkpoint=checkpoint
    )
    work = prepare_shared(arguments, X, y, single=True)
    whole = clone(estimator).set_params(ccp_alpha=0.0)
    return path_of(whole, grow_splits(whole, work))


def path_of(whole: Any, grown: FittedSplits, limits: PruningLimits = WHOLE) -> CostComplexity:
    """The path of trees that have grown; raises ValueError where no row is held out.

    `whole` has ``ccp_alpha=0``. The trees of `grown` are its trees, or larger ones, in which they
    end at `limits`.
    """
    fitted, splits = grown.fitted, grown.splits
    final = limits.prune(trees_of(grown.final_estimator)[0])
    alphas = np.unique(cost_complexity_path(final)[0])
    alphas = alphas[alphas >= 0]
    # errors and alphas are compared in units of the target's spread, where nothing overflows
    power = BITS_OF_SPREAD - fitted.target.y_exponent if final.is_regression else 0
    steps = np.ldexp(alphas, -2 * power)
    of_folds = np.append(np.ldexp(np.sqrt(steps[:-1] * steps[1:]), 2 * power), np.inf)
    of_folds[0] = 0.0 if len(alphas) > 1 else np.inf
    errors_of = partial(_errors_of_side, limits, of_folds, power)
    sides = [(number, TEST, errors_of) for number in range(len(splits))]
    of_splits = of_sides(grown.whole(), splits, sides, run=threaded(whole.n_jobs))
    found = [each for each in of_splits if each is not None]
    if not found:
        raise ValueError("No row is held out: every test side is empty.")
    of_rows, *sums = zip(*found, strict=True)
    n_rows, first, squares = sum(of_rows), *(np.sum(each, axis=0) for each in sums)
    errors = first / n_rows
    standard_errors = np.sqrt(np.maximum(squares / n_rows - errors**2, 0) / n_rows)
    best = int(np.flatnonzero(errors == errors.min())[-1])
    simple = int(np.flatnonzero(errors <= errors[best] + standard_errors[best])[-1])
    errors, standard_errors = (np.ldexp(each, 2 * power) for each in (errors, standard_errors))
    ones = np.ones((final.node_count, 1), dtype=np.int64)
    n_leaves = sums_over_alphas(final, ones, alphas)[:, 0]
    n_leaves[alphas == 0] = final.n_leaves
    model = model_of_trees(whole, grown.final_estimator, (final,))
    return CostComplexity(
        alphas, n_leaves, of_folds, errors, standard_errors, best, simple, whole, model
    )


def _errors_of_side(
    limits: PruningLimits,
    alphas: np.ndarray,
    power: int,
    cells: Cells,
    number: int,
    rows: np.ndarray,
) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Number of rows of a side, and their `errors_of_alphas`; None: there is none."""
    if len(rows) == 0:
        return None
    held_out = held_out_of(cells.fitted, number, rows)
    tree, leaves = limits.cut_and_leaves(held_out.tree, held_out.leaves)
    return len(rows), *errors_of_alphas(replace(held_out, tree=tree, leaves=leaves), alphas, power)
