"""Memory of growth: entries, rows and targets of open nodes, and moving a node to its own.

A large table starts in a workspace of 64-bit entries for its wide and sparse columns; its narrow
columns stay in the coded matrix and are read by histogram. As soon as a node is small enough it is
*relocated*: its rows are numbered 0, 1, 2, ... and every column, however stored, becomes a run of
32-bit entries (rank | row) that lies in a few hundred kilobytes with the targets of its rows, so
the rest of the subtree works in the processor's caches. Ranks replace codes: only their order
matters. A value that more than half of the rows share is left out, as in a sparse column. Columns
of few codes go on being read by histogram, until nodes are so small that a later relocation sorts
them too.

    column          large node                    relocated node
    uint8, uint16   codes, by histogram           the same, or entries, sorted once (radix)
    uint32          uint64 entries, presorted     entries
    sparse          uint64 entries, stored only   entries, stored only

Memory: 8 bytes per entry of wide and sparse columns and 4 per row at the top; per thread 4 bytes
per entry of the largest relocated node.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memmove, memset

from dtrees.core._columns cimport STORED_SPARSE, STORED_U32, STORED_U8, Column, code_at
from dtrees.core._structs cimport ALL_ORDERED, NO_RANK, Run, entry_t

cdef enum:
    GENERATIONS = 4         # a workspace is so many times larger than its smallest counted node


cdef Workspace* new_workspace(int64_t n_rows, int64_t n_entries, bint narrow) noexcept nogil:
    """Memory for n_rows rows; payload arrays are the caller's."""
    cdef Workspace* w = <Workspace*>calloc(1, sizeof(Workspace))
    cdef int64_t width = 4 if narrow else 8
    w.n_rows = n_rows
    w.narrow = narrow
    w.owns_rows = True
    w.entries = malloc((n_entries + 1) * width)
    w.scratch = malloc((n_rows + 1) * width)
    w.rows = <uint32_t*>malloc((n_rows + 1) * sizeof(uint32_t))
    w.row_scratch = <uint32_t*>malloc((n_rows + 1) * sizeof(uint32_t))
    w.side = <uint8_t*>malloc(n_rows + 1)
    return w


cdef void free_workspace(Workspace* w) noexcept nogil:
    if w == NULL:
        return
    free(w.entries)
    free(w.scratch)
    if w.owns_rows:
        free(w.rows)
    free(w.row_scratch)
    free(w.number)
    free(w.side)
    free(w.row_id)
    if w.owns_payload:
        free(w.payload.label)
        free(w.payload.weight)
        if w.payload.target != w.payload.value:
            free(w.payload.target)
        free(w.payload.value)
    free(w)


cdef int64_t* gather(const int64_t* values, const uint32_t* rows, int64_t n) noexcept nogil:
    cdef int64_t* out
    cdef int64_t i
    if values == NULL:
        return NULL
    out = <int64_t*>malloc((n + 1) * sizeof(int64_t))
    for i in range(n):
        out[i] = values[rows[i]]
    return out


cdef void count_narrow(const uint8_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                       uint32_t* own, uint32_t* count) noexcept nogil:
    """How many of n rows hold each of the codes 0 .. n_codes of a uint8 column.

    own : their codes, filled. Neighbouring rows often hold one code, so they are counted in four
    places: no addition waits for the one before.
    """
    cdef uint32_t place[4][256]
    cdef int64_t i, k
    for k in range(4):
        memset(place[k], 0, (n_codes + 1) * sizeof(uint32_t))
    for i in range(n):
        own[i] = codes[row_id[i]]
    for i in range(n):
        place[i & 3][own[i]] += 1
    for i in range(n_codes + 1):
        count[i] = place[0][i] + place[1][i] + place[2][i] + place[3][i]


cdef int64_t entries_of_narrow(uint32_t* own, uint32_t* count, int64_t n, int64_t n_codes,
                               uint32_t* entries, uint32_t* majority) noexcept nogil:
    """Entries of a uint8 column for n <= 65,535 rows, numbered from 0, from their codes and counts
    (`count_narrow`), which are used up; O(n + n_codes). Ranks are the codes.

    majority : a code, other than 0, that more than half of the rows hold, which has no entries;
    NO_RANK without one.
    Returns how many entries there are.
    """
    cdef int64_t m = 0
    cdef int64_t i
    cdef uint32_t code, t
    cdef uint32_t total = 0
    cdef uint32_t common = NO_RANK
    for i in range(n_codes + 1):
        t = count[i]
        if i > 0 and 2 * <int64_t>t > n:
            common = <uint32_t>i
            t = 0
        count[i] = total
        total += t
    majority[0] = common
    if common == NO_RANK:
        for i in range(n):
            code = own[i]
            entries[count[code]] = code << 16 | <uint32_t>i
            count[code] += 1
        return n
    for i in range(n):  # without a branch, in place
        code = own[i]
        own[m] = code << 16 | <uint32_t>i
        m += code != common
    for i in range(m):
        code = own[i] >> 16
        entries[count[code]] = own[i]
        count[code] += 1
    return m


cdef int64_t entries_of_wide(const Column* column, const uint32_t* row_id, int64_t n,
                             uint32_t* entries, uint32_t* scratch) noexcept nogil:
    """The same for a uint16 column, by radix sort of all codes; O(n).

    row_id : rows of the coded matrix; entry i stands for row_id[i].
    """
    cdef const uint16_t* codes = <const uint16_t*>column.codes
    cdef uint32_t low[256]
    cdef uint32_t high[256]
    cdef int64_t i
    cdef uint32_t a = 0
    cdef uint32_t b = 0
    cdef uint32_t t, entry
    memset(low, 0, sizeof(low))
    memset(high, 0, sizeof(high))
    for i in range(n):
        t = codes[row_id[i]]
        low[t & 255] += 1
        high[t >> 8] += 1
    for i in range(256):
        t = low[i]
        low[i] = a
        a += t
        t = high[i]
        high[i] = b
        b += t
    for i in range(n):
        t = codes[row_id[i]]
        scratch[low[t & 255]] = t << 16 | <uint32_t>i
        low[t & 255] += 1
    for i in range(n):
        entry = scratch[i]
        entries[high[entry >> 24]] = entry
        high[entry >> 24] += 1
    return n


cdef int64_t sorted_entries(const Column* column, const uint8_t* live, uint64_t* entries,
                            uint64_t* scratch, int64_t n_rows) noexcept nogil:
    """Entries of a column, rows with live[row] == 0 left out; returns how many.

    Stored codes that equal the fill code are left out too.
    """
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef int64_t m = 0
    cdef int64_t i, shift, t
    cdef uint32_t row
    cdef int64_t count[2048]
    cdef int64_t total
    cdef uint64_t* source = entries
    cdef uint64_t* sink = scratch
    cdef uint64_t entry
    if column.storage == STORED_U32 and column.order != NULL:
        for i in range(n_rows):
            row = column.order[i]
            entries[m] = <uint64_t>codes[row] << 32 | row
            m += live[row]
        return m
    if column.storage != STORED_SPARSE:
        for i in range(n_rows):
            entries[m] = <uint64_t>code_at(column, i) << 32 | <uint64_t>i
            m += live[i]
    else:
        for i in range(column.stored):
            row = column.rows[i]
            entries[m] = <uint64_t>codes[i] << 32 | row
            m += live[row] & (codes[i] != column.fill)
    if m < 64:
        for i in range(1, m):
            entry = entries[i]
            t = i
            while t > 0 and entries[t - 1] > entry:
                entries[t] = entries[t - 1]
                t -= 1
            entries[t] = entry
        return m
    shift = 32
    while shift < 64 and (<uint64_t>column.n_codes >> (shift - 32)) > 0:
        memset(count, 0, sizeof(count))
        for i in range(m):
            count[(source[i] >> shift) & 2047] += 1
        total = 0
        for i in range(2048):
            t = count[i]
            count[i] = total
            total += t
        for i in range(m):
            entry = source[i]
            sink[count[(entry >> shift) & 2047]] = entry
            count[(entry >> shift) & 2047] += 1
        source, sink = sink, source
        shift += 11
    if source != entries:
        for i in range(m):
            entries[i] = source[i]
    return m


cdef int64_t leave_out_majority(uint32_t* entries, int64_t n, uint32_t* fill) noexcept nogil:
    """Make a dense run sparse when one value holds more than half of its rows; the new length.

    A majority holds the middle entry, so two binary searches find it. Missing values stay.
    """
    cdef uint32_t rank = entries[n // 2] >> 16
    cdef int64_t first, last, low, high, middle
    if rank == 0:
        return n
    low = 0
    high = n // 2
    while low < high:
        middle = (low + high) >> 1
        if entries[middle] >> 16 < rank:
            low = middle + 1
        else:
            high = middle
    first = low
    low = n // 2
    high = n
    while low < high:
        middle = (low + high) >> 1
        if entries[middle] >> 16 <= rank:
            low = middle + 1
        else:
            high = middle
    last = low
    if 2 * (last - first) <= n:
        return n
    fill[0] = rank
    memmove(entries + first, entries + last, (n - last) * sizeof(uint32_t))
    return n - (last - first)


cdef Workspace* relocate_rows(Workspace* old, const OpenNode* node,
                              int64_t n_entries) noexcept nogil:
    """A workspace of 32-bit entries with the rows and targets of a node, numbered from 0."""
    cdef int64_t n = node.totals.n
    cdef const uint32_t* rows = old.rows + node.start
    cdef Workspace* new = new_workspace(n, n_entries, True)
    cdef int64_t i
    new.row_id = <uint32_t*>malloc((n + 1) * sizeof(uint32_t))
    if old.number == NULL:
        old.number = <uint32_t*>malloc((old.n_rows + 1) * sizeof(uint32_t))
    for i in range(n):
        new.row_id[i] = rows[i] if old.row_id == NULL else old.row_id[rows[i]]
        new.rows[i] = <uint32_t>i
        old.number[rows[i]] = <uint32_t>i
    new.owns_payload = True
    if old.payload.label != NULL:
        new.payload.label = <uint16_t*>malloc((n + 1) * sizeof(uint16_t))
        for i in range(n):
            new.payload.label[i] = old.payload.label[rows[i]]
    new.payload.weight = gather(old.payload.weight, rows, n)
    new.payload.target = gather(old.payload.target, rows, n)
    if old.payload.value == old.payload.target:
        new.payload.value = new.payload.target
    else:
        new.payload.value = gather(old.payload.value, rows, n)
    return new


cdef void count_wide(const uint16_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                     uint32_t* count) noexcept nogil:
    """The same of a uint16 column, in one place each."""
    cdef int64_t i
    memset(count, 0, (n_codes + 1) * sizeof(uint32_t))
    for i in range(n):
        count[codes[row_id[i]]] += 1


cdef bint is_counted(const Column* column, const Workspace* w, const CountRule* rule,
                     const uint32_t* count, uint32_t* scratch, Counted* counted) noexcept nogil:
    """Whether a column goes on being read by histogram; if so, its cells are reserved.

    A histogram costs its cells and half of the rows, entries cost each of theirs several times.
    They win in small nodes, and where most rows hold one value, which needs none.

    count : rows by code, of a uint8 column. scratch : a number per row.
    """
    cdef int64_t i
    cdef uint32_t most = 0
    cdef int64_t cells = (column.n_codes + <int64_t>1) * rule.stride
    cdef int64_t least = cells if cells > rule.least_rows else rule.least_rows
    if rule.least_rows == 0:
        least = 1
    if rule.stride == 0 or column.n_codes >= w.n_rows:
        return False
    if GENERATIONS * least > w.n_rows and rule.least_rows > 0:
        return False
    if column.storage != STORED_U8:
        count_wide(<const uint16_t*>column.codes, w.row_id, w.n_rows, column.n_codes, scratch)
        count = scratch
    for i in range(column.n_codes + <int64_t>1):
        most = count[i] if count[i] > most else most
    if 4 * <int64_t>most > 3 * w.n_rows:
        return False
    counted.n_cells += cells
    if least > counted.least_rows:
        counted.least_rows = least
    return True


cdef inline uint32_t write_ranks(const entry_t* entries, int64_t length, const uint32_t* number,
                                 uint32_t fill_code, uint32_t last_ordered, uint32_t* target,
                                 uint32_t* fill, uint32_t* ordered) noexcept nogil:
    """Entries of codes, ascending, become entries of ranks; returns the last rank.

    number : new numbers of the rows; NULL: those that they have. fill_code : of the rows without an
    entry, NO_RANK where there are none. fill, ordered : its rank or NO_RANK, and the rank of the
    last ordered code; filled. target : may be `entries`.
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef uint32_t rank = 0
    cdef uint32_t previous = 0
    cdef uint32_t of_fill = NO_RANK
    cdef uint32_t last = 0
    cdef int64_t i
    cdef uint32_t code, row
    for i in range(length):
        code = <uint32_t>(entries[i] >> shift)
        row = <uint32_t>(entries[i] & mask)
        if of_fill == NO_RANK and code > fill_code:
            rank += fill_code > 0
            of_fill = rank
            if fill_code <= last_ordered:
                last = rank
        rank += code != previous
        previous = code
        if code <= last_ordered:
            last = rank
        target[i] = rank << 16 | (row if number == NULL else number[row])
    if of_fill == NO_RANK and fill_code != NO_RANK:
        rank += fill_code > 0
        of_fill = rank
        if fill_code <= last_ordered:
            last = rank
    fill[0] = of_fill
    ordered[0] = last
    return rank


cdef int64_t relocate_runs(const Workspace* old, const entry_t* entries, Workspace* new,
                           Run* runs, int64_t n_runs, int64_t at, const Column* columns,
                           uint32_t* scratch, const CountRule* rule,
                           Counted* counted) noexcept nogil:
    """Move runs to a workspace that `relocate_rows` made, from offset `at`, and rewrite them.

    entries : old.entries, typed. scratch : a number per row of the new workspace. counted : what
    is counted there, added to.
    Returns how many are left: columns that turn out constant are dropped. O(entries).
    """
    cdef int64_t n = new.n_rows
    cdef int64_t kept = 0
    cdef int64_t r, length, n_fill, cells
    cdef uint32_t rank, ordered, fill, fill_code, middle
    cdef uint32_t count[256]
    cdef bint distinct, is_narrow
    cdef const Column* column
    cdef uint32_t* target
    cdef Run* run
    for r in range(n_runs):
        run = runs + r
        target = <uint32_t*>new.entries + at
        cells = counted.n_cells
        column = &columns[run.column]
        is_narrow = run.length == 0 and column.storage == STORED_U8
        if is_narrow:
            count_narrow(<const uint8_t*>column.codes, new.row_id, n, column.n_codes, scratch,
                         count)
        if run.length == 0 and is_counted(column, new, rule, count, scratch, counted):
            runs[kept] = run[0]
            runs[kept].offset = cells
            kept += 1
            continue
        fill_code = NO_RANK
        length = run.length
        if length > 0:
            if length < n:
                fill_code = run.fill
            rank = write_ranks(entries + run.offset, length, old.number, fill_code,
                               run.last_ordered, target, &fill, &ordered)
            fill_code = run.fill_code
        else:
            if is_narrow:
                length = entries_of_narrow(scratch, count, n, column.n_codes, target, &fill_code)
            else:
                length = entries_of_wide(column, new.row_id, n, target, scratch)
            rank = write_ranks(<const uint32_t*>target, length, NULL, fill_code,
                               run.last_ordered, target, &fill, &ordered)
        n_fill = n - length
        if length == 0 or (n_fill == 0 and target[0] >> 16 == target[length - 1] >> 16):
            continue
        # without a fill code the ranks are 1..length, or 0..length-1, when all of them differ
        distinct = n_fill == 0 and length == rank + (target[0] >> 16 == 0) and rank > 1
        if n_fill == 0 and not distinct:
            middle = target[length // 2] & 0xFFFF
            length = leave_out_majority(target, length, &fill)
            if fill != NO_RANK:
                fill_code = code_at(column, new.row_id[middle])
        runs[kept] = run[0]
        run = runs + kept
        if run.last_ordered != ALL_ORDERED:
            run.last_ordered = ordered
        run.fill = fill
        run.fill_code = fill_code
        run.offset = at
        run.length = <uint32_t>length
        run.distinct = distinct
        at += length
        kept += 1
    return kept


cdef Workspace* relocate(Workspace* old, const entry_t* entries, OpenNode* node,
                         const Column* columns, const CountRule* rule) noexcept nogil:
    """Move a node of at most 65,535 rows to a workspace of its own; its runs are replaced."""
    cdef int64_t n_entries = 0
    cdef int64_t r
    cdef Workspace* new
    for r in range(node.n_runs):
        n_entries += node.runs[r].length if node.runs[r].length > 0 else node.totals.n
    new = relocate_rows(old, node, n_entries)
    node.n_runs = relocate_runs(old, entries, new, node.runs, node.n_runs, 0, columns,
                                <uint32_t*>new.scratch, rule, &new.counted)
    node.start = 0
    free(node.histogram)
    node.histogram = NULL
    return new
