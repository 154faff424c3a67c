"""Declarations of the rows of a coded table side by side; see _code_rows.pyx."""
from libc.stdint cimport int32_t, int64_t, uint16_t

from dtrees.core.data._columns cimport Column
from dtrees.core.predict._grown_trees cimport Grown

cdef struct CodeRows:
    uint16_t* codes             # (n, width); NULL: not side by side
    int32_t* slot               # of each column
    int64_t width


cdef bint gather_rows(CodeRows* to, const Column* columns, const int64_t[::1] is_used,
                      const int64_t* rows, int64_t n) noexcept nogil
cdef void free_rows(CodeRows* side_by_side) noexcept nogil
cdef bint leaves_by_rules(const CodeRows* side_by_side, const Column* columns, const Grown* tree,
                          const int32_t* number, const int32_t* inner, int64_t n_inner, int64_t n,
                          Py_ssize_t* leaf) noexcept nogil
