"""The root of a tree whose columns are presorted; see _presorted_root.pyx."""
from libc.stdint cimport int64_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.presorted._buffers cimport Counted, Buffers
from dtrees.core.grow._arena cimport GrowthMemory, Arena
from dtrees.core.grow._level_wise_node cimport LevelWiseNode


cdef class PresortedRoot:
    cdef Dataset dataset
    cdef object tuning
    cdef Arena arena
    cdef GrowthMemory memory       # rows only: of the growth, which also lists them
    cdef TrainParameters params
    cdef Column* columns
    cdef Buffers* buffers
    cdef Buffers* wide    # while the root is relocated
    cdef Counted* counted   # by block of columns
    cdef int64_t n_rows
    cdef const int64_t[::1] offsets

    cdef borrow_rows(self)
    cdef list column_blocks(self, int n_blocks)
    cdef LevelWiseNode open_root(self, run, list blocks, int64_t depth, uint64_t path)
    cdef bint is_sorted(self, const Column* column) noexcept nogil
    cdef int64_t reserve_histogram(self, const Column* column, int64_t n, int block) noexcept
    cdef relocate_root(self, run, LevelWiseNode root)
