"""Rows by leaf, and the kernel that asks them, against sorting."""

import numpy as np
import pytest

from dtrees.core.predict._leaf_rows import LeafTable

UNIT = 2**40


def leaves_of(rng, n_trees, n_nodes, most, n_ranks):
    """Rows of all nodes of trees, of which each is a leaf: where they begin, ranks and shares."""
    sizes = rng.integers(1, most + 1, n_trees * n_nodes)
    ranks = [np.sort(rng.integers(0, n_ranks, n)) for n in sizes]
    weights = [rng.integers(1, 9, n) for n in sizes]
    upto = [np.rint(w.cumsum() / w.sum() * UNIT).astype(np.int64) for w in weights]
    shares = np.concatenate([np.diff(own, prepend=0) for own in upto])
    start = np.append(0, sizes.cumsum())
    return start, np.concatenate(ranks).astype(np.uint32), shares


@pytest.mark.parametrize("n_ranks", [1, 2, 200, 70_000, 2**32 - 1])
@pytest.mark.parametrize("most", [1, 5, 90, 1000])
def test_quantiles_and_sums(most, n_ranks):
    rng = np.random.default_rng(most)
    start, ranks, shares = leaves_of(rng, 6, 4, most, n_ranks)
    table = LeafTable(start, np.arange(6) * 4, ranks, shares)
    leaves = rng.integers(0, 4, (6, 30)).astype(np.int32)
    total = 6 * UNIT
    wanted = np.sort(np.append(rng.integers(1, total + 1, 20), [1, total]))
    found = np.empty((30, 22), dtype=np.uint32)
    table.quantiles(leaves, wanted, found)
    bins = np.zeros(n_ranks, np.int32) if n_ranks <= 70_000 else None
    if bins is not None:
        bins[n_ranks // 2 :] = 1
        sums = np.zeros((30, 2), dtype=np.int64)
        table.sums(leaves, bins, sums)
    for i in range(30):
        nodes = leaves[:, i] + np.arange(6) * 4
        own = np.concatenate([np.arange(start[node], start[node + 1]) for node in nodes])
        own = own[np.argsort(ranks[own], kind="stable")]
        upto = shares[own].cumsum()
        assert upto[-1] == total
        np.testing.assert_array_equal(found[i], ranks[own][np.searchsorted(upto, wanted)])
        if bins is not None:
            expected = np.bincount(bins[ranks[own]], weights=shares[own], minlength=2)
            np.testing.assert_array_equal(sums[i], expected)


def test_nothing_is_asked():
    """Of no shares, and of no rows: no array is written to or read, which would be a crash."""
    start, ranks, shares = leaves_of(np.random.default_rng(0), 2, 3, 4, 10)
    table = LeafTable(start, np.array([0, 3]), ranks, shares)
    none = np.empty(0, dtype=np.int64)
    table.quantiles(np.zeros((2, 5), np.int32), none, np.empty((5, 0), np.uint32))
    table.quantiles(np.zeros((2, 0), np.int32), none, np.empty((0, 0), np.uint32))
