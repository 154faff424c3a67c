"""Declarations of the cuts; see _cuts.pyx."""
from libc.stdint cimport int64_t

from dtrees.coding._keys cimport code_t, value_t

cdef bint cut_values(const value_t* values, int64_t n, const value_t* cuts, int64_t n_cuts,
                     code_t* codes) noexcept nogil
cdef int64_t quantiles(const value_t* ordered, const int64_t* weights, int64_t n, int64_t zeros,
                       int64_t max_bins, value_t* low, value_t* high) noexcept nogil
