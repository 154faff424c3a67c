"""Lists of numbers that are not zero add up by merging, and come apart by set."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.stores.blocks._stored_lists import merged, of_sets

VALUES = st.integers(-3, 3).filter(bool)
LISTS = st.dictionaries(st.integers(0, 12), VALUES)
SHARED = st.dictionaries(st.tuples(st.integers(0, 12), st.integers(1, 15)), VALUES)


def arrays(numbers):
    pairs = sorted(numbers.items())
    return *(np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1)), None


def shared(numbers):
    """A list whose keys are places and sets."""
    items = sorted(numbers.items())
    places, values = ([item[0][0] for item in items], [item[1] for item in items])
    who = np.array([item[0][1] for item in items], dtype=np.uint64)
    return np.array(places, dtype=np.int64), np.array(values, dtype=np.int64), who


@given(LISTS, LISTS, st.sampled_from([1, -1]))
def test_lists_add_up(one, other, sign):
    expected = {k: one.get(k, 0) + sign * other.get(k, 0) for k in {*one, *other}}
    places, values, who = merged(arrays(one), arrays(other), sign)
    kept = {k: v for k, v in expected.items() if v != 0}
    assert list(zip(places.tolist(), values.tolist(), strict=True)) == sorted(kept.items())
    assert who is None


@given(SHARED, SHARED)
def test_lists_of_several_sets_add_up(one, other):
    expected = {k: one.get(k, 0) + other.get(k, 0) for k in {*one, *other}}
    kept = {k: v for k, v in expected.items() if v != 0}
    found, whole = merged(shared(one), shared(other)), shared(kept)
    for mine, theirs in zip(found, whole, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@given(SHARED)
def test_each_set_has_its_numbers(numbers):
    found = of_sets(*shared(numbers), 4)
    for number, (places, values) in enumerate(found):
        own = np.zeros(13, dtype=int)
        for (place, who), value in numbers.items():
            own[place] += value * (who >> number & 1)
        np.testing.assert_array_equal(places, np.flatnonzero(own))
        np.testing.assert_array_equal(values, own[own != 0])


def test_a_list_of_one_set_is_that_of_the_set():
    places, values = np.array([3, 7]), np.array([1, 2])
    ((mine, numbers),) = of_sets(places, values, None, 1)
    assert (mine.tolist(), numbers.tolist()) == ([3, 7], [1, 2])
