"""The logarithm of the kernels, for Python."""
import numpy as np

from dtrees.core.data._fixed_point cimport natural_log


def log(x):
    """Natural logarithm of positive numbers, the same bits everywhere; float64, in their shape."""
    cdef const double[::1] given = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
    cdef double[::1] to = np.empty(given.shape[0])
    cdef Py_ssize_t i
    with nogil:
        for i in range(given.shape[0]):
            to[i] = natural_log(given[i])
    return np.asarray(to).reshape(np.shape(x))[()]
