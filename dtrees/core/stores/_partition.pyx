"""Rows and entries of a node, stably partitioned between its children.

The column of the test marks each row of the node with its side; every other column then partitions
its feature by the marks. Order is kept on both sides, so both halves are in ascending order of rank
again and are features of the children:

    entries of a column before     a1 b1 c2 d2 e5 f7          (row, rank)
    side of the row                 L  R  L  L  R  L
    after                          a1 c2 d2 f7 | b1 e5

Left entries are written back in place, right ones to scratch and copied behind them: every entry
is written twice and a cursor moves, without a branch. Entries of 32 bits move eight at a time where
there are registers for it (`partition.h`; measured: .55 of the time), and so do rows. O(entries).
"""
import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport STORED_U16, STORED_U32, STORED_U8, Column, code_t, next_code
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport AT_MOST, IN_SUBSET, PresortedFeature, Split, entry_t

cdef extern from "stores/partition.h" nogil:
    void fill_in_front() noexcept
    int64_t partition_eights(uint32_t*, int64_t, const uint8_t*, uint32_t*) noexcept
    int64_t partition_eight_rows(uint32_t*, int64_t, const uint8_t*, uint32_t*) noexcept

cdef enum:
    LEAST_WIDE = 16         # entries of a feature that move eight at a time

fill_in_front()


cdef Route route_of(const Split* split, uint32_t last_ordered, const uint64_t* subset,
                    int64_t subset_words) noexcept nogil:
    """The test of a split on the ranks it was searched with."""
    cdef Route route
    route.subset = NULL
    route.subset_words = 0
    route.low = 0
    route.high = 0
    route.missing_left = split.missing_left
    if split.test == IN_SUBSET:
        route.subset = subset
        route.subset_words = subset_words
    elif split.test == AT_MOST:
        route.high = split.boundary
    else:
        route.low = split.boundary
        route.high = last_ordered
    return route


cdef void mark_feature(const Route* route, const entry_t* entries, const PresortedFeature* feature,
                       const uint32_t* rows, int64_t n, uint8_t* side) noexcept nogil:
    """side[row] = 1 where the row goes left.

    rows : the n rows of the node, needed where some hold the fill code.
    """
    cdef const entry_t* e = entries + feature.offset
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t i
    cdef uint8_t left
    if feature.length < n:
        left = goes_left(route, feature.fill)
        for i in range(n):
            side[rows[i]] = left
    for i in range(feature.length):
        side[e[i] & mask] = goes_left(route, <uint32_t>(e[i] >> shift))


cdef inline void mark_dense(const Route* route, const code_t* codes, const uint32_t* row_id,
                            const uint32_t* rows, int64_t n, uint8_t* side) noexcept nogil:
    cdef int64_t i
    if row_id != NULL:
        for i in range(n):
            side[rows[i]] = goes_left(route, codes[row_id[rows[i]]])
    else:
        for i in range(n):
            side[rows[i]] = goes_left(route, codes[rows[i]])


cdef void mark_codes(const Route* route, const Column* column, const uint32_t* row_id,
                     const uint32_t* rows, int64_t n, uint8_t* side) noexcept nogil:
    """side[row] = 1 where the row goes left, from the codes of the column.

    row_id : rows of the coded matrix, by row of the buffers; NULL: the same, and needed so for
    sparse columns, for which rows ascend.
    """
    cdef int64_t i
    cdef int64_t at = 0
    if column.storage == STORED_U8:
        mark_dense(route, <const uint8_t*>column.codes, row_id, rows, n, side)
    elif column.storage == STORED_U16:
        mark_dense(route, <const uint16_t*>column.codes, row_id, rows, n, side)
    elif column.storage == STORED_U32:
        mark_dense(route, <const uint32_t*>column.codes, row_id, rows, n, side)
    else:
        for i in range(n):
            side[rows[i]] = goes_left(route, next_code(column, rows[i], &at))


cdef int64_t partition_row_list(uint32_t* rows, int64_t n, const uint8_t* side,
                                uint32_t* scratch) noexcept nogil:
    """Rows that go left to the front, the others behind them, each in their order; returns how many
    went left.

    side : by row. scratch : (n,)
    """
    cdef int64_t left = 0
    cdef int64_t right = 0
    cdef int64_t i
    cdef uint32_t row
    cdef uint8_t is_left
    if is_wide and n >= LEAST_WIDE and PATH_IS_ON("partition_by_eight"):
        left = partition_eight_rows(rows, n, side, scratch)
        memcpy(rows + left, scratch, (n - left) * sizeof(uint32_t))
        return left
    for i in range(n):
        row = rows[i]
        is_left = side[row]
        rows[left] = row
        scratch[right] = row
        left += is_left
        right += 1 - is_left
    memcpy(rows + left, scratch, right * sizeof(uint32_t))
    return left


cdef int64_t split_feature(entry_t* entries, const PresortedFeature* feature, const uint8_t* side,
                           entry_t* scratch) noexcept nogil:
    """Partition a feature in place; returns how many entries went left."""
    cdef entry_t* e = entries + feature.offset
    cdef int64_t left, right
    cdef int64_t i
    if (entry_t is uint32_t and is_wide and feature.length >= LEAST_WIDE
            and PATH_IS_ON("partition_by_eight")):
        left = partition_eights(e, feature.length, side, scratch)
    else:
        left = partition_entries(e, feature.length, side, scratch)
    right = feature.length - left
    if right > 16:
        memcpy(e + left, scratch, right * sizeof(entry_t))
    else:
        for i in range(right):
            e[left + i] = scratch[i]
    return left


cdef inline int64_t partition_entries(entry_t* e, int64_t n, const uint8_t* side,
                                      entry_t* scratch) noexcept nogil:
    """The left ones of n entries to the front, the right ones to scratch; how many went left."""
    cdef int64_t shift = 4 * sizeof(entry_t)
    cdef entry_t mask = (<entry_t>1 << shift) - 1
    cdef int64_t i
    cdef int64_t left = 0
    cdef int64_t right = 0
    cdef entry_t entry
    cdef uint8_t is_left
    for i in range(n):
        entry = e[i]
        is_left = side[entry & mask]
        e[left] = entry
        scratch[right] = entry
        left += is_left
        right += 1 - is_left
    return left


cdef inline void append_feature(PresortedFeature* features, int64_t* n_features,
                                const PresortedFeature* feature, int64_t offset,
                                int64_t length, int64_t least) noexcept nogil:
    """Append a part of a feature to those of a child, unless it is a leaf, or the part is empty or
    holds less than a leaf: all rows but these hold the fill code."""
    cdef PresortedFeature* new
    if features == NULL or (length < max(least, 1) and feature.length > 0):
        return
    new = features + n_features[0]
    new[0] = feature[0]
    new.offset = offset
    new.length = <uint32_t>length
    n_features[0] += 1


cdef int64_t partition_features(entry_t* entries, const PresortedFeature* features,
                                int64_t n_features, const uint8_t* side, entry_t* scratch,
                                const ChildFeatures* children) noexcept nogil:
    """Partition the features of a node in place, and list those of its children.

    Columns that are counted have no entries and go to both children as they are. A child with too
    few entries of a sparse column for a leaf does not get its feature. Returns how many entries
    there were.
    """
    cdef const PresortedFeature* feature
    cdef int64_t n_entries = 0
    cdef int64_t r, n_left, n_right
    if children.left == NULL and children.right == NULL:
        return 0
    for r in range(n_features):
        feature = features + r
        n_entries += feature.length
        n_left = split_feature(entries, feature, side, scratch)
        n_right = feature.length - n_left
        append_feature(children.left, children.n_left, feature, feature.offset, n_left,
                       children.least)
        append_feature(children.right, children.n_right, feature, feature.offset + n_left,
                       n_right, children.least)
    return n_entries


def partitioned(const uint32_t[::1] entries, const uint8_t[::1] side):
    """Entries of 32 bits, partitioned by the sides of their rows, and how many went left.

    Parameters
    ----------
    entries : uint32 (n,)
        The row of an entry is its lower half.
    side : uint8 (n_rows,)
        1 where the row goes left.
    """
    cdef uint32_t[::1] own = np.append(entries, np.uint32(0))
    cdef uint32_t[::1] scratch = np.empty(len(own), dtype=np.uint32)
    cdef PresortedFeature feature
    cdef int64_t left
    memset(&feature, 0, sizeof(PresortedFeature))
    feature.length = <uint32_t>len(entries)
    left = split_feature(&own[0], &feature, &side[0], &scratch[0])
    return np.asarray(own)[:len(entries)], left


def partitioned_rows(const uint32_t[::1] rows, const uint8_t[::1] side):
    """Rows, partitioned by their sides, and how many went left.

    Parameters
    ----------
    rows : uint32 (n,)
    side : uint8 (n_rows,)
        1 where a row goes left.
    """
    cdef uint32_t[::1] own = np.append(rows, np.uint32(0))
    cdef uint32_t[::1] scratch = np.empty(len(rows) + 1, dtype=np.uint32)
    cdef int64_t left = partition_row_list(&own[0], len(rows), &side[0], &scratch[0])
    return np.asarray(own)[:len(rows)], left
