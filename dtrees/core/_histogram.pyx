"""Histograms: what the rows of a node add up to, for each code of a column.

A histogram is int64 (n_codes + 1, 2 + width): rows, weight, and one number (weight * y, or the
weight of class 1) or the weight of each class. Histograms of parts of the rows add up to the
histogram of all of them, in any order: that is all that chunks, folds and bags need.
"""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core._groups cimport append_group
from dtrees.core._search cimport Search
from dtrees.core._structs cimport (
    CLASSES, COUNT, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode, Payload
)


cdef inline void add_row(int64_t* cell, int64_t row, const Payload* payload,
                         Mode mode) noexcept nogil:
    cell[0] += 1
    if mode == COUNT:
        cell[1] += 1
        cell[2] += payload.label[row]
    elif mode == SUM:
        cell[1] += 1
        cell[2] += payload.target[row]
    elif mode == WEIGHTED_SUM:
        cell[1] += payload.weight[row]
        cell[2] += payload.target[row]
    elif mode == CLASSES:
        cell[1] += 1
        cell[2 + payload.label[row]] += 1
    else:
        cell[1] += payload.weight[row]
        cell[2 + payload.label[row]] += payload.weight[row]


cdef inline void add_rows_in(const code_t* codes, const uint32_t* rows, int64_t n,
                             const Payload* payload, Mode mode, int64_t stride,
                             int64_t* histogram) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        add_row(histogram + codes[rows[i]] * stride, rows[i], payload, mode)


cdef void add_rows(const code_t* codes, const uint32_t* rows, int64_t n, const Payload* payload,
                   Mode mode, int64_t stride, int64_t* histogram) noexcept nogil:
    """Add the n rows of a node to the histogram of one dense column. O(n)."""
    if mode == COUNT:
        add_rows_in(codes, rows, n, payload, COUNT, 3, histogram)
    elif mode == SUM:
        add_rows_in(codes, rows, n, payload, SUM, 3, histogram)
    elif mode == WEIGHTED_SUM:
        add_rows_in(codes, rows, n, payload, WEIGHTED_SUM, 3, histogram)
    elif mode == CLASSES:
        add_rows_in(codes, rows, n, payload, CLASSES, stride, histogram)
    else:
        add_rows_in(codes, rows, n, payload, WEIGHTED_CLASSES, stride, histogram)


cdef void groups_of_histogram(Search* q, const int64_t* histogram, int64_t n_codes) noexcept nogil:
    """The codes that occur, as groups of the search. O(n_codes * width)."""
    cdef int64_t width = q.n_columns_of_target
    cdef const int64_t* cell
    cdef int64_t code, g, k
    q.groups.count = 0
    for code in range(n_codes + 1):
        cell = histogram + code * (2 + width)
        if cell[0] == 0:
            continue
        g = append_group(q, <uint32_t>code, -1)
        q.groups.n[g] = cell[0]
        q.groups.weight[g] = cell[1]
        for k in range(width):
            q.groups.target[g * width + k] = cell[2 + k]
