"""Scans of rows, or bins of rows, that add to the fields of several outputs.

Scores of several numbers take two products of 128 bits for each output. Few boundaries reach the
best one so far, and doubles tell which may (`may_reach`).

Where there are registers of 256 bits and a scan goes up, a first look adds up doubles, four outputs
at a time, and keeps the boundaries that may be the best of the column (`outputs.h`). A second one
adds up integers as far as these, and scores them.
"""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport SQUARED_OUTPUTS, entry_t
from dtrees.core.histogram._layout cimport add_outputs
from dtrees.core.search._criterion cimport most_of_difference
from dtrees.core.search._number_scan cimport least_reaching
from dtrees.core.search._search cimport (
    Search, add_bin, add_row, allowed_score, consider, is_bound, offer
)

cdef extern from "search/outputs.h" nogil:
    ctypedef struct OutputScan:
        int lanes
        double W
        double w
        double lost
        double reach
        const double* numbers
        const int64_t* weight
        const double* mean
        double* sums
        int64_t* at
        double* upper
        int n_kept
    void look_at_outputs(OutputScan*, const void*, bint, int64_t, int64_t) noexcept


cdef inline bint may_reach(const Search* q, double reach) noexcept nogil:
    """Whether the score of the boundary beside the side may reach, of several numbers; else True.

    reach : as of `least_reaching`
    """
    cdef double found = 0
    cdef double w, D
    cdef int o
    if q.criterion.impurity != SQUARED_OUTPUTS:
        return True
    w = <double>q.w
    for o in range(q.criterion.n_outputs):
        D = most_of_difference(q.W, <double>q.class_totals[o], w, <double>q.side[o])
        D = D * q.criterion.scale[o]
        found += D * D
    return found * (1 + 2.0**-40) >= reach * (w * <double>(q.totals.weight - q.w))


cdef void scan_bins_of_outputs(Search* q, int64_t first, int64_t end) noexcept nogil:
    """The boundaries behind the bins first..end."""
    cdef double reach = least_reaching(q)
    cdef int64_t i
    for i in range(first, end):
        add_bin(q, i, 1)
        if may_reach(q, reach) and consider(q, i, False):
            reach = least_reaching(q)


cdef void scan_outputs(Search* q, const entry_t* entries, int64_t begin, int64_t end, bint down,
                       bint is_closed) noexcept nogil:
    """Scan entries begin..end, and offer the boundaries between them; `down`: from the end.

    is_closed : the sums of the side are needed afterwards.
    """
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef double reach
    cdef int64_t i, at
    if (not down and q.of_row.numbers != NULL and q.min_weight <= 1 and not is_bound(q)
            and PATH_IS_ON("outputs_in_registers")
            and scan_in_registers(q, entries + begin, begin, end - begin, is_closed)):
        return
    reach = least_reaching(q)
    for i in range(end - begin):
        at = end - 1 - i if down else begin + i
        if (i > 0 and entries[at] >> shift != entries[at + 1 if down else at - 1] >> shift
                and may_reach(q, reach) and consider(q, at + 1 if down else at, down)):
            reach = least_reaching(q)
        add_row(q, entries[at] & mask)


cdef void begin_scan(OutputScan* t, const Search* q) noexcept nogil:
    """Take the sums of the node and of the side.

    A sum of doubles is off by a rounding of each term, of which there are as many as rows; none is
    beyond the largest number of a row.
    """
    cdef double n = <double>(q.totals.n + 4)
    cdef double of_output = n * 2.0**-52 * (n * q.of_row.largest)
    cdef int m = q.criterion.n_outputs
    cdef int o
    t.n_kept = 0
    t.lanes = q.of_row.n_lanes
    t.W = q.W
    t.w = <double>q.w
    t.lost = of_output * of_output * m * 2.0**23
    t.reach = least_reaching(q) / q.W / q.W
    t.numbers = q.of_row.numbers
    t.weight = q.of_row.weight
    t.mean = q.means
    for o in range(t.lanes):
        t.sums[o] = 0
    for o in range(m if q.n > 0 else 0):
        t.sums[o] = <double>q.side[o] * q.criterion.scale[o] - t.w * t.mean[o]


cdef inline void move_rows(Search* q, const entry_t* e, int64_t n) noexcept nogil:
    """Move the rows of n entries to the side."""
    cdef entry_t mask = (<entry_t>1 << 4 * sizeof(entry_t)) - 1
    cdef int64_t i, w
    for i in range(n):
        w = 1 if q.of_row.weight == NULL else q.of_row.weight[e[i] & mask]
        q.w += w
        add_outputs(q.side, &q.of_row, e[i] & mask, w)
    q.n += n
    q.side_is_clear = False


cdef bint scan_in_registers(Search* q, const entry_t* e, int64_t begin, int64_t m,
                            bint is_closed) noexcept nogil:
    """Scan m entries upwards; False: too many boundaries may be the best, and nothing is done."""
    cdef int64_t first = min(max(q.min_rows - q.n, 1), m)
    cdef int64_t stop = min(q.totals.n - q.min_rows - q.n + 1, m)
    cdef OutputScan t
    cdef int64_t i = 0
    cdef int k
    begin_scan(&t, q)
    if first < stop:
        look_at_outputs(&t, e, entry_t is not uint32_t, first, stop)
    if t.n_kept < 0:
        return False
    for k in range(t.n_kept):
        if t.upper[k] < t.reach:
            continue
        move_rows(q, e + i, t.at[k] - i)
        i = t.at[k]
        offer(q, allowed_score(q, False), begin + i, False)
    if is_closed:
        move_rows(q, e + i, m - i)
    return True
