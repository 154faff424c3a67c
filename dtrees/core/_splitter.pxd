"""Declarations of the split search; see _splitter.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core._criterion cimport Criterion
from dtrees.core._structs cimport Mode, Payload, Run, Split, Totals, entry_t, int128_t

cdef enum:
    BUFFER = 256            # boundaries that are scored together

cdef struct Keyed:
    double key
    int64_t group

cdef struct Groups:
    # The distinct ranks of a column in a node, ascending, with their statistics.
    int64_t count
    int64_t capacity
    uint32_t* rank
    int64_t* row            # a row that holds the rank, -1 for the fill code
    int64_t* n
    int64_t* weight
    int64_t* target         # pair modes: count; CLASSES modes: count x n_classes
    Keyed* order            # scratch of the category search

cdef struct Search:
    # IN, per growth
    const Criterion* criterion
    Mode mode
    Payload payload
    int n_columns_of_target # statistics of a group beside its weight: 1 or n_classes
    int64_t min_rows        # least rows and least weight of a side
    int64_t min_weight
    # IN, per node
    Totals totals
    double W
    double S
    const int64_t* class_totals
    int128_t squares        # gini: sum of squared class weights
    int64_t entropy         # entropy: sum f(t)
    int64_t too_short       # runs of fewer entries cannot beat the split found so far
    # STATE of a scan: sums over the side that rows are added to
    int64_t n
    int64_t w
    int64_t s
    int64_t* side           # n_classes
    bint side_is_clear      # all of them are zero
    int128_t side_squares   # gini: sum a*a; entropy: sum f(a) + f(t - a)
    int128_t cross          # gini: sum t*a
    # STATE of the column: its best boundary so far
    double best
    double floor            # best before the current pass
    int64_t best_at
    uint8_t best_test
    uint8_t best_missing
    uint8_t test            # of the current pass
    uint8_t missing
    # SCRATCH
    Groups groups
    int64_t buffered
    double buffer_w[BUFFER]
    double buffer_a[BUFFER]
    double buffer_b[BUFFER]
    double buffer_score[BUFFER]
    int32_t buffer_at[BUFFER]
    double* component       # n_classes x (n_classes + 2), principal component
    uint64_t* subset        # bit per rank: the best subset of the column
    int64_t subset_words
    # OUT
    Split split
    uint64_t* split_subset  # bit per rank, when split.test is IN_SUBSET
    int64_t split_subset_words


cdef Search* new_search(const Criterion* criterion, Mode mode, Payload payload,
                        int64_t min_rows, int64_t min_weight) noexcept nogil
cdef void free_search(Search* q) noexcept nogil
cdef void begin_node(Search* q, const Totals* totals, const int64_t* class_totals) noexcept nogil
cdef bint search_run(Search* q, const entry_t* entries, const Run* run) noexcept nogil
cdef void collect_groups(Search* q, const entry_t* entries, const Run* run) noexcept nogil
cdef void search_groups(Search* q, int32_t column, uint32_t last_ordered) noexcept nogil
cdef void finish_node(Search* q) noexcept nogil
cdef int64_t append_group(Search* q, uint32_t rank, int64_t row) noexcept nogil
