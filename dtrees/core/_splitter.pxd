"""Declarations of the search by entries; see _splitter.pyx."""
from dtrees.core._search cimport Search
from dtrees.core._structs cimport Run, entry_t

cdef bint search_run(Search* q, const entry_t* entries, const Run* run) noexcept nogil
