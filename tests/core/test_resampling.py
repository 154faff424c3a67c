"""Training sets as mixes of cells."""

import numpy as np

from dtrees.core.resampling import Resampling, plain


def test_plain():
    resampling = plain()
    assert (resampling.n_sets, resampling.n_cells) == (1, 1)
    assert resampling.is_plain
    assert resampling.cells is None
    statistics = np.arange(6).reshape(1, 2, 3)
    np.testing.assert_array_equal(resampling.sets(statistics), statistics)


def test_folds_and_final():
    k = 4
    mix = np.vstack([1 - np.eye(k, dtype=np.int64), np.ones((1, k), dtype=np.int64)])
    resampling = Resampling(np.arange(12, dtype=np.uint16) % k, mix)
    assert (resampling.n_sets, resampling.n_cells) == (5, 4)
    assert not resampling.is_plain
    y = np.arange(12)
    cells = np.bincount(resampling.cells, weights=y).astype(np.int64)[:, None]
    expected = [y[resampling.cells != fold].sum() for fold in range(k)] + [y.sum()]
    np.testing.assert_array_equal(resampling.sets(cells)[:, 0], expected)
