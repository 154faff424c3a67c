"""What the rows of a shared node add up to: by cell, then for each member."""
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.histogram._layout cimport PACKED, decode
from dtrees.core.histogram._totals cimport (
    add_to_totals, add_totals, clear_totals, weigh_totals
)
from dtrees.core.search._open_node cimport OpenNode, describe
from dtrees.core.stores.shared._shared_nodes cimport MOST_SETS, SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore, class_weights, packed


cdef void sum_cells(SharedStore* s, const SharedNode* node) noexcept nogil:
    """What the rows of each cell add up to, in scratch."""
    cdef int64_t K = s.store.params.criterion.n_classes
    cdef int64_t i
    cdef int c
    if s.is_packed:
        memset(s.sums, 0, node.n_cells * sizeof(int64_t))
        for i in range(node.n):
            s.sums[node.cell[i]] += packed(s.of_row, node.rows[i])
        return
    memset(s.class_totals, 0, node.n_cells * K * sizeof(int64_t))
    for c in range(node.n_cells):
        clear_totals(&s.totals[c])
    for i in range(node.n):
        c = node.cell[i]
        add_to_totals(s.of_row, &s.store.params.layout, node.rows[i],
                      &s.totals[c], s.class_totals + c * K if K > 0 else NULL)


cdef void sum_members(SharedStore* s, SharedNode* node) noexcept nogil:
    """Sums of each member, of the cells that it does not lack and of what only some have, and
    its description. Those of the cells are in scratch."""
    cdef int64_t K = s.store.params.criterion.n_classes
    cdef int64_t i, k
    cdef int c, m
    cdef uint64_t bits
    cdef OpenNode* open
    if s.is_packed:
        unpack_members(s, node)
        if s.store.out_of_memory:
            return
    else:
        for m in range(node.n_members):
            open = &node.open[m]
            clear_totals(&open.totals)
            for c in range(node.n_cells):
                if node.without[c] >> m & 1:
                    continue
                add_totals(&open.totals, &s.totals[c])
                for k in range(K):
                    open.class_totals[k] += s.class_totals[c * K + k]
        for i in range(node.n_some):
            bits = node.who[i]
            while bits != 0:
                open = &node.open[trailing_zeros(bits)]
                bits &= bits - 1
                add_to_totals(s.of_row, &s.store.params.layout, node.some[i],
                              &open.totals, open.class_totals)
    for m in range(node.n_members):
        if s.of_class != NULL:
            weigh_totals(&node.open[m].totals, node.open[m].class_totals,
                         class_weights(s, node, m), K)
        describe(&node.open[m], &s.params_of[node.set_of[m]])


cdef void unpack_members(SharedStore* s, SharedNode* node) noexcept nogil:
    """The sums alone, where rows are packed."""
    cdef int64_t sums[MOST_SETS]
    cdef int64_t* added = <int64_t*>malloc((node.n_some + 1) * sizeof(int64_t))
    cdef int64_t all = 0
    cdef int64_t i
    cdef int c, m
    cdef uint64_t bits
    cdef OpenNode* open
    if added == NULL:
        s.store.out_of_memory = True
        return
    for i in range(node.n_some):
        added[i] = packed(s.of_row, node.some[i])
    for c in range(node.n_cells):
        all += s.sums[c]
    for m in range(node.n_members):
        sums[m] = all
    for c in range(node.n_cells):
        bits = node.without[c]
        while bits != 0:
            sums[trailing_zeros(bits)] -= s.sums[c]
            bits &= bits - 1
    for m in range(node.n_members):
        for i in range(node.n_some):
            sums[m] += added[i] & -<int64_t>(node.who[i] >> m & 1)
        open = &node.open[m]
        open.totals.n = decode(&sums[m], PACKED, 2, &open.totals.weight, &open.totals.target)
        open.class_totals[0] = open.totals.weight - open.totals.target
        if s.store.params.criterion.n_classes > 1:
            open.class_totals[1] = open.totals.target
    free(added)
