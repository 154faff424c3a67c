"""Trees of drawn columns are those of plain loops, in columns of 8, 16 and 32 bits."""

import numpy as np
import pytest

import dtrees
from dtrees.core.data import _cpu
from tests.pairs import parametrize_pairs

WORK = {
    "8 bits": (3_000, 255, "Classifier"),
    "16 bits": (3_000, None, "Classifier"),
    "32 bits": (70_000, None, "Classifier"),
    "8 bits, values": (3_000, 255, "Regressor"),
    "16 bits, values": (3_000, None, "Regressor"),
    "32 bits, values": (70_000, None, "Regressor"),
}


@pytest.mark.one_of(3)
@parametrize_pairs(work=WORK, forest=["RandomForest", "ExtraTrees"], missing=[0.0, 0.2])
def test_wide_and_plain_loops_grow_the_same_trees(work, forest, missing):
    n_rows, max_bins, kind = WORK[work]
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 9))
    X[:, 7] = rng.integers(0, 4, n_rows)
    y = X[:, 0] + X[:, 7] + rng.normal(size=n_rows)
    X[rng.random(X.shape) < missing] = np.nan
    y = y > 1 if kind == "Classifier" else y
    forest = getattr(dtrees, forest + kind)(
        3, max_bins=max_bins, max_features=3, random_state=0, bootstrap=True
    )
    found = []
    for wide in (True, False):
        before = _cpu.use_wide(wide)
        try:
            found.append(forest.fit(X, y).forest_.trees)
        finally:
            _cpu.use_wide(before)
    assert found[0][0].node_count > 300
    for a, b in zip(*found, strict=True):
        assert a.equals(b)
