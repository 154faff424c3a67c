"""Random sparse tables of [SP] 4: 100,000 × 1,000, two classes, depth 20.

scikit-learn grows the same tree from a sparse matrix and from an array, at very different cost; the
better of the two counts. Both take minutes at the higher densities, so each runs once, in a process
of its own, and the second is stopped when it takes longer than the first.
"""

from functools import partial

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.fits.pairs import nodes, ours, theirs

ROWS, COLUMNS, DEPTH = 100_000, 1_000, 20
REACH = {0.01: 6, 0.05: 4, 0.2: 3, 0.5: 3}


def _fit(density: float, scale: Scale) -> Contest:
    X, y = data.random_sparse(scale.rows(ROWS), COLUMNS, density)
    by_column, array = X.tocsc(), X.toarray()
    opponents = {
        "scikit-learn, sparse": lambda: theirs(by_column, y, max_depth=DEPTH),
        "scikit-learn, dense": lambda: theirs(array, y, max_depth=DEPTH),
    }
    if density > 0.1:  # the likely winner first
        opponents = dict(reversed(opponents.items()))
    return Contest(lambda: ours(by_column, y, max_depth=DEPTH), opponents, nodes, race=True)


CASES = [
    Case(
        f"sparse-{density}",
        "fits",
        f"random sparse 100,000 × 1,000, density {density}, depth {DEPTH}",
        partial(_fit, density),
        reach,
        repeats=3,
    )
    for density, reach in REACH.items()
]
