"""[SP] figure 6: sparse against dense over the density of random numbers."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import data
from benchmarks.cases import Case, Page, Scale, Survey, Table
from benchmarks.papers import drawing
from benchmarks.papers.figures import SP_CROSSING
from benchmarks.papers.storage import OTHER, OWN, Pair, check_same, other, own, pair

DENSITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
ROWS, THEIR_ROWS, COLUMNS, DEPTH = 40_000, 4_000, 1_000, 20
TURNS, BUDGET = 3, 3.0  # of a point, seconds
PAGE = Page(
    "sp-density",
    "[SP] figure 6: sparse against dense over the density",
    "F. Hedayati, A. Joly, P. Papadimitriou (2016), 4.3: uniform random numbers at random places, "
    f"random classes, trees of depth {DEPTH}. The paper has 100,000 × 1,000; the figure is two "
    f"curves without numbers, which cross at a density of {SP_CROSSING}. Ours are {ROWS:,} × "
    f"{COLUMNS:,}; scikit-learn's sides have the first {THEIR_ROWS:,} rows, since more take it "
    "minutes. Processor time of one thread, coding included; own sparse and own dense trees are "
    "checked to be the same, node by node.",
)
TABLE = Table(
    (
        "density",
        f"{OWN}: sparse, s",
        "dense, s",
        "dense / sparse",
        f"{OTHER}, {THEIR_ROWS:,} rows: sparse, s",
        "dense, s",
        "dense / sparse",
        "faster in [SP]",
    ),
)
Found = dict[float, tuple[Pair, Pair]]


def _lines(scale: Scale, found: Found) -> Iterator[tuple[str, ...]]:
    columns = scale.rows(COLUMNS)
    for density in DENSITIES[::3] if scale.quick else DENSITIES:
        X, y = data.random_sparse(scale.rows(ROWS), columns, density)
        part, few = X[: scale.rows(THEIR_ROWS)].tocsc(), y[: scale.rows(THEIR_ROWS)]
        X, array = X.tocsc(), X.toarray()
        turns = 1 if scale.quick else TURNS
        ours, models = pair(own, X, array, y, DEPTH, turns, BUDGET)
        check_same(*models)
        del X, array, models
        theirs, _ = pair(other, part, part.toarray(), few, DEPTH, 1, BUDGET)
        found[density] = ours, theirs
        yield (
            f"{density:g}",
            *(f"{seconds:.2f}" for seconds in ours),
            f"{ours.gain:.1f}",
            *(f"{seconds:.2f}" for seconds in theirs),
            f"{theirs.gain:.1f}",
            "sparse"
            if density < SP_CROSSING
            else "at the crossing"
            if density == SP_CROSSING
            else "dense",
        )


def crossing(gains: dict[float, float]) -> str:
    """Where the array becomes the better one."""
    above = [density for density, gain in gains.items() if gain > 1]
    if len(above) == len(gains):
        return f"the sparse side is the better one up to {max(gains):g}, where this ends"
    below = [density for density, gain in gains.items() if gain <= 1]
    if not above:
        return f"the array is the better one from {min(gains):g} on"
    return f"the sparse side is the better one up to {max(above):g}, not at {min(below):g}"


def _findings(found: Found) -> str:
    ours = {density: pair[0].gain for density, pair in found.items()}
    theirs = {density: pair[1].gain for density, pair in found.items()}
    return (
        f"**What agrees.** The gain falls with the density, from {max(ours.values()):.1f} times "
        f"for dtrees and {max(theirs.values()):.1f} for scikit-learn. With dtrees "
        f"{crossing(ours)}; with scikit-learn {crossing(theirs)}; in the paper they cross at "
        f"{SP_CROSSING}. **What does not** is where: an array has to be coded cell by cell, "
        "zeros included, and the sparse side has fewer cells to do this with at any density below "
        "one; the paper's dense side reads the array as it is."
    )


def _picture(found: Found) -> bytes:
    figure, axes = drawing.canvas(6.0, 3.4)
    for place, side, color in ((0, OWN, drawing.OURS), (1, OTHER, drawing.SERIAL)):
        gains = [each[place].gain for each in found.values()]
        axes.plot([*found], gains, color=color, marker="o", markersize=4, label=side)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.axvline(SP_CROSSING, color=drawing.PAPER, linestyle=":", label="crossing in [SP]")
    drawing.plain(axes, "Seconds of the array / of the sparse matrix", "density", "times")
    drawing.logarithmic(axes.xaxis)
    drawing.logarithmic(axes.yaxis)
    axes.set_xticks([*found], [f"{density:g}" for density in found])
    drawing.legend(axes)
    return drawing.png(figure)


def _survey(scale: Scale) -> Survey:
    found: Found = {}
    return Survey(
        TABLE,
        lambda: _lines(scale, found),
        lambda: _picture(found),
        lambda: _findings(found),
    )


CASES = [
    Case(
        "sp-density",
        "papers",
        "[SP] figure 6: sparse against dense over the density",
        _survey,
        page=PAGE,
    )
]
