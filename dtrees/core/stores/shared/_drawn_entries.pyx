"""Columns that a shared node draws: all its sets draw the same ones, so each is read once.

Entries of all sparse columns that moved with the rows of a node would cost all columns, though a
node looks at a few of them. So nothing moves but rows, as in a tree that grows alone
(`stores.sampled`), and the entries of a drawn column are found when it is drawn ([SP] 3.2)::

    column 7, stored     r2   r4   r9   r11  r17     all rows of the table that hold a code
    who has the row      0b1  0    0    0b11 0b10    by row; 0: it is not in the node
    entries              12 r11 | 12 r17 | 31 r2     sorted by code, for all sets

Whether all stored rows are looked at, or those of the node are searched for, follows from their
numbers. From there on an entry is what it is in other shared nodes (`_shared_entries`).
"""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core.data._bits cimport prefetch
from dtrees.core.data._columns cimport (
    STORED_SPARSE, Column, first_at_least, is_looked_up, without_entries
)
from dtrees.core.data._memory cimport resize
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.search._parameters cimport TrainParameters, may_use
from dtrees.core.search._sort cimport merge_sort
from dtrees.core.stores.shared._shared_entries cimport reserve_own, search_entries
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore
from dtrees.core.stores.shared._shared_store cimport search_column

cdef enum:
    AHEAD = 8               # columns


cdef void search_drawn(SharedStore* s, SharedNode* node, const int32_t* drawn, int64_t count,
                       uint64_t members) noexcept nogil:
    """Search some columns, in any order, for these members; `note_members` was called. Those that
    the node may not use are left out."""
    cdef const TrainParameters* params = s.store.params
    cdef const uint64_t* sets = node.open[0].above.sets  # those of all members
    cdef int64_t before = node.n_features
    cdef int64_t i
    if s.n_dense < params.limits.n_columns and not reserve_drawn(s, node, drawn, count):
        s.store.out_of_memory = True
        return
    for i in range(count):
        if not may_use(&params.limits, sets, drawn[i]):
            continue
        if params.columns[drawn[i]].storage != STORED_SPARSE:
            search_column(s, node, drawn[i], members)
            continue
        if i + AHEAD < count:
            prefetch(params.columns[drawn[i + AHEAD]].rows)
        read_drawn(s, node, drawn[i])
    if node.n_features > before:
        search_entries(s, node, before, 1, members)


cdef bint reserve_drawn(SharedStore* s, SharedNode* node, const int32_t* drawn,
                        int64_t count) noexcept nogil:
    """Room for the entries of some columns behind those that a node has; False without memory."""
    cdef int64_t n = node.n + node.n_some
    cdef int64_t most = 0
    cdef int64_t i
    cdef const Column* column
    for i in range(count):
        if i + AHEAD < count:
            prefetch(s.store.params.columns + drawn[i + AHEAD])
        column = s.store.params.columns + drawn[i]
        if column.storage == STORED_SPARSE:
            most += min(column.stored, n)
    node.was_drawn = True
    return most == 0 or (
        resize(<void**>&node.entries, (node.n_entries + most + 1) * sizeof(uint64_t))
        and resize(<void**>&node.features, (node.n_features + count) * sizeof(PresortedFeature)))


cdef void read_drawn(SharedStore* s, SharedNode* node, int32_t number) noexcept nogil:
    """The entries of a sparse column, sorted, become a feature of the node, unless there are none.
    """
    cdef const Column* column = s.store.params.columns + number
    cdef uint64_t* entries = node.entries + node.n_entries
    cdef PresortedFeature* feature = node.features + node.n_features
    cdef int64_t n
    if column.stored == 0 or s.store.out_of_memory:
        return
    if is_looked_up(column, node.n + node.n_some):
        n = look_rows_up(column, node, entries)
    else:
        n = look_at_stored(column, s.who_of, entries)
        s.store.work += column.stored
    if n == 0:
        return
    feature[0] = without_entries(column, number)
    feature.offset = node.n_entries
    feature.length = <uint32_t>n
    if not sort_drawn(s, feature, entries):
        return
    node.n_features += 1
    node.n_entries += n


cdef int64_t look_at_stored(const Column* column, const uint64_t* who_of,
                            uint64_t* entries) noexcept nogil:
    """Stored rows that somebody has, with other codes than the fill code; returns how many."""
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef int64_t n = 0
    cdef int64_t at
    for at in range(column.stored):
        entries[n] = <uint64_t>codes[at] << 32 | <uint32_t>column.rows[at]
        n += who_of[column.rows[at]] != 0 and codes[at] != column.fill
    return n


cdef int64_t look_rows_up(const Column* column, const SharedNode* node,
                          uint64_t* entries) noexcept nogil:
    """The same, by binary search of each row of a node."""
    cdef int64_t n = 0
    cdef int64_t at = 0
    cdef int64_t i
    for i in range(node.n):
        at = first_at_least(column.rows, at, column.stored, node.rows[i])
        n += add_stored(column, at, node.rows[i], entries + n)
    for i in range(node.n_some):
        at = first_at_least(column.rows, 0, column.stored, node.some[i])
        n += add_stored(column, at, node.some[i], entries + n)
    return n


cdef inline bint add_stored(const Column* column, int64_t at, uint32_t row,
                            uint64_t* entry) noexcept nogil:
    """Write an entry, if a row stands where it was searched for."""
    cdef uint32_t code
    if at == column.stored or <uint32_t>column.rows[at] != row:
        return False
    code = (<const uint32_t*>column.codes)[at]
    entry[0] = <uint64_t>code << 32 | row
    return code != column.fill


cdef bint sort_drawn(SharedStore* s, const PresortedFeature* feature,
                     uint64_t* entries) noexcept nogil:
    """Sort by code, unless they are sorted: columns of one code are; False without memory."""
    cdef int64_t i = 1
    while i < feature.length and entries[i - 1] <= entries[i]:
        i += 1
    if i >= feature.length:
        return True
    if not reserve_own(s, feature):
        return False
    merge_sort(entries, s.own_entries, feature.length)
    return True
