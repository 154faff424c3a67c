"""Random splits of many columns at once are those of one column after the other."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from dtrees import ExtraTreesClassifier
from dtrees.coding.codebook import CodeBook
from dtrees.coding.target import Target
from dtrees.core.data import _cpu
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.shared import grow
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import plain
from tests.laws.tables import grow_blocks
from tests.pairs import parametrize_pairs

N_ROWS = 1500
TIMES = {
    "each row once": None,
    "bags": lambda rng: rng.poisson(1.0, N_ROWS),
    "a row many times": lambda rng: np.where(np.arange(N_ROWS) == 7, 255, rng.poisson(1.0, N_ROWS)),
    "a row too many times": lambda rng: np.where(np.arange(N_ROWS) == 7, 256, 1),
}


@pytest.fixture(params=[True, False], ids=["wide", "plain"])
def wide(request):
    before = _cpu.use_wide(request.param)
    yield
    _cpu.use_wide(before)


@pytest.mark.one_of(5)
@pytest.mark.usefixtures("wide")
@parametrize_pairs(n_columns=[3, 32, 33, 70], times=TIMES, missing=[0.0, 0.1])
def test_the_same_trees_as_column_by_column(n_columns, times, missing):
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(N_ROWS, n_columns)).astype(np.float32)
    X[:, 1] = rng.integers(0, 3, N_ROWS)
    X[:, 2] = np.round(X[:, 2], 1)
    y = (X[:, 0] + X[:, 1] + rng.normal(size=N_ROWS) > 1).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    X[:, 2] = np.where(rng.random(N_ROWS) < 2 * missing, np.nan, 1.0)  # one value, and missing
    target = Target.classification(y, spare_bits=9)
    if TIMES[times] is not None:
        target = target.bagged(TIMES[times](rng).astype(np.uint16))
    book, coded = CodeBook.fit_encode(X, max_bins=255)
    values = book.code_values()
    rules = GrowthRules(
        criterion="gini", max_features=max(1, n_columns // 3), random_splits=True, seed=n_columns
    )
    for each in (rules, replace(rules, min_samples_leaf=4, tree=1, max_features=n_columns)):
        one = DatasetSource(coded, target, each, values=values)
        tree = grow(one, each, plain(), book.thresholds)[0]
        assert tree.node_count > 50
        halves = np.array_split(np.arange(N_ROWS), 2)
        parts = [(coded.take(rows), target.take(rows)) for rows in halves]
        assert grow_blocks(parts, each, book.thresholds, values, gather_rows=0).equals(tree)


@pytest.mark.usefixtures("wide")
def test_cuts_between_huge_values_are_uniform():
    """A draw between -1.7e308 and 1.7e308 must not overflow."""
    values = np.array([-1.7e308, -1e308, 0.0, 1e308, 1.7e308])
    X = np.tile(np.repeat(values, 2)[:, None], 8)
    y = np.tile([0, 1], 5)
    stumps = ExtraTreesClassifier(1000, max_depth=1, max_features=1, random_state=0).fit(X, y)
    code = np.array([tree.code[0] for tree in stumps.forest_.trees if tree.feature[0] >= 0])
    share = np.bincount(code, minlength=5)[1:] / len(code)
    np.testing.assert_allclose(share, np.diff(values / 1.7e308) / 2, atol=0.06)


@pytest.mark.long  # all modules are compiled once more
def test_without_assertions():
    """Nothing that has to happen stands in an assertion."""
    script = (
        "import numpy as np; from dtrees import ExtraTreesClassifier; "
        "X = np.random.default_rng(0).normal(size=(3000, 9)); "
        "print(ExtraTreesClassifier(3, random_state=0).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0))"
    )
    answer = subprocess.run(
        [sys.executable, "-O", "-c", script], capture_output=True, text=True, check=True
    )
    assert float(answer.stdout) > 0.9


def test_registers_can_be_chosen():
    before = _cpu.use_wide(False)
    assert _cpu.use_wide(before) is False
