"""The store of row lists; see _sampled_store.pyx."""
from libc.stdint cimport int32_t, int64_t

from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._store cimport Store
from dtrees.core.stores.presorted._buffers cimport Buffers
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader


cdef struct SampledStore:
    Store store
    ColumnLoader* loader
    int64_t n_columns       # of the permutation
    int32_t* drawn          # permutation of the columns, and how to undo a node's draws
    int32_t* swapped
    int32_t* ascending

cdef SampledStore sampled_store() noexcept nogil
cdef bint ready_loader(SampledStore* s, const TrainParameters* params, const RowStatistics* of_row,
                       int64_t n, int64_t n_table_rows) noexcept nogil
cdef bint begin_rows(SampledStore* s, const TrainParameters* params, const Buffers* w,
                     OpenNode* root) noexcept nogil
cdef void free_sampled(SampledStore* s) noexcept nogil
