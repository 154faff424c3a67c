"""The stored cells of sparse columns of a block; see _stored_cells.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t


cdef class StoredCells:
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_columns     # that are sparse
    cdef readonly int64_t n_stored      # cells that do not hold the fill code
    cdef int64_t[::1] start             # (n_columns + 1,): where the cells of a column begin
    cdef int32_t[::1] row               # (n_stored,)
    cdef uint32_t[::1] code
    cdef int64_t[::1] first             # codes of all columns of the table before this one
    cdef int32_t[::1] number            # by column of the table: among the sparse ones, or -1
    cdef bint has_rows                  # somebody has asked for what follows
    cdef int64_t[::1] start_of_row      # (n_rows + 1,)
    cdef uint32_t[::1] cell_of_row      # cells of the first row, of the second ...
    cdef object making

    cdef int64_t count_codes(self, const int32_t[::1] rows, const uint32_t[::1] codes,
                             uint32_t fill, int64_t begin, int64_t end, int64_t n_codes,
                             uint64_t* place, int64_t n) noexcept nogil
    cdef make_rows(self)


cdef StoredCells stored_cells_of(coded)
