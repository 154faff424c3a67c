"""Declarations of shared growth; see _shared.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core._columns cimport Column
from dtrees.core._plan cimport Plan
from dtrees.core._pool cimport Memory, Pool
from dtrees.core._records cimport Records
from dtrees.core._search cimport Search
from dtrees.core._shard cimport Shard
from dtrees.core._shared_classes cimport ClassCounts
from dtrees.core._shared_counts cimport Counting
from dtrees.core._shared_nodes cimport MOST_SETS, SharedNode
from dtrees.core._structs cimport Run, Totals
from dtrees.core._workspace cimport OpenNode, Workspace

cdef class TrainingSets:
    cdef Shard shard
    cdef int n_sets
    cdef Plan* plans        # by set
    cdef const uint8_t[:, ::1] has  # (n_sets, n_cells)
    cdef const uint16_t[::1] cell
    cdef const uint16_t[::1] times  # of a bag, or None
    cdef bint is_packed     # two classes, and what rows add goes into one number
    cdef int64_t shared_rows    # of a node whose sets stay together
    cdef int64_t stride     # numbers of a cell of a histogram

    cdef choose_cells(self)


cdef class SharedTask:
    cdef SharedNode* node
    cdef int64_t work


cdef class SharedGrowth:
    cdef TrainingSets sets
    cdef Shard shard
    cdef Pool pool
    cdef Memory memory
    cdef int n_sets
    cdef Plan* plans        # of the sets
    cdef Search** searches
    cdef Records* records
    cdef SharedNode* top    # nodes that wait
    cdef SharedNode* handed     # to other threads, the last one first
    cdef int64_t* n_handed  # by set
    cdef int64_t most_handed    # work of a node that is
    cdef int64_t least_divided  # rows times columns of a node that several threads search
    cdef SharedNode* large  # such a node, which waits for them
    cdef const SharedNode* searched     # of which some columns were searched
    cdef int alone          # the set whose subtree grows; -1: none
    cdef bint starved       # memory was asked for and not there: the trees are lost
    cdef int64_t work
    # scratch
    cdef Workspace view     # rows of a set that goes on alone
    cdef Run no_run
    cdef int32_t* order     # permutation of the columns, and how to undo a node's draws
    cdef int32_t* swapped
    cdef int64_t* cells     # histograms of one column
    cdef const int64_t* lacking[MOST_SETS]  # of them: of what a member lacks
    cdef const int64_t* all     # and of all rows that all have
    cdef const int64_t* more    # and, by member, of what only some have; NULL: nothing
    cdef int64_t n_cells_of_scratch
    cdef Counting counting  # of the node that is searched
    cdef bint by_classes    # its ordered columns are searched for all members at once
    cdef ClassCounts classes
    cdef int64_t* added     # what its rows add, packed
    cdef int64_t n_added    # room
    cdef uint32_t* code     # codes that occur in the node
    cdef uint32_t* rank     # and their places; by code
    cdef uint64_t* hit
    cdef uint64_t* left_of  # by code: the members that send it left
    cdef Totals* totals     # by cell
    cdef int64_t* class_totals
    cdef int64_t* sums      # where rows are packed

    cdef list grow(self, cancelled, run=*, int n_blocks=*, list idle=*)
    cdef search_large(self, run, int n_blocks, list idle)
    cdef void search_block(self, const SharedNode* node, int64_t first,
                           int64_t step) noexcept nogil
    cdef take_better(self, SharedGrowth other)
    cdef void begin_search(self, const SharedNode* node) noexcept nogil
    cdef void begin_classes(self, const SharedNode* node) noexcept nogil
    cdef void gather(self, const SharedNode* node) noexcept nogil
    cdef void end_search(self, const SharedNode* node) noexcept nogil
    cdef list grow_task(self, SharedTask task, cancelled)
    cdef list take_handed(self)
    cdef open_root(self, int64_t depth, uint64_t path)
    cdef void sum_cells(self, const SharedNode* node) noexcept nogil
    cdef void sum_members(self, SharedNode* node) noexcept nogil
    cdef void unpack_members(self, SharedNode* node) noexcept nogil
    cdef bint go_on(self, int64_t work) noexcept nogil
    cdef bint take_up(self, SharedNode* node) noexcept nogil
    cdef void hand_over(self, SharedNode* node) noexcept nogil
    cdef bint pays(self, const SharedNode* node) noexcept nogil
    cdef void begin_alone(self, SharedNode* node, int member) noexcept nogil
    cdef bint reserve_alone(self, OpenNode* root) noexcept nogil
    cdef void end_alone(self) noexcept nogil
    cdef void search_node(self, SharedNode* node) noexcept nogil
    cdef void search_column(self, const SharedNode* node, int32_t number,
                            uint64_t members) noexcept nogil
    cdef int64_t number_codes(self, const SharedNode* node, const Column* column) noexcept nogil
    cdef bint count_column(self, const SharedNode* node, const Column* column,
                           int64_t width) noexcept nogil
    cdef void groups_of_member(self, Search* q, const SharedNode* node, int member,
                               int64_t width) noexcept nogil
    cdef void part_node(self, SharedNode* node) noexcept nogil
    cdef void part_members(self, SharedNode* node, uint64_t together,
                           int32_t number) noexcept nogil
    cdef void open_members(self, const SharedNode* node, SharedNode* child, const int* member,
                           const int64_t* sums, bint is_left) noexcept nogil
