"""Lists of numbers that are not zero, by their places: how they are filled, and how they add up.

    place   3  5  5  90,412         ascending
    value   4  2  7  1
    who     3  1  2  3              a bit for each training set that has it; ascending at a place

Where one set is asked for, nobody is said. See `_stored_counts` for what places stand for.
"""
import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._memory cimport resize

cdef enum:
    FIRST_ROOM = 256        # numbers


cdef bint append(Numbers* numbers, int64_t place, int64_t value, uint64_t who) noexcept nogil:
    """A number that is not zero behind the others; False without memory."""
    cdef int64_t room
    if numbers.n == numbers.room:
        room = 2 * numbers.room if numbers.room > 0 else FIRST_ROOM
        if not (resize(<void**>&numbers.place, room * sizeof(int64_t))
                and resize(<void**>&numbers.value, room * sizeof(int64_t))):
            return False
        if numbers.has_who and not resize(<void**>&numbers.who, room * sizeof(uint64_t)):
            return False
        numbers.room = room
    numbers.place[numbers.n] = place
    numbers.value[numbers.n] = value
    if numbers.has_who:
        numbers.who[numbers.n] = who
    numbers.n += value != 0
    return True


cdef arrays_of(const Numbers* numbers):
    """Copies of what a list has: places, values, and who or None."""
    cdef int64_t[::1] place = np.empty(numbers.n, dtype=np.int64)
    cdef int64_t[::1] value = np.empty(numbers.n, dtype=np.int64)
    cdef uint64_t[::1] who = np.empty(numbers.n if numbers.has_who else 0, dtype=np.uint64)
    if numbers.n > 0:
        memcpy(&place[0], numbers.place, numbers.n * sizeof(int64_t))
        memcpy(&value[0], numbers.value, numbers.n * sizeof(int64_t))
        if numbers.has_who:
            memcpy(&who[0], numbers.who, numbers.n * sizeof(uint64_t))
    return np.asarray(place), np.asarray(value), np.asarray(who) if numbers.has_who else None


def merged(one, other, int64_t sign=1):
    """A list and another one `sign` times, added up; zeros are left out. O(both).

    Parameters
    ----------
    one, other : (int64 (n,), int64 (n,), uint64 (n,) or None)
        Places, values, who.
    sign : {1, -1}, default=1
    """
    cdef const int64_t[::1] place = one[0]
    cdef const int64_t[::1] value = one[1]
    cdef const uint64_t[::1] who = one[2]
    cdef const int64_t[::1] other_place = other[0]
    cdef const int64_t[::1] other_value = other[1]
    cdef const uint64_t[::1] other_who = other[2]
    cdef bint has_who = who is not None
    cdef int64_t n = len(place)
    cdef int64_t n_other = len(other_place)
    cdef int64_t[::1] places = np.empty(n + n_other, dtype=np.int64)
    cdef int64_t[::1] values = np.empty(n + n_other, dtype=np.int64)
    cdef uint64_t[::1] found = np.empty(n + n_other if has_who else 0, dtype=np.uint64)
    cdef int64_t i = 0
    cdef int64_t j = 0
    cdef int64_t k = 0
    cdef int order
    with nogil:
        while i < n or j < n_other:
            if j == n_other:
                order = -1
            elif i == n:
                order = 1
            else:
                order = (place[i] > other_place[j]) - (place[i] < other_place[j])
                if order == 0 and has_who:
                    order = (who[i] > other_who[j]) - (who[i] < other_who[j])
            places[k] = other_place[j] if order > 0 else place[i]
            if has_who:
                found[k] = other_who[j] if order > 0 else who[i]
            values[k] = (value[i] if order <= 0 else 0) + (
                sign * other_value[j] if order >= 0 else 0)
            i += order <= 0
            j += order >= 0
            k += values[k] != 0
    arrays = [np.asarray(places)[:k].copy(), np.asarray(values)[:k].copy()]
    return *arrays, np.asarray(found)[:k].copy() if has_who else None


def of_sets(const int64_t[::1] place, const int64_t[::1] value, const uint64_t[::1] who,
            int64_t n_sets):
    """The numbers of each set, which are asked for together.

    Parameters
    ----------
    place, value, who
        A list.
    n_sets : int
        A set for each bit from 0 on.

    Returns
    -------
    list of (int64 (n,), int64 (n,))
        Places and values of each set; zeros are left out. O(numbers).
    """
    cdef int64_t[::1] n = np.zeros(n_sets, dtype=np.int64)
    cdef int64_t[::1] start = np.zeros(n_sets + 1, dtype=np.int64)
    cdef int64_t[::1] places, values
    cdef int64_t i, k, m
    cdef uint64_t bits
    if who is None or len(place) == 0:
        return [(np.asarray(place), np.asarray(value))] * n_sets
    with nogil:
        for i in range(len(who)):
            bits = who[i]
            while bits != 0:
                start[trailing_zeros(bits) + 1] += 1
                bits &= bits - 1
        for m in range(n_sets):
            start[m + 1] += start[m]
    places = np.empty(start[n_sets], dtype=np.int64)
    values = np.empty(start[n_sets], dtype=np.int64)
    with nogil:
        for i in range(len(who)):
            bits = who[i]
            while bits != 0:
                m = trailing_zeros(bits)
                bits &= bits - 1
                k = start[m] + n[m]
                if n[m] > 0 and places[k - 1] == place[i]:
                    values[k - 1] += value[i]
                    continue
                if n[m] > 0 and values[k - 1] == 0:
                    k -= 1
                    n[m] -= 1
                places[k] = place[i]
                values[k] = value[i]
                n[m] += 1
        for m in range(n_sets):
            n[m] -= n[m] > 0 and values[start[m] + n[m] - 1] == 0
    return [(np.asarray(places)[start[m]:start[m] + n[m]],
             np.asarray(values)[start[m]:start[m] + n[m]]) for m in range(n_sets)]
