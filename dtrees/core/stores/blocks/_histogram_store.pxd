"""The store whose rows are elsewhere; see _histogram_store.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from dtrees.core.histogram._layout cimport Layout
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._store cimport Store


cdef struct Places:
    # Histograms as a list: what is not zero, by its place, ascending (`_node_counts`).
    const int64_t* place
    const int64_t* value
    int64_t n

cdef struct AliveColumn:
    # A column whose codes are asked for, of some intervals.
    int32_t column
    const uint64_t* alive   # a bit for each interval

cdef struct HistogramStore:
    Store store
    const Layout* layout    # of what blocks count
    const int64_t* of_class     # class weights, by which it is multiplied; NULL: none
    const int64_t* histogram    # of the columns that are searched and not listed, one behind the
    const int32_t* columns      # other
    int64_t n_columns
    const uint8_t* ways     # by column (`_node_counts`)
    const int64_t* first    # places of the columns before each one
    Places listed           # of the others that are searched
    Places codes            # of alive intervals, once they are there
    const AliveColumn* again    # their columns, ascending
    int64_t n_again
    int64_t* cell           # scratch, words of three cells
    const int32_t* one_by_one   # all columns, where the first that can be split is the last one
    int64_t n_one_by_one        # to be looked at; NULL: all are
    const int64_t* chosen   # of the column of the split, if it has a histogram by code
    double lowest           # of targets for their weights, for bounds
    double highest
    double* reach           # by searched column: the highest score that its intervals may have
    double best             # what a boundary has to reach, as far as histograms tell

cdef HistogramStore histogram_store(const TrainParameters* params, const Layout* layout,
                                    Search* q) noexcept nogil
cdef bint bound_intervals_of(HistogramStore* s) noexcept nogil
cdef int64_t words_of_alive(const HistogramStore* s, int64_t k) noexcept nogil
cdef void mark_intervals_of(HistogramStore* s, int64_t k, uint64_t* alive) noexcept nogil
cdef void search_again(HistogramStore* s) noexcept nogil
