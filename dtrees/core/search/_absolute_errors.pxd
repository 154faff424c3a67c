"""Rows of a node by their place in the order of y; see _absolute_errors.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef struct Link:
    int32_t before
    int32_t after

cdef struct Ordered:
    # Some places, linked in ascending order, and their middle.
    Link* link              # by place; 0 and n + 1 are the ends
    int64_t middle          # the lower one of two,
    int64_t upper           # and the upper one; or the only one
    int64_t errors          # absolute errors about it
    int64_t weight          # of all
    int64_t passed          # of weighted rows: weight up to the lower middle one,
    int64_t below           # weighted target up to it,
    int64_t target          # and of all

cdef struct AbsoluteErrors:
    # of a growth
    bint weighted
    int shift               # `Criterion.shift_of_products`
    # of the node: n rows, with places 1 .. n
    int64_t n
    int64_t* y              # by place; 0 at 0 and n + 1
    int64_t* w              # the same
    int64_t* wy
    uint32_t* place         # by row, where rows have other numbers than their places from 0
    bint has_place
    Ordered node
    # of the column: places in the order in which they come to the side
    int64_t count
    uint32_t* moved
    uint64_t* of_bins       # bin after bin, ascending in each; `bins.target` is where it begins
    # by how many have come: absolute errors, and twice the medians, of the side and of the rest
    int64_t* of_side
    int64_t* of_rest
    int64_t* middle_of_side
    int64_t* middle_of_rest
    # scratch
    uint64_t* sorted
    uint64_t* scratch
    Link* link              # of the side
    int64_t room
    int64_t room_of_rows

cdef AbsoluteErrors* new_errors(bint weighted, int shift) noexcept nogil
cdef void free_errors(AbsoluteErrors* e) noexcept nogil
cdef bint reserve_places(AbsoluteErrors* e, int64_t n, int64_t n_rows) noexcept nogil
cdef void begin_places(AbsoluteErrors* e) noexcept nogil
cdef void tell_sides(AbsoluteErrors* e, bint with_middles) noexcept nogil
cdef void tell_last(AbsoluteErrors* e) noexcept nogil


cdef inline void move_row(AbsoluteErrors* e, int64_t row) noexcept nogil:
    """Move a row to the side."""
    e.moved[e.count] = e.place[row] if e.has_place else <uint32_t>(row + 1)
    e.count += 1
