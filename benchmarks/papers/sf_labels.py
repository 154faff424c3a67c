"""[SF] 3, label split: beside the ordinary split of a regression, by a prototype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import t

from benchmarks import data
from benchmarks.cases import Case, Scale, Skipped, Survey, Table
from benchmarks.measure import timed
from benchmarks.papers import drawing
from benchmarks.papers.label_split import LEAST, ends, grow, n_kept, tuned
from benchmarks.papers.sf_tables import PAGE
from benchmarks.papers.sides import CLOCK
from benchmarks.papers.tables import rows_of
from dtrees import DecisionTreeRegressor

RUNS, ROWS = 40, 6_000  # ten parts say too little: docs/development/decisions/0011
LEAVES = (1, 2, 3, 5, 7, 10, 15, 20, 30)
NAMES = ("bike_sharing_hour", "california_housing", "abalone", "nycflights_33k")
TABLE = Table(
    (
        "data set",
        "rows",
        "RMSE: ordinary",
        "label split",
        "difference",
        "leaf chosen",
        "MAE: ordinary",
        "label split",
        "difference",
        "leaf chosen",
        "nodes, tuned: ordinary",
        "label split",
        "growth: label / ordinary",
    ),
    f"The label split of [SF] (algorithm 6) as a prototype in NumPy. Means of {RUNS} random parts "
    f"of at most {ROWS:,} rows, 80 % to grow until nodes have fewer than {LEAST} rows, 10 % to "
    "choose depth and `min_samples_split`, 10 % to score. Categories are ordinal codes on both "
    "sides. *Difference*: of the label split, with its standard error over the parts; less is "
    "better. *Leaf chosen*: the difference of a fit of dtrees, the ordinary split, whose "
    f"`min_samples_leaf` is chosen among {', '.join(map(str, LEAVES))} by the same rows.",
)


def run(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """RMSE, MAE, nodes and seconds: ordinary, label split, ordinary by leaf; (3, 4)."""
    order = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    n = len(order) // 10
    test, held, train = order[:n], order[n : 2 * n], order[2 * n :]
    found = []
    for by_label in (False, True):
        seconds, tree = timed(
            lambda by_label=by_label: grow(X[train], y[train], by_label=by_label), CLOCK
        )
        depth, least = tuned(tree, X[held], y[held], len(train))
        said = np.array(tree.mean)[ends(tree, tree.paths(X[test]), depth, least)]
        error = said - y[test]
        rmse, mae = np.sqrt(np.mean(error**2)), np.abs(error).mean()
        found.append((rmse, mae, n_kept(tree, depth, least), seconds))
    found.append(by_leaf(X, y, train, held, test))
    return np.array(found)


def by_leaf(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, held: np.ndarray, test: np.ndarray
) -> tuple[float, float, float, float]:
    """The same of ordinary trees, whose rows of a leaf are chosen by the held-out rows."""
    seconds, trees = timed(
        lambda: [
            DecisionTreeRegressor(min_samples_leaf=least, n_jobs=1).fit(X[train], y[train])
            for least in LEAVES
        ],
        CLOCK,
    )
    errors = [np.mean((tree.predict(X[held]) - y[held]) ** 2) for tree in trees]
    best = trees[int(np.argmin(errors))]
    error = best.predict(X[test]) - y[test]
    rmse, mae = np.sqrt(np.mean(error**2)), np.abs(error).mean()
    return float(rmse), float(mae), float(best.tree_.node_count), seconds


def _lines(
    tables: dict[str, Any], runs: int, found: dict[str, np.ndarray]
) -> Iterator[tuple[str, ...]]:
    for name, (X, y) in tables.items():
        numbers = data.ordinal(X).astype(np.float64)
        results = np.stack([run(numbers, y, seed) for seed in range(runs)])
        found[name] = results
        mean = results.mean(axis=0)
        cells = []
        for side in (0, 1):
            unit = mean[0, side]
            digits = 3 if unit < 100 else 0
            cells += [f"{unit:,.{digits}f}", f"{mean[1, side]:,.{digits}f}"]
            for other in (1, 2):
                share = results[:, other, side] / results[:, 0, side] - 1
                error = share.std(ddof=1) / np.sqrt(runs) if runs > 1 else 0.0
                cells.append(f"{share.mean():+.1%} ± {error:.1%}")
        nodes = (f"{mean[k, 2]:,.0f}" for k in (0, 1))
        seconds = f"{mean[1, 3] / mean[0, 3]:.1f}"
        yield (name, f"{min(len(y), ROWS):,}", *cells, *nodes, seconds)


def better(results: np.ndarray, side: int, other: int = 0) -> float:
    """By how much the label split is better, a share of the error (negative: worse); 0: noise.

    Better than the ordinary split, or than that with chosen leaves (`other` 2). Noise is what
    Student's distribution has within 95 %, two-sided, for the parts as they are.
    """
    share = results[:, 1, side] / results[:, other, side] - 1
    if len(share) < 2:
        return 0.0
    error = share.std(ddof=1) / np.sqrt(len(share))
    mean = float(share.mean())
    return -mean if abs(mean) > t.ppf(0.975, len(share) - 1) * error else 0.0


def _findings(found: dict[str, np.ndarray]) -> str:
    words = []
    for side, what in enumerate(("RMSE", "MAE")):
        for other, than in ((0, "the ordinary split"), (2, "that with a chosen leaf")):
            gains = {name: better(results, side, other) for name, results in found.items()}
            wins = [f"{name} (by {gain:.1%})" for name, gain in gains.items() if gain > 0]
            losses = [f"{name} (by {-gain:.1%})" for name, gain in gains.items() if gain < 0]
            words.append(
                f"by {what} it is better than {than} on {', '.join(wins) or 'none'} and worse on "
                f"{', '.join(losses) or 'none'}"
            )
    return (
        f"**Label split.** Of {len(found)} sets, beyond the noise of the parts, "
        f"{'; '.join(words)}. The ordinary split looks for the test of least squared error itself; "
        "the label split for one that tells two groups of targets apart, and how far a target lies "
        "within its group no longer counts: targets far out weigh less. It is for a search that "
        "knows classes only. The library does not have it: docs/development/decisions/"
        "0011-label-split.md says why."
    )


def _picture(found: dict[str, np.ndarray]) -> bytes:
    figure, axes = drawing.canvas(6.4, 3.0)
    places = np.arange(len(found))
    for side, color, label in ((0, drawing.OURS, "RMSE"), (1, drawing.PAPER, "MAE")):
        shares = [100 * (r[:, 1, side] / r[:, 0, side] - 1) for r in found.values()]
        errors = [s.std(ddof=1) / np.sqrt(len(s)) if len(s) > 1 else 0.0 for s in shares]
        at = places + 0.4 * side - 0.2
        heights = [s.mean() for s in shares]
        axes.bar(at, heights, 0.34, yerr=errors, color=color, capsize=3, label=label)
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    drawing.plain(axes, "Label split against the ordinary split: errors (less is better)", y="%")
    axes.set_xticks(places, [*found])
    drawing.legend(axes, 2)
    return drawing.png(figure)


def _survey(scale: Scale) -> Survey:
    tables = {}
    for name in NAMES[:2] if scale.quick else NAMES:
        try:
            X, y = data.real_part(name, scale)
        except Skipped:
            continue
        tables[name] = rows_of(X, np.arange(len(y))), y
    if not tables:
        raise Skipped("none of the data sets is here")
    found: dict[str, np.ndarray] = {}
    return Survey(
        TABLE,
        lambda: _lines(tables, 1 if scale.quick else RUNS, found),
        lambda: _picture(found),
        lambda: _findings(found),
    )


CASES = [
    Case(
        "sf-tables-labels",
        "papers",
        "[SF] 3: the label split beside the ordinary split of a regression",
        _survey,
        page=PAGE,
    )
]
