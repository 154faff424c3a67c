"""Trees grown leaf by leaf; see _leaf_wise.pyx."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dtrees.core.data._structs cimport Split
from dtrees.core.grow._boosted_draws cimport ColumnDraws, RowDraws
from dtrees.core.grow._node_buffer cimport NodeBuffer, Record
from dtrees.core.grow._row_derivatives cimport RowSquares
from dtrees.core.grow._team cimport Team
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores.boosted._boosted_store cimport BoostedStore
from dtrees.core.stores.boosted._column_blocks cimport ColumnBlocks

cdef struct Leaf:
    OpenNode node
    Split split             # the best one, as its search left it
    bint is_open            # it has a split, which gains something
    int64_t rest_start      # rows[rest_start .. rest_start + rest_n) are there, and not grown from
    int64_t rest_n

cdef struct LeafHeap:
    int64_t* leaves         # numbers; the one that is split next comes first
    int64_t n
    bint by_gain            # otherwise the last leaf is split first


cdef class LeafWiseGrower:
    cdef ColumnBlocks blocks
    cdef Team team
    cdef object rules
    cdef readonly double l2         # in units of the hessians of the last tree
    cdef double gain_unit           # what a gain is in the units of the loss
    cdef TrainParameters params
    cdef BoostedStore store
    cdef NodeBuffer out
    cdef Leaf* leaves
    cdef int64_t n_leaves
    cdef int64_t leaves_capacity
    cdef LeafHeap open_leaves       # the one that is split next comes first
    cdef int64_t most_leaves
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_drawn       # rows that a tree is grown from
    cdef readonly int64_t n_counted     # rows of all nodes that were counted
    cdef uint64_t[::1] derivatives
    cdef const uint32_t[::1] chosen
    cdef const uint32_t* first_chosen   # NULL: all rows of the table
    cdef RowSquares squares             # or None: many categories pay nothing
    cdef uint32_t[::1] rows
    cdef uint32_t[::1] scratch
    cdef readonly object n_searched     # sparse columns of nodes, by block: int64
    cdef RowDraws row_draws             # or None: all of them
    cdef list alive                 # arrays whose memory the parameters point to
    cdef ColumnDraws draws

    cdef void sum_up(self, const int64_t* of_leaves) noexcept nogil
    cdef void move_rows(self, const double* steps, double* raw) noexcept nogil
    cdef bint search_children(self, Leaf* lesser, Leaf* other, bint search_lesser,
                              bint search_other) noexcept nogil
    cdef void take_split(self, Leaf* leaf, int which) noexcept nogil
    cdef bint grow_all(self) noexcept nogil
    cdef void split_rest(self, Leaf* leaf, Leaf* right, Record* record) noexcept nogil
    cdef bint split_best(self, int64_t best) noexcept nogil
    cdef bint can_split(self, const OpenNode* node) noexcept nogil
    cdef bint reserve_leaves(self) noexcept nogil
