"""What does not change while a tree grows. No code but one rule, no Python objects."""
from libc.stdint cimport int64_t, uint64_t

from dtrees.core._columns cimport Column, RowCodes, RowLists
from dtrees.core._criterion cimport Criterion
from dtrees.core._structs cimport Mode
from dtrees.core._workspace cimport CountRule

cdef enum:
    CUTS = 1                # draws of a node beside those of columns
    TIES = 2

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
    bint random_ties

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
    RowCodes row_codes      # for random cuts, where these are worth it
    const double* values    # of ordered codes, for random cuts
    const int64_t* first_value  # by column: where its codes begin in `values`
