"""Impurities as functions of integer sums, with the same bits on every machine.

Only additions, multiplications, divisions and conversions of IEEE doubles are used, each rounded
once (the build turns contraction off); the logarithm is our own, since those of the C libraries
differ in the last bit.

Squared error. With W, S the weight and weighted target of a node and w, s those of the left side,
the weighted decrease of the impurity is  D*D / (W*w*(W-w)),  D = W*s - w*S.  The gini index of two
classes is twice the squared error of the class as a number, so it shares the formula. W - w is
taken from the integers: a side may weigh less than a rounding of W. D is an integer of 128 bits,
and is rounded once. Swapping the sides changes the sign of D only, so mirrored splits tie exactly.
A target in other units, or less a constant, has D times the ratio of the units: the order of scores
does not depend on the fixed point of y where that is exact.

Gini, more classes:  sum(l*l)/w + sum(r*r)/(W-w) - sum(t*t)/W  with sums of squares kept as exact
integers (128 bits when rows have weights).

Entropy:  sum f(l) - f(w) + sum f(r) - f(W-w) - (sum f(t) - f(W)),  f(x) = x log x rounded to fixed
point. Each f is rounded once, sums of them are exact: equal
counts have equal gains, whatever the order, and the unit of the weights cancels.

Several outputs: the sum of the scores of all of them; gains are divided by how many they are. Where
none has more than two classes, the gini index is twice the squared error of numbers 0 and 1. Sums
of squares of classes, and of f(x), are integers, and the squares of D are added in an order that
depends on the targets, not on their order in y. So outputs may be permuted.

Poisson half deviance:  s log(s/w) + (S-s) log((S-s)/(W-w)) - S log(S/W).

Gradients of a loss:  s*s/(w+l2) + (S-s)*(S-s)/(W-w+l2) - S*S/(W+l2), where w and s are sums of
second and first derivatives: twice what a Newton step on each side takes off the loss, beyond one
step for both. [XG] is Chen and Guestrin 2016. With l1, a limit of steps, smoothing or bounds, the
score is that of the steps as they are then (`_open_node`).
"""
from libc.stdint cimport int64_t

from dtrees.core.data._fixed_point cimport natural_log
from dtrees.core.data._structs cimport Impurity, Totals, int128_t

cdef extern from "search/rounding.h":
    const double LAST_BITS

cdef extern from *:
    """
    #define DTREES_LAST_LOGARITHMS 0x1p-40
    #define DTREES_NONE -1e290
    """
    const double LAST_LOGARITHMS "DTREES_LAST_LOGARITHMS"   # of a Poisson score, for its target
    const double NONE "DTREES_NONE"     # below every score of a permitted split

ctypedef double (*ScoreOfSides)(const double* left, const double* right, int n,
                                void* context) noexcept nogil
ctypedef double (*ScoreWithoutData)(const double* left, const double* right,
                                    int n) noexcept nogil

cdef struct Criterion:
    Impurity impurity
    int n_classes           # 0 for regression; of several outputs: fields
    int n_outputs           # 1, or how many outputs have fields
    bint sums_numbers       # fields are sums of numbers, not weights of classes
    bint has_hessians       # gradients of outputs: behind them are fields of the hessians of each
    int value_field         # that of the value of a node: of the number, or of class 1 of two
    bint of_classes         # numbers are 1 for the last class of two of an output, else 0
    const double* scale     # of sums of several numbers: their units, the coarsest being 1
    const int64_t* shift    # the same: as in `RowStatistics`
    const int64_t* place    # the same: numbers of these outputs in y; of classes: of their fields
    double gain_unit        # what a raw gain is multiplied by to be in the user's units
    double category_penalty  # of each category in a node; of gradients, of each of many
    bint in_bags            # weights are how often a row was drawn
    double weight_unit      # weight in the user's units = integer * unit
    double value_unit
    double wy_unit          # the same for weight * y
    int shift_of_products   # bits by which weight * y of integers is finer than weighted targets
    bint one_scale          # y and weight * y have one unit, weights have whole digits only
    double fixed_point      # 2**k of the table of x log x
    const int64_t* xlogx    # f(0 .. xlogx_size-1) for unweighted rows, or NULL
    int64_t xlogx_size
    double l2               # gradients: what is added to the weight of a side, in its units
    double l1               # gradients: what draws the target of a side to 0, in its units
    double most_step        # the same: of a step, in its units; 0: no limit
    double path_smooth      # the same: weight of the step of the node above, in units; 0: none
    double smoothing        # l2 of categories, where they are put in order
    double row_hessian      # gradients: the mean hessian of a row, in units
    double square_unit      # the same: what a squared gradient adds to an impurity
    ScoreOfSides score_of_sides  # by function: of what both sides are told as, in user units
    void* context           # what the function is handed
    const int64_t* ends     # of classes of several outputs: behind the fields of each
    const double* told      # of numbers, by output: offset, units of both fields
    bint has_logarithms     # of numbers: second fields are of y log y instead of squares


cdef inline int64_t xlogx(const Criterion* criterion, int64_t x) noexcept nogil:
    """x log x of an integer weight, in fixed point; 0 for 0.

    The unit of the weights cancels in every sum that is used: their scale does not matter.
    """
    if x <= 0:
        return 0
    if x < criterion.xlogx_size:
        return criterion.xlogx[x]
    return <int64_t>(<double>x * natural_log(<double>x) * criterion.fixed_point + 0.5)


cdef inline double rounded(int128_t x) noexcept nogil:
    """To the nearest double; of 64 bits much faster."""
    return <double><int64_t>x if x == <int64_t>x else <double>x


cdef inline double squared_score(int64_t W, int64_t S, int64_t w, int64_t s) noexcept nogil:
    """Weighted decrease of the squared error, times W, with one rounding of D."""
    cdef double D = rounded(<int128_t>W * s - <int128_t>w * S)
    return D * D / (<double>w * <double>(W - w))


cdef inline int128_t squares_of_classes(const Criterion* criterion, int64_t W,
                                        const int64_t* totals) noexcept nogil:
    """The squared errors of numbers 0 and 1, summed up, times W; W : weight of the rows."""
    cdef int128_t found = 0
    cdef int o
    for o in range(criterion.n_outputs):
        found += <int128_t>totals[o] * (W - totals[o])
    return found


cdef inline double errors_of_node(const Criterion* criterion, const Totals* t,
                                  const int64_t* class_totals) noexcept nogil:
    """Absolute errors about the median; of several outputs in the unit of the coarsest one."""
    cdef double found = 0
    cdef int o
    if class_totals == NULL:
        return <double><int64_t>t.moment
    for o in range(criterion.n_outputs):
        found += criterion.scale[o] * <double>class_totals[criterion.n_outputs + o]
    return found


cdef inline double most_of_difference(double W, double S, double w, double s) noexcept nogil:
    """At least |W*s - w*S| of the integers that were rounded to W, S, w and s."""
    cdef double left = W * s
    cdef double right = w * S
    return abs(left - right) + LAST_BITS * (abs(left) + abs(right))


cdef inline double soft_threshold(double s, double l1) noexcept nogil:
    """A gradient that is drawn to 0: what is left of it beside an l1 penalty."""
    if s > l1:
        return s - l1
    return s + l1 if s < -l1 else 0.0


cdef inline double gradient_score(double S, double w, double rest, double s,
                                  double l2) noexcept nogil:
    """What the best steps of both sides take off the loss, twice, as of [XG] 2.2."""
    cdef double t = S - s
    w = w + l2
    rest = rest + l2
    return (s * s * rest + t * t * w) / (w * rest)


cdef inline double hessian_of(const Criterion* c, const int64_t* fields, int o,
                              int64_t weight) noexcept nogil:
    """Of an output, in the unit of the coarsest one; without hessians of each, it is the weight."""
    if c.has_hessians:
        return <double>fields[c.n_outputs + o] * c.scale[c.n_outputs + o]
    return <double>weight


cdef inline int64_t mean_hessian(const Criterion* c, const int64_t* fields) noexcept nogil:
    """The mean over outputs that have hessians each: what a side weighs."""
    cdef double found = 0
    cdef int o
    for o in range(c.n_outputs):
        found += hessian_of(c, fields, o, 0)
    return <int64_t>(found / c.n_outputs)


cdef inline double poisson_score(double S, double w, double rest, double s) noexcept nogil:
    """Decrease of the half deviance up to the node's own; -1e300 when a side has no target."""
    if s <= 0 or S - s <= 0:
        return -1e300
    return s * natural_log(s / w) + (S - s) * natural_log((S - s) / rest)


cdef inline double poisson_limit(double S, double w, double rest, double s) noexcept nogil:
    """What the score of sums may come to: a side may be without target. Without weight, it has no
    limit. rest : W - w, of the integers."""
    cdef double score = 0
    if (w <= 0 and s > 0) or (rest <= 0 and S - s > 0):
        return 1e300
    if s > 0:
        score = s * natural_log(s / w)
    if S - s > 0:
        score += (S - s) * natural_log((S - s) / rest)
    return score

cdef class SideScore:
    cdef ScoreOfSides function
    cdef void* context      # what it is handed
    cdef object score       # of the user
    cdef object error       # that it has raised
