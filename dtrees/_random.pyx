"""Randomness by key.

A draw is a function of (seed, stream, branch, number) and of nothing else: not of the order of
calls, of threads or of chunks. The function is Philox4x64-10 (Salmon, Moraes, Dror, Shaw,
"Parallel random numbers: as easy as 1, 2, 3", 2011), which needs no state: it enciphers a counter.

    key       seed, stream         stream: what the draw is for (`Stream` in _random.pxd)
    counter   i // 4, branch       branch: which row set, tree or node (`hash64` names nodes)
    word      i % 4

With branch 0 these are the bits of ``numpy.random.Philox`` with the same key, whose generator
advances the counter before it draws: numpy's draws after ``counter=c`` start at ``4 * (c + 1)``.
"""

import numpy as np

from libc.math cimport ceil, sqrt
from libc.stdint cimport uint8_t, uint16_t


def _word(value):
    """A Python integer, negative ones included, as the 64 bits of a key."""
    return int(value) & 0xFFFFFFFFFFFFFFFF


def keyed_uint64(seed, stream, first, Py_ssize_t count, branch=0):
    """Draws ``first .. first + count - 1`` of a key.

    Parameters
    ----------
    seed, stream, branch, first : int
        Taken modulo 2**64.
    count : int

    Returns
    -------
    uint64 (count,)
        Any range of draws can be asked for alone and gives the same bits.
    """
    out = np.empty(count, dtype=np.uint64)
    cdef uint64_t[::1] view = out
    cdef uint64_t key = _word(seed), purpose = _word(stream), branch_word = _word(branch)
    cdef uint64_t start = _word(first), i
    cdef uint64_t[4] four
    cdef Py_ssize_t k = 0
    with nogil:
        while k < count:
            i = start + <uint64_t>k
            philox(key, purpose, i >> 2, branch_word, four)
            while True:
                view[k] = four[i & 3]
                k += 1
                i += 1
                if k == count or i & 3 == 0:
                    break
    return out


def keyed_draws(seed, stream, branch, const uint64_t[::1] numbers):
    """Any draws of a key.

    Parameters
    ----------
    seed, stream, branch : int
        Taken modulo 2**64.
    numbers : uint64 (count,)
        Which draws: any, in any order, repeated ones too.

    Returns
    -------
    uint64 (count,)
    """
    out = np.empty(len(numbers), dtype=np.uint64)
    cdef uint64_t[::1] view = out
    cdef uint64_t key = _word(seed), purpose = _word(stream), branch_word = _word(branch)
    cdef Py_ssize_t i
    with nogil:
        for i in range(numbers.shape[0]):
            view[i] = philox_draw(key, purpose, branch_word, numbers[i])
    return out


def keyed_counts(seed, stream, branch, const uint64_t[::1] numbers, const uint64_t[:, ::1] steps,
                 const uint8_t[::1] which=None):
    """Draws of discrete distributions on 0, 1, 2, ...

    Parameters
    ----------
    seed, stream, branch : int
        Taken modulo 2**64.
    numbers : uint64 (count,)
        Which draws: any, in any order, repeated ones too. Neighbours are cheaper.
    steps : uint64 (n_distributions, n_steps)
        Ascending; ``steps[d, k]`` is 2**64 times the probability of k or less, the largest uint64
        beyond the last k.
    which : uint8 (count,) or None, default=None
        The distribution of each draw; None: the first.

    Returns
    -------
    uint16 (count,)
        How many steps are at or below the draw.
    """
    cdef Py_ssize_t count = len(numbers), n_steps = steps.shape[1], i, j, d = 0
    cdef Py_ssize_t n_first = n_steps if n_steps < 6 else 6
    out = np.empty(count, dtype=np.uint16)
    cdef uint16_t[::1] view = out
    cdef uint64_t key = _word(seed), purpose = _word(stream), branch_word = _word(branch)
    cdef uint64_t block = 0, draw
    cdef uint64_t[4] four
    cdef bint known = False
    cdef uint16_t k
    with nogil:
        for i in range(count):
            if not known or numbers[i] >> 2 != block:
                block = numbers[i] >> 2
                philox(key, purpose, block, branch_word, four)
                known = True
            draw = four[numbers[i] & 3]
            if which is not None:
                d = which[i]
            k = 0
            for j in range(n_first):  # without a branch: most draws are small
                k += steps[d, j] <= draw
            while k >= n_first and k < n_steps and steps[d, k] <= draw:
                k += 1
            view[i] = k
    return out


def keyed_largest(seed, stream, branch, const uint64_t[::1] numbers):
    """Which of the draws is the largest: its number, the lowest of equal ones.

    Parameters
    ----------
    seed, stream, branch : int
        Taken modulo 2**64.
    numbers : uint64 (count,), at least one
    """
    cdef uint64_t key = _word(seed), purpose = _word(stream), branch_word = _word(branch)
    cdef uint64_t most = 0, found = numbers[0], draw
    cdef Py_ssize_t i
    with nogil:
        for i in range(numbers.shape[0]):
            draw = philox_draw(key, purpose, branch_word, numbers[i])
            if draw > most or (draw == most and numbers[i] < found):
                most = draw
                found = numbers[i]
    return found


cdef enum:
    FEW_NUMBERS = 4096     # which take twice the rounds to be mixed as well
    MIXING_ROUNDS = 6


def keyed_sample(seed, stream, branch, const uint64_t[::1] numbers, n, size):
    """Which numbers are among `size` of 0 .. n - 1 that a key draws without replacement.

    A number is drawn if a keyed permutation of 0 .. n - 1 gives it one of the first `size` places.
    So each number draws for itself, and exactly `size` of all are drawn.

    Parameters
    ----------
    seed, stream, branch : int
        Taken modulo 2**64.
    numbers : uint64 (count,)
        Below n: any, in any order, repeated ones too.
    n : int
        At most 2**62.
    size : int

    Returns
    -------
    bool (count,)

    Notes
    -----
    The permutation is a Feistel network on pairs of numbers, whose words are `hash64` of a draw.
    There are few pairs more than numbers; whatever lands beyond is permuted again.
    """
    out = np.empty(len(numbers), dtype=np.bool_)
    cdef uint8_t[::1] view = out.view(np.uint8)
    cdef uint64_t key = philox_draw(_word(seed), _word(stream), _word(branch), 0)
    cdef uint64_t n_all = n, first = size
    cdef uint64_t width = <uint64_t>ceil(sqrt(<double>n_all))
    cdef uint64_t height = n_all // max(1, width) + 1
    cdef int n_rounds = 2 * MIXING_ROUNDS if n_all < FEW_NUMBERS else MIXING_ROUNDS
    cdef uint64_t place
    cdef Py_ssize_t i
    with nogil:
        for i in range(numbers.shape[0]):
            place = numbers[i]
            while True:
                place = mixed(key, place, width, height, n_rounds)
                if place < n_all:
                    break
            view[i] = place < first
    return out


def keyed_places(seed, stream, branch, n, size):
    """The numbers that the keyed permutation of `keyed_sample` gives to the first `size` places.

    Distinct, of 0 .. n - 1, in the order of the places; uint64 (size,). O(size): `keyed_sample` has
    to be asked for each number. They are not those that it draws, which are an inverse.
    """
    out = np.empty(size, dtype=np.uint64)
    cdef uint64_t[::1] view = out
    cdef uint64_t key = philox_draw(_word(seed), _word(stream), _word(branch), 0)
    cdef uint64_t n_all = n, number
    cdef uint64_t width = <uint64_t>ceil(sqrt(<double>n_all))
    cdef uint64_t height = n_all // max(1, width) + 1
    cdef int n_rounds = 2 * MIXING_ROUNDS if n_all < FEW_NUMBERS else MIXING_ROUNDS
    cdef Py_ssize_t i
    if size > n:
        raise ValueError(f"There are no {size} numbers below {n}.")
    with nogil:
        for i in range(view.shape[0]):
            number = <uint64_t>i
            while True:
                number = mixed(key, number, width, height, n_rounds)
                if number < n_all:
                    break
            view[i] = number
    return out


cdef inline uint64_t mixed(uint64_t key, uint64_t number, uint64_t width,
                           uint64_t height, int n_rounds) noexcept nogil:
    """A keyed permutation of the numbers below width * height."""
    cdef uint64_t high = number // width
    cdef uint64_t low = number - high * width
    cdef int i
    for i in range(0, n_rounds, 2):
        low += below(hash64(key + <uint64_t>i, high), width)
        low -= width if low >= width else 0
        high += below(hash64(key + <uint64_t>i + 1, low), height)
        high -= height if high >= height else 0
    return high * width + low


SAMPLE_ROWS = STREAM_SAMPLE_ROWS
BOOTSTRAP = STREAM_BOOTSTRAP
ROUNDING = STREAM_ROUNDING
FOLDS = 4  # which fold a row is held out in; as those below, no kernel draws from it
PASTING = 6  # which rows are in the sample of a tree that is drawn without replacement
HELD_OUT = 7  # which rows are held out of the growth of a boosted model
COLUMNS = 8  # which columns a tree of a forest may use
ISOLATION = 9  # which rows a tree of an isolation forest sees
ORDER = 10  # numbers that rows of such a tree are told apart by
