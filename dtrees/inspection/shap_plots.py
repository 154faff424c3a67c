"""Pictures of SHAP values; matplotlib is imported when one is drawn.

::

    plot_waterfall          one row: from the base value to the prediction, column by column
    plot_beeswarm           all rows: a point for each, by column, coloured by its cell
    plot_shap_dependence    one column: its cells across, what they add upwards

Cells are places on an axis, where missing ones stand left of all others, or colours, where they are
grey. Numbers and dates are what they are, categories are numbered in the order of their labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from dtrees.coding.labels import is_missing
from dtrees.constraints import AXES, Having, InstanceOf, IntegerIn, Nothing, checked
from dtrees.inspection.boxes import matplotlib_or_error, new_axes
from dtrees.inspection.colours import COLOURS
from dtrees.inspection.shap import Explanation
from dtrees.inspection.tree_formatter import number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOWN, UP, GREY = COLOURS[0], COLOURS[5], COLOURS[-1]
LETTERS = 30  # of a cell in a label
MOST_LABELS = len(COLOURS) - 1  # of categories that have a colour
SPREAD = 0.4  # half the height of a swarm, in rows
BINS = 80  # of a swarm
NANOSECONDS = 86_400e9  # of a day
JITTER = 0.25  # half the width of a category's points

EXPLANATION = (InstanceOf(Explanation, "Explanation, as shap_values returns it"),)
OUTPUT = (IntegerIn(0), InstanceOf(str, "str"), Nothing())
COLUMN = (IntegerIn(0), InstanceOf(str, "str"))
CMAP = (InstanceOf(str, "str"), Having("set_bad"))


@checked(
    explanation=EXPLANATION,
    row=(IntegerIn(0),),
    output=OUTPUT,
    max_display=(IntegerIn(1),),
    ax=AXES,
)
def plot_waterfall(
    explanation: Explanation,
    row: int = 0,
    *,
    output: int | str | None = None,
    max_display: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the prediction of a row comes from the base value, column by column.

    Parameters
    ----------
    explanation : Explanation
        What `shap_values` returned.
    row : int, default=0
        Its number.
    output : int or str, default=None
        Number or name of the output. Needed where there are several.
    max_display : int, default=10
        Most bars: those of the largest values, and one of all others together.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. None: a new figure that is as high as its bars need.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        There is no such row or output, or there are several and none is given.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import RandomForestRegressor
    >>> from dtrees.inspection import plot_waterfall, shap_values
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> ax = plot_waterfall(shap_values(model, X[:1]))  # doctest: +SKIP
    """
    shown = _of_output(explanation, output)
    if row >= len(shown):
        raise ValueError(f"There is no row {row}: the explanation has {len(shown)}.")
    values, base = shown.values[row], float(shown.base_values[row])
    order = np.argsort(-np.abs(values), kind="stable")
    n = len(order) if len(order) <= max_display else max_display - 1
    names = [f"{shown.feature_names[j]} = {_written(shown.data[row, j])}" for j in order[:n]]
    sizes = values[order[:n]]
    if n < len(order):
        names.append(f"{len(order) - n} other columns")
        sizes = np.append(sizes, values[order[n:]].sum())
    names, sizes = names[::-1], sizes[::-1]
    ends = np.append(base, base + np.cumsum(sizes))
    reach = np.ptp(ends) or 1.0
    ax, places = new_axes(ax, _size(len(sizes))), np.arange(len(sizes))
    ax.barh(places, sizes, left=ends[:-1], height=0.7, color=np.where(sizes > 0, UP, DOWN))
    ax.vlines(ends[1:-1], places[:-1] - 0.35, places[1:] + 0.35, color=GREY, linewidth=0.8)
    rights = np.maximum(ends[1:], ends[:-1]) + 0.01 * reach
    for place, (right, size) in enumerate(zip(rights, sizes, strict=True)):
        ax.text(right, place, f"{size:+.3g}", va="center", parse_math=False)
    ax.set_yticks(places, names, parse_math=False)
    ax.axvline(base, color=GREY, linestyle="--", linewidth=0.8, zorder=0)
    ax.set_xlim(ends.min() - 0.05 * reach, ends.max() + 0.2 * reach)
    end = ends[-1] if abs(ends[-1]) > 1e-12 * reach else 0  # sums of what cancels are not quite 0
    words = f"from {base:.4g}, the base value, to {end:.4g}"
    ax.set_xlabel(f"{shown.output_names[0]} ({shown.unit}): {words}", parse_math=False)
    return ax


@checked(explanation=EXPLANATION, output=OUTPUT, max_display=(IntegerIn(1),), cmap=CMAP, ax=AXES)
def plot_beeswarm(
    explanation: Explanation,
    *,
    output: int | str | None = None,
    max_display: int = 10,
    cmap: Any = "coolwarm",
    ax: Axes | None = None,
) -> Axes:
    """Draw the SHAP values of all rows: a point for each row and column.

    Columns of the largest mean come first, signs aside. Points are coloured by the cell: from the
    5 % of the lowest to the 5 % of the highest. Categories and missing cells are grey.

    Parameters
    ----------
    explanation : Explanation
        What `shap_values` returned.
    output : int or str, default=None
        Number or name of the output. Needed where there are several.
    max_display : int, default=10
        Most columns.
    cmap : str or matplotlib Colormap, default="coolwarm"
        Colours from low to high.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. None: a new figure that is as high as its columns need.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        There is no such output, or there are several and none is given.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import RandomForestRegressor
    >>> from dtrees.inspection import plot_beeswarm, shap_values
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> ax = plot_beeswarm(shap_values(model, X))  # doctest: +SKIP
    """
    shown, cmap = _of_output(explanation, output), _colours(cmap)
    mean = np.abs(shown.values).mean(axis=0)
    order = np.argsort(-mean, kind="stable")[:max_display]
    ax = new_axes(ax, _size(len(order)))
    ax.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    for place, j in enumerate(reversed(order.tolist())):
        values, shares = shown.values[:, j], _cells_of(shown, j).shares()
        style: dict[str, Any] = {"s": 9, "linewidths": 0, "rasterized": True}
        points = _scatter(ax, values, place + _swarm(values), shares, cmap, style)
    names = [shown.feature_names[j] for j in reversed(order.tolist())]
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlabel(_title(shown), parse_math=False)
    _colour_bar(ax, points, "cell")
    return ax


@checked(
    explanation=EXPLANATION,
    column=COLUMN,
    color=(*COLUMN, Nothing()),
    output=OUTPUT,
    cmap=CMAP,
    ax=AXES,
)
def plot_shap_dependence(
    explanation: Explanation,
    column: int | str,
    *,
    color: int | str | None = None,
    output: int | str | None = None,
    cmap: Any = "coolwarm",
    ax: Axes | None = None,
) -> Axes:
    """Draw the SHAP values of a column by its cells, a point for each row.

    Parameters
    ----------
    explanation : Explanation
        What `shap_values` returned.
    column : int or str
        Its number or its name.
    color : int or str, default=None
        Column whose cells are the colours. None: of an explanation with interactions the column of
        the largest mean interaction with `column`, signs aside; otherwise points have one colour.
    output : int or str, default=None
        Number or name of the output. Needed where there are several.
    cmap : str or matplotlib Colormap, default="coolwarm"
        Colours from low to high, of numbers and dates. Categories have colours of their own.
    ax : matplotlib.axes.Axes, default=None
        Where to draw. None: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        There is no such column or output, or there are several outputs and none is given.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import RandomForestRegressor
    >>> from dtrees.inspection import plot_shap_dependence, shap_values
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> ax = plot_shap_dependence(shap_values(model, X), "bmi", color="bp")  # doctest: +SKIP
    """
    shown, cmap = _of_output(explanation, output), _colours(cmap)
    number = _number_of(column, "column", shown)
    by = None if color is None else _number_of(color, "color", shown)
    if by is None and shown.interactions is not None and len(shown.feature_names) > 1:
        strength = np.abs(shown.interactions[:, number]).mean(axis=0)
        strength[number] = -1
        by = int(strength.argmax())
    ax = new_axes(ax)
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    places, values = _cells_of(shown, number).places(ax), shown.values[:, number]
    style: dict[str, Any] = {"s": 12, "linewidths": 0, "alpha": 0.8, "rasterized": True}
    if by is None:
        ax.scatter(places, values, color=DOWN, **style)
    else:
        _cells_of(shown, by).scatter(ax, places, values, shown.feature_names[by], cmap, style)
    ax.set_xlabel(shown.feature_names[number], parse_math=False)
    ax.set_ylabel(_title(shown), parse_math=False)
    return ax


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column as numbers."""

    numbers: np.ndarray  # float64 (n_rows,); nan where a cell is missing
    labels: list[str] | None = None  # of categories, which are numbered from 0
    are_times: bool = False  # numbers are days

    @classmethod
    def of(cls, cells: Any) -> Cells:
        """Numbers and dates as they are, other cells by their labels."""
        if cells.dtype.kind in "biuf":
            return cls(cells.astype(np.float64))
        cells = list(cells)
        is_known = np.array([not is_missing(cell) for cell in cells])
        known = [cell for cell, is_there in zip(cells, is_known, strict=True) if is_there]
        numbers = np.full(len(cells), np.nan)
        if all(isinstance(cell, bool | int | float) for cell in known):
            numbers[is_known] = known
            return cls(numbers)
        for kind, types in ("M8[ns]", date | np.datetime64), ("m8[ns]", timedelta | np.timedelta64):
            if all(isinstance(cell, types) for cell in known):
                numbers[is_known] = np.array(known, dtype=kind).astype(np.int64) / NANOSECONDS
                return cls(numbers, are_times=kind == "M8[ns]")
        labels, numbers[is_known] = np.unique([str(cell) for cell in known], return_inverse=True)
        return cls(numbers, labels.tolist())

    def shares(self) -> np.ndarray:
        """Colours from 0 to 1; nan where a cell is missing or a category."""
        if self.labels is not None or np.isnan(self.numbers).all():
            return np.full(len(self.numbers), np.nan)
        low, high = np.nanquantile(self.numbers, [0.05, 0.95])
        if low == high:
            low, high = np.nanmin(self.numbers), np.nanmax(self.numbers)
        if low == high:
            return np.where(np.isnan(self.numbers), np.nan, 0.5)
        shares: np.ndarray = np.clip((self.numbers - low) / (high - low), 0, 1)
        return shares

    def places(self, ax: Any) -> np.ndarray:
        """Places on the axis, which gets its ticks; missing ones stand left of the others."""
        places, missing = self.numbers.copy(), np.isnan(self.numbers)
        low, high = (0.0, 1.0) if missing.all() else (np.nanmin(places), np.nanmax(places))
        apart = low - 0.12 * (high - low or 1.0)
        if self.are_times:
            ax.xaxis_date()
            ax.tick_params("x", labelrotation=30)
        if self.labels is not None:
            apart = -1.0
            places += np.random.default_rng(0).uniform(-JITTER, JITTER, len(places))
            ticks, labels = (
                list(range(len(self.labels))),
                [label[:LETTERS] for label in self.labels],
            )
            if missing.any():
                ticks, labels = [-1, *ticks], ["missing", *labels]
            turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if len(ticks) > 6 else {}
            ax.set_xticks(ticks, labels, parse_math=False, **turned)
        elif missing.any():
            ax.axvline((apart + low) / 2, color=GREY, linestyle=":", linewidth=0.8)
            above = ax.get_xaxis_transform()
            ax.text(apart, 1.01, "missing", transform=above, ha="center", va="bottom")
        places[missing] = apart
        return places

    def scatter(
        self, ax: Any, x: np.ndarray, y: np.ndarray, name: str, cmap: Any, style: dict[str, Any]
    ) -> None:
        """Draw points in the colours of the cells, and what the colours mean."""
        if self.labels is None:
            _colour_bar(ax, _scatter(ax, x, y, self.shares(), cmap, style), name)
            return
        counts = np.bincount(self.numbers[~np.isnan(self.numbers)].astype(np.int64))
        named = np.sort(np.argsort(-counts, kind="stable")[:MOST_LABELS]).tolist()
        parts = [(self.labels[k][:LETTERS], self.numbers == k) for k in named]
        parts.append(("others", ~np.isin(self.numbers, named)))
        for (label, here), colour in zip(parts, [*COLOURS[: len(named)], GREY], strict=True):
            if here.any():
                ax.scatter(x[here], y[here], color=colour, label=label, **style)
        beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        legend = ax.legend(title=name, frameon=False, markerscale=2, **beside)
        for text in [legend.get_title(), *legend.get_texts()]:
            text.set_parse_math(False)


def _colours(cmap: Any) -> Any:
    """The colours of a name, and grey for what has none."""
    return matplotlib_or_error("dtrees").colormaps.get_cmap(cmap).with_extremes(bad=GREY)


def _scatter(
    ax: Any, x: np.ndarray, y: np.ndarray, shares: np.ndarray, cmap: Any, style: dict[str, Any]
) -> Any:
    """Draw points in colours from 0 to 1."""
    return ax.scatter(x, y, c=shares, cmap=cmap, vmin=0, vmax=1, plotnonfinite=True, **style)


def _colour_bar(ax: Any, mappable: Any, name: str) -> None:
    """A bar of colours from low to high."""
    bar = ax.figure.colorbar(mappable, ax=ax, aspect=40, pad=0.02)
    bar.ax.set_ylabel(name, parse_math=False)
    bar.set_ticks([0, 1], labels=["low", "high"])
    bar.outline.set_visible(False)


def _of_output(explanation: Explanation, output: int | str | None) -> Explanation:
    """The explanation of one output, in memory."""
    if output is None:
        if len(explanation.output_names) > 1:
            names = ", ".join(map(repr, explanation.output_names))
            raise ValueError(f"There are several outputs. Give output, one of {names}.")
        output = 0
    return explanation.of_output(output).compute()


def _number_of(column: int | str, name: str, explanation: Explanation) -> int:
    """The number of a column; `name` is that of the argument."""
    names = explanation.feature_names
    number = number_of(column, names)
    if number is None:
        raise ValueError(
            f"{name}: there is no column {column!r} among the {len(names)} of the fit."
        )
    return number


def _cells_of(explanation: Explanation, column: int) -> Cells:
    """The cells of a column by its number."""
    cells = explanation.data[:, [column]]
    return Cells.of((cells.toarray() if issparse(cells) else cells)[:, 0])


def _size(n_rows: int) -> tuple[float, float]:
    """Width and height of a figure that has some rows, in inches."""
    return 7.0, 1.4 + 0.4 * n_rows


def _swarm(values: np.ndarray) -> np.ndarray:
    """How far up or down points are so that close ones lie beside each other."""
    low, reach = values.min(), np.ptp(values)
    place = np.zeros(len(values), dtype=np.int64)
    if reach > 0:
        place = np.minimum(((values - low) / reach * BINS).astype(np.int64), BINS - 1)
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(place[order], place[order], side="left")
    layer = np.empty(len(values))
    layer[order] = np.arange(len(values)) - first  # 0, 1, 2, ... within a bin
    side = np.where(layer % 2 == 0, 1, -1) * np.ceil(layer / 2)
    away: np.ndarray = side * SPREAD / max(np.abs(side).max(), 6.0)
    return away


def _title(explanation: Explanation) -> str:
    """What values are of."""
    name = explanation.output_names[0]
    of_output = "" if name == "prediction" else f", {name}"
    return f"SHAP value{of_output} ({explanation.unit})"


def _written(cell: Any) -> str:
    """A cell in a label."""
    if is_missing(cell):
        return "missing"
    if isinstance(cell, float | np.floating):
        return f"{cell:.4g}"
    if isinstance(cell, np.datetime64 | np.timedelta64):
        cell = cell.astype(f"{cell.dtype.kind}8[us]").item()
    return str(cell).removesuffix(" 00:00:00")[:LETTERS]
