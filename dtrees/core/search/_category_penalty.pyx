"""What the best subset of the categories of a column pays, for what it gains by chance.

Means of M categories that say nothing differ by M - 1 times the impurity of a row, and the best
subset finds most of that. It is as wrong on other rows as it is right on these. So each category
takes `category_penalty` times the impurity of a row *within* its category off the gain, less what
the best boundary of an ordered column gains by chance:

    gain - (penalty * M - 1 - log2(rows) / 2) * impurity of a row

    impurity of a row    (within + total * bins / rows) / rows

`within` is what is left of the node's impurity when each bin is a node of its own. The second
term gives back what bins of few rows lose by their being few: when categories say nothing, the
expectation is total / rows, however small they are. So a column that names each row pays for all
that it may gain. Subsets that gain no more than all categories would pay are no candidates.
"""
from libc.stdint cimport int64_t

from dtrees.core.data._fixed_point cimport natural_log, spread_of
from dtrees.core.data._structs cimport (
    ENTROPY, GINI, GRADIENT, POISSON, SQUARED, Totals, int128_t
)
from dtrees.core.search._criterion cimport Criterion, xlogx
from dtrees.core.search._search cimport NONE, Bins, Search, by_class, score_of_leaf

FREE_CATEGORIES = FEW_CATEGORIES    # so many of a boosted model pay nothing

cdef double ROUNDED = 1 + 1e-9      # of what each of two sums may be off by
cdef double LOG_4 = 1.3862943611198906


cdef double less_penalty(const Search* q, int64_t first) noexcept nogil:
    """The score of the best subset of the categories from `first` on, less what it pays; `NONE`
    where it gains no more than chance. Two categories have one boundary, as numbers would."""
    cdef int64_t count = q.bins.count - first
    cdef double penalty = q.criterion.category_penalty * <double>count
    cdef double of_row
    if count <= 2 or penalty == 0 or q.best <= NONE:
        return q.best
    of_row = impurity_of_row(q)
    if q.best - score_of_leaf(q) <= penalty * of_row * ROUNDED:
        return NONE
    return q.best - max(penalty - 1 - natural_log(rows_of(q)) / LOG_4, 0) * of_row


cdef double rows_of(const Search* q) noexcept nogil:
    """How many rows a node has, as far as they are independent.

    Rows of a mean weight above one count as so many, so a row of weight two is a row given
    twice; lighter ones count as one, so a small unit of the weights makes no column dear. A row
    that a bag has drawn twice is one row. Of gradients, rows are counted by their hessians.
    """
    if q.criterion.impurity == GRADIENT:
        return q.W / q.criterion.row_hessian
    if q.criterion.in_bags:
        return <double>q.totals.n
    return max(q.W * q.criterion.weight_unit, <double>q.totals.n)


cdef double impurity_of_row(const Search* q) noexcept nogil:
    """The impurity of a row within its category, in units of the score. O(bins * classes)."""
    cdef double rows = rows_of(q)
    cdef double total = total_impurity(q)
    cdef double found = (impurity_within(q, total) + total * (<double>q.bins.count / rows)) / rows
    return found * q.W if q.criterion.impurity == SQUARED else found


cdef double total_impurity(const Search* q) noexcept nogil:
    """Impurity times weight of the node; squared errors without the factor of their scores."""
    cdef const Criterion* c = q.criterion
    cdef const Totals* t = &q.totals
    cdef double found
    if c.impurity == ENTROPY:
        return <double>(xlogx(c, t.weight) - q.entropy)
    if c.impurity == GINI:
        return <double>(<int128_t>t.weight * t.weight - q.squares) / q.W
    if c.n_classes > 0:
        return <double>(<int128_t>t.target * (t.weight - t.target)) / q.W
    if c.impurity == GRADIENT:
        found = <double>t.moment * c.square_unit - q.S * q.S / q.W
    elif c.impurity == POISSON:
        found = moment_of_score(q) - half_deviance(q, t.target, t.weight)
    elif c.one_scale:
        found = <double>spread_of(t, c.weight_unit) * c.weight_unit
    else:
        found = moment_of_score(q) - q.S * q.S / q.W
    return found if found > 0 else 0


cdef double impurity_within(const Search* q, double total) noexcept nogil:
    """The same, summed up over the bins."""
    cdef const Bins* g = q.bins
    cdef int64_t K = q.criterion.n_classes
    cdef const int64_t* of_class
    cdef double D
    cdef double found = 0
    cdef int64_t exact = 0
    cdef int64_t i, k
    cdef int128_t squares
    if by_class(q):
        for i in range(g.count):
            of_class = g.target + i * K
            if q.criterion.impurity == ENTROPY:
                exact += xlogx(q.criterion, g.weight[i])
                for k in range(K):
                    exact -= xlogx(q.criterion, of_class[k])
            else:
                squares = <int128_t>g.weight[i] * g.weight[i]
                for k in range(K):
                    squares -= <int128_t>of_class[k] * of_class[k]
                found += <double>squares / <double>g.weight[i]
        found += <double>exact
    elif K > 0:
        for i in range(g.count):
            found += (<double>(<int128_t>g.target[i] * (g.weight[i] - g.target[i]))
                      / <double>g.weight[i])
    elif q.criterion.impurity == POISSON:
        for i in range(g.count):
            found -= half_deviance(q, g.target[i], g.weight[i])
        found += moment_of_score(q)
    else:
        for i in range(g.count):
            D = q.W * <double>g.target[i] - <double>g.weight[i] * q.S
            found += D * D / <double>max(g.weight[i], 1)
        found = total - found / q.W / q.W
    return found if found > 0 else 0


cdef inline double units_of_moment(const Search* q) noexcept nogil:
    """A moment is made of weight * y * y or weight * y log y, a score of weighted targets."""
    return q.criterion.value_unit / q.criterion.wy_unit * q.criterion.weight_unit


cdef inline double moment_of_score(const Search* q) noexcept nogil:
    """The moment of the node in units of a gain."""
    return <double>q.totals.moment / q.criterion.fixed_point * units_of_moment(q)


cdef inline double half_deviance(const Search* q, int64_t target, int64_t weight) noexcept nogil:
    """What a mean leaves of the moment, with the logarithm of y in its integer units."""
    if target <= 0:
        return 0
    return <double>target * natural_log(<double>target / (<double>weight * units_of_moment(q)))
