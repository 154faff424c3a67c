"""The stored cells of the sparse columns of a block, in the order in which histograms have them.

    column 0                       column 1              column 2 ...
    code 2       code 3            code 1                code 1        code 4
    rows 3 7 8   rows 0 5          rows 2                rows 0 1      rows 6        0, 1, 2 ...

A run of cells of one code is what a cell of a histogram adds up. Cells that hold the fill code are
left out: what a node has beyond the others holds it. The cells are also listed by row, once some
node has so few rows that it pays (`_stored_counts`).

Sorted once for each block, O(stored cells x log), and remembered as long as its codes live.
"""
from weakref import WeakKeyDictionary

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.search._sort cimport merge_sort

from dtrees._forks import LockOfObject, lock_of_process
from dtrees.coding.coded import SPARSE


cdef class StoredCells:
    """Stored cells of a coded matrix by column, code and row."""

    def __init__(self, coded):
        storage = np.asarray(coded.storage)
        columns = np.flatnonzero(storage == SPARSE)
        slots = np.asarray(coded.slot)[columns].astype(np.int64)
        number = np.full(len(storage), -1, dtype=np.int32)
        number[columns] = np.arange(len(columns))
        n_codes = np.asarray(coded.n_codes, dtype=np.int64) + 1
        before = np.cumsum(n_codes) - n_codes
        self.n_rows = coded.n_rows
        self.n_columns = len(columns)
        self.number = number
        self.first = before[columns]
        self.making = LockOfObject()
        n = len(coded.sparse_rows)
        self.start = np.zeros(len(columns) + 1, dtype=np.int64)
        self.row = np.empty(n, dtype=np.int32)
        self.code = np.empty(n, dtype=np.uint32)
        indptr = np.ascontiguousarray(coded.sparse_indptr, dtype=np.int64)
        most = int(np.diff(indptr).max(initial=0))
        self.sort_cells(slots, indptr, np.ascontiguousarray(coded.sparse_rows, dtype=np.int32),
                        np.ascontiguousarray(coded.sparse_codes, dtype=np.uint32),
                        np.ascontiguousarray(coded.fill_code, dtype=np.uint32), n_codes[columns],
                        np.empty(2 * most + 1, dtype=np.uint64))

    def sort_cells(self, const int64_t[::1] slots, const int64_t[::1] indptr,
                   const int32_t[::1] rows, const uint32_t[::1] codes, const uint32_t[::1] fill,
                   const int64_t[::1] n_codes, uint64_t[::1] items):
        """Fill the arrays. items : twice as many as the longest column has cells, and one."""
        cdef int64_t half = len(items) // 2
        cdef int64_t n = 0
        cdef int64_t k, p, s, i, m
        with nogil:
            for k in range(self.n_columns):
                s = slots[k]
                m = indptr[s + 1] - indptr[s]
                if n_codes[k] <= 2 * m:
                    n = self.count_codes(rows, codes, fill[s], indptr[s], indptr[s + 1], n_codes[k],
                                         &items[0], n)
                    self.start[k + 1] = n
                    continue
                m = 0
                for p in range(indptr[s], indptr[s + 1]):
                    if codes[p] != fill[s]:
                        items[m] = <uint64_t>codes[p] << 32 | <uint32_t>rows[p]
                        m += 1
                merge_sort(&items[0], &items[half], m)
                for i in range(m):
                    self.row[n + i] = <int32_t><uint32_t>items[i]
                    self.code[n + i] = <uint32_t>(items[i] >> 32)
                n += m
                self.start[k + 1] = n
        self.n_stored = n

    cdef int64_t count_codes(self, const int32_t[::1] rows, const uint32_t[::1] codes,
                             uint32_t fill, int64_t begin, int64_t end, int64_t n_codes,
                             uint64_t* place, int64_t n) noexcept nogil:
        """Sort the cells of a column by counting, to place n and on; returns where they end."""
        cdef int64_t p, k
        cdef uint64_t before = n
        cdef uint64_t count
        memset(place, 0, n_codes * sizeof(uint64_t))
        for p in range(begin, end):
            place[codes[p]] += 1
        place[fill] = 0
        for k in range(n_codes):
            count = place[k]
            place[k] = before
            before += count
        for p in range(begin, end):
            if codes[p] != fill:
                self.row[place[codes[p]]] = rows[p]
                self.code[place[codes[p]]] = codes[p]
                place[codes[p]] += 1
        return before

    cdef make_rows(self):
        """List the cells by row, unless that is done."""
        with self.making.of_process():
            if not self.has_rows:
                self.list_by_row()

    def list_by_row(self):
        cdef int64_t[::1] start = np.zeros(self.n_rows + 2, dtype=np.int64)
        cdef uint32_t[::1] cells = np.empty(self.n_stored, dtype=np.uint32)
        cdef int64_t p, row
        with nogil:
            for p in range(self.n_stored):
                start[self.row[p] + 2] += 1
            for row in range(self.n_rows):
                start[row + 2] += start[row + 1]
            for p in range(self.n_stored):
                row = self.row[p]
                cells[start[row + 1]] = <uint32_t>p
                start[row + 1] += 1
        self.cell_of_row = cells
        self.start_of_row = start[:self.n_rows + 1]
        self.has_rows = True


_remembered = WeakKeyDictionary()
_making = lock_of_process()     # threads that ask for the same share what the first one makes


cdef StoredCells stored_cells_of(coded):
    """Those of a coded matrix, remembered as long as it lives."""
    with _making:
        cells = _remembered.get(coded)
    if cells is None:
        cells = StoredCells(coded)
        with _making:
            cells = _remembered.setdefault(coded, cells)
    return cells


def cells_of(coded):
    """Column, code and row of each stored cell, in their order; for tests."""
    cdef StoredCells cells = stored_cells_of(coded)
    n = cells.n_stored
    columns = np.flatnonzero(np.asarray(cells.number) >= 0)
    return (np.repeat(columns, np.diff(np.asarray(cells.start))), np.asarray(cells.code)[:n],
            np.asarray(cells.row)[:n])
