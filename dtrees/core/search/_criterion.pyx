"""Criteria that are functions of both sides, and the table of x log x.

A function of the class weights of both sides is a function here, and a row of `COMPILED` and of
`dtrees.core.data.criteria`. Those of users are called for each boundary that is permitted
(`dtrees.criteria`): with the GIL, or as compiled functions without it.
"""
import numpy as np

from cpython.pycapsule cimport (
    PyCapsule_CheckExact, PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer
)
from libc.math cimport INFINITY
from libc.stdint cimport int64_t

from dtrees.core.data._fixed_point cimport natural_log


cdef double chi_square(const double* left, const double* right, int n_classes,
                       void* context) noexcept nogil:
    """The chi-square statistic of sides and classes, as [SF] names it among its heuristics.

    A class of weight t is expected to have t w / W on a side of weight w. Both sides are off by as
    much.
    """
    cdef double w = 0
    cdef double rest = 0
    cdef double found = 0
    cdef double expected, off
    cdef int k
    for k in range(n_classes):
        w += left[k]
        rest += right[k]
    for k in range(n_classes):
        expected = (left[k] + right[k]) * w / (w + rest)
        if expected > 0:
            off = left[k] - expected
            found += off * off / expected * (w + rest) / rest
    return found


cdef inline double bits(double part, double whole) noexcept nogil:
    """What it takes to tell a part from the rest, in units of the logarithm."""
    return part * natural_log(whole / part) if part > 0 else 0.0


cdef double gain_ratio(const double* left, const double* right, int n_classes,
                       void* context) noexcept nogil:
    """The gain ratio (Quinlan 1993), which [CV] names; times the weight of the node.

    What a split gains by the entropy of the classes, by the entropy of its sides. The gain is also
    what the classes tell of the sides: their entropy less that within the classes. What it takes to
    name one of W - 1 boundaries is taken off (Quinlan 1996): otherwise splits that take off a row
    at a time have the largest ratios, and trees are as deep as they have rows. Where one of several
    targets has one class, there is nothing to gain, and nothing to take off.
    """
    cdef double w = 0
    cdef double rest = 0
    cdef double within = 0
    cdef double of_sides
    cdef int n_here = 0
    cdef int k
    for k in range(n_classes):
        n_here += left[k] + right[k] > 0
        w += left[k]
        rest += right[k]
        within += bits(left[k], left[k] + right[k]) + bits(right[k], left[k] + right[k])
    if n_here < 2:
        return 0.0
    of_sides = bits(w, w + rest) + bits(rest, w + rest)
    return (of_sides - within - natural_log(max(w + rest - 1, 1.0))) / of_sides * (w + rest)


cdef double poisson_of_outputs(const double* left, const double* right, int n,
                               void* context) noexcept nogil:
    """What a split takes off the half deviance, the mean over outputs. A side without any target
    of an output that the other side has is not allowed."""
    cdef double w = left[0]
    cdef double v = right[0]
    cdef double found = 0
    cdef double mean
    cdef int k
    for k in range(1, n, 2):
        mean = (w * left[k] + v * right[k]) / (w + v)
        if mean > 0:
            if left[k] <= 0 or right[k] <= 0:
                return NONE
            found += (w * left[k] * natural_log(left[k] / mean)
                      + v * right[k] * natural_log(right[k] / mean))
    return found / (n // 2)


cdef double call(const double* left, const double* right, int n, void* context) noexcept nogil:
    """What a user's function says; the score of no split once it has failed."""
    with gil:
        return score_of_user(<SideScore>context, left, right, n)


cdef double call_without_data(const double* left, const double* right, int n,
                              void* context) noexcept nogil:
    return (<ScoreWithoutData>context)(left, right, n)


cdef double score_of_user(SideScore own, const double* left, const double* right, int n) noexcept:
    if own.error is not None:
        return NONE
    sides = np.empty((2, n))
    for k in range(n):
        sides[0, k] = left[k]
        sides[1, k] = right[k]
    try:
        found = float(own.score(sides[0], sides[1]))
        if not found < INFINITY:
            raise ValueError(f"The score of a criterion is {found}: give a finite number, or -inf.")
    except BaseException as error:
        own.error = error
        return NONE
    return found


cdef class SideScore:
    """A score of both sides, as growth calls it."""

    def __call__(self, const double[::1] left, const double[::1] right):
        """The score of two sides."""
        return self.function(&left[0], &right[0], <int>left.shape[0], self.context)

    def raise_error(self):
        """Raise what a user's function has raised during growth."""
        if self.error is not None:
            raise self.error


cdef SideScore compiled(ScoreOfSides function):
    cdef SideScore made = SideScore()
    made.function = function
    return made


COMPILED = {
    "chi_square": compiled(chi_square), "gain_ratio": compiled(gain_ratio),
    "poisson": compiled(poisson_of_outputs),    # of one output it is none
}
WITH_DATA = "double (double *, double *, int, void *)"
WITHOUT_DATA = "double (double *, double *, int)"


def side_score(criterion, score):
    """The score of a criterion of the table that is a function.

    Parameters
    ----------
    criterion : str
    score : callable, PyCapsule whose name is one of the two signatures, or None
        Of a user's criterion.
    """
    cdef SideScore made
    cdef const char* name
    cdef void* address
    if criterion in COMPILED:
        return COMPILED[criterion]
    made = SideScore()
    made.score = score
    if not PyCapsule_CheckExact(score):
        made.function = call
        made.context = <void*>made
        return made
    name = PyCapsule_GetName(score)
    address = PyCapsule_GetPointer(score, name)
    if name == WITH_DATA.encode():
        made.function = <ScoreOfSides>address
        made.context = PyCapsule_GetContext(score)
    else:
        made.function = call_without_data
        made.context = address
    return made


def xlogx_table(int64_t size, double fixed_point):
    """f(x) = x log x in fixed point.

    Parameters
    ----------
    size : int
    fixed_point : float

    Returns
    -------
    int64 (size,)
        ``round(x * log(x) * fixed_point)`` for x = 0 .. size-1.
    """
    cdef Criterion criterion
    cdef int64_t[::1] table = np.zeros(size, dtype=np.int64)
    cdef int64_t x
    criterion.xlogx_size = 0
    criterion.fixed_point = fixed_point
    with nogil:
        for x in range(1, size):
            table[x] = xlogx(&criterion, x)
    found = np.asarray(table)
    found.flags.writeable = False
    return found
