"""Sparse columns of few codes in a shared node: counted in one pass for all sets.

    entries      | 12 r4 | 12 r9 | 31 r2 |      each is added to the histogram of its row's cell
    cell c       | of 12 | of 31 |
    fill code    all rows of the cell less these

An entry costs one addition instead of one for each set; then histograms are added up and searched
set by set, as those of dense columns are. Where they would cost more than scans of the entries, the
entries are scanned.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport LEAF, NO_RANK, PresortedFeature, RowStatistics
from dtrees.core.histogram._layout cimport (
    PACKED, CellKind, add_row, add_words, encode, subtract_words
)
from dtrees.core.search._bins cimport search_bins
from dtrees.core.search._entry_scan cimport pass_over_short
from dtrees.core.search._search cimport Search
from dtrees.core.stores.sampled._random_split cimport search_random
from dtrees.core.stores.shared._shared_blocks cimport (
    bins_of_member, combine_cells, reserve_blocks
)
from dtrees.core.stores.shared._shared_histogram cimport numbers_of_some
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport ABSENT, CLASS_1, NO_CELL, SharedStore, packed

# ---------------------------------------------------------------------------------------------
# rows

cdef inline int64_t* some_words(const SharedStore* s, const SharedNode* node,
                                int64_t* histograms, int64_t code, int member) noexcept nogil:
    """The cell of a code, in histograms of the rows that only some have."""
    if s.is_packed:
        return histograms + code * numbers_of_some(node) + member
    return histograms + member * s.counting.size + code * s.counting.layout.n_words


cdef inline void add_entry(const SharedStore* s, uint32_t row, int64_t* to) noexcept nogil:
    if s.is_packed:
        to[0] += packed(s.of_row, row)
    else:
        add_row(to, s.counting.layout.kind, s.of_row, row)


cdef inline void add_to_members(const SharedStore* s, const SharedNode* node, uint32_t row,
                                int64_t* histograms, int64_t code) noexcept nogil:
    """Add a row that only some have."""
    cdef uint64_t bits = s.who_of[row]
    while bits != 0:
        add_entry(s, row, some_words(s, node, histograms, code, trailing_zeros(bits)))
        bits &= bits - 1


cdef void sum_node(SharedStore* s, const SharedNode* node) noexcept nogil:
    """What the rows of a node add up to, as histograms of one code."""
    cdef int64_t n_words = s.counting.layout.n_words
    cdef int64_t n = n_words * node.n_cells
    cdef int64_t room = n + n_words * node.n_members + 4
    cdef int64_t i
    if room > s.n_row_words:
        s.n_row_words = room if claim(<void**>&s.row_words, room * sizeof(int64_t)) else 0
        if s.n_row_words == 0:
            s.store.out_of_memory = True
            return
    s.has_row_words = True
    memset(s.row_words, 0, room * sizeof(int64_t))
    s.counting.size = n_words
    for i in range(node.n):
        add_entry(s, node.rows[i], s.row_words + node.cell[i] * n_words)
    for i in range(node.n_some):
        add_to_members(s, node, node.some[i], s.row_words + n, 0)


# ---------------------------------------------------------------------------------------------
# a column

cdef int64_t codes_of_feature(SharedStore* s, const SharedNode* node,
                              const PresortedFeature* feature) noexcept nogil:
    """The codes that occur, and the fill code, ascending in `code`; returns how many, 0 where
    histograms of them cost more than scans of the entries."""
    cdef const uint64_t* e = node.entries + feature.offset
    cdef int64_t most = (feature.length * node.n_members
                         // (s.block_cost * s.counting.layout.n_words))
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


cdef void search_by_codes(SharedStore* s, const SharedNode* node, const PresortedFeature* feature,
                          int64_t width, uint64_t members) noexcept nogil:
    """Search one column by histograms of the codes in `code`, for these members: one pass.
    `own_entries` has room for all entries."""
    cdef Search* q
    cdef double before
    cdef int m
    if not s.has_row_words:
        sum_node(s, node)
    if s.store.out_of_memory or not count_entries(s, node, feature, width):
        return
    s.store.work += feature.length + width * node.n_members
    for m in range(node.n_members):
        if not members >> m & 1:
            continue
        q = s.searches[node.set_of[m]]
        bins_of_member(s, q, node, m, width)
        if q.bins.count < 2:
            continue
        before = q.split.score
        if s.store.params.limits.random_splits:
            search_random(q, feature.column, feature.last_ordered,
                          s.store.params.values + s.store.params.first_value[feature.column])
        else:
            search_bins(q, feature.column, feature.last_ordered)
        if q.split.test != LEAF and (q.split.score > before or q.too_short == 0):
            pass_over_short(q)
        s.store.out_of_memory |= q.out_of_memory


cdef bint count_entries(SharedStore* s, const SharedNode* node, const PresortedFeature* feature,
                        int64_t width) noexcept nogil:
    """Histograms of a column, cell by cell; the fill code has what other codes have not. False
    without memory."""
    cdef int64_t n_words = s.counting.layout.n_words
    cdef int64_t fill = 0
    cdef int64_t n_some, i
    cdef int c, m
    if not reserve_blocks(s, node, width):
        return False
    while s.code[fill] != feature.fill:
        fill += 1
    n_some = count_cells(s, node, feature)
    for c in range(node.n_cells):
        fill_cell(s.histograms + c * s.counting.size, n_words, width, fill, n_words,
                  s.row_words + c * n_words)
    combine_cells(s, node)
    s.beside = s.is_packed
    if s.more == NULL:
        return True
    for i in range(n_some):
        add_to_members(s, node, <uint32_t>s.own_entries[i], s.more, s.own_entries[i] >> 32)
    for m in range(node.n_members):
        fill_cell(some_words(s, node, s.more, 0, m),
                  numbers_of_some(node) if s.is_packed else n_words, width, fill, n_words,
                  s.row_words + (node.n_cells + m) * n_words)
    return True


cdef int64_t count_cells(SharedStore* s, const SharedNode* node,
                         const PresortedFeature* feature) noexcept nogil:
    """Add the entries of a column to the histograms of their cells; those of rows that only some
    have are written to `own_entries` with the number of their code. Returns how many.

    Without a branch: rows that have no cell are added to scratch that is written later.
    """
    cdef const uint64_t* e = node.entries + feature.offset
    cdef const uint32_t* codes = s.code
    cdef const uint8_t* cell_of = s.cell_of
    cdef RowStatistics of_row = s.of_row[0]
    cdef CellKind kind = s.counting.layout.kind
    cdef uint64_t* some = s.own_entries
    cdef int64_t* cells = s.histograms
    cdef int64_t n_words = s.counting.layout.n_words
    cdef int64_t size = s.counting.size
    cdef bint is_packed = s.is_packed
    cdef int64_t[NO_CELL + 1] at  # where the histogram of a cell begins,
    cdef int64_t[NO_CELL + 1] added  # and what a row of it adds
    cdef int64_t k = 0
    cdef int64_t n_some = 0
    cdef int64_t i
    cdef uint32_t row
    cdef uint8_t cell
    for i in range(node.n_cells):
        at[i] = at[i + CLASS_1] = i * size
        added[i] = encode(PACKED, 1, 0)
        added[i + CLASS_1] = encode(PACKED, 1, 1)
    at[NO_CELL] = at[ABSENT] = (node.n_cells + 1) * size  # `own` of `combine_cells`
    added[NO_CELL] = added[ABSENT] = 0
    for i in range(feature.length):
        row = <uint32_t>e[i]
        while codes[k] != e[i] >> 32:
            k += 1
            cells += n_words
        cell = cell_of[row]
        some[n_some] = <uint64_t>k << 32 | row
        n_some += cell == NO_CELL
        if not is_packed:
            add_row(cells + at[cell], kind, &of_row, row)
        elif of_row.weight == NULL:
            cells[at[cell]] += added[cell]
        else:
            cells[at[cell]] += encode(PACKED, of_row.weight[row], cell >= CLASS_1)
    return n_some


cdef inline void fill_cell(int64_t* cells, int64_t step, int64_t width, int64_t fill,
                           int64_t n_words, const int64_t* all) noexcept nogil:
    """The fill code has all rows but those of the other codes.

    cells : of `width` codes, every `step` numbers.
    """
    cdef int64_t k
    add_words(cells + fill * step, all, n_words)
    for k in range(width):
        if k != fill:
            subtract_words(cells + fill * step, cells + k * step, n_words)
