"""Lists of numbers that are not zero add up by merging."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.stores.blocks._stored_lists import merged

LISTS = st.dictionaries(st.integers(0, 12), st.integers(-3, 3).filter(bool))


def arrays(numbers):
    pairs = sorted(numbers.items())
    return [np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1)]


@given(LISTS, LISTS, st.sampled_from([1, -1]))
def test_lists_add_up(one, other, sign):
    expected = {k: one.get(k, 0) + sign * other.get(k, 0) for k in {*one, *other}}
    places, values = merged(*arrays(one), *arrays(other), sign)
    kept = {k: v for k, v in expected.items() if v != 0}
    assert list(zip(places.tolist(), values.tolist(), strict=True)) == sorted(kept.items())
