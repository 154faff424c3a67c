"""Small tables of every kind of column, and the models of their folds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, export_text
from dtrees.model_selection import cross_validate
from tests.oracle.agreement import agreement, nested


def table(seed: int, n_rows: int = 60, *, regression: bool = False):
    """Numbers, with ties, with missing values; categories, with missing values; both in one."""
    rng = np.random.default_rng(seed)
    ties = rng.integers(0, 5, n_rows).astype(float)
    gaps = np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows))
    letters = rng.choice(list("abcdef"), n_rows).astype(object)
    holes = np.where(rng.random(n_rows) < 0.2, None, rng.choice(list("xyz"), n_rows).astype(object))
    hybrid = np.array([*rng.integers(0, 4, n_rows)], dtype=object)
    hybrid[rng.random(n_rows) < 0.4] = "none"
    frame = pd.DataFrame(
        {"ties": ties, "gaps": gaps, "letters": letters, "holes": holes, "hybrid": hybrid}
    )
    signal = ties + np.nan_to_num(gaps) + (letters < "c") * 2 + (holes == "x") + (hybrid == "none")
    noisy = signal + rng.normal(size=n_rows)
    return frame, noisy if regression else np.digitize(noisy, np.quantile(noisy, [0.4, 0.7]))


def fold_models(seed: int, *, regression: bool = False, n_folds: int = 4, **limits):
    """The models of the folds, and the final one."""
    X, y = table(seed, regression=regression)
    kind = DecisionTreeRegressor if regression else DecisionTreeClassifier
    found = cross_validate(kind(**limits), X, y, cv=KFold(n_folds), return_estimator=True)
    return found["estimator"], found["final_estimator"]


def report(table, y, *, kind=DecisionTreeClassifier, **options):
    return export_text(kind(max_depth=1).fit(table, y), **options)


def colours(n, left):
    """A table of n categories twice, and a target that tells the first of them from the others."""
    names = [f"c{i:03d}" for i in range(n)]
    return pd.DataFrame({"colour": names * 2}), ([0] * left + [1] * (n - left)) * 2


def lines(*text):
    return "\n".join(text) + "\n"


def chain(*thresholds):
    """A stump for each threshold, of a table with one column of 0, 1, ..., 9."""
    X = np.arange(10.0)[:, None]
    return [DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0] > t) for t in thresholds]


def expected_levels(models, reference):
    """The levels of a report, from the oracle; several trees of a model are a list."""
    shared, tests, n_rows = {}, {}, 0
    for trees, mine in zip(zip(*models, strict=True), reference, strict=True):
        root = nested(mine)
        n_rows += root["rows"]
        more_shared, more_tests = agreement([nested(tree) for tree in trees], root)
        for depth, n in more_shared.items():
            shared[depth] = shared.get(depth, 0) + n
        for depth, numbers in more_tests.items():
            tests.setdefault(depth, []).extend(numbers)
    n_trees = len(reference)
    for depth in sorted(tests):
        rows, column, same = np.array(tests[depth]).T
        yield {
            "depth": depth,
            "n_tests": len(rows) / n_trees,
            "row_share": sum(rows) / n_rows,
            "n_shared_nodes": shared[depth] / n_trees,
            "same_column": np.average(column, weights=rows),
            "least_same_column": min(column),
            "same_test": np.average(same, weights=rows),
            "least_same_test": min(same),
        }


def assert_levels(report, expected):
    found = report.to_dict()["levels"]
    expected = list(expected)
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        assert mine == pytest.approx(other)


SEEDS = st.integers(0, 2**32 - 1)
