"""Cells of tables: copied to contiguous columns, and looked at for infinities."""
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.coding._keys cimport value_t

ctypedef fused input_t:
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def load_columns(const input_t[:, :] X, value_t[:, ::1] out):
    """Copies columns of a table, whatever its strides, to rows of ``out`` (k, n_rows).

    Float32 only for types that it holds exactly. -0.0 becomes 0.0.
    """
    cdef Py_ssize_t n = X.shape[0], k = X.shape[1], i, j
    cdef Py_ssize_t end, start = 0
    cdef value_t* column
    cdef const char* cell
    cdef Py_ssize_t step = X.strides[0]
    if n == 0 or k == 0:
        return
    with nogil:
        if X.strides[0] <= X.strides[1] or k == 1:
            for j in range(k):
                column = &out[j, 0]
                cell = <const char*>&X[0, j]
                for i in range(n):
                    column[i] = <value_t>((<const input_t*>(cell + i * step))[0]) + <value_t>0.0
        else:
            # rows are closer together than columns: a cache's worth of rows for all columns
            while start < n:
                end = start + 128 if start + 128 < n else n
                for j in range(k):
                    column = &out[j, 0]
                    cell = <const char*>&X[0, j]
                    for i in range(start, end):
                        column[i] = (<value_t>((<const input_t*>(cell + i * step))[0])
                                     + <value_t>0.0)
                start = end


def any_infinite(const value_t[:, :] X):
    """Whether a cell is infinite. O(cells), in the order of memory."""
    cdef Py_ssize_t rows = X.shape[0], columns = X.shape[1], i, j
    cdef Py_ssize_t outer = X.strides[0], inner = X.strides[1], swap
    cdef const char* line
    cdef uint64_t found = 0
    cdef const uint32_t* narrow
    cdef const uint64_t* wide
    if rows == 0 or columns == 0:
        return False
    line = <const char*>&X[0, 0]
    with nogil:
        if (inner if inner > 0 else -inner) > (outer if outer > 0 else -outer):
            swap = inner
            inner = outer
            outer = swap
            swap = rows
            rows = columns
            columns = swap
        for i in range(rows):
            if inner == sizeof(value_t):
                if value_t is float:
                    narrow = <const uint32_t*>(line + i * outer)
                    for j in range(columns):
                        found |= (narrow[j] & 0x7FFFFFFFU) == 0x7F800000U
                else:
                    wide = <const uint64_t*>(line + i * outer)
                    for j in range(columns):
                        found |= (wide[j] & 0x7FFFFFFFFFFFFFFFULL) == 0x7FF0000000000000ULL
            else:
                for j in range(columns):
                    found |= (<const value_t*>(line + i * outer + j * inner))[0] == INFINITY
                    found |= (<const value_t*>(line + i * outer + j * inner))[0] == -INFINITY
            if found:
                break
    return found != 0
