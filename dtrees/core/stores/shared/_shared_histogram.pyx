"""Histograms of a shared node, cell by cell, and what a member of the node has of them.

    rows of the node          12  13  17  20  ...
    what they add              a   b   c   d  ...   gathered once for all columns, if packed
    cells of a column      | H0 | H1 | ... | Hk |   a row goes to the histogram of its cell
    all                      H0 + H1 + ... + Hk
    member i               all - what it lacks + what it has of the rows that only some have

Rows that only some members have go to a histogram of each of these. Sums are integers, so nothing
is lost. Neighbouring rows mostly belong to different cells, so an addition seldom waits for the one
before. What all rows of a node add up to is found in the same way, without codes.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport STORED_U16, STORED_U8, Column, code_t
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport LEAF
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport PACKED, add_words, decode, subtract_words
from dtrees.core.histogram._totals cimport (
    add_to_totals, add_totals, clear_totals, weigh_totals
)
from dtrees.core.search._bins cimport (
    bins_of_histogram, drop_bin, rest_to_bin, search_bins, weigh_bins
)
from dtrees.core.search._entry_scan cimport pass_over_short
from dtrees.core.search._open_node cimport OpenNode, describe
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores.sampled._random_split cimport search_random
from dtrees.core.stores.shared._shared_nodes cimport MOST_SETS, SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore, class_weights, packed

# ---------------------------------------------------------------------------------------------
# codes

cdef inline void mark_hits(const SharedNode* node, const code_t* codes,
                           uint64_t* hit) noexcept nogil:
    cdef int64_t i
    cdef uint32_t code
    for i in range(node.n):
        code = codes[node.rows[i]]
        hit[code >> 6] |= <uint64_t>1 << (code & 63)
    for i in range(node.n_some):
        code = codes[node.some[i]]
        hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef int64_t rank_codes(const SharedNode* node, const Column* column, uint64_t* hit,
                        uint32_t* code, uint32_t* rank) noexcept nogil:
    """The codes that occur in a node, ascending, and by code their numbers; returns how many.

    hit : a bit per code, all zero, before and after.
    """
    cdef int64_t n = 0
    cdef int64_t word
    cdef uint64_t bits
    if column.storage == STORED_U8:
        mark_hits(node, <const uint8_t*>column.codes, hit)
    elif column.storage == STORED_U16:
        mark_hits(node, <const uint16_t*>column.codes, hit)
    else:
        mark_hits(node, <const uint32_t*>column.codes, hit)
    for word in range((column.n_codes >> 6) + 1):
        bits = hit[word]
        hit[word] = 0
        while bits != 0:
            code[n] = <uint32_t>((word << 6) + trailing_zeros(bits))
            bits &= bits - 1
            rank[code[n]] = <uint32_t>n
            n += 1
    return n


cdef int64_t number_codes(SharedStore* s, const SharedNode* node,
                          const Column* column) noexcept nogil:
    """The codes that histograms of a column have, ascending in `code`; returns how many.

    All of them, or those that occur, where cells would cost more than the rows.
    """
    cdef int64_t width = column.n_codes + <int64_t>1
    cdef int64_t code
    s.rank_of = NULL
    if width * s.layout.n_words > 2 * (node.n + node.n_some):
        s.rank_of = s.rank
        return rank_codes(node, column, s.hit, s.code, s.rank)
    for code in range(width):
        s.code[code] = <uint32_t>code
    return width


# ---------------------------------------------------------------------------------------------
# histograms

cdef bint reserve_blocks(SharedStore* s, const SharedNode* node, int64_t width) noexcept nogil:
    """Histograms of so many codes, with zeros in those of the cells; False without memory."""
    cdef int n_blocks = node.n_cells + 3 + 2 * node.n_members
    cdef int64_t size = width * s.layout.n_words
    s.size = size
    if n_blocks * size > s.n_scratch:
        s.n_scratch = 0
        if not claim(<void**>&s.histograms, n_blocks * size * sizeof(int64_t)):
            s.store.out_of_memory = True
            return False
        s.n_scratch = n_blocks * size
    memset(s.histograms, 0, (node.n_cells + 3) * size * sizeof(int64_t))
    return True


cdef void combine_cells(SharedStore* s, const SharedNode* node) noexcept nogil:
    """Add the histograms of the cells up, and those that a member lacks; `more` gets zeros."""
    cdef int64_t size = s.size
    cdef int64_t* block = s.histograms + node.n_cells * size
    cdef int c, m, n_lacking
    s.all = block
    for c in range(node.n_cells):
        add_words(block, s.histograms + c * size, size)
    block += size
    s.own = block
    block += size
    for m in range(node.n_members):
        s.lacking[m] = block  # nothing
    block += size
    for m in range(node.n_members):
        n_lacking = 0
        for c in range(node.n_cells):
            if not node.without[c] >> m & 1:
                continue
            n_lacking += 1
            if n_lacking == 1:
                s.lacking[m] = s.histograms + c * size
                continue
            if n_lacking == 2:
                memcpy(block, s.lacking[m], size * sizeof(int64_t))
                s.lacking[m] = block
                block += size
            add_words(block - size, s.histograms + c * size, size)
    s.more = NULL
    if node.n_some > 0:
        memset(block, 0, size * node.n_members * sizeof(int64_t))
        s.more = block


cdef bint count_by_cell(SharedStore* s, const SharedNode* node, const Column* column,
                        int64_t width) noexcept nogil:
    """Histograms of a column, cell by cell, of so many codes; False without memory.

    node : or some of its rows, where what they add was not gathered.
    """
    cdef NodeRows rows
    if not reserve_blocks(s, node, width):
        return False
    memset(&rows, 0, sizeof(NodeRows))
    rows.n, rows.rows, rows.cell = node.n, node.rows, node.cell
    rows.size, rows.rank = s.size, s.rank_of
    rows.of_row = s.of_row
    if s.gathered != NULL and node.rows == s.gathered:
        rows.of_row, rows.target = NULL, s.added
    count_column(column, &rows, &s.layout, s.histograms)
    combine_cells(s, node)
    if s.more == NULL:
        return True
    rows.n, rows.rows, rows.members = node.n_some, node.some, node.who
    rows.size = s.layout.n_words * node.n_members
    if rows.target != NULL:
        rows.target += node.n
    count_column(column, &rows, &s.layout, s.more)
    return True


cdef void bins_of_member(SharedStore* s, Search* q, const SharedNode* node, int member,
                         int64_t width) noexcept nogil:
    """The codes that occur in the rows of a member, as bins of its search."""
    cdef int64_t size = s.size
    cdef int64_t n_words = s.layout.n_words
    cdef int64_t i
    memcpy(s.own, s.all, size * sizeof(int64_t))
    subtract_words(s.own, s.lacking[member], size)
    for i in range(width if s.more != NULL else 0):
        add_words(s.own + i * n_words, s.more + (i * node.n_members + member) * n_words, n_words)
    bins_of_histogram(q, &s.layout, s.own, width, s.code)
    if s.of_class != NULL:
        weigh_bins(q, class_weights(s, node, member))
    s.store.out_of_memory |= q.out_of_memory


# ---------------------------------------------------------------------------------------------
# the search of what was counted

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


cdef bint search_counted(SharedStore* s, const SharedNode* node, int32_t number,
                         uint32_t last_number, int64_t width, uint64_t members,
                         const uint32_t* fill) noexcept nogil:
    """Search a column that was counted, for these members; False where each has one code of it.

    fill : of a sparse column, or NULL.
    """
    cdef const TrainParameters* params = s.store.params
    cdef bint varies = False
    cdef double before
    cdef Search* q
    cdef int m
    s.store.work += width * node.n_members
    for m in range(node.n_members):
        if not members >> m & 1:
            continue
        q = s.searches[node.set_of[m]]
        bins_of_member(s, q, node, m, width)
        if fill != NULL:
            rest_to_fill(q, fill[0])
        if q.bins.count < 2:
            continue
        varies = True
        before = q.split.score
        if params.limits.random_splits:
            search_random(q, number, last_number, params.values + params.first_value[number])
        else:
            search_bins(q, number, last_number)
        if (fill != NULL and q.split.test != LEAF
                and (q.split.score > before or q.too_short == 0)):
            pass_over_short(q)
        s.store.out_of_memory |= q.out_of_memory
    return varies


# ---------------------------------------------------------------------------------------------
# sums

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
