"""Pictures of SHAP values; matplotlib is imported when one is drawn.

::

    plot_waterfall          one row: from the base value to the prediction, column by column
    plot_beeswarm           all rows: a point for each, by column, coloured by its cell
    plot_shap_dependence    one column: its cells across, what they add upwards

Cells are places on an axis, where missing ones stand left of all others, or colours, where they are
grey (`dtrees.inspection.cells`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.constraints import AXES, Having, InstanceOf, IntegerIn, Nothing, checked
from dtrees.inspection.boxes import matplotlib_or_error, new_axes
from dtrees.inspection.cells import Cells, written
from dtrees.inspection.colours import COLOURS
from dtrees.inspection.shap import OUTPUT, Explanation, cells_of_column
from dtrees.inspection.tree_formatter import column_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOWN, UP, GREY = COLOURS[0], COLOURS[5], COLOURS[-1]
MOST_LABELS = len(COLOURS) - 1  # of categories that have a colour
SPREAD = 0.4  # half the height of a swarm, in rows
BINS = 80  # of a swarm
JITTER = 0.25  # half the width of a category's points, in steps to the next
MOST_TICKS = 20  # of words
MOST_LETTERS = 60  # of all ticks, for them to be level
LETTER = 0.03  # share of the width of bars that a letter takes at most

EXPLANATION = (InstanceOf(Explanation, "Explanation, as shap_values returns it"),)
COLUMN = (IntegerIn(0), InstanceOf(str, "str"))
CMAP = (InstanceOf(str, "str"), Having("set_bad"))


@checked(
    explanation=EXPLANATION,
    row=(IntegerIn(0),),
    output=(*OUTPUT, Nothing()),
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
        Its number, which the title has where there are several rows.
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
    names = [f"{shown.feature_names[j]} = {written(shown.data[row, j])}" for j in order[:n]]
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
    words = [f"{size:+.3g}" for size in sizes]
    for place, (right, word) in enumerate(zip(rights, words, strict=True)):
        ax.text(right, place, word, va="center", parse_math=False)
    ax.set_yticks(places, names, parse_math=False)
    ax.axvline(base, color=GREY, linestyle="--", linewidth=0.8, zorder=0)
    ax.set_xlim(ends.min() - 0.05 * reach, ends.max() + LETTER * max(map(len, words)) * reach)
    end = ends[-1] if abs(ends[-1]) > 1e-12 * reach else 0  # sums of what cancels are not quite 0
    steps = f"from {base:.4g}, the base value, to {end:.4g}"
    ax.set_xlabel(f"{_name(shown)} ({shown.unit})\n{steps}", parse_math=False)
    if len(shown) > 1:
        ax.set_title(f"row {row} of {len(shown)}", fontsize="small", loc="left")
    return ax


@checked(
    explanation=EXPLANATION,
    output=(*OUTPUT, Nothing()),
    max_display=(IntegerIn(1),),
    cmap=CMAP,
    ax=AXES,
)
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
        values, shares = shown.values[:, j], _shares(cells_of_column(shown, j).numbers)
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
    output=(*OUTPUT, Nothing()),
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
        There is no such column or output, there are several columns of the name, or several outputs
        and none is given.

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
    names = shown.feature_names
    number = column_number(column, names, "column")
    by = None if color is None else column_number(color, names, "color")
    if by is None and shown.interactions is not None and len(names) > 1:
        strength = np.abs(shown.interactions[:, number]).mean(axis=0)
        strength[number] = -1
        by = int(strength.argmax())
    ax = new_axes(ax)
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    cells, values = cells_of_column(shown, number), shown.values[:, number]
    aside = np.random.default_rng(0).uniform(-JITTER, JITTER, len(values)) * cells.bounds[2]
    places = cells.places + np.where(cells.codes < 0, 0, aside)
    style: dict[str, Any] = {"s": 12, "linewidths": 0, "alpha": 0.8, "rasterized": True}
    if by is None:
        ax.scatter(places, values, color=DOWN, **style)
    else:
        _scatter_in_colours(ax, places, values, cells_of_column(shown, by), names[by], cmap, style)
    _set_ticks(ax, cells)
    unit = f" ({cells.unit})" if cells.unit not in ("", "dates") else ""
    ax.set_xlabel(names[number] + unit, parse_math=False)
    ax.set_ylabel(_title(shown), parse_math=False)
    return ax


def _set_ticks(ax: Any, cells: Cells) -> None:
    """Name the places of words and of what is missing, beside the ticks of numbers."""
    low, high, step = cells.bounds
    ticks, labels = ([low - step], ["missing"]) if cells.is_missing.any() else ([], [])
    if cells.unit == "dates":
        ax.xaxis_date()
        ax.tick_params("x", labelrotation=30)
    power = ""  # of ten
    if low <= high:  # there are numbers
        if not ticks and not cells.words:
            return
        edges = low - step / 2, high + step / 2
        for edge, is_there in zip(edges, (ticks, cells.words), strict=True):
            if is_there:
                ax.axvline(edge, color=GREY, linestyle=":", linewidth=0.8)
        there = [tick for tick in ax.get_xticks() if edges[0] < tick < edges[1]]
        numbers = ax.xaxis.get_major_formatter()
        ticks, labels = [*ticks, *there], [*labels, *numbers.format_ticks(there)]
        power = numbers.get_offset()
    each = max(1, -(-len(cells.words) // MOST_TICKS))
    ticks = [*ticks, *(high + step * np.arange(1, len(cells.words) + 1)[::each])]
    labels = [*labels, *cells.words[::each]]
    is_long = max(map(len, labels)) * len(labels) > MOST_LETTERS
    turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if is_long else {}
    ax.set_xticks(ticks, labels, parse_math=False, **turned)
    ax.xaxis.get_major_formatter().set_offset_string(power)


def _shares(numbers: np.ndarray) -> np.ndarray:
    """Colours of numbers from 0 to 1; nan where there is none."""
    if np.isnan(numbers).all():
        return numbers
    low, high = np.nanquantile(numbers, [0.05, 0.95])
    if low == high:
        low, high = np.nanmin(numbers), np.nanmax(numbers)
    if low == high:
        return np.where(np.isnan(numbers), np.nan, 0.5)
    shares: np.ndarray = np.clip((numbers - low) / (high - low), 0, 1)
    return shares


def _scatter_in_colours(
    ax: Any,
    x: np.ndarray,
    y: np.ndarray,
    cells: Cells,
    name: str,
    cmap: Any,
    style: dict[str, Any],
) -> None:
    """Draw points in the colours of cells, and what the colours mean."""
    if not (cells.words and np.isnan(cells.numbers).all()):
        _colour_bar(ax, _scatter(ax, x, y, _shares(cells.numbers), cmap, style), name)
        return
    counts = np.bincount(cells.codes[cells.codes >= 0])
    named = np.sort(np.argsort(-counts, kind="stable")[:MOST_LABELS]).tolist()
    parts = [(cells.words[code], cells.codes == code) for code in named]
    parts.append(("others", ~np.isin(cells.codes, named)))
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
    if output is not None:
        explanation = explanation.of_output(output)
    elif len(explanation.output_names) > 1:
        names = ", ".join(map(repr, explanation.output_names))
        raise ValueError(f"There are several outputs. Give output, one of {names}.")
    return explanation.compute()


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


def _name(explanation: Explanation) -> str:
    """The output in words."""
    (name,) = explanation.output_names
    return name if name == "prediction" else f"class {name}"


def _title(explanation: Explanation) -> str:
    """What values are of."""
    name = _name(explanation)
    of_output = "" if name == "prediction" else f", {name}"
    return f"SHAP value{of_output} ({explanation.unit})"
