"""Everything that ten folds ask for, against one fit of scikit-learn's.

Ours is the whole of `cross_validate`: coding, eleven fully grown trees, the accuracy of the rows
that are held out. Theirs is a single tree of the same table, without a fold and without a score.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.model_selection import KFold

from benchmarks import data
from benchmarks.cases import THREADS, Case, Contest, Scale
from benchmarks.fits.pairs import nodes, theirs
from benchmarks.validation.ratios import FOLDS, estimator_of
from dtrees.model_selection import cross_validate

ROWS = 100_000


def _everything(max_bins: int | None, scale: Scale) -> Contest:
    X, y = data.classification(scale.rows(ROWS))
    tree = estimator_of(y, 0, {"max_bins": max_bins})

    def remark(ours: dict[str, Any], theirs: Any) -> str:
        sizes = nodes(ours["final_estimator"], theirs)
        return f"the final model and theirs: {sizes}; accuracy {ours['test_score'].mean():.4f}"

    return Contest(
        lambda: cross_validate(tree, X, y, cv=KFold(FOLDS), n_jobs=THREADS),
        {"scikit-learn": lambda: theirs(X, y)},
        remark,
    )


CASES = [
    Case(
        f"everything-{name}",
        "validation",
        f"{FOLDS} folds, scores and the final model, {ROWS:,} × 30, {what}, fully grown, against "
        "one fit",
        partial(_everything, max_bins),
        1,
        2,
    )
    for name, what, max_bins in (("exact", "exact", None), ("255", "255 codes", 255))
]
