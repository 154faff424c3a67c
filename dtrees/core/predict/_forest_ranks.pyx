"""Which of its column's thresholds each node of a packed forest has.

The thresholds of a slot are sorted by their bits, digit by digit, and equal ones have one rank. A
double's bits, the sign turned over and those of negative numbers complemented, are in the order of
the numbers; digits that all thresholds have in common, as those of float32 at the lower end, are
skipped::

    thresholds   7.0  0.5  1.25  0.5              of nodes 4, 9, 11, 30
    sorted       0.5  0.5  1.25  7.0
    rank         0    0    1     2                limits of nodes 9, 30: 1; of node 11: 2; of 4: 3

Slots do not depend on each other. O(thresholds).
"""
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.predict._forest_nodes cimport (
    GONE_LEFT, IS_ABOVE, IS_OTHER, UNSEEN_LEFT, ForestNodes, Rule
)

cdef enum:
    INSERTED = 32               # thresholds that are sorted by insertion
    FEW = 4_096                 # that are sorted by digits of a byte
    BYTE = 8
    DIGIT = 11
    MOST_COUNTS = 6 << DIGIT    # of all digits

cpdef enum:
    MOST_THRESHOLDS = 65532

cdef struct Ranked:
    uint64_t key
    int64_t node

cdef union Bits:
    double number
    uint64_t bits


cdef inline uint64_t key_of(double threshold) noexcept nogil:
    """Ascends as thresholds do; both zeros are one, and what is no number is above all."""
    cdef Bits both
    both.number = threshold + 0.0
    if threshold != threshold:
        return ~<uint64_t>0
    return ~both.bits if both.bits >> 63 else both.bits | (<uint64_t>1 << 63)


cdef inline double number_of(uint64_t key) noexcept nogil:
    cdef Bits both
    both.bits = key & ~(<uint64_t>1 << 63) if key >> 63 else ~key
    return both.number


cdef void insert(Ranked* items, int64_t n) noexcept nogil:
    cdef int64_t i, j
    cdef Ranked item
    for i in range(1, n):
        item = items[i]
        j = i
        while j > 0 and item.key < items[j - 1].key:
            items[j] = items[j - 1]
            j -= 1
        items[j] = item


cdef Ranked* sort_by_digits(Ranked* items, Ranked* scratch, int64_t n, int width,
                            uint32_t* counts) noexcept nogil:
    """Sort by digits of `width` bits; where the sorted items are, of both places.

    counts : ``(64 / width, rounded up) << width``
    """
    cdef int n_digits = (63 + width) // width
    cdef uint64_t mask = (<uint64_t>1 << width) - 1
    cdef uint32_t* count
    cdef uint32_t before, own
    cdef int64_t i
    cdef uint64_t digit
    cdef int d
    memset(counts, 0, (n_digits << width) * sizeof(uint32_t))
    for i in range(n):
        for d in range(n_digits):
            counts[(<uint64_t>d << width) | ((items[i].key >> (d * width)) & mask)] += 1
    for d in range(n_digits):
        count = counts + (<int64_t>d << width)
        if count[(items[0].key >> (d * width)) & mask] == n:
            continue
        before = 0
        for i in range(<int64_t>mask + 1):
            own = count[i]
            count[i] = before
            before += own
        for i in range(n):
            digit = (items[i].key >> (d * width)) & mask
            scratch[count[digit]] = items[i]
            count[digit] += 1
        items, scratch = scratch, items
    return items


cdef inline void put_limit(ForestNodes forest, int64_t k, int64_t below,
                           int64_t n_distinct) noexcept nogil:
    """Say which codes of a number go left.

    below : how many of the thresholds are at most that of the node
    """
    cdef Rule* rule
    cdef int more
    if forest.rules == NULL:
        forest.nodes[k].limit = <uint16_t>below
        return
    rule = &forest.rules[k]
    rule.low = <uint16_t>below if rule.kind & IS_ABOVE else 0
    rule.limit = <uint16_t>(n_distinct + 1 - below if rule.kind & IS_ABOVE else below)
    if rule.kind & GONE_LEFT and not rule.kind & IS_OTHER:
        # a stretch that begins with what is missing, or with what was not there at fit
        more = 2 if rule.kind & UNSEEN_LEFT else 1
        rule.low = <uint16_t>(rule.low - more)
        rule.limit = <uint16_t>(rule.limit + more)


def rank_thresholds(ForestNodes forest not None, double[::1] thresholds,
                    const int64_t[::1] node_of, const int64_t[::1] first, int64_t begin,
                    int64_t end, int64_t[::1] n_distinct):
    """Write the limits of the nodes of some slots; callable from any thread, by stretches.

    Parameters
    ----------
    thresholds : float64 (n_compared,), IN by slots, OUT distinct ones, ascending, at the beginning
        of each slot
    node_of : int64 (n_compared,)
        Inner node of each.
    first : int64 (n_number_slots + 1,)
        Where the thresholds of a slot begin.
    begin, end : int
        The slots.
    n_distinct : OUT int64 (n_number_slots,)
        More than `MOST_THRESHOLDS`: limits of the slot do not count.
    """
    cdef int64_t s, i, n, a, distinct
    cdef int64_t most = 0
    cdef Ranked* items
    cdef Ranked* sorted_items
    cdef uint32_t* counts
    if not (
        0 <= begin <= end < first.shape[0] and n_distinct.shape[0] == first.shape[0] - 1
        and first[first.shape[0] - 1] == thresholds.shape[0] == node_of.shape[0]
    ):
        raise ValueError("The arrays of the forest differ in length.")
    for s in range(begin, end):
        most = max(most, first[s + 1] - first[s])
    if most >= 0x7FFFFFFF:
        raise ValueError(f"The forest compares a column {most} times.")
    items = <Ranked*>PyMem_RawMalloc(2 * most * sizeof(Ranked))
    counts = <uint32_t*>PyMem_RawMalloc(MOST_COUNTS * sizeof(uint32_t))
    if items == NULL or counts == NULL:
        PyMem_RawFree(items)
        PyMem_RawFree(counts)
        raise MemoryError()
    with nogil:
        for s in range(begin, end):
            a = first[s]
            n = first[s + 1] - a
            for i in range(n):
                items[i].key = key_of(thresholds[a + i])
                items[i].node = node_of[a + i]
            sorted_items = items
            if n <= INSERTED:
                insert(items, n)
            else:
                sorted_items = sort_by_digits(items, items + n, n, BYTE if n < FEW else DIGIT,
                                              counts)
            distinct = 0
            for i in range(n):
                if i == 0 or sorted_items[i].key != sorted_items[i - 1].key:
                    thresholds[a + distinct] = number_of(sorted_items[i].key)
                    distinct += 1
            n_distinct[s] = distinct
            if distinct > MOST_THRESHOLDS:
                continue
            distinct = 0
            for i in range(n):
                distinct += i == 0 or sorted_items[i].key != sorted_items[i - 1].key
                put_limit(forest, sorted_items[i].node, distinct, n_distinct[s])
    PyMem_RawFree(items)
    PyMem_RawFree(counts)
