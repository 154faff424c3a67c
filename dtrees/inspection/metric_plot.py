"""Curves of what a boosted model was scored by while it grew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.constraints import AXES, NAMES, InstanceOf, Nothing, checked
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection.boxes import new_axes
from dtrees.inspection.colours import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@checked(metric=(InstanceOf(str, "str"), Nothing()), dataset_names=NAMES, ax=AXES)
def plot_metric(
    model: Any,
    metric: str | None = None,
    *,
    dataset_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a metric of the rows that a boosted model was scored on, over its iterations.

    Parameters
    ----------
    model : GradientBoostingClassifier or GradientBoostingRegressor
        Fitted, with ``eval_set``, ``X_val`` or early stopping.
    metric : str, default=None
        A name in its ``evals_result_``. None: the first one.
    dataset_names : list of str, default=None
        Which sets are drawn, in this order. None: all of them.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. None: of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        With early stopping, the iteration of the best score is a dashed line.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        The model was not scored, or has no such metric or set.
    TypeError
        `model` is no boosted model of dtrees.
    sklearn.exceptions.NotFittedError
        The model has not been fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dtrees import GradientBoostingClassifier
    >>> from dtrees.inspection import plot_metric
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> train = X[::2], y[::2]
    >>> model = GradientBoostingClassifier(max_iter=30)
    >>> model = model.fit(*train, eval_set=[train, (X[1::2], y[1::2])], eval_metric="roc_auc")
    >>> ax = plot_metric(model, "roc_auc")  # doctest: +SKIP
    """
    if not hasattr(model, "evals_result_"):
        ModelNodes.of(model)  # says what is no model, or not fitted
        raise TypeError(f"model must be a boosted model of dtrees. Got {model!r} instead.")
    curves = model.evals_result_
    if not curves:
        raise ValueError(
            "The model was not scored while it grew. Give eval_set, or X_val and y_val, to fit, or "
            "set early_stopping=True."
        )
    of_first = next(iter(curves.values()))
    metric = next(iter(of_first)) if metric is None else metric
    names = list(curves) if dataset_names is None else list(dataset_names)
    for what, asked, known in (("metric", [metric], of_first), ("dataset_names", names, curves)):
        for name in asked:
            if name not in known:
                raise ValueError(f"{what} must be of {list(known)}. Got {name!r} instead.")
    ax = new_axes(ax)
    for number, name in enumerate(names):
        values = curves[name][metric]
        colour = COLOURS[number % len(COLOURS)]
        ax.plot(np.arange(1, len(values) + 1), values, color=colour, linewidth=1.5, label=name)
    best = model.best_iteration_
    if best is not None:
        label = f"best: {best} iterations"
        ax.axvline(best, color="grey", linestyle="--", linewidth=1, label=label)
    ax.set(xlabel="iterations", ylabel=f"mean {metric}" if metric == "loss" else metric)
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize="small")
    return ax
