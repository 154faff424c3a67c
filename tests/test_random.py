"""Keyed draws: the bits of numpy's Philox, from any place, in any order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees._random import keyed_draws, keyed_uint64

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
