"""The store whose rows are elsewhere; see _histogram_store.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._store cimport Store


cdef struct HistogramStore:
    Store store
    const int64_t* histogram    # of the dense columns that are searched, one behind the other
    const int32_t* columns
    int64_t n_columns
    const int64_t* first    # places of the columns before each one (`_stored_counts`)
    const int64_t* places   # of the sparse columns that are searched: what is not zero, ascending
    const int64_t* values
    int64_t n_places
    int64_t* cell           # scratch, words of a cell
    const int32_t* one_by_one   # all columns, where the first that can be split is the last one
    int64_t n_one_by_one        # to be looked at; NULL: all are
    const int64_t* chosen   # of the column of the split, if it is dense

cdef HistogramStore histogram_store(const TrainParameters* params, Search* q) noexcept nogil
