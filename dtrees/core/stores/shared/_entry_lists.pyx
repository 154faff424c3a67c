"""Who reads the entries of a shared node: the nodes below, until they want entries of their own.

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
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

from dtrees.core.data._bits cimport ACQ_REL, ACQUIRE, add_atomic, load_atomic
from dtrees.core.data._memory cimport claim, resize
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.search._parameters cimport may_use
from dtrees.core.stores.shared._shared_nodes cimport (
    EntryReaders, SharedNode, release_entries, rows_of, work_of
)
from dtrees.core.stores.shared._shared_state cimport SharedStore


cdef struct Parted:
    # A node that gets entries of its own.
    SharedNode* node
    PresortedFeature* features
    uint64_t* entries
    int64_t n_features
    int64_t n_entries
    int64_t room            # for entries

# ---------------------------------------------------------------------------------------------
# readers

cdef bint needs_entries(const SharedNode* child) noexcept nogil:
    """Whether somebody goes on from here."""
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
    """Whether a node is better off with entries of its own: where those that it reads are of many
    other rows, or, where they are nobody else's, of some.

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
    """Whether others than a node that was taken from the stack and its sibling read its entries."""
    return node.readers != NULL and (load_atomic(&node.readers.n_nodes, ACQUIRE)
                                     > 1 + (sibling_of(s, node) != NULL))


cdef bint next_copies(const SharedStore* s, int64_t most_offloaded) noexcept nogil:
    """Whether the next node of the stack will need memory for entries that others read, too.

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
# entries of their own

cdef void mark_rows(const SharedNode* child, uint8_t side, uint8_t* sides) noexcept nogil:
    """Mark the rows of a child by a bit; 0: by none."""
    cdef int64_t i
    for i in range(child.n):
        sides[child.rows[i]] = side | sides[child.rows[i]] if side > 0 else 0
    for i in range(child.n_some):
        sides[child.some[i]] = side | sides[child.some[i]] if side > 0 else 0


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
