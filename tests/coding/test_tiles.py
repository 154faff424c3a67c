"""Tiles and tasks change nothing."""

import numpy as np
import scipy.sparse as sp

from dtrees.coding import CodeBook, sparse_columns, tiles

rng = np.random.default_rng(6)


def test_threads_and_tiles_do_not_matter(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    X = rng.normal(size=(4000, 20))
    X[:, ::3] = np.round(X[:, ::3])
    S = sp.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0))
    alone = [CodeBook.fit_encode(T, max_bins=m) for T in (X, S) for m in (None, 50)]
    for module in (tiles, sparse_columns):
        monkeypatch.setattr(module, "SMALL_TABLE", 100)
    monkeypatch.setattr(tiles, "TILE_BYTES", 4 * 8 * len(X))
    with ThreadPoolExecutor(3) as pool:
        shared = [
            CodeBook.fit_encode(
                T, max_bins=m, run=lambda ts: [*pool.map(lambda t: t(), ts[::-1])][::-1]
            )
            for T in (X, S)
            for m in (None, 50)
        ]
    for (a, coded_a), (b, coded_b) in zip(alone, shared, strict=True):
        assert np.array_equal(a.low, b.low)
        assert np.array_equal(a.high, b.high)
        for j in range(20):
            assert np.array_equal(coded_a.column(j), coded_b.column(j))
