"""The best split of a node, from the entries of its columns.

A run of entries is in ascending order of rank, so the sums over a prefix are the statistics of one
side of a candidate split, and one pass over the run scores them all; nothing is sorted in a node
([SF] 2, [CV] 3.4). The sums are integers: which rows came first cannot matter.

    missing   below fill    fill code (not stored)     above fill
    |0 0 0|   1 2 2 | 3     . . . . . . . . . .        5 | 6 6 | 7|
              ---> up                                  <--- down

A sparse run is scanned from both ends towards the rows that are not stored, so their sums are
never needed ([SP] 3, without the pass that gathers them). A dense run is the special case in which
`up` goes all the way. Rows with a missing value are put on the right in a first pass and on the
left in a second one.

Columns with categories are searched by groups instead (`_groups`).

A boundary is named by `at`, the index in the run of the first entry to its right, or by

    BEFORE_FILL   last entry below the fill code | rows of the fill code
    LAST          all that are not missing | missing
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t

from dtrees.core._criterion cimport xlogx
from dtrees.core._groups cimport collect_groups, search_groups
from dtrees.core._search cimport (
    BUFFER, NONE, Search, add_row, beats, begin_pass, consider, entropy_score, flush,
    heavy_enough
)
from dtrees.core._structs cimport (
    AT_MOST, CLASSES, COUNT, ENTROPY, GINI, SQUARED, SUM, WEIGHTED_SUM, Mode, Run, Split, entry_t,
    int128_t
)

cdef enum:
    BEFORE_FILL = -1
    LAST = -2
    NOTHING = -3


# scans of entries: the hot loops

cdef inline void scan_pair(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                           int64_t close, bint down, Mode mode, bint distinct) noexcept nogil:
    """Scan entries begin..end of a column for one number per row (pair modes).

    `down`, `mode` and `distinct` (no two entries of the run have the same rank) are constants
    where this is inlined. A boundary is written to the buffer and kept by moving the cursor,
    without a branch. Two neighbours of the same class are no boundary in a distinct run: between
    the ends of a stretch of one class the score is strictly convex, so an end beats what is
    inside (Fayyad and Irani 1993; [CV] 3.4). The boundary behind the last entry is a candidate
    named `close`, unless that is NOTHING.
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t s = q.s
    cdef int64_t k = 0
    cdef int64_t W = q.totals.weight
    cdef int64_t S = q.totals.target
    cdef bint unit_weights = mode != WEIGHTED_SUM
    cdef int64_t to_weight = W - n - end if down else n - begin
    cdef const uint16_t* label = q.payload.label
    cdef const int64_t* weight = q.payload.weight
    cdef const int64_t* target = q.payload.target
    cdef double* bw = q.buffer_w
    cdef double* ba = q.buffer_a
    cdef int32_t* bat = q.buffer_at
    cdef int64_t m = end - begin
    cdef int64_t first = q.min_rows - n
    cdef int64_t stop = q.totals.n - q.min_rows - n + 1
    cdef bint all_allowed = q.min_rows == 1 and q.min_weight <= 1
    cdef int64_t i, at
    cdef entry_t entry, rank, previous, row
    cdef uint16_t c
    cdef uint16_t last_class = 0xFFFF
    if m <= 0:
        return
    if first < 0:
        first = 0
    if first > m:
        first = m
    if stop > m:
        stop = m
    previous = (entries[end - 1] if down else entries[begin]) >> shift
    if mode == COUNT and distinct:
        last_class = label[(entries[end - 1] if down else entries[begin]) & mask]
    # Entries before the first permitted boundary are added, those behind the last are not needed.
    for i in range(first):
        entry = entries[end - 1 - i if down else begin + i]
        row = entry & mask
        previous = entry >> shift
        if mode == COUNT:
            s += label[row]
            if distinct:
                last_class = label[row]
        elif mode == SUM:
            s += target[row]
        else:
            w += weight[row]
            s += target[row]
    for i in range(first, stop):
        at = end - 1 - i if down else begin + i
        entry = entries[at]
        row = entry & mask
        if not unit_weights:
            bw[k] = <double>(W - w if down else w)
            q.buffer_rest[k] = <double>(w if down else W - w)
        ba[k] = <double>(S - s if down else s)
        bat[k] = <int32_t>(at + 1 if down else at)
        if mode == COUNT and distinct:
            c = label[row]
            k += (c != last_class) | ((not all_allowed) & (i > 0))
            last_class = c
            s += c
        else:
            if distinct:
                k += i > 0
            else:
                rank = entry >> shift
                if unit_weights:
                    k += rank != previous
                else:
                    k += (rank != previous) & heavy_enough(q, w)
                previous = rank
            if mode == COUNT:
                s += label[row]
            elif mode == SUM:
                s += target[row]
            else:
                w += weight[row]
                s += target[row]
        if k == BUFFER:
            q.buffered = k
            flush(q, down, False, unit_weights, to_weight)
            k = 0
    n += m
    if unit_weights:
        w = n
    q.n = n
    q.w = w
    q.s = s
    q.buffered = k
    flush(q, down, False, unit_weights, to_weight)
    if close != NOTHING:
        consider(q, close, down)


cdef inline void scan_classes(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                              int64_t close, bint down, bint weighted,
                              bint entropy) noexcept nogil:
    """The same for classes; `down`, `weighted`, `entropy` are constants where this is inlined.

    One step of the outer loop adds the entries of one rank, then offers the boundary behind it.
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t w = q.w
    cdef int64_t least = q.min_rows - q.n
    cdef int64_t most = q.totals.n - q.min_rows - q.n
    cdef int64_t W = q.totals.weight
    cdef const uint16_t* label = q.payload.label
    cdef const int64_t* weight = q.payload.weight
    cdef const int64_t* totals = q.class_totals
    cdef int64_t* side = q.side
    cdef int64_t squares = <int64_t>q.side_squares
    cdef int64_t cross = <int64_t>q.cross
    cdef int64_t node_squares = <int64_t>q.squares
    cdef int64_t m = end - begin
    cdef int64_t step = -1 if down else 1
    cdef int64_t i = 0
    cdef int64_t x, old, t, other, name
    cdef int128_t wide_other
    cdef const entry_t* at = entries + (end - 1 if down else begin)
    cdef entry_t rank
    cdef int c
    while i < m:
        rank = at[0] >> shift
        while True:
            c = label[at[0] & mask]
            old = side[c]
            t = totals[c]
            if weighted:
                x = weight[at[0] & mask]
                if entropy:
                    q.side_squares += xlogx(q.criterion, old + x) - xlogx(q.criterion, old)
                    q.side_squares += (xlogx(q.criterion, t - old - x)
                                       - xlogx(q.criterion, t - old))
                else:
                    q.side_squares += <int128_t>x * (2 * <int128_t>old + x)
                    q.cross += <int128_t>x * t
                side[c] = old + x
                w += x
            else:
                if entropy:
                    squares += xlogx(q.criterion, old + 1) - xlogx(q.criterion, old)
                    squares += xlogx(q.criterion, t - old - 1) - xlogx(q.criterion, t - old)
                else:
                    squares += 2 * old + 1
                    cross += t
                side[c] = old + 1
            i += 1
            at += step
            if i == m or at[0] >> shift != rank:
                break
        if i == m:
            if close == NOTHING:
                break
            name = close
        else:
            name = end - i if down else begin + i
        if i < least or i > most:
            continue
        if not weighted:
            w = q.w + i
        if not heavy_enough(q, w):
            continue
        q.buffer_w[q.buffered] = <double>(W - w if down else w)
        q.buffer_rest[q.buffered] = <double>(w if down else W - w)
        q.buffer_at[q.buffered] = <int32_t>name
        if entropy:
            q.buffer_a[q.buffered] = entropy_score(
                q, q.side_squares if weighted else squares, W - w if down else w)
        elif weighted:
            wide_other = (q.squares - q.cross) + (q.side_squares - q.cross)
            q.buffer_a[q.buffered] = <double>(wide_other if down else q.side_squares)
            q.buffer_b[q.buffered] = <double>(q.side_squares if down else wide_other)
        else:
            other = (node_squares - cross) + (squares - cross)
            q.buffer_a[q.buffered] = <double>(other if down else squares)
            q.buffer_b[q.buffered] = <double>(squares if down else other)
        q.buffered += 1
        if q.buffered == BUFFER:
            flush(q, down, True, False, 0)
    q.n += m
    if not weighted:
        w = q.w + m
        q.side_squares = squares
        q.cross = cross
    q.w = w
    flush(q, down, True, False, 0)
    if q.side_is_clear and m < q.criterion.n_classes:
        for i in range(begin, end):
            side[label[entries[i] & mask]] = 0
    else:
        q.side_is_clear = False


cdef void scan(Search* q, const entry_t* entries, int64_t begin, int64_t end, int64_t close,
               bint down, bint distinct) noexcept nogil:
    """Pick the loop that was compiled for the mode, the direction and the kind of run."""
    if q.mode == COUNT:
        if down:
            scan_pair(q, entries, begin, end, close, True, COUNT, False)
        elif distinct:
            scan_pair(q, entries, begin, end, close, False, COUNT, True)
        else:
            scan_pair(q, entries, begin, end, close, False, COUNT, False)
    elif q.mode == SUM:
        if down:
            scan_pair(q, entries, begin, end, close, True, SUM, False)
        elif distinct:
            scan_pair(q, entries, begin, end, close, False, SUM, True)
        else:
            scan_pair(q, entries, begin, end, close, False, SUM, False)
    elif q.mode == WEIGHTED_SUM:
        if down:
            scan_pair(q, entries, begin, end, close, True, WEIGHTED_SUM, False)
        else:
            scan_pair(q, entries, begin, end, close, False, WEIGHTED_SUM, False)
    elif q.criterion.impurity == ENTROPY:
        if q.mode == CLASSES:
            scan_classes(q, entries, begin, end, close, down, False, True)
        else:
            scan_classes(q, entries, begin, end, close, down, True, True)
    elif q.mode == CLASSES:
        if down:
            scan_classes(q, entries, begin, end, close, True, False, False)
        else:
            scan_classes(q, entries, begin, end, close, False, False, False)
    else:
        scan_classes(q, entries, begin, end, close, down, True, False)


# ---------------------------------------------------------------------------------------------
# one column

cdef inline int64_t first_above(const entry_t* entries, int64_t begin, int64_t end,
                                uint32_t rank) noexcept nogil:
    """Index of the first entry with a rank above `rank`: binary search."""
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef int64_t middle
    while begin < end:
        middle = (begin + end) >> 1
        if <uint32_t>(entries[middle] >> shift) > rank:
            end = middle
        else:
            begin = middle + 1
    return begin


cdef inline double bound_of_sparse(const Search* q, double m) noexcept nogil:
    """A score that no split with at most m unweighted rows on one side can exceed, for 4m <= n.

    Squared error: k rows on one side have |D| <= k * max |W y - S|, and k / (W - k) grows with k.
    Gini: with R = sum r*r over the k rows, the score is at most (T - R)/(W - k) + R/k, T the
    node's sum of squares; that grows with R <= k*k, and then with k while 4k <= W. A billionth is
    added for rounding.
    """
    cdef double low, high
    if q.criterion.impurity == SQUARED:
        if q.mode == COUNT:
            low = q.S
            high = q.W - q.S
        else:
            low = q.S - q.W * <double>q.totals.lowest
            high = q.W * <double>q.totals.highest - q.S
        high = high if high > low else low
        return 1.000000001 * high * high * m / (q.W - m)
    return 1.000000001 * ((<double>q.squares - m * m) / (q.W - m) + m)


cdef void pass_over_short(Search* q) noexcept nogil:
    """Set q.too_short: runs with fewer entries cannot beat the split that was found."""
    cdef int64_t low = 1
    cdef int64_t high = q.totals.n // 4 + 1
    cdef int64_t middle
    if q.payload.weight != NULL or (q.criterion.impurity != SQUARED
                                    and q.criterion.impurity != GINI):
        return
    while low < high:
        middle = (low + high) >> 1
        if bound_of_sparse(q, <double>middle) < q.split.score:
            low = middle + 1
        else:
            high = middle
    q.too_short = low


cdef bint search_run(Search* q, const entry_t* entries, const Run* run) noexcept nogil:
    """Search one column; keep its best split in q.split if it beats what is there.

    Returns False when the column is constant in the node (nothing to split, here or below).
    O(entries), plus the search over groups for columns with categories.
    """
    cdef const entry_t* e = entries + run.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t m = run.length
    cdef int64_t n_fill = q.totals.n - m
    cdef uint32_t lowest, highest
    cdef int64_t n_missing = 0
    cdef int64_t fill_at, i, missing, close
    cdef Split* split
    lowest = <uint32_t>(e[0] >> shift)
    highest = <uint32_t>(e[m - 1] >> shift)
    if lowest == highest and n_fill == 0:
        return False
    if (highest > run.last_ordered
            or (n_fill > 0 and (run.fill == 0 or run.fill > run.last_ordered))):
        collect_groups(q, entries, run)
        search_groups(q, run.column, run.last_ordered)
        return True
    q.best = NONE
    if lowest == 0:
        n_missing = first_above(e, 0, m, 0)
    if n_fill == 0 or highest < run.fill:
        fill_at = m
    elif lowest > run.fill:
        fill_at = 0
    else:
        fill_at = first_above(e, n_missing, m, run.fill)
    for missing in range(2 if n_missing > 0 else 1):
        # up: the side is the left one
        if fill_at > n_missing:
            begin_pass(q, AT_MOST, missing)
            if missing:
                for i in range(n_missing):
                    add_row(q, e[i] & mask)
            close = NOTHING
            if n_fill > 0:
                close = BEFORE_FILL
            elif n_missing > 0 and not missing:
                close = LAST
            scan(q, e, n_missing, fill_at, close, False, run.distinct)
        # down: the side is the right one
        if n_fill > 0:
            begin_pass(q, AT_MOST, missing)
            if n_missing > 0 and not missing:
                for i in range(n_missing):
                    add_row(q, e[i] & mask)
                consider(q, LAST, True)
            if fill_at < m:
                scan(q, e, fill_at, m, fill_at, True, run.distinct)
    if not beats(q, run.column):
        return True
    split = &q.split
    split.score = q.best
    split.column = run.column
    split.test = AT_MOST
    if n_fill > 0:
        pass_over_short(q)
    split.missing_left = q.best_missing
    split.saw_missing = n_missing > 0
    if q.best_at == LAST:
        i = m - 1
        if n_fill > 0 and fill_at == m:
            split.boundary = run.fill
            split.boundary_row = -1
        else:
            split.boundary = highest
            split.boundary_row = e[i] & mask
        split.beyond = 0
        split.beyond_row = -1
    elif q.best_at == BEFORE_FILL:
        split.boundary = <uint32_t>(e[fill_at - 1] >> shift)
        split.boundary_row = e[fill_at - 1] & mask
        split.beyond = run.fill
        split.beyond_row = -1
    else:
        i = q.best_at
        split.beyond = <uint32_t>(e[i] >> shift)
        split.beyond_row = e[i] & mask
        if n_fill > 0 and i == fill_at:
            split.boundary = run.fill
            split.boundary_row = -1
        else:
            split.boundary = <uint32_t>(e[i - 1] >> shift)
            split.boundary_row = e[i - 1] & mask
    return True


# ---------------------------------------------------------------------------------------------
