"""Pictures of what a validation has found; matplotlib is imported when one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.inspection.boxes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dtrees.model_selection.boosting_curve import BoostingCurve
    from dtrees.model_selection.cost_complexity import CostComplexity
    from dtrees.model_selection.surface import ValidationSurface

MOST_CORNERS = 500  # of an area that is kept as a polygon


def plot_surface(surface: ValidationSurface, ax: Axes | None) -> Axes:
    """Means over depth and rows of a node, as colours."""
    ax = new_axes(ax)
    mean = surface.mean
    rows, depths = _edges(surface.min_samples_split), _edges(surface.max_depth)
    finite = mean[np.isfinite(mean)]
    low = float(np.quantile(finite, 0.1)) if len(finite) else 0.0  # stumps do not set the scale
    picture = ax.pcolormesh(rows, depths, mean, cmap="viridis", vmin=low, rasterized=True)
    ax.figure.colorbar(picture, ax=ax, label=f"mean {surface.scoring}", extend="min")
    marks = (("best", surface.best, "o"), ("one standard error", surface.one_standard_error, "s"))
    for label, cell, marker in marks:
        ax.plot(
            cell["min_samples_split"],
            cell["max_depth"],
            marker,
            label=f"{label}: depth {cell['max_depth']}, {cell['min_samples_split']} rows",
            markersize=8,
            markerfacecolor="none",
            markeredgecolor="red",
            markeredgewidth=2,
            linestyle="none",
            clip_on=False,
        )
    ax.locator_params(axis="y", integer=True)
    if surface.min_samples_split[-1] > 50:
        ax.set_xscale("log")
    else:
        ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="min_samples_split", ylabel="max_depth")
    ax.legend(fontsize="small", frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    return ax


def plot_cost_complexity(path: CostComplexity, ax: Axes | None) -> Axes:
    """Errors and their standard errors over the number of leaves."""
    ax = new_axes(ax)
    least = path.errors[path.best_index]
    limit = least + path.standard_errors[path.best_index]
    ax.fill_between(
        path.n_leaves,
        path.errors - path.standard_errors,
        path.errors + path.standard_errors,
        alpha=0.25,
        linewidth=0,
        rasterized=len(path.errors) > MOST_CORNERS,
        label="± one standard error",
    )
    ax.plot(path.n_leaves, path.errors, linewidth=1.5)
    ax.axhline(limit, color="grey", linestyle="--", linewidth=1)
    steps = (
        ("best", path.best_index, "o"),
        ("one standard error", path.one_standard_error_index, "s"),
    )
    for label, step, marker in steps:
        ax.plot(
            path.n_leaves[step],
            path.errors[step],
            marker,
            color="red",
            label=f"{label}: {path.n_leaves[step]:,} leaves, alpha {path.ccp_alphas[step]:.2g}",
        )
    if path.n_leaves[0] > 30:
        ax.set_xscale("log")
    is_classes = hasattr(path._final, "classes_")
    what = "share of held-out rows misclassified" if is_classes else "mean squared error"
    ax.set(xlabel="leaves of the pruned tree", ylabel=what)
    ax.legend(fontsize="small")
    return ax


def plot_boosting_curve(curve: BoostingCurve, ax: Axes | None) -> Axes:
    """Means and their standard errors over the iterations, and a thin line each split.

    Scores rise to the best one; losses fall to it.
    """
    ax = new_axes(ax)
    shown, what = shown_scores(curve)
    n, mean, error = curve.max_iter, shown.mean(axis=1), curve.standard_error
    ax.plot(n, shown, color="grey", linewidth=0.5, alpha=0.6)
    if np.isfinite(error).all():
        ax.fill_between(
            n, mean - error, mean + error, alpha=0.25, linewidth=0, label="± one standard error"
        )
    ax.plot(n, mean, linewidth=1.5, label=f"mean of {shown.shape[1]} splits")
    marks = (("best", curve.best, "o"), ("one standard error", curve.one_standard_error, "s"))
    for label, at, marker in marks:
        ax.plot(
            at,
            mean[at - 1],
            marker,
            label=f"{label}: {at} iterations",
            markerfacecolor="none",  # both may stand in one place
            markeredgecolor="red",
            markeredgewidth=1.5,
            linestyle="none",
        )
    is_loss = curve.scoring == "loss"
    finite = shown[np.isfinite(shown)]
    ends = np.quantile(finite, [0.0, 0.9] if is_loss else [0.1, 1.0])  # the start sets no scale
    margin = (ends[1] - ends[0]) / 10
    if margin > 0:
        ax.set_ylim(ends[0] - margin, ends[1] + margin)
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="iterations", ylabel=what)
    ax.legend(fontsize="small", loc="upper right" if is_loss else "lower right")
    return ax


def shown_scores(curve: BoostingCurve) -> tuple[np.ndarray, str]:
    """Scores (n_iterations, n_splits) and their name as people read them: losses without minus."""
    if curve.scoring != "loss":
        return curve.scores, curve.scoring
    loss = curve._estimator.loss
    name = loss if isinstance(loss, str) else type(loss).__name__
    return -curve.scores, f"mean loss of held-out rows ({name})"


def _edges(values: np.ndarray) -> np.ndarray:
    """Edges of cells around ascending values."""
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    middle: Any = (values[1:] + values[:-1]) / 2
    first, last = values[0] - (middle[0] - values[0]), values[-1] + (values[-1] - middle[-1])
    return np.concatenate([[first], middle, [last]])
