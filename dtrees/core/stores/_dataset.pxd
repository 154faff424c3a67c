"""Declarations of the dataset; see _dataset.pyx."""
from libc.stdint cimport int64_t, uint8_t

from dtrees.core.data._columns cimport Column, Columns
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.search._parameters cimport Limits, TrainParameters
from dtrees.core.search._criterion cimport SideScore


cdef bind_constraints(Limits* limits, rules, list alive)


cdef class Dataset:
    cdef Columns bound
    cdef TrainParameters params
    cdef Column* columns
    cdef RowStatistics of_row
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_live
    cdef readonly bint rows_only
    cdef readonly bint is_weighted
    cdef uint8_t[::1] live      # 1: the row has a positive weight
    cdef readonly object sets_of_column     # uint64 (n_columns, n_words), or None
    cdef object order           # uint32 (n_rows,): rows in the order of y, where that is needed
    cdef object orders          # uint32 (n_outputs * n_live,): the same of several, of live rows
    cdef list alive             # arrays whose memory the structs point to
    cdef SideScore side_score   # of a criterion that is a function, or None

    cdef bind_target(self, target, rules, bint zero_one)
    cdef bind_statistics(self, target, rules, weight, bint classification)
    cdef bind_medians(self, target, weight, y)
    cdef bind_outputs(self, target, rules, weight, bint classification)
    cdef tuple bind_second(self, target, outputs, weight, value, sums, order)
    cdef bind_limits(self, target, rules, double total_weight)
