"""What the pictures of the papers' pages have in common."""

from __future__ import annotations

import io
from typing import Any

from benchmarks.cases import Skipped

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


def legend(axes: Any, **given: Any) -> None:
    """A legend without a frame."""
    axes.legend(frameon=False, fontsize=8.5, **given)


def png(figure: Any) -> bytes:
    """A small PNG."""
    import PIL.Image  # matplotlib's

    out, small = io.BytesIO(), io.BytesIO()
    figure.savefig(out, format="png", dpi=160)
    PIL.Image.open(out).convert("RGB").quantize(64).save(small, format="png", optimize=True)
    return small.getvalue()
