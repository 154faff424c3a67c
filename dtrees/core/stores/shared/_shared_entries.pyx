"""Sparse columns of shared nodes: entries that are sorted once, and move with the rows of a node.

An entry says nothing of sets: its row does, by its cell or by who has it. So all sets share the
entries of a column, and these are partitioned once for all of them ([CV] 2.2; [SP] 3)::

    column 7      | 12 r4 | 12 r9 | 31 r2 | 40 r7 |    codes and rows, ascending
    member 0        x       x               x          the rows that it has
    member 1        x               x       x

    at a split    left: those whose row somebody sends left;  right: likewise;  both: some rows

A column without an entry in a node is not listed there, so it costs nothing there or below. What
the rows without an entry add up to is what the node of a member has, less its entries; the scan of
`_entry_scan` never needs it. Columns with fewer entries than can beat what every member has found
are passed over by one comparison.

The entries that a member has are scanned from the fill code outward.

Where sets part, a node has children for each group of sets. Entries are most of what a node of
sparse columns takes in memory, so they do not stand there once for each group: all children read
those of their parent, and the rows that they have tell which are theirs::

    parent        | 12 r4 | 12 r9 | 31 r2 | 40 r7 |     sets 0 to 3 have chosen two columns
    sets 0, 1     left:  r4 r2 r7, reads on             right: r9, gets its own
    sets 2, 3     right: r4 r9 r2, reads on             left:  r7, gets its own

So do the nodes below these, as long as they have half of the rows: a search passes over what others
have. With less, a node gets its own when it is searched, in one pass with its sibling if that wants
some, too. Above a node, entries of its thread stand in memory for 1/2 + 1/4 + ... of the rows.

The last ones take over the memory, which costs nothing, so they part it unless one has nearly all
of the rows. Groups of few sets grow first, and the largest one finds the entries to be nobody
else's. A set that goes on alone takes its entries out of those that its node reads.

Where nodes draw columns, all sets of a node draw the same ones. Entries of all columns that moved
with the rows would cost all columns, though a node looks at a few of them. So nothing moves but
rows, as in a tree that grows alone (`stores.sampled`), and the entries of a drawn column are found
when it is drawn ([SP] 3.2)::

    column 7, stored     r2   r4   r9   r11  r17     all rows of the table that hold a code
    who has the row      0b1  0    0    0b11 0b10    by row; 0: it is not in the node
    entries              12 r11 | 12 r17 | 31 r2     sorted by code, for all sets

Whether all stored rows are looked at, or those of the node are searched for, follows from their
numbers.
"""
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free

from dtrees.core.data._bits cimport ACQUIRE, ACQ_REL, add_atomic, load_atomic, prefetch
from dtrees.core.data._columns cimport (
    STORED_SPARSE, STORED_U32, Column, first_at_least, is_looked_up, without_entries
)
from dtrees.core.data._memory cimport claim, resize
from dtrees.core.data._structs cimport ALL_ORDERED, PresortedFeature, RowStatistics
from dtrees.core.histogram._layout cimport has_classes
from dtrees.core.histogram._totals cimport weigh_row
from dtrees.core.search._bins cimport bins_of_entries
from dtrees.core.search._entry_scan cimport search_feature
from dtrees.core.search._parameters cimport TrainParameters, may_use
from dtrees.core.search._search cimport Search, keep_ranks, work_of_bins
from dtrees.core.search._sort cimport merge_sort
from dtrees.core.stores.presorted._buffers cimport sorted_entries
from dtrees.core.stores.sampled._random_split cimport search_random
from dtrees.core.stores.shared._shared_nodes cimport (
    EntryReaders, SharedNode, SharedStore, class_weights, release_entries, rows_of, work_of
)

cdef enum:
    LEAST_OWN = 4096        # entries of a member that there is room for
    AHEAD = 8               # columns that are drawn
    MOST_READ = 2           # nodes read entries of at most so many times their rows, or,
    NEARLY_ALL = 16         # where nobody else does, of a part of them more

cdef struct Parted:
    # A node that gets entries of its own.
    SharedNode* node
    PresortedFeature* features
    uint64_t* entries
    int64_t n_features
    int64_t n_entries
    int64_t room            # for entries

# ---------------------------------------------------------------------------------------------
# the root

cdef bint open_entries(SharedStore* s, SharedNode* root, const uint8_t* live) noexcept nogil:
    """Sort the entries of all sparse columns, unless nodes draw some and read these afresh; False
    without memory.

    live : by row of the table.
    """
    cdef const TrainParameters* params = s.store.params
    cdef uint64_t* scratch = NULL
    cdef PresortedFeature* feature
    cdef const Column* column
    cdef int64_t n_columns = params.limits.n_columns
    cdef int64_t n_sparse = n_columns - s.n_dense
    cdef int64_t j, n
    if n_sparse == 0 or s.params_of[0].draws:
        return True
    if not (claim(<void**>&scratch, (s.n_rows + 1) * sizeof(uint64_t))
            and claim(<void**>&root.entries, (s.n_stored + 1) * sizeof(uint64_t))
            and claim(<void**>&root.features, (n_sparse + 1) * sizeof(PresortedFeature))):
        free(scratch)
        return False
    for j in range(n_columns):
        column = params.columns + j
        if column.storage != STORED_SPARSE or column.n_codes == 0 or column.stored == 0:
            continue
        if not may_use(&params.limits, root.open[0].above.sets, <int32_t>j):
            continue
        n = sorted_entries(column, live, root.entries + root.n_entries, scratch, s.n_rows)
        if n == 0:
            continue
        feature = root.features + root.n_features
        feature[0] = without_entries(column, j)
        feature.offset = root.n_entries
        feature.length = <uint32_t>n
        root.n_features += 1
        root.n_entries += n
    free(scratch)
    return True


# ---------------------------------------------------------------------------------------------
# members

cdef void note_members(SharedStore* s, const SharedNode* node) noexcept nogil:
    """By row of a node, a bit for each member that has it."""
    cdef int64_t i
    for i in range(node.n):
        s.who_of[node.rows[i]] = ~node.without[node.cell[i]]
    for i in range(node.n_some):
        s.who_of[node.some[i]] = node.who[i]


cdef void forget_members(SharedStore* s, const SharedNode* node) noexcept nogil:
    """Take back who has the rows of a node: nobody has those of another one. Where no column is
    sparse there is nothing to do."""
    cdef int64_t i
    if s.who_of == NULL:
        return
    for i in range(node.n):
        s.who_of[node.rows[i]] = 0
    for i in range(node.n_some):
        s.who_of[node.some[i]] = 0


cdef int64_t entries_of_member(const SharedStore* s, const SharedNode* node,
                               const PresortedFeature* feature, int member,
                               void* entries) noexcept nogil:
    """Write the entries of a member; returns how many. `note_members` was called.

    entries : room for those of all members.
    """
    cdef const uint64_t* e = node.entries + feature.offset
    cdef uint64_t* to = <uint64_t*>entries
    cdef const uint64_t* who_of = s.who_of
    cdef int64_t n = 0
    cdef int64_t i
    for i in range(feature.length):
        to[n] = e[i]
        n += who_of[<uint32_t>e[i]] >> member & 1
    return n


# ---------------------------------------------------------------------------------------------
# search

cdef int64_t shortest(const SharedStore* s, const SharedNode* node,
                      uint64_t members) noexcept nogil:
    """Columns of fewer entries cannot beat what these members have found."""
    cdef int64_t least = INT64_MAX
    cdef int m
    for m in range(node.n_members):
        if members >> m & 1:
            least = min(least, s.searches[node.set_of[m]].too_short)
    return least


cdef void search_entries(SharedStore* s, const SharedNode* node, int64_t first, int64_t step,
                         uint64_t members) noexcept nogil:
    """Search every `step`-th sparse column that has entries, from `first` on, for these members, if
    the node may use it."""
    cdef const uint64_t* sets = node.open[0].above.sets  # those of all members
    cdef int64_t least = shortest(s, node, members)
    cdef int64_t r = first
    while r < node.n_features and not s.store.out_of_memory:
        if (node.features[r].length >= least
                and may_use(&s.store.params.limits, sets, node.features[r].column)):
            if not reserve_own(s, &node.features[r]):
                return
            search_by_members(s, node, &node.features[r], members)
            least = shortest(s, node, members)
        r += step


cdef void search_by_members(SharedStore* s, const SharedNode* node,
                            const PresortedFeature* feature, uint64_t members) noexcept nogil:
    """Search one column, member by member, for these; `reserve_own` was called."""
    cdef const TrainParameters* params = s.store.params
    cdef PresortedFeature own = feature[0]
    cdef Search* q
    cdef int m
    own.offset = 0
    for m in range(node.n_members):
        q = s.searches[node.set_of[m]]
        if not members >> m & 1 or feature.length < q.too_short:
            continue
        own.length = <uint32_t>entries_of_member(s, node, feature, m, s.own_entries)
        s.store.work += feature.length + own.length
        if own.length == 0 or own.length < q.too_short:
            continue
        if not weigh_entries(s, node, s.own_entries, own.length, m):
            return
        if params.limits.random_splits:
            bins_of_entries(q, <const uint64_t*>s.own_entries, &own)
            if q.bins.count > 1:
                search_random(q, own.column, own.last_ordered,
                              params.values + params.first_value[own.column])
        elif (search_feature(q, <const uint64_t*>s.own_entries, &own, 0)
                and own.last_ordered != ALL_ORDERED):
            s.store.work += work_of_bins(q)
        s.store.out_of_memory |= q.out_of_memory


cdef bint weigh_entries(SharedStore* s, const SharedNode* node, uint64_t* entries, int64_t n,
                        int member) noexcept nogil:
    """Number the rows of n entries of a member, whose search gets what these weigh, where sets have
    class weights of their own; False without memory."""
    cdef const int64_t* of_class = s.of_class
    cdef RowStatistics* own = &s.own_statistics
    cdef int64_t i
    cdef uint32_t row
    if of_class == NULL:
        return True
    if not reserve_statistics(s, n):
        s.store.out_of_memory = True
        return False
    of_class = class_weights(s, node, member)
    for i in range(n):
        row = <uint32_t>entries[i]
        entries[i] = entries[i] >> 32 << 32 | <uint64_t>i
        own.label[i] = s.of_row.label[row]
        weigh_row(s.of_row, of_class, row, own, i)
    s.searches[node.set_of[member]].of_row = own[0]
    return True


cdef bint reserve_statistics(SharedStore* s, int64_t n) noexcept nogil:
    """Room for what n entries of a member weigh; False without memory."""
    cdef RowStatistics* own = &s.own_statistics
    if n < s.n_own_statistics:
        return True
    s.n_own_statistics = n + n // 8 + 1
    if not (claim(<void**>&own.label, s.n_own_statistics * sizeof(uint16_t))
            and claim(<void**>&own.weight, s.n_own_statistics * sizeof(int64_t))
            and (has_classes(s.layout.kind)
                 or claim(<void**>&own.target, s.n_own_statistics * sizeof(int64_t)))):
        s.n_own_statistics = 0
    return n < s.n_own_statistics


cdef bint reserve_own(SharedStore* s, const PresortedFeature* feature) noexcept nogil:
    """Room for the entries of one member; False without memory."""
    cdef int64_t n = max(feature.length + <int64_t>1, LEAST_OWN)
    if n > s.n_own_entries:
        s.n_own_entries = n if claim(<void**>&s.own_entries, n * sizeof(uint64_t)) else 0
        s.store.out_of_memory |= s.n_own_entries == 0
    return n <= s.n_own_entries


cdef const PresortedFeature* feature_of(const SharedNode* node, int32_t number) noexcept nogil:
    """The feature of a sparse column that has entries in a node: binary search, if they ascend."""
    cdef int64_t low = 0
    cdef int64_t high = node.n_features - 1
    cdef int64_t middle
    if node.was_drawn:
        while node.features[low].column != number:
            low += 1
        return &node.features[low]
    while low < high:
        middle = (low + high) >> 1
        if node.features[middle].column < number:
            low = middle + 1
        else:
            high = middle
    return &node.features[low]


cdef void bins_of_subsets(SharedStore* s, const SharedNode* node, int32_t number,
                          uint64_t members) noexcept nogil:
    """For these members, whose split is a subset, the codes of a sparse column as bins of their
    search."""
    cdef const PresortedFeature* feature = feature_of(node, number)
    cdef PresortedFeature own = feature[0]
    cdef Search* q
    cdef int m
    own.offset = 0
    note_members(s, node)
    for m in range(node.n_members if reserve_own(s, feature) else 0):
        if not members >> m & 1:
            continue
        q = s.searches[node.set_of[m]]
        own.length = <uint32_t>entries_of_member(s, node, feature, m, s.own_entries)
        if not weigh_entries(s, node, s.own_entries, own.length, m):
            break
        bins_of_entries(q, <const uint64_t*>s.own_entries, &own)
        keep_ranks(q)
        s.store.out_of_memory |= q.out_of_memory
    forget_members(s, node)


# ---------------------------------------------------------------------------------------------
# drawn columns

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
    """Search each row of a node; returns how many have other codes than the fill code."""
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


# ---------------------------------------------------------------------------------------------
# who reads the entries of a node

cdef bint needs_entries(const SharedNode* child) noexcept nogil:
    """Tell if a member goes on from this node."""
    cdef int m
    for m in range(child.n_members):
        if not child.open[m].is_leaf:
            return True
    return False


cdef bint share_entries(SharedNode* node, SharedNode* child) noexcept nogil:
    """Let a child read the entries of a node, if it needs any; False without memory."""
    if node.n_features == 0 or node.was_drawn or not needs_entries(child):
        return True
    if node.readers == NULL:
        if not claim(<void**>&node.readers, sizeof(EntryReaders)):
            return False
        node.readers.n_nodes = 1
        node.readers.n_rows = rows_of(node)
    add_atomic(&node.readers.n_nodes, 1, ACQ_REL)
    child.readers = node.readers
    child.features = node.features
    child.n_features = node.n_features
    child.entries = node.entries
    child.n_entries = node.n_entries
    child.is_unparted = True
    return True


cdef inline bint wants_own(const SharedNode* node, bint in_place) noexcept nogil:
    """Tell if a node is better off with entries of its own.

    It is, where those that it reads are of many other rows, or, where they are nobody else's, of
    some.

    in_place : that is so.
    """
    cdef int64_t most = node.readers.n_rows if node.is_unparted else 0
    return rows_of(node) < (most - most // NEARLY_ALL if in_place else most // MOST_READ)


cdef SharedNode* sibling_of(const SharedStore* s, const SharedNode* node) noexcept nogil:
    """The sibling of a node that was taken from the stack, if it waits there unparted, too; else
    NULL."""
    if node.is_left and s.top.is_unparted:
        return s.top
    return NULL


cdef bint has_other_readers(const SharedStore* s, const SharedNode* node) noexcept nogil:
    """Tell if others than a node that was taken from the stack and its sibling read its entries."""
    return node.readers != NULL and (load_atomic(&node.readers.n_nodes, ACQUIRE)
                                     > 1 + (sibling_of(s, node) != NULL))


cdef bint next_copies(const SharedStore* s, int64_t most_offloaded) noexcept nogil:
    """Tell if the next node of the stack will need memory for entries that others read, too.

    most_offloaded : work of a node that is left to others.
    """
    cdef const SharedNode* node = s.top
    return (node != NULL and work_of(node) > most_offloaded and wants_own(node, in_place=False)
            and load_atomic(&node.readers.n_nodes, ACQUIRE) > 1 + node.is_left)


cdef void push_children(SharedStore* s, SharedNode* left, SharedNode* right) noexcept nogil:
    """Put children on the stack, the left one right above its sibling: below those of other members
    of their parent that are fewer, where they read the same entries."""
    cdef SharedNode** at = &s.top
    cdef SharedNode* last
    while at[0] != NULL and left.readers != NULL and at[0].n_members < left.n_members:
        last = at[0].below if at[0].is_left else at[0]  # of siblings, which stay together
        if at[0].readers != left.readers and last.readers != left.readers:
            break
        at = &last.below
    right.below = at[0]
    left.below = right
    at[0] = left

# ---------------------------------------------------------------------------------------------
# nodes that get entries of their own

cdef void mark_rows(const SharedNode* child, uint8_t side, uint8_t* sides) noexcept nogil:
    """Mark the rows of a child by a bit; 0: by none."""
    cdef int64_t i
    for i in range(child.n):
        sides[child.rows[i]] = side | sides[child.rows[i]] if side > 0 else 0
    for i in range(child.n_some):
        sides[child.some[i]] = side | sides[child.some[i]] if side > 0 else 0


cdef inline bint has_room(void** entries, int64_t* room, int64_t n) noexcept nogil:
    """Make room for n entries, and one more; False without memory."""
    if n < room[0]:
        return True
    room[0] = max(n + 1, room[0] + room[0] // SPARE)
    return resize(entries, room[0] * sizeof(uint64_t))


cdef bint begin_parted(Parted* to, SharedNode* node, bint in_place) noexcept nogil:
    """Room for about the entries that a node will have, or that of those which it reads; False
    without memory."""
    to.node = node
    to.n_features = to.n_entries = 0
    to.features = node.features if in_place else NULL
    to.entries = node.entries if in_place else NULL
    to.room = node.n_entries + 1 if in_place else likely_entries(node, rows_of(node))
    return in_place or (
        claim(<void**>&to.entries, to.room * sizeof(uint64_t))
        and claim(<void**>&to.features, (node.n_features + 1) * sizeof(PresortedFeature)))


cdef inline void append_entries(Parted* to, const PresortedFeature* feature,
                                int64_t n) noexcept nogil:
    """The entries behind those of a node become a feature of it, unless there are none."""
    cdef PresortedFeature* new = to.features + to.n_features
    if n == 0:
        return
    new[0] = feature[0]
    new.offset = to.n_entries
    new.length = <uint32_t>n
    to.n_entries += n
    to.n_features += 1


cdef bint end_parted(Parted* to) noexcept nogil:
    """Make the entries those of the node, and give back the room that is not needed; False without
    memory."""
    cdef SharedNode* node = to.node
    node.is_unparted = False
    node.readers = NULL
    node.features = to.features
    node.n_features = to.n_features
    node.entries = to.entries
    node.n_entries = to.n_entries
    return (resize(<void**>&node.entries, (node.n_entries + 1) * sizeof(uint64_t))
            and resize(<void**>&node.features,
                       (node.n_features + 1) * sizeof(PresortedFeature)))


cdef void part_entries(SharedStore* s, SharedNode* node) noexcept nogil:
    """Give a node that was taken from the stack entries of its own, if it wants some, and its
    sibling with it, if that does. Columns that may not be used are left behind."""
    cdef SharedNode* sibling = sibling_of(s, node)
    cdef bint in_place = not has_other_readers(s, node)
    cdef bint is_larger
    cdef Parted left, right
    cdef bint found
    if not wants_own(node, in_place):
        return
    if sibling != NULL and not wants_own(sibling, in_place):
        sibling = NULL
        in_place = False
    is_larger = sibling == NULL or rows_of(node) >= rows_of(sibling)
    found = begin_parted(&left, node, in_place and is_larger)
    mark_rows(node, 1, s.side)
    if sibling == NULL:
        found = found and part_one(s, &left)
    else:
        found = begin_parted(&right, sibling, in_place and not is_larger) and found
        mark_rows(sibling, 2, s.side)
        found = found and part_both(s, &left, &right)
        mark_rows(sibling, 0, s.side)
    mark_rows(node, 0, s.side)
    s.store.work += node.n_entries
    if not in_place:
        release_entries(node)
        if sibling != NULL:
            release_entries(sibling)
    else:
        free(node.readers)
    found = end_parted(&left) and found
    if sibling != NULL:
        found = end_parted(&right) and found
    s.store.out_of_memory |= not found


cdef bint part_one(SharedStore* s, Parted* to) noexcept nogil:
    """Entries of one node, from those that it reads; False without memory."""
    cdef const SharedNode* node = to.node
    cdef PresortedFeature feature
    cdef int64_t r
    for r in range(node.n_features):
        feature = node.features[r]
        if not may_use(&s.store.params.limits, node.open[0].above.sets, feature.column):
            continue
        if not has_room(<void**>&to.entries, &to.room, to.n_entries + feature.length):
            return False
        append_entries(to, &feature, keep_marked(node.entries, &feature, s.side,
                                                 to.entries + to.n_entries))
    return True


cdef bint part_both(SharedStore* s, Parted* left, Parted* right) noexcept nogil:
    """Entries of two nodes that read the same ones, in one pass; False without memory."""
    cdef const SharedNode* node = left.node
    cdef const uint8_t* side = s.side
    cdef PresortedFeature feature
    cdef const uint64_t* e
    cdef uint64_t* lower
    cdef uint64_t* upper
    cdef uint64_t entry
    cdef int64_t n_left, n_right, r, i
    for r in range(node.n_features):
        feature = node.features[r]
        if not may_use(&s.store.params.limits, node.open[0].above.sets, feature.column):
            continue
        if not (has_room(<void**>&left.entries, &left.room, left.n_entries + feature.length)
                and has_room(<void**>&right.entries, &right.room,
                             right.n_entries + feature.length)):
            return False
        e = node.entries + feature.offset
        lower = left.entries + left.n_entries
        upper = right.entries + right.n_entries
        n_left = n_right = 0
        for i in range(feature.length):
            entry = e[i]
            lower[n_left] = entry
            upper[n_right] = entry
            n_left += side[<uint32_t>entry] & 1
            n_right += side[<uint32_t>entry] >> 1
        append_entries(left, &feature, n_left)
        append_entries(right, &feature, n_right)
    return True


# ---------------------------------------------------------------------------------------------
# codes by row

cdef void spread_codes(SharedStore* s, const SharedNode* node, int32_t number,
                       Column* spread) noexcept nogil:
    """The codes of a sparse column by row, for the rows of a node."""
    cdef const PresortedFeature* feature = feature_of(node, number)
    cdef const uint64_t* e = node.entries + feature.offset
    cdef int64_t i
    for i in range(node.n):
        s.code_of[node.rows[i]] = feature.fill
    for i in range(node.n_some):
        s.code_of[node.some[i]] = feature.fill
    for i in range(feature.length):
        s.code_of[<uint32_t>e[i]] = <uint32_t>(e[i] >> 32)
    spread[0] = s.store.params.columns[number]
    spread.storage = STORED_U32
    spread.codes = s.code_of
