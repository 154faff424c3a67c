"""Splits that are drawn at random: extra trees keep the thresholds that they draw [ET]."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest

from dtrees import ExtraTreesClassifier, ExtraTreesRegressor
from dtrees.coding.codebook import CodeBook
from dtrees.core.predict import packed_forest
from dtrees.export import load, save
from dtrees.model_selection import cross_validate

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


@pytest.mark.one_of(2)
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


def test_more_thresholds_than_a_code_can_tell(monkeypatch):
    # the forest walks in parts, with the same sums in the same order
    kept = np.where(np.isnan(X), 0.0, X)
    forest = ExtraTreesRegressor(20, random_state=0).fit(kept, Y)
    expected, leaves = forest.predict(kept), forest.apply(kept)
    parts = packed_forest.pack_forest(forest.forest_, forest.codebook_)
    assert [part.n_trees for part in parts] == [20]
    monkeypatch.setattr(packed_forest, "MOST_THRESHOLDS", 250)
    monkeypatch.setattr(packed_forest, "_packed", WeakKeyDictionary())
    parts = packed_forest.pack_forest(forest.forest_, forest.codebook_)
    assert len(parts) > 1
    assert sum(part.n_trees for part in parts) == 20
    np.testing.assert_array_equal(forest.predict(kept), expected)
    np.testing.assert_array_equal(forest.apply(kept), leaves)
    monkeypatch.setattr(packed_forest, "MOST_THRESHOLDS", 1)
    monkeypatch.setattr(packed_forest, "_packed", WeakKeyDictionary())
    assert packed_forest.pack_forest(forest.forest_, forest.codebook_) is None
