"""The columns of a coded matrix as C structs.

A `Column` says where the codes of a column are, how wide, and how many there are. The structs of a
matrix are made once and remembered as long as it lives; the trees of a forest share them. What is
asked for by some trees only is made when it is first asked for: the sparse columns by row, the
columns of 8 bits by row, and the intervals of columns of many codes. Of these the codes are copied;
the other structs point to the matrix's own arrays.
"""
from weakref import WeakKeyDictionary

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dtrees.core.data._memory cimport let_go_of_pages
from dtrees.core.data._structs cimport NO_RANK

from dtrees._forks import lock_of_process
from dtrees.coding.mapped import is_mapped

cdef enum:
    SAMPLE = 1024           # rows that are asked for a common code


cdef const void* pointer(list alive, array, dtype):
    """Memory of a contiguous, aligned array, which `alive` keeps; NULL when it is empty."""
    cdef const uint8_t[::1] flat
    array = np.require(array, dtype=dtype, requirements=["A"])
    if array.size == 0:
        return NULL
    array = array.reshape(-1, order="F").view(np.uint8)
    alive.append(array)
    flat = array
    return &flat[0]


cdef void read_codes(const Column* column, const uint32_t* rows, int64_t n,
                     uint32_t* codes) noexcept nogil:
    """The codes of ascending rows, of a column of any width.

    A loop for each width (measured: .8 of the time of `code_at` for each row, 700,000 rows).
    """
    cdef int64_t i, at = 0
    if column.storage == STORED_U8:
        for i in range(n):
            codes[i] = (<const uint8_t*>column.codes)[rows[i]]
    elif column.storage == STORED_U16:
        for i in range(n):
            codes[i] = (<const uint16_t*>column.codes)[rows[i]]
    elif column.storage == STORED_U32:
        for i in range(n):
            codes[i] = (<const uint32_t*>column.codes)[rows[i]]
    else:
        for i in range(n):
            codes[i] = next_code(column, rows[i], &at)


cdef uint32_t common_code(const Column* column, int64_t n_rows) noexcept nogil:
    """A code that seven of eight rows of a sample hold, or NO_RANK.

    What holds a majority survives when different codes cancel each other out (Boyer and Moore
    1991).
    """
    cdef int64_t step = n_rows // SAMPLE + 1
    cdef int64_t lead = 0
    cdef int64_t seen = 0
    cdef int64_t held = 0
    cdef int64_t row = 0    # `range` of a step that is not known takes Python's numbers
    cdef uint32_t found = 0
    cdef uint32_t code
    while row < n_rows:
        code = code_at(column, row)
        if lead == 0:
            found = code
        lead += 1 if code == found else -1
        row += step
    row = 0
    while row < n_rows:
        seen += 1
        held += code_at(column, row) == found
        row += step
    return found if 8 * held >= 7 * seen and seen > 0 else <uint32_t>NO_RANK


cdef class Columns:
    """The columns of a coded matrix as C structs; trees of one matrix share them."""

    def __cinit__(self):
        self.columns = NULL

    def __dealloc__(self):
        free(self.columns)
        free(self.of_column)

    def __init__(self, coded):
        cdef int64_t j, n_rows = coded.n_rows, n_columns = coded.n_columns
        cdef const int64_t[::1] n_codes = np.ascontiguousarray(coded.n_codes, dtype=np.int64)
        cdef const int64_t[::1] n_ordered = np.ascontiguousarray(coded.n_ordered, dtype=np.int64)
        cdef const uint8_t[::1] storage = np.ascontiguousarray(coded.storage, dtype=np.uint8)
        cdef const int64_t[::1] slot = np.ascontiguousarray(coded.slot, dtype=np.int64)
        cdef const int64_t[::1] indptr = np.ascontiguousarray(coded.sparse_indptr, dtype=np.int64)
        cdef const uint32_t[::1] fill = np.ascontiguousarray(coded.fill_code, dtype=np.uint32)
        cdef list alive = []
        cdef bint in_file = is_mapped(coded.u8)
        cdef const uint8_t* u8 = <const uint8_t*>pointer(alive, coded.u8, np.uint8)
        cdef const uint16_t* u16 = <const uint16_t*>pointer(alive, coded.u16, np.uint16)
        cdef const uint32_t* u32 = <const uint32_t*>pointer(alive, coded.u32, np.uint32)
        cdef const uint32_t* order = NULL
        cdef const int32_t* rows = <const int32_t*>pointer(alive, coded.sparse_rows, np.int32)
        cdef const uint32_t* codes = <const uint32_t*>pointer(alive, coded.sparse_codes, np.uint32)
        cdef Column* column
        if coded.order32 is not None:
            order = <const uint32_t*>pointer(alive, coded.order32, np.uint32)
        self.alive = alive
        self.n_columns = n_columns
        self.columns = <Column*>calloc(n_columns + 1, sizeof(Column))
        if self.columns == NULL:
            raise MemoryError
        for j in range(n_columns):
            column = self.columns + j
            column.storage = storage[j]
            column.n_codes = <uint32_t>n_codes[j]
            column.n_ordered = <uint32_t>n_ordered[j]
            column.fill = NO_RANK
            column.common = NO_RANK
            column.row_slot = -1
            if storage[j] == STORED_U8:
                column.codes = u8 + slot[j] * n_rows
                column.row_slot = <int32_t>slot[j]
            elif storage[j] == STORED_U16:
                column.codes = u16 + slot[j] * n_rows
            elif storage[j] == STORED_U32:
                column.codes = u32 + slot[j] * n_rows
                if order != NULL:
                    column.order = order + slot[j] * n_rows
            else:
                self.has_sparse = True
                column.stored = indptr[slot[j] + 1] - indptr[slot[j]]
                column.codes = codes + indptr[slot[j]] if column.stored > 0 else NULL
                column.rows = rows + indptr[slot[j]] if column.stored > 0 else NULL
                column.fill = fill[slot[j]]
            if storage[j] == STORED_U8:
                column.common = common_code(column, n_rows)
                if in_file:
                    let_go_of_pages(column.codes, n_rows)

    cdef RowLists row_lists(self, coded):
        """The sparse columns by row, made when they are first asked for. O(stored cells)."""
        with _making:
            return self._row_lists(coded)

    cdef RowLists _row_lists(self, coded):
        cdef RowLists lists
        if not self.has_sparse or self.lists.start != NULL:
            return self.lists
        start, column = coded.stored_columns()
        dense = np.zeros(64 * (self.n_columns // 64 + 1), dtype=np.uint8)
        dense[:self.n_columns] = np.asarray(coded.storage) != STORED_SPARSE
        memset(&lists, 0, sizeof(RowLists))
        lists.start = <const int64_t*>pointer(self.alive, start, np.int64)
        lists.column = <const int32_t*>pointer(self.alive, column, np.int32)
        lists.dense = <const uint64_t*>pointer(
            self.alive, np.packbits(dense, bitorder="little"), np.uint8)
        lists.n_words = self.n_columns // 64 + 1
        self.lists = lists
        return lists

    cdef RowCodes row_codes(self, coded, values, first):
        """The columns of 8 bits by row, made when they are first asked for. O(cells).

        values, first : `CodeBook.code_values`.
        """
        with _making:
            return self._row_codes(coded, values, first)

    cdef RowCodes _row_codes(self, coded, values, first):
        cdef RowCodes rows
        cdef int64_t n_columns = coded.u8.shape[1]
        if n_columns == 0 or self.by_row.codes != NULL:
            return self.by_row
        rows.width = <int32_t>((n_columns + 31) // 32 * 32)
        codes = np.zeros((coded.n_rows, rows.width), dtype=np.uint8)
        codes[:, :n_columns] = coded.u8
        table = np.full((rows.width, 256), np.inf)
        for column in np.flatnonzero(coded.storage == STORED_U8).tolist():
            own = values[first[column]:first[column + 1]]
            table[coded.slot[column], :len(own)] = own
        rows.value = <const double*>pointer(self.alive, table.T, np.float64)
        pivots = np.ascontiguousarray(table[:, 15::16])
        rows.pivot = <const double*>pointer(self.alive, pivots.T, np.float64)
        rows.codes = <const uint8_t*>pointer(self.alive, codes.T, np.uint8)
        self.by_row = rows
        return rows

    cdef const Intervals* intervals(self, int64_t n_rows, int64_t least_codes) except? NULL:
        """Intervals of the columns of so many codes, made when they are first asked for. O(cells).

        NULL: no column has any.
        """
        with _making:
            self._make_intervals(n_rows, least_codes)
        return self.of_column

    cdef _make_intervals(self, int64_t n_rows, int64_t least_codes):
        cdef Column* column
        cdef int64_t j
        for j in range(self.n_columns):
            column = self.columns + j
            if (column.storage not in (STORED_U16, STORED_U32) or n_rows == 0
                    or column.n_ordered != column.n_codes or column.n_codes <= MOST_INTERVALS
                    or column.n_codes < least_codes):
                continue
            if self.of_column == NULL:
                self.of_column = <Intervals*>calloc(self.n_columns, sizeof(Intervals))
                if self.of_column == NULL:
                    raise MemoryError
            if self.of_column[j].column.codes != NULL:
                continue
            if column.storage == STORED_U16:
                codes = np.asarray(<const uint16_t[:n_rows]><const uint16_t*>column.codes)
            else:
                codes = np.asarray(<const uint32_t[:n_rows]><const uint32_t*>column.codes)
            numbers, last = intervals_of(codes, column.n_codes)
            self._keep_intervals(j, numbers, last)

    cdef _keep_intervals(self, int64_t j, numbers, const int64_t[::1] last):
        cdef Intervals* found = self.of_column + j
        cdef Column* column = &found.column
        cdef int64_t i
        column[0] = self.columns[j]
        column.storage = STORED_U8
        column.n_codes = column.n_ordered = <uint32_t>(len(last) - 1)
        column.common = NO_RANK
        column.codes = pointer(self.alive, numbers, np.uint8)
        for i in range(len(last)):
            found.last[i] = <uint32_t>last[i]


def intervals_of(codes, int64_t n_codes):
    """Intervals of about equal numbers of rows.

    Parameters
    ----------
    codes : uint16 or uint32 (n_rows,)
    n_codes : int

    Returns
    -------
    numbers : uint8 (n_rows,)
        Of the interval of each row; 0: its code is 0.
    last : int64 (at most 256,)
        The last code of each interval.
    """
    counts = np.bincount(codes, minlength=n_codes + 1)
    counts[0] = 0
    up_to = counts.cumsum()
    shares = np.arange(1, MOST_INTERVALS) / MOST_INTERVALS
    inner = np.searchsorted(up_to[1:], up_to[n_codes] * shares) + 1
    last = np.unique([0, *inner[inner < n_codes].tolist(), n_codes])
    of_code = np.repeat(np.arange(len(last), dtype=np.uint8), np.diff(last, prepend=-1))
    return of_code[codes], last


_remembered = WeakKeyDictionary()
_making = lock_of_process()     # threads that ask for the same share what the first one makes


cdef Columns columns_of(coded):
    """The structs of a coded matrix, remembered as long as it lives. O(columns) once."""
    with _making:
        columns = _remembered.get(coded)
        if columns is None:
            columns = _remembered[coded] = Columns(coded)
        return columns
