"""The records of a grown tree as arrays, each in one pass without the interpreter."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from dtrees.core._records cimport Record
from dtrees.core._structs cimport LEAF

cdef enum:
    NO_FEATURE = -2


def arrays_of(nodes):
    """Arrays of a tree from its records.

    Parameters
    ----------
    nodes : `dtrees.core.structs.RECORD` (n_nodes,), contiguous

    Returns
    -------
    dict of str to array (n_nodes,)
        feature, children_left, children_right : int32; test, missing_go_to_left : uint8;
        impurity, gain : float64.
    """
    cdef int64_t n = len(nodes)
    cdef const uint8_t[::1] raw = nodes.view(np.uint8)
    cdef const Record* records = <const Record*>&raw[0]
    cdef int32_t[::1] feature = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] left = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] right = np.empty(n, dtype=np.int32)
    cdef uint8_t[::1] test = np.empty(n, dtype=np.uint8)
    cdef uint8_t[::1] missing = np.empty(n, dtype=np.uint8)
    cdef double[::1] impurity = np.empty(n, dtype=np.float64)
    cdef double[::1] gain = np.empty(n, dtype=np.float64)
    cdef int64_t i
    cdef const Record* record
    with nogil:
        for i in range(n):
            record = records + i
            feature[i] = NO_FEATURE if record.test == LEAF else record.column
            left[i] = <int32_t>record.left
            right[i] = <int32_t>record.right
            test[i] = record.test
            missing[i] = record.missing_left
            impurity[i] = record.impurity
            gain[i] = record.gain
    return {
        "feature": np.asarray(feature), "children_left": np.asarray(left),
        "children_right": np.asarray(right), "test": np.asarray(test),
        "missing_go_to_left": np.asarray(missing),
        "impurity": np.asarray(impurity), "gain": np.asarray(gain),
    }
