"""[SP] figures 2 and 4: sparse against dense over the depth, on text and on one-hot categories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.preprocessing import OneHotEncoder

from benchmarks import data
from benchmarks.cases import Case, Page, Scale, Survey, Table
from benchmarks.papers import drawing
from benchmarks.papers.figures import SP_FIGURE_2, SP_FIGURE_3
from benchmarks.papers.storage import OTHER, OWN, Pair, check_same, other, own, pair

DEPTHS = (1, 2, 5, 10, 20, None)
TURNS, BUDGET = 3, 4.0  # of a point, seconds
TEXT_ROWS, TEXT_COLUMNS = 3_000, 25_000
PAGE = Page(
    "sp-depth",
    "[SP] figures 2 and 4: sparse against dense over the depth",
    "F. Hedayati, A. Joly, P. Papadimitriou: Scalable Learning of Tree-Based Models on Sparsely "
    "Representable Data (2016). The paper compares scikit-learn's tree on a sparse matrix with the "
    "same tree on the array; figures 2 to 5 are curves without numbers, of which the text says: "
    f"20 newsgroups (figure 2) from {SP_FIGURE_2['full']:.0f} times for a full tree to "
    f"{SP_FIGURE_2['1']:.0f} for a stump; adult one-hot (figure 4) about twice as fast when "
    "shallow and slower when full. Both of its sides and both of ours, processor time of one "
    "thread, coding included; own sparse and own dense trees are checked to be the same, node by "
    f"node. The KDD cup set (figure 3: {SP_FIGURE_3[0]:.0f} to {SP_FIGURE_3[1]:.0f} times) and TIC "
    "(figure 5: the array is faster) cannot be had.",
)
TITLES = {
    "text": f"20 newsgroups, tf-idf, {TEXT_ROWS:,} random rows and {TEXT_COLUMNS:,} random words",
    "adult": "adult, train part, categories one-hot",
}
Found = dict[str, dict[int | None, Pair]]


def table_of(what: str) -> Table:
    """Columns of both sides."""
    note = (
        "As an array all of the train part would be 5.9 GB, so this is a part of the same density. "
        if what == "text"
        else ""
    )
    return Table(
        (
            f"{TITLES[what]}: depth",
            "nodes",
            f"{OWN}: sparse, ms",
            "dense, ms",
            "dense / sparse",
            f"{OTHER}: sparse, ms",
            "dense, ms",
            "dense / sparse",
            "[SP], dense / sparse",
            f"sparse: {OTHER} / {OWN}",
        ),
        note + "Medians of turns side by side.",
    )


def text(scale: Scale) -> tuple[Any, np.ndarray]:
    """Part of the text, by column."""
    X, y = data.real("newsgroups20")
    n = data.loader().train_rows("newsgroups20")
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(n, scale.rows(TEXT_ROWS), replace=False))
    columns = np.sort(rng.choice(X.shape[1], scale.rows(TEXT_COLUMNS), replace=False))
    T = data.loader().tfidf(X, n)
    return T[rows][:, columns].astype(np.float32).tocsc(), y[rows]


def adult(scale: Scale) -> tuple[Any, np.ndarray]:
    """Numbers, and a column for each category."""
    X, y = data.real("adult")
    rows = slice(0, data.loader().train_rows("adult"), 50 if scale.quick else 1)
    X, y = X.iloc[rows], y[rows]
    categorical = X.select_dtypes("category").astype(str)
    codes = OneHotEncoder(dtype=np.float32).fit_transform(categorical)
    numbers = scipy.sparse.csr_matrix(X.select_dtypes("number").to_numpy(np.float32))
    return scipy.sparse.hstack([numbers, codes]).tocsc(), y


def of_paper(what: str, depth: int | None) -> str:
    """What the text of the paper says."""
    if what == "text":
        return {1: f"{SP_FIGURE_2['1']:.0f}", None: f"{SP_FIGURE_2['full']:.0f}"}.get(depth, "")
    return {1: "about 2", None: "below 1"}.get(depth, "")


def _lines(what: str, X: Any, y: np.ndarray, turns: int, found: Found) -> Iterator[tuple[str, ...]]:
    array = X.toarray()
    for depth in DEPTHS if turns > 1 else DEPTHS[::5]:
        ours, models = pair(own, X, array, y, depth, turns, BUDGET)
        check_same(*models)
        theirs, _ = pair(other, X, array, y, depth, 1 if what == "text" else turns, BUDGET)
        found[OWN][depth], found[OTHER][depth] = ours, theirs
        yield (
            "full" if depth is None else str(depth),
            f"{models[0].tree_.node_count:,}",
            *(f"{1e3 * seconds:,.1f}" for seconds in ours),
            f"{ours.gain:.1f}",
            *(f"{1e3 * seconds:,.1f}" for seconds in theirs),
            f"{theirs.gain:.1f}",
            of_paper(what, depth),
            f"{theirs.sparse / ours.sparse:.1f}",
        )


def _findings(what: str, density: float, found: Found) -> str:
    ours, theirs = found[OWN], found[OTHER]
    shallow, full = ours[1].gain, ours[None].gain
    words = (
        f"Density {density:.4f}. Dense / sparse falls from {shallow:.1f} for a stump to "
        f"{full:.1f} for a full tree with dtrees, and from {theirs[1].gain:.1f} to "
        f"{theirs[None].gain:.1f} with scikit-learn. "
    )
    if what == "text":
        return (
            f"{words}**What agrees.** On text the array is many times as dear at every depth, with "
            "dtrees most of all for shallow trees. **What does not.** scikit-learn's own factors "
            "are smaller than in the paper, with a quarter of its rows and a later release. Ours "
            "are of coding: an array of zeros is read and coded cell by cell, which takes most of "
            "a dense fit at any depth; from the codes both grow at about the same price."
        )
    better = [str(depth or "full") for depth, each in ours.items() if each.gain > 1]
    return (
        f"{words}**What agrees.** The factors are small, fall with the depth, and scikit-learn's "
        "cross one as in the paper. **What does not.** With dtrees the sparse side is the better "
        f"one at {len(better)} of {len(ours)} depths: what falls with the depth is the share of "
        "coding, which is dearer from an array, while growth costs about the same from both."
    )


def _picture(what: str, found: Found) -> bytes:
    figure, axes = drawing.canvas(6.4, 3.4)
    names = ["full" if depth is None else str(depth) for depth in found[OWN]]
    for side, color in ((OWN, drawing.OURS), (OTHER, drawing.SERIAL)):
        for which, style in ((0, "-"), (1, "--")):
            values = [1e3 * each[which] for each in found[side].values()]
            label = f"{side}, {'dense' if which else 'sparse'}"
            axes.plot(names, values, style, color=color, marker="o", markersize=4, label=label)
    drawing.plain(axes, TITLES[what], "depth", "ms")
    drawing.logarithmic(axes.yaxis)
    drawing.legend(axes, 2)
    return drawing.png(figure)


def _survey(what: str, scale: Scale) -> Survey:
    makers: dict[str, Callable[[Scale], tuple[Any, np.ndarray]]] = {"text": text, "adult": adult}
    X, y = makers[what](scale)
    found: Found = {OWN: {}, OTHER: {}}
    density = X.nnz / (X.shape[0] * X.shape[1])
    return Survey(
        table_of(what),
        lambda: _lines(what, X, y, 1 if scale.quick else TURNS, found),
        lambda: _picture(what, found),
        lambda: _findings(what, density, found),
    )


CASES = [
    Case(
        f"sp-depth-{what}",
        "papers",
        f"[SP] figure {number}: sparse against dense over the depth, {words}",
        partial(_survey, what),
        page=PAGE,
    )
    for what, number, words in (
        ("text", 2, "20 newsgroups"),
        ("adult", 4, "adult one-hot"),
    )
]
