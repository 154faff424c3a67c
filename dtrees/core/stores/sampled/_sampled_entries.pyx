"""Drawn columns by sorted entries: few rows, many codes or classes, and sparse columns.

An entry is a code and the position of its row in the node:

    uint64 entry   code (32 bits) | position (32 bits)

Those of a dense column are sorted by counting their codes, or by comparison where they are few. Of
a sparse column the stored rows that are in the node are found by the position of every row of the
table or by binary search, whichever is cheaper ([SP] 3.2, eq. 8); the other rows hold its fill
code. In nodes of few rows the columns that have any are marked before, from the table's cells by
row, and the others are not looked at.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport (
    STORED_SPARSE, STORED_U16, STORED_U8, Column, RowLists, code_at, code_t, first_at_least,
    is_looked_up, last_ordered
)
from dtrees.core.data._memory cimport claim_zeros
from dtrees.core.data._structs cimport NO_RANK, PresortedFeature
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._search cimport Search
from dtrees.core.search._sort cimport merge_sort
from dtrees.core.stores.sampled._column_loader cimport (
    ColumnLoader, gather_statistics, reserve_cells, reserve_entries
)
from dtrees.core.stores.sampled._row_partition cimport row_of

cdef enum:
    LEAST_COUNTED = 16      # rows: so few are sorted by comparison
    MOST_MARKED = 1 << 13   # cells of a node whose columns are marked


cdef void read_entries(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                       int32_t number) noexcept nogil:
    """The presorted feature of one column; without memory it is empty, which the search notes."""
    cdef PresortedFeature* feature = &loader.feature
    cdef int64_t m = 0
    feature.length = 0
    if not reserve_entries(loader, node.totals.n + 1):
        q.out_of_memory = True
        return
    if column.storage == STORED_SPARSE:
        m = find_entries(loader, node, column)
        if m == 0:
            return
    if not gather_statistics(loader, node):
        q.out_of_memory = True
        return
    memset(feature, 0, sizeof(PresortedFeature))
    feature.column = number
    feature.fill_code = column.fill
    feature.last_ordered = last_ordered(column)
    if column.storage == STORED_SPARSE:
        sort_sparse_entries(loader, column, m)
    elif not read_dense_entries(loader, column, node):
        q.out_of_memory = True


# ---------------------------------------------------------------------------------------------
# dense columns

cdef bint read_dense_entries(ColumnLoader* loader, const Column* column,
                             const OpenNode* node) noexcept nogil:
    """The entries of all rows; False without memory."""
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef int64_t n = node.totals.n
    cdef bint found
    if column.storage == STORED_U8:
        found = sorted_codes(loader, <const uint8_t*>column.codes, item, n, column.n_codes)
    elif column.storage == STORED_U16:
        found = sorted_codes(loader, <const uint16_t*>column.codes, item, n, column.n_codes)
    else:
        found = sorted_codes(loader, <const uint32_t*>column.codes, item, n, column.n_codes)
    loader.feature.length = <uint32_t>n if found else 0
    loader.feature.fill = NO_RANK
    return found


cdef inline bint sorted_codes(ColumnLoader* loader, const code_t* codes, const uint64_t* item,
                              int64_t n, int64_t n_codes) noexcept nogil:
    cdef int64_t i
    if n > LEAST_COUNTED and n > n_codes >> 6:
        return sort_by_counts(loader, codes, item, n, n_codes)
    for i in range(n):
        loader.entries[i] = <uint64_t>codes[<uint32_t>item[i]] << 32 | <uint64_t>i
    merge_sort(loader.entries, loader.scratch, n)
    return True


cdef bint sort_by_counts(ColumnLoader* loader, const code_t* codes, const uint64_t* item, int64_t n,
                         int64_t n_codes) noexcept nogil:
    """Entries of n rows, by counting their codes; False without memory. O(n + n_codes / 64)."""
    cdef code_t* own = <code_t*>loader.codes
    cdef int64_t n_words = (n_codes >> 6) + 1
    cdef int64_t i, word
    cdef uint64_t bits
    cdef uint32_t code, count
    cdef uint32_t total = 0
    if n_codes >= loader.n_counts:
        loader.n_counts = 0
        if claim_zeros(<void**>&loader.counts, (n_codes + 1) * sizeof(uint32_t)):
            loader.n_counts = n_codes + 1
    if not reserve_cells(loader, n_codes, 0) or loader.counts == NULL:
        return False
    for i in range(n):
        code = codes[<uint32_t>item[i]]
        own[i] = <code_t>code
        loader.counts[code] += 1
        loader.hit[code >> 6] |= <uint64_t>1 << (code & 63)
    for word in range(n_words):
        bits = loader.hit[word]
        while bits != 0:
            code = <uint32_t>((word << 6) + trailing_zeros(bits))
            bits &= bits - 1
            count = loader.counts[code]
            loader.counts[code] = total
            total += count
    for i in range(n):
        code = own[i]
        loader.entries[loader.counts[code]] = <uint64_t>code << 32 | <uint64_t>i
        loader.counts[code] += 1
    for word in range(n_words):
        bits = loader.hit[word]
        loader.hit[word] = 0
        while bits != 0:
            loader.counts[(word << 6) + trailing_zeros(bits)] = 0
            bits &= bits - 1
    return True


# ---------------------------------------------------------------------------------------------
# sparse columns

cdef int64_t find_entries(ColumnLoader* loader, const OpenNode* node,
                          const Column* column) noexcept nogil:
    """Stored rows of the column that are in the node, as entries of code and position. Returns how
    many there are.

    The rows of a node ascend, or are a few stretches that do: those of a set that leaves a shared
    node.
    """
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef const uint64_t* item = loader.partition.item
    cdef int64_t start = node.start
    cdef int64_t n = node.totals.n
    cdef int64_t m = 0
    cdef int64_t i, at
    cdef uint32_t row, position
    cdef uint32_t before = 0
    if is_looked_up(column, n):
        at = 0
        for i in range(n):
            row = row_of(item[start + i])
            at = first_at_least(column.rows, at if row >= before else 0, column.stored, row)
            before = row
            if at < column.stored and <uint32_t>column.rows[at] == row:
                loader.entries[m] = <uint64_t>codes[at] << 32 | <uint64_t>i
                m += 1
    else:
        for at in range(column.stored):
            position = loader.position[column.rows[at]] - <uint32_t>start
            loader.entries[m] = <uint64_t>codes[at] << 32 | position
            m += position < <uint32_t>n
    return m


cdef void sort_sparse_entries(ColumnLoader* loader, const Column* column, int64_t m) noexcept nogil:
    """Sort m entries that were found; codes equal to the fill code are left out."""
    cdef int64_t kept = 0
    cdef int64_t i
    for i in range(m):
        loader.entries[kept] = loader.entries[i]
        kept += loader.entries[i] >> 32 != column.fill
    merge_sort(loader.entries, loader.scratch, kept)
    loader.feature.length = <uint32_t>kept
    loader.feature.fill = column.fill


cdef const uint32_t* codes_to_partition(ColumnLoader* loader, Search* q, const OpenNode* node,
                                        const Column* column, bint is_subset) noexcept nogil:
    """The codes of the node's rows, in their order; NULL where a dense column tells them as well.

    Without memory those of a sparse column are unknown, which the search notes.
    """
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef int64_t n = node.totals.n
    cdef int64_t i, m
    if column.storage == STORED_SPARSE:
        if not reserve_entries(loader, n + 1):
            q.out_of_memory = True
            return loader.codes
        m = find_entries(loader, node, column)
        for i in range(n):
            loader.codes[i] = column.fill
        for i in range(m):
            loader.codes[<uint32_t>loader.entries[i]] = <uint32_t>(loader.entries[i] >> 32)
        return loader.codes
    if not is_subset:
        return NULL
    for i in range(n):
        loader.codes[i] = code_at(column, row_of(item[i]))
    return loader.codes


# ---------------------------------------------------------------------------------------------
# which sparse columns are in a node

cdef void mark_present(ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    """Note which sparse columns have stored rows in a node of few rows; O(cells of its rows).

    Then `drop_absent` knows without a look at the column. Taken back by `forget_present`.
    """
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef const RowLists* lists = &loader.lists
    cdef int64_t n_cells = 0
    cdef int64_t i, at
    cdef uint32_t row, column
    if lists.start == NULL or node.totals.n > MOST_MARKED:
        return
    for i in range(node.totals.n):
        row = row_of(item[i])
        n_cells += lists.start[row + 1] - lists.start[row]
    if n_cells > MOST_MARKED:
        return
    loader.knows_present = True
    for i in range(node.totals.n):
        row = row_of(item[i])
        for at in range(lists.start[row], lists.start[row + 1]):
            column = lists.column[at]
            loader.present[column >> 6] |= <uint64_t>1 << (column & 63)


cdef void forget_present(ColumnLoader* loader, const OpenNode* node) noexcept nogil:
    cdef const uint64_t* item = loader.partition.item + node.start
    cdef const RowLists* lists = &loader.lists
    cdef int64_t i, at
    cdef uint32_t row
    if not loader.knows_present:
        return
    loader.knows_present = False
    for i in range(node.totals.n):
        row = row_of(item[i])
        for at in range(lists.start[row], lists.start[row + 1]):
            loader.present[<uint32_t>lists.column[at] >> 6] = 0


cdef int64_t drop_absent(const ColumnLoader* loader, int32_t* columns, int64_t n) noexcept nogil:
    """Keep the columns that are not known to be constant in the node; returns how many."""
    cdef int64_t kept = 0
    cdef int64_t i
    cdef uint32_t column
    if not loader.knows_present:
        return n
    for i in range(n):
        column = columns[i]
        columns[kept] = column
        kept += (loader.present[column >> 6] | loader.lists.dense[column >> 6]) >> (
            column & 63) & 1
    return kept
