"""Columns that are drawn and read afresh, for nodes that search a few columns of many.

Keeping every column in order for every node (`_buffers`) pays when all of them are searched.
Where a node draws a few, as in a random forest, its rows are all that is kept (`_column_loader`),
and a drawn column is read from the codes of these rows:

    many rows     a histogram, all cells cleared and visited
    few rows      a histogram with a bit per code, so that only codes that occur are visited
    few for the   of codes, or of classes, each with a number in a cell: rows are sorted by code
      cells
    sparse        the stored rows of the column that are in the node, sorted by code
    random splits the range of the codes, then the sums of one side (`_random_split`)

*By histogram*: a cell is as small as the sums of the node allow (`layout_of`). Cells of presorted
nodes are kept and subtracted from each other; these are used up at once. They are all zero between
two columns. Two classes fit one number per row, and a cell takes one addition.

*By sorted entries*: an entry is a code and the position of its row in the node.

    uint64 entry   code (32 bits) | position (32 bits)

Those of a dense column are sorted by counting their codes, or by comparison where they are few. Of
a sparse column the stored rows that are in the node are found by the position of every row of the
table or by binary search, whichever is cheaper ([SP] 3.2, eq. 8); the other rows hold its fill
code. In nodes of few rows the columns that have any are marked before, from the table's cells by
row, and the others are not looked at.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from dtrees._random cimport below, hash64
from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport (
    STORED_SPARSE, STORED_U16, STORED_U8, Column, RowLists, code_at, code_t, first_at_least,
    is_looked_up, last_ordered
)
from dtrees.core.data._memory cimport claim_zeros
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport (
    ALL_ORDERED, BY_FUNCTION, NO_RANK, PresortedFeature, RowStatistics
)
from dtrees.core.histogram._layout cimport (
    CLASSES_PAIRED, OUTPUTS, PACKED, PAIRED, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind, Layout, add,
    add_row, has_classes, words_of
)
from dtrees.core.search._absolute_errors cimport move_row
from dtrees.core.search._absolute_scan cimport place_bins
from dtrees.core.search._bins cimport bins_of_entries, read_bin, reserve_bins, search_bins
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._entry_scan cimport search_feature
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._parameters cimport Limits, TrainParameters
from dtrees.core.search._search cimport Search, add_bin, by_class
from dtrees.core.search._sort cimport merge_sort
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.sampled._column_loader cimport (
    ColumnLoader, gather_statistics, label_of, pack_rows, reserve_cells, reserve_entries, row_of,
    times_of, weight_at
)

# ---------------------------------------------------------------------------------------------
# by histogram


cdef inline Layout layout_of(const ColumnLoader* loader, const Search* q) noexcept nogil:
    """Of the cells of a node: as small as its sums allow."""
    cdef Layout layout
    layout.n_classes = q.criterion.n_classes
    if q.kind == OUTPUTS:
        layout.kind = OUTPUTS
    elif loader.is_packed:
        layout.kind = PACKED
    elif by_class(q):
        layout.kind = CLASSES_PAIRED if loader.is_paired else WEIGHTED_CLASSES
    else:
        layout.kind = PAIRED if loader.is_paired else WEIGHTED_SUM
    layout.n_words = words_of(layout.kind, layout.n_classes)
    return layout


cdef void bins_of_dense(ColumnLoader* loader, Search* q, const Column* column,
                        const OpenNode* node) noexcept nogil:
    """The codes of a dense column in the node, as bins of the search."""
    pack_rows(loader, node)
    if column.storage == STORED_U8:
        bins_of_codes(loader, q, <const uint8_t*>column.codes, node, column.n_codes)
    elif column.storage == STORED_U16:
        bins_of_codes(loader, q, <const uint16_t*>column.codes, node, column.n_codes)
    else:
        bins_of_codes(loader, q, <const uint32_t*>column.codes, node, column.n_codes)


cdef void bins_of_codes(ColumnLoader* loader, Search* q, const code_t* codes, const OpenNode* node,
                        int64_t n_codes) noexcept nogil:
    """The codes of n rows as bins. O(n + codes that occur), or all codes when they are fewer.

    Without memory there are no bins, which the search notes.
    """
    cdef int64_t n = node.totals.n
    cdef int64_t g = 0
    cdef int64_t code
    cdef bint sparsely = n < n_codes
    cdef Layout layout = layout_of(loader, q)
    q.bins.count = 0
    if not reserve_cells(loader, n_codes, layout.n_words):
        q.out_of_memory = True
    if q.out_of_memory or not reserve_bins(q, n + 1 if sparsely else n_codes + 2):
        return
    if sparsely:
        count_codes(loader, q, codes, NULL, node, loader.hit)
        g = take_hit(loader, q, &layout, n_codes)
    else:
        count_codes(loader, q, codes, NULL, node, NULL)
        for code in range(n_codes + 1):
            g += take_cell(loader, q, &layout, code, g)
    q.bins.count = g


cdef struct ColumnCells:
    # Of one column at one node: where its sums are, and what a row adds to them.
    CellKind kind
    int64_t n_words
    int64_t* cells
    const uint64_t* item    # by position in the node, as the next three
    const int64_t* value
    const uint64_t* packed
    const uint16_t* label   # NULL: labels are those of the items
    const int64_t* weight   # by row, as the next; NULL: as in the bag
    const int64_t* target
    const RowStatistics* outputs    # by row


cdef inline ColumnCells cells_of(const ColumnLoader* loader, const Search* q,
                                 const OpenNode* node) noexcept nogil:
    cdef Layout layout = layout_of(loader, q)
    cdef ColumnCells c
    c.kind = layout.kind
    c.n_words = layout.n_words
    c.cells = loader.cells
    c.item = loader.partition.item + node.start
    c.value = NULL if loader.partition.value == NULL else loader.partition.value + node.start
    c.packed = loader.packed
    c.label = loader.label if q.criterion == &loader.local else NULL
    c.weight = loader.partition.weight
    c.target = loader.partition.target
    c.outputs = &loader.partition.outputs
    return c


cdef inline void add_item(const ColumnCells* c, CellKind kind, bint plain, uint32_t code,
                          int64_t i) noexcept nogil:
    """Add row i of the node to the cell of its code.

    plain : weights are times, and targets their products with the values. `kind` and `plain` are
    constants in loops over many rows.
    """
    cdef int64_t* cell = c.cells + <int64_t>code * n_words_of(c, kind)
    cdef uint64_t x = c.item[i]
    cdef int64_t w
    if kind == PACKED:
        add(cell, PACKED, 0, <int64_t>c.packed[i])
        return
    if kind == OUTPUTS:
        add_row(cell, OUTPUTS, c.outputs, <uint32_t>x)
        return
    w = times_of(x) if plain or c.weight == NULL else c.weight[<uint32_t>x]
    if has_classes(kind):
        add(cell, kind, w, label_of(x) if c.label == NULL else c.label[i])
    elif not plain and c.target != NULL:
        add(cell, kind, w, c.target[<uint32_t>x])
    else:
        add(cell, kind, w, w * (label_of(x) if c.value == NULL else c.value[i]))


cdef inline int64_t n_words_of(const ColumnCells* c, CellKind kind) noexcept nogil:
    """A constant where there is no number for each class."""
    return c.n_words if has_classes(kind) else words_of(kind, 0)


cdef inline void count_as(const ColumnCells* c, const code_t* codes, const uint32_t* sides,
                          int64_t n, uint64_t* hit, CellKind kind, bint plain) noexcept nogil:
    """Add n rows to the cells; unless `hit` is NULL, note which codes occur.

    sides : of the rows, or NULL: the cells of its bits, instead of that of its code, get a row
    """
    cdef uint32_t code
    cdef int64_t i
    for i in range(n):
        code = codes[<uint32_t>c.item[i]] if sides == NULL else sides[i]
        if sides != NULL:
            while code != 0:
                add_item(c, kind, plain, trailing_zeros(code), i)
                code &= code - 1
            continue
        add_item(c, kind, plain, code, i)
        if hit != NULL:
            hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef inline void count_codes(const ColumnLoader* loader, const Search* q, const code_t* codes,
                             const uint32_t* sides, const OpenNode* node,
                             uint64_t* hit) noexcept nogil:
    """Pick the loop that was compiled for the kind of cells."""
    cdef ColumnCells c = cells_of(loader, q, node)
    cdef int64_t n = node.totals.n
    cdef bint plain = c.weight == NULL and c.target == NULL
    if c.kind == PACKED:
        count_as(&c, codes, sides, n, hit, PACKED, True)
    elif c.kind == OUTPUTS:
        count_as(&c, codes, sides, n, hit, OUTPUTS, False)
    elif c.kind == CLASSES_PAIRED and plain:
        count_as(&c, codes, sides, n, hit, CLASSES_PAIRED, True)
    elif c.kind == CLASSES_PAIRED:
        count_as(&c, codes, sides, n, hit, CLASSES_PAIRED, False)
    elif c.kind == WEIGHTED_CLASSES:
        count_as(&c, codes, sides, n, hit, WEIGHTED_CLASSES, False)
    elif c.kind == PAIRED and plain:
        count_as(&c, codes, sides, n, hit, PAIRED, True)
    elif c.kind == PAIRED:
        count_as(&c, codes, sides, n, hit, PAIRED, False)
    else:
        count_as(&c, codes, sides, n, hit, WEIGHTED_SUM, False)


cdef void count_sides(ColumnLoader* loader, const Search* q, const OpenNode* node) noexcept nogil:
    """Add the rows to the cells of the bits of their sides."""
    pack_rows(loader, node)
    if q.errors == NULL:
        count_codes(loader, q, <const uint8_t*>NULL, loader.sides, node, NULL)


cdef void take_side(ColumnLoader* loader, Search* q, const OpenNode* node,
                    int64_t bit) noexcept nogil:
    """Move the rows that have a bit of the sides to that of the search."""
    cdef Layout layout = layout_of(loader, q)
    cdef int64_t i
    if q.errors == NULL:
        take_cell(loader, q, &layout, bit, 0)
        add_bin(q, 0, 1)
        return
    for i in range(node.totals.n):
        if loader.sides[i] >> bit & 1:
            q.n += 1
            q.w += weight_at(&loader.partition, node.start + i)
            move_row(q.errors, i)


cdef inline int64_t take_cell(ColumnLoader* loader, Search* q, const Layout* layout, int64_t code,
                              int64_t g) noexcept nogil:
    """Move the sums of a code to bin g and clear them; returns 1 if the code occurs.

    A few words are cleared by themselves (measured: forests of letter and covertype take .94 of the
    time that they take with a loop of any length, which becomes a call of memset).
    """
    cdef int64_t* cell = loader.cells + code * layout.n_words
    cdef int64_t found, k
    if layout.kind == PACKED:
        found = read_bin(q, cell, PACKED, <uint32_t>code, g)
        cell[0] = 0
    elif layout.kind == PAIRED:
        found = read_bin(q, cell, PAIRED, <uint32_t>code, g)
        cell[0] = cell[1] = 0
    elif layout.kind == WEIGHTED_SUM:
        found = read_bin(q, cell, WEIGHTED_SUM, <uint32_t>code, g)
        cell[0] = cell[1] = cell[2] = 0
    else:
        if layout.kind == CLASSES_PAIRED:
            found = read_bin(q, cell, CLASSES_PAIRED, <uint32_t>code, g)
        elif layout.kind == OUTPUTS:
            found = read_bin(q, cell, OUTPUTS, <uint32_t>code, g)
        else:
            found = read_bin(q, cell, WEIGHTED_CLASSES, <uint32_t>code, g)
        for k in range(layout.n_words):
            cell[k] = 0
    return found


cdef inline int64_t take_hit(ColumnLoader* loader, Search* q, const Layout* layout,
                             int64_t n_codes) noexcept nogil:
    """Move the codes that occur to bins, ascending, and clear the bits; returns how many."""
    cdef int64_t g = 0
    cdef int64_t word
    cdef uint64_t bits
    for word in range((n_codes >> 6) + 1):
        bits = loader.hit[word]
        loader.hit[word] = 0
        while bits != 0:
            take_cell(loader, q, layout, (word << 6) + trailing_zeros(bits), g)
            bits &= bits - 1
            g += 1
    return g


# ---------------------------------------------------------------------------------------------
# by sorted entries

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


# ---------------------------------------------------------------------------------------------
# a drawn column

cdef enum:
    SORT_COST = 4           # of an entry against that of a number in a cell
    MOST_TRIES = 32         # of a draw by weights
    MOST_WORDS = 16         # numbers in the histogram of a column, for each row of the growth


cdef int64_t draw_by_weight(const Limits* limits, const int32_t* order, int64_t first,
                            uint64_t key) noexcept nogil:
    """Draws a place of a permutation, from `first` on: each as likely as its column weighs.

    A place is drawn, and taken as often as its column weighs, compared with the heaviest. O(1);
    where most columns weigh little, O(columns).
    """
    cdef int64_t n = limits.n_columns
    cdef int64_t j, left
    cdef int64_t total = 0
    cdef uint64_t k, draw
    for k in range(MOST_TRIES):
        draw = hash64(key, k)
        j = first + <int64_t>below(draw, <uint64_t>(n - first))
        left = <int64_t>below(hash64(draw, 0), <uint64_t>limits.heaviest_column)
        if left < limits.column_weights[order[j]]:
            return j
    for j in range(first, n):
        total += limits.column_weights[order[j]]
    left = <int64_t>below(hash64(key, MOST_TRIES), <uint64_t>total)
    for j in range(first, n):
        left -= limits.column_weights[order[j]]
        if left < 0:
            break
    return j


cdef int64_t draw_columns(const TrainParameters* params, uint64_t path, int32_t* order,
                          int32_t* swapped, int64_t first, int64_t count) noexcept nogil:
    """Draws first .. first+count of a node's keyed permutation of the columns.

    order : a permutation; draw i is left in order[i], and in swapped[i] where it came from, NULL
    when nobody wants to know. Draw k depends on (seed, tree, path, k) and the draws before it only.
    Returns how many there are.
    """
    cdef int64_t n = params.limits.n_columns
    cdef int64_t i, j
    cdef int32_t column
    cdef uint64_t key = hash64(hash64(params.limits.seed, params.limits.tree), path)
    if first + count > n:
        count = n - first
    for i in range(first, first + count):
        if params.limits.column_weights == NULL:
            j = i + <int64_t>below(hash64(key, <uint64_t>i), <uint64_t>(n - i))
        else:
            j = draw_by_weight(&params.limits, order, i, hash64(key, <uint64_t>i))
        column = order[i]
        order[i] = order[j]
        order[j] = column
        if swapped != NULL:
            swapped[i] = <int32_t>j
    return count


def drawn_columns(Dataset dataset, uint64_t path, int64_t first, int64_t count):
    """Draws first .. first+count of a node's columns, in their order; int32 (<= count,)."""
    cdef int64_t n_columns = dataset.params.limits.n_columns
    cdef int32_t[::1] order = np.arange(n_columns, dtype=np.int32)
    count = min(count, n_columns - first)
    if dataset.params.limits.max_features < n_columns:
        draw_columns(&dataset.params, path, &order[0], NULL, 0, first + count)
    return np.asarray(order)[first:first + count].copy()


def n_first_draws(Dataset dataset, uint64_t path, sets):
    """How many draws a node begins with: so many that it may use `max_features` of them.

    sets : bytes or None
        A bit for each set of columns that its ancestors have left it. None: all.
    """
    cdef int64_t n_columns = dataset.params.limits.n_columns
    cdef int64_t n_used = dataset.params.limits.max_features
    if dataset.sets_of_column is None:
        return n_used
    own = dataset.sets_of_column[drawn_columns(dataset, path, 0, n_columns)]
    if sets is not None:
        own &= np.frombuffer(sets, dtype=np.uint64)
    return min(int(np.searchsorted(np.cumsum(own.any(axis=1)), n_used)) + 1, n_columns)


cdef bint search_drawn(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                       int32_t number) noexcept nogil:
    """Read and search one column; False when it is constant in the node."""
    cdef const Criterion* criterion = q.criterion
    cdef bint varies
    if last_ordered(column) == ALL_ORDERED:
        begin_local(loader, q)
    varies = search_read(loader, q, node, column, number)
    end_local(q, criterion, node)
    return varies


cdef bint search_read(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                      int32_t number) noexcept nogil:
    """Search a column of drawn rows by sorted entries or by a histogram, whichever is cheaper."""
    cdef RowStatistics of_row
    cdef bint varies
    if by_entries(loader, q, column, node.totals.n):
        read_entries(loader, q, node, column, number)
        if loader.feature.length == 0:
            return False
        of_row = q.of_row
        q.of_row = loader.of_row
        if q.criterion == &loader.local:
            q.of_row.label = loader.label
        varies = search_feature(q, <const uint64_t*>loader.entries, &loader.feature, 0)
        q.of_row = of_row
        return varies
    bins_of_dense(loader, q, column, node)
    if q.bins.count <= 1:
        return False
    search_bins(q, number, last_ordered(column))
    return True


cdef bint by_entries(const ColumnLoader* loader, const Search* q, const Column* column,
                     int64_t n) noexcept nogil:
    """Whether a column is sorted rather than counted.

    Its histogram would be mostly empty: fewer rows than words of a bit per code, fewer than
    numbers in the cells that they hit, or more cells than a growth of so many rows should hold.
    """
    cdef int64_t n_cells = (column.n_codes + <int64_t>1) * layout_of(loader, q).n_words
    cdef int64_t n_hit = column.n_codes if column.n_codes < n else n
    if column.storage == STORED_SPARSE or n < column.n_codes >> 6 or q.errors != NULL:
        return True
    if by_class(q) and n * SORT_COST <= n_hit * q.criterion.n_classes:
        return True
    return n_cells > MOST_WORDS * (loader.n_rows + 4096)


cdef void bins_of_drawn(ColumnLoader* loader, Search* q, const OpenNode* node, const Column* column,
                        int32_t number) noexcept nogil:
    """The codes of a column in the node, as bins of the search."""
    cdef RowStatistics of_row
    if by_entries(loader, q, column, node.totals.n):
        read_entries(loader, q, node, column, number)
        if loader.feature.length == 0:
            q.bins.count = 0
            return
        of_row = q.of_row
        q.of_row = loader.of_row
        bins_of_entries(q, <const uint64_t*>loader.entries, &loader.feature)
        if q.errors != NULL:
            place_bins(q, <const uint64_t*>loader.entries, &loader.feature)
        q.of_row = of_row
    else:
        bins_of_dense(loader, q, column, node)


cdef void begin_local(ColumnLoader* loader, Search* q) noexcept nogil:
    """Let the search see the classes of the node only, if there are any; until `end_local`.

    For columns without categories, whose scores are sums over classes.
    """
    if (by_class(q) and q.kind != OUTPUTS and q.criterion.impurity != BY_FUNCTION
            and PATH_IS_ON("local_classes")):
        q.criterion = &loader.local
        q.class_totals = loader.local_totals
        q.n_columns_of_target = loader.local.n_classes
        q.side_is_clear = False


cdef void end_local(Search* q, const Criterion* criterion, const OpenNode* node) noexcept nogil:
    if q.criterion != criterion:
        q.criterion = criterion
        q.class_totals = node.class_totals
        q.n_columns_of_target = criterion.n_classes
        q.side_is_clear = False
