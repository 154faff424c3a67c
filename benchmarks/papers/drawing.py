"""What the pictures of the papers' pages have in common."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from benchmarks.cases import Skipped
from benchmarks.papers.sides import interval

OURS, SERIAL, PAPER = "#0b62a4", "#727c85", "#c4561b"
LIGHT = ("#0b62a4", "#7fb3d5", "#c9ced2", "#d9a27e")


def canvas(width: float, height: float, columns: int = 1, rows: int = 1) -> tuple[Any, Any]:
    """A figure and its axes, an array where there are several. Raises Skipped."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Skipped("matplotlib is not installed") from error
    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def plain(axes: Any, title: str = "", x: str = "", y: str = "") -> None:
    """No frame, a light grid."""
    axes.set_title(title, loc="left", fontsize=9.5, color="0.2")
    axes.set_xlabel(x, fontsize=9, color="0.35")
    axes.set_ylabel(y, fontsize=9, color="0.35")
    axes.tick_params(length=0, labelsize=8.5, labelcolor="0.3")
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("0.7")


def names_below(axes: Any, names: list[str]) -> None:
    """Names of data sets below bars."""
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")


def legend(axes: Any, n_columns: int = 3) -> None:
    """A legend below the axes, where nothing is drawn."""
    handles, labels = axes.get_legend_handles_labels()
    look = {"frameon": False, "fontsize": 8.5, "handlelength": 3.0}
    axes.figure.legend(handles, labels, loc="outside lower left", ncols=n_columns, **look)


def logarithmic(axis: Any) -> None:
    """A logarithmic scale with plain numbers: 0.1, 1, 10, 1,000."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    subs = (1.0,) if high > 100 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())
    axis.axes.tick_params(which="minor", length=0)


def thousands(axis: Any) -> None:
    """Whole numbers with commas."""
    from matplotlib.ticker import StrMethodFormatter

    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def gains(found: Mapping[int, Mapping[str, float]], unit: str, what: str) -> bytes:
    """Curves of several data sets over a number: each of them, their mean and its 90 % interval."""
    figure, axes = canvas(6.0, 3.4)
    points = [*found]
    for name in next(iter(found.values())):
        axes.plot(points, [found[p][name] for p in points], color="0.82", linewidth=1)
    spread = [interval([*each.values()]) for each in found.values()]
    means, halves = zip(*spread, strict=True)
    axes.errorbar(points, means, halves, color=OURS, capsize=4, marker="o")
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.set_xticks(points)
    axes.set_ylim(0)
    plain(axes, f"{what}: mean and 90 % interval; grey: each set", unit, "times")
    return png(figure)


def png(figure: Any) -> bytes:
    """A small PNG."""
    import PIL.Image  # matplotlib's

    out, small = io.BytesIO(), io.BytesIO()
    figure.savefig(out, format="png", dpi=160)
    PIL.Image.open(out).convert("RGB").quantize(64).save(small, format="png", optimize=True)
    return small.getvalue()
