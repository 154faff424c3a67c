"""The records of a grown tree as arrays, each in one pass without the interpreter."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from dtrees.core._records cimport Record
from dtrees.core._structs cimport ABOVE, AT_MOST, LEAF

cdef enum:
    NO_FEATURE = -2


def arrays_of(nodes):
    """Arrays of a tree from its records.

    Parameters
    ----------
    nodes : `dtrees.core.structs.RECORD` (n_nodes,), contiguous

    Returns
    -------
    arrays : dict of str to array (n_nodes,)
        feature, children_left, children_right : int32; test, missing_go_to_left : uint8;
        n_node_samples : int64; impurity, gain : float64.
    compares : int64 (m,)
        The nodes that compare with a threshold, ascending.
    column, boundary, beyond : int64 (m,)
        Of these nodes.
    """
    cdef int64_t n = len(nodes)
    cdef const uint8_t[::1] raw = nodes.view(np.uint8)
    cdef const Record* records = <const Record*>&raw[0]
    cdef int32_t[::1] feature = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] left = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] right = np.empty(n, dtype=np.int32)
    cdef uint8_t[::1] test = np.empty(n, dtype=np.uint8)
    cdef uint8_t[::1] missing = np.empty(n, dtype=np.uint8)
    cdef int64_t[::1] n_rows = np.empty(n, dtype=np.int64)
    cdef double[::1] impurity = np.empty(n, dtype=np.float64)
    cdef double[::1] gain = np.empty(n, dtype=np.float64)
    cdef int64_t[:, ::1] compared = np.empty((4, n // 2 + 1), dtype=np.int64)
    cdef int64_t m = 0
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
            n_rows[i] = record.n
            impurity[i] = record.impurity
            gain[i] = record.gain
            if record.test == AT_MOST or record.test == ABOVE:
                compared[0, m] = i
                compared[1, m] = record.column
                compared[2, m] = record.boundary
                compared[3, m] = record.beyond
                m += 1
    arrays = {
        "feature": np.asarray(feature), "children_left": np.asarray(left),
        "children_right": np.asarray(right), "test": np.asarray(test),
        "missing_go_to_left": np.asarray(missing),
        "n_node_samples": np.asarray(n_rows), "impurity": np.asarray(impurity),
        "gain": np.asarray(gain),
    }
    whole = np.asarray(compared)
    return arrays, whole[0, :m], whole[1, :m], whole[2, :m], whole[3, :m]


def shares_of(const int64_t[:, ::1] statistics):
    """The weight of every node, int64 (n_nodes,), and the shares of its classes, float64."""
    cdef int64_t n = statistics.shape[0]
    cdef int64_t n_classes = statistics.shape[1]
    cdef int64_t[::1] total = np.empty(n, dtype=np.int64)
    cdef double[:, ::1] share = np.empty((n, n_classes), dtype=np.float64)
    cdef int64_t i, k, weight
    with nogil:
        for i in range(n):
            weight = 0
            for k in range(n_classes):
                weight += statistics[i, k]
            total[i] = weight
            for k in range(n_classes):
                share[i, k] = <double>statistics[i, k] / <double>weight
    return np.asarray(total), np.asarray(share)
