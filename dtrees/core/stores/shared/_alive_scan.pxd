"""Declarations of the scan of intervals that are alive; see _alive_scan.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef void scan_alive(SharedStore* s, const SharedNode* node, int32_t number,
                     int64_t width) noexcept nogil
cdef void free_alive(SharedStore* s) noexcept nogil
