"""Criteria that are functions of both sides, and Python's view of the others.

A function of the class weights of both sides that is compiled is a function here, and a row of
`COMPILED` and of `dtrees.core.data.criteria`. Those of users are called for each boundary that is
permitted (`dtrees.criteria`).
"""
import numpy as np

from libc.stdint cimport int64_t

from dtrees.core.data._fixed_point cimport natural_log


cdef double chi_square(void* context, const double* left, const double* right,
                       int n_classes) noexcept nogil:
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


cdef double call(void* context, const double* left, const double* right,
                 int n_classes) noexcept nogil:
    """What a user's function says; the score of no split once it has failed."""
    with gil:
        return score_of_user(<SideScore>context, left, right, n_classes)


cdef double score_of_user(SideScore own, const double* left, const double* right,
                          int n_classes) noexcept:
    if own.error is not None:
        return NONE
    sides = np.empty((2, n_classes))
    for k in range(n_classes):
        sides[0, k] = left[k]
        sides[1, k] = right[k]
    try:
        found = float(own.score(sides[0], sides[1]))
        if found != found:
            raise ValueError("The score of a criterion is not a number.")
    except BaseException as error:
        own.error = error
        return NONE
    return found


cdef class SideScore:
    """A score of both sides, as growth calls it."""

    def raise_error(self):
        """Raise what a user's function has raised during growth."""
        if self.error is not None:
            raise self.error


cdef SideScore compiled(ScoreOfSides function):
    cdef SideScore made = SideScore()
    made.function = function
    return made


COMPILED = {"chi_square": compiled(chi_square)}


def side_score(criterion, score):
    """The score of a criterion of the table that is a function.

    Parameters
    ----------
    criterion : str
    score : callable or None
        Of a user's criterion.
    """
    cdef SideScore made
    if criterion in COMPILED:
        return COMPILED[criterion]
    made = SideScore()
    made.function = call
    made.context = <void*>made
    made.score = score
    return made


# ---------------------------------------------------------------------------------------------
# Python's view

def log(double x):
    """Natural logarithm of a positive number, the same bits everywhere."""
    return natural_log(x)


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
