"""Which columns of a node are worth an exact look; see _first_look.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.search._search cimport Search

cdef enum:
    MOST_COLUMNS = 4096     # of a node that floats look at; a multiple of eight

cdef enum Worth:
    CONSTANT                # no boundary is permitted, here or below
    HOPELESS
    WORTH

cdef bint may_look(const Search* q, const uint32_t* entries, const PresortedFeature* features,
                   int64_t n_features) noexcept nogil
cdef void first_look(const Search* q, const uint32_t* entries, const PresortedFeature* features,
                     int64_t n_features, const uint32_t* rows, float* away, float* shape,
                     uint8_t* worth) noexcept nogil
