"""Whole subtrees in one call; see _finish.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core._criterion cimport Criterion
from dtrees.core._drawn cimport Reader
from dtrees.core._search cimport Search
from dtrees.core._structs cimport Mode, Payload, Run, Split, Totals, entry_t
from dtrees.core._workspace cimport Column, CountRule, OpenNode, RowLists, Workspace

cdef enum:
    CUTS = 1                # draws of a node beside those of columns

cdef struct Limits:
    int64_t max_depth
    int64_t min_samples_split
    int64_t min_rows
    int64_t min_weight
    double min_decrease     # least gain of a split divided by the weight of all rows,
    double total_weight     # both in the user's units
    int64_t max_features    # columns drawn at a node; n_columns: all
    int64_t n_columns
    uint64_t seed
    uint64_t tree
    bint unseen_by_majority
    bint random_cuts

cdef inline bint gains_enough(const Limits* limits, double gain) noexcept nogil:
    """The rule of `dtrees.core.pruning.min_impurity_decrease`, with the same rounding."""
    return gain / limits.total_weight + 2.220446049250313e-16 >= limits.min_decrease


cdef struct Plan:
    # What does not change while a tree grows.
    const Column* columns
    Criterion criterion
    Limits limits
    Mode mode
    int n_statistics        # of a node: weight and target, or a weight per class
    int64_t stride          # numbers in a cell of a histogram
    CountRule count_rule    # which columns are counted; stride 0: histograms are not kept
    bint draws              # nodes search some columns only, read afresh
    RowLists lists          # where columns are drawn
    const double* values    # of ordered codes, for random cuts
    const int64_t* first_value  # by column: where its codes begin in `values`

cdef struct Record:
    # A grown node, as the kernels write it.
    int64_t n
    int64_t subset          # offset of its words, -1: none
    double impurity
    double gain
    int64_t left            # record numbers; -1 in leaves
    int64_t right
    int32_t column
    uint32_t boundary       # codes of the two neighbours of the test's boundary
    uint32_t beyond
    uint8_t test
    uint8_t missing_left

cdef struct Records:
    Record* nodes
    int64_t* statistics     # (count, n_statistics)
    int64_t count
    int64_t capacity
    uint64_t* words
    int64_t n_words
    int64_t words_capacity

cdef void free_records(Records* out) noexcept nogil
cdef void free_node(OpenNode* node) noexcept nogil
cdef int64_t write_record(Records* out, const Plan* plan, const OpenNode* node) noexcept nogil
cdef void write_test(Records* out, int64_t record, const Plan* plan, const Workspace* w,
                     Search* q, const Run* run, const Totals* left,
                     const Totals* right) noexcept nogil
cdef void sum_rows(const Payload* payload, const Plan* plan, const uint32_t* rows, int64_t n,
                   Totals* totals, int64_t* class_totals) noexcept nogil
cdef void describe(OpenNode* node, const Plan* plan) noexcept nogil
cdef void open_children(const Plan* plan, Workspace* w, const OpenNode* node, int64_t record,
                        OpenNode* left, OpenNode* right) noexcept nogil
cdef int64_t draw_columns(const Plan* plan, uint64_t path, int32_t* order, int32_t* swapped,
                          int64_t first, int64_t count) noexcept nogil

cdef struct Frame:
    Workspace* workspace
    OpenNode* open
    int64_t n_open
    int64_t capacity

cdef enum:
    MAX_FRAMES = 12

cdef struct Growth:
    # A subtree that grows; can stop between any two nodes and go on. Its memory serves the next.
    const Plan* plan
    Search* search
    Records out
    Frame frames[MAX_FRAMES]
    int n_frames
    int32_t* drawn          # permutation of the columns, and how to undo a node's draws
    int32_t* swapped
    int32_t* ascending
    Reader* reader          # of drawn columns
    Run no_run              # what drawn columns have
    int64_t work            # entries looked at since the start

cdef Growth* new_growth() noexcept nogil
cdef bint begin_growth(Growth* g, const Plan* plan, Workspace* w, OpenNode* root) noexcept nogil
cdef void end_growth(Growth* g) noexcept nogil
cdef bint grow_for(Growth* g, int64_t work) noexcept nogil
cdef void free_growth(Growth* g) noexcept nogil
