"""The state of a split search, and what every way of searching does with it.

A search looks at one node at a time. It moves rows, or bins of rows, to a *side*, keeps the
integer sums of that side, and offers the boundary between the side and the rest as a candidate:

    begin_node          totals of the node
      begin_pass        an empty side; which test, missing values left or right
        add_row, add_bin
        consider        permitted? score; better than the best boundary of the column?
    finish_node         the gain of the best split

Among equal scores of one column the earliest candidate wins: missing right before missing left,
then the lowest rank. Among columns of equal score the lowest wins or, with `random_ties`, the one
with the greatest hash of (seed, tree, path of the node, column). Either way it does not matter in
which order, and on which thread, the columns are searched.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees._random cimport hash64
from dtrees.core.data._fixed_point cimport natural_log
from dtrees.core.data._memory cimport resize
from dtrees.core.data._structs cimport (
    ABSOLUTE, AT_MOST, BY_FUNCTION, ENTROPY, GINI, GRADIENT, LEAF, POISSON, SQUARED,
    SQUARED_OUTPUTS, Inherited, RowStatistics, Split, Totals, int128_t
)
from dtrees.core.histogram._layout cimport CLASSES, COUNT, OUTPUTS, SUM, CellKind, has_classes
from dtrees.core.search._absolute_errors cimport (
    AbsoluteErrors, clear_sides, move_bin, move_row
)
from dtrees.core.search._criterion cimport (
    NONE, Criterion, gradient_score, poisson_score, squared_score, xlogx
)
from dtrees.core.search._open_node cimport Monotonic, OpenNode
from dtrees.core.search._parameters cimport SPLITS, TIES, Limits, TrainParameters
from dtrees.core.search._sort cimport Keyed

cdef enum:
    BUFFER = 256            # boundaries that are scored together
    SMALL_WEIGHT = 1 << 30  # of a node, whose square fits 64 bits

cdef struct Bins:
    # The distinct ranks of a column in a node, ascending, with their statistics.
    int64_t count
    int64_t capacity
    uint32_t* rank
    int64_t* row            # a row that holds the rank, -1 for the fill code
    int64_t* n
    int64_t* weight
    int64_t* target         # pair modes: count; CLASSES modes: count x n_classes
    Keyed* order            # scratch of the category search, twice the capacity

cdef struct Boundaries:
    # That are scored together.
    double w[BUFFER]
    double rest[BUFFER]
    double a[BUFFER]
    double b[BUFFER]
    double score[BUFFER]
    int32_t at[BUFFER]

cdef struct Search:
    # given per growth
    const Criterion* criterion
    CellKind kind
    RowStatistics of_row
    int n_columns_of_target  # statistics of a bin beside its weight: 1 or n_classes
    int64_t min_rows        # least rows and least weight of a side
    int64_t min_weight
    bint random_ties
    bint scores_by_values   # as in `Limits`
    int64_t small_weight    # of a node, squares of whose classes add up to 60 bits
    uint64_t of_tree        # key of the tree: hash of seed and number
    # given per node
    Totals totals
    double W
    double S
    const int64_t* class_totals
    uint64_t of_node        # key of the node: hash of those of the tree and the path
    int128_t squares        # gini: sum of squared class weights
    int64_t entropy         # entropy: sum f(t)
    double square_per_score  # entropy of two classes: `_two_class_scan`; 0: not needed yet
    double lost_of_score    # what roundings may make of a score, if that is known
    int64_t too_short       # features of fewer entries cannot beat the split found so far
    Monotonic monotonic
    const uint64_t* sets    # as in `Inherited`
    # state of a pass: sums over the side that rows are added to
    int64_t n
    int64_t w
    int64_t s
    bint side_is_clear      # all sums by class are zero
    int128_t side_squares   # gini: sum a*a; entropy: sum f(a) + f(t - a)
    int128_t cross          # gini: sum t*a
    # state of the column: its best boundary so far
    double best
    double floor            # best before the current pass
    int64_t best_at
    uint8_t best_test
    uint8_t best_missing
    uint8_t test            # of the current pass
    uint8_t missing
    int64_t buffered
    bint out_of_memory      # once: what is found from then on is lost
    # result
    Split split
    # scratch, which serves the next growth, too
    int64_t* side           # of the pass: n_classes
    double* means           # of several numbers, in the unit of the coarsest; zeros behind
    AbsoluteErrors* errors  # of the criterion of this name, by output; NULL: another one
    double* both_sides      # class weights of either, where the criterion is a function
    int most_columns_of_target  # of bins: there is room for so many
    Bins* bins              # of the column; searches that take turns may have them together,
    Boundaries* boundaries  # and these
    Bins* given             # those that a node begins with,
    Bins own                # or the ranks alone that `keep_ranks` has kept
    bint borrows            # the others are not its own
    double* component       # principal component, see _categories.pyx; NULL until it is needed
    int64_t component_size  # in bytes
    uint64_t* subset        # bit per rank: the best subset of the column
    int64_t subset_words
    uint64_t* split_subset  # bit per rank, when split.test is IN_SUBSET
    int64_t split_subset_words


cdef Search* new_search(const Criterion* criterion, CellKind kind, RowStatistics of_row,
                        const Limits* limits) noexcept nogil
cdef bint begin_search(Search* q, const Criterion* criterion, CellKind kind, RowStatistics of_row,
                       const Limits* limits) noexcept nogil
cdef void borrow_scratch(Search* q, Bins* bins, Boundaries* boundaries) noexcept nogil
cdef void free_search(Search* q) noexcept nogil
cdef void free_bins(Bins* bins) noexcept nogil
cdef void free_scratch(Search* q) noexcept nogil
cdef void keep_ranks(Search* q) noexcept nogil
cdef void begin_node(Search* q, const Totals* totals, const int64_t* class_totals, uint64_t path,
                     const Inherited* above) noexcept nogil
cdef void finish_node(Search* q) noexcept nogil
cdef bint beats(const Search* q, int32_t column) noexcept nogil
cdef bint take_best(Search* q, int32_t column, bint saw_missing) noexcept nogil
cdef double score_by_function(const Search* q, bint down) noexcept nogil
cdef double score_of_medians(Search* q, bint down) noexcept nogil
cdef double score_of_outputs(const Search* q) noexcept nogil
cdef double score_of_gradients(const Search* q, bint down) noexcept nogil
cdef void add_outputs_of_row(Search* q, int64_t row) noexcept nogil
cdef double constrain(const Search* q, int64_t w, int64_t s, double score) noexcept nogil
cdef double constrain_side(const Search* q, bint down, double score) noexcept nogil
cdef void constrain_buffered(Search* q) noexcept nogil
cdef double perfect_score(const Search* q, const TrainParameters* params,
                          const OpenNode* node) noexcept nogil
cdef int64_t work_of_bins(const Search* q) noexcept nogil


cdef inline bint enlarge(Search* q, void** memory, int64_t n_bytes) noexcept nogil:
    """More room in place; False without memory, which is noted, and the old room stays."""
    if resize(memory, n_bytes):
        return True
    q.out_of_memory = True
    return False


cdef inline uint64_t key_of_split(const Search* q, int32_t column) noexcept nogil:
    """Key of what is drawn for a column when splits are random."""
    return hash64(hash64(q.of_node, SPLITS), <uint64_t>column)


cdef inline uint64_t key_of_tie(const Search* q, int32_t column) noexcept nogil:
    """The greatest wins, where ties are decided by key."""
    return hash64(hash64(q.of_node, TIES), <uint64_t>column)


cdef inline bint comes_first(const Search* q, int32_t column, int32_t other) noexcept nogil:
    """Whether a column wins against another one whose split is as good."""
    cdef uint64_t mine, theirs
    if q.random_ties:
        mine = key_of_tie(q, column)
        theirs = key_of_tie(q, other)
        if mine != theirs:
            return mine > theirs
    return column < other


cdef inline bint cannot_win(const Search* q, double perfect, int32_t column) noexcept nogil:
    """Whether a column that was not searched yet is at best as good as the split that there is, and
    comes after it."""
    return (q.split.test != LEAF and q.split.score >= perfect
            and not comes_first(q, column, q.split.column))


cdef inline bint is_better(const Search* q, const Split* other) noexcept nogil:
    """Whether another split of the node wins: higher score, or as high and its column is first."""
    if other.test == LEAF or q.split.test == LEAF:
        return other.test != LEAF
    return other.score > q.split.score or other.score == q.split.score and comes_first(
        q, other.column, q.split.column)


cdef inline void take_split(Search* q, int32_t column, uint32_t boundary, uint32_t beyond,
                            bint missing_left, bint saw_missing) noexcept nogil:
    """Make the best boundary of a column, `<=` a code, the split of the node."""
    cdef Split* split = &q.split
    split.score = q.best
    split.column = column
    split.test = AT_MOST
    split.missing_left = missing_left
    split.saw_missing = saw_missing
    split.boundary = boundary
    split.beyond = beyond
    split.boundary_row = -1
    split.beyond_row = -1


cdef inline bint is_bound(const Search* q) noexcept nogil:
    """Whether values have to rise or fall along some column, or steps are regularized.

    Then candidates are scored by the values that they would have.
    """
    return q.scores_by_values


cdef inline bint by_class(const Search* q) noexcept nogil:
    """Whether fields are summed, a weight per class, rather than one number per row."""
    return has_classes(q.kind)


cdef inline bint squares_are_small(const Search* q) noexcept nogil:
    """Whether sums of squares of class weights fit 64 bits, by the Gini index."""
    return q.criterion.impurity == GINI and q.totals.weight < q.small_weight


cdef inline void clear_side(Search* q) noexcept nogil:
    q.n = 0
    q.w = 0
    q.s = 0
    q.buffered = 0
    if q.errors != NULL:
        clear_sides(q.errors)
    if by_class(q):
        if not q.side_is_clear:
            memset(q.side, 0, q.criterion.n_classes * sizeof(int64_t))
            q.side_is_clear = True
        q.cross = 0
        q.side_squares = 0
        if q.criterion.impurity == ENTROPY:
            q.side_squares = q.entropy


cdef inline void add_to_class(Search* q, int k, int64_t weight) noexcept nogil:
    """Move `weight` (negative: take back) of class k to the side; not its own weight."""
    cdef int64_t old = q.side[k]
    cdef int64_t t = q.class_totals[k]
    if q.criterion.impurity == ENTROPY:
        q.side_squares += xlogx(q.criterion, old + weight) - xlogx(q.criterion, old)
        q.side_squares += xlogx(q.criterion, t - old - weight) - xlogx(q.criterion, t - old)
    else:
        q.side_squares += <int128_t>weight * (2 * <int128_t>old + weight)
        q.cross += <int128_t>weight * t
    q.side[k] = old + weight
    q.side_is_clear = False


cdef inline void add_row(Search* q, int64_t row) noexcept nogil:
    """Any kind; the hot loops of `_entry_scan` and `_bins` have their own."""
    cdef int64_t w
    q.n += 1
    if q.kind == OUTPUTS:
        add_outputs_of_row(q, row)
    elif by_class(q):
        w = 1 if q.kind == CLASSES else q.of_row.weight[row]
        q.w += w
        add_to_class(q, q.of_row.label[row], w)
    elif q.kind == COUNT:
        q.w += 1
        q.s += q.of_row.label[row]
    else:
        if q.errors != NULL:
            move_row(q.errors, row)
        q.w += 1 if q.kind == SUM else q.of_row.weight[row]
        q.s += q.of_row.target[row]


cdef inline void add_bin(Search* q, int64_t g, int sign) noexcept nogil:
    cdef int K = q.criterion.n_classes
    cdef const int64_t* of_class = q.bins.target + g * K
    cdef int64_t squares, cross, x, old
    cdef int k
    q.n += sign * q.bins.n[g]
    if q.errors != NULL:
        q.w += q.bins.weight[g]
        move_bin(q.errors, q.bins.target[g], q.bins.n[g])
    elif not by_class(q):
        q.w += sign * q.bins.weight[g]
        q.s += sign * q.bins.target[g]
    elif q.criterion.sums_numbers:
        for k in range(K):
            q.side[k] += sign * of_class[k]
        q.w += sign * q.bins.weight[g]
        q.side_is_clear = False
    elif squares_are_small(q):
        squares = <int64_t>q.side_squares
        cross = <int64_t>q.cross
        for k in range(K):
            x = sign * of_class[k]
            old = q.side[k]
            squares += x * (2 * old + x)
            cross += x * q.class_totals[k]
            q.side[k] = old + x
        q.side_squares = squares
        q.cross = cross
        q.w += sign * q.bins.weight[g]
        q.side_is_clear = False
    else:
        q.w += sign * q.bins.weight[g]
        for k in range(K):
            if of_class[k] != 0:
                add_to_class(q, k, sign * of_class[k])


cdef inline void begin_column(Search* q, int32_t column) noexcept nogil:
    """Forget the best boundary of the column before."""
    q.best = NONE
    if q.monotonic.of_column != NULL:
        q.monotonic.direction = q.monotonic.of_column[column]


cdef inline double gini_score(double w, double rest, double left, double right) noexcept nogil:
    """sum(l*l)/w + sum(r*r)/rest, with one division."""
    return (left * rest + right * w) / (w * rest)


cdef inline double entropy_score(const Search* q, int128_t both_sides, int64_t w) noexcept nogil:
    """Fixed point sum f(l) - f(w) + sum f(r) - f(W-w) less the node's own: an exact integer."""
    cdef int64_t of_weights = (xlogx(q.criterion, q.totals.weight) - xlogx(q.criterion, w)
                               - xlogx(q.criterion, q.totals.weight - w))
    return <double><int64_t>(both_sides - q.entropy + q.criterion.n_outputs * of_weights)


cdef inline double score_of_leaf(const Search* q) noexcept nogil:
    """The score of a split that gains nothing; not of gradients."""
    if q.criterion.impurity == GINI:
        return <double>q.squares / q.W
    if q.criterion.impurity == POISSON:
        return q.S * natural_log(q.S / q.W)
    return 0


cdef inline bint permitted(const Search* q) noexcept nogil:
    return (q.n >= q.min_rows and q.totals.n - q.n >= q.min_rows
            and q.w >= q.min_weight and q.totals.weight - q.w >= q.min_weight)


cdef inline double score_side(Search* q, bint down) noexcept nogil:
    """The score of the boundary between the side and the rest; `down`: the side is the right."""
    cdef int64_t w = q.totals.weight - q.w if down else q.w
    cdef int64_t s = q.totals.target - q.s if down else q.s
    cdef double rest = <double>(q.totals.weight - w)
    cdef int128_t other
    cdef double a, b
    if q.criterion.impurity == SQUARED:
        return squared_score(q.totals.weight, q.totals.target, w, s)
    if q.criterion.impurity == GRADIENT and by_class(q):
        return score_of_gradients(q, down)
    if q.criterion.impurity == GRADIENT:
        return gradient_score(q.S, <double>w, rest, <double>s, q.criterion.l2)
    if q.criterion.impurity == POISSON:
        return poisson_score(q.S, <double>w, rest, <double>s)
    if q.criterion.impurity == ENTROPY:
        return entropy_score(q, q.side_squares, w)
    if q.criterion.impurity == BY_FUNCTION:
        return score_by_function(q, down)
    if q.criterion.impurity == SQUARED_OUTPUTS:
        return score_of_outputs(q)
    if q.criterion.impurity == ABSOLUTE:
        return score_of_medians(q, down)
    other = (q.squares - q.cross) + (q.side_squares - q.cross)
    if q.kind == CLASSES:
        # fits 64 bits, and the conversion is much faster
        a = <double><int64_t>q.side_squares
        b = <double><int64_t>other
    else:
        a = <double>q.side_squares
        b = <double>other
    return gini_score(<double>w, rest, b if down else a, a if down else b)


cdef inline void keep_boundary(Search* q, int64_t at) noexcept nogil:
    """Where the score that is now the best of the column stands."""
    q.best_at = at
    q.best_test = q.test
    q.best_missing = q.missing


cdef inline bint offer(Search* q, double score, int64_t at, bint down) noexcept nogil:
    """Keep a boundary if it beats the column's best; True when it was kept.

    A pass that goes down meets the later candidates first, so it takes equal ones, but only if
    they beat what earlier passes found.
    """
    if score > q.best or (down and score == q.best and score > q.floor):
        q.best = score
        keep_boundary(q, at)
        return True
    return False


cdef inline double allowed_score(Search* q, bint down) noexcept nogil:
    """`score_side`; below NONE where values would break an order."""
    cdef double score = score_side(q, down)
    return constrain_side(q, down, score) if is_bound(q) else score


cdef inline bint consider(Search* q, int64_t at, bint down) noexcept nogil:
    if not permitted(q):
        return False
    return offer(q, allowed_score(q, down), at, down)


cdef inline void begin_pass(Search* q, uint8_t test, uint8_t missing) noexcept nogil:
    q.test = test
    q.missing = missing
    q.floor = q.best
    clear_side(q)


cdef inline bint heavy_enough(const Search* q, int64_t w) noexcept nogil:
    """Whether both sides have the least weight, in integers: sums in doubles would be rounded."""
    return w >= q.min_weight and q.totals.weight - w >= q.min_weight


cdef inline void flush(Search* q, bint down, bint classes) noexcept nogil:
    """Score the buffered boundaries together, so that the divisions run side by side.

    Both weights are enough (`heavy_enough`). Squared errors are not buffered: most of them need no
    division (`most_of_difference`).
    """
    cdef int64_t j
    cdef double w, rest, l2
    cdef double S = q.S
    cdef double* bw = q.boundaries.w
    cdef double* br = q.boundaries.rest
    cdef double* ba = q.boundaries.a
    cdef double* bb = q.boundaries.b
    cdef double* score = q.boundaries.score
    cdef const int32_t* at = q.boundaries.at
    cdef double best = q.best
    if classes:
        if q.criterion.impurity == GINI:
            for j in range(q.buffered):
                w = bw[j]
                rest = br[j]
                score[j] = (ba[j] * rest + bb[j] * w) / (w * rest)
        else:
            for j in range(q.buffered):
                score[j] = ba[j]
    elif q.criterion.impurity == GRADIENT:
        l2 = q.criterion.l2
        for j in range(q.buffered):
            score[j] = gradient_score(S, bw[j], br[j], ba[j], l2)
    else:
        for j in range(q.buffered):
            score[j] = poisson_score(S, bw[j], br[j], ba[j])
    if is_bound(q):
        constrain_buffered(q)
    for j in range(q.buffered):
        if score[j] >= best:
            offer(q, score[j], at[j], down)
            best = q.best
    q.buffered = 0
