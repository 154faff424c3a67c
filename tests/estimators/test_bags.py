"""Sizes of bags, and groups that are in a bag together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dtrees import (
    RandomForestClassifier,
)
from tests.estimators.forest_cases import CANCER, FORESTS, IRIS


@pytest.mark.parametrize("share", [0.1, 0.5, 40])
def test_max_samples(share):
    X, y = CANCER
    forest = RandomForestClassifier(30, random_state=0, max_samples=share).fit(X, y)
    sizes = [tree.weighted_n_node_samples[0] for tree in forest.forest_.trees]
    mean = share if share > 1 else share * len(y)
    assert np.mean(sizes) == pytest.approx(mean, rel=0.1)


def test_max_samples_needs_bootstrap():
    with pytest.raises(ValueError, match="`max_samples` cannot be set if `bootstrap=False`"):
        RandomForestClassifier(3, bootstrap=False, max_samples=0.1).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    "groups",
    [["a", None, "b", "b"], [1.0, np.nan, 2.0, 2.0], pd.array(["a", pd.NA, "b", "b"])],
    ids=["None", "nan", "NA"],
)
def test_groups_that_are_missing(groups):
    X, y = np.arange(4.0)[:, None], [0, 1, 0, 1]
    with pytest.raises(ValueError, match="bootstrap_groups holds missing values"):
        RandomForestClassifier(3).fit(X, y, bootstrap_groups=groups)


@pytest.mark.parametrize("kind", FORESTS)
def test_groups_of_another_length(kind):
    for groups in (IRIS[1][:-1], [], np.zeros((150, 2)), 3):
        forest = kind(2, bootstrap=True)
        with pytest.raises(ValueError, match=r"bootstrap_groups .* shape \(150,\)"):
            forest.fit(*IRIS, bootstrap_groups=groups)
        assert not hasattr(forest, "forest_")


def test_groups():
    with pytest.raises(ValueError, match=r"bootstrap_groups .* expected shape \(150,\)"):
        RandomForestClassifier(3).fit(*IRIS, bootstrap_groups=[1, 2])
    with pytest.raises(ValueError, match="needs bootstrap=True"):
        RandomForestClassifier(3, bootstrap=False).fit(*IRIS, bootstrap_groups=IRIS[1])
