"""Nodes of few rows; see _few_rows.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.stores._store cimport Store
from dtrees.core.stores.presorted._buffers cimport Buffers

cdef enum:
    DIGITS = 16             # of four bits, in an integer: rows of a node, at most
    MOST_COLUMNS = 4096     # of such a node; a multiple of eight


cdef struct FewRowsStore:
    Store store
    Buffers* w
    uint32_t[DIGITS] row    # of the buffers, by number of the row
    int64_t[DIGITS] target
    int64_t chosen          # column of the split, by its place,
    int64_t n_left          # and how many rows go left

cdef FewRowsStore few_rows_store() noexcept nogil
cdef bint may_pack(const Store* store, const Buffers* w, const OpenNode* node) noexcept nogil
cdef bint pack(FewRowsStore* s, const Store* store, Buffers* w, OpenNode* node) noexcept nogil
