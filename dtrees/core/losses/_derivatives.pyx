"""Derivatives of losses, row by row, as integers.

A tree is grown from two numbers of each row, the first and the second derivative of its loss by its
raw prediction. They are multiplied by a power of two and rounded to nearest, so that their sums do
not depend on the order of the rows::

    gradient  -0.731   * 2**30  ->  -784904778 ┐
    hessian    0.197   * 2**28  ->    52881678 ┴─▶  one word: gradient << 32 | hessian

Rows are taken 256 at a time, so that what stands between two steps stays in the first cache, and
every step is a loop that the compiler turns into vectors, twice: for registers of 128 and of 256
bits. Both have the same bits.

A fit to some rows of a table gathers them 256 at a time, and scatters what it makes of them::

    chosen          1     4     5     9
    raw, y, weight  ──gather──▶ side by side ──derive──▶ words ──scatter──▶ rows 1, 4, 5, 9

Sums of losses and weights are the same in any order, too, at the price of a few additions each.
A number is cut in two parts of 40 bits, counted from the largest one, and both are added as
integers::

    largest 3.1 < 2**2      unit of the first part 2**-38, of the second 2**-78
    1.7                   = 467289276416 x 2**-38  + the rest x 2**-78

So a sum is that of all bits down to 2**-80 of the largest number, rounded once. `math.fsum`, which
looks at all bits, takes thirty times as long.
"""
import math

import numpy as np

from libc.math cimport INFINITY, fabs, frexp, ldexp
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._structs cimport int128_t

cdef extern from "losses/derivatives.h" nogil:
    const double ROUNDING
    uint64_t bits_of(double x)
    void derive_by_width(bint is_wide, LossKind kind, int64_t n, const double* raw,
                         const double* y, double level, double* gradient, double* hessian)
    void pack_by_width(bint is_wide, int64_t n, const double* gradient, const double* hessian,
                       double gradient_scale, double hessian_scale, uint64_t* out, int64_t* sums)
    void largest_by_width(bint is_wide, int64_t n, const double* gradient, const double* hessian,
                          double* largest)
    void softmax_by_width(bint is_wide, int64_t n_classes, int64_t n, const double* raw,
                          int64_t stride, double* values)
    void exponential_by_width(bint is_wide, int64_t n, const double* x, double* out)
    void logistic_by_width(bint is_wide, int64_t n, const double* x, double* out)

cdef enum:
    PART = 40                   # bits
    AT_ONCE = 1 << 22           # numbers: their parts fill 62 bits
    LEAST_EXPONENT = -900       # below, there are no numbers for the units


cdef inline const double* targets(const LossRows* rows, int64_t begin, int64_t n,
                                  double* room) noexcept nogil:
    """The targets of a stretch of rows as numbers."""
    cdef int64_t i
    if rows.y != NULL:
        return rows.y + begin
    for i in range(n):
        room[i] = rows.classes[begin + i]
    return room


cdef inline void derive(const LossRows* rows, int64_t begin, int64_t n, double* gradient,
                        double* hessian) noexcept nogil:
    """Derivatives of a stretch of rows, without their weights."""
    cdef double[ROWS_AT_ONCE] room
    cdef const double* y = targets(rows, begin, n, room)
    derive_by_width(is_wide, rows.kind, n, rows.raw + begin, y, rows.level, gradient, hessian)


cdef inline void weigh(const LossRows* rows, int64_t begin, int64_t n, double scale,
                       double* values) noexcept nogil:
    """Derivatives times their scale and the weights.

    Of counts, rounded before they are weighed: a row of weight two adds what two rows add. Other
    weights are large or fractions, and what is rounded before them loses the bits they stand for.
    """
    cdef const double* weight = rows.weight + begin
    cdef int64_t i
    if rows.are_counts:
        for i in range(n):
            values[i] = (values[i] * scale + ROUNDING - ROUNDING) * weight[i]
    else:
        for i in range(n):
            values[i] = values[i] * weight[i] * scale


cdef inline void pack(const LossRows* rows, int64_t begin, int64_t n, int64_t k,
                      double* gradient, double* hessian, int64_t* sums) noexcept nogil:
    """Pack the derivatives of a stretch of rows, weights included; the arguments are changed."""
    cdef double gradient_scale = rows.gradient_scale
    cdef double hessian_scale = rows.hessian_scale
    cdef uint64_t* out = rows.packed + k * rows.n_rows + begin
    if rows.weight != NULL:
        weigh(rows, begin, n, gradient_scale, gradient)
        weigh(rows, begin, n, hessian_scale, hessian)
        gradient_scale = 1.0
        hessian_scale = 1.0
    pack_by_width(is_wide, n, gradient, hessian, gradient_scale, hessian_scale, out, sums + 2 * k)


cdef void pack_given(const LossRows* rows, int64_t begin, int64_t n, int64_t* sums) noexcept nogil:
    """Pack derivatives that are there."""
    cdef double[ROWS_AT_ONCE] gradient
    cdef double[ROWS_AT_ONCE] hessian
    cdef int64_t at, k
    for k in range(rows.n_classes):
        at = k * rows.n_given + begin
        memcpy(gradient, rows.gradient + at, n * sizeof(double))
        memcpy(hessian, rows.hessian + at, n * sizeof(double))
        pack(rows, begin, n, k, gradient, hessian, sums)


cdef void derive_classes(const LossRows* rows, int64_t begin, int64_t n, double* values,
                         int64_t* sums) noexcept nogil:
    """Pack the derivatives of several classes. values : scratch (n_classes, ROWS_AT_ONCE)."""
    cdef double[ROWS_AT_ONCE] gradient
    cdef double[ROWS_AT_ONCE] hessian
    cdef double[ROWS_AT_ONCE] room
    cdef const double* y = targets(rows, begin, n, room)
    cdef double* p
    cdef int64_t i, k
    softmax_by_width(is_wide, rows.n_classes, n, rows.raw + begin, rows.n_rows, values)
    for k in range(rows.n_classes):
        p = values + k * ROWS_AT_ONCE
        for i in range(n):
            gradient[i] = p[i] - (1.0 if y[i] == <double>k else 0.0)
            hessian[i] = p[i] * (1.0 - p[i])
        pack(rows, begin, n, k, gradient, hessian, sums)


cdef struct Gathered:
    # Some rows of a table side by side.
    LossRows rows
    double[ROWS_AT_ONCE] raw    # of one class
    double[ROWS_AT_ONCE] y
    double[ROWS_AT_ONCE] weight


cdef inline void copy_rows(const double* values, const uint32_t* chosen, int64_t n,
                           double* out) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = values[chosen[i]]


cdef void gather(const LossRows* rows, int64_t begin, int64_t n, Gathered* out, double* raw,
                 uint64_t* packed) noexcept nogil:
    """Put chosen rows side by side. raw, packed : (n_classes, ROWS_AT_ONCE)."""
    cdef const uint32_t* chosen = rows.chosen + begin
    cdef int64_t i, k
    out.rows = rows[0]
    out.rows.chosen = NULL
    out.rows.n_rows = ROWS_AT_ONCE
    out.rows.raw = raw
    out.rows.packed = packed
    out.rows.y = out.y
    for k in range(rows.n_classes):
        copy_rows(rows.raw + k * rows.n_rows, chosen, n, raw + k * ROWS_AT_ONCE)
    if rows.y != NULL:
        copy_rows(rows.y, chosen, n, out.y)
    else:
        for i in range(n):
            out.y[i] = rows.classes[chosen[i]]
    if rows.kind == GIVEN:
        out.rows.gradient = rows.gradient + begin
        out.rows.hessian = rows.hessian + begin
    if rows.weight != NULL:
        copy_rows(rows.weight, chosen, n, out.weight)
        out.rows.weight = out.weight


cdef void derive_some(const LossRows* rows, int64_t begin, int64_t n, double* values,
                      int64_t* sums, double* largest) noexcept nogil:
    """Pack the derivatives of at most ROWS_AT_ONCE rows that stand side by side."""
    cdef double[ROWS_AT_ONCE] gradient
    cdef double[ROWS_AT_ONCE] hessian
    if rows.kind == GIVEN:
        pack_given(rows, begin, n, sums)
    elif rows.n_classes > 1:
        derive_classes(rows, begin, n, values, sums)
    else:
        derive(rows, begin, n, gradient, hessian)
        if largest != NULL:
            largest_by_width(is_wide, n, gradient, hessian, largest)
        pack(rows, begin, n, 0, gradient, hessian, sums)


cdef void derive_chosen(const LossRows* rows, int64_t begin, int64_t n, double* values,
                        int64_t* sums, double* largest) noexcept nogil:
    """Pack the derivatives of chosen rows, which are gathered and scattered."""
    cdef Gathered some
    cdef double* raw = values + rows.n_classes * ROWS_AT_ONCE
    cdef uint64_t* packed = <uint64_t*>(raw + rows.n_classes * ROWS_AT_ONCE)
    cdef uint64_t* out
    cdef int64_t i, k
    gather(rows, begin, n, &some, raw, packed)
    derive_some(&some.rows, 0, n, values, sums, largest)
    for k in range(rows.n_classes):
        out = rows.packed + k * rows.n_rows
        for i in range(n):
            out[rows.chosen[begin + i]] = packed[k * ROWS_AT_ONCE + i]


cdef void derive_rows(const LossRows* rows, int64_t begin, int64_t end, double* values,
                      int64_t* sums, double* largest) noexcept nogil:
    """Pack the derivatives of the rows begin..end of those that are chosen.

    values : scratch (n_shares, ROWS_AT_ONCE), see `scratch_of`
    sums : (n_classes, 2), OUT: gradients and hessians of these rows, in fixed point
    largest : (2,), OUT, or NULL
        The largest absolute gradient and the largest hessian of these rows, without their weights;
        of a loss of one value, which is not given.
    """
    cdef int64_t k, n
    if largest != NULL:
        largest[0] = largest[1] = 0
    for k in range(2 * rows.n_classes):
        sums[k] = 0
    while begin < end:
        n = min(<int64_t>ROWS_AT_ONCE, end - begin)
        if rows.chosen == NULL:
            derive_some(rows, begin, n, values, sums, largest)
        else:
            derive_chosen(rows, begin, n, values, sums, largest)
        begin += n


cdef int64_t scratch_of(const LossRows* rows) noexcept nogil:
    """Numbers that `derive_rows` needs for scratch."""
    if rows.chosen != NULL:
        return 3 * rows.n_classes * ROWS_AT_ONCE
    return rows.n_classes * ROWS_AT_ONCE if rows.n_classes > 1 else 1


def exponential(x):
    """exp(x) to one unit in the last place, the same bits everywhere; float64, in its shape."""
    cdef const double[::1] given = np.ascontiguousarray(x).reshape(-1)
    cdef double[::1] to = np.empty(given.shape[0])
    if given.shape[0] > 0:
        with nogil:
            exponential_by_width(is_wide, given.shape[0], &given[0], &to[0])
    return np.asarray(to).reshape(x.shape)


def shares_of_two(const double[:, :] log_odds):
    """Shares of two classes, of which the second has these log odds (n, 1); float64 (n, 2)."""
    cdef int64_t n = log_odds.shape[0]
    cdef int64_t begin = 0
    cdef int64_t some, i
    cdef double[ROWS_AT_ONCE] own
    cdef double[ROWS_AT_ONCE] second
    out = np.empty((n, 2))
    cdef double[:, ::1] to = out
    with nogil:
        while begin < n:
            some = min(<int64_t>ROWS_AT_ONCE, n - begin)
            for i in range(some):
                own[i] = log_odds[begin + i, 0]
            logistic_by_width(is_wide, some, own, second)
            for i in range(some):
                to[begin + i, 0] = 1.0 - second[i]
                to[begin + i, 1] = second[i]
            begin += some
    return out


def softmax(const double[:, ::1] raw):
    """Shares of classes from raw predictions, both float64 (n_classes, n)."""
    cdef int64_t n_classes = raw.shape[0]
    cdef int64_t n = raw.shape[1]
    cdef int64_t begin, k, some
    out = np.empty((n_classes, n))
    cdef double[:, ::1] to = out
    cdef double[:, ::1] values = np.empty((n_classes, ROWS_AT_ONCE))
    for begin in range(0, n, ROWS_AT_ONCE):
        some = min(<int64_t>ROWS_AT_ONCE, n - begin)
        softmax_by_width(is_wide, n_classes, some, &raw[0, begin], n, &values[0, 0])
        for k in range(n_classes):
            to[k, begin:begin + some] = values[k, :some]
    return out


KINDS = {
    "log_loss": LOGISTIC, "squared_error": SQUARED_ERROR, "absolute_error": ABSOLUTE_ERROR,
    "quantile": QUANTILE, "huber": HUBER, "poisson": POISSON_LOSS, "gamma": GAMMA_LOSS,
    "tweedie": TWEEDIE_LOSS, "given": GIVEN,
}


# ---------------------------------------------------------------------------------------------
# sums

cdef double largest_of(const double* values, int64_t n) noexcept nogil:
    """The largest of some numbers without their signs; inf: some are not finite."""
    cdef double largest = 0
    cdef double number
    cdef bint is_finite = True
    cdef int64_t i
    for i in range(n):
        number = fabs(values[i])
        is_finite &= number <= 1.7976931348623157e308
        largest = number if number > largest else largest
    return largest if is_finite else INFINITY


cdef int128_t parts_of(const double* values, int64_t n, int exponent) noexcept nogil:
    """The sum of numbers below 2**exponent, in units of ``2**(exponent - 2 * PART)``."""
    cdef double scale = ldexp(1.0, PART - exponent)
    cdef double number, first, rest
    cdef int64_t firsts, rests, i
    cdef int64_t begin = 0
    cdef int128_t total = 0
    while begin < n:
        firsts = rests = 0
        for i in range(begin, min(n, begin + AT_ONCE)):
            number = values[i] * scale
            first = number + ROUNDING
            rest = (number - (first - ROUNDING)) * <double>(<int64_t>1 << PART) + ROUNDING
            firsts += <int64_t>(bits_of(first) - bits_of(ROUNDING))
            rests += <int64_t>(bits_of(rest) - bits_of(ROUNDING))
        total += <int128_t>firsts * (<int64_t>1 << PART) + rests
        begin += AT_ONCE
    return total


cdef bint is_summed(const double* values, int64_t n, double* sum) noexcept nogil:
    """OUT the sum of numbers; False where they are not finite, or very small."""
    cdef double largest = largest_of(values, n)
    cdef int exponent
    frexp(largest, &exponent)
    if largest == INFINITY or exponent < LEAST_EXPONENT:
        return False
    sum[0] = ldexp(<double>parts_of(values, n, exponent), exponent - 2 * PART)
    return True


def sums_of_members(parts, members):
    """Sums of groups of numbers, of which members have some each; float64 (n_groups,).

    parts : list of float64 (n,), of each group. members : dtrees.typing.Members. Numbers count down
    to 2**-80 of the largest of a group, or to 2**-980.
    """
    cdef int64_t[:, ::1] limbs = np.zeros((len(parts), 3), dtype=np.int64)
    cdef double[::1] largest = np.zeros(len(parts))
    cdef const double[::1] values
    cdef int128_t total
    cdef Py_ssize_t i
    for i, values in enumerate(parts):
        largest[i] = largest_of(&values[0], values.shape[0]) if values.shape[0] > 0 else 0.0
    members.largest(np.asarray(largest))
    for i, values in enumerate(parts):
        if values.shape[0] > 0 and largest[i] < INFINITY:
            total = parts_of(&values[0], values.shape[0], exponent_of(largest[i]))
            limbs[i, 0] = <int64_t>(total >> 64)
            limbs[i, 1] = <int64_t><uint32_t>(total >> 32)
            limbs[i, 2] = <int64_t><uint32_t>total
    members.sum(np.asarray(limbs).reshape(-1))
    for i in range(limbs.shape[0]):
        total = (<int128_t>limbs[i, 0] << 64) + (<int128_t>limbs[i, 1] << 32) + limbs[i, 2]
        if largest[i] < INFINITY:
            largest[i] = ldexp(<double>total, exponent_of(largest[i]) - 2 * PART)
    found = np.asarray(largest)
    if np.isinf(found).any():       # for all members: by which values, of each group
        kinds = np.array([[np.isposinf(own).sum(), np.isneginf(own).sum(), np.isnan(own).sum()]
                          for own in parts], dtype=np.int64)
        members.sum(kinds.reshape(-1))
        rises, falls, missing = (kinds > 0).T
        found[rises | falls | missing] = math.nan
        found[rises & ~falls & ~missing] = math.inf
        found[falls & ~rises & ~missing] = -math.inf
    return found


cdef int exponent_of(double largest) noexcept nogil:
    """Of the least power of two above some numbers, for the units of their sum."""
    cdef int exponent
    frexp(largest, &exponent)
    return max(<int>LEAST_EXPONENT, exponent)


def sum_in_any_order(const double[::1] values not None):
    """The sum of numbers.

    Parameters
    ----------
    values : float64 (n,)

    Returns
    -------
    float
        As by `math.fsum`, up to 2**-80 of the largest number for each. Infinite where it is too
        large; nan where a number is nan, or where infinities have both signs. O(n).
    """
    cdef int64_t n = values.shape[0]
    cdef double sum = 0
    cdef bint is_known = True
    if n > 0:
        with nogil:
            is_known = is_summed(&values[0], n, &sum)
    return sum if is_known else _slow(values)


def sums_in_any_order(const double[:, ::1] values not None):
    """The sums of the rows of an array: float64 (n_rows,)."""
    cdef int64_t n = values.shape[1]
    cdef double[::1] sums = np.zeros(values.shape[0])
    cdef uint8_t[::1] is_known = np.ones(values.shape[0], dtype=np.uint8)
    cdef int64_t i
    if n > 0:
        with nogil:
            for i in range(values.shape[0]):
                is_known[i] = is_summed(&values[i, 0], n, &sums[i])
    for i in range(values.shape[0]):
        if not is_known[i]:
            sums[i] = _slow(values[i])
    return np.asarray(sums)


def mean_in_any_order(values, weight, members=None):
    """The mean of numbers, float64 (n,), with weights or None; of an array, those of its rows.

    members : dtrees.typing.Members, who have others of the numbers, or None
    """
    if members is not None:
        weight = np.ones(len(values)) if weight is None else weight
        found = sums_of_members([values * weight, weight], members)
        return found[0] / found[1]
    if weight is None:
        return _sum_of(values) / values.shape[values.ndim - 1]
    return _sum_of(values * weight) / sum_in_any_order(weight)


cdef object _sum_of(values):
    return sum_in_any_order(values) if values.ndim == 1 else sums_in_any_order(values)


cdef object _slow(const double[::1] values):
    """The sum of numbers that are not finite, or very small."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # infinities of both signs
        return math.nan
