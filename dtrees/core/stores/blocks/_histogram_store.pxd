"""The store whose rows are elsewhere; see _histogram_store.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._store cimport Store


cdef struct HistogramStore:
    Store store
    const int64_t* histogram    # of the columns, one behind the other
    const int32_t* columns      # that are searched
    int64_t n_columns
    const int64_t* chosen   # of the column of the split
    bint one_by_one         # the first column that can be split is the last to be looked at

cdef HistogramStore histogram_store(const TrainParameters* params, Search* q) noexcept nogil
