"""Columns along which values have to rise, or to fall.

A node has bounds of the values of all leaves below it. A split along a column that values rise
along hands the middle of its two values to both children::

    node       -inf .................. inf
    values        left 2      right 6            2 <= 6: allowed
    children   -inf ....... 4 | 4 ... inf        no leaf on the left is above one on the right

Splits along other columns hand on the bounds of the node. Candidates whose values break an order
are not allowed. Values beyond the bounds: steps of a boosted model are moved to the bound, and
scored there. Means stay what they are, so candidates with such means are not allowed either. So no
leaf, however deep, breaks the order. scikit-learn has the same bounds, and LightGBM names them
"basic"; trees of scikit-learn move means as well, unless the split is along a monotonic column.

Bounds of scores (`_number_scan`, `_search`) hold for candidates that are not allowed as well, so
what they pass over is not needed here either. But a boundary between two rows of one class may be
the best one that is allowed.

Values that are compared are those of the children, to the last bit. So the target of a side is
rounded once, from its integer: sums have up to 62 bits, and a difference of two doubles may be off
by the last bits of the larger one.
"""
cdef double INFINITY = float("inf")


cdef void begin_bounds(Monotonic* m, const Inherited* above) noexcept nogil:
    """Take the bounds of a node."""
    m.direction = 0
    m.lower = above.lower if above.has_lower else -INFINITY
    m.upper = above.upper if above.has_upper else INFINITY


cdef inline double clipped(const Monotonic* m, double value) noexcept nogil:
    return min(max(value, m.lower), m.upper)


cdef double loss_of_side(const Monotonic* m, const Criterion* criterion, double w,
                         double s) noexcept nogil:
    """What the step of a side within the bounds takes off the loss, twice; without bounds of the
    step this is s*s / (w + l2)."""
    cdef double step = clipped(m, value_of(criterion, w, s))
    return -step * (2 * s + (w + criterion.l2) * step)


cdef double constrained_score(const Monotonic* m, const Criterion* criterion, double w,
                              double rest, double s, double target_of_rest,
                              double score) noexcept nogil:
    """The score of a candidate; `NOT_ALLOWED` when it is not.

    w, s : weight and target of the left side. rest, target_of_rest : of the right one, from its
        integers, as of a node. score : without constraints.
    """
    cdef double left = value_of(criterion, w, s)
    cdef double right = value_of(criterion, rest, target_of_rest)
    if criterion.impurity == GRADIENT:
        left = clipped(m, left)
        right = clipped(m, right)
        score = (loss_of_side(m, criterion, w, s)
                 + loss_of_side(m, criterion, rest, target_of_rest))
    elif left < m.lower or right < m.lower or left > m.upper or right > m.upper:
        return NOT_ALLOWED
    if (m.direction > 0 and left > right) or (m.direction < 0 and left < right):
        return NOT_ALLOWED
    return score


cdef void inherit_bounds(const Inherited* above, int direction, double value_left,
                         double value_right, Inherited* left, Inherited* right) noexcept nogil:
    """Bounds of the children of a split along a column of this direction, with these values."""
    cdef Monotonic m
    cdef Inherited* low
    cdef Inherited* high
    left.has_lower, left.lower = above.has_lower, above.lower
    left.has_upper, left.upper = above.has_upper, above.upper
    right.has_lower, right.lower = above.has_lower, above.lower
    right.has_upper, right.upper = above.has_upper, above.upper
    if direction == 0:
        return
    begin_bounds(&m, above)
    low, high = (left, right) if direction > 0 else (right, left)
    low.has_upper = high.has_lower = True
    low.upper = high.lower = 0.5 * clipped(&m, value_left) + 0.5 * clipped(&m, value_right)
