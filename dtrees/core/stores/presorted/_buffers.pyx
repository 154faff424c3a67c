"""Memory of growth: entries, rows and targets of open nodes, and moving a node to its own.

A large table starts in buffers of 64-bit entries for its wide and sparse columns; its narrow
columns stay in the coded matrix and are read by histogram. As soon as a node is small enough it is
*relocated*: its rows are numbered 0, 1, 2, ... and every column, however stored, becomes a feature
of 32-bit entries (rank | row) that lies in a few hundred kilobytes with the targets of its rows, so
the rest of the subtree works in the processor's caches. Rows of class 0 get the first numbers: the
number of a row tells which of two classes it has, and nothing has to be looked up. Ranks replace
codes: only their order matters. Columns of few codes go on being read by histogram, until nodes are
so small that a later relocation sorts them too.

    column          large node                    relocated node
    uint8, uint16   codes, by histogram           the same, or entries, sorted once (radix)
    uint32          uint64 entries, presorted     entries; sorted once if there were none
    sparse          uint64 entries, stored only   entries, stored only

Entries of a column are sorted by counting, in ascending order of code: once in a large table, by
radix, and once in a relocated node. A value that more than half of the rows share is left out, as
in a sparse column. O(rows).

Memory: 8 bytes per entry of wide and sparse columns and 4 per row at the top; per thread 4 bytes
per entry of the largest relocated node.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport STORED_SPARSE, STORED_U32, STORED_U8, Column, code_at
from dtrees.core.data._memory cimport claim, resize
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport ALL_ORDERED, NO_RANK, PresortedFeature, entry_t
from dtrees.core.histogram._totals cimport weigh_row
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport CountRule
from dtrees.core.search._sort cimport sort_by_code

cdef enum:
    READ_BEYOND = 16        # entries that scans read at once
    SPARE = 16              # of room that was not enough, such a part more
    GENERATIONS = 4         # buffers are so many times larger than their smallest counted node


cdef Buffers* new_buffers(int64_t n_rows) noexcept nogil:
    """Wide ones for n_rows rows, without entries; NULL without memory. The of_row arrays are the
    caller's."""
    cdef Buffers* w = <Buffers*>calloc(1, sizeof(Buffers))
    if w == NULL:
        return NULL
    w.n_rows = n_rows
    w.owns_rows = True
    if not (claim(&w.entries, READ_BEYOND * sizeof(uint64_t))
            and claim(&w.scratch, (n_rows + 1) * sizeof(uint64_t))
            and claim(<void**>&w.rows, (n_rows + 1) * sizeof(uint32_t))
            and claim(<void**>&w.row_scratch, (n_rows + 1) * sizeof(uint32_t))
            and claim(<void**>&w.side, n_rows + 1)):
        free_buffers(w)
        return NULL
    return w


cdef void free_buffers(Buffers* w) noexcept nogil:
    if w == NULL:
        return
    free(w.number)
    if not w.in_one or w.grows:
        free(w.entries)
    if not w.in_one:
        free(w.scratch)
        if w.owns_rows:
            free(w.rows)
        free(w.row_scratch)
        free(w.side)
    free(w)


cdef inline void* take(size_t* room, size_t n_bytes) noexcept nogil:
    """The address of the next so many bytes; the room goes on a line of the cache behind them."""
    cdef void* found = <void*>room[0]
    room[0] += n_bytes + (-n_bytes & 63)
    return found


cdef void lay_out(Buffers* w, const Buffers* old, int64_t n_entries, size_t* room) noexcept nogil:
    """Give narrow buffers the arrays that `old` has, one behind the other."""
    cdef bint is_weighed = old.classes.of_class != NULL
    cdef size_t n_bytes = (w.n_rows + 1) * sizeof(uint32_t)
    cdef int64_t width = max(old.of_row.n_outputs, 1)
    w.entries = take(room, (n_entries + READ_BEYOND) * sizeof(uint32_t))
    w.scratch = take(room, n_bytes)
    w.rows = <uint32_t*>take(room, n_bytes)
    w.row_scratch = <uint32_t*>take(room, n_bytes)
    w.row_id = <uint32_t*>take(room, n_bytes)
    w.side = <uint8_t*>take(room, w.n_rows + 1)
    if old.of_row.label != NULL:
        w.of_row.label = <uint16_t*>take(room, width * (w.n_rows + 1) * sizeof(uint16_t))
    if is_weighed or old.of_row.weight != NULL:
        w.of_row.weight = <int64_t*>take(room, 2 * n_bytes)
    if old.classes.has_target if is_weighed else old.of_row.target != NULL:
        w.of_row.target = <int64_t*>take(room, 2 * width * n_bytes)
    w.of_row.n_outputs, w.of_row.shift = old.of_row.n_outputs, old.of_row.shift
    w.of_row.zero_one = old.of_row.zero_one
    w.of_row.n_lanes, w.of_row.largest = old.of_row.n_lanes, old.of_row.largest
    if old.of_row.numbers != NULL:
        w.of_row.numbers = <double*>take(room, 2 * w.of_row.n_lanes * n_bytes)
    if is_weighed:
        return
    if old.of_row.value == old.of_row.target:
        w.of_row.value = w.of_row.target
    elif old.of_row.value != NULL:
        w.of_row.value = <int64_t*>take(room, 2 * width * n_bytes)


cdef Buffers* narrow_buffers(const Buffers* old, int64_t n_rows,
                             int64_t n_entries) noexcept nogil:
    """Memory for rows of other buffers and for 32-bit entries, in one room; NULL without any."""
    cdef Buffers given
    cdef Buffers* w = NULL
    cdef size_t room = 0
    memset(&given, 0, sizeof(Buffers))
    given.n_rows = n_rows
    given.narrow = given.in_one = True
    take(&room, sizeof(Buffers))
    lay_out(&given, old, n_entries, &room)
    if not claim(<void**>&w, room):
        return NULL
    w[0] = given
    room = <size_t>w
    take(&room, sizeof(Buffers))
    lay_out(w, old, n_entries, &room)
    return w


cdef inline void gather(int64_t* to, const int64_t* values, const uint32_t* rows, int64_t n,
                        int64_t width) noexcept nogil:
    """The values of some rows, `width` of each, if there are values."""
    cdef int64_t i
    for i in range(n if values != NULL and width == 1 else 0):
        to[i] = values[rows[i]]
    for i in range(n if values != NULL and width > 1 else 0):
        memcpy(to + i * width, values + rows[i] * width, width * sizeof(int64_t))


cdef bint reserve_entries(Buffers* w, int64_t* room, int64_t n) noexcept nogil:
    """Make room for n entries of narrow buffers, which are of no use in the one that lies behind
    them; False without memory.

    room : entries that there is room for, 0 at first.
    """
    if room[0] > 0 and n <= room[0]:
        return True
    if not w.grows:
        w.entries = NULL
        w.grows = True
    room[0] = max(n, room[0] + room[0] // SPARE) + 1
    return resize(&w.entries, (room[0] + READ_BEYOND) * sizeof(uint32_t))


cdef Buffers* relocate_rows(Buffers* old, const OpenNode* node, int64_t n_entries) noexcept nogil:
    """Buffers of 32-bit entries with the rows and targets of a node, numbered from 0.

    NULL without memory.
    """
    cdef int64_t n = node.totals.n
    cdef Buffers* new = narrow_buffers(old, n, n_entries)
    cdef bint found = new != NULL
    if old.number == NULL:
        found &= claim(<void**>&old.number, (old.n_rows + 1) * sizeof(uint32_t))
    if not found:
        free_buffers(new)
        return NULL
    move_rows(old, new, old.rows + node.start, n)
    return new


cdef void move_rows(Buffers* old, Buffers* new, const uint32_t* rows, int64_t n) noexcept nogil:
    """Number n rows from 0, those of class 0 first, and gather what they add."""
    cdef uint32_t* source = new.row_scratch  # by new number
    cdef const uint16_t* label = old.of_row.label if old.of_row.n_outputs == 0 else NULL
    cdef int64_t width = max(old.of_row.n_outputs, 1)
    cdef int64_t[2] place
    cdef int64_t i, to
    place[0] = 0
    place[1] = 0
    for i in range(n if label != NULL else 0):
        place[1] += label[rows[i]] == 0
    new.ones = <uint32_t>place[1]
    for i in range(n):
        to = i
        if label != NULL:
            to = place[label[rows[i]] != 0]
            place[label[rows[i]] != 0] += 1
            new.of_row.label[to] = label[rows[i]]
        source[to] = rows[i]
        old.number[rows[i]] = <uint32_t>to
    for i in range(n):
        new.row_id[i] = source[i] if old.row_id == NULL else old.row_id[source[i]]
        new.rows[i] = <uint32_t>i
    if old.classes.of_class != NULL:
        for i in range(n):
            weigh_row(&old.of_row, old.classes.of_class, source[i], &new.of_row, i)
        return
    gather(new.of_row.weight, old.of_row.weight, source, n, 1)
    gather(new.of_row.target, old.of_row.target, source, n, width)
    if old.of_row.value != old.of_row.target:
        gather(new.of_row.value, old.of_row.value, source, n, width)
    gather(<int64_t*>new.of_row.numbers, <int64_t*>old.of_row.numbers, source, n,
           old.of_row.n_lanes)
    for i in range(n if old.of_row.n_outputs > 0 and old.of_row.label != NULL else 0):
        memcpy(new.of_row.label + i * width, old.of_row.label + source[i] * width,
               width * sizeof(uint16_t))


cdef bint is_counted(const Relocation* move, const Column* column,
                     const uint32_t* count) noexcept nogil:
    """Whether a column goes on being read by histogram; if so, its cells are reserved.

    A histogram costs its cells and half of the rows, entries cost each of theirs several times.
    They win in small nodes, and where most rows hold one value, which needs none.

    count : rows by code, of a uint8 column.
    """
    cdef const Buffers* w = move.new
    cdef const CountRule* rule = move.rule
    cdef int64_t n_codes = column.n_codes
    cdef int64_t i
    cdef uint32_t most = 0
    cdef int64_t cells = (n_codes + 1) * rule.n_words
    cdef int64_t least = max(cells, rule.least_rows) if rule.least_rows > 0 else 1
    if rule.n_words == 0 or n_codes >= w.n_rows or not PATH_IS_ON("counted_columns"):
        return False
    if GENERATIONS * least > w.n_rows and rule.least_rows > 0:
        return False
    if column.storage != STORED_U8:
        count_wide(<const uint16_t*>column.codes, w.row_id, w.n_rows, n_codes, move.scratch)
        count = move.scratch
    for i in range(n_codes + 1):
        most = max(count[i], most)
    if 4 * <int64_t>most > 3 * w.n_rows:
        return False
    move.counted.n_words += cells
    move.counted.least_rows = max(move.counted.least_rows, least)
    return True


cdef int64_t relocate_features(const Relocation* move, const entry_t* entries,
                               PresortedFeature* features, int64_t n_features,
                               int64_t at) noexcept nogil:
    """Move features to the entries of other buffers, from offset `at`, and rewrite them.

    entries : move.old.entries, typed.
    Returns how many are left: columns that turn out constant are dropped; -1 without memory.
    O(entries).
    """
    cdef const uint32_t* row_id = move.new.row_id
    cdef uint32_t* scratch = move.scratch
    cdef int64_t n = move.new.n_rows
    cdef int64_t kept = 0
    cdef int64_t r
    cdef uint32_t rank
    cdef uint32_t count[256]
    cdef const Column* column
    cdef uint32_t* target
    cdef uint64_t* wide = NULL
    cdef PresortedFeature feature
    for r in range(n_features):
        feature = features[r]
        target = <uint32_t*>move.new.entries + at
        column = &move.columns[feature.column]
        if feature.length > 0:
            rank = write_ranks(entries + feature.offset, feature.length, move.old.number,
                               feature.fill if feature.length < n else NO_RANK, target, &feature)
        else:
            feature.offset = move.counted.n_words
            if column.storage == STORED_U8:
                count_narrow(<const uint8_t*>column.codes, row_id, n, column.n_codes, scratch,
                             count)
            if is_counted(move, column, count):
                features[kept] = feature
                kept += 1
                continue
            feature.fill_code = NO_RANK
            feature.length = <uint32_t>n
            if column.storage == STORED_U32:
                if wide == NULL and not claim(<void**>&wide, 2 * n * sizeof(uint64_t)):
                    return -1
                rank = entries_of_widest(column, row_id, n, target, wide, &feature)
            else:
                if column.storage == STORED_U8:
                    feature.length = <uint32_t>entries_of_narrow(
                        scratch, count, n, column.n_codes, target, &feature.fill_code)
                else:
                    entries_of_wide(column, row_id, n, target, scratch)
                rank = write_ranks(<const uint32_t*>target, feature.length, NULL,
                                   feature.fill_code, target, &feature)
        if feature.length == 0 or (feature.length == n
                                   and target[0] >> 16 == target[feature.length - 1] >> 16):
            continue
        # without a fill code the ranks are 1..length, or 0..length-1, when all of them differ
        feature.distinct = (feature.length == n and n == rank + (target[0] >> 16 == 0) and rank > 1)
        feature.offset = at
        at += feature.length
        features[kept] = feature
        kept += 1
    free(wide)
    return kept


cdef Buffers* relocate(Buffers* old, const entry_t* entries, OpenNode* node, const Column* columns,
                       const CountRule* rule) noexcept nogil:
    """Move a node of at most 65,535 rows to buffers of its own; its features are replaced.

    NULL without memory.
    """
    cdef Buffers* new = relocate_rows(old, node, entries_of_features(
        node.features, node.n_features, node.totals.n))
    cdef Relocation move
    if new == NULL:
        return NULL
    move = Relocation(old, new, columns, rule, <uint32_t*>new.scratch, &new.counted)
    node.n_features = relocate_features(&move, entries, node.features, node.n_features, 0)
    if node.n_features < 0:
        node.n_features = 0
        free_buffers(new)
        return NULL
    node.start = 0
    free(node.histogram)
    node.histogram = NULL
    return new


# ---------------------------------------------------------------------------------------------
# entries by counting

cdef inline uint32_t write_ranks(const entry_t* entries, int64_t length, const uint32_t* number,
                                 uint32_t fill_code, uint32_t* target,
                                 PresortedFeature* feature) noexcept nogil:
    """Entries of codes, ascending, become entries of ranks; returns the last rank.

    number : new numbers of the rows; NULL: those that they have. fill_code : of the rows without an
    entry, NO_RANK where there are none. target : may be `entries`. feature : gets the rank of the
    fill code or NO_RANK, and that of the last ordered code.
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef uint32_t last_ordered = feature.last_ordered
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
    feature.fill = of_fill
    if last_ordered != ALL_ORDERED:
        feature.last_ordered = last
    return rank


cdef void count_narrow(const uint8_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                       uint32_t* own, uint32_t* count) noexcept nogil:
    """How many of n rows hold each of the codes 0 .. n_codes of a uint8 column.

    own : their codes, filled. Neighbouring rows often hold one code, so they are counted in four
    arrays: no addition waits for the one before.
    """
    cdef uint32_t counts[4][256]
    cdef int64_t i, k
    for k in range(4):
        memset(counts[k], 0, (n_codes + 1) * sizeof(uint32_t))
    for i in range(n):
        own[i] = codes[row_id[i]]
    for i in range(n):
        counts[i & 3][own[i]] += 1
    for i in range(n_codes + 1):
        count[i] = counts[0][i] + counts[1][i] + counts[2][i] + counts[3][i]


cdef void count_wide(const uint16_t* codes, const uint32_t* row_id, int64_t n, int64_t n_codes,
                     uint32_t* count) noexcept nogil:
    """Count the codes of a uint16 column, which are not kept."""
    cdef int64_t i
    memset(count, 0, (n_codes + 1) * sizeof(uint32_t))
    for i in range(n):
        count[codes[row_id[i]]] += 1


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
    """Entries of a uint16 column, by radix sort of all codes; without a majority. O(n).

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
    cdef int64_t i
    cdef uint32_t row
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
    sort_by_code(entries, scratch, m, column.n_codes)
    return m


cdef uint32_t entries_of_widest(const Column* column, const uint32_t* row_id, int64_t n,
                                uint32_t* entries, uint64_t* scratch,
                                PresortedFeature* feature) noexcept nogil:
    """Entries of a uint32 column, of ranks; returns the last rank, as `write_ranks`.

    scratch : (2 n,).
    """
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef int64_t i
    for i in range(n):
        scratch[i] = <uint64_t>codes[row_id[i]] << 32 | <uint64_t>i
    sort_by_code(scratch, scratch + n, n, column.n_codes)
    return write_ranks(<const uint64_t*>scratch, n, NULL, NO_RANK, entries, feature)
