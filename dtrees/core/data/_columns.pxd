"""The columns of a coded matrix as the kernels see them; see _columns.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._bits cimport prefetch
from dtrees.core.data._structs cimport ALL_ORDERED, PresortedFeature

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

cdef enum Storage:
    STORED_U8
    STORED_U16
    STORED_U32
    STORED_SPARSE

cdef struct Column:
    # One column of the coded matrix.
    const void* codes       # dense: (n_rows,) of the storage's width; sparse: uint32 (stored,)
    const int32_t* rows     # sparse: ascending rows of the stored codes
    const uint32_t* order   # rows in ascending code order, or NULL
    int64_t stored          # sparse: how many
    uint32_t n_codes
    uint32_t n_ordered
    uint32_t fill
    uint32_t common         # u8: a code that most rows hold, as far as is known; or NO_RANK
    int32_t row_slot        # u8: number among the codes of a row, where they stand by row; else -1
    uint8_t storage

cdef enum:
    MOST_INTERVALS = 255
    SEARCH_COST = 4         # steps of a binary search against one of a scan

cdef struct Intervals:
    # Neighbouring codes of a column as one number of 8 bits. 0 is missing, and nothing else.
    Column column           # numbers of the rows; without codes: there are none
    uint32_t last[MOST_INTERVALS + 1]   # code of each interval

cdef struct RowLists:
    # The sparse columns that store a cell of a row, row after row.
    const int64_t* start    # (n_rows + 1,); NULL: the table has none, or nobody asked
    const int32_t* column
    const uint64_t* dense   # bit per column
    int64_t n_words

cdef struct RowCodes:
    # The columns of 8 bits once more, row by row.
    const uint8_t* codes    # (n_rows, width); NULL: nobody asked
    int32_t width           # a multiple of 32
    const double* value     # (width, 256): of the ordered codes 1, 2, ...; inf behind the last
    const double* pivot     # (width, 16): each 16th of them


cdef inline int64_t words_of_subset(const Column* column) noexcept nogil:
    """Words of a bit for each code."""
    return (<int64_t>column.n_codes >> 6) + 1


cdef inline uint32_t last_ordered(const Column* column) noexcept nogil:
    """The largest rank that a comparison can name: all of them in columns without categories."""
    return ALL_ORDERED if column.n_ordered == column.n_codes else column.n_ordered


cdef inline PresortedFeature without_entries(const Column* column, int64_t j) noexcept nogil:
    """Column j in a node where it has no entries, nor a histogram."""
    return PresortedFeature(-1, 0, <int32_t>j, column.fill, column.fill, last_ordered(column),
                            False)


cdef inline int64_t first_at_least(const int32_t* rows, int64_t low, int64_t high,
                                   int64_t row) noexcept nogil:
    """The first index, of `low` to `high`, of a row that is not before `row`."""
    cdef int64_t middle
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint is_looked_up(const Column* column, int64_t n) noexcept nogil:
    """Whether n rows of a sparse column are found by binary search of each, rather than by a look
    at all stored rows, which costs more ([SP] 3.2, eq. 8)."""
    cdef int64_t bits = 0
    cdef int64_t x = column.stored
    while x > 0:
        bits += 1
        x >>= 1
    return n * SEARCH_COST * bits < column.stored


cdef inline uint32_t code_at(const Column* column, int64_t row) noexcept nogil:
    """The code of one cell. O(1); O(log stored) in sparse columns."""
    cdef int64_t low
    if column.storage == STORED_U8:
        return (<const uint8_t*>column.codes)[row]
    if column.storage == STORED_U16:
        return (<const uint16_t*>column.codes)[row]
    if column.storage == STORED_U32:
        return (<const uint32_t*>column.codes)[row]
    low = first_at_least(column.rows, 0, column.stored, row)
    if low < column.stored and column.rows[low] == row:
        return (<const uint32_t*>column.codes)[low]
    return column.fill


cdef inline void prefetch_code(const Column* column, int64_t row) noexcept nogil:
    """Load the code of one cell of a dense column, which is asked for soon."""
    if column.storage == STORED_U8:
        prefetch(<const uint8_t*>column.codes + row)
    elif column.storage == STORED_U16:
        prefetch(<const uint16_t*>column.codes + row)
    elif column.storage == STORED_U32:
        prefetch(<const uint32_t*>column.codes + row)


cdef inline uint32_t next_code(const Column* column, uint32_t row, int64_t* at) noexcept nogil:
    """The code of a row of a sparse column, whose rows are asked for in ascending order.

    at : number among the stored rows, from 0 on, moved. O(stored) for all rows together.
    """
    while at[0] < column.stored and <uint32_t>column.rows[at[0]] < row:
        at[0] += 1
    if at[0] < column.stored and <uint32_t>column.rows[at[0]] == row:
        return (<const uint32_t*>column.codes)[at[0]]
    return column.fill


cdef class Columns:
    cdef Column* columns
    cdef int64_t n_columns
    cdef bint has_sparse
    cdef RowLists lists
    cdef RowCodes by_row
    cdef Intervals* of_column   # by column, without codes where nobody asked; or NULL
    cdef list alive             # arrays whose memory the structs point to
    cdef object __weakref__

    cdef RowLists row_lists(self, coded)
    cdef RowLists _row_lists(self, coded)
    cdef RowCodes row_codes(self, coded, values, first)
    cdef RowCodes _row_codes(self, coded, values, first)
    cdef const Intervals* intervals(self, int64_t n_rows, int64_t least_codes) except? NULL
    cdef _make_intervals(self, int64_t n_rows, int64_t least_codes)
    cdef _keep_intervals(self, int64_t j, numbers, const int64_t[::1] last)


cdef Columns columns_of(coded)
cdef const void* pointer(list alive, array, dtype)
cdef void read_codes(const Column* column, const uint32_t* rows, int64_t n,
                     uint32_t* codes) noexcept nogil
