"""Values that rise or fall along a column; see _monotonic.pyx."""
from libc.stdint cimport int8_t

from dtrees.core.data._structs cimport GRADIENT, Inherited
from dtrees.core.search._criterion cimport Criterion

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


cdef void begin_bounds(Monotonic* m, const Inherited* above) noexcept nogil
cdef double constrained_score(const Monotonic* m, const Criterion* criterion, double w,
                              double rest, double s, double target_of_rest,
                              double score) noexcept nogil
cdef double loss_of_side(const Monotonic* m, const Criterion* criterion, double w,
                         double s) noexcept nogil
cdef void inherit_bounds(const Inherited* above, int direction, double value_left,
                         double value_right, Inherited* left, Inherited* right) noexcept nogil


cdef inline double value_of(const Criterion* criterion, double w, double s) noexcept nogil:
    """What a node of weight w and target s predicts, in their units."""
    if criterion.impurity == GRADIENT:
        return -s / (w + criterion.l2)
    return s / w
