"""By squared error, four entries at a time find the boundaries that one at a time finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.search._squared_scan import reaching_boundaries


def score(target, i):
    """The score of the boundary before row i, in Python's integers but for the quotient."""
    W, S, s = len(target), sum(target), sum(target[:i])
    return (W * s - i * S) ** 2 / (i * (W - i))


@given(
    st.integers(2, 120),
    st.integers(1, 57),
    st.integers(-3, 3),
    st.integers(0, 40),
    st.sampled_from([1.0, 0.9, 0.3, 0.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_boundaries_of_numbers(n, bits, offset, before, factor, ties, seed):
    """All that reach are found, with the sums before them, whatever is passed over."""
    rng = np.random.default_rng(seed)
    step = np.where(np.arange(n) < n // 2, 1.0, rng.random())
    values = rng.normal(size=n) + step + offset
    target = (values / np.abs(values).max() * 2.0**bits).astype(np.int64)
    rank = np.sort(rng.integers(0, n, n)) if ties else np.arange(n)
    rows = [0] * before + target.tolist()
    found = {i: score(rows, before + i) for i in range(1, n)}
    reach = max(found.values()) * factor if factor > 0 else -1e300
    expected = {
        (i, sum(rows[: before + i]))
        for i in found
        if rank[i] != rank[i - 1] and (factor == 0 or found[i] >= reach)
    }
    given_reach = reach * (1 - 2.0**-48) if factor > 0 else reach  # as of a search
    boundaries = reaching_boundaries(target, rank.astype(np.uint16), given_reach, before=before)
    assert boundaries is None or expected <= set(boundaries)
    if boundaries is not None and factor > 0 and bits < 40:  # beyond, W s - w S loses bits
        assert all(found[i] >= given_reach * (1 - 1e-9) for i, _ in boundaries)
