"""Keyed draws: the bits of numpy's Philox, from any place, in any order."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees._random import keyed_draws, keyed_places, keyed_sample, keyed_uint64

words = st.integers(0, 2**64 - 1)


@given(words, words, st.integers(0, 2**61), st.integers(1, 40))
def test_bits_are_those_of_numpy(seed, stream, block, count):
    # numpy advances the counter before it draws
    key = np.array([seed, stream], dtype=np.uint64)
    theirs = np.random.Philox(key=key, counter=block).random_raw(count)
    assert np.array_equal(keyed_uint64(seed, stream, 4 * (block + 1), count), theirs)


def test_first_draw_is_block_zero():
    theirs = np.random.Philox(key=[7, 1], counter=2**256 - 1).random_raw(9)
    assert np.array_equal(keyed_uint64(7, 1, 0, 9), theirs)


@given(words, st.integers(0, 1000), st.integers(0, 50))
def test_any_range_stands_alone(seed, first, count):
    whole = keyed_uint64(seed, 3, 0, first + count)
    assert np.array_equal(keyed_uint64(seed, 3, first, count), whole[first:])


@given(words, words, words, st.lists(words, max_size=9))
def test_any_draws_are_those_of_a_range(seed, stream, branch, numbers):
    found = keyed_draws(seed, stream, branch, np.array(numbers, dtype=np.uint64))
    each = [int(keyed_uint64(seed, stream, number, 1, branch)[0]) for number in numbers]
    assert found.tolist() == each


def test_seed_stream_and_branch_matter():
    draws = {
        keyed_uint64(seed, stream, 0, 4, branch).tobytes()
        for seed in (0, 1)
        for stream in (0, 1)
        for branch in (0, 1)
    }
    assert len(draws) == 8


def test_negative_seed_is_taken_modulo_two_to_the_64():
    assert np.array_equal(keyed_uint64(-1, 0, 0, 4), keyed_uint64(2**64 - 1, 0, 0, 4))


@given(words, words, st.integers(1, 500), st.data())
def test_a_sample_has_its_size_and_each_number_draws_alone(seed, branch, n, data):
    size = data.draw(st.integers(0, n))
    numbers = np.arange(n, dtype=np.uint64)
    found = keyed_sample(seed, 6, branch, numbers, n, size)
    assert found.sum() == size
    some = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=9)), dtype=np.uint64)
    assert np.array_equal(keyed_sample(seed, 6, branch, some, n, size), found[some.astype(int)])
    if size > 0:  # a smaller sample is part of a larger one
        assert not (keyed_sample(seed, 6, branch, numbers, n, size - 1) & ~found).any()


@given(words, words, st.integers(1, 500), st.data())
def test_places_are_distinct_and_stand_alone(seed, branch, n, data):
    size = data.draw(st.integers(0, n))
    every = keyed_places(seed, 9, branch, n, n)
    assert sorted(every.tolist()) == list(range(n))
    assert np.array_equal(keyed_places(seed, 9, branch, n, size), every[:size])
    with pytest.raises(ValueError, match="There are no"):
        keyed_places(seed, 9, branch, n, n + 1)


def places(seed, stream, branch, numbers, n, size):
    found = np.zeros(n, dtype=bool)
    found[keyed_places(seed, stream, branch, n, size)] = True
    return found


@pytest.mark.one_of(2)
@pytest.mark.parametrize("sample", [keyed_sample, places])
@pytest.mark.parametrize(("n", "size"), [(2, 1), (3, 2), (4, 2), (6, 3), (7, 2)])
def test_samples_are_equally_likely(n, size, sample):
    draws, numbers = 20_000, np.arange(n, dtype=np.uint64)
    samples = (sample(0, 6, branch, numbers, n, size) for branch in range(draws))
    found = Counter(tuple(np.flatnonzero(each).tolist()) for each in samples)
    every = list(combinations(range(n), size))
    mean = draws / len(every)
    squares = sum((found[each] - mean) ** 2 for each in every) / mean
    free = len(every) - 1
    assert squares < free + 4 * np.sqrt(2 * free)


def test_pairs_of_many_numbers_are_drawn_as_often():
    n, size, draws = 6_000, 2_000, 1_500
    numbers = np.arange(n, dtype=np.uint64)
    drawn = np.array([keyed_sample(1, 6, branch, numbers, n, size) for branch in range(draws)])
    share = size * (size - 1) / (n * (n - 1))
    scale = np.sqrt(share * (1 - share) / draws)
    for step in (1, 2, 3, 77, 78, 79, 156):  # the width of the pairs is 78
        together = (drawn[:, step:] & drawn[:, :-step]).mean(axis=0)
        assert abs(together.mean() - share) < 4 * scale / np.sqrt(n - step) * 3
        assert np.abs(together - share).max() < 6 * scale
