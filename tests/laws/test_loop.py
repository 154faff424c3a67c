"""Models of a cross-validation are those of the loop over `fit(X[train], y[train])`, bit for bit.

The loop knows nothing of sets: it codes the rows of each training side anew. So all is compared
that does not depend on how codes are numbered. The law is exact where a side counts in the fixed
point of all rows, up to powers of two: targets are few whole numbers, all of which each side has,
and weights are quarters. It holds for forests, too, where no bag is drawn, or where a side is the
first rows: bags are drawn by row number. Extra trees toss a coin for each code of a category, so
they have numbers only.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

import dtrees
from dtrees.coding import target as coding_target
from tests.laws.loops import Loop, check, sparse, table_of, target_of
from tests.laws.tables import CLASSIFICATION, sampled_from
from tests.laws.test_shared import SEEDS
from tests.laws.together import staying_together

some = settings(max_examples=max(16, settings.default.max_examples // 4))
fewer = settings(max_examples=max(8, settings.default.max_examples // 8))
NUMBERS = ("distinct", "ties", "counts", "mostly", "missing", "constant")
MIXED = (*NUMBERS, "categories", "many categories", "hybrid")
SPLITS = {
    "folds": lambda seed: KFold(4, shuffle=True, random_state=seed),
    "shuffled": lambda seed: ShuffleSplit(4, test_size=0.3, random_state=seed),
    "repeated": lambda seed: RepeatedKFold(n_splits=2, n_repeats=2, random_state=seed),
    "first rows": lambda seed: TimeSeriesSplit(3),
}
WEIGHTS = {
    "none": lambda rng, n_rows: None,
    "whole": lambda rng, n_rows: rng.integers(0, 3, n_rows).astype(float),
    "quarters": lambda rng, n_rows: rng.integers(0, 9, n_rows) / 4,
}
LIMITS = (
    *({}, {"max_depth": 3}, {"min_samples_leaf": 4}),
    *({"min_weight_fraction_leaf": 0.05}, {"handle_unknown": "majority"}),
)
FORESTS = ("RandomForest", "ExtraTrees", "Bagging")


@pytest.fixture(scope="module")
def grown():
    """Sets stay together, small nodes are searched by intervals, and few rows share fractions."""
    with (
        staying_together(interval_rows=40, interval_codes=30) as found,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(coding_target, "LEAST_BALANCED", 1)
        yield found


@st.composite
def loops(
    draw,
    estimators=("DecisionTree",),
    kinds=NUMBERS,
    is_sparse=False,
    splits=tuple(SPLITS),
    criteria=(*CLASSIFICATION, "squared_error", "poisson"),
    **parameters,
):
    """A `Loop` of a tree, which may draw columns, or of a forest of two.

    What few examples have to meet is chosen by a seed: hypothesis would draw the first mostly.
    """
    n_rows, seed = draw(sampled_from((60, 100, 320))), draw(SEEDS)
    choice, rng = random.Random(seed).choice, np.random.default_rng(seed)
    X = table_of(draw(st.lists(sampled_from(kinds), min_size=1, max_size=4)), n_rows, seed)
    criterion, kind = choice(criteria), choice(estimators)
    given = {"criterion": criterion, "max_bins": None, "random_state": seed % 99, **parameters}
    given |= draw(st.sampled_from(LIMITS))
    if kind != "DecisionTree":
        given["n_estimators"] = 2
    elif draw(st.booleans()):
        given["max_features"] = min(2, X.shape[1])
    if criterion in CLASSIFICATION:
        task, y = "Classifier", target_of(X, draw(st.integers(2, 4)), rng)
        of_label = dict(zip(np.unique(y).tolist(), (3.0, 0.5, 0.5, 2.0), strict=False))
        given["class_weight"] = choice([None, "balanced", of_label])
    else:
        task, y = "Regressor", target_of(X, 5, rng).astype(float)
    if is_sparse:
        X = sparse(X, rng)
    weight = choice(list(WEIGHTS.values()))(rng, n_rows)
    cv = SPLITS[draw(sampled_from(splits))](seed)
    return Loop(getattr(dtrees, kind + task)(**given), X, y, weight, list(cv.split(y)))


TREES = {
    "numbers": loops(),
    "categories": loops(kinds=MIXED),
    "sparse": loops(is_sparse=True),
    "medians": loops(kinds=MIXED, criteria=("absolute_error",)),
}
FOREST_LOOPS = {
    "numbers": loops(FORESTS, bootstrap=False),
    "categories": loops(("RandomForest", "Bagging"), MIXED, bootstrap=False),
    "sparse": loops(FORESTS, is_sparse=True, bootstrap=False),
    "bags": loops(FORESTS, splits=("first rows",), bootstrap=True),
}


@pytest.fixture(scope="module")
def work():
    """What the examples of each law have shared, all of which share some."""
    found = defaultdict(Counter)
    yield found
    for law, counts in found.items():
        assert (counts["shared"] > 0) == ("medians" not in law)
        assert (counts["bounded"] > 0) == (law in ("trees, numbers", "trees, categories"))


@pytest.mark.parametrize("of", TREES)
@some
@given(data=st.data())
def test_trees(of, data, grown, work):
    loop = data.draw(TREES[of])
    assume(loop.is_exact())
    work[f"trees, {of}"].update(check(loop, grown))


@pytest.mark.parametrize("of", FOREST_LOOPS)
@fewer
@given(data=st.data())
def test_forests(of, data, grown, work):
    loop = data.draw(FOREST_LOOPS[of])
    assume(loop.is_exact())
    work[f"forests, {of}"].update(check(loop, grown))
