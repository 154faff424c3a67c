"""Distributions of the targets in the leaves of a row: quantiles, and shares up to values.

The rows of a leaf have shares that add up to one, in fixed point. So sums over trees are exact in
any order, and the distribution of a row follows from the rows of its leaves::

    leaf of tree 0      targets   1.5  2.0  7.0     shares   1/3  1/3  1/3
    leaf of tree 1      targets   2.0  2.5          shares   3/4  1/4
    both                targets   1.5  2.0  2.5  7.0
                        up to     .17  .71  .83  1

Targets are numbers of the distinct ones, their ranks. Rows are not sorted: shares are summed up in
buckets of ranks, and the rows of the bucket that holds a quantile are looked at once more.
O(rows of the leaves) for a row.
"""
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef enum:
    N_BUCKETS = 256
    FEW_ROWS = 24           # that are sorted
    N_PLACES = 4            # for rows: all of them, and those of a bucket in a bucket of 32 bits

cdef struct Row:
    uint32_t rank
    int64_t share

cdef struct Range:
    # Of ranks, in buckets.
    uint32_t least
    uint32_t most
    int shift


cdef class LeafTable:
    """Rows of all leaves of a forest.

    Parameters
    ----------
    start : int64 (n_nodes + 1,)
        Where the rows of each node of all trees begin; inner nodes have none, leaves some.
    first_node : int64 (n_trees,)
        Number of the root of each tree among all nodes.
    ranks : uint32 (n,)
        Of the targets of the rows, ascending in each leaf.
    shares : int64 (n,)
        What rows have of their leaf, in the unit that is wanted.
    """

    cdef const int64_t[::1] start
    cdef const int64_t[::1] first_node
    cdef const uint32_t[::1] ranks
    cdef const int64_t[::1] shares

    def __init__(self, start, first_node, ranks, shares):
        self.start, self.first_node, self.ranks, self.shares = start, first_node, ranks, shares

    def quantiles(self, const int32_t[:, :] leaves not None, const int64_t[::1] wanted not None,
                  uint32_t[:, ::1] found not None):
        """The least ranks up to which rows of leaves have so much.

        leaves : int32 (n_trees, n); wanted : int64 (n_quantiles,), ascending, positive and at most
        the shares of all trees; found : OUT uint32 (n, n_quantiles)
        """
        cdef int64_t n_wanted = wanted.shape[0]
        cdef Row* rows = <Row*>malloc(self.most_rows(leaves) * N_PLACES * sizeof(Row))
        cdef int64_t i
        if rows == NULL:
            raise MemoryError()
        with nogil:
            for i in range(leaves.shape[1] if n_wanted > 0 else 0):
                self.search(leaves, i, &wanted[0], n_wanted, rows, &found[i, 0])
        free(rows)

    def sums(self, const int32_t[:, :] leaves not None, const int32_t[::1] bins not None,
             int64_t[:, ::1] found not None):
        """Shares of the rows of leaves, summed up in bins of their ranks.

        bins : int32 (n_ranks,), below the width of found; found : OUT int64 (n, n_bins), zeros
        """
        cdef int64_t node, i, j, t
        with nogil:
            for i in range(leaves.shape[1]):
                for t in range(leaves.shape[0]):
                    node = self.first_node[t] + leaves[t, i]
                    for j in range(self.start[node], self.start[node + 1]):
                        found[i, bins[self.ranks[j]]] += self.shares[j]

    cdef int64_t most_rows(self, const int32_t[:, :] leaves) noexcept nogil:
        """Rows in the leaves of a row, at most; one more."""
        cdef int64_t most = 0
        cdef int64_t n, node, i, t
        for i in range(leaves.shape[1]):
            n = 0
            for t in range(leaves.shape[0]):
                node = self.first_node[t] + leaves[t, i]
                n += self.start[node + 1] - self.start[node]
            most = max(most, n)
        return most + 1

    cdef void search(self, const int32_t[:, :] leaves, int64_t i, const int64_t* wanted,
                     int64_t n_wanted, Row* rows, uint32_t* found) noexcept nogil:
        """As `select`, of the rows of the leaves of row i; only those of wanted buckets are copied.

        rows : memory for them
        """
        cdef int64_t[N_BUCKETS] sums
        cdef uint32_t[N_BUCKETS] is_wanted
        cdef Range span = Range(~<uint32_t>0, 0, 0)
        cdef int64_t n = 0
        cdef int64_t bucket = 0
        cdef int64_t below = 0
        cdef int64_t node, j, k, t
        for t in range(leaves.shape[0]):
            node = self.first_node[t] + leaves[t, i]
            span.least = min(span.least, self.ranks[self.start[node]])
            span.most = max(span.most, self.ranks[self.start[node + 1] - 1])
        set_shift(&span)
        memset(sums, 0, sizeof(sums))
        memset(is_wanted, 0, sizeof(is_wanted))
        for t in range(leaves.shape[0]):
            node = self.first_node[t] + leaves[t, i]
            for j in range(self.start[node], self.start[node + 1]):
                sums[(self.ranks[j] - span.least) >> span.shift] += self.shares[j]
        for k in range(n_wanted):
            while bucket < N_BUCKETS - 1 and below + sums[bucket] < wanted[k]:
                below += sums[bucket]
                bucket += 1
            is_wanted[bucket] = 1
        for t in range(leaves.shape[0]):
            node = self.first_node[t] + leaves[t, i]
            for j in range(self.start[node], self.start[node + 1]):
                if is_wanted[(self.ranks[j] - span.least) >> span.shift]:
                    rows[n] = Row(self.ranks[j], self.shares[j])
                    n += 1
        split(rows, n, &span, sums, 0, wanted, n_wanted, found)


cdef inline void set_shift(Range* span) noexcept nogil:
    span.shift = 0
    while (span.most - span.least) >> span.shift >= N_BUCKETS:
        span.shift += 1


cdef void select(Row* rows, int64_t n, int64_t below, const int64_t* wanted, int64_t n_wanted,
                 uint32_t* found) noexcept nogil:
    """Ranks up to which rows have at least what is wanted, with `below` that others have.

    wanted : ascending; rows : with memory behind them
    """
    cdef int64_t[N_BUCKETS] sums
    cdef Range span = Range(~<uint32_t>0, 0, 0)
    cdef int64_t i = 0
    cdef int64_t k
    if n <= FEW_ROWS:
        sort_rows(rows, n)
        for k in range(n_wanted):
            while i < n - 1 and below + rows[i].share < wanted[k]:
                below += rows[i].share
                i += 1
            found[k] = rows[i].rank
        return
    for i in range(n):
        span.least = min(span.least, rows[i].rank)
        span.most = max(span.most, rows[i].rank)
    set_shift(&span)
    memset(sums, 0, sizeof(sums))
    for i in range(n):
        sums[(rows[i].rank - span.least) >> span.shift] += rows[i].share
    split(rows, n, &span, sums, below, wanted, n_wanted, found)


cdef void split(Row* rows, int64_t n, const Range* span, const int64_t* sums, int64_t below,
                const int64_t* wanted, int64_t n_wanted, uint32_t* found) noexcept nogil:
    """As `select`, of rows whose shares are summed up; those of wanted buckets suffice."""
    cdef Row* inside = rows + n
    cdef int64_t bucket = 0
    cdef int64_t first = 0
    cdef int64_t i, end, n_inside
    while first < n_wanted:
        while bucket < N_BUCKETS - 1 and below + sums[bucket] < wanted[first]:
            below += sums[bucket]
            bucket += 1
        end = first + 1
        while end < n_wanted and wanted[end] <= below + sums[bucket]:
            end += 1
        n_inside = 0
        for i in range(n if span.shift > 0 else 0):  # without a branch
            inside[n_inside] = rows[i]
            n_inside += <int64_t>((rows[i].rank - span.least) >> span.shift) == bucket
        if n_inside > 0:
            select(inside, n_inside, below, wanted + first, end - first, found + first)
        else:
            for i in range(first, end):
                found[i] = span.least + <uint32_t>bucket
        first = end


cdef void sort_rows(Row* rows, int64_t n) noexcept nogil:
    """Few rows by their ranks, ascending."""
    cdef Row row
    cdef int64_t i, j
    for i in range(1, n):
        row = rows[i]
        j = i
        while j > 0 and rows[j - 1].rank > row.rank:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row
