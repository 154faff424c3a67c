"""Statistics per code; see _histogram.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t

from dtrees.core._columns cimport Column
from dtrees.core._search cimport Search
from dtrees.core._structs cimport (
    CLASSES, COUNT, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode, Payload, Run
)
from dtrees.core._workspace cimport OpenNode, Workspace


cdef inline int64_t stride_of(Mode mode, int n_classes) noexcept nogil:
    """Numbers in a cell."""
    if mode == COUNT:
        return 1
    if mode == SUM:
        return 2
    if mode == WEIGHTED_SUM:
        return 3
    if mode == CLASSES:
        return n_classes
    return 1 + n_classes


cdef inline void add_row(int64_t* cell, int64_t row, const Payload* payload,
                         Mode mode) noexcept nogil:
    """Add a row to the cell of its code."""
    if mode == COUNT:
        cell[0] += <int64_t>1 << 32 | payload.label[row]
    elif mode == SUM:
        cell[0] += 1
        cell[1] += payload.target[row]
    elif mode == WEIGHTED_SUM:
        cell[0] += 1
        cell[1] += payload.weight[row]
        cell[2] += payload.target[row]
    elif mode == CLASSES:
        cell[payload.label[row]] += 1
    else:
        cell[0] += 1
        cell[1 + payload.label[row]] += payload.weight[row]


cdef void add_rows(const Column* column, const Payload* payload, Mode mode, int64_t stride,
                   const uint32_t* row_id, const uint32_t* rows, int64_t n,
                   int64_t* histogram) noexcept nogil
cdef void count_runs(const Workspace* w, const Column* columns, Mode mode, int64_t stride,
                     const Run* runs, int64_t n_runs, int64_t start, int64_t n,
                     int64_t* histogram) noexcept nogil
cdef void part_histogram(const Workspace* w, const Column* columns, Mode mode, int64_t stride,
                         const Run* runs, int64_t n_runs, int64_t n_cells,
                         const OpenNode* left, const OpenNode* right, bint left_wants,
                         bint right_wants, int64_t** of_node, int64_t** of_left,
                         int64_t** of_right) noexcept nogil
cdef void groups_of_histogram(Search* q, const int64_t* histogram, int64_t n_codes) noexcept nogil
cdef bint search_histogram(Search* q, const int64_t* histogram, int64_t n_codes, int32_t column,
                           uint32_t last_ordered) noexcept nogil
