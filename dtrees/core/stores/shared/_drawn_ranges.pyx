"""Splits of shared nodes that are drawn from the range of a column, without a histogram by code.

A set draws its threshold between the least and the greatest number that it has in the node
(`stores.sampled._random_split`). Sets that have both extremes draw the same one, so there are few
thresholds in a node, however many sets and codes it has. Rows are counted by the thresholds that
their codes exceed, in the histograms that all columns have (`_shared_blocks`)::

    codes of the rows     3    9    17   20   44   51
    ranges of the sets    |----------------------|          set 0, without 51: draws 18
                          |---------------------------|     all others: draw 23
    parts                 1    1    1    2    3    3        and 0: missing

    set 0: <= 18 is part 1;    the others: <= 23 are parts 1 and 2

Two passes over the rows and a count of at most a few parts take the place of a count by code. The
codes beside a threshold, which the test of the record lies between, are found for the one column
that is chosen.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport STORED_U16, STORED_U8, Column, code_t
from dtrees.core.data._structs cimport AT_MOST, Split
from dtrees.core.search._category_subsets cimport begin_bins
from dtrees.core.search._search cimport (
    NONE, Search, add_bin, beats, begin_column, consider, take_split
)
from dtrees.core.stores._store cimport Member
from dtrees.core.stores.sampled._random_split cimport (
    has_threshold, threshold_code, toss_missing
)
from dtrees.core.stores.shared._shared_blocks cimport bins_of_member, count_by_cell
from dtrees.core.stores.shared._shared_nodes cimport MOST_CELLS, MOST_SETS, SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef enum:
    PASSES = 2              # over the rows, for ranges and parts
    NO_CODE = 0xFFFFFFFF

cdef struct Range:
    uint32_t less           # the least number less one; NO_CODE: there is none
    uint32_t most           # the greatest one; 0: there is none
    bint has_missing

cdef struct Drawn:
    uint32_t at             # codes 1 .. at go left
    bint varies             # whether anything can be drawn
    bint has_above
    bint saw_missing
    bint missing_left

cdef struct Neighbours:
    uint32_t left           # the greatest code that goes left,
    uint32_t right          # and the least one that does not; NO_CODE: there is none

cdef struct Thresholds:
    uint32_t code[MOST_SETS]    # ascending, each once
    int n


cdef bint is_drawn_by_range(const SharedStore* s, const SharedNode* node,
                            const Column* column) noexcept nogil:
    """Whether histograms by code would cost more than the passes over the rows."""
    cdef int64_t n_blocks = node.n_cells + 2 * node.n_members
    return (s.store.params.limits.random_splits and has_threshold(column)
            and (column.n_codes >= MOST_COUNTED
                 or (column.n_codes + <int64_t>1) * n_blocks > PASSES * (node.n + node.n_some)))


cdef bint search_ranges(SharedStore* s, const SharedNode* node, int32_t number,
                        uint64_t members) noexcept nogil:
    """One drawn split of a column for these members; False where it is constant for all of them.

    The splits hold their thresholds until `find_neighbours`. O(rows x thresholds).
    """
    cdef const Column* column = s.store.params.columns + number
    cdef Column parts = column[0]
    cdef Range[MOST_SETS] range_of
    cdef Drawn[MOST_SETS] drawn
    cdef Thresholds thresholds
    cdef Search* q
    cdef bint varies = members != node.active
    cdef int64_t width, code
    cdef int m
    read_ranges(node, column, range_of)
    thresholds.n = 0
    for m in range(node.n_members):
        if members >> m & 1:
            draw(s.searches[node.set_of[m]], number,
                 s.store.params.values + s.store.params.first_value[number], &range_of[m],
                 &drawn[m])
            varies |= drawn[m].varies
            if drawn[m].varies:
                add_threshold(&thresholds, drawn[m].at)
    if thresholds.n == 0:
        return varies
    width = thresholds.n + 2
    s.store.work += PASSES * node.n + width * node.n_members
    parts.storage = STORED_U8
    parts.codes = s.parts
    parts.n_codes = width - 1
    s.counting.rank = NULL
    for code in range(width):
        s.code[code] = <uint32_t>code
    write_parts(node, column, &thresholds, s.parts)
    if not count_by_cell(s, node, &parts, width):
        return True
    for m in range(node.n_members):
        if members >> m & 1 and drawn[m].varies:
            q = s.searches[node.set_of[m]]
            bins_of_member(s, q, node, m, width)
            take_drawn(q, number, &drawn[m], number_of(&thresholds, drawn[m].at))
    return True


# ---------------------------------------------------------------------------------------------
# ranges

cdef inline void extend(Range* r, uint32_t code) noexcept nogil:
    """A code less one wraps to the top where it is missing."""
    r.less = min(r.less, code - 1)
    r.most = max(r.most, code)
    r.has_missing |= code == 0


cdef inline void unite(Range* r, const Range* other) noexcept nogil:
    r.less = min(r.less, other.less)
    r.most = max(r.most, other.most)
    r.has_missing |= other.has_missing


cdef inline void read_rows(const SharedNode* node, const code_t* codes, Range* of_cell,
                           Range* of_member) noexcept nogil:
    cdef int64_t i
    cdef uint64_t bits
    for i in range(node.n):
        extend(of_cell + node.cell[i], codes[node.rows[i]])
    for i in range(node.n_some):
        bits = node.who[i]
        while bits != 0:
            extend(of_member + trailing_zeros(bits), codes[node.some[i]])
            bits &= bits - 1


cdef void read_ranges(const SharedNode* node, const Column* column,
                      Range* of_member) noexcept nogil:
    """OUT: what the rows of each member span. O(rows + members x cells)."""
    cdef Range[MOST_CELLS] of_cell
    cdef int c, m
    for c in range(node.n_cells):
        of_cell[c].less, of_cell[c].most, of_cell[c].has_missing = NO_CODE, 0, False
    for m in range(node.n_members):
        of_member[m].less, of_member[m].most, of_member[m].has_missing = NO_CODE, 0, False
    if column.storage == STORED_U8:
        read_rows(node, <const uint8_t*>column.codes, of_cell, of_member)
    elif column.storage == STORED_U16:
        read_rows(node, <const uint16_t*>column.codes, of_cell, of_member)
    else:
        read_rows(node, <const uint32_t*>column.codes, of_cell, of_member)
    for m in range(node.n_members):
        for c in range(node.n_cells):
            if not node.without[c] >> m & 1:
                unite(&of_member[m], &of_cell[c])


# ---------------------------------------------------------------------------------------------
# thresholds

cdef void draw(const Search* q, int32_t number, const double* value, const Range* r,
               Drawn* drawn) noexcept nogil:
    """As `draw_split` does for one set."""
    cdef uint32_t low = r.less + 1
    drawn.varies = r.most > 0 and (low < r.most or r.has_missing)
    if not drawn.varies:
        return
    drawn.saw_missing = r.has_missing
    drawn.missing_left = toss_missing(q, number, r.has_missing and low < r.most)
    drawn.at = low if low == r.most else threshold_code(q, number, low, r.most, value)
    drawn.has_above = r.most > drawn.at


cdef void add_threshold(Thresholds* t, uint32_t code) noexcept nogil:
    """Put a threshold where it belongs, unless it is there."""
    cdef int i, at
    at = t.n
    while at > 0 and t.code[at - 1] > code:
        at -= 1
    if at > 0 and t.code[at - 1] == code:
        return
    for i in range(t.n, at, -1):
        t.code[i] = t.code[i - 1]
    t.code[at] = code
    t.n += 1


cdef int number_of(const Thresholds* t, uint32_t code) noexcept nogil:
    cdef int i = 0
    while t.code[i] != code:
        i += 1
    return i


cdef inline uint8_t number_of_part(const Thresholds* t, uint32_t code) noexcept nogil:
    """0: missing; else one more than the thresholds that the code exceeds."""
    cdef uint8_t part = code != 0
    cdef int i
    for i in range(t.n):
        part += code > t.code[i]
    return part


cdef inline void write_rows(const SharedNode* node, const code_t* codes, const Thresholds* t,
                            uint8_t* part) noexcept nogil:
    cdef int64_t i
    for i in range(node.n):
        part[node.rows[i]] = number_of_part(t, codes[node.rows[i]])
    for i in range(node.n_some):
        part[node.some[i]] = number_of_part(t, codes[node.some[i]])


cdef void write_parts(const SharedNode* node, const Column* column, const Thresholds* t,
                      uint8_t* part) noexcept nogil:
    """OUT, by row of the table: between which thresholds its code is."""
    if column.storage == STORED_U8:
        write_rows(node, <const uint8_t*>column.codes, t, part)
    elif column.storage == STORED_U16:
        write_rows(node, <const uint16_t*>column.codes, t, part)
    else:
        write_rows(node, <const uint32_t*>column.codes, t, part)


# ---------------------------------------------------------------------------------------------
# splits

cdef void take_drawn(Search* q, int32_t number, const Drawn* drawn, int threshold) noexcept nogil:
    """The split at a threshold, if it beats what the search has; its bins are the parts."""
    cdef int64_t first = 1 if drawn.saw_missing else 0
    cdef int64_t i
    if q.out_of_memory:
        return
    begin_column(q, number)
    q.floor = NONE
    begin_bins(q, AT_MOST, drawn.missing_left)
    for i in range(first, q.bins.count):
        if q.bins.rank[i] <= <uint32_t>(threshold + 1):
            add_bin(q, i, 1)
    consider(q, drawn.at, False)
    if beats(q, number):
        take_split(q, number, drawn.at, drawn.has_above, drawn.missing_left, drawn.saw_missing)


cdef void find_neighbours(const SharedNode* node, const Column* column, Member* members,
                          uint64_t together) noexcept nogil:
    """The codes beside the thresholds that occur in the rows of these members, for the tests that
    are recorded. O(rows x thresholds)."""
    cdef uint64_t alike
    cdef uint32_t at
    cdef int m
    while together != 0:
        at = members[trailing_zeros(together)].search.split.boundary
        alike = 0
        for m in range(node.n_members):
            if together >> m & 1 and members[m].search.split.boundary == at:
                alike |= <uint64_t>1 << m
        together &= ~alike
        if column.storage == STORED_U8:
            neighbours(node, <const uint8_t*>column.codes, members, alike, at)
        elif column.storage == STORED_U16:
            neighbours(node, <const uint16_t*>column.codes, members, alike, at)
        else:
            neighbours(node, <const uint32_t*>column.codes, members, alike, at)


cdef inline void neighbours(const SharedNode* node, const code_t* codes, Member* members,
                            uint64_t alike, uint32_t at) noexcept nogil:
    """The same of members with one threshold."""
    cdef Neighbours[MOST_CELLS] of_cell
    cdef Neighbours[MOST_SETS] of_member
    cdef Split* split
    cdef uint64_t bits
    cdef int64_t i
    cdef int c, m
    for c in range(node.n_cells):
        of_cell[c].left, of_cell[c].right = 0, NO_CODE
    for m in range(node.n_members):
        of_member[m].left, of_member[m].right = 0, NO_CODE
    for i in range(node.n):
        approach(of_cell + node.cell[i], at, codes[node.rows[i]])
    for i in range(node.n_some):
        bits = node.who[i]
        while bits != 0:
            approach(of_member + trailing_zeros(bits), at, codes[node.some[i]])
            bits &= bits - 1
    for m in range(node.n_members):
        if not alike >> m & 1:
            continue
        for c in range(node.n_cells):
            if not node.without[c] >> m & 1:
                of_member[m].left = max(of_member[m].left, of_cell[c].left)
                of_member[m].right = min(of_member[m].right, of_cell[c].right)
        split = &members[m].search.split
        split.boundary = of_member[m].left
        if split.beyond > 0:
            split.beyond = of_member[m].right


cdef inline void approach(Neighbours* n, uint32_t at, uint32_t code) noexcept nogil:
    if code <= at:
        n.left = max(n.left, code)
    else:
        n.right = min(n.right, code)
