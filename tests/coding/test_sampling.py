"""Keyed samples, and the quantiles of a sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding._binning import quantile_codes
from dtrees.coding.sampling import CutRules, bottom, sampled_rows


def row_hashes(first_row, n_rows, seed):
    return sampled_rows(CutRules(max_bins=2, seed=seed), first_row, n_rows)[1]


def test_sample_is_keyed_by_row_and_seed():
    whole = row_hashes(0, 1000, seed=3)
    assert np.array_equal(row_hashes(400, 100, seed=3), whole[400:500])
    assert not np.array_equal(row_hashes(0, 1000, seed=4), whole)


@pytest.mark.parametrize(("n", "k"), [(10, 20), (1000, 1), (1000, 300), (100_000, 20_000)])
def test_bottom_takes_the_smallest(n, k):
    hashes = row_hashes(0, n, seed=1)
    wanted = np.sort(np.argsort(hashes)[:k])
    assert np.array_equal(bottom(hashes, k), wanted)
    assert np.array_equal(bottom(np.full(50, 7, dtype=np.uint64), 3), np.arange(50))
    low = hashes >> np.uint64(40)  # the guess of the bound fails
    assert np.array_equal(np.sort(low[bottom(low, k)])[:k], np.sort(low)[:k])


def test_quantiles_of_a_uniform_column_are_even():
    values = np.arange(1000, dtype=float)
    low, high = quantile_codes(values, 10)
    assert high.tolist() == [99, 199, 299, 399, 499, 599, 699, 799, 899, 999]
    assert low.tolist() == [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]


@given(st.lists(st.integers(-4, 4).map(float), max_size=30), st.integers(0, 30), st.integers(2, 12))
def test_zeros_beside_the_values_are_values(values, n_zeros, max_bins):
    stored = np.sort(np.array(values, dtype=float)) + 0.0
    everything = np.sort(np.concatenate([stored, np.zeros(n_zeros)]))
    if len(everything) == 0:
        return
    alone = quantile_codes(everything, max_bins)
    beside = quantile_codes(stored, max_bins, n_zeros)
    assert np.array_equal(alone[0], beside[0])
    assert np.array_equal(alone[1], beside[1])
