"""Leaves of many rows by masks; see _leaf_masks.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.predict._grown_trees cimport Grown
from dtrees.core.predict._walk cimport BinnedNode

cdef enum:
    MOST_INNER = 63             # nodes of a tree whose leaves are looked up

cdef struct LeafMasks:
    # Rows that are asked for, and room for the masks of a tree.
    const Column* columns
    int64_t n_columns           # of the table
    const int64_t* rows
    int64_t n
    uint8_t** codes             # (n_columns,): of these rows, once a tree tests the column; or NULL
    int32_t* slot               # (n_columns,): of the masks of a column; -1: not tested
    uint64_t* masks             # (columns that are tested, 256)


cdef void free_masks(LeafMasks* asked) noexcept nogil
cdef bint leaves_by_masks(LeafMasks* asked, const Grown* tree, const BinnedNode* nodes,
                          const int32_t* inner, int64_t n_inner, Py_ssize_t* leaf) noexcept nogil
