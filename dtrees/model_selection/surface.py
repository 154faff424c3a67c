"""The validation surface: scores over depth and size of nodes, from one growth ([SF] 3).

One tree is grown for each training side, all of them together. A cell of the surface has a depth
and a least number of rows of a node that is split. It is the score of the trees that end there.
They stand inside the grown ones, and no cell costs a fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dtrees.constraints import (
    ARRAY,
    AXES,
    CV,
    ERROR_SCORE,
    PARAMS,
    ROWS,
    SCORER,
    IntegerIn,
    Nothing,
    checked,
)
from dtrees.core.model.nested_trees import PruningGrid
from dtrees.core.model.pruning import PruningLimits
from dtrees.estimators.fit_plan import depth_of
from dtrees.estimators.fitted_sets import model_of_trees, trees_of
from dtrees.model_selection.cost_complexity import CostComplexity, path_of
from dtrees.model_selection.fitted_splits import (
    FittedSplits,
    SplitScores,
    grow_splits,
    refuse_unfit_scorer,
)
from dtrees.model_selection.leaf_scores import leaf_scores_of
from dtrees.model_selection.prepare import Arguments, SplitTable, prepare_shared
from dtrees.parallel import tables_kept

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VALUES = 200  # of min_samples_split, at most
LARGEST_SHARE = 0.04  # of the rows, of those values


@dataclass(frozen=True, eq=False)
class ValidationSurface(SplitScores):
    """Scores over ``max_depth`` and ``min_samples_split``.

    Holds the table's codes and the trees of all splits, from which `cost_complexity` is computed. A
    copy that is pickled holds the model of all rows only: it has everything else.

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
    _whole: Any = field(repr=False)  # an estimator with what the cells have in common
    _final: Any = field(repr=False)  # of all rows, and as large as the largest cell's
    _grown: FittedSplits | None = field(repr=False)  # not in a pickle

    def __repr__(self) -> str:
        mean = self.mean
        highest = "every mean is nan"
        if not np.isnan(mean).all():
            highest = f"best: {np.nanmax(mean):.4g} at {self.best}"
        return f"ValidationSurface({self.scoring}, shape {self.scores.shape}, {highest})"

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
        allowed = self._allowed(self._place_of_best())
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

    @checked(max_depth=(IntegerIn(1),), min_samples_split=(IntegerIn(2),))
    def model(self, max_depth: int, min_samples_split: int = 2) -> Any:
        """The estimator of a cell, fitted to all rows; it is cut out, not grown.

        Parameters
        ----------
        max_depth : int
            One of the `max_depth` of the surface.
        min_samples_split : int, default=2
            One of the `min_samples_split` of the surface.

        Raises
        ------
        ValueError
            The surface has no such cell.
        """
        depth = np.flatnonzero(self.max_depth == max_depth)
        limit = np.flatnonzero(self.min_samples_split == min_samples_split)
        if len(depth) == 0:
            raise _none_of("max_depth", max_depth, self.max_depth)
        if len(limit) == 0:
            raise _none_of("min_samples_split", min_samples_split, self.min_samples_split)
        parameters = self._parameters(int(depth[0]), int(limit[0]))
        estimator = clone(self._whole).set_params(**parameters)
        limits = _limits_of(estimator, self.max_depth[depth], self.min_samples_split[limit])[0]
        trees = tuple(map(limits.prune, trees_of(self._final)))
        return model_of_trees(estimator, self._final, trees)

    def cost_complexity(self) -> CostComplexity:
        """The cost-complexity path of the largest tree, from the same growth.

        Returns
        -------
        path : CostComplexity
            That of `cost_complexity_cv` for the estimator of the surface, with the largest
            ``max_depth`` and the least ``min_samples_split`` of the surface, where they were
            given, and without such limits otherwise. O(nodes log nodes) for each training side.

        Raises
        ------
        TypeError
            The surface is that of a forest.
        RuntimeError
            The surface was pickled, and has left the trees of the splits behind.
        ValueError
            No row is held out.
        """
        if hasattr(self._final, "forest_"):
            raise TypeError("A cost-complexity path is of a single tree, not of a forest.")
        if self._grown is None:
            raise RuntimeError(
                "A surface that was pickled or copied has left behind the table and the trees of "
                "the splits. Ask the first one for its cost_complexity(), which can be pickled, "
                "or call cost_complexity_cv."
            )
        whole = clone(self._whole).set_params(ccp_alpha=0.0)
        return path_of(whole, self._grown, PruningLimits(max_leaf_nodes=whole.max_leaf_nodes))

    @checked(ax=AXES)
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


@checked(
    X=ARRAY,
    y=ARRAY,
    cv=(*CV, Nothing()),
    scoring=SCORER,
    groups=ROWS,
    params=PARAMS,
    error_score=ERROR_SCORE,
)
@tables_kept()
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
    checkpoint: Any = None,
) -> ValidationSurface:
    """Score a tree or a forest over ``max_depth`` and ``min_samples_split``, by cross-validation.

    Parameters
    ----------
    estimator : tree or forest of dtrees
        Its own two limits are not looked at; ``max_leaf_nodes``, ``ccp_alpha`` and
        ``min_impurity_decrease`` hold in every cell.
    X : table of shape (n_rows, n_columns)
        Anything that the estimator takes.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
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
    checkpoint : str or path, default=None
        As for `cross_validate`.

    Returns
    -------
    surface : ValidationSurface

    Raises
    ------
    TypeError
        `estimator` is not one of dtrees, or its models cannot be grown together.
    ClusterError
        A Dask cluster is in force, or asked for by ``regime`` or a Dask collection, and cannot be
        used.
    ValueError
        A limit is too small, a fit fails, or the scorer is not defined for the classes. The last is
        known before anything grows.

    Notes
    -----
    For a tree and a score that is a sum over leaves, O(nodes + cells) beyond the cross-validation
    of the largest tree. Forests and other scorers (the mean absolute error, the area under the
    curve) cost a prediction of the held-out rows for each cell and split whose tree is another one.
    These are thousands, unless there are fewer values of `min_samples_split`. Their number is
    logged.

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
    work = prepare_shared(
        Arguments("validation_surface", estimator, cv, groups, params, checkpoint=checkpoint), X, y
    )
    return surface_of(
        estimator,
        work,
        max_depth=max_depth,
        min_samples_split=min_samples_split,
        scoring=scoring,
        error_score=error_score,
    )


def _none_of(name: str, value: Any, values: np.ndarray) -> ValueError:
    """An error for a size that the surface does not have."""
    known = list(map(str, values.tolist()))
    if len(known) > 10:
        known = [*known[:5], "...", *known[-3:]]
    return ValueError(f"The surface has no {name}={value}: it has {', '.join(known)}.")


def surface_of(
    estimator: Any,
    work: SplitTable,
    *,
    max_depth: Sequence[int] | None = None,
    min_samples_split: Sequence[int] | None = None,
    scoring: Any = None,
    error_score: Any = np.nan,
) -> ValidationSurface:
    """The surface of a table and splits of it; raises as `validation_surface`."""
    refuse_unfit_scorer(scoring, estimator, work)
    whole = clone(estimator).set_params(max_depth=None, min_samples_split=2)
    depths = limits = None
    if max_depth is not None:
        depths = _whole_numbers("max_depth", max_depth, 1)
        whole.set_params(max_depth=int(depths.max()))
    if min_samples_split is not None:
        limits = _whole_numbers("min_samples_split", min_samples_split, 2)
        whole.set_params(min_samples_split=int(limits.min()))
    furthest = clone(whole).set_params(max_leaf_nodes=None, ccp_alpha=0.0)
    grown = grow_splits(furthest, work)
    splits = work.splits
    if depths is None:
        trees = [tree for model in grown.fitted.models for tree in trees_of(model)]
        depths = np.arange(1, max(1, *(tree.max_depth for tree in trees)) + 1)
    if limits is None:
        n_rows = len(work.table.y) if work.rows is None else np.count_nonzero(work.rows)
        most = max(2, int(LARGEST_SHARE * n_rows))
        limits = np.geomspace(2, most, VALUES).round().astype(np.int64)
    depths, limits = np.unique(depths), np.unique(limits)
    grid = {
        "max_depth": depths.tolist(),
        "min_samples_split": limits.tolist(),
    }  # depths change last
    cells = grown.cells(whole, ParameterGrid(grid), _limits_of(whole, depths, limits))
    found = grown.scores_of_cells(cells, {"score": scoring}, error_score)
    scores = found["score"].reshape(len(depths), len(limits), len(splits))
    target = grown.fitted.target
    of_classes = target.kind == "classification"
    by_leaves = leaf_scores_of(scoring, of_classes=of_classes, n_outputs=target.n_outputs)
    name = str(getattr(scoring, "__name__", scoring))
    if by_leaves is not None:
        name = by_leaves["score"].name
    return ValidationSurface(depths, limits, scores, name, whole, grown.final_estimator, grown)


def _whole_numbers(name: str, values: Any, least: int) -> np.ndarray:
    """Values of a limit as an array; ValueError where they are no such numbers."""
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0 or array.dtype.kind not in "iu" or array.min() < least:
        raise ValueError(
            f"{name} must be a sequence of one or more integers of at least {least}. Got "
            f"{values!r}."
        )
    return array.astype(np.int64)


def _limits_of(whole: Any, depths: np.ndarray, limits: np.ndarray) -> PruningGrid:
    """Where the trees of every cell end; `whole` has what they have in common."""
    n_cells = len(depths) * len(limits)
    deepest = [depth_of(depth, whole.max_leaf_nodes) for depth in depths.tolist()]
    return PruningGrid(
        np.repeat(np.array(deepest, dtype=np.int64), len(limits)),
        np.tile(limits, len(depths)),
        np.full(n_cells, float(whole.min_impurity_decrease)),
        np.full(n_cells, whole.max_leaf_nodes or 0),
        np.full(n_cells, float(whole.ccp_alpha)),
    )
