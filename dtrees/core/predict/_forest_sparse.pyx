"""Rows of a sparse table down many trees.

The stored values of a stretch of rows are coded column by column, and put in the order of rows; a
value that has the code of zero is left out. A row that walks is written into codes of zeros, which
are put back afterwards: O(values stored in the columns of the forest + trees * depth)::

    column of slot 7   rows  3   5   9           row 5    slot  0   7   31
                       value 2.0 1.0 4.0    ->            code  1   3    2

    codes of zeros     [ 0 0 0 0 0 0 0 1 0 0 ... ]        (1 in slot 7: a threshold is below zero)
    row 5              [ 1 0 0 0 0 0 0 3 0 0 ... ]
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from dtrees.core.data._columns cimport first_at_least
from dtrees.core.predict._forest_leaves cimport Totals, add_row, as_totals
from dtrees.core.predict._forest_nodes cimport MISSING, ForestNodes
from dtrees.core.predict._packed_forest cimport code_of, to_nodes, walk_row

ctypedef fused number_t:
    float
    double


cdef int64_t find_stretches(const int64_t[::1] indptr, const int32_t[::1] rows,
                            const int64_t[::1] columns, int64_t begin, int64_t end,
                            int64_t[:, ::1] stretch) except -1:
    """Where the stored values of some rows begin and end in each column; how many there are.

    stretch : OUT (n_columns, 2)
    """
    cdef int64_t s, low, high
    cdef int64_t n_stored = 0
    for s in range(columns.shape[0]):
        if not (
            0 <= columns[s] < indptr.shape[0] - 1
            and 0 <= indptr[columns[s]] <= indptr[columns[s] + 1] <= rows.shape[0]
        ):
            raise ValueError("The sparse matrix is broken: indptr does not ascend.")
        low, high = indptr[columns[s]], indptr[columns[s] + 1]
        if low < high:
            low = first_at_least(&rows[0], low, high, begin)
            high = first_at_least(&rows[0], low, high, end)
        stretch[s, 0], stretch[s, 1] = low, high
        n_stored += high - low
    return n_stored


def code_sparse(const int64_t[::1] indptr, const int32_t[::1] rows, const number_t[::1] data,
                const int64_t[::1] columns, const double[::1] thresholds,
                const int64_t[::1] first, int64_t begin, int64_t end):
    """Code the rows from begin to end; arguments as for `code_numbers`, but by slots.

    There is one threshold more than the last that ``first`` names.

    Returns
    -------
    row_first : int64 (end - begin + 1,)
        Where the codes of a row begin.
    cells : uint32
        ``slot << 16 | code`` of values whose code is not that of zero.
    zeros : uint16 (k, but at least 1,)
        Codes of a row of zeros.
    missing : bool
        Whether a code is that of a missing number.
    """
    cdef int64_t n = end - begin
    cdef int64_t k = columns.shape[0]
    cdef int64_t s, i, j
    cdef bint missing = False
    cdef uint16_t code
    cdef int64_t[::1] cursor = np.zeros(n + 1, dtype=np.int64)
    cdef uint16_t[::1] zeros = np.zeros(max(1, k), dtype=np.uint16)
    cdef int64_t[:, ::1] stretch = np.empty((k, 2), dtype=np.int64)
    cdef uint32_t[::1] cells
    cdef uint16_t[::1] found
    if not (
        n >= 0 and begin >= 0 and k == first.shape[0] - 1
        and rows.shape[0] == data.shape[0]
    ):
        raise ValueError("The rows do not fit the forest.")
    for s in range(k):
        if not 0 <= first[s] <= first[s + 1] < thresholds.shape[0]:
            raise ValueError("The rows do not fit the forest.")
    found = np.empty(find_stretches(indptr, rows, columns, begin, end, stretch), dtype=np.uint16)
    with nogil:
        j = 0
        for s in range(k):
            zeros[s] = code_of(0.0, &thresholds[first[s]], first[s + 1] - first[s])
            for i in range(stretch[s, 0], stretch[s, 1]):
                code = code_of(data[i], &thresholds[first[s]], first[s + 1] - first[s])
                found[j] = code
                j += 1
                missing |= code == MISSING
                if begin <= rows[i] < end:
                    cursor[rows[i] - begin + 1] += code != zeros[s]
        for i in range(n):
            cursor[i + 1] += cursor[i]
    row_first = np.array(cursor)
    cells = np.empty(cursor[n], dtype=np.uint32)
    with nogil:
        j = 0
        for s in range(k):
            for i in range(stretch[s, 0], stretch[s, 1]):
                if begin <= rows[i] < end and found[j] != zeros[s]:
                    cells[cursor[rows[i] - begin]] = <uint32_t>(s << 16) | found[j]
                    cursor[rows[i] - begin] += 1
                j += 1
    return row_first, np.asarray(cells), np.asarray(zeros), missing


def walk_sparse(ForestNodes forest not None, const int64_t[::1] row_first,
                const uint32_t[::1] cells, const uint16_t[::1] zeros, bint with_missing,
                int32_t[:, ::1] leaves, double[:, :] total, int64_t first_tree):
    """Leaves of coded rows, or the sums of their values.

    Each row walks alone, several trees at a time: blocks of rows would not fit the cache.
    ``leaves`` is OUT (n_trees, n_rows), or None; ``total`` is IN and OUT, or None, and with
    ``first_tree`` as for `walk_values`.
    """
    cdef int64_t n = row_first.shape[0] - 1
    cdef int64_t n_trees = forest.n_trees
    cdef int64_t i, j, t
    cdef int32_t* own = NULL
    cdef uint16_t* row = NULL
    cdef Totals to
    cdef bint with_leaves = leaves is not None
    cdef bint with_total = total is not None
    if not (
        zeros.shape[0] == forest.n_slots and 0 <= row_first[0] and row_first[n] <= cells.shape[0]
        and (not with_leaves or leaves.shape[0] == n_trees and leaves.shape[1] == n)
        and (not with_total or total.shape[0] == n)
    ):
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    if with_total:
        to = as_totals(forest, total, first_tree)
    own = <int32_t*>PyMem_Malloc(n_trees * sizeof(int32_t))
    row = <uint16_t*>PyMem_Malloc(forest.n_slots * sizeof(uint16_t))
    if own == NULL or row == NULL:
        PyMem_Free(own)
        PyMem_Free(row)
        raise MemoryError()
    with nogil:
        memcpy(row, &zeros[0], forest.n_slots * sizeof(uint16_t))
        for i in range(n):
            for j in range(row_first[i], row_first[i + 1]):
                row[cells[j] >> 16] = <uint16_t>(cells[j] & 0xFFFF)
            walk_row(forest, row, own, with_missing)
            if with_total:
                add_row(forest, own, i, &to)
            if with_leaves:
                for t in range(n_trees):
                    to_nodes(forest, t, &own[t], 1)
                    leaves[t, i] = own[t]
            for j in range(row_first[i], row_first[i + 1]):
                row[cells[j] >> 16] = zeros[cells[j] >> 16]
    PyMem_Free(own)
    PyMem_Free(row)
