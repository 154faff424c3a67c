"""Lists of numbers that are not zero, by their places: how they are filled, and how they add up.

    place   3  5  90,412            ascending
    value   4  2  1

See `_stored_counts` for what they stand for.
"""
import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from dtrees.core.data._memory cimport resize

cdef enum:
    FIRST_ROOM = 256        # numbers


cdef bint append(Numbers* numbers, int64_t place, int64_t value) noexcept nogil:
    """A number that is not zero behind the others; False without memory."""
    cdef int64_t room
    if numbers.n == numbers.room:
        room = 2 * numbers.room if numbers.room > 0 else FIRST_ROOM
        if not (resize(<void**>&numbers.place, room * sizeof(int64_t))
                and resize(<void**>&numbers.value, room * sizeof(int64_t))):
            return False
        numbers.room = room
    numbers.place[numbers.n] = place
    numbers.value[numbers.n] = value
    numbers.n += value != 0
    return True


cdef arrays_of(const Numbers* numbers):
    """Copies of what a list has."""
    cdef int64_t[::1] place = np.empty(numbers.n, dtype=np.int64)
    cdef int64_t[::1] value = np.empty(numbers.n, dtype=np.int64)
    if numbers.n > 0:
        memcpy(&place[0], numbers.place, numbers.n * sizeof(int64_t))
        memcpy(&value[0], numbers.value, numbers.n * sizeof(int64_t))
    return np.asarray(place), np.asarray(value)


def merged(const int64_t[::1] place, const int64_t[::1] value, const int64_t[::1] other_place,
           const int64_t[::1] other_value, int64_t sign=1):
    """A list and another one `sign` times, added up; zeros are left out. O(both)."""
    cdef int64_t n = len(place)
    cdef int64_t n_other = len(other_place)
    cdef int64_t[::1] places = np.empty(n + n_other, dtype=np.int64)
    cdef int64_t[::1] values = np.empty(n + n_other, dtype=np.int64)
    cdef int64_t i = 0
    cdef int64_t j = 0
    cdef int64_t k = 0
    with nogil:
        while i < n or j < n_other:
            if j == n_other or i < n and place[i] < other_place[j]:
                places[k] = place[i]
                values[k] = value[i]
                i += 1
            elif i == n or other_place[j] < place[i]:
                places[k] = other_place[j]
                values[k] = sign * other_value[j]
                j += 1
            else:
                places[k] = place[i]
                values[k] = value[i] + sign * other_value[j]
                i += 1
                j += 1
            k += values[k] != 0
    return np.asarray(places)[:k].copy(), np.asarray(values)[:k].copy()
