"""Cells and codes: columns copied and looked at for infinities, labels to codes, rows of blocks."""
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from dtrees.coding._keys cimport code_t, value_t

import numpy as np

ctypedef fused input_t:
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused label_t:
    int8_t
    int16_t
    int32_t
    int64_t


def load_columns(const input_t[:, :] X, value_t[:, ::1] out):
    """Copies columns of a table, whatever its strides, to rows of ``out`` (k, n_rows).

    Float32 only for types that it holds exactly. -0.0 becomes 0.0.
    """
    cdef Py_ssize_t n = X.shape[0], k = X.shape[1], i, j
    cdef Py_ssize_t end, start = 0
    cdef value_t* column
    cdef const char* cell
    cdef Py_ssize_t step = X.strides[0]
    if n == 0 or k == 0:
        return
    with nogil:
        if X.strides[0] <= X.strides[1] or k == 1:
            for j in range(k):
                column = &out[j, 0]
                cell = <const char*>&X[0, j]
                for i in range(n):
                    column[i] = <value_t>((<const input_t*>(cell + i * step))[0]) + <value_t>0.0
        else:
            # rows are closer together than columns: a cache's worth of rows for all columns
            while start < n:
                end = start + 128 if start + 128 < n else n
                for j in range(k):
                    column = &out[j, 0]
                    cell = <const char*>&X[0, j]
                    for i in range(start, end):
                        column[i] = (<value_t>((<const input_t*>(cell + i * step))[0])
                                     + <value_t>0.0)
                start = end


def any_infinite(const value_t[:, :] X):
    """Tell whether a cell is infinite. O(cells), in the order of memory."""
    cdef Py_ssize_t rows = X.shape[0], columns = X.shape[1], i, j
    cdef Py_ssize_t outer = X.strides[0], inner = X.strides[1], swap
    cdef const char* line
    cdef uint64_t found = 0
    cdef const uint32_t* narrow
    cdef const uint64_t* wide
    if rows == 0 or columns == 0:
        return False
    line = <const char*>&X[0, 0]
    with nogil:
        if (inner if inner > 0 else -inner) > (outer if outer > 0 else -outer):
            swap = inner
            inner = outer
            outer = swap
            swap = rows
            rows = columns
            columns = swap
        for i in range(rows):
            if inner == sizeof(value_t):
                if value_t is float:
                    narrow = <const uint32_t*>(line + i * outer)
                    for j in range(columns):
                        found |= (narrow[j] & 0x7FFFFFFFU) == 0x7F800000U
                else:
                    wide = <const uint64_t*>(line + i * outer)
                    for j in range(columns):
                        found |= (wide[j] & 0x7FFFFFFFFFFFFFFFULL) == 0x7FF0000000000000ULL
            else:
                for j in range(columns):
                    found |= (<const value_t*>(line + i * outer + j * inner))[0] == INFINITY
                    found |= (<const value_t*>(line + i * outer + j * inner))[0] == -INFINITY
            if found:
                break
    return found != 0


def labels_present(const label_t[::1] labels, uint8_t[::1] present):
    """Sets ``present[label]`` for the labels of some row; -1 is no label."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(labels.shape[0]):
            if labels[i] >= 0:
                present[labels[i]] = 1


def label_codes(const label_t[::1] labels, const uint32_t[::1] table, code_t[::1] codes):
    """Codes of labels: ``codes[i] = table[labels[i] + 1]``, so ``table[0]`` is for missing."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(labels.shape[0]):
            codes[i] = <code_t>table[labels[i] + 1]


def take_rows(const code_t[::1, :] block, const uint32_t[::1] rows, code_t[::1, :] out):
    """Some rows of a block of codes, column by column. O(rows x columns), without the GIL."""
    cdef int64_t n = len(rows)
    cdef int64_t i, j
    with nogil:
        for j in range(block.shape[1]):
            for i in range(n):
                out[i, j] = block[rows[i], j]


def compact(code_t[::1] block, const int64_t[::1] columns, int64_t n):
    """Moves runs of n items to the front: run columns[k] becomes run k; columns ascend."""
    cdef int64_t k
    if block.shape[0] == 0:
        return
    with nogil:
        for k in range(columns.shape[0]):
            if columns[k] != k:
                memcpy(&block[k * n], &block[columns[k] * n], n * sizeof(code_t))


def compact_values(value_t[::1] block, const int64_t[::1] start, const int64_t[::1] length):
    """Moves runs of values to the front, one behind the other; starts ascend. Returns the total."""
    cdef int64_t k, i, at = 0
    with nogil:
        for k in range(start.shape[0]):
            for i in range(length[k]):
                block[at + i] = block[start[k] + i]
            at += length[k]
    return at


def distinct_rows(const uint32_t[:, ::1] rows not None):
    """The distinct rows of a matrix, in the order in which they come first.

    Parameters
    ----------
    rows : uint32 (n, width), width > 0

    Returns
    -------
    first : int64 (n_distinct,)
        Where each of them is first.
    number : uint32 (n,)
        Of every row among them.

    Notes
    -----
    O(n x width), by a table of at most 16 bytes a row; where few rows are distinct, little of it is
    touched.
    """
    cdef int64_t n = rows.shape[0]
    cdef size_t n_bytes = rows.shape[1] * sizeof(uint32_t)
    cdef int64_t n_slots = 16
    cdef int64_t i, k
    cdef uint64_t slot
    cdef uint32_t found = 0
    number = np.empty(n, dtype=np.uint32)
    first = np.empty(n, dtype=np.int64)
    cdef uint32_t[::1] to = number
    cdef int64_t[::1] firsts = first
    while n_slots < 2 * n:
        n_slots *= 2
    cdef uint32_t* place = <uint32_t*>calloc(n_slots, sizeof(uint32_t))     # number + 1; 0: empty
    if place == NULL:
        raise MemoryError
    with nogil:
        for i in range(n):
            slot = 0
            for k in range(rows.shape[1]):
                slot = (slot ^ rows[i, k]) * <uint64_t>0x9E3779B97F4A7C15
                slot ^= slot >> 32
            slot &= <uint64_t>n_slots - 1
            while place[slot] and memcmp(&rows[firsts[place[slot] - 1], 0], &rows[i, 0], n_bytes):
                slot = (slot + 1) & (<uint64_t>n_slots - 1)
            if place[slot] == 0:
                firsts[found] = i
                found += 1
                place[slot] = found
            to[i] = place[slot] - 1
    free(place)
    return first[:found].copy(), number
