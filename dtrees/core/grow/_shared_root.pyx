"""The node of all sets that has all rows."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.grow._node_step cimport allow
from dtrees.core.grow._training_sets cimport TrainingSets
from dtrees.core.search._parameters cimport may_use
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.shared._shared_entries cimport open_entries
from dtrees.core.stores.shared._shared_nodes cimport (
    SharedNode, free_shared, new_shared, reserve_rows
)
from dtrees.core.stores.shared._shared_state cimport SharedStore
from dtrees.core.stores.shared._shared_histogram cimport sum_cells, sum_members


cdef SharedNode* shared_root(TrainingSets sets, SharedStore* s, int64_t depth,
                             uint64_t path) except NULL:
    """All rows that count; freed by `free_shared`.

    depth, path : of the root, which has no parent.
    """
    cdef Dataset dataset = sets.dataset
    cdef int n_cells = <int>sets.has.shape[1]
    cdef SharedNode* node = new_shared(s.n_sets, n_cells, &dataset.params, s.n_dense)
    cdef bint found = node != NULL
    cdef const uint16_t[::1] cell = sets.cell
    cdef const uint8_t[::1] live = dataset.live
    cdef int64_t i
    cdef int m, c
    if not found:
        raise MemoryError
    try:
        for m in range(s.n_sets if sets.above is not None else 0):
            allow(&node.open[m], sets.above[m])
    except MemoryError:
        free_shared(node)
        raise
    bar_columns(s, node)
    for m in range(s.n_sets):
        node.set_of[m] = m
        node.open[m].parent = -1
        node.open[m].depth = depth
        node.open[m].path = path
        for c in range(n_cells):
            if not sets.has[m, c]:
                node.without[c] |= <uint64_t>1 << m
    with nogil:
        found = reserve_rows(node, dataset.n_rows)
        for i in range(dataset.n_rows if found else 0):
            node.rows[node.n] = <uint32_t>i
            node.cell[node.n] = <uint8_t>cell[i]
            node.n += live[i]
        if found:
            sum_cells(s, node)
            sum_members(s, node)
            found = open_entries(s, node, &live[0])
    if not found or s.store.out_of_memory:
        free_shared(node)
        raise MemoryError
    return node


cdef void bar_columns(const SharedStore* s, SharedNode* root) noexcept nogil:
    """Dense columns that tests above do not allow are passed over, as if they were constant."""
    cdef const uint64_t* sets = root.open[0].above.sets
    cdef int64_t i
    for i in range(s.n_dense if s.store.params.limits.n_set_words > 0 else 0):
        root.constant[i] = not may_use(&s.store.params.limits, sets, s.dense[i])
