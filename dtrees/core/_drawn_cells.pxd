"""Drawn columns by histogram; see _drawn_cells.pyx."""
from libc.stdint cimport int64_t

from dtrees.core._columns cimport Column
from dtrees.core._reader cimport Reader
from dtrees.core._search cimport Search, by_class
from dtrees.core._workspace cimport OpenNode


cdef inline int64_t stride_of_reader(const Reader* reader, const Search* q) noexcept nogil:
    """Numbers in a cell: one when packed, else rows, weight and target, or rows and classes; rows
    and weights share a number when paired."""
    if reader.is_packed:
        return 1
    if by_class(q):
        return q.criterion.n_classes + (not reader.is_paired)
    return 2 if reader.is_paired else 3


cdef void read_groups(Reader* reader, Search* q, const Column* column,
                      const OpenNode* node) noexcept nogil
