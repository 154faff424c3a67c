"""The codes of intervals that are alive, one by one, for every member of a shared node.

The rows of these intervals are few. They are sorted by code once for all members; each member scans
those that it has, in the intervals that are alive for it, and adds the others as a whole::

    intervals    | . . . . . | 7   9   8 | . . . . |    alive for somebody
    entries                    r4  r9  r2  r7           their rows, by code: one sort
    member 0     + whole bins  r4      r2  r7   whole   those that it has
    member 1     + whole bins  r4  r9                   dead for it from here on

The scan is that of a tree that grows alone (`search._entry_scan`), which starts from the sums of
what lies before. So scores are the same doubles, and a tie is settled as there: missing values on
the right first, then the lowest code. Nothing here grows with the number of codes.

O(rows of the node + alive rows x members).
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free

from dtrees.core.data._columns cimport STORED_U16, Column
from dtrees.core.data._memory cimport resize
from dtrees.core.data._structs cimport AT_MOST
from dtrees.core.search._entry_scan cimport LAST, NOTHING, scan
from dtrees.core.search._search cimport NONE, Search, add_bin, begin_column, begin_pass, take_best
from dtrees.core.stores.presorted._sorted_entries cimport sort_by_code
from dtrees.core.stores.shared._shared_histogram cimport bins_of_member
from dtrees.core.stores.shared._shared_entries cimport weigh_entries
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef enum:
    PICKED = 4096           # rows that are looked at before there is room for those that are alive


cdef void free_alive(SharedStore* s) noexcept nogil:
    free(s.alive.entries)
    free(s.alive.scratch)
    free(s.alive.who)
    free(s.alive.row)
    free(s.alive.own)


cdef void scan_alive(SharedStore* s, const SharedNode* node, int32_t number,
                     int64_t width) noexcept nogil:
    """Search the intervals of a column that are alive for a member, for this member.

    The column is counted by interval, `width` of them, and `s.alive.of_interval` is filled.
    """
    cdef const Column* column = s.store.params.columns + number
    cdef Search* q
    cdef int m
    s.store.work += node.n + node.n_some
    if not gather_alive(s, node, column, <const uint8_t*>s.intervals[number].column.codes):
        s.store.out_of_memory = True
        return
    sort_alive(s, column.n_codes)
    for m in range(node.n_members):
        if not s.alive.members >> m & 1:
            continue
        q = s.searches[node.set_of[m]]
        bins_of_member(s, q, node, m, width)
        take_rows(s, m)
        if not weigh_entries(s, node, s.alive.own, s.alive.n_own, m):
            return
        scan_member(s, q, number, m)
        s.store.work += s.alive.n


# ---------------------------------------------------------------------------------------------
# rows

cdef inline int64_t pick_alive(const uint8_t* numbers, const uint32_t* rows, int64_t n,
                               const uint64_t* of_interval, uint32_t* picked) noexcept nogil:
    """Which of n rows are in intervals that are alive; without a branch."""
    cdef int64_t found = 0
    cdef int64_t i
    for i in range(n):
        picked[found] = <uint32_t>i
        found += of_interval[numbers[rows[i]]] != 0
    return found


cdef bint gather_alive(SharedStore* s, const SharedNode* node, const Column* column,
                       const uint8_t* numbers) noexcept nogil:
    """The alive rows of a node: code, number, and a bit for each member that has them, in an
    interval that is alive for it. False without memory."""
    s.alive.n = 0
    return (gather(s, column, numbers, node.rows, node.n, node.cell, node.without, NULL)
            and gather(s, column, numbers, node.some, node.n_some, NULL, NULL, node.who))


cdef inline bint gather(SharedStore* s, const Column* column, const uint8_t* numbers,
                        const uint32_t* rows, int64_t n_rows, const uint8_t* cell,
                        const uint64_t* without, const uint64_t* who) noexcept nogil:
    """Those of some rows, which have a cell, or members that have them."""
    cdef uint32_t picked[PICKED]
    cdef int64_t first = 0
    cdef int64_t found, i, k, n
    cdef uint32_t row
    cdef uint64_t mine
    while first < n_rows:
        found = pick_alive(numbers, rows + first, min(PICKED, n_rows - first),
                           s.alive.of_interval, picked)
        if not reserve_alive(s, s.alive.n + found):
            return False
        n = s.alive.n
        for k in range(found):
            i = first + picked[k]
            row = rows[i]
            mine = ~without[cell[i]] if who == NULL else who[i]
            mine &= s.alive.of_interval[numbers[row]]
            s.alive.entries[n] = <uint64_t>code_in(column, row) << 32 | <uint64_t>n
            s.alive.row[n] = row
            s.alive.who[n] = mine
            n += mine != 0
        s.alive.n = n
        first += PICKED
    return True


cdef inline uint32_t code_in(const Column* column, uint32_t row) noexcept nogil:
    """The code of a row in a column that has intervals."""
    if column.storage == STORED_U16:
        return (<const uint16_t*>column.codes)[row]
    return (<const uint32_t*>column.codes)[row]


cdef bint reserve_alive(SharedStore* s, int64_t n) noexcept nogil:
    """Room for so many alive rows, with those that are there; False without memory."""
    cdef int64_t room = n + n // 2 + 64
    if n < s.alive.room:
        return True
    if not (resize(<void**>&s.alive.entries, room * sizeof(uint64_t))
            and resize(<void**>&s.alive.scratch, room * sizeof(uint64_t))
            and resize(<void**>&s.alive.who, room * sizeof(uint64_t))
            and resize(<void**>&s.alive.row, room * sizeof(uint32_t))
            and resize(<void**>&s.alive.own, room * sizeof(uint64_t))):
        return False
    s.alive.room = room
    return True


cdef void sort_alive(SharedStore* s, uint32_t n_codes) noexcept nogil:
    """Sort the alive rows by code; entries get the rows, and `who` the same order."""
    cdef uint64_t* entries = s.alive.entries
    cdef uint64_t* who = s.alive.scratch
    cdef int64_t i
    cdef uint32_t k
    sort_by_code(entries, s.alive.scratch, s.alive.n, n_codes)
    for i in range(s.alive.n):
        k = <uint32_t>entries[i]
        who[i] = s.alive.who[k]
        entries[i] = entries[i] >> 32 << 32 | s.alive.row[k]
    s.alive.scratch = s.alive.who
    s.alive.who = who


# ---------------------------------------------------------------------------------------------
# one member

cdef void take_rows(SharedStore* s, int member) noexcept nogil:
    """The entries that a member has, in intervals that are alive for it."""
    cdef const uint64_t* entries = s.alive.entries
    cdef const uint64_t* who = s.alive.who
    cdef uint64_t* own = s.alive.own
    cdef int64_t n = 0
    cdef int64_t i
    for i in range(s.alive.n):
        own[n] = entries[i]
        n += who[i] >> member & 1
    s.alive.n_own = n


cdef void scan_member(SharedStore* s, Search* q, int32_t number, int member) noexcept nogil:
    """Offer the boundaries in intervals that are alive for a member; its bins are all intervals."""
    cdef uint64_t* own = s.alive.own
    cdef int64_t first = 1 if q.bins.count > 0 and q.bins.rank[0] == 0 else 0
    cdef int64_t missing
    # Equal or better ones are sought only: a boundary between intervals scores more than this.
    cdef double floor = s.best[member] if s.best[member] > 0 else NONE
    begin_column(q, number)
    q.best = floor
    for missing in range(first + 1):
        begin_pass(q, AT_MOST, missing)
        if missing:
            add_bin(q, 0, 1)
        scan_intervals(s, q, member, first, first == 1 and not missing)
    if q.best > floor and take_best(q, number, first):
        if q.best_at == LAST:
            q.split.boundary = <uint32_t>(own[s.alive.n_own - 1] >> 32)
        else:
            q.split.boundary = <uint32_t>(own[q.best_at - 1] >> 32)
            q.split.beyond = <uint32_t>(own[q.best_at] >> 32)


cdef void scan_intervals(SharedStore* s, Search* q, int member, int64_t first,
                         bint close) noexcept nogil:
    """One pass over the intervals from `first` on; `close`: all of them are a candidate too."""
    cdef const uint32_t* rank = q.bins.rank
    cdef int64_t begin = 0
    cdef int64_t end
    cdef int64_t i = first
    while i < q.bins.count:
        if not s.alive.of_interval[rank[i]] >> member & 1:
            add_bin(q, i, 1)
            i += 1
            continue
        end = begin
        while i < q.bins.count and s.alive.of_interval[rank[i]] >> member & 1:
            end += q.bins.n[i]
            i += 1
        q.side_is_clear = False  # by what is added, or for all that the scan may know
        scan(q, <const uint64_t*>s.alive.own, begin, end,
             LAST if close and i == q.bins.count else NOTHING, False, False, 0)
        begin = end
