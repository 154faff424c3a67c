"""Python's view of the criterion: the table of x log x, and the logarithm for tests."""
import numpy as np

from libc.stdint cimport int64_t

from dtrees.core.data._fixed_point cimport natural_log


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
