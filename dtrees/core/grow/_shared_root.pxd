"""The root of shared nodes; see _shared_root.pyx."""
from libc.stdint cimport int64_t, uint64_t

from dtrees.core.grow._training_sets cimport TrainingSets
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef SharedNode* shared_root(TrainingSets sets, SharedStore* s, int64_t depth,
                             uint64_t path) except NULL
