"""Declarations of training sets; see _training_sets.pyx."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from dtrees.core.data._columns cimport Intervals
from dtrees.core.histogram._layout cimport Layout
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef class TrainingSets:
    cdef Dataset dataset
    cdef int n_sets
    cdef TrainParameters* params_of        # by set
    cdef const uint8_t[:, ::1] has  # (n_sets, n_cells)
    cdef const uint16_t[::1] cell
    cdef const uint16_t[::1] times  # of a bag, or None
    cdef const int64_t[:, ::1] of_class     # class weights by set, or None
    cdef bint is_packed     # two classes, and what rows add goes into one number
    cdef readonly int64_t shared_rows   # of a node whose sets stay together
    cdef int64_t interval_rows, interval_codes  # as in `Tuning`
    cdef Layout layout      # of histograms
    cdef readonly int64_t n_bounded, n_alive    # of the growths that have ended
    cdef readonly int64_t n_shared_nodes, n_shared_rows
    cdef object above       # by set, as `Above`; None: anything is allowed
    cdef const Intervals* intervals     # of the columns; NULL: none
    cdef int32_t* dense         # columns that are, ascending,
    cdef int64_t n_dense
    cdef int32_t* slot          # and by column its number among them
    cdef int64_t n_stored       # entries of the sparse columns

    cdef void describe(self, SharedStore* store)
    cdef bind_class_weights(self, const int64_t[:, ::1] of_class, const double[:, ::1] units)
    cdef choose_cells(self)
    cdef part_earlier(self)
    cdef part_at_once(self, int64_t interval_codes)
    cdef list_dense(self)
