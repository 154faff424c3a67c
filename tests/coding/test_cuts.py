"""Codes by cuts are those of a bisection."""

import numpy as np
import pytest

from dtrees.coding._cuts import cut_column

rng = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_cuts", [0, 1, 2, 3, 254, 5000])
def test_cuts_are_a_bisection(dtype, n_cuts):
    for scale in (1.0, 1e-300 if dtype is np.float64 else 1e-30, 1e10):
        values = (rng.normal(size=3000) * scale).astype(dtype)
        cuts = np.unique((rng.normal(size=n_cuts) * scale).astype(dtype))
        values[: len(cuts)] = cuts[: len(values)]
        values[-3:] = [np.nan, np.finfo(dtype).max, np.finfo(dtype).min]
        codes = np.empty(len(values), dtype=np.uint32)
        cut_column(values + dtype(0), cuts, codes)
        wanted = np.where(np.isnan(values), 0, np.searchsorted(cuts, values) + 1)
        assert np.array_equal(codes, wanted)
