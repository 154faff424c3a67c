"""Stored cells of sparse columns, row by row, and what a node counts of them.

    row 17     column 3, code 2 | column 40, code 1 | column 977, code 6        its stored cells

A node sums up the stored cells of its own rows by column, not those of all rows. What it reads it
adds to the cells of columns that store at least `min_rows` of its rows. Others have no split,
neither in the node nor below it. They are *out*, and nobody looks at their cells.

The fill cell of a column is what the node has beyond its stored cells. It is computed when the
column is searched. A larger child is its parent without the rows of the smaller one, whose stored
cells are taken off one by one: most columns of a text are in few rows, and stay as they are.

Most columns are not searched, as a bound says what they can gain at most in the larger child of a
node. With l2 on each side, a boundary between sides of gradients s, t and hessians a, b (l2 in
them) has the score::

    s*s/a + t*t/b  =  (s + t)**2 / (a + b)  +  (s - a*m)**2 * (1/a + 1/b),    m = (s + t) / (a + b)

The first summand is the same for all boundaries of a node. The root of the second one is what a
boundary is worth. Rows that leave the node take x of s and y of a, and m moves. So with a - y for
a, and so on, |s - a*m| grows by no more than ``|x| + y*|m| + (a - y) * |change of m|``.

    a column keeps     most     a bound of what its boundaries are worth
                       least    a bound of a, of the side without the fill cell

    after a search     what its best boundary is worth
    rows leave         the bound grows as above: a little, where few of them are stored
    next search        left out if the bound is below the score of the best column so far

Sides only lose rows, so a boundary that is allowed in a child was allowed in the node. A column
without one is *out*, with all nodes below. Columns with categories, missing values and those of
monotonic models have no bound, and are searched always.

Bounds are rounded upwards, by much more than doubles may err.
"""
import numpy as np

from libc.math cimport INFINITY, fabs, fmax, sqrt
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._columns cimport Column, last_ordered
from dtrees.core.data._structs cimport ALL_ORDERED, GRADIENT, RowStatistics, Totals
from dtrees.core.histogram._layout cimport GRADIENTS, Layout
from dtrees.core.search._criterion cimport NONE, Criterion
from dtrees.core.search._gradient_scan cimport scan_gradients
from dtrees.core.search._parameters cimport Limits
from dtrees.core.search._search cimport Search, begin_node, free_search, is_bound, new_search

cdef enum:
    CELL = 2                # words

cdef double UPWARDS = 1.0 + 1e-9
cdef double OUT = -1.0


cdef list stored_by_row(const Column* columns, const int32_t* column, int64_t n_columns,
                        const int64_t* first_cell, int64_t n_rows, StoredCells* out):
    """Sort the stored cells of some columns by their rows; returns the arrays to be kept.

    Stored cells of the fill code are left out. O(stored cells + rows).
    """
    cdef int64_t[::1] start = np.zeros(n_rows + 2, dtype=np.int64)
    cdef uint32_t[::1] cell
    cdef uint16_t[::1] place
    cdef const Column* own
    cdef const uint32_t* codes
    cdef int64_t c, i, at
    for c in range(n_columns):
        own = columns + column[c]
        codes = <const uint32_t*>own.codes
        for i in range(own.stored):
            start[own.rows[i] + 2] += codes[i] != own.fill
    for i in range(1, n_rows + 2):
        start[i] += start[i - 1]
    cell = np.empty(start[n_rows + 1] + 1, dtype=np.uint32)
    place = np.empty(start[n_rows + 1] + 1, dtype=np.uint16)
    for c in range(n_columns):
        own = columns + column[c]
        codes = <const uint32_t*>own.codes
        for i in range(own.stored):
            if codes[i] != own.fill:
                at = start[own.rows[i] + 1]
                cell[at] = <uint32_t>(first_cell[c] + codes[i])
                place[at] = <uint16_t>c
                start[own.rows[i] + 1] = at + 1
    out.n_columns = n_columns
    out.column = column
    out.first_cell = first_cell
    out.start = &start[0]
    out.cell = &cell[0]
    out.place = &place[0]
    return [start, cell, place]


cdef inline void add_words(int64_t* cell, uint64_t first, uint64_t second) noexcept nogil:
    """Rows beside hessians fill a word to its last bit, so words wrap around: no signs here."""
    cell[0] = <int64_t>(<uint64_t>cell[0] + first)
    cell[1] = <int64_t>(<uint64_t>cell[1] + second)


cdef inline uint64_t first_of(uint64_t derivatives, int shift) noexcept nogil:
    """A row and its hessian."""
    return (<uint64_t>1 << shift) + (derivatives & <uint64_t>0xFFFFFFFF)


cdef inline uint64_t second_of(uint64_t derivatives) noexcept nogil:
    """Its gradient."""
    return <uint64_t>(<int64_t>derivatives >> 32)


cdef inline void add_to_sums(StoredSums* sums, uint64_t derivatives, int shift) noexcept nogil:
    cdef int64_t gradient = <int64_t>derivatives >> 32
    sums.first += first_of(derivatives, shift)
    sums.second += <uint64_t>gradient
    sums.size += <uint64_t>(-gradient if gradient < 0 else gradient)


cdef void count_by_column(const StoredCells* stored, const Column* columns, const RowsOfNode* node,
                          StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Sum and count all rows of the table, which needs no look at what stands by row.

    O(stored cells + cells).
    """
    cdef const Column* column
    cdef const uint32_t* codes
    cdef StoredSums own
    cdef int64_t* cell
    cdef uint64_t derivatives
    cdef int64_t c, i
    for c in range(stored.n_columns):
        column = columns + stored.column[c]
        codes = <const uint32_t*>column.codes
        cell = histogram + CELL * stored.first_cell[c]
        memset(cell, 0, CELL * (<int64_t>column.n_codes + 1) * sizeof(int64_t))
        memset(&own, 0, sizeof(StoredSums))
        for i in range(column.stored):
            if codes[i] != column.fill:
                derivatives = node.derivatives[column.rows[i]]
                add_to_sums(&own, derivatives, node.shift)
                add_words(cell + CELL * <int64_t>codes[i], first_of(derivatives, node.shift),
                          second_of(derivatives))
        sums[c] = own


cdef void sum_by_row(const StoredCells* stored, const RowsOfNode* node,
                     StoredSums* sums) noexcept nogil:
    """Sums of the rows of a node in each column; O(stored cells of the rows + columns)."""
    cdef uint64_t derivatives
    cdef int64_t i, k, row
    memset(sums, 0, stored.n_columns * sizeof(StoredSums))
    for i in range(node.n):
        row = node.rows[i]
        derivatives = node.derivatives[row]
        for k in range(stored.start[row], stored.start[row + 1]):
            add_to_sums(sums + stored.place[k], derivatives, node.shift)


cdef inline void add_by_row(const StoredCells* stored, const RowsOfNode* node,
                            const StoredSums* sums, uint64_t sign,
                            int64_t* histogram) noexcept nogil:
    """Add rows to a histogram, or take them off, in columns that are not out; sign : 1 or -1."""
    cdef uint64_t first, second
    cdef int64_t i, k, row
    for i in range(node.n):
        row = node.rows[i]
        first = sign * first_of(node.derivatives[row], node.shift)
        second = sign * second_of(node.derivatives[row])
        for k in range(stored.start[row], stored.start[row + 1]):
            if not is_out(sums + stored.place[k]):
                add_words(histogram + CELL * <int64_t>stored.cell[k], first, second)


cdef void count_by_row(const StoredCells* stored, const Column* columns, const RowsOfNode* node,
                       const StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Count the rows of a node in the columns that are not out.

    histogram : of all columns; cells of these may hold anything.
    O(stored cells of the rows + cells of the columns that are counted).
    """
    cdef int64_t c
    for c in range(stored.n_columns):
        if not is_out(sums + c):
            memset(histogram + CELL * stored.first_cell[c], 0,
                   CELL * (<int64_t>columns[stored.column[c]].n_codes + 1) * sizeof(int64_t))
    add_by_row(stored, node, sums, 1, histogram)


cdef void take_off_stored(const StoredCells* stored, const RowsOfNode* node,
                          const StoredSums* sums, int64_t* histogram) noexcept nogil:
    """Take rows off a histogram that they are in. O(stored cells of the rows)."""
    add_by_row(stored, node, sums, <uint64_t>-1, histogram)


cdef void complete_column(const Column* column, const StoredSums* sums, const Totals* totals,
                          int shift, int64_t* cells) noexcept nogil:
    """Compute the fill cell of a column: what the node has beyond its stored cells."""
    cdef int64_t* fill = cells + CELL * <int64_t>column.fill
    fill[0] = <int64_t>((<uint64_t>totals.n << shift) + <uint64_t>totals.weight - sums.first)
    fill[1] = <int64_t>(<uint64_t>totals.target - sums.second)


# ---------------------------------------------------------------------------------------------
# bounds

cdef Removal removal_of(const Search* q, const Totals* lesser, const Totals* other,
                        int shift) noexcept nogil:
    """What a node loses that becomes its larger child."""
    cdef Removal found
    cdef double l2 = q.criterion.l2
    cdef double whole = <double>(lesser.weight + other.weight) + 2 * l2
    cdef double rest = <double>other.weight + 2 * l2
    cdef double before = <double>(lesser.target + other.target) / whole
    cdef double after = <double>other.target / rest
    found.shift = shift
    found.min_rows = q.min_rows
    found.l2 = l2
    found.floor = <double>q.min_weight + l2
    found.weight = rest
    found.taken = <double>lesser.weight
    found.step = fabs(before)
    found.moved = fabs(after - before) + 1e-13 * (fabs(after) + fabs(before))
    return found


cdef void begin_bounds_of(StoredSums* sums, int64_t n_columns, int shift,
                          int64_t min_rows) noexcept nogil:
    """Columns of few rows are out, of the others nothing is known."""
    cdef int64_t c
    for c in range(n_columns):
        sums[c].most = OUT if <int64_t>(sums[c].first >> shift) < min_rows else INFINITY
        sums[c].least = 0


cdef inline double weight_of(uint64_t first, int shift) noexcept nogil:
    return <double><int64_t>(first & ((<uint64_t>1 << shift) - 1))


cdef void take_off_sums(const Removal* removal, const StoredSums* taken, int64_t n_columns,
                        StoredSums* sums) noexcept nogil:
    """Take rows off the sums of a node, and raise its bounds. O(columns)."""
    cdef const Removal* r = removal
    cdef StoredSums* own
    cdef double stored, gone, least, rest
    cdef int64_t c
    for c in range(n_columns):
        own = sums + c
        if is_out(own):
            continue
        own.first -= taken[c].first
        own.second -= taken[c].second
        own.size -= taken[c].size
        if <int64_t>(own.first >> r.shift) < r.min_rows:
            own.most = OUT
            continue
        if own.most == INFINITY:
            continue
        stored = weight_of(own.first, r.shift) + r.l2
        gone = weight_of(taken[c].first, r.shift)
        least = own.least - gone
        if least < own.least / 1024:        # what rounding may have left of it
            least = 0
        least = fmax(least, r.floor)
        rest = fmax(r.weight - stored, r.floor)
        own.most = UPWARDS * (
            own.most * sqrt(fmax(1.0 + gone / least, 1.0 + r.taken / rest))
            + (<double>taken[c].size + gone * r.step) * sqrt(1.0 / least + 1.0 / rest)
            + r.moved * sqrt(stored + stored * stored / rest)
        )
        own.least = least


cdef double common_score(const Search* q) noexcept nogil:
    """What all boundaries of a node score at least."""
    return q.S * q.S / (q.W + 2 * q.criterion.l2)


cdef double least_side(const int64_t* cells, int64_t first, int64_t end, int64_t step, int shift,
                       int64_t min_rows) noexcept nogil:
    """The weight of the first codes that have enough rows together; inf: all have too few."""
    cdef uint64_t sums = 0
    while first != end:
        sums += <uint64_t>cells[CELL * first]
        if <int64_t>(sums >> shift) >= min_rows:
            return weight_of(sums, shift)
        first += step
    return INFINITY


cdef void note_searched(const Search* q, const Column* column, const int64_t* cells, int shift,
                        double common, StoredSums* sums) noexcept nogil:
    """Keep what a column is worth that was searched just now."""
    cdef double best = q.best
    if is_bound(q) or last_ordered(column) != ALL_ORDERED or column.fill == 0 or cells[0] != 0:
        return
    if best <= NONE:
        sums.most = OUT
        return
    sums.most = UPWARDS * sqrt(fmax(best * (1.0 + 1e-12) - common * (1.0 - 1e-12), 0.0))
    sums.least = q.criterion.l2 + fmax(<double>q.min_weight, min(
        least_side(cells, column.n_codes, column.fill, -1, shift, q.min_rows),
        least_side(cells, 1, column.fill, 1, shift, q.min_rows),
    ))


cdef int64_t most_promising(const StoredSums* sums, int64_t n_columns) noexcept nogil:
    """The column of the highest bound, of those that have one; -1: there is none."""
    cdef int64_t found = -1
    cdef int64_t c
    for c in range(n_columns):
        if sums[c].most < INFINITY and not is_out(sums + c) and (
            found < 0 or sums[c].most > sums[found].most
        ):
            found = c
    return found


def scores_of_child(const int64_t[:, ::1] sums, const int64_t[:, ::1] removed, int64_t fill,
                    int64_t min_rows, int64_t min_weight, double l2):
    """The best score of a column once rows are taken off, and what its bound says. For tests.

    Parameters
    ----------
    sums : int64 (n_codes + 1, 4)
        Of a node, by code: rows, hessian, gradient, gradient without signs.
    removed : int64 (n_codes + 1, 4)
        Of the rows that leave it.
    fill : int
        Of the column.

    Returns
    -------
    score, bound : float
        -1: there is no boundary; a bound of inf: it was not searched.
    """
    cdef int64_t n_codes = sums.shape[0] - 1
    cdef int shift = 40
    cdef Criterion criterion
    cdef Limits limits
    cdef Layout layout
    cdef RowStatistics of_row
    cdef Column column
    cdef Totals[3] totals        # of the node, of the rows that leave, of the child
    cdef StoredSums[3] of_column
    cdef Removal removal
    cdef Search* q
    cdef int64_t[:, :, ::1] cells = np.zeros((3, n_codes + 1, CELL), dtype=np.int64)
    cdef int64_t code, k
    cdef int64_t[4] of_code
    memset(&criterion, 0, sizeof(Criterion))
    memset(&limits, 0, sizeof(Limits))
    memset(&layout, 0, sizeof(Layout))
    memset(&of_row, 0, sizeof(RowStatistics))
    memset(&column, 0, sizeof(Column))
    memset(&totals[0], 0, sizeof(totals))
    memset(&of_column[0], 0, sizeof(of_column))
    criterion.impurity, criterion.l2, criterion.gain_unit = GRADIENT, l2, 1.0
    limits.min_rows, limits.min_weight = min_rows, min_weight
    layout.kind, layout.n_words, layout.shift = GRADIENTS, CELL, shift
    column.n_codes, column.n_ordered = <uint32_t>n_codes, <uint32_t>n_codes
    column.fill = <uint32_t>fill
    for k in range(3):
        for code in range(n_codes + 1):
            for i in range(4):
                of_code[i] = (sums[code, i] if k == 0 else removed[code, i] if k == 1
                              else sums[code, i] - removed[code, i])
            cells[k, code, 0] = of_code[0] << shift | of_code[1]
            cells[k, code, 1] = of_code[2]
            totals[k].n += of_code[0]
            totals[k].weight += of_code[1]
            totals[k].target += of_code[2]
            if code != fill:
                of_column[k].first += <uint64_t>cells[k, code, 0]
                of_column[k].second += <uint64_t>of_code[2]
                of_column[k].size += <uint64_t>of_code[3]
    q = new_search(&criterion, GRADIENTS, of_row, &limits)
    if q == NULL:
        raise MemoryError
    try:
        begin_bounds_of(&of_column[0], 1, shift, min_rows)
        begin_node(q, &totals[0], NULL, 0, NULL)
        scan_gradients(q, &layout, &cells[0, 0, 0], n_codes, 0)
        if not is_out(&of_column[0]):
            note_searched(q, &column, &cells[0, 0, 0], shift, common_score(q), &of_column[0])
        removal = removal_of(q, &totals[1], &totals[2], shift)
        take_off_sums(&removal, &of_column[1], 1, &of_column[0])
        begin_node(q, &totals[2], NULL, 0, NULL)
        scan_gradients(q, &layout, &cells[2, 0, 0], n_codes, 0)
        bound = -1.0
        if not is_out(&of_column[0]):
            bound = bound_of(&of_column[0], common_score(q))
        return (q.best if q.best > NONE else -1.0), bound
    finally:
        free_search(q)
