"""Columns that are read afresh: for nodes that search a few columns drawn from many.

Keeping every column in order for every node (`_workspace`) pays when all of them are searched.
Where a node draws a few, as in a random forest, its rows are all that is kept, and a drawn column
is read from the codes of these rows:

    many rows     a histogram, all cells cleared and visited
    few rows      a histogram with a bit per code, so that only codes that occur are visited
    very few      against the codes, or the classes, each with a number in a cell: codes are sorted
    sparse        the stored rows of the column that are in the node, found by the place of every
                  row or by binary search, whichever is cheaper ([SP] 3.2, eq. 8)

Statistics of the rows are gathered once per node, in the order of its rows, for all columns of the
draw. Two classes fit one number per row, and a cell takes one addition.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core._groups cimport (
    collect_groups, cut_at, reserve_groups, search_groups, search_random, toss_missing
)
from dtrees.core._search cimport (
    NONE, Groups, Search, add_to_class, beats, begin_pass, by_class, consider
)
from dtrees.core._splitter cimport search_run
from dtrees.core._structs cimport ALL_ORDERED, AT_MOST, NO_RANK, Payload, Run, Split
from dtrees.core._workspace cimport (
    STORED_SPARSE, STORED_U16, STORED_U8, Column, OpenNode, Workspace, last_ordered
)

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

cdef enum:
    FIELD = 21              # bits of a field of a packed row or cell
    LARGEST_FIELD = (1 << 21) - 1
    FEW_OF_CLASS = 3        # rows per class: cells of so few rows are mostly empty
    MOST_CELLS = 16         # numbers in the histogram of a column, for each row of the growth
    SEARCH_COST = 4         # steps of a binary search against one of a scan


cdef Reader* new_reader(const Payload* payload, int64_t n_rows, int64_t n_places,
                        bint sparse) noexcept nogil:
    """Scratch for nodes of at most n_rows rows of n_places. Freed by `free_reader`.

    payload : that of the workspace: what is there tells what is gathered.
    """
    cdef Reader* reader = <Reader*>calloc(1, sizeof(Reader))
    reader.n_rows = n_rows
    if payload.label != NULL:
        reader.payload.label = <uint16_t*>malloc((n_rows + 1) * sizeof(uint16_t))
        reader.packed = <uint64_t*>malloc((n_rows + 1) * sizeof(uint64_t))
    if payload.weight != NULL:
        reader.payload.weight = <int64_t*>malloc((n_rows + 1) * sizeof(int64_t))
    if payload.target != NULL:
        reader.payload.target = <int64_t*>malloc((n_rows + 1) * sizeof(int64_t))
    reader.codes = <uint32_t*>malloc((n_rows + 1) * sizeof(uint32_t))
    if sparse:
        reader.place = <uint32_t*>calloc(n_places + 1, sizeof(uint32_t))
    return reader


cdef void free_reader(Reader* reader) noexcept nogil:
    if reader == NULL:
        return
    free(reader.payload.label)
    free(reader.payload.weight)
    free(reader.payload.target)
    free(reader.packed)
    free(reader.cells)
    free(reader.hit)
    free(reader.entries)
    free(reader.scratch)
    free(reader.codes)
    free(reader.place)
    free(reader)


cdef void read_rows(Reader* reader, const Search* q, const Workspace* w,
                    const OpenNode* node) noexcept nogil:
    """Gather what the rows of a node add to a histogram, and where they are. O(rows)."""
    cdef const uint32_t* rows = w.rows + node.start
    cdef const Payload* payload = &w.payload
    cdef int64_t n = node.totals.n
    cdef uint64_t one = <uint64_t>1 << 2 * FIELD
    cdef uint64_t weight, label
    cdef int64_t i
    reader.is_packed = (q.criterion.n_classes > 0 and not by_class(q)
                        and node.totals.weight <= LARGEST_FIELD)
    if reader.is_packed:
        if payload.weight == NULL:
            for i in range(n):
                reader.packed[i] = one + (1 << FIELD) + payload.label[rows[i]]
        else:
            for i in range(n):
                weight = payload.weight[rows[i]]
                label = payload.label[rows[i]]
                reader.packed[i] = one + (weight << FIELD) + weight * label
    reader.has_payload = False
    if not reader.is_packed:
        gather_payload(reader, w, node)
    if reader.place != NULL:
        for i in range(n):
            reader.place[rows[i]] = <uint32_t>(node.start + i)


cdef void gather_payload(Reader* reader, const Workspace* w, const OpenNode* node) noexcept nogil:
    """What the rows of the node hold, one by one, if that is not there yet."""
    cdef const uint32_t* rows = w.rows + node.start
    cdef const Payload* payload = &w.payload
    cdef int64_t i
    if reader.has_payload:
        return
    reader.has_payload = True
    if payload.label != NULL:
        for i in range(node.totals.n):
            reader.payload.label[i] = payload.label[rows[i]]
    if payload.weight != NULL:
        for i in range(node.totals.n):
            reader.payload.weight[i] = payload.weight[rows[i]]
    if payload.target != NULL:
        for i in range(node.totals.n):
            reader.payload.target[i] = payload.target[rows[i]]


cdef void reserve_entries(Reader* reader, int64_t count) noexcept nogil:
    if count <= reader.n_entries:
        return
    free(reader.entries)
    free(reader.scratch)
    reader.entries = <uint64_t*>malloc(count * sizeof(uint64_t))
    reader.scratch = <uint64_t*>malloc(count * sizeof(uint64_t))
    reader.n_entries = count


cdef void reserve_cells(Reader* reader, int64_t n_codes, int64_t stride) noexcept nogil:
    """A histogram of zeros and bits for codes 0..n_codes."""
    cdef int64_t n_cells = (n_codes + 1) * stride
    cdef int64_t n_words = (n_codes >> 6) + 1
    if n_cells > reader.n_cells:
        free(reader.cells)
        reader.cells = <int64_t*>calloc(n_cells, sizeof(int64_t))
        reader.n_cells = n_cells
    if n_words > reader.n_words:
        free(reader.hit)
        reader.hit = <uint64_t*>calloc(n_words, sizeof(uint64_t))
        reader.n_words = n_words


# ---------------------------------------------------------------------------------------------
# dense columns by histogram

cdef inline int64_t stride_of_reader(const Reader* reader, const Search* q) noexcept nogil:
    """Numbers in a cell: one when packed, else rows, weight and the target or the classes."""
    if reader.is_packed:
        return 1
    return 1 + q.criterion.n_classes if by_class(q) else 3


cdef inline void count_codes(const Reader* reader, const Search* q, const code_t* codes,
                             const uint32_t* rows, int64_t n, bint sparsely) noexcept nogil:
    """Add the rows to the cells; `sparsely`: and note which codes occur."""
    cdef const uint16_t* label = reader.payload.label
    cdef const int64_t* weight = reader.payload.weight
    cdef const int64_t* target = reader.payload.target
    cdef const uint64_t* packed = reader.packed
    cdef int64_t* cells = reader.cells
    cdef uint64_t* hit = reader.hit
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t* cell
    cdef uint32_t code
    cdef int64_t i
    if reader.is_packed:
        for i in range(n):
            code = codes[rows[i]]
            cells[code] += packed[i]
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)
    elif by_class(q):
        for i in range(n):
            code = codes[rows[i]]
            cell = cells + code * (1 + K)
            cell[0] += 1
            cell[1 + label[i]] += 1 if weight == NULL else weight[i]
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)
    else:
        for i in range(n):
            code = codes[rows[i]]
            cell = cells + 3 * <int64_t>code
            cell[0] += 1
            cell[1] += 1 if weight == NULL else weight[i]
            cell[2] += label[i] if target == NULL else target[i]
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef inline int64_t take_cell(Reader* reader, Search* q, int64_t code, int64_t g) noexcept nogil:
    """Move the sums of a code to group g and clear them; returns 1 if the code occurs."""
    cdef Groups* groups = &q.groups
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t* cell
    cdef uint64_t packed
    cdef int64_t k, w, n
    groups.rank[g] = <uint32_t>code
    groups.row[g] = -1
    if reader.is_packed:
        packed = <uint64_t>reader.cells[code]
        reader.cells[code] = 0
        groups.n[g] = packed >> 2 * FIELD
        groups.weight[g] = (packed >> FIELD) & LARGEST_FIELD
        groups.target[g] = packed & LARGEST_FIELD
        return packed > 0
    if by_class(q):
        cell = reader.cells + code * (1 + K)
        n = cell[0]
        w = 0
        for k in range(K):
            groups.target[g * K + k] = cell[1 + k]
            w += cell[1 + k]
            cell[1 + k] = 0
        cell[0] = 0
        groups.n[g] = n
        groups.weight[g] = w
        return n > 0
    cell = reader.cells + 3 * code
    n = cell[0]
    groups.n[g] = n
    groups.weight[g] = cell[1]
    groups.target[g] = cell[2]
    cell[0] = cell[1] = cell[2] = 0
    return n > 0


cdef void groups_of_codes(Reader* reader, Search* q, const code_t* codes, const uint32_t* rows,
                          int64_t n, int64_t n_codes) noexcept nogil:
    """The codes of n rows as groups. O(n + codes that occur), or all codes when they are fewer."""
    cdef int64_t g = 0
    cdef int64_t code, word
    cdef uint64_t bits
    cdef bint sparsely = n < n_codes
    reserve_cells(reader, n_codes, stride_of_reader(reader, q))
    if sparsely:
        reserve_groups(q, n + 1)
        count_codes(reader, q, codes, rows, n, True)
        for word in range((n_codes >> 6) + 1):
            bits = reader.hit[word]
            reader.hit[word] = 0
            while bits != 0:
                code = (word << 6) + trailing_zeros(bits)
                bits &= bits - 1
                take_cell(reader, q, code, g)
                g += 1
    else:
        reserve_groups(q, n_codes + 2)
        count_codes(reader, q, codes, rows, n, False)
        for code in range(n_codes + 1):
            g += take_cell(reader, q, code, g)
    q.groups.count = g


cdef void read_groups(Reader* reader, Search* q, const Column* column, const uint32_t* rows,
                      int64_t n) noexcept nogil:
    if column.storage == STORED_U8:
        groups_of_codes(reader, q, <const uint8_t*>column.codes, rows, n, column.n_codes)
    elif column.storage == STORED_U16:
        groups_of_codes(reader, q, <const uint16_t*>column.codes, rows, n, column.n_codes)
    else:
        groups_of_codes(reader, q, <const uint32_t*>column.codes, rows, n, column.n_codes)


# ---------------------------------------------------------------------------------------------
# sorted entries: few rows of several classes, and sparse columns

cdef void sort_entries(uint64_t* entries, uint64_t* scratch, int64_t m) noexcept nogil:
    """Ascending; stretches of 16 by insertion, then merged bottom up."""
    cdef int64_t start, end, middle, width, i, j
    cdef uint64_t entry
    cdef uint64_t* source = entries
    cdef uint64_t* sink = scratch
    for start in range(0, m, 16):
        end = start + 16 if start + 16 < m else m
        for i in range(start + 1, end):
            entry = entries[i]
            j = i
            while j > start and entries[j - 1] > entry:
                entries[j] = entries[j - 1]
                j -= 1
            entries[j] = entry
    width = 16
    while width < m:
        start = 0
        while start < m:
            middle = start + width if start + width < m else m
            end = start + 2 * width if start + 2 * width < m else m
            i = start
            j = middle
            while start < end:
                if i < middle and (j >= end or source[i] <= source[j]):
                    sink[start] = source[i]
                    i += 1
                else:
                    sink[start] = source[j]
                    j += 1
                start += 1
        source, sink = sink, source
        width *= 2
    if source != entries:
        for i in range(m):
            entries[i] = source[i]


cdef void read_dense_entries(Reader* reader, const Column* column, const uint32_t* rows,
                             int64_t n) noexcept nogil:
    cdef int64_t i
    if column.storage == STORED_U8:
        for i in range(n):
            reader.entries[i] = <uint64_t>(<const uint8_t*>column.codes)[rows[i]] << 32 | i
    elif column.storage == STORED_U16:
        for i in range(n):
            reader.entries[i] = <uint64_t>(<const uint16_t*>column.codes)[rows[i]] << 32 | i
    else:
        for i in range(n):
            reader.entries[i] = <uint64_t>(<const uint32_t*>column.codes)[rows[i]] << 32 | i
    sort_entries(reader.entries, reader.scratch, n)
    reader.run.length = <uint32_t>n
    reader.run.fill = NO_RANK


cdef int64_t find_row(const Column* column, uint32_t row, int64_t low) noexcept nogil:
    """Index of the first stored row at or above `row`, from `low` on."""
    cdef int64_t high = column.stored
    cdef int64_t middle
    while low < high:
        middle = (low + high) >> 1
        if <uint32_t>column.rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


cdef int64_t bits_of(int64_t x) noexcept nogil:
    cdef int64_t bits = 0
    while x > 0:
        bits += 1
        x >>= 1
    return bits


cdef void read_sparse_entries(Reader* reader, const Workspace* w, const OpenNode* node,
                              const Column* column) noexcept nogil:
    """Stored rows of the column that are in the node, whose rows ascend; codes equal to the fill
    code are left out."""
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef const uint32_t* rows = w.rows + node.start
    cdef int64_t n = node.totals.n
    cdef int64_t m = 0
    cdef int64_t i, at
    cdef uint32_t row, place
    if n * SEARCH_COST * bits_of(column.stored) < column.stored:
        at = 0
        for i in range(n):
            at = find_row(column, rows[i], at)
            if at == column.stored:
                break
            if <uint32_t>column.rows[at] == rows[i] and codes[at] != column.fill:
                reader.entries[m] = <uint64_t>codes[at] << 32 | i
                m += 1
    else:
        for at in range(column.stored):
            row = column.rows[at]
            # the place of a row of another node is another node's, or was never written
            place = reader.place[row]
            if (node.start <= place and place < node.start + n and w.rows[place] == row
                    and codes[at] != column.fill):
                reader.entries[m] = <uint64_t>codes[at] << 32 | (place - node.start)
                m += 1
    sort_entries(reader.entries, reader.scratch, m)
    reader.run.length = <uint32_t>m
    reader.run.fill = column.fill


cdef bint by_entries(const Reader* reader, const Search* q, const Column* column,
                     int64_t n) noexcept nogil:
    """Whether a column is sorted rather than counted.

    Its histogram would be mostly empty: fewer rows than words of a bit per code, a few rows per
    class, or more cells than a growth of so many rows should hold.
    """
    cdef int64_t n_cells = (column.n_codes + <int64_t>1) * stride_of_reader(reader, q)
    if column.storage == STORED_SPARSE or n < column.n_codes >> 6:
        return True
    if by_class(q) and n <= FEW_OF_CLASS * q.criterion.n_classes:
        return True
    return n_cells > MOST_CELLS * (reader.n_rows + 4096)


cdef void read_entries(Reader* reader, const Workspace* w, const OpenNode* node,
                       const Column* column, int32_t number) noexcept nogil:
    """The run of one column."""
    cdef Run* run = &reader.run
    gather_payload(reader, w, node)
    reserve_entries(reader, node.totals.n)
    memset(run, 0, sizeof(Run))
    run.column = number
    run.fill_code = column.fill
    run.last_ordered = last_ordered(column)
    if column.storage == STORED_SPARSE:
        read_sparse_entries(reader, w, node, column)
    else:
        read_dense_entries(reader, column, w.rows + node.start, node.totals.n)


cdef bint search_drawn(Reader* reader, Search* q, const Workspace* w, const OpenNode* node,
                       const Column* column, int32_t number) noexcept nogil:
    """Read and search one column; False when it is constant in the node."""
    cdef Payload payload
    cdef bint varies
    if by_entries(reader, q, column, node.totals.n):
        read_entries(reader, w, node, column, number)
        if reader.run.length == 0:
            return False
        payload = q.payload
        q.payload = reader.payload
        varies = search_run(q, <const uint64_t*>reader.entries, &reader.run)
        q.payload = payload
        return varies
    read_groups(reader, q, column, w.rows + node.start, node.totals.n)
    if q.groups.count <= 1:
        return False
    search_groups(q, number, last_ordered(column))
    return True


# ---------------------------------------------------------------------------------------------
# random cuts

cdef struct Cut:
    uint32_t at             # codes 1 .. at go left
    bint saw_missing
    bint missing_left


cdef inline bint draw_cut(Reader* reader, Search* q, const code_t* codes, const uint32_t* rows,
                          int64_t n, int32_t number, const double* value,
                          Cut* cut) noexcept nogil:
    """Draw the cut and sum up its left side; False when the column is constant.

    Loops are apart and without branches, so that codes of 8 bits are compared many at a time. A
    code less one wraps to the top when it is missing.
    """
    cdef code_t* own = <code_t*>reader.codes
    cdef code_t top = <code_t>0 - <code_t>1
    cdef code_t least = top
    cdef code_t most = 0
    cdef code_t lowest = top
    cdef code_t at, less
    cdef uint32_t low, high
    cdef uint64_t sums = 0
    cdef int64_t i
    for i in range(n):
        own[i] = codes[rows[i]]
    for i in range(n):
        less = <code_t>(own[i] - 1)
        least = less if less < least else least
    for i in range(n):
        most = own[i] if own[i] > most else most
    for i in range(n):
        lowest = own[i] if own[i] < lowest else lowest
    low = <uint32_t>least + 1
    high = most
    cut.saw_missing = lowest == 0
    if high == 0 or (low == high and not cut.saw_missing):
        return False
    cut.missing_left = toss_missing(q, number, cut.saw_missing and low < high)
    at = <code_t>(low if low == high else cut_at(q, number, low, high, value))
    cut.at = at
    begin_pass(q, AT_MOST, cut.missing_left)
    q.best = NONE
    q.floor = NONE
    if reader.is_packed:
        for i in range(n):
            less = <code_t>(own[i] - 1)
            sums += reader.packed[i] & (0 - <uint64_t>(
                (less < at) | (cut.missing_left & (own[i] == 0))))
        q.n = sums >> 2 * FIELD
        q.w = (sums >> FIELD) & LARGEST_FIELD
        q.s = sums & LARGEST_FIELD
    else:
        for i in range(n):
            less = <code_t>(own[i] - 1)
            if less < at or (cut.missing_left and own[i] == 0):
                add_place(reader, q, i)
    return True


cdef inline void neighbours(const code_t* own, int64_t n, code_t at, Split* split) noexcept nogil:
    """The codes beside a cut that occur in the node, for the test that is recorded."""
    cdef code_t top = <code_t>0 - <code_t>1
    cdef code_t left = 0
    cdef code_t right = top
    cdef code_t chosen
    cdef int64_t above = 0
    cdef int64_t i
    for i in range(n):
        chosen = own[i] if own[i] <= at else 0
        left = chosen if chosen > left else left
    for i in range(n):
        chosen = own[i] if own[i] > at else top
        right = chosen if chosen < right else right
        above += own[i] > at
    split.boundary = left
    split.beyond = right if above > 0 else 0


cdef inline void add_place(const Reader* reader, Search* q, int64_t i) noexcept nogil:
    """Move row i of the node to the side, for statistics that are not packed."""
    cdef int64_t x = 1 if reader.payload.weight == NULL else reader.payload.weight[i]
    q.n += 1
    if by_class(q):
        add_to_class(q, reader.payload.label[i], x)
    else:
        q.w += x
        q.s += (x * reader.payload.label[i] if reader.payload.target == NULL
                else reader.payload.target[i])


cdef bint search_cut(Reader* reader, Search* q, const Workspace* w, const OpenNode* node,
                     const Column* column, int32_t number, const double* value) noexcept nogil:
    """One cut of a column, drawn at random (`search_random`); False when it is constant.

    A dense column of numbers needs no histogram: its range, then the sums on one side. O(rows).
    """
    cdef const uint32_t* rows = w.rows + node.start
    cdef int64_t n = node.totals.n
    cdef Cut cut
    cdef bint varies
    cdef Split* split = &q.split
    if column.storage == STORED_SPARSE or last_ordered(column) != ALL_ORDERED:
        groups_of_drawn(reader, q, w, node, column, number)
        if q.groups.count <= 1:
            return False
        search_random(q, number, last_ordered(column), value)
        return True
    if column.storage == STORED_U8:
        varies = draw_cut(reader, q, <const uint8_t*>column.codes, rows, n, number, value, &cut)
    elif column.storage == STORED_U16:
        varies = draw_cut(reader, q, <const uint16_t*>column.codes, rows, n, number, value, &cut)
    else:
        varies = draw_cut(reader, q, <const uint32_t*>column.codes, rows, n, number, value, &cut)
    if not varies:
        return False
    consider(q, cut.at, False)
    if not beats(q, number):
        return True
    if column.storage == STORED_U8:
        neighbours(<const uint8_t*>reader.codes, n, <uint8_t>cut.at, split)
    elif column.storage == STORED_U16:
        neighbours(<const uint16_t*>reader.codes, n, <uint16_t>cut.at, split)
    else:
        neighbours(<const uint32_t*>reader.codes, n, cut.at, split)
    split.score = q.best
    split.column = number
    split.test = AT_MOST
    split.missing_left = cut.missing_left
    split.saw_missing = cut.saw_missing
    split.boundary_row = -1
    split.beyond_row = -1
    return True


cdef void groups_of_drawn(Reader* reader, Search* q, const Workspace* w, const OpenNode* node,
                          const Column* column, int32_t number) noexcept nogil:
    """The codes of a column in the node, as groups of the search."""
    cdef Payload payload
    if by_entries(reader, q, column, node.totals.n):
        read_entries(reader, w, node, column, number)
        if reader.run.length == 0:
            q.groups.count = 0
            return
        payload = q.payload
        q.payload = reader.payload
        collect_groups(q, <const uint64_t*>reader.entries, &reader.run)
        q.payload = payload
    else:
        read_groups(reader, q, column, w.rows + node.start, node.totals.n)
