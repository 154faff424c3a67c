"""Nodes of few rows; see _few_rows.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.stores._store cimport Store
from dtrees.core.stores.presorted._buffers cimport Buffers

cdef extern from "stores/few_rows.h" nogil:
    const int FEW_ROWS
    const int FEW_COLUMNS
    ctypedef struct FewColumns:
        uint64_t* order         # by column, a digit of four bits for each row
        uint64_t* rank
        int32_t* column
        int64_t n


cdef struct FewRowsStore:
    Store store
    Buffers* w
    uint32_t[16] row        # of the buffers, by number of the row
    int64_t[16] target
    int64_t chosen          # column of the split, by its place,
    int64_t n_left          # and how many rows go left

cdef FewRowsStore few_rows_store() noexcept nogil
cdef bint may_pack(const Store* store, const Buffers* w, const OpenNode* node) noexcept nogil
cdef bint pack(FewRowsStore* s, const Store* store, Buffers* w, OpenNode* node) noexcept nogil
