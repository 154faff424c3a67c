"""AdaBoost over stumps on text, which [SP] 1 and 4.2 name as what shallow trees are for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier

from benchmarks import data
from benchmarks.cases import Case, Page, Scale, Survey, Table
from benchmarks.measure import in_turns
from benchmarks.papers import drawing
from benchmarks.papers.sides import CLOCK
from benchmarks.papers.storage import OTHER, OWN, other, own

ROUNDS = (5, 10, 20, 40)
TURNS, BUDGET = 3, 12.0  # of a point, seconds
PAGE = Page(
    "stumps",
    "AdaBoost over stumps on text",
    "[SP] 4.2: decision trees are shallow as used in boosting, where the gain of sparse input is "
    "the greatest; the paper gives no time for boosting itself. scikit-learn's "
    "`AdaBoostClassifier` over a tree of depth 1, ours or scikit-learn's: 20 newsgroups, the train "
    "part as tf-idf, groups under `comp` against all others. Each round is a whole fit with new "
    "weights; ours codes the table in each. Processor time of one thread; the accuracy is that of "
    "the test part.",
)
TABLE = Table(
    (
        "rounds",
        f"over {OWN}, s",
        f"over {OTHER}, s",
        "ratio",
        f"accuracy over {OWN}",
        f"over {OTHER}",
    ),
)
Found = dict[int, tuple[float, float]]


def _text(scale: Scale) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    X, y = data.real("newsgroups20")
    n = data.loader().train_rows("newsgroups20")
    T = data.loader().tfidf(X, n).astype(np.float32)
    classes = np.char.startswith(y.astype(str), "comp.").astype(int)
    step = 20 if scale.quick else 1
    return T[:n:step].tocsc(), classes[:n:step], T[n::step], classes[n::step]


def _lines(
    tables: tuple[Any, np.ndarray, Any, np.ndarray], scale: Scale, found: Found
) -> Iterator[tuple[str, ...]]:
    X, y, X_test, y_test = tables
    for rounds in (3,) if scale.quick else ROUNDS:
        sides = [
            AdaBoostClassifier(tree(y, 1), n_estimators=rounds, random_state=0)
            for tree in (own, other)
        ]
        works = [lambda boosted=boosted: boosted.fit(X, y) for boosted in sides]
        (ours, theirs), _ = in_turns(works, 1 if scale.quick else TURNS, BUDGET, CLOCK)
        found[rounds] = ours, theirs
        scores = (f"{boosted.score(X_test, y_test):.4f}" for boosted in sides)
        yield (str(rounds), f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f}", *scores)


def _findings(found: Found) -> str:
    most = max(found)
    ours, theirs = found[most]
    return (
        f"{most} rounds take {ours:.1f} s over ours and {theirs:.1f} s over scikit-learn's, "
        f"{theirs / ours:.1f} times. A stump is the least that a tree can do with a coded table: "
        "one pass over its stored cells, after a coding of all of them, and checks and a copy by "
        "`AdaBoostClassifier` on both sides. A full tree on the same table shares the coding among "
        "thousands of nodes, which is why its ratio is so much greater. Boosting that codes once "
        "and grows every stump from these codes is not a matter of the tree."
    )


def _picture(found: Found) -> bytes:
    figure, axes = drawing.canvas(5.6, 3.0)
    for side, name, color in ((0, OWN, drawing.OURS), (1, OTHER, drawing.SERIAL)):
        values = [each[side] for each in found.values()]
        axes.plot([*found], values, color=color, marker="o", markersize=4, label=f"over {name}")
    axes.set_ylim(0, 1.1 * max(map(max, found.values())))
    axes.set_xticks([*found])
    drawing.plain(axes, "AdaBoost over stumps on 20 newsgroups", "rounds", "s")
    drawing.legend(axes)
    return drawing.png(figure)


def _survey(scale: Scale) -> Survey:
    tables = _text(scale)
    found: Found = {}
    return Survey(
        TABLE,
        lambda: _lines(tables, scale, found),
        lambda: _picture(found),
        lambda: _findings(found),
    )


CASES = [
    Case(
        "stumps",
        "papers",
        "AdaBoost over stumps on text: scikit-learn's over our tree and over its own",
        _survey,
        page=PAGE,
    )
]
