"""Life of a split search: its memory, its nodes, the gain at the end."""
from libc.math cimport frexp, ldexp
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dtrees._random cimport hash64
from dtrees.core.data._memory cimport claim, claim_zeros
from dtrees.core.data._structs cimport (
    ABSOLUTE, BY_FUNCTION, ENTROPY, GINI, GRADIENT, IN_SUBSET, LEAF, SQUARED, SQUARED_OUTPUTS,
    Inherited, RowStatistics, Split, Totals, int128_t
)
from dtrees.core.histogram._layout cimport (
    CLASSES, COUNT, SUM, CellKind, add_outputs, has_classes
)
from dtrees.core.histogram._totals cimport product_of
from dtrees.core.search._absolute_errors cimport (
    AbsoluteErrors, errors_of_sides, free_errors, move_row, new_errors, twice_median
)
from dtrees.core.search._criterion cimport (
    Criterion, errors_of_node, gradient_score, hessian_of, rounded, squared_score, xlogx
)
from dtrees.core.search._open_node cimport OpenNode, begin_bounds, constrained_score, loss_of_node
from dtrees.core.search._parameters cimport Limits, TrainParameters


cdef enum:
    EXACT_WEIGHT = 1 << 17  # scores of perfect splits are exact below


cdef Search* new_search(const Criterion* criterion, CellKind kind, RowStatistics of_row,
                        const Limits* limits) noexcept nogil:
    """Scratch for the searches of one thread; NULL without memory. Freed by `free_search`."""
    cdef Search* q = <Search*>calloc(1, sizeof(Search))
    if q == NULL or begin_search(q, criterion, kind, of_row, limits):
        return q
    free_search(q)
    return NULL


cdef bint begin_search(Search* q, const Criterion* criterion, CellKind kind, RowStatistics of_row,
                       const Limits* limits) noexcept nogil:
    """Begin the searches of a growth with the scratch of those before; False without memory."""
    cdef int k = criterion.n_classes
    memset(q, 0, <char*>&q.side - <char*>q)
    q.criterion = criterion
    q.kind = kind
    q.of_row = of_row
    q.min_rows = limits.min_rows
    q.min_weight = limits.min_weight
    q.random_ties = limits.random_ties
    q.monotonic.of_column = limits.monotonic
    q.scores_by_values = limits.scores_by_values
    q.small_weight = SMALL_WEIGHT // max(criterion.n_outputs, 1)
    q.of_tree = hash64(limits.seed, limits.tree)
    q.n_columns_of_target = k if has_classes(kind) else 1
    if q.n_columns_of_target > q.most_columns_of_target:
        free_scratch(q)
        q.most_columns_of_target = q.n_columns_of_target
    if q.given == NULL:
        q.bins = q.given = &q.own
    if q.boundaries == NULL and not claim(<void**>&q.boundaries, sizeof(Boundaries)):
        return False
    q.side_is_clear = True
    if criterion.impurity == BY_FUNCTION and not claim(<void**>&q.both_sides,
                                                       3 * (k + 1) * sizeof(double)):
        return False
    if criterion.impurity == SQUARED_OUTPUTS and not claim_zeros(
            <void**>&q.means, max(of_row.n_lanes, k) * sizeof(double)):
        return False
    if criterion.impurity == ABSOLUTE or q.errors != NULL:
        free_errors(q.errors)
        q.errors = NULL
    if criterion.impurity == ABSOLUTE:
        q.errors = new_errors(criterion, of_row.weight != NULL or of_row.times != NULL)
        if q.errors == NULL:
            return False
    return claim_zeros(<void**>&q.side, (k + 1) * sizeof(int64_t))


cdef void borrow_scratch(Search* q, Bins* bins, Boundaries* boundaries) noexcept nogil:
    """Let a new search use the scratch of others, which take turns with it, column by column."""
    free(q.boundaries)
    q.bins = q.given = bins
    q.boundaries = boundaries
    q.borrows = True


cdef void free_search(Search* q) noexcept nogil:
    if q == NULL:
        return
    free_scratch(q)
    if not q.borrows:
        free(q.boundaries)
    free(q.side)
    free(q.means)
    free(q.both_sides)
    free_errors(q.errors)
    free(q.subset)
    free(q.split_subset)
    free(q)


cdef void free_scratch(Search* q) noexcept nogil:
    """Give back what only a running search needs; its split is kept."""
    free(q.component)
    free_bins(&q.own)
    q.component = NULL
    q.component_size = 0


cdef void free_bins(Bins* bins) noexcept nogil:
    free(bins.rank)
    free(bins.row)
    free(bins.n)
    free(bins.weight)
    free(bins.target)
    free(bins.order)
    memset(bins, 0, sizeof(Bins))


cdef void keep_ranks(Search* q) noexcept nogil:
    """Keep the ranks of the bins for the test of the node; others use the bins until it is written.

    Without memory, which is noted, there are none.
    """
    cdef int64_t n = q.bins.count
    q.own.count = 0
    if n > q.own.capacity:
        if not (enlarge(q, <void**>&q.own.rank, n * sizeof(uint32_t))
                and enlarge(q, <void**>&q.own.row, n * sizeof(int64_t))):
            return
        q.own.capacity = n
    if n > 0:
        memcpy(q.own.rank, q.bins.rank, n * sizeof(uint32_t))
        memcpy(q.own.row, q.bins.row, n * sizeof(int64_t))
    q.own.count = n
    q.bins = &q.own


cdef void begin_node(Search* q, const Totals* totals, const int64_t* class_totals, uint64_t path,
                     const Inherited* above) noexcept nogil:
    """Take a node's totals and its key; forget the split of the last one.

    above : what its ancestors allow it.
    """
    cdef int k
    cdef int64_t t
    q.totals = totals[0]
    q.class_totals = class_totals
    q.bins = q.given
    q.W = <double>totals.weight
    q.S = <double>totals.target
    q.squares = 0
    q.entropy = 0
    q.square_per_score = 0
    if by_class(q):
        if q.criterion.impurity == ENTROPY:
            for k in range(q.criterion.n_classes):
                q.entropy += xlogx(q.criterion, class_totals[k])
        elif q.criterion.impurity == SQUARED_OUTPUTS:
            for k in range(q.criterion.n_outputs):
                q.means[k] = <double>class_totals[k] * q.criterion.scale[k] / q.W
        elif not q.criterion.sums_numbers:
            for k in range(q.criterion.n_classes):
                t = class_totals[k]
                q.squares += <int128_t>t * t
    if is_bound(q):
        begin_bounds(&q.monotonic, above)
    q.sets = NULL if above == NULL else above.sets
    q.of_node = hash64(q.of_tree, path)
    q.too_short = 1
    q.split.test = LEAF
    q.split.score = NONE
    q.split.gain = 0
    q.split.column = 0x7FFFFFFF


cdef void finish_node(Search* q) noexcept nogil:
    """Turn the score of the chosen split into its gain in the user's units."""
    cdef double raw = q.split.score
    if q.split.test == LEAF:
        return
    if q.split.test == IN_SUBSET:
        raw = q.split.unpenalized
    if q.criterion.impurity == SQUARED or q.criterion.impurity == SQUARED_OUTPUTS:
        raw = raw / q.W
    elif q.criterion.impurity != GRADIENT:
        raw = raw - score_of_leaf(q)
    elif q.criterion.has_hessians:
        raw = raw - score_of_steps(q, q.class_totals)
    elif q.criterion.n_outputs > 1:
        raw = raw - squares_of_gradients(q) / (q.W + q.criterion.l2)
    else:
        if is_bound(q):
            raw = raw - loss_of_node(&q.monotonic, q.criterion, q.W, q.S)
        else:
            raw = raw - q.S * q.S / (q.W + q.criterion.l2)
    q.split.gain = raw * q.criterion.gain_unit if raw > 0 else 0.0


cdef double squares_of_gradients(const Search* q) noexcept nogil:
    """The sum over outputs of the squared gradient of the node."""
    cdef double found = 0
    cdef double s
    cdef int64_t o
    for o in range(q.criterion.n_outputs):
        s = <double>q.class_totals[o] * q.criterion.scale[o]
        found += s * s
    return found


cdef bint beats(const Search* q, int32_t column) noexcept nogil:
    """Whether the best boundary of a column beats the node's split so far."""
    if q.best <= NONE or q.best < q.split.score:
        return False
    return q.best > q.split.score or comes_first(q, column, q.split.column)


cdef bint take_best(Search* q, int32_t column, bint saw_missing) noexcept nogil:
    """Make the best boundary of a column the node's split, without its ranks, if it beats it."""
    cdef Split* split = &q.split
    if not beats(q, column):
        return False
    split.score = q.best
    split.unpenalized = q.best
    split.column = column
    split.test = q.best_test
    split.missing_left = q.best_missing
    split.saw_missing = saw_missing
    split.boundary = 0
    split.beyond = 0
    split.boundary_row = -1
    split.beyond_row = -1
    return True


cdef inline void tell_number(const double* units, int64_t s, int64_t squares, double* side,
                             int64_t k) noexcept nogil:
    """The mean and the variance of an output of a side, behind its weight and k numbers more.

    units : offset of the output, units of its sum and of its sum of squares
    """
    cdef double mean = <double>s * units[1] / side[0]
    side[k + 1] = mean + units[0]
    side[k + 2] = max(<double>squares * units[2] / side[0] - mean * mean, 0.0)


cdef double mean_score(const Criterion* c, const double* left, const double* right,
                       double* score) noexcept nogil:
    """The mean of what a function says of the classes of each of several outputs.

    A mean of whole numbers, in a unit of the largest: the same bits in any order of the outputs,
    and those of one where all are alike.
    """
    cdef int128_t total = 0
    cdef double most = 0
    cdef int64_t first = 0
    cdef int exponent = 0
    cdef int o
    for o in range(c.n_outputs):
        score[o] = c.score_of_sides(left + first, right + first, <int>(c.ends[o] - first),
                                    c.context)
        if not score[o] > NONE:
            return NONE
        score[o] = min(score[o], -NONE)
        most = max(most, abs(score[o]))
        first = c.ends[o]
    frexp(most, &exponent)
    for o in range(c.n_outputs):
        total += <int128_t>ldexp(score[o], 62 - exponent)
    return ldexp(<double>(total / c.n_outputs), exponent - 62)


cdef double score_by_function(const Search* q, bint down) noexcept nogil:
    """The score of the boundary beside the side, of a criterion that is a function."""
    cdef int m = q.criterion.n_outputs
    cdef int K = q.criterion.n_classes + q.criterion.sums_numbers
    cdef double unit = q.criterion.weight_unit
    cdef double* side = q.both_sides
    cdef double* rest = q.both_sides + K
    cdef int k
    if q.criterion.sums_numbers:
        side[0] = <double>q.w * unit
        rest[0] = <double>(q.totals.weight - q.w) * unit
        for k in range(m):
            tell_number(q.criterion.told + 3 * k, q.side[k], q.side[m + k], side, 2 * k)
            tell_number(q.criterion.told + 3 * k, q.class_totals[k] - q.side[k],
                        q.class_totals[m + k] - q.side[m + k], rest, 2 * k)
    else:
        for k in range(K):
            side[k] = <double>q.side[k] * unit
            rest[k] = <double>(q.class_totals[k] - q.side[k]) * unit
    if down:
        side, rest = rest, side
    if q.criterion.ends != NULL:
        return mean_score(q.criterion, side, rest, q.both_sides + 2 * K)
    return q.criterion.score_of_sides(side, rest, K, q.criterion.context)


cdef void add_outputs_of_row(Search* q, int64_t row) noexcept nogil:
    """Move a row of several outputs to the side: its weight, and what it adds to their fields.

    Not inlined: loops over the classes of one output took 1.3 times as long.
    """
    cdef int64_t w = 1 if q.of_row.weight == NULL else q.of_row.weight[row]
    cdef int m = q.criterion.n_outputs
    cdef int o
    q.w += w
    if q.errors != NULL:
        move_row(q.errors, row)
        return
    if q.criterion.sums_numbers:
        add_outputs(q.side, &q.of_row, row, w)
        q.side_is_clear = False
        return
    for o in range(m):
        add_to_class(q, q.of_row.label[row * m + o], w)


cdef double score_of_outputs(const Search* q) noexcept nogil:
    """The score of the boundary beside the side, of several numbers: the sum over outputs of
    `squared_score`, in the unit of the coarsest one."""
    cdef int64_t W = q.totals.weight
    cdef double found = 0
    cdef double D
    cdef int m = q.criterion.n_outputs
    cdef int o
    if q.criterion.of_classes and W < SMALL_WEIGHT:  # products fit 64 bits
        for o in range(m):
            D = <double>(W * q.side[o] - q.w * q.class_totals[o])
            found += D * D
        return found / (<double>q.w * <double>(W - q.w))
    for o in range(m):
        D = rounded(<int128_t>W * q.side[o] - <int128_t>q.w * q.class_totals[o])
        D = D * q.criterion.scale[o]
        found += D * D
    return found / (<double>q.w * <double>(W - q.w))


cdef double score_of_gradients(const Search* q, bint down) noexcept nogil:
    """The score of the boundary beside the side, of gradients of several outputs: the sum of
    `gradient_score`, in the unit of the coarsest one."""
    cdef double w = <double>q.w + q.criterion.l2
    cdef double rest = <double>(q.totals.weight - q.w) + q.criterion.l2
    cdef double side = 0
    cdef double others = 0
    cdef double s, t, scale
    cdef int o
    if q.criterion.has_hessians:
        return score_of_steps(q, q.side)
    for o in range(q.criterion.n_outputs):
        scale = q.criterion.scale[o]
        s = <double>q.side[o] * scale
        t = <double>(q.class_totals[o] - q.side[o]) * scale
        side += s * s
        others += t * t
    return gini_score(rest, w, others, side) if down else gini_score(w, rest, side, others)


cdef inline double loss_of_side(const Search* q, double w, double s) noexcept nogil:
    """What the best step of a side takes off the loss, twice; without a hessian it has none."""
    if w + q.criterion.l2 <= 0:
        return 0
    if is_bound(q):
        return loss_of_node(&q.monotonic, q.criterion, w, s)
    return s * s / (w + q.criterion.l2)


cdef double score_of_steps(const Search* q, const int64_t* fields) noexcept nogil:
    """What the best steps of a side with these fields, and of the rest of the node, take off the
    loss, twice: of outputs that have hessians each."""
    cdef const Criterion* c = q.criterion
    cdef double found = 0
    cdef double S, s, w, rest
    cdef int o
    for o in range(c.n_outputs):
        S = <double>q.class_totals[o] * c.scale[o]
        s = <double>fields[o] * c.scale[o]
        w = hessian_of(c, fields, o, 0)
        rest = hessian_of(c, q.class_totals, o, 0) - w
        if w > 0 and rest > 0 and not is_bound(q):
            found += gradient_score(S, w, rest, s, c.l2)
        else:
            found += loss_of_side(q, w, s) + loss_of_side(q, rest, S - s)
    return found


cdef double score_of_medians(Search* q, bint down) noexcept nogil:
    """The score of the boundary beside the side, by absolute errors; `NOT_ALLOWED` where values
    would break an order."""
    cdef const AbsoluteErrors* e = q.errors
    cdef double score = 0
    cdef int64_t rest = q.totals.weight - q.w
    cdef double s, t
    while e != NULL:
        score += e.scale * <double>(e.whole - errors_of_sides(e))
        e = e.next
    if not is_bound(q) or score < q.best:
        return score
    e = q.errors
    s = <double>product_of(q.w, twice_median(e, True), e.shift + 1)
    t = <double>product_of(rest, twice_median(e, False), e.shift + 1)
    return constrained_score(
        &q.monotonic, q.criterion, <double>(rest if down else q.w), <double>(q.w if down else rest),
        t if down else s, s if down else t, score)


# ---------------------------------------------------------------------------------------------
# when the search of a node may end: at a split that no other can beat

cdef double perfect_score(const Search* q, const TrainParameters* params,
                          const OpenNode* node) noexcept nogil:
    """A score that no split of the node can beat; 1e300 when none is known.

    Both sides pure: columns that do not come before one that reaches it are passed
    over. A side adds f(l) of its classes less f of their sum to an entropy, at most 0: roundings of
    f(x) = x log x keep f(a) + f(b) <= f(a + b), as f(1) is 0 and f(a + b) is greater by 1.38.
    """
    cdef const Totals* t = &node.totals
    if params.layout.kind == COUNT and t.weight < EXACT_WEIGHT:
        return squared_score(t.weight, t.target, t.target, t.target)
    if (params.layout.kind == CLASSES and params.criterion.impurity == GINI
            and t.weight < EXACT_WEIGHT):
        return <double>t.weight
    if (has_classes(params.layout.kind) and params.criterion.impurity == ENTROPY
            and t.weight < EXACT_WEIGHT):
        return <double>(q.criterion.n_outputs * xlogx(q.criterion, t.weight) - q.entropy)
    if params.criterion.impurity == ABSOLUTE:
        return errors_of_node(q.criterion, t, node.class_totals)
    if t.n == 2 and (params.layout.kind == SUM and params.criterion.impurity == SQUARED
                     or params.criterion.impurity == SQUARED_OUTPUTS):
        return -1.0
    return 1e300


cdef int64_t work_of_bins(const Search* q) noexcept nogil:
    """What the search of a column with categories costs, in entries, about."""
    cdef int64_t K = q.criterion.n_classes if q.criterion.n_classes > 2 else 1
    cdef int64_t work = q.bins.count * K
    if K == 1:
        return work + 64
    if q.bins.count <= 11:
        return work * (1024 // 11)
    return work * 4 + 64 * (K + (work if work < q.totals.n else q.totals.n))


# ---------------------------------------------------------------------------------------------
# candidates of bound or regularized values: not inlined, so that others pay for the question alone

cdef double constrain(const Search* q, int64_t w, int64_t s, double score) noexcept nogil:
    """The score of a candidate. w, s : of the left side; s is its target, or that of class 1."""
    cdef int64_t target = q.totals.target
    if by_class(q):
        target = q.class_totals[q.criterion.value_field]
    return constrained_score(&q.monotonic, q.criterion, <double>w, <double>(q.totals.weight - w),
                             <double>s, <double>(target - s), score)


cdef double constrain_side(const Search* q, bint down, double score) noexcept nogil:
    """The score of the boundary beside the side."""
    cdef int64_t w = q.totals.weight - q.w if down else q.w
    cdef int field = q.criterion.value_field
    cdef int64_t s = q.side[field] if by_class(q) else q.s
    if q.errors != NULL or q.criterion.has_hessians:
        return score    # which knows
    if down:
        s = (q.class_totals[field] if by_class(q) else q.totals.target) - s
    return constrain(q, w, s, score)


cdef void constrain_buffered(Search* q) noexcept nogil:
    """The scores of boundaries in the buffer.

    Of classes, `b` has the weights of class 1 on the left, which are small. Of numbers,
    `b` has the targets on the right; but of gradients, whose steps are moved to their bounds
    when the tree is grown, they are what the left leaves.
    """
    cdef Boundaries* kept = q.boundaries
    cdef bint is_step = q.criterion.impurity == GRADIENT
    cdef double s, target_of_rest
    cdef int64_t j
    for j in range(q.buffered):
        if by_class(q):
            s = kept.b[j]
            target_of_rest = <double>q.class_totals[1] - s
        else:
            s = kept.a[j]
            target_of_rest = q.S - s if is_step else kept.b[j]
        kept.score[j] = constrained_score(&q.monotonic, q.criterion, kept.w[j], kept.rest[j], s,
                                          target_of_rest, kept.score[j])
