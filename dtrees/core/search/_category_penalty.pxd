"""Declarations of the penalty of many categories; see _category_penalty.pyx."""
from libc.stdint cimport int64_t

from dtrees.core.search._search cimport Search

cdef enum:
    FEW_CATEGORIES = 11     # all their 1,023 subsets are tried; of gradients, they pay nothing
    TOLD_APART = 15         # rows of one of many categories, by their hessian (`scan_ends`)

cdef double less_penalty(const Search* q, int64_t first) noexcept nogil
cdef double impurity_of_row(const Search* q) noexcept nogil
