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

Columns with categories go by *groups*, the distinct ranks of the run with their sums: ordered by
mean for one number per row (optimal: Fisher 1958, [CT]), all subsets for more classes while there
are at most 1,023, else by the first principal component of the class shares and one-versus-rest
[SK]. Hybrid columns try `<= v`, `> v` and `= category` ([SF] 2, tables 3 and 4).

Among equal scores the earliest candidate wins: lowest column, missing right before missing left,
lowest rank.

A boundary is named by `at`, the index in the run of the first entry to its right, or by

    BEFORE_FILL   last entry below the fill code | rows of the fill code
    LAST          all that are not missing | missing
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcpy, memset

from dtrees.core._criterion cimport (
    Criterion, natural_log, poisson_score, squared_score, xlogx
)
from dtrees.core._structs cimport (
    ABOVE, AT_MOST, CLASSES, COUNT, ENTROPY, GINI, IN_SUBSET, LEAF, NO_RANK, POISSON, SQUARED,
    SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode, Payload, Run, Split, Totals, entry_t, int128_t
)

cdef enum:
    BEFORE_FILL = -1
    LAST = -2
    NOTHING = -3
    MAX_SUBSETS = 1023      # all subsets of up to 11 categories
    POWER_STEPS = 64        # of the power iteration

cdef double NONE = -1e290   # below every score of a permitted split


# ---------------------------------------------------------------------------------------------
# life of a search

cdef Search* new_search(const Criterion* criterion, Mode mode, Payload payload,
                        int64_t min_rows, int64_t min_weight) noexcept nogil:
    """Scratch for the searches of one thread. Freed by `free_search`."""
    cdef Search* q = <Search*>calloc(1, sizeof(Search))
    cdef int k = criterion.n_classes
    q.criterion = criterion
    q.mode = mode
    q.payload = payload
    q.min_rows = min_rows
    q.min_weight = min_weight
    q.n_columns_of_target = k if mode == CLASSES or mode == WEIGHTED_CLASSES else 1
    q.side = <int64_t*>calloc(k + 1, sizeof(int64_t))
    q.side_is_clear = True
    q.component = <double*>calloc(<size_t>k * (k + 3) + 1, sizeof(double))
    return q


cdef void free_search(Search* q) noexcept nogil:
    if q == NULL:
        return
    free(q.side)
    free(q.component)
    free(q.subset)
    free(q.split_subset)
    free(q.groups.rank)
    free(q.groups.row)
    free(q.groups.n)
    free(q.groups.weight)
    free(q.groups.target)
    free(q.groups.order)
    free(q)


cdef inline bint by_class(const Search* q) noexcept nogil:
    return q.mode == CLASSES or q.mode == WEIGHTED_CLASSES


cdef void begin_node(Search* q, const Totals* totals, const int64_t* class_totals) noexcept nogil:
    """Take a node's totals; forget the split of the last one."""
    cdef int k
    cdef int64_t t
    q.totals = totals[0]
    q.class_totals = class_totals
    q.W = <double>totals.weight
    q.S = <double>totals.target
    q.squares = 0
    q.entropy = 0
    if by_class(q):
        if q.criterion.impurity == ENTROPY:
            for k in range(q.criterion.n_classes):
                q.entropy += xlogx(q.criterion, class_totals[k])
        else:
            for k in range(q.criterion.n_classes):
                t = class_totals[k]
                q.squares += <int128_t>t * t
    q.too_short = 1
    q.split.test = LEAF
    q.split.score = NONE
    q.split.gain = 0
    q.split.column = 0x7FFFFFFF


cdef void finish_node(Search* q) noexcept nogil:
    """Turn the score of the chosen split into its gain in the user's units."""
    cdef double raw = q.split.score
    if q.split.test == LEAF:
        return
    if q.criterion.impurity == SQUARED:
        raw = raw / q.W
    elif q.criterion.impurity == GINI:
        raw = raw - <double>q.squares / q.W
    elif q.criterion.impurity == POISSON:
        raw = raw - q.S * natural_log(q.S / q.W)
    q.split.gain = raw * q.criterion.gain_unit if raw > 0 else 0.0


# ---------------------------------------------------------------------------------------------
# the side that rows are added to

cdef inline void clear_side(Search* q) noexcept nogil:
    q.n = 0
    q.w = 0
    q.s = 0
    q.buffered = 0
    if by_class(q):
        if not q.side_is_clear:
            memset(q.side, 0, q.criterion.n_classes * sizeof(int64_t))
            q.side_is_clear = True
        q.cross = 0
        q.side_squares = 0
        if q.criterion.impurity == ENTROPY:
            q.side_squares = q.entropy


cdef inline void add_to_class(Search* q, int k, int64_t weight) noexcept nogil:
    """Move `weight` (negative: take back) of class k to the side."""
    cdef int64_t old = q.side[k]
    cdef int64_t t = q.class_totals[k]
    if q.criterion.impurity == ENTROPY:
        q.side_squares += xlogx(q.criterion, old + weight) - xlogx(q.criterion, old)
        q.side_squares += xlogx(q.criterion, t - old - weight) - xlogx(q.criterion, t - old)
    else:
        q.side_squares += <int128_t>weight * (2 * <int128_t>old + weight)
        q.cross += <int128_t>weight * t
    q.side[k] = old + weight
    q.side_is_clear = False
    q.w += weight


cdef inline void add_row(Search* q, int64_t row) noexcept nogil:
    """Any mode; the hot loops below have their own."""
    q.n += 1
    if by_class(q):
        add_to_class(q, q.payload.label[row],
                     1 if q.mode == CLASSES else q.payload.weight[row])
    elif q.mode == COUNT:
        q.w += 1
        q.s += q.payload.label[row]
    else:
        q.w += 1 if q.mode == SUM else q.payload.weight[row]
        q.s += q.payload.target[row]


cdef inline void add_group(Search* q, int64_t g, int sign) noexcept nogil:
    cdef int k
    cdef int64_t weight
    q.n += sign * q.groups.n[g]
    if by_class(q):
        for k in range(q.criterion.n_classes):
            weight = q.groups.target[g * q.criterion.n_classes + k]
            if weight != 0:
                add_to_class(q, k, sign * weight)
    else:
        q.w += sign * q.groups.weight[g]
        q.s += sign * q.groups.target[g]


cdef inline double gini_score(double W, double w, double left, double right) noexcept nogil:
    """sum(l*l)/w + sum(r*r)/(W-w), with one division."""
    return (left * (W - w) + right * w) / (w * (W - w))


cdef inline double entropy_score(const Search* q, int128_t both_sides, int64_t w) noexcept nogil:
    """Fixed point sum f(l) - f(w) + sum f(r) - f(W-w) less the node's own: an exact integer."""
    return <double><int64_t>(both_sides - xlogx(q.criterion, w)
                             - xlogx(q.criterion, q.totals.weight - w)
                             - q.entropy + xlogx(q.criterion, q.totals.weight))


cdef inline bint permitted(const Search* q) noexcept nogil:
    return (q.n >= q.min_rows and q.totals.n - q.n >= q.min_rows
            and q.w >= q.min_weight and q.totals.weight - q.w >= q.min_weight)


cdef inline double score_side(const Search* q, bint down) noexcept nogil:
    """The score of the boundary between the side and the rest; `down`: the side is the right."""
    cdef int64_t w = q.totals.weight - q.w if down else q.w
    cdef int64_t s = q.totals.target - q.s if down else q.s
    cdef int128_t other
    if q.criterion.impurity == SQUARED:
        return squared_score(q.W, q.S, <double>w, <double>s)
    if q.criterion.impurity == POISSON:
        return poisson_score(q.W, q.S, <double>w, <double>s)
    if q.criterion.impurity == ENTROPY:
        return entropy_score(q, q.side_squares, w)
    other = (q.squares - q.cross) + (q.side_squares - q.cross)
    if down:
        return gini_score(q.W, <double>w, <double>other, <double>q.side_squares)
    return gini_score(q.W, <double>w, <double>q.side_squares, <double>other)


cdef inline bint offer(Search* q, double score, int64_t at, bint down) noexcept nogil:
    """Keep a boundary if it beats the column's best; True when it was kept.

    A pass that goes down meets the later candidates first, so it takes equal ones, but only if
    they beat what earlier passes found.
    """
    if score > q.best or (down and score == q.best and score > q.floor):
        q.best = score
        q.best_at = at
        q.best_test = q.test
        q.best_missing = q.missing
        return True
    return False


cdef inline bint consider(Search* q, int64_t at, bint down) noexcept nogil:
    if not permitted(q):
        return False
    return offer(q, score_side(q, down), at, down)


cdef inline void begin_pass(Search* q, uint8_t test, uint8_t missing) noexcept nogil:
    q.test = test
    q.missing = missing
    q.floor = q.best
    clear_side(q)


# ---------------------------------------------------------------------------------------------
# scans of entries: the hot loops

cdef inline void flush(Search* q, bint down, bint classes, bint counted,
                       int64_t shift) noexcept nogil:
    """Score the buffered boundaries together, so that the divisions run side by side.

    counted : every row weighs 1; the left weight of the boundary `at` is at + shift.
    """
    cdef int64_t j
    cdef double D, w
    cdef double W = q.W
    cdef double S = q.S
    cdef double* bw = q.buffer_w
    cdef double* ba = q.buffer_a
    cdef double* bb = q.buffer_b
    cdef double* score = q.buffer_score
    cdef double best = q.best
    cdef double moved = <double>shift
    if counted:
        for j in range(q.buffered):
            bw[j] = <double>q.buffer_at[j] + moved
    if classes:
        if q.criterion.impurity == GINI:
            for j in range(q.buffered):
                w = bw[j]
                score[j] = (ba[j] * (W - w) + bb[j] * w) / (w * (W - w))
        else:
            for j in range(q.buffered):
                score[j] = ba[j]
    elif q.criterion.impurity == SQUARED:
        for j in range(q.buffered):
            w = bw[j]
            D = W * ba[j] - w * S
            score[j] = D * D / (w * (W - w))
    else:
        for j in range(q.buffered):
            score[j] = poisson_score(W, S, bw[j], ba[j])
    if q.min_weight > 0:
        for j in range(q.buffered):
            if bw[j] < q.min_weight or W - bw[j] < q.min_weight:
                score[j] = 2 * NONE
    for j in range(q.buffered):
        if score[j] >= best:
            offer(q, score[j], q.buffer_at[j], down)
            best = q.best
    q.buffered = 0


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
    cdef bint counted = mode != WEIGHTED_SUM
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
    cdef bint all_allowed = q.min_rows == 1
    cdef int64_t i, at, name
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
        if not counted:
            bw[k] = <double>(W - w if down else w)
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
                k += rank != previous
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
            flush(q, down, False, counted, to_weight)
            k = 0
    n += m
    if counted:
        w = n
    q.n = n
    q.w = w
    q.s = s
    q.buffered = k
    flush(q, down, False, counted, to_weight)
    if close != NOTHING:
        consider(q, close, down)


cdef inline void scan_classes(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                              int64_t close, bint down, bint weighted,
                              bint entropy) noexcept nogil:
    """The same for classes; `down`, `weighted`, `entropy` are constants where this is inlined."""
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t n = q.n
    cdef int64_t w = q.w
    cdef int64_t least = q.min_rows
    cdef int64_t most = q.totals.n - q.min_rows
    cdef int64_t W = q.totals.weight
    cdef const uint16_t* label = q.payload.label
    cdef const int64_t* weight = q.payload.weight
    cdef const int64_t* totals = q.class_totals
    cdef int64_t* side = q.side
    cdef int64_t squares = <int64_t>q.side_squares
    cdef int64_t cross = <int64_t>q.cross
    cdef int64_t node_squares = <int64_t>q.squares
    cdef int64_t i, at, x, old, t, other, name
    cdef bint boundary
    cdef int128_t wide_other
    cdef entry_t entry = 0
    cdef entry_t rank = 0
    cdef entry_t previous
    cdef int c
    if begin >= end:
        return
    previous = (entries[end - 1] if down else entries[begin]) >> shift
    for i in range(end - begin + 1):
        if i < end - begin:
            at = end - 1 - i if down else begin + i
            entry = entries[at]
            rank = entry >> shift
            boundary = rank != previous
            name = at + 1 if down else at
        else:
            boundary = close != NOTHING
            name = close
        if boundary & (n >= least) & (n <= most):
            q.buffer_w[q.buffered] = <double>(W - w if down else w)
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
        if i == end - begin:
            break
        previous = rank
        n += 1
        c = label[entry & mask]
        old = side[c]
        t = totals[c]
        if weighted:
            x = weight[entry & mask]
            if entropy:
                q.side_squares += xlogx(q.criterion, old + x) - xlogx(q.criterion, old)
                q.side_squares += xlogx(q.criterion, t - old - x) - xlogx(q.criterion, t - old)
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
            w += 1
    q.n = n
    q.w = w
    if not weighted:
        q.side_squares = squares
        q.cross = cross
    flush(q, down, True, False, 0)
    if q.side_is_clear and end - begin < q.criterion.n_classes:
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
    if highest > run.last_ordered or (n_fill > 0 and (run.fill == 0 or run.fill > run.last_ordered)):
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
    if q.best == NONE:
        return True
    split = &q.split
    if q.best < split.score or (q.best == split.score and run.column > split.column):
        return True
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
# columns with categories

cdef void reserve_groups(Search* q, int64_t count) noexcept nogil:
    cdef Groups* g = &q.groups
    if count <= g.capacity:
        return
    count = count + count // 2
    g.capacity = count
    g.rank = <uint32_t*>realloc(g.rank, count * sizeof(uint32_t))
    g.row = <int64_t*>realloc(g.row, count * sizeof(int64_t))
    g.n = <int64_t*>realloc(g.n, count * sizeof(int64_t))
    g.weight = <int64_t*>realloc(g.weight, count * sizeof(int64_t))
    g.target = <int64_t*>realloc(g.target, count * q.n_columns_of_target * sizeof(int64_t))
    g.order = <Keyed*>realloc(g.order, count * sizeof(Keyed))


cdef int64_t append_group(Search* q, uint32_t rank, int64_t row) noexcept nogil:
    """An empty group behind the last one."""
    cdef Groups* g = &q.groups
    cdef int64_t i = g.count
    reserve_groups(q, i + 1)
    g.rank[i] = rank
    g.row[i] = row
    g.n[i] = 0
    g.weight[i] = 0
    memset(g.target + i * q.n_columns_of_target, 0, q.n_columns_of_target * sizeof(int64_t))
    g.count = i + 1
    return i


cdef void collect_groups(Search* q, const entry_t* entries, const Run* run) noexcept nogil:
    """The distinct ranks of a run with their sums, ascending; the fill code is one of them."""
    cdef const entry_t* e = entries + run.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef Groups* groups = &q.groups
    cdef int64_t n_fill = q.totals.n - run.length
    cdef int64_t fill = -1
    cdef int64_t g = -1
    cdef int64_t i, j, k, row, x
    cdef int64_t width = q.n_columns_of_target
    cdef uint32_t rank
    groups.count = 0
    for i in range(run.length):
        rank = <uint32_t>(e[i] >> shift)
        row = e[i] & mask
        if n_fill > 0 and fill < 0 and rank > run.fill:
            fill = append_group(q, run.fill, -1)
            g = -1
        if g < 0 or groups.rank[g] != rank:
            g = append_group(q, rank, row)
        groups.n[g] += 1
        x = 1 if q.payload.weight == NULL else q.payload.weight[row]
        groups.weight[g] += x
        if by_class(q):
            groups.target[g * width + q.payload.label[row]] += x
        else:
            groups.target[g] += q.payload.label[row] if q.mode == COUNT else q.payload.target[row]
    if n_fill > 0:
        if fill < 0:
            fill = append_group(q, run.fill, -1)
        groups.n[fill] = q.totals.n
        groups.weight[fill] = q.totals.weight
        for k in range(width):
            groups.target[fill * width + k] = (
                q.class_totals[k] if by_class(q) else q.totals.target)
        for j in range(groups.count):
            if j != fill:
                groups.n[fill] -= groups.n[j]
                groups.weight[fill] -= groups.weight[j]
                for k in range(width):
                    groups.target[fill * width + k] -= groups.target[j * width + k]


cdef void search_groups(Search* q, int32_t column, uint32_t last_ordered) noexcept nogil:
    """Search a column given as groups; keep its best split if it beats q.split.

    Serves columns with categories, and every column whose statistics come as a histogram.
    """
    cdef Groups* g = &q.groups
    cdef int64_t first = 1 if g.count > 0 and g.rank[0] == 0 else 0
    cdef int64_t last = first
    cdef int64_t missing, i
    cdef Split* split = &q.split
    cdef int64_t words = 0
    q.best = NONE
    while last < g.count and g.rank[last] <= last_ordered:
        last += 1
    for missing in range(first + 1):
        if last > first:
            begin_pass(q, AT_MOST, missing)
            if missing:
                add_group(q, 0, 1)
            for i in range(first, last):
                add_group(q, i, 1)
                if i < last - 1 or last < g.count or (first == 1 and not missing):
                    consider(q, i, False)
            if last < g.count:
                # > v: the side is the right one, categories first; missing with the tested side
                begin_pass(q, ABOVE, missing)
                if first == 1 and not missing:
                    add_group(q, 0, 1)
                for i in range(last, g.count):
                    add_group(q, i, 1)
                for i in range(first, last - 1):
                    add_group(q, i, 1)
                    consider_mirrored(q, i)
                for i in range(last, g.count):
                    begin_pass(q, IN_SUBSET, missing)
                    if missing:
                        add_group(q, 0, 1)
                    add_group(q, i, 1)
                    if consider(q, i, False):
                        clear_subset(q)
                        add_to_subset(q, g.rank[i])
    if last == first and last < g.count:
        search_categories(q, first)
    if q.best == NONE:
        return
    if q.best < split.score or (q.best == split.score and column > split.column):
        return
    split.score = q.best
    split.column = column
    split.test = q.best_test
    split.missing_left = q.best_missing
    split.saw_missing = first
    split.boundary = 0
    split.beyond = 0
    split.boundary_row = -1
    split.beyond_row = -1
    if q.best_test != IN_SUBSET:
        split.boundary = g.rank[q.best_at]
        split.boundary_row = g.row[q.best_at]
        if q.best_at + 1 < last:
            split.beyond = g.rank[q.best_at + 1]
            split.beyond_row = g.row[q.best_at + 1]
        return
    if first == 1 and q.best_missing:
        add_to_subset(q, 0)
    words = q.subset_words
    if words > q.split_subset_words:
        q.split_subset = <uint64_t*>realloc(q.split_subset, words * sizeof(uint64_t))
    q.split_subset_words = words
    memcpy(q.split_subset, q.subset, words * sizeof(uint64_t))


cdef inline bint consider_mirrored(Search* q, int64_t at) noexcept nogil:
    """The side is what the test sends right, but candidates come in ascending order."""
    if not permitted(q):
        return False
    return offer(q, score_side(q, True), at, False)


cdef void clear_subset(Search* q) noexcept nogil:
    """An empty subset with a bit for every rank of the groups."""
    cdef int64_t words = (q.groups.rank[q.groups.count - 1] >> 6) + 1
    if words > q.subset_words:
        q.subset = <uint64_t*>realloc(q.subset, words * sizeof(uint64_t))
    q.subset_words = words
    memset(q.subset, 0, words * sizeof(uint64_t))


cdef inline void add_to_subset(Search* q, uint32_t rank) noexcept nogil:
    q.subset[rank >> 6] |= <uint64_t>1 << (rank & 63)


cdef int compare_keys(const void* a, const void* b) noexcept nogil:
    cdef const Keyed* x = <const Keyed*>a
    cdef const Keyed* y = <const Keyed*>b
    if x.key != y.key:
        return -1 if x.key < y.key else 1
    return -1 if x.group < y.group else 1 if x.group > y.group else 0


cdef void scan_in_order(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Prefixes of groups.order[0..count) against the rest, missing on either side."""
    cdef Groups* g = &q.groups
    cdef int64_t missing, i, best
    cdef bint found
    qsort(g.order, count, sizeof(Keyed), compare_keys)
    for missing in range(first + 1):
        begin_pass(q, IN_SUBSET, missing)
        found = False
        best = 0
        if missing:
            add_group(q, 0, 1)
        for i in range(count):
            add_group(q, g.order[i].group, 1)
            if i < count - 1 or (first == 1 and not missing):
                if consider(q, i, False):
                    found = True
                    best = i
        if found:
            clear_subset(q)
            for i in range(best + 1):
                add_to_subset(q, g.rank[g.order[i].group])


cdef void search_categories(Search* q, int64_t first) noexcept nogil:
    """Subsets of the categories first..count of the groups; group 0 is missing when first is 1."""
    cdef Groups* g = &q.groups
    cdef int64_t count = g.count - first
    cdef int64_t i
    cdef int64_t K = q.criterion.n_classes
    if not by_class(q) or K == 2:
        for i in range(count):
            g.order[i].group = first + i
            if by_class(q):
                g.order[i].key = (<double>g.target[(first + i) * K + 1]
                                  / <double>g.weight[first + i])
            else:
                g.order[i].key = <double>g.target[first + i] / <double>g.weight[first + i]
        scan_in_order(q, first, count)
    elif count <= 11 and (<int64_t>1 << (count - 1)) - 1 <= MAX_SUBSETS:
        search_subsets(q, first, count)
    else:
        order_by_component(q, first, count)
        scan_in_order(q, first, count)
        search_one_versus_rest(q, first, count)


cdef void search_subsets(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Every subset that lacks the last category, in Gray code order: one group moves a step."""
    cdef Groups* g = &q.groups
    cdef int64_t missing, step, bit, i, gray, best
    cdef bint found
    for missing in range(first + 1):
        begin_pass(q, IN_SUBSET, missing)
        found = False
        best = 0
        gray = 0
        if missing:
            add_group(q, 0, 1)
        for step in range(1, <int64_t>1 << (count - 1)):
            bit = 0
            while not (step >> bit) & 1:
                bit += 1
            gray ^= <int64_t>1 << bit
            add_group(q, first + bit, 1 if (gray >> bit) & 1 else -1)
            if consider(q, gray, False):
                found = True
                best = gray
        if first == 1 and not missing:
            begin_pass_again(q)
            for i in range(count):
                add_group(q, first + i, 1)
            gray = (<int64_t>1 << count) - 1
            if consider(q, gray, False):
                found = True
                best = gray
        if found:
            clear_subset(q)
            for i in range(count):
                if (best >> i) & 1:
                    add_to_subset(q, g.rank[first + i])


cdef inline void begin_pass_again(Search* q) noexcept nogil:
    begin_pass(q, q.test, q.missing)


cdef void search_one_versus_rest(Search* q, int64_t first, int64_t count) noexcept nogil:
    cdef Groups* g = &q.groups
    cdef int64_t missing, i
    for missing in range(first + 1):
        for i in range(first, g.count):
            begin_pass(q, IN_SUBSET, missing)
            if missing:
                add_group(q, 0, 1)
            add_group(q, i, 1)
            if consider(q, i, False):
                clear_subset(q)
                add_to_subset(q, g.rank[i])


cdef void order_by_component(Search* q, int64_t first, int64_t count) noexcept nogil:
    """Keys: projections of the class shares on their first principal component.

    Weighted covariance of the shares and a power iteration with a fixed number of steps from the
    class of the largest variance, all in one order of operations. O(count * K + K * K * (count +
    steps)).
    """
    cdef Groups* g = &q.groups
    cdef int64_t K = q.criterion.n_classes
    cdef double* covariance = q.component
    cdef double* mean = q.component + K * K
    cdef double* axis = mean + K
    cdef double* image = axis + K
    cdef int64_t i, a, b, step
    cdef double w, x, norm, total = 0
    memset(covariance, 0, K * (K + 3) * sizeof(double))
    for i in range(first, g.count):
        total += <double>g.weight[i]
        for a in range(K):
            mean[a] += <double>g.target[i * K + a]
    for a in range(K):
        mean[a] = mean[a] / total
    for i in range(first, g.count):
        w = <double>g.weight[i]
        for a in range(K):
            x = <double>g.target[i * K + a] / w - mean[a]
            for b in range(K):
                covariance[a * K + b] += w * x * (<double>g.target[i * K + b] / w - mean[b])
    b = 0
    for a in range(1, K):
        if covariance[a * K + a] > covariance[b * K + b]:
            b = a
    axis[b] = 1.0
    for step in range(POWER_STEPS):
        norm = 0
        for a in range(K):
            x = 0
            for b in range(K):
                x += covariance[a * K + b] * axis[b]
            image[a] = x
            norm += x * x
        if norm <= 0:
            break
        norm = sqrt(norm)
        for a in range(K):
            axis[a] = image[a] / norm
    for i in range(count):
        x = 0
        for a in range(K):
            x += axis[a] * (<double>g.target[(first + i) * K + a] / <double>g.weight[first + i])
        g.order[i].group = first + i
        g.order[i].key = x
