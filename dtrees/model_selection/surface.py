"""The validation surface: scores over depth and size of nodes, from one growth ([SF] 3).

One tree is grown for each training side, all of them together. A cell of the surface is the score
of the trees that end at its depth, and do not split nodes of fewer rows than it asks for. They
stand inside the grown ones, and no cell costs a fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import indexable

from dtrees.core.smaller import ManyLimits
from dtrees.estimators.limits import depth_of
from dtrees.estimators.sets import TrainingTable, fit_table
from dtrees.model_selection.candidates import Growth
from dtrees.model_selection.cells import Cells, score_models
from dtrees.model_selection.cost_complexity import CostComplexity, path_of
from dtrees.model_selection.leaf_scores import leaf_scores_of, scores_of_splits
from dtrees.model_selection.ours import in_memory, splits_of, why_not, why_not_splits
from dtrees.model_selection.stand_in import Split, training_sets
from dtrees.parallel import admitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VALUES = 200  # of min_samples_split, at most
LARGEST_SHARE = 0.04  # of the rows, of those values


@dataclass(frozen=True, eq=False)
class ValidationSurface:
    """Scores over ``max_depth`` and ``min_samples_split``.

    Attributes
    ----------
    max_depth : int64 array of shape (n_depths,)
        Ascending.
    min_samples_split : int64 array of shape (n_limits,)
        Ascending.
    scores : float64 array of shape (n_depths, n_limits, n_splits)
        Of the held-out rows.
    scoring : str
        Name of the score.
    """

    max_depth: np.ndarray
    min_samples_split: np.ndarray
    scores: np.ndarray
    scoring: str
    _cells: Cells = field(repr=False)
    _splits: Sequence[Split] = field(repr=False)

    @property
    def mean(self) -> np.ndarray:
        """Mean over the splits, float64 array of shape (n_depths, n_limits)."""
        return self.scores.mean(axis=2)

    @property
    def standard_error(self) -> np.ndarray:
        """Its standard error, ``s / sqrt(n_splits)``; nan for one split. The same shape."""
        n_splits = self.scores.shape[2]
        if n_splits < 2:
            return np.full(self.scores.shape[:2], np.nan)
        return self.scores.std(axis=2, ddof=1) / math.sqrt(n_splits)

    @property
    def best(self) -> dict[str, int]:
        """The parameters of the highest mean; of equal ones the shallowest, then the largest nodes.

        Raises
        ------
        ValueError
            Every mean is nan.
        """
        return self._parameters(*self._place_of_best())

    @property
    def one_standard_error(self) -> dict[str, int]:
        """The simplest model whose mean is at most a standard error below the highest.

        Simplest is the shallowest, then the one that splits the fewest nodes.
        """
        best = self._place_of_best()
        allowed = self.mean[best] - np.nan_to_num(self.standard_error[best])
        depth, limit = np.argwhere(self.mean >= allowed)[:, 0].min(), 0
        limit = int(np.flatnonzero(self.mean[depth] >= allowed)[-1])
        return self._parameters(int(depth), limit)

    def _place_of_best(self) -> tuple[int, int]:
        mean = self.mean
        if np.isnan(mean).all():
            raise ValueError("Every mean of the surface is nan, so that no cell is the best.")
        depth, limit = np.nonzero(mean == np.nanmax(mean))
        first = depth[0]
        return int(first), int(limit[depth == first][-1])

    def _parameters(self, depth: int, limit: int) -> dict[str, int]:
        return {
            "max_depth": int(self.max_depth[depth]),
            "min_samples_split": int(self.min_samples_split[limit]),
        }

    def model(self, max_depth: int, min_samples_split: int) -> Any:
        """The estimator of a cell, fitted to all rows; it is cut out, not grown.

        Parameters
        ----------
        max_depth, min_samples_split : int
            Of the surface's.
        """
        depth = np.flatnonzero(self.max_depth == max_depth)
        limit = np.flatnonzero(self.min_samples_split == min_samples_split)
        if len(depth) == 0 or len(limit) == 0:
            raise ValueError(
                f"max_depth={max_depth} and min_samples_split={min_samples_split} are no cell of "
                "the surface."
            )
        return self._cells.model(int(depth[0]) * len(self.min_samples_split) + int(limit[0]), -1)

    def cost_complexity(self) -> CostComplexity:
        """The cost-complexity path of the largest tree, from the same growth.

        Returns
        -------
        path : CostComplexity
            As that of `cost_complexity_cv`. O(nodes log nodes) for each training side.

        Raises
        ------
        TypeError
            The surface is that of a forest.
        """
        if self._cells.fitted.has_forests:
            raise TypeError("A cost-complexity path is of a single tree, not of a forest.")
        return path_of(self._cells.growth.estimator, self._cells.fitted, self._splits)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the means as a picture, with the best cell and the one-standard-error cell.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: of a new figure.

        Raises
        ------
        ImportError
            matplotlib is not there.
        """
        from dtrees.model_selection.plots import plot_surface

        return plot_surface(self, ax)


def validation_surface(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    max_depth: Sequence[int] | None = None,
    min_samples_split: Sequence[int] | None = None,
    cv: Any = None,
    scoring: Any = None,
    groups: Any = None,
    params: Mapping[str, Any] | None = None,
    error_score: Any = np.nan,
) -> ValidationSurface:
    """Score a tree or a forest over ``max_depth`` and ``min_samples_split``, by cross-validation.

    Parameters
    ----------
    estimator : tree or forest of dtrees
        Its own two limits are not looked at.
    X : table of shape (n_rows, n_columns)
        Anything that the estimator takes.
    y : array-like of shape (n_rows,)
        The target.
    max_depth : sequence of int, default=None
        None: from 1 to the depth of the deepest tree.
    min_samples_split : sequence of int, default=None
        Rows of a node that is split. None: up to 200 values from 2 to 4 % of the rows, closer
        together where they are small.
    cv : int, cross-validation generator or iterable of (train, test), default=None
        None: 5 folds, stratified for classifiers.
    scoring : str or callable, default=None
        One scorer; None: the estimator's ``score``.
    groups : array-like of shape (n_rows,), default=None
        For the splitter.
    params : dict, default=None
        For the estimator's ``fit``: ``sample_weight``. Held-out rows count once.
    error_score : "raise" or number, default=nan
        Where a scorer fails.

    Returns
    -------
    surface : ValidationSurface

    Raises
    ------
    TypeError
        `estimator` is not one of dtrees, or its models cannot be grown together.
    ValueError
        A limit is too small, or the fits fail.

    Notes
    -----
    For a tree and a score that is a sum over leaves, O(nodes + cells) beyond the cross-validation
    of the largest tree. For forests and other scorers, a prediction of the held-out rows per cell.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import validation_surface
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> surface = validation_surface(DecisionTreeClassifier(random_state=0), X, y, cv=10)
    >>> surface.scores.shape == (len(surface.max_depth), len(surface.min_samples_split), 10)
    True
    >>> tree = surface.model(**surface.one_standard_error)
    """
    reason = why_not(estimator, y, params or ())
    y, groups, params = in_memory(y, groups, params)
    X, y = indexable(*admitted(X, {"y": y}))
    splits = splits_of(estimator, X, y, cv, groups)
    reason = reason or why_not_splits(splits, len(y))
    if reason is not None:
        raise TypeError(f"validation_surface needs models that grow together: {reason}.")
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"A surface has one scorer: a name or a callable. Got {scoring!r}.")
    whole = clone(estimator).set_params(max_depth=None, min_samples_split=2)
    depths = limits = None
    if max_depth is not None:
        depths = _whole_numbers("max_depth", max_depth, 1)
        whole.set_params(max_depth=int(depths.max()))
    if min_samples_split is not None:
        limits = _whole_numbers("min_samples_split", min_samples_split, 2)
        whole.set_params(min_samples_split=int(limits.min()))
    furthest = clone(whole).set_params(max_leaf_nodes=None, ccp_alpha=0.0)
    table = TrainingTable(X, y, (params or {}).get("sample_weight"))
    fitted = fit_table(furthest, table, training_sets(splits, len(y)))
    for model in fitted.models:
        if isinstance(model, Exception):
            raise model
    if depths is None:
        deepest = max(map(fitted.depth, range(len(splits) + 1)))
        depths = np.arange(1, max(1, deepest) + 1)
    if limits is None:
        most = max(2, int(LARGEST_SHARE * len(y)))
        limits = np.geomspace(2, most, VALUES).round().astype(np.int64)
    depths, limits = np.unique(depths), np.unique(limits)
    candidates = GridCells(depths, limits)
    growth = Growth(whole, furthest, range(len(candidates)), candidates, is_whole=False)
    cells = Cells(growth, fitted, _limits_of(whole, depths, limits))
    by_leaves = leaf_scores_of(scoring, of_classes=fitted.classes is not None)
    found = None
    if by_leaves is not None and not fitted.has_forests:
        found = scores_of_splits(list(by_leaves.values()), fitted, splits, cells.limits)
    if found is None:
        by_models = score_models(cells, table, splits, scoring, error_score, weigh=False)
        found = by_models.scores["test", "score"][None]
    name = str(getattr(scoring, "__name__", scoring))
    if by_leaves is not None:
        name = by_leaves["score"].name
    scores = found[0].reshape(len(depths), len(limits), len(splits))
    return ValidationSurface(depths, limits, scores, name, cells, splits)


def _whole_numbers(name: str, values: Any, least: int) -> np.ndarray:
    """Values of a limit as an array.

    Raises
    ------
    ValueError
    """
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0 or array.dtype.kind not in "iu" or array.min() < least:
        raise ValueError(
            f"{name} must be a sequence of one or more integers of at least {least}. Got "
            f"{values!r}."
        )
    return array.astype(np.int64)


class GridCells(Sequence[Mapping[str, int]]):
    """The parameters of every cell, made when they are asked for; depths change last.

    Parameters
    ----------
    max_depth, min_samples_split : int64 (n,)
    """

    def __init__(self, max_depth: np.ndarray, min_samples_split: np.ndarray) -> None:
        self._depths, self._limits = max_depth.tolist(), min_samples_split.tolist()

    def __len__(self) -> int:
        return len(self._depths) * len(self._limits)

    def __getitem__(self, place: Any) -> Any:
        depth, limit = divmod(range(len(self))[place], len(self._limits))
        return {"max_depth": self._depths[depth], "min_samples_split": self._limits[limit]}


def _limits_of(whole: Any, depths: np.ndarray, limits: np.ndarray) -> ManyLimits:
    """Where the trees of every cell end; `whole` has what they have in common."""
    n_cells = len(depths) * len(limits)
    deepest = [depth_of(depth, whole.max_leaf_nodes) for depth in depths.tolist()]
    return ManyLimits(
        np.repeat(np.array(deepest, dtype=np.int64), len(limits)),
        np.tile(limits, len(depths)),
        np.full(n_cells, float(whole.min_impurity_decrease)),
        np.full(n_cells, whole.max_leaf_nodes or 0),
        np.full(n_cells, float(whole.ccp_alpha)),
    )
