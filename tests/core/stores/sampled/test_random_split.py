"""Splits that are drawn at random: extra trees keep the thresholds that they draw [ET], of many
columns at once as of one after the other.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest

from dtrees import ExtraTreesClassifier, ExtraTreesRegressor
from dtrees.coding.codebook import CodeBook
from dtrees.coding.outputs import Outputs
from dtrees.coding.target import Target
from dtrees.core.data import _cpu
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.source import DatasetSource
from dtrees.export import load, save
from dtrees.model_selection import cross_validate
from tests.laws.tables import grow_blocks, tree_of_source
from tests.pairs import parametrize_pairs

ROWS = np.random.default_rng(8)
X = np.column_stack(
    [
        ROWS.integers(0, 12, 300) ** 2.0,
        ROWS.poisson(0.4, 300) * 7.0,
        np.where(ROWS.random(300) < 0.1, np.nan, ROWS.normal(size=300).round(1)),
        ROWS.normal(size=300),
    ]
)
Y = (X[:, 0] / 40 + X[:, 1] / 10 + np.nan_to_num(X[:, 2]) + ROWS.normal(size=300) > 2).astype(int)


def cuts_of(forest):
    """Columns and thresholds of all nodes of a forest."""
    feature = np.concatenate([tree.feature for tree in forest.forest_.trees])
    threshold = np.concatenate([tree.threshold for tree in forest.forest_.trees])
    return feature[feature >= 0], threshold[feature >= 0]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("values", [(0, 10), (0, 1, 10), tuple(range(11)), (-1e308, 1.7e308)])
@pytest.mark.parametrize("kind", [ExtraTreesClassifier, ExtraTreesRegressor])
def test_the_first_threshold_is_uniform_between_least_and_greatest(kind, values):
    column = np.repeat(np.array(values, dtype=float), 4)
    y = np.arange(len(column)) % 2
    forest = kind(1000, max_depth=1, random_state=0).fit(column[:, None], y)
    _, threshold = cuts_of(forest)
    assert len(threshold) == 1000
    place = (threshold / 2 - values[0] / 2) / (values[-1] / 2 - values[0] / 2)
    assert kstest(place, "uniform").pvalue > 1e-4


def test_every_row_of_the_fit_is_on_the_side_it_was_grown_for():
    forest = ExtraTreesClassifier(30, max_features=None, random_state=1).fit(X, Y)
    for tree, leaf in zip(forest.forest_.trees, forest.apply(X).T, strict=True):
        np.testing.assert_array_equal(
            np.bincount(leaf, minlength=tree.node_count)[tree.test == 0],
            tree.n_node_samples[tree.test == 0],
        )


@pytest.fixture(scope="module")
def thresholds():
    _, threshold = cuts_of(ExtraTreesClassifier(20, random_state=1).fit(X, Y))
    finite = threshold[np.isfinite(threshold)]
    assert len(np.unique(finite)) > 0.6 * len(finite) > 500  # those of binned columns repeat
    return threshold


class TestTheSameBits:
    @pytest.mark.parametrize(
        "table",
        [
            pytest.param(lambda: sp.csc_array(X), id="sparse"),
            pytest.param(lambda: sp.csr_array(X), id="sparse rows"),
            pytest.param(lambda: da.from_array(X, chunks=(77, -1)), id="dask"),
            pytest.param(lambda: X[::-1], id="other order"),
        ],
    )
    def test_any_table(self, table, thresholds):
        given = table()
        y = Y[::-1] if isinstance(given, np.ndarray) else Y
        _, found = cuts_of(ExtraTreesClassifier(20, random_state=1).fit(given, y))
        np.testing.assert_array_equal(found, thresholds)

    def test_threads(self, thresholds):
        forest = ExtraTreesClassifier(20, random_state=1, n_jobs=3).fit(X, Y)
        np.testing.assert_array_equal(cuts_of(forest)[1], thresholds)

    def test_saved(self, thresholds, tmp_path):
        forest = ExtraTreesClassifier(20, random_state=1).fit(X, Y)
        save(forest, tmp_path / "model.dtrees")
        again = load(tmp_path / "model.dtrees")
        np.testing.assert_array_equal(cuts_of(again)[1], thresholds)
        new = X + ROWS.normal(size=X.shape)
        np.testing.assert_array_equal(again.predict_proba(new), forest.predict_proba(new))

    def test_sets(self):
        forest = ExtraTreesClassifier(10, random_state=1)
        found = cross_validate(forest, X, Y, cv=3, return_estimator=True, return_indices=True)
        for model, train in zip(found["estimator"], found["indices"]["train"], strict=True):
            weight = np.zeros(len(Y))
            weight[train] = 1
            alone = ExtraTreesClassifier(10, random_state=1).fit(X, Y, sample_weight=weight)
            np.testing.assert_array_equal(cuts_of(model)[1], cuts_of(alone)[1])


def test_binned_columns_are_cut_at_their_cuts():
    forest = ExtraTreesRegressor(20, max_bins=16, random_state=0).fit(X, Y)
    book = CodeBook.fit_encode(X, max_bins=16)[0]
    feature, threshold = cuts_of(forest)
    for column in range(4):
        mine = threshold[(feature == column) & np.isfinite(threshold)]
        if book.exact[column]:
            assert not np.isin(mine, book.cuts(column)).all()
        else:
            assert np.isin(mine, book.cuts(column)).all()
    assert not book.exact.all()


N_ROWS = 1500
TIMES = {
    "each row once": None,
    "bags": lambda rng: rng.poisson(1.0, N_ROWS),
    "a row many times": lambda rng: np.where(np.arange(N_ROWS) == 7, 255, rng.poisson(1.0, N_ROWS)),
    "a row too many times": lambda rng: np.where(np.arange(N_ROWS) == 7, 256, 1),
}


TARGETS = {
    "two classes": ("gini", lambda y: Target.classification((y > 1).astype(int), spare_bits=9)),
    "classes": ("entropy", lambda y: Target.classification(np.rint(y).clip(-1, 3), spare_bits=9)),
    "numbers": ("squared_error", partial(Target.regression, spare_bits=9)),
    "medians": ("absolute_error", partial(Target.regression, spare_bits=9)),
    "outputs": (
        "squared_error",
        lambda y: Outputs.of([y, y**2, -y], None, False, spare_bits=9),
    ),
}


@pytest.fixture(params=[True, False], ids=["wide", "plain"])
def wide(request):
    before = _cpu.use_wide(request.param)
    yield
    _cpu.use_wide(before)


@pytest.mark.one_of(10)
@pytest.mark.usefixtures("wide")
@parametrize_pairs(n_columns=[3, 32, 33, 70], times=TIMES, missing=[0.0, 0.1], kind=TARGETS)
def test_the_same_trees_as_column_by_column(n_columns, times, missing, kind):
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(N_ROWS, n_columns)).astype(np.float32)
    X[:, 1] = rng.integers(0, 3, N_ROWS)
    X[:, 2] = np.round(X[:, 2], 1)
    y = X[:, 0] + X[:, 1] + rng.normal(size=N_ROWS)
    X[rng.random(X.shape) < missing] = np.nan
    X[:, 2] = np.where(rng.random(N_ROWS) < 2 * missing, np.nan, 1.0)  # one value, and missing
    criterion, made = TARGETS[kind]
    target = made(y)
    if TIMES[times] is not None:
        target = target.bagged(TIMES[times](rng).astype(np.uint16))
    book, coded = CodeBook.fit_encode(X, max_bins=255)
    values = book.code_values()
    rules = GrowthRules(
        criterion=criterion, max_features=max(1, n_columns // 3), random_splits=True, seed=n_columns
    )
    for each in (rules, replace(rules, min_samples_leaf=4, tree=1, max_features=n_columns)):
        one = DatasetSource(coded, target, each, values=values)
        tree = tree_of_source(one, book.thresholds)
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
