"""What does not change while a tree grows. No code but one rule, no Python objects."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t

from dtrees.core.data._columns cimport Column, RowCodes, RowLists
from dtrees.core.histogram._layout cimport Layout
from dtrees.core.search._criterion cimport Criterion

cdef enum:
    SPLITS = 1              # draws of a node beside those of columns
    TIES = 2

cdef struct CountRule:
    # Which presorted columns are counted instead.
    int64_t n_words         # of a cell; 0: none is
    int64_t least_rows      # nodes of fewer rows are not; 0: whatever they cost (for tests)

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
    bint random_splits
    bint random_ties
    # (n_columns, n_set_words): sets that a column is in, a bit each; NULL: all columns interact.
    # A column in none of them is not used
    const uint64_t* sets_of_column
    int64_t n_set_words
    const int64_t* column_weights   # in units, how likely each is drawn; NULL: all alike
    int64_t heaviest_column
    const int8_t* monotonic  # by column: 1, -1: values rise, fall along it; NULL: none has to
    # candidates are scored by values of both sides, which are monotonic, or regularized steps
    bint scores_by_values

cdef inline bint gains_enough(const Limits* limits, double gain) noexcept nogil:
    """The rule of `dtrees.core.model.pruning.decrease`, with the same rounding."""
    return gain / limits.total_weight + 2.220446049250313e-16 >= limits.min_decrease


cdef inline bint may_use(const Limits* limits, const uint64_t* sets,
                         int32_t column) noexcept nogil:
    """Whether a column interacts with all columns of the tests above a node; one that is in no set
    does not, at the root either.

    sets : of the node, as in `Inherited`.
    """
    cdef const uint64_t* of_column = limits.sets_of_column + column * limits.n_set_words
    cdef int64_t i
    for i in range(limits.n_set_words):
        if of_column[i] & (~<uint64_t>0 if sets == NULL else sets[i]):
            return True
    return limits.n_set_words == 0


cdef inline bint may_follow(const Limits* limits, const uint64_t* sets, int32_t above,
                            int32_t column) noexcept nogil:
    """Whether a column may be used below a test of the column `above` in a node.

    sets : of the node, as in `Inherited`. There are sets.
    """
    cdef const uint64_t* of_above = limits.sets_of_column + above * limits.n_set_words
    cdef const uint64_t* of_column = limits.sets_of_column + column * limits.n_set_words
    cdef int64_t i
    for i in range(limits.n_set_words):
        if of_above[i] & of_column[i] & (~<uint64_t>0 if sets == NULL else sets[i]):
            return True
    return False


cdef struct TrainParameters:
    # What does not change while a tree grows.
    const Column* columns
    Criterion criterion
    Limits limits
    Layout layout           # of histograms
    int n_statistics        # of a node: weight and target, or a weight per class
    CountRule count_rule    # which presorted columns are counted instead
    bint draws              # nodes search some columns only, read afresh
    RowLists lists          # where columns are drawn
    RowCodes row_codes      # for random splits, where these are worth it
    const double* values    # of ordered codes, for random splits
    const int64_t* first_value  # by column: where its codes begin in `values`
