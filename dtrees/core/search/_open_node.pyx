"""Open nodes: what is known of a node before it is split, whether it stays a leaf, its children.

The rows of a node are partitioned, then the smaller child is summed up. The larger one is the node
less the smaller one: sums are integers, so nothing is lost. Regression also wants the least and the
greatest target of both children, which tell whether a node is pure.

Where values have to rise or to fall along a column, a node has bounds of the values of all leaves
below it. A split along a column that values rise along hands the middle of its two values to both
children::

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

Steps of a boosted model may be regularized, in this order, as in LightGBM::

    -soft_threshold(S, l1) / (W + l2)        l1_regularization, l2_regularization
    at most most_step on either side         max_delta_step
    (W step + k above) / (W + k)             path_smooth: k, and the step of the node above
    within the bounds                        monotonic_cst

Candidates are scored by these steps. A root is not smoothed.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dtrees.core.data._fixed_point cimport natural_log, spread_of
from dtrees.core.data._structs cimport (
    ABSOLUTE, ENTROPY, GRADIENT, POISSON, Inherited, Totals, int128_t
)
from dtrees.core.data._memory cimport claim
from dtrees.core.histogram._totals cimport subtract_totals, sum_rows
from dtrees.core.search._criterion cimport (
    errors_of_node, soft_threshold, squares_of_classes, xlogx
)
from dtrees.core.search._parameters cimport Limits, TrainParameters

cdef double INFINITY = float("inf")


cdef void free_node(OpenNode* node) noexcept nogil:
    free(node.class_totals)
    free(node.features)
    free(node.few_columns)
    free(node.orders)
    free(node.histogram)
    free(node.above.sets)
    node.above.sets = NULL
    node.class_totals = NULL
    node.features = NULL
    node.few_columns = NULL
    node.orders = NULL
    node.histogram = NULL


cdef double impurity_of(const OpenNode* node, const TrainParameters* params) noexcept nogil:
    """Impurity in the user's units, from the exact sums; of several outputs, their mean."""
    cdef const Totals* t = &node.totals
    cdef double W = <double>t.weight
    cdef double unit
    cdef int128_t squares = 0
    cdef int128_t spread
    cdef int64_t f = 0
    cdef int k
    cdef int64_t w = t.weight
    cdef int m = params.criterion.n_outputs
    if params.criterion.of_classes:
        squares = squares_of_classes(&params.criterion, w, node.class_totals)
        return <double>(2 * squares) / (W * W) / m
    if params.criterion.sums_numbers and t.lowest == t.highest:
        return 0.0
    if params.criterion.impurity == ABSOLUTE and t.lowest != t.highest:
        unit = params.criterion.wy_unit / params.criterion.weight_unit
        return max(errors_of_node(&params.criterion, t, node.class_totals), 0.0) * unit / W / m
    if params.criterion.has_logarithms:
        return deviance_of_outputs(node, &params.criterion) / m
    if params.criterion.sums_numbers:
        return squares_of_outputs(node, &params.criterion) / m
    if node.class_totals != NULL:
        if params.criterion.impurity == ENTROPY:
            for k in range(params.criterion.n_classes):
                f += xlogx(&params.criterion, node.class_totals[k])
            f = m * xlogx(&params.criterion, w) - f
            if f <= 0:
                return 0.0
            return <double>f / (params.criterion.fixed_point * 0.6931471805599453) / W / m
        for k in range(params.criterion.n_classes):
            squares += <int128_t>node.class_totals[k] * node.class_totals[k]
        return <double>(m * <int128_t>w * w - squares) / (W * W) / m
    if t.lowest == t.highest:
        return 0.0
    if params.criterion.impurity == POISSON:
        # in integer units of weight and y, whose logarithms cancel
        unit = <double>t.target * (params.criterion.wy_unit / params.criterion.weight_unit
                                   / params.criterion.value_unit)
        if unit <= 0:
            return 0.0
        unit = (<double>t.moment / params.criterion.fixed_point
                - unit * natural_log(unit / W)) / W
        return unit * params.criterion.value_unit if unit > 0 else 0.0
    W = W * params.criterion.weight_unit
    if not params.criterion.one_scale:
        unit = <double>t.target * params.criterion.wy_unit / W
        unit = (<double>t.moment * params.criterion.value_unit * params.criterion.wy_unit / W
                - unit * unit)
        return unit if unit > 0 else 0.0
    spread = spread_of(t, params.criterion.weight_unit)
    if spread <= 0:
        return 0.0
    return <double>spread * params.criterion.value_unit * params.criterion.value_unit / W


cdef double deviance_of_outputs(const OpenNode* node, const Criterion* c) noexcept nogil:
    """Half the Poisson deviance of several outputs, summed up, per weight."""
    cdef double W = <double>node.totals.weight * c.weight_unit
    cdef double found = 0
    cdef double S
    cdef int o
    for o in range(c.n_outputs):
        S = <double>node.class_totals[o] * c.told[3 * o + 1]
        if S > 0:
            found += <double>node.class_totals[c.n_outputs + o] * c.told[3 * o + 2]
            found -= S * natural_log(S / W)
    return found / W if found > 0 else 0.0


cdef double squares_of_outputs(const OpenNode* node, const Criterion* c) noexcept nogil:
    """The squared errors of several outputs, summed up, per weight and in the user's units.

    Where `one_scale`, in integers of the coarsest output's unit: nothing cancels.
    """
    cdef double W = <double>node.totals.weight * c.weight_unit
    cdef double found = <double>node.totals.moment * c.value_unit * c.wy_unit / W
    cdef int128_t spread = node.totals.moment
    cdef int128_t S
    cdef double mean
    cdef int o
    if c.one_scale and c.weight_unit == 1.0:
        for o in range(c.n_outputs):
            S = node.class_totals[o]
            spread -= (S * S / node.totals.weight) >> c.shift[o]
        found = <double>spread * c.value_unit * c.value_unit / W
    else:
        for o in range(c.n_outputs):
            mean = <double>node.class_totals[o] * c.scale[o] * c.wy_unit / W
            found -= mean * mean
    return found if found > 0 else 0.0


cdef bint is_leaf(const OpenNode* node, const TrainParameters* params) noexcept nogil:
    """Whether a node stays as it is: limits, or nothing left to part."""
    cdef const Limits* limits = &params.limits
    cdef const Totals* t = &node.totals
    cdef int k
    if node.depth >= limits.max_depth or t.n < limits.min_samples_split:
        return True
    if t.n < 2 * limits.min_rows or t.weight < 2 * limits.min_weight:
        return True
    if params.criterion.of_classes:
        return squares_of_classes(&params.criterion, t.weight, node.class_totals) == 0
    if node.class_totals == NULL or params.criterion.sums_numbers:
        return t.lowest == t.highest
    if params.criterion.n_outputs > 1:
        return is_pure(node, &params.criterion)
    for k in range(params.criterion.n_classes):
        if node.class_totals[k] == t.weight:
            return True
    return False


cdef bint is_pure(const OpenNode* node, const Criterion* criterion) noexcept nogil:
    """Whether all rows have one class of each output."""
    cdef int n_pure = 0
    cdef int k
    for k in range(criterion.n_classes):
        n_pure += node.class_totals[k] == node.totals.weight
    return n_pure == criterion.n_outputs


cdef void describe(OpenNode* node, const TrainParameters* params) noexcept nogil:
    """Impurity and leafhood, once the totals are known."""
    node.impurity = impurity_of(node, params)
    node.is_leaf = is_leaf(node, params)


cdef bint open_children(const OpenNode* node, int64_t n_left, int n_classes, OpenNode* left,
                        OpenNode* right) noexcept nogil:
    """The children of a node, the left one of so many rows: their keys and rows, no sums.

    False without memory: they can be freed, and are of no other use.
    """
    cdef size_t K = n_classes * sizeof(int64_t)
    memset(left, 0, sizeof(OpenNode))
    memset(right, 0, sizeof(OpenNode))
    if node.class_totals != NULL:  # not by `claim`: measured 1.03 to 1.04, extremely random trees
        left.class_totals = <int64_t*>malloc(K)
        right.class_totals = <int64_t*>malloc(K)
        if left.class_totals == NULL or right.class_totals == NULL:
            return False
    left.totals.n = n_left
    right.totals.n = node.totals.n - n_left
    left.start = node.start
    right.start = node.start + n_left
    open_child(node, True, left)
    open_child(node, False, right)
    return True


cdef void subtract_child(const OpenNode* node, const OpenNode* child, int n_classes,
                         OpenNode* other) noexcept nogil:
    """Sums of a child from those of its parent and its sibling, but for its range."""
    cdef int k
    subtract_totals(&node.totals, &child.totals, &other.totals)
    for k in range(n_classes):
        other.class_totals[k] = node.class_totals[k] - child.class_totals[k]


cdef bint sum_by_orders(const OpenNode* node, const TrainParameters* params,
                        const RowStatistics* of_row, const uint32_t* rows, OpenNode* left,
                        OpenNode* right) noexcept nogil:
    """Several medians: hand the orders of a node down to its children, and describe them; False
    without memory.

    rows : those of the left child, then those of the right one, ascending in each
    """
    cdef int64_t m = of_row.n_outputs
    cdef int64_t n = node.totals.n
    cdef int64_t n_left = left.totals.n
    cdef int64_t a = 0
    cdef int64_t b = n_left
    cdef uint32_t* moved = NULL     # where rows are, by their places in the node
    cdef int64_t i, p
    cdef bint is_left
    cdef bint found = (claim(<void**>&moved, n * sizeof(uint32_t))
                       and claim(<void**>&left.orders, (m * n_left + 1) * sizeof(uint32_t))
                       and claim(<void**>&right.orders, (m * (n - n_left) + 1) * sizeof(uint32_t)))
    for i in range(n if found else 0):
        is_left = b == n or (a < n_left and rows[a] < rows[b])
        moved[i] = <uint32_t>(a if is_left else b)
        a += is_left
        b += not is_left
    a = b = 0
    for i in range(m * n if found else 0):  # without a branch
        p = moved[node.orders[i]]
        left.orders[a] = <uint32_t>p
        right.orders[b] = <uint32_t>(p - n_left)
        a += p < n_left
        b += p >= n_left
    free(moved)
    if found:
        sum_rows(of_row, &params.layout, rows, left.orders, n_left, &left.totals,
                 left.class_totals)
        sum_rows(of_row, &params.layout, rows + n_left, right.orders, n - n_left, &right.totals,
                 right.class_totals)
        describe(left, params)
        describe(right, params)
    return found


cdef inline double target_of(const Criterion* criterion, double s) noexcept nogil:
    """The gradient of a side beside the l1 penalty."""
    return soft_threshold(s, criterion.l1) if criterion.l1 > 0 else s


cdef inline double value_of(const Criterion* criterion, double w, double s,
                            double above) noexcept nogil:
    """What a node of weight w and target s predicts, in their units, within no bounds.

    above : the value of its parent
    """
    cdef double step
    if criterion.impurity != GRADIENT:
        return s / w
    step = -target_of(criterion, s) / (w + criterion.l2)
    if criterion.most_step > 0:
        step = min(max(step, -criterion.most_step), criterion.most_step)
    if criterion.path_smooth > 0:
        step = (w * step + criterion.path_smooth * above) / (w + criterion.path_smooth)
    return step


cdef double value_of_node(const TrainParameters* params, const OpenNode* node,
                          double above) noexcept nogil:
    """What a node predicts, of two classes or of numbers; above : what its parent does."""
    cdef const Totals* t = &node.totals
    cdef int64_t target = t.target
    if node.class_totals != NULL:
        target = node.class_totals[params.criterion.value_field]
    return value_of(&params.criterion, <double>t.weight, <double>target, above)


cdef bint restrict_children(const TrainParameters* params, const OpenNode* node, int32_t column,
                            OpenNode* left, OpenNode* right) noexcept nogil:
    """Tell the children of a split along a column, summed up, what they inherit: bounds of their
    values, and sets of columns. False without memory."""
    cdef const Limits* limits = &params.limits
    cdef int direction = 0 if limits.monotonic == NULL else limits.monotonic[column]
    if limits.scores_by_values:
        left.above.value = value_of_node(params, left, node.above.value)
        right.above.value = value_of_node(params, right, node.above.value)
        inherit_bounds(&node.above, direction, left.above.value, right.above.value,
                       &left.above, &right.above)
    return (inherit_sets(limits, &node.above, column, &left.above)
            and inherit_sets(limits, &node.above, column, &right.above))


cdef bint inherit_sets(const Limits* limits, const Inherited* above, int32_t column,
                       Inherited* child) noexcept nogil:
    """The sets of a node that have the column of its test, too; False without memory."""
    cdef int64_t n = limits.n_set_words
    cdef const uint64_t* of_column = limits.sets_of_column + column * n
    cdef int64_t i
    if n == 0:
        return True
    child.sets = <uint64_t*>malloc(n * sizeof(uint64_t))
    if child.sets == NULL:
        return False
    for i in range(n):
        child.sets[i] = of_column[i] if above.sets == NULL else above.sets[i] & of_column[i]
    return True


# ---------------------------------------------------------------------------------------------
# values that rise or fall along a column

cdef void begin_bounds(Monotonic* m, const Inherited* above) noexcept nogil:
    """Take the bounds of a node."""
    m.direction = 0
    m.lower = above.lower if above.has_lower else -INFINITY
    m.upper = above.upper if above.has_upper else INFINITY
    m.value = above.value


cdef inline double clipped(const Monotonic* m, double value) noexcept nogil:
    return min(max(value, m.lower), m.upper)


cdef inline double loss_of_step(const Criterion* criterion, double w, double s,
                                double step) noexcept nogil:
    """What a step takes off the loss of a side, twice; of -s / (w + l2) this is s*s / (w + l2)."""
    return -step * (2 * target_of(criterion, s) + (w + criterion.l2) * step)


cdef double loss_of_node(const Monotonic* m, const Criterion* criterion, double w,
                         double s) noexcept nogil:
    """What the step of the node takes off the loss, twice."""
    cdef double step = m.value if criterion.path_smooth > 0 else value_of(criterion, w, s, 0)
    return loss_of_step(criterion, w, s, clipped(m, step))


cdef double constrained_score(const Monotonic* m, const Criterion* criterion, double w,
                              double rest, double s, double target_of_rest,
                              double score) noexcept nogil:
    """The score of a candidate; `NOT_ALLOWED` when it is not.

    w, s : weight and target of the left side. rest, target_of_rest : of the right one, from its
        integers, as of a node. score : without constraints.
    """
    cdef double left = value_of(criterion, w, s, m.value)
    cdef double right = value_of(criterion, rest, target_of_rest, m.value)
    if criterion.impurity == GRADIENT:
        left = clipped(m, left)
        right = clipped(m, right)
        score = (loss_of_step(criterion, w, s, left)
                 + loss_of_step(criterion, rest, target_of_rest, right))
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
