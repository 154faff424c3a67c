"""Importances of columns as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.constraints import AXES, ROWS, IntegerIn, Nothing, checked
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection.boxes import new_axes
from dtrees.inspection.colours import COLOURS
from dtrees.inspection.importance import importances_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@checked(importances=ROWS, max_columns=(IntegerIn(1), Nothing()), ax=AXES)
def plot_importance(
    model: Any,
    importances: Any = None,
    *,
    max_columns: int | None = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw the importances of columns as bars, the largest on top.

    Parameters
    ----------
    model : tree, forest or boosted model of dtrees, TreeView or Tree
        Fitted.
    importances : array-like of shape (n_columns,), default=None
        What is drawn, such as ``oob_importances(...)``, ``held_out_importances(...)``,
        ``split_counts(model)`` or mean absolute SHAP values. None: the ``feature_importances_``,
        which are shares in what the splits gain. A pandas Series whose index has the names of the
        columns may have any order; its name is that of the axis.
    max_columns : int or None, default=20
        How many columns are drawn, those of the largest values; others are counted. None: all.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. None: of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        `importances` has not one finite number for each column.
    TypeError
        `model` is no tree, forest or boosted model of dtrees.
    sklearn.exceptions.NotFittedError
        The model has not been fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import RandomForestClassifier
    >>> from dtrees.inspection import plot_importance, split_counts
    >>> forest = RandomForestClassifier(20).fit(*load_iris(return_X_y=True, as_frame=True))
    >>> ax = plot_importance(forest)  # doctest: +SKIP
    >>> ax = plot_importance(forest, split_counts(forest))  # doctest: +SKIP
    """
    view = ModelNodes.of(model)
    values = importances_of(view) if importances is None else _numbers(importances, view)
    shown = np.argsort(-values, kind="stable")[:max_columns]
    ax = new_axes(ax)
    is_ours = importances is None
    words = "share in what the splits gain" if is_ours else getattr(importances, "name", None)
    ax.set_xlabel(str(words or "importance"), parse_math=False)
    bars = ax.barh(np.arange(len(shown)), values[shown], color=COLOURS[0], height=0.7)
    ax.bar_label(bars, fmt="%.3g", padding=3, fontsize="small")
    ax.margins(x=0.12)  # for the numbers
    names = [view.column_names[column] for column in shown]
    ax.set_yticks(np.arange(len(shown)), names, parse_math=False)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    more = view.n_columns - len(shown)
    if more:
        ax.set_title(f"{len(shown)} of {view.n_columns} columns", fontsize="small", loc="left")
    return ax


def _numbers(importances: Any, view: ModelNodes) -> np.ndarray:
    """The given importances in the order of the columns, checked."""
    names, n_columns = view.column_names, view.n_columns
    if hasattr(importances, "reindex") and set(importances.index) == set(names):
        importances = importances.reindex(names)
    values = np.asarray(importances)
    is_one_each = values.shape == (n_columns,) and values.dtype.kind in "iuf"
    if not is_one_each or not np.isfinite(values).all():
        raise ValueError(
            f"importances must be one finite number for each of the {n_columns} columns. Got an "
            f"array of shape {values.shape} and type {values.dtype}."
        )
    return values
