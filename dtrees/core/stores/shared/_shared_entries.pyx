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

Columns of few codes are counted in one pass for all sets, as rows of their cells: an entry costs
one addition instead of one for each set, and the fill code has what the others have not. Where
histograms would cost more than scans of the entries, these are scanned set by set, from the fill
code outward.
"""
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free

from dtrees.core.data._bits cimport count_bits
from dtrees.core.data._columns cimport STORED_SPARSE, STORED_U32, Column, without_entries
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport (
    ALL_ORDERED, LEAF, NO_RANK, PresortedFeature, RowStatistics
)
from dtrees.core.histogram._layout cimport add, encode, has_classes
from dtrees.core.histogram._totals cimport weigh_row
from dtrees.core.search._bins cimport bins_of_entries, drop_bin, rest_to_bin, search_bins
from dtrees.core.search._bound cimport work_of_bins
from dtrees.core.search._entry_scan cimport pass_over_short, search_feature
from dtrees.core.search._parameters cimport TrainParameters, may_use
from dtrees.core.search._search cimport Search, keep_ranks
from dtrees.core.stores.presorted._sorted_entries cimport sorted_entries
from dtrees.core.stores.shared._shared_histogram cimport bins_of_member, count_by_cell
from dtrees.core.stores.shared._shared_nodes cimport SharedNode, reserve_rows, reserve_some
from dtrees.core.stores.sampled._random_split cimport search_random
from dtrees.core.stores.shared._shared_state cimport (
    ABSENT, NO_CELL, SharedStore, class_weights
)


cdef enum:
    LEAST_OWN = 4096        # entries of a member that there is room for
    MEMBER_BLOCKS = 4       # histograms that reading and searching that of a member costs, about

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
    """By row of a node, its cell, and a bit for each member that has it."""
    cdef int64_t i
    cdef int c
    for i in range(node.n):
        s.who_of[node.rows[i]] = ~node.without[node.cell[i]]
        s.cell_of[node.rows[i]] = node.cell[i]
    for i in range(node.n_some):
        s.who_of[node.some[i]] = node.who[i]
        s.cell_of[node.some[i]] = NO_CELL
    s.block_cost = 2 * node.n_cells + MEMBER_BLOCKS * node.n_members
    for c in range(node.n_cells):
        s.block_cost += count_bits(node.without[c])


cdef void forget_members(SharedStore* s, const SharedNode* node) noexcept nogil:
    """Take back who has the rows of a node: nobody has those of another one. Where no column is
    sparse there is nothing to do."""
    cdef int64_t i
    if s.who_of == NULL:
        return
    for i in range(node.n):
        s.who_of[node.rows[i]] = 0
        s.cell_of[node.rows[i]] = ABSENT
    for i in range(node.n_some):
        s.who_of[node.some[i]] = 0
        s.cell_of[node.some[i]] = ABSENT


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
    cdef int64_t width
    while r < node.n_features and not s.store.out_of_memory:
        if (node.features[r].length >= least
                and may_use(&s.store.params.limits, sets, node.features[r].column)):
            if not reserve_own(s, &node.features[r]):
                return
            width = codes_of_feature(s, node, &node.features[r])
            if width > 0:
                search_by_codes(s, node, &node.features[r], width, members)
            else:
                search_by_members(s, node, &node.features[r], members)
            least = shortest(s, node, members)
        r += step


cdef int64_t codes_of_feature(SharedStore* s, const SharedNode* node,
                              const PresortedFeature* feature) noexcept nogil:
    """The codes that occur, and the fill code, ascending in `code`; returns how many, 0 where
    histograms of them cost more than scans of the entries."""
    cdef const uint64_t* e = node.entries + feature.offset
    cdef int64_t most = feature.length * node.n_members // (s.block_cost * s.layout.n_words)
    cdef int64_t n = 0
    cdef int64_t i
    cdef uint32_t code
    cdef uint32_t before = NO_RANK
    cdef bint filled = False
    for i in range(feature.length):
        code = <uint32_t>(e[i] >> 32)
        if code == before:
            continue
        if n + 2 > most:
            return 0
        if code > feature.fill and not filled:
            s.code[n] = feature.fill
            filled = True
            n += 1
        s.code[n] = before = code
        n += 1
    if not filled:
        s.code[n] = feature.fill
        n += 1
    return n


cdef bint list_entries(SharedStore* s, const SharedNode* node,
                       const PresortedFeature* feature) noexcept nogil:
    """Make the rows of a feature that somebody has those of `listed`, with their cells and members;
    `code_of` gets the number of the code of each. False without memory; without a branch."""
    cdef const uint64_t* e = node.entries + feature.offset
    cdef SharedNode* to = &s.listed
    cdef int64_t n = 0
    cdef int64_t n_some = 0
    cdef uint32_t k = 0
    cdef int64_t i
    cdef uint32_t row
    cdef uint8_t cell
    if feature.length > s.n_listed:
        s.n_listed = 0
        if not (reserve_rows(to, feature.length) and reserve_some(to, feature.length)):
            s.store.out_of_memory = True
            return False
        s.n_listed = feature.length
    to.n_members, to.n_cells, to.without = node.n_members, node.n_cells, node.without
    for i in range(feature.length):
        row = <uint32_t>e[i]
        while s.code[k] != e[i] >> 32:
            k += 1
        cell = s.cell_of[row]
        s.code_of[row] = k
        to.rows[n] = to.some[n_some] = row
        to.cell[n] = cell
        to.who[n_some] = s.who_of[row]
        n += cell < ABSENT
        n_some += cell == NO_CELL
    to.n, to.n_some = n, n_some
    return True


cdef bint count_entries(SharedStore* s, const SharedNode* node, const PresortedFeature* feature,
                        int64_t width) noexcept nogil:
    """Histograms of the codes in `code`, `width` of them, cell by cell; the fill code has one row,
    so that it is a bin of all members. False without memory."""
    cdef Column column = s.store.params.columns[feature.column]
    cdef int64_t fill = 0
    column.storage, column.codes = STORED_U32, s.code_of
    s.rank_of = NULL
    if not list_entries(s, node, feature) or not count_by_cell(s, &s.listed, &column, width):
        return False
    while s.code[fill] != feature.fill:
        fill += 1
    add(s.all + fill * s.layout.n_words, s.layout.kind, 1, encode(s.layout.kind, 1, 0))
    return True


cdef void rest_to_fill(Search* q, uint32_t fill) noexcept nogil:
    """The bin of the fill code gets what the others have not, and goes if that is nothing."""
    cdef int64_t g = 0
    if q.bins.count == 0:  # no memory
        return
    while q.bins.rank[g] != fill:
        g += 1
    rest_to_bin(q, g)
    if q.bins.n[g] == 0:
        drop_bin(q, g)


cdef void search_by_codes(SharedStore* s, const SharedNode* node, const PresortedFeature* feature,
                          int64_t width, uint64_t members) noexcept nogil:
    """Search one column by histograms of the codes in `code`, for these members: one pass."""
    cdef Search* q
    cdef double before
    cdef int m
    if not count_entries(s, node, feature, width):
        return
    s.store.work += feature.length + width * node.n_members
    for m in range(node.n_members):
        if not members >> m & 1:
            continue
        q = s.searches[node.set_of[m]]
        bins_of_member(s, q, node, m, width)
        rest_to_fill(q, feature.fill)
        if q.bins.count < 2:
            continue
        before = q.split.score
        if s.store.params.limits.random_splits:
            draw_from_bins(s, q, feature)
        else:
            search_bins(q, feature.column, feature.last_ordered)
        if q.split.test != LEAF and (q.split.score > before or q.too_short == 0):
            pass_over_short(q)
        s.store.out_of_memory |= q.out_of_memory


cdef void search_by_members(SharedStore* s, const SharedNode* node,
                            const PresortedFeature* feature, uint64_t members) noexcept nogil:
    """Search one column, member by member, for these; `reserve_own` was called."""
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
        if s.store.params.limits.random_splits:
            bins_of_entries(q, <const uint64_t*>s.own_entries, &own)
            draw_from_bins(s, q, &own)
        elif (search_feature(q, <const uint64_t*>s.own_entries, &own, 0)
                and own.last_ordered != ALL_ORDERED):
            s.store.work += work_of_bins(q)
        s.store.out_of_memory |= q.out_of_memory


cdef void draw_from_bins(const SharedStore* s, Search* q,
                         const PresortedFeature* feature) noexcept nogil:
    """Draw a split of a column whose codes are the bins of a search."""
    if q.bins.count > 1:
        search_random(q, feature.column, feature.last_ordered,
                      s.store.params.values + s.store.params.first_value[feature.column])


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
    cdef int m
    note_members(s, node)
    for m in range(node.n_members):
        if members >> m & 1:
            bins_of_member_entries(s, s.searches[node.set_of[m]], node, number, m)
            keep_ranks(s.searches[node.set_of[m]])
            s.store.out_of_memory |= s.searches[node.set_of[m]].out_of_memory
    forget_members(s, node)


cdef void bins_of_member_entries(SharedStore* s, Search* q, const SharedNode* node, int32_t number,
                                 int member) noexcept nogil:
    """The codes of a sparse column that occur in the rows of a member, as bins of its search."""
    cdef PresortedFeature own = feature_of(node, number)[0]
    if not reserve_own(s, &own):
        q.bins.count = 0
        return
    own.length = <uint32_t>entries_of_member(s, node, &own, member, s.own_entries)
    own.offset = 0
    if not weigh_entries(s, node, s.own_entries, own.length, member):
        q.bins.count = 0
        return
    bins_of_entries(q, <const uint64_t*>s.own_entries, &own)
    s.store.out_of_memory |= q.out_of_memory


# ---------------------------------------------------------------------------------------------
# children

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
