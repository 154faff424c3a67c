"""Nodes that have no split yet; see _open_node.pyx."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t, uint64_t

from dtrees._random cimport hash64
from dtrees.core.data._structs cimport Inherited, PresortedFeature, RowStatistics, Totals
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._parameters cimport TrainParameters

cdef extern from *:
    """
    #define DTREES_NOT_ALLOWED -2e290
    """
    const double NOT_ALLOWED "DTREES_NOT_ALLOWED"   # a score, below `_search.NONE`

cdef struct Monotonic:
    # What the values of both sides of a split have to keep.
    const int8_t* of_column     # 1: values rise along it, -1: they fall; NULL: no column is bound
    int direction               # that of the column at hand
    double lower                # of the node
    double upper
    double value                # of the node, where those of its children are smoothed

cdef struct OpenNode:
    int64_t start           # rows[start .. start + n)
    Totals totals
    int64_t* class_totals   # (n_classes,), NULL for one number per row
    PresortedFeature* features  # columns that still vary, ascending; length 0: read by histogram
    int64_t n_features
    void* few_columns       # instead of the features, where there are few rows (`_few_rows`)
    uint32_t* orders        # of several medians: places of the rows in the order of each output
    int64_t* histogram      # of the features of length 0, at their offsets; NULL: not counted yet
    int64_t depth
    int64_t record          # once it is written
    int64_t parent          # record of the parent, -1 for a root
    bint is_left
    bint is_leaf
    uint64_t path           # key of the node's draws
    double impurity
    Inherited above

cdef void begin_bounds(Monotonic* m, const Inherited* above) noexcept nogil
cdef double constrained_score(const Monotonic* m, const Criterion* criterion, double w,
                              double rest, double s, double target_of_rest,
                              double score) noexcept nogil
cdef double loss_of_node(const Monotonic* m, const Criterion* criterion, double w,
                         double s) noexcept nogil
cdef double value_of_node(const TrainParameters* params, const OpenNode* node,
                          double above) noexcept nogil
cdef void free_node(OpenNode* node) noexcept nogil
cdef void describe(OpenNode* node, const TrainParameters* params) noexcept nogil
cdef bint sum_by_orders(const OpenNode* node, const TrainParameters* params,
                        const RowStatistics* of_row, const uint32_t* rows, OpenNode* left,
                        OpenNode* right) noexcept nogil
cdef bint open_children(const OpenNode* node, int64_t n_left, int n_classes, OpenNode* left,
                        OpenNode* right) noexcept nogil
cdef bint restrict_children(const TrainParameters* params, const OpenNode* node, int32_t column,
                            OpenNode* left, OpenNode* right) noexcept nogil
cdef void subtract_child(const OpenNode* node, const OpenNode* child, int n_classes,
                         OpenNode* other) noexcept nogil


cdef inline uint64_t key_of_child(uint64_t path, bint is_left) noexcept nogil:
    """Key of a child's draws, from that of its parent."""
    return hash64(path, 1 if is_left else 2)


cdef inline bint has_constraints(const TrainParameters* params) noexcept nogil:
    """Whether nodes inherit anything."""
    return params.limits.scores_by_values or params.limits.n_set_words > 0


cdef inline void open_child(const OpenNode* node, bint is_left, OpenNode* child) noexcept nogil:
    """Tell a child its place in the tree and its key; nothing else changes."""
    child.depth = node.depth + 1
    child.parent = node.record
    child.is_left = is_left
    child.path = key_of_child(node.path, is_left)
