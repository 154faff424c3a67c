"""Bounds of what sparse columns can gain; see _stored_bounds.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport Totals
from dtrees.core.search._search cimport Search
from dtrees.core.stores.boosted._stored_rows cimport StoredSums

cdef struct Removal:
    # Rows that are taken off a node, which becomes its larger child; hessians with l2 once a side.
    int shift
    int64_t min_rows
    double l2
    double floor            # the least weight of a side, with l2
    double weight           # of the child, with l2 of both sides
    double taken            # weight that is taken off
    double step             # gradient by weight of the node, without its sign
    double moved            # how far that moves


cdef Removal removal_of(const Search* q, const Totals* lesser, const Totals* other,
                        int shift) noexcept nogil
cdef void begin_bounds_of(StoredSums* sums, int64_t n_columns, int shift,
                          int64_t min_rows) noexcept nogil
cdef void take_off_sums(const Removal* removal, const StoredSums* taken, int64_t n_columns,
                        StoredSums* sums) noexcept nogil
cdef double common_score(const Search* q) noexcept nogil
cdef void note_searched(const Search* q, const Column* column, const int64_t* cells, int shift,
                        double common, StoredSums* sums) noexcept nogil
cdef int64_t most_promising(const StoredSums* sums, int64_t n_columns) noexcept nogil


cdef inline double bound_of(const StoredSums* sums, double common) noexcept nogil:
    """No boundary of the column has a score above it; it may be inf. common : `common_score`."""
    return (common + sums.most * sums.most) * (1.0 + 1e-9)
