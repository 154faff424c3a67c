"""One set of a shared node, as the root of a subtree that grows by itself.

    rows of the node       12  13  17  20  21  ...
    of set 2               12      17  20      ...     relocated to the set's own buffers
    columns                those that vary in the node; dense ones are counted
    entries of sparse ones those whose rows the set has

Where sets have their own class weights, the rows get what they weigh in the set as they are
relocated; where columns are drawn, they stay where they are, and get it by row of the table.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from dtrees.core.data._columns cimport without_entries
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.histogram._layout cimport has_classes
from dtrees.core.histogram._totals cimport weigh_row
from dtrees.core.search._open_node cimport OpenNode, free_node
from dtrees.core.search._parameters cimport TrainParameters, may_use
from dtrees.core.stores.presorted._buffers cimport (
    Buffers, Relocation, entries_of_features, free_buffers, relocate_features, relocate_rows,
    reserve_entries
)
from dtrees.core.stores.shared._shared_entries cimport keep_marked, likely_entries, reserve_own
from dtrees.core.stores.shared._shared_nodes cimport MOST_CELLS
from dtrees.core.stores.shared._shared_state cimport class_weights
from dtrees.core.grow._depth_first cimport begin_growth


cdef struct Moving:
    # A set that moves to buffers of its own, feature by feature.
    Relocation move
    int64_t room            # for entries there
    int64_t at              # where the next ones go
    int64_t n_moved         # features


cdef bint begin_member(Growth* growth, Buffers* view, SharedStore* s, const SharedNode* node,
                       int member) noexcept nogil:
    """Begin the subtree of one set of a node, which inherits what it may do; False without memory.

    view : gets the rows of the set.
    """
    cdef const TrainParameters* params = &s.params_of[node.set_of[member]]
    cdef Buffers* own = NULL
    cdef bint found
    cdef OpenNode root = node.open[member]  # from here on with the node's sets of columns
    cdef size_t n_bytes = params.criterion.n_classes * sizeof(int64_t)
    node.open[member].above.sets = NULL
    if not reserve_root(params, view, &root, s.n_dense + node.n_features):
        return False
    if root.class_totals != NULL:
        memcpy(root.class_totals, node.open[member].class_totals, n_bytes)
    list_rows(view, s, node, member)
    root.start = 0
    root.n_features = 0
    if params.draws:
        found = begin_growth(growth, params, view, &root)
    else:
        own = relocated(s, node, params, view, &root)
        found = own != NULL and begin_growth(growth, params, own, &root)
        growth.frames[0].has_own = found
    if not found:
        free_buffers(own)
        free_node(&root)
    return found


cdef bint reserve_root(const TrainParameters* params, Buffers* view, OpenNode* root,
                       int64_t n_features) noexcept nogil:
    """Memory of its own for a root that was copied, and for its rows; False without any."""
    cdef bint sums_classes = root.class_totals != NULL
    cdef size_t n_bytes = (n_features + 1) * sizeof(PresortedFeature)
    cdef bint found = claim(<void**>&view.rows, (root.totals.n + 1) * sizeof(uint32_t))
    root.class_totals = NULL
    root.features = NULL
    if sums_classes:
        found &= claim(<void**>&root.class_totals, params.criterion.n_classes * sizeof(int64_t))
    if not params.draws:
        found &= claim(<void**>&root.features, n_bytes)
    if not found:
        free_node(root)
    return found


cdef void list_rows(Buffers* view, const SharedStore* s, const SharedNode* node,
                    int member) noexcept nogil:
    """List the rows of a member; where its classes have weights of their own, they get these."""
    cdef uint8_t has[MOST_CELLS]
    cdef int64_t n = 0
    cdef int64_t i
    cdef int c
    for c in range(node.n_cells):
        has[c] = not node.without[c] >> member & 1
    for i in range(node.n):
        view.rows[n] = node.rows[i]
        n += has[node.cell[i]]
    for i in range(node.n_some):
        view.rows[n] = node.some[i]
        n += node.who[i] >> member & 1
    if view.owns_statistics:
        for i in range(node.open[member].totals.n):
            weigh_row(s.of_row, class_weights(s, node, member), view.rows[i], &view.of_row,
                      view.rows[i])
    elif s.of_class != NULL:
        view.classes.of_class = class_weights(s, node, member)


cdef bint reserve_weights(Buffers* view, const SharedStore* s) noexcept nogil:
    """Where classes have weights of their own in each set, room for those of its rows, if columns
    are drawn; False without memory."""
    cdef size_t n_bytes = (view.n_rows + 1) * sizeof(int64_t)
    view.classes.has_target = not has_classes(s.layout.kind)
    view.owns_statistics = s.of_class != NULL and s.params_of[0].draws
    if not view.owns_statistics:
        return True
    view.of_row = s.of_row[0]
    view.of_row.weight = NULL
    view.of_row.target = NULL
    return (claim(<void**>&view.of_row.weight, n_bytes)
            and (not view.classes.has_target or claim(<void**>&view.of_row.target, n_bytes)))


cdef void free_view(Buffers* view) noexcept nogil:
    """Free what views of sets have got."""
    free(view.number)
    free(view.rows)
    if view.owns_statistics:
        free(view.of_row.weight)
        free(view.of_row.target)


cdef Buffers* relocated(SharedStore* s, const SharedNode* node, const TrainParameters* params,
                        Buffers* view, OpenNode* root) noexcept nogil:
    """The rows of a set in buffers of their own, with the columns that vary, ascending: dense ones,
    and sparse ones with the entries of the set, a few columns at a time. NULL without memory."""
    cdef Buffers* own = relocate_rows(view, root, 0)
    cdef Moving to
    cdef int64_t i = 0
    cdef int64_t r = 0
    cdef int64_t n_listed = 0  # entries that have not moved yet
    cdef int64_t n
    cdef int32_t j
    cdef bint found
    if own == NULL:
        return NULL
    to.move = Relocation(view, own, params.columns, &params.count_rule,
                         <uint32_t*>own.scratch, &own.counted)
    to.room = to.at = to.n_moved = 0
    found = reserve_entries(own, &to.room, likely_entries(node, root.totals.n))
    mark_listed(s, view, root, 1)
    while found and (i < s.n_dense or r < node.n_features):
        if r == node.n_features or i < s.n_dense and s.dense[i] < node.features[r].column:
            j = s.dense[i]
            if params.columns[j].n_codes > 0 and not node.constant[i]:
                root.features[root.n_features] = without_entries(&params.columns[j], j)
                root.n_features += 1
            i += 1
            continue
        if not may_use(&params.limits, root.above.sets, node.features[r].column):
            r += 1
            continue
        if n_listed + node.features[r].length >= s.n_own_entries:
            found = move_listed(&to, s.own_entries, root) and reserve_own(s, &node.features[r])
            n_listed = 0
            if not found:
                break
        n = keep_marked(node.entries, &node.features[r], s.side, s.own_entries + n_listed)
        if n > 0:
            root.features[root.n_features] = node.features[r]
            root.features[root.n_features].offset = n_listed
            root.features[root.n_features].length = <uint32_t>n
            root.n_features += 1
            n_listed += n
        r += 1
    found = found and move_listed(&to, s.own_entries, root)
    mark_listed(s, view, root, 0)
    if not found:
        free_buffers(own)
        return NULL
    return own


cdef bint move_listed(Moving* to, const uint64_t* entries, OpenNode* root) noexcept nogil:
    """Move the features of a root that were listed since the last time; False without memory."""
    cdef PresortedFeature* listed = root.features + to.n_moved
    cdef int64_t n = root.n_features - to.n_moved
    cdef int64_t r
    if n == 0:
        return True
    if not reserve_entries(to.move.new, &to.room,
                           to.at + entries_of_features(listed, n, root.totals.n)):
        return False
    n = relocate_features(&to.move, entries, listed, n, to.at)
    root.n_features = to.n_moved
    if n < 0:
        return False
    for r in range(n):
        to.at += listed[r].length
    root.n_features += n
    to.n_moved += n
    return True


cdef inline void mark_listed(SharedStore* s, const Buffers* view, const OpenNode* root,
                             uint8_t mark) noexcept nogil:
    """Mark the rows of a root, where columns are sparse; 0: take that back."""
    cdef int64_t i
    for i in range(root.totals.n if s.side != NULL else 0):
        s.side[view.rows[i]] = mark
