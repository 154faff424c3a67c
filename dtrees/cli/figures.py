"""The pictures of a report, as text of SVG; the only module of the command line that draws.

A picture is drawn twice, for light and for dark screens: `Picture.dark` is None where one does for
both. Text stays text: a browser that lacks the font of the drawing takes one that is not wider.
Nothing is shown, so there is no window system to be asked for one.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dtrees.model_selection import BoostingCurve, CostComplexity, ValidationSurface

BLUE, ORANGE = "C0", "C1"  # of the theme
THEMES = {  # text, lines, behind the pictures (as in the page), blue, orange
    "light": ("#1c2733", "#c9d1da", "#ffffff", "#2f6fb3", "#d9791f"),
    "dark": ("#dfe6ee", "#46525f", "#1b222b", "#5b95d2", "#f0a04b"),
}
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # in XML
LETTERS = 30  # of a name
SHARED_LEVELS = 3


@dataclass(frozen=True)
class Picture:
    """A picture in SVG."""

    light: str
    dark: str | None  # None: one for both
    alt: str  # what it tells, in words


def fold_picture(scores: Sequence[float], mean: float, error: float, name: str) -> Picture:
    """Scores of the folds on a line, and their mean with its standard error."""

    def draw(ax: Axes) -> None:
        ax.axvspan(mean - error, mean + error, color=BLUE, alpha=0.22, linewidth=0)
        ax.axvline(mean, color=BLUE, linewidth=1.5)
        height = np.linspace(0.85, 0.15, len(scores))
        ax.plot(scores, height, "o", color=ORANGE, markersize=6, linestyle="none")
        if len(scores) <= 30:
            for fold, (score, y) in enumerate(zip(scores, height, strict=True), start=1):
                ax.annotate(
                    str(fold), (score, y), (6, 0), textcoords="offset points", va="center", size=8
                )
        ax.set(ylim=(0, 1), yticks=[], xlabel=name)
        ax.spines[["left", "right", "top"]].set_visible(False)

    alt = (
        f"{name} of {len(scores)} folds: from {min(scores):.4f} to {max(scores):.4f}, mean "
        f"{mean:.4f} with standard error {error:.4f}"
    )
    return _picture(draw, (5.4, 3.0), alt)


def importance_picture(
    names: Sequence[str], final: np.ndarray, mean: np.ndarray, deviation: np.ndarray
) -> Picture:
    """Importances of some columns as bars, and over the folds as mean and standard deviation."""

    def draw(ax: Axes) -> None:
        y = np.arange(len(names))[::-1]
        ax.barh(y, final, color=BLUE, height=0.6, label="model on all rows")
        ax.errorbar(
            mean,
            y,
            xerr=deviation,
            fmt="o",
            color=ORANGE,
            markersize=4,
            capsize=3,
            label="folds: mean ± standard deviation",
        )
        ax.set_yticks(y, [short(name, LETTERS) for name in names])
        for label in ax.get_yticklabels():
            label.set_parse_math(False)
        ax.set(xlabel="importance", xlim=(min(0.0, float((mean - deviation).min())), None))
        ax.spines[["right", "top"]].set_visible(False)
        ax.legend(loc="lower right", fontsize="small", frameon=False)

    told = ", ".join(f"{name} {share:.3f}" for name, share in zip(names, final, strict=True))
    return _picture(draw, (5.4, 1.1 + 0.3 * len(names)), f"Importances of columns: {told}")


def surface_picture(surface: ValidationSurface) -> Picture:
    """The validation surface."""
    best, simple = surface.best, surface.one_standard_error
    alt = (
        f"Mean {surface.scoring} over max_depth and min_samples_split: best at depth "
        f"{best['max_depth']} with {best['min_samples_split']} rows, one standard error at depth "
        f"{simple['max_depth']} with {simple['min_samples_split']} rows"
    )
    return _picture(lambda ax: surface.plot(ax), (5.4, 4.4), alt)


def path_picture(path: CostComplexity) -> Picture:
    """Errors along cost-complexity pruning."""
    steps = path.best_index, path.one_standard_error_index
    best, simple = (f"{path.n_leaves[s]:,} leaves, {path.errors[s]:.4g}" for s in steps)
    alt = f"Error over leaves of the pruned tree: least at {best}; one standard error at {simple}"
    return _picture(lambda ax: path.plot(ax), (5.4, 4.0), alt)


def curve_picture(curve: BoostingCurve) -> Picture:
    """Scores over the iterations of boosted models."""
    from dtrees.model_selection.plots import shown_scores

    steps, (shown, what) = (curve.best, curve.one_standard_error), shown_scores(curve)
    best, simple = (f"{n:,} iterations, {shown[n - 1].mean():.4g}" for n in steps)
    what = what if curve.scoring == "loss" else f"mean {what}"
    alt = f"{what.capitalize()} over iterations: best after {best}; one standard error at {simple}"
    return _picture(lambda ax: curve.plot(ax), (5.4, 4.0), alt)


def shared_forest_picture(models: Sequence[Any]) -> Picture:
    """The trees of the folds laid upon each other; on white, as its colours are shades of it."""
    from dtrees.inspection import plot_shared_forest

    with _drawing("light"):
        from matplotlib import pyplot

        figure: Any = plot_shared_forest(models, max_depth=SHARED_LEVELS, min_share=0.25).figure
        svg = _svg_of(figure)
        pyplot.close(figure)
    alt = (
        f"The first levels of the {len(models)} trees of the folds, laid upon each other: the "
        "darker a box, the more of them ask it"
    )
    return Picture(svg, None, alt)


def short(name: str, letters: int) -> str:
    """A name of at most so many letters."""
    return name if len(name) <= letters else name[: letters - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _picture(draw: Callable[[Axes], Any], size: tuple[float, float], alt: str) -> Picture:
    svgs = []
    for theme in THEMES:
        with _drawing(theme):
            from matplotlib.figure import Figure

            figure = Figure(figsize=size, layout="constrained")
            draw(figure.add_subplot())
            svgs.append(_svg_of(figure))
    return Picture(svgs[0], svgs[1], alt)


@contextmanager
def _drawing(theme: str) -> Iterator[None]:
    """Colours of a theme whatever the user's are, no window, no word on letters that lack."""
    import matplotlib
    import matplotlib.style
    from cycler import cycler

    matplotlib.use("agg")
    ink, line, place, *colours = THEMES[theme]
    style: Any = {
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), ink),
        **dict.fromkeys(("xtick.color", "ytick.color", "axes.edgecolor"), line),
        **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), ink),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), place),
        "axes.prop_cycle": cycler(color=colours),
        "legend.edgecolor": line,
        "svg.fonttype": "none",
        "svg.hashsalt": "dtrees",
        "savefig.dpi": 144,
    }
    with matplotlib.style.context(["default", style]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _svg_of(figure: Any) -> str:
    """A figure as an SVG element."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    svg = FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", stream.getvalue())
    return svg[svg.index("<svg") :]
