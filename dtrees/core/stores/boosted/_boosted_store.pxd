"""A store of rows that grow leaf after leaf; see _boosted_store.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport Column
from dtrees.core.data._structs cimport Split, Totals
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._partition cimport Route
from dtrees.core.stores._store cimport Store
from dtrees.core.stores.boosted._column_blocks cimport (
    CELL, ColumnBlock, ColumnBlocks, StoredSums, StridedCodes
)

cdef struct Found:
    # The best split of a node, as those know it who have not searched its column. Behind it are
    # the gradients of several outputs that its left side has, and words of a bit a code, of a
    # subset: which codes the node has, and which of them go left.
    Split split
    int64_t n_left          # sums over the rows of its left side
    int64_t weight_left
    int64_t target_left
    int64_t has_rest        # whether there are rows of the node that it is not grown from

cdef struct Part:
    # Columns that are one behind the other in all blocks, and where they are in a histogram.
    int64_t first
    int64_t end
    int64_t first_cell
    int64_t n_cells

cdef struct BoostedStore:
    Store store                 # its search: of the leader
    const ColumnBlock* blocks
    const ColumnBlock* searched     # the columns of these that are searched here
    int64_t n_blocks
    int64_t n_cells
    const int64_t* cell_of_column
    const uint8_t* is_bundled   # by column
    const StridedCodes* places  # by column
    int64_t mapped_rows         # of columns in files; 0: they are in memory
    uint64_t* derivatives       # by row; of several outputs, (n_outputs, n_rows)
    int n_outputs               # whose histograms of a node stand one behind the other
    int64_t n_rows              # of the table
    uint32_t* rows              # leaf after leaf, ascending in each
    uint32_t* scratch           # as many
    Search** searches           # by block, and the leader's
    int64_t n_sums              # `StoredSums` behind the cells of a histogram; 0 or n_laid_out
    int64_t* n_searched         # sparse columns, by block
    const int32_t* order        # columns, block after block
    Split* found                # by block, of the smaller and of the larger child
    int64_t n_here              # rows of the node that is partitioned, of those that are here
    int64_t n_left_here         # of its left child, OUT
    int64_t** free_histograms
    int64_t n_free
    bint is_whole               # the node has all rows of the table
    const Found* told           # of the node that is split; NULL: it was searched here

cdef struct ChildSearch:
    # The children of a node: their histograms from that of the node, and their best splits.
    BoostedStore* s
    OpenNode* lesser            # whose rows are counted
    int64_t n_here              # these rows, of those that are here
    OpenNode* other             # NULL: there is none (the root)
    bint search_lesser
    bint search_other
    const uint8_t* drawn_of_lesser  # by column, whether it is searched; NULL: all are
    const uint8_t* drawn_of_other

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


cdef enum:
    UNLIMITED = 0x7FFFFFFFFFFFFFFF
    SUMS_OF_NODE = 5        # words behind a histogram, for what else members add up of a node


cdef BoostedStore boosted_store() noexcept nogil
cdef int64_t partition_rows(const BoostedStore* s, int32_t j, const Route* route, uint32_t* rows,
                            int64_t n) noexcept nogil
cdef void bind_blocks(BoostedStore* s, ColumnBlocks blocks) noexcept
cdef list bind_rules(TrainParameters* params, ColumnBlocks blocks, rules, int shift)
cdef void count_chunk(void* job, int64_t number) noexcept nogil
cdef void search_chunk(void* job, int64_t number) noexcept nogil
cdef void count_and_search_chunk(void* job, int64_t number) noexcept nogil
cdef Part part_of(const BoostedStore* s, ColumnBlocks blocks, int64_t number,
                  int64_t n_parts) noexcept
cdef void bind_part(ColumnBlock* searched, const BoostedStore* s, const Part* part) noexcept
cdef int64_t size_of_part(const BoostedStore* s, const Part* part) noexcept nogil
cdef void copy_part(const BoostedStore* s, const Part* part, int64_t* histogram, int64_t* words,
                    bint back) noexcept nogil
cdef void tell_split(BoostedStore* s, OpenNode* node, Found* found) noexcept nogil
cdef int64_t size_of_histogram(const BoostedStore* s) noexcept nogil
cdef int64_t words_of_outputs(const BoostedStore* s) noexcept nogil
cdef int64_t to_next_output(const BoostedStore* s) noexcept nogil
cdef int64_t* take_histogram(BoostedStore* s) noexcept nogil
cdef void give_back_histogram(BoostedStore* s, OpenNode* node) noexcept nogil
cdef void choose_split(BoostedStore* s, OpenNode* node, const Split* split) noexcept nogil
cdef bint has_lost_splits(const BoostedStore* s) noexcept nogil
cdef Removal removal_of(const Search* q, const Totals* lesser, const Totals* other,
                        int shift) noexcept nogil
cdef void begin_bounds_of(StoredSums* sums, int64_t n_columns, int shift,
                          int64_t min_rows) noexcept nogil
cdef void take_off_sums(const Removal* removal, const StoredSums* taken, int64_t n_columns,
                        StoredSums* sums) noexcept nogil
cdef double common_score(const Search* q) noexcept nogil
cdef void note_searched(const Search* q, const Column* column, const int64_t* cells, int shift,
                        double common, StoredSums* sums) noexcept nogil
cdef double bound_of(const StoredSums* sums, double common) noexcept nogil
