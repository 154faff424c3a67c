"""The slow tree itself: it says what scikit-learn says, and its category order is optimal."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from dtrees.coding.target import Target
from tests.laws.tables import CLASSIFICATION, examples
from tests.oracle.candidates import candidates, categories_of
from tests.oracle.criterion import FLOAT_ERROR, RowStatistics
from tests.oracle.tree import Rules, oracle_fit


def preorder(node: dict):
    yield node
    if "left" in node:
        yield from preorder(node["left"])
        yield from preorder(node["right"])


@pytest.mark.one_of(8)
@pytest.mark.parametrize(
    ("criterion", "weighted"),
    [
        *product(["gini", "entropy", "squared_error", "poisson"], [False, True]),
        ("absolute_error", True),  # without weights, many splits tie
    ],
)
@pytest.mark.parametrize(
    "limits",
    [{}, {"max_depth": 3}, {"min_samples_leaf": 4}, {"min_samples_split": 9},
     {"min_impurity_decrease": 0.02}],
)  # fmt: skip
def test_scikit_learn(criterion, weighted, limits):
    # One column: within a column scikit-learn breaks ties by order, as we do.
    rng = np.random.default_rng(5)
    x = rng.normal(size=45).astype(np.float32).astype(np.float64)
    weight = rng.integers(1, 1000, 45) / 256 if weighted else None  # sums are exact
    if criterion in CLASSIFICATION:
        y = (np.sin(3 * x) + rng.normal(size=45)).round().clip(-1, 1).astype(int)
        target, model = Target.classification(y, weight), DecisionTreeClassifier
    else:
        y = rng.gamma(2.0, size=45) + (x > 0)
        target = Target.regression(y, weight, center=criterion != "poisson")
        model = DecisionTreeRegressor
    theirs = model(criterion=criterion, random_state=0, **limits).fit(x[:, None], y, weight).tree_
    ours = list(preorder(oracle_fit([x.tolist()], target, Rules(criterion, **limits))))
    assert len(ours) == theirs.node_count
    for i, node in enumerate(ours):
        assert node["n"] == theirs.n_node_samples[i]
        assert ("left" in node) == (theirs.children_left[i] >= 0)
        np.testing.assert_allclose(node["value"], theirs.value[i, 0], rtol=1e-9)
        assert node["impurity"] == pytest.approx(theirs.impurity[i], rel=1e-9, abs=1e-9)
        if "left" in node:
            assert node["threshold"] == theirs.threshold[i]


@given(
    examples(
        kinds=("categories",),
        criteria=("gini", "entropy", "squared_error"),
        max_values=6,
        max_rows=20,
        limits=False,
    )
)
def test_order_of_means_is_optimal(example):
    """[CT], Fisher 1958: some prefix of the categories by mean is the best of all subsets.

    Not so for the Poisson deviance where categories without any target are a prefix that is not
    permitted.
    """
    statistics = RowStatistics(example.target, example.criterion)
    if statistics.is_classification and statistics.n_parts > 2:
        return  # all subsets are tried
    rows = statistics.rows()
    whole = statistics.sums(rows)
    column = example.table[0]
    found = candidates([column], rows, statistics, Rules(example.criterion))
    best = max((statistics.gain(whole, c.sums) for c in found), default=None)
    present = categories_of([column[i] for i in rows])
    for k in range(1, len(present) + 1):
        for subset in combinations(present, k):
            for missing in (set(), {None}):
                left = [i for i in rows if column[i] in set(subset) | missing]
                sums = statistics.sums(left)
                rest = statistics.minus(whole, sums)
                if 0 < len(left) < len(rows) and statistics.allows(sums, rest):
                    gain = statistics.gain(whole, sums)
                    assert best is not None
                    error = 2 * FLOAT_ERROR * max(1.0, abs(float(best)))
                    assert float(gain - best) <= error
