"""The best split of a node, from the entries of its columns.

The entries of a feature are in ascending order of rank, so the sums over a prefix are the
statistics of one side of a candidate split, and one pass over the feature scores them all; nothing
is sorted in a node ([SF] 2, [CV] 3.4). The sums are integers: which rows came first cannot matter.

    missing   below fill    fill code (not stored)     above fill
    |0 0 0|   1 2 2 | 3     . . . . . . . . . .        5 | 6 6 | 7|
              ---> up                                  <--- down

A sparse feature is scanned from both ends towards the rows that are not stored, so their sums are
never needed ([SP] 3, without the pass that gathers them). A dense feature is the special case in
which `up` goes all the way. Rows with a missing value are put on the right in a first pass and on
the left in a second one.

Columns with categories are searched by bins instead (`_bins`), and so are all columns where the
criterion is a function.

A boundary is named by `at`, the index in the feature of the first entry to its right, or by

    BEFORE_FILL   last entry below the fill code | rows of the fill code
    LAST          all that are not missing | missing
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t

from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport (
    AT_MOST, BY_FUNCTION, ENTROPY, GINI, SQUARED, PresortedFeature, Split, entry_t, int128_t
)
from dtrees.core.histogram._layout cimport CLASSES, COUNT, OUTPUTS, SUM, has_weights
from dtrees.core.search._absolute_scan cimport place_bins, scan_absolute
from dtrees.core.search._bins cimport bins_of_entries, search_bins
from dtrees.core.search._criterion cimport LAST_BITS, xlogx
from dtrees.core.search._number_scan cimport scan_numbers, scan_squared
from dtrees.core.search._output_scan cimport scan_outputs
from dtrees.core.search._search cimport (
    BUFFER, Boundaries, Search, add_row, add_to_class, begin_column, begin_pass, by_class, consider,
    entropy_score, flush, heavy_enough, is_bound, take_best
)
from dtrees.core.search._two_class_scan cimport scan_entropy, scan_two_classes


# scans of entries: the hot loops

cdef inline void add_one(const Search* q, int64_t* of_class, int64_t t, int64_t* squares,
                         int64_t* cross, bint entropy) noexcept nogil:
    """Move a row of weight 1, of a class of weight t, to the side: sums that fit 64 bits."""
    cdef int64_t old = of_class[0]
    if entropy:
        squares[0] += xlogx(q.criterion, old + 1) - xlogx(q.criterion, old)
        squares[0] += xlogx(q.criterion, t - old - 1) - xlogx(q.criterion, t - old)
    else:
        squares[0] += 2 * old + 1
        cross[0] += t
    of_class[0] = old + 1


cdef inline void scan_classes(Search* q, const entry_t* entries, int64_t begin, int64_t end,
                              int64_t close, bint down, bint weighted,
                              bint entropy) noexcept nogil:
    """Scan entries of classes; `down`, `weighted`, `entropy` are constants where this is inlined.

    One step of the outer loop adds the entries of one rank, then offers the boundary behind it.
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t w = q.w
    cdef int64_t least = q.min_rows - q.n
    cdef int64_t most = q.totals.n - q.min_rows - q.n
    cdef int64_t W = q.totals.weight
    cdef const uint16_t* label = q.of_row.label
    cdef const int64_t* weight = q.of_row.weight
    cdef const int64_t* totals = q.class_totals
    cdef int64_t* side = q.side
    cdef int c
    cdef int64_t squares = <int64_t>q.side_squares
    cdef int64_t cross = <int64_t>q.cross
    cdef int64_t node_squares = <int64_t>q.squares
    cdef int64_t m = end - begin
    cdef int64_t name, own, i = 0
    cdef int128_t wide_squares = q.side_squares
    cdef int128_t wide_cross = q.cross
    cdef double a, b
    cdef const entry_t* at = entries + (end - 1 if down else begin)
    cdef entry_t rank
    cdef bint was_clear = q.side_is_clear, bound = is_bound(q)
    cdef Boundaries* kept = q.boundaries
    while i < m:
        rank = at[0] >> shift
        while True:
            c = label[at[0] & mask]
            if weighted:
                own = weight[at[0] & mask]
                q.w += own
                if entropy:
                    add_to_class(q, c, own)
                else:  # sums of 128 bits in memory would be waited for
                    wide_squares += <int128_t>own * (2 * <int128_t>side[c] + own)
                    wide_cross += <int128_t>own * totals[c]
                    side[c] += own
            else:
                add_one(q, side + c, totals[c], &squares, &cross, entropy)
            i += 1
            at += -1 if down else 1
            if i == m or at[0] >> shift != rank:
                break
        name = end - i if down else begin + i
        if i == m:
            if close == NOTHING:
                break
            name = close
        if i < least or i > most:
            continue
        w = q.w if weighted else q.w + i
        if not heavy_enough(q, w):
            continue
        kept.w[q.buffered] = <double>(W - w if down else w)
        kept.rest[q.buffered] = <double>(w if down else W - w)
        kept.at[q.buffered] = <int32_t>name
        if entropy:
            kept.a[q.buffered] = entropy_score(
                q, q.side_squares if weighted else squares, W - w if down else w)
            if bound:
                kept.b[q.buffered] = <double>(totals[1] - side[1] if down else side[1])
        else:
            if weighted:
                a = <double>wide_squares
                b = <double>((q.squares - wide_cross) + (wide_squares - wide_cross))
            else:
                a = <double>squares
                b = <double>((node_squares - cross) + (squares - cross))
            kept.a[q.buffered] = b if down else a
            kept.b[q.buffered] = a if down else b
        q.buffered += 1
        if q.buffered == BUFFER:
            flush(q, down, True)
    q.n += m
    if not weighted:
        q.w += m
        q.side_squares = squares
        q.cross = cross
    elif not entropy:
        q.side_squares = wide_squares
        q.cross = wide_cross
    flush(q, down, True)
    q.side_is_clear = was_clear and m < q.criterion.n_classes
    if q.side_is_clear:
        for i in range(begin, end):
            side[label[entries[i] & mask]] = 0


cdef void scan(Search* q, const entry_t* entries, int64_t begin, int64_t end, int64_t close,
               bint down, bint distinct, uint32_t ones) noexcept nogil:
    """Pick the loop that was compiled for the cells, the direction and the feature."""
    if q.errors != NULL:
        scan_absolute(q, entries, begin, end, down)
        if close != NOTHING:
            consider(q, close, down)
    elif not by_class(q):
        if (entry_t is uint32_t and q.kind == COUNT and is_wide and not down and begin < end
                and PATH_IS_ON("two_class_scan")):
            scan_two_classes(q, entries, begin, end, ones, distinct)
        elif (entry_t is uint32_t and q.kind == SUM and q.criterion.impurity == SQUARED and is_wide
              and not down and begin < end and PATH_IS_ON("squared_scan")):
            scan_squared(q, entries, begin, end)
        else:
            scan_numbers(q, entries, begin, end, down, distinct)
        if close != NOTHING:
            consider(q, close, down)
    elif q.kind == OUTPUTS:
        scan_outputs(q, entries, begin, end, down, close != NOTHING)
        if close != NOTHING:
            consider(q, close, down)
    elif q.criterion.impurity == ENTROPY:
        if (entry_t is uint32_t and q.kind == CLASSES and q.criterion.n_classes == 2 and is_wide
                and not down and begin < end and not is_bound(q)
                and PATH_IS_ON("entropy_of_two_classes")):
            scan_entropy(q, entries, begin, end, ones, close != NOTHING)
            if close != NOTHING:
                consider(q, close, down)
        elif q.kind == CLASSES:
            scan_classes(q, entries, begin, end, close, down, False, True)
        else:
            scan_classes(q, entries, begin, end, close, down, True, True)
    elif q.kind == CLASSES:
        if down:
            scan_classes(q, entries, begin, end, close, True, False, False)
        else:
            scan_classes(q, entries, begin, end, close, False, False, False)
    else:
        scan_classes(q, entries, begin, end, close, down, True, False)


# ---------------------------------------------------------------------------------------------
# one column

cdef inline double bound_of_sparse(const Search* q, double m) noexcept nogil:
    """A score that no split with at most m unweighted rows on one side can exceed, for 4m <= n.

    Squared error: k rows on one side have |D| <= k * max |W y - S|, and k / (W - k) grows with k.
    To it comes what W s - k S loses, whose products may have more than 53 bits.
    Gini: with R = sum r*r over the k rows, the score is at most (T - R)/(W - k) + R/k, T the
    node's sum of squares; that grows with R <= k*k, and then with k while 4k <= W. A billionth is
    added for rounding.
    """
    cdef double low, high, largest
    cdef double lost = 0
    if q.criterion.impurity == SQUARED:
        if q.kind == COUNT:
            low = q.S
            high = q.W - q.S
        else:
            low = q.S - q.W * <double>q.totals.lowest
            high = q.W * <double>q.totals.highest - q.S
            largest = max(abs(<double>q.totals.lowest), abs(<double>q.totals.highest))
            lost = LAST_BITS * q.W * (abs(q.S) + q.W * largest)
        high = (high if high > low else low) + lost
        return 1.000000001 * high * high * m / (q.W - m)
    return 1.000000001 * ((<double>q.squares - m * m) / (q.W - m) + m)


cdef void pass_over_short(Search* q) noexcept nogil:
    """Set q.too_short: features with fewer entries cannot beat the split that was found."""
    cdef int64_t low = 1
    cdef int64_t high = q.totals.n // 4 + 1
    cdef int64_t middle
    if has_weights(q.kind) or (q.criterion.impurity != SQUARED and q.criterion.impurity != GINI):
        return
    if not PATH_IS_ON("short_sparse_columns"):
        return
    while low < high:
        middle = (low + high) >> 1
        if bound_of_sparse(q, <double>middle) < q.split.score:
            low = middle + 1
        else:
            high = middle
    q.too_short = low


cdef bint search_feature(Search* q, const entry_t* entries,
                         const PresortedFeature* feature, uint32_t ones) noexcept nogil:
    """Search one column; keep its best split in q.split if it beats what is there.

    ones : the least row of class 1 behind those of class 0, where there are two classes and entries
    of 32 bits.

    Returns False when the column is constant in the node (nothing to split, here or below).
    O(entries), plus the search over bins for columns with categories.
    """
    cdef const entry_t* e = entries + feature.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t m = feature.length
    cdef int64_t n_fill = q.totals.n - m
    cdef uint32_t lowest, highest
    cdef bint distinct = feature.distinct and not is_bound(q)   # else ends of classes are enough
    cdef int64_t n_missing = 0
    cdef int64_t fill_at, i, missing, close
    lowest = <uint32_t>(e[0] >> shift)
    highest = <uint32_t>(e[m - 1] >> shift)
    if lowest == highest and n_fill == 0:
        return False
    if (highest > feature.last_ordered or q.criterion.impurity == BY_FUNCTION
            or (n_fill > 0 and (feature.fill == 0 or feature.fill > feature.last_ordered))):
        bins_of_entries(q, entries, feature)
        if q.errors != NULL:
            place_bins(q, entries, feature)
        search_bins(q, feature.column, feature.last_ordered)
        return True
    begin_column(q, feature.column)
    if lowest == 0:
        n_missing = first_above(e, 0, m, 0)
    if n_fill == 0 or highest < feature.fill:
        fill_at = m
    elif lowest > feature.fill:
        fill_at = 0
    else:
        fill_at = first_above(e, n_missing, m, feature.fill)
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
            scan(q, e, n_missing, fill_at, close, False, distinct, ones)
        # down: the side is the right one
        if n_fill > 0:
            begin_pass(q, AT_MOST, missing)
            if n_missing > 0 and not missing:
                for i in range(n_missing):
                    add_row(q, e[i] & mask)
                consider(q, LAST, True)
            if fill_at < m:
                scan(q, e, fill_at, m, fill_at, True, distinct, ones)
    if take_best(q, feature.column, n_missing > 0):
        if n_fill > 0:
            pass_over_short(q)
        name_boundary(q, e, feature, n_fill > 0, fill_at)
    return True


cdef void name_boundary(Search* q, const entry_t* e, const PresortedFeature* feature, bint has_fill,
                        int64_t fill_at) noexcept nogil:
    """Give the split the ranks on both sides of its boundary, and rows that hold them.

    e : entries of the feature, of which fill_at lie below the fill code.
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef Split* split = &q.split
    cdef int64_t right = q.best_at
    if q.best_at == LAST:
        right = feature.length
    elif q.best_at == BEFORE_FILL:
        right = fill_at
        split.beyond = feature.fill
    if has_fill and right == fill_at and q.best_at != BEFORE_FILL:
        split.boundary = feature.fill
    else:
        split.boundary = <uint32_t>(e[right - 1] >> shift)
        split.boundary_row = e[right - 1] & mask
    if q.best_at >= 0:
        split.beyond = <uint32_t>(e[right] >> shift)
        split.beyond_row = e[right] & mask
