"""The search of a shared node, column by column; those of many codes last, and by intervals."""
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from dtrees.core.data._structs cimport IN_SUBSET, LEAF
from dtrees.core.search._parameters cimport TrainParameters, may_use
from dtrees.core.search._search cimport Search, enlarge, is_better
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.sampled._sampled_columns cimport draw_columns
from dtrees.core.stores.shared._drawn_entries cimport search_drawn
from dtrees.core.stores.shared._shared_entries cimport forget_members, search_entries
from dtrees.core.stores.shared._shared_intervals cimport (
    bound_columns, has_bounds, search_intervals
)
from dtrees.core.stores.shared._shared_store cimport begin_search, search_column


cdef void search_node(Store* store, Member* members) noexcept nogil:
    """The best split of every active member."""
    cdef SharedStore* s = <SharedStore*>store
    cdef SharedNode* node = s.node
    cdef const TrainParameters* params = store.params
    cdef int64_t n_columns = params.limits.n_columns
    cdef int64_t first = 0
    cdef int64_t count = params.limits.max_features
    cdef int64_t n_used = 0  # those that the node may not use do not count as drawn
    cdef uint64_t wanting = node.active
    cdef int64_t i
    cdef int32_t column
    cdef int m
    begin_search(s, node)
    if not s.params_of[0].draws:
        search_columns(s, node, 0, 1)
        search_intervals(s, node, s.best, 0, 1)
    elif count >= n_columns:
        search_drawn(s, node, s.order, n_columns, node.active)
    else:
        while first < n_columns and wanting != 0:
            count = draw_columns(params, node.open[0].path, s.order, s.swapped, first,
                                 count)
            search_drawn(s, node, s.order + first, count, wanting)
            for i in range(first, first + count):
                n_used += may_use(&params.limits, node.open[0].above.sets, s.order[i])
            for m in range(node.n_members):
                if (members[m].search.split.test != LEAF
                        and n_used >= params.limits.max_features):
                    wanting &= ~(<uint64_t>1 << m)
            first += count
            count = 1
        for i in range(first - 1, -1, -1):
            column = s.order[i]
            s.order[i] = s.order[s.swapped[i]]
            s.order[s.swapped[i]] = column
    forget_members(s, node)


cdef void search_columns(SharedStore* s, const SharedNode* node, int64_t first,
                         int64_t step) noexcept nogil:
    """Search every `step`-th column, from `first` on, for all active members.

    Columns of many codes come last, and of these only the boundaries between intervals are looked
    at. What is inside is left to `search_intervals`, when the best boundary of all is known.
    """
    cdef int64_t i = first
    cdef int32_t j
    while i < s.n_dense:
        j = s.dense[i]
        if not has_bounds(s, node, j):
            search_column(s, node, j, node.active)
        i += step
    search_entries(s, node, first, step, node.active)
    bound_columns(s, node, first, step)


cdef void take_better(SharedStore* s, const SharedStore* other) noexcept nogil:
    """Take the splits that another thread has found of the node at hand, where they are better."""
    cdef Search* mine
    cdef const Search* found
    cdef int64_t n_bytes
    cdef int i
    s.store.out_of_memory |= other.store.out_of_memory
    for i in range(s.n_sets):
        mine = s.searches[i]
        found = other.searches[i]
        if not is_better(mine, &found.split):
            continue
        mine.split = found.split
        if found.split.test == IN_SUBSET:
            n_bytes = found.split_subset_words * sizeof(uint64_t)
            if not enlarge(mine, <void**>&mine.split_subset, n_bytes):
                s.store.out_of_memory = True
                return
            mine.split_subset_words = found.split_subset_words
            memcpy(mine.split_subset, found.split_subset, n_bytes)
