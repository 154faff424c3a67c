"""Dense drawn columns by histogram: rows are added to cells, cells become bins.

A cell is as small as the sums of the node allow (`layout_of`). Cells of presorted nodes are kept
and subtracted from each other; these are used up at once.
The cells are all zero between two columns. With few rows a bit per code tells which occur, and only
these are visited and cleared. Of a column of which most rows hold one common code the others are
counted; that code gets what they leave of the node.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport STORED_U16, STORED_U8, Column, code_t
from dtrees.core.data._structs cimport NO_RANK
from dtrees.core.histogram._layout cimport (
    CLASSES_PAIRED, PACKED, PAIRED, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind, Layout, add,
    has_classes, words_of
)
from dtrees.core.search._bins cimport drop_bin, read_bin, reserve_bins, rest_to_bin
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._search cimport Search
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader, pack_rows, reserve_cells
from dtrees.core.stores.sampled._row_partition cimport label_of, times_of

ctypedef fused narrow_t:
    uint8_t
    uint16_t

cdef void bins_of_dense(ColumnLoader* loader, Search* q, const Column* column,
                        const OpenNode* node) noexcept nogil:
    """The codes of a dense column in the node, as bins of the search."""
    pack_rows(loader, node)
    if column.common != NO_RANK and column.storage == STORED_U8:
        bins_of_uncommon(loader, q, <const uint8_t*>column.codes, node, column)
    elif column.common != NO_RANK and column.storage == STORED_U16:
        bins_of_uncommon(loader, q, <const uint16_t*>column.codes, node, column)
    elif column.storage == STORED_U8:
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
    if not reserve_histogram(loader, q, n_codes, layout.n_words,
                             n + 1 if sparsely else n_codes + 2):
        return
    if sparsely:
        count_codes(loader, q, codes, node, loader.hit)
        g = take_hit(loader, q, &layout, n_codes)
    else:
        count_codes(loader, q, codes, node, NULL)
        for code in range(n_codes + 1):
            g += take_cell(loader, q, &layout, code, g)
    q.bins.count = g


cdef bint reserve_histogram(ColumnLoader* loader, Search* q, int64_t n_codes, int64_t n_words,
                            int64_t n_bins) noexcept nogil:
    """Cells and bins of a column; False without memory, which the search notes."""
    if not reserve_cells(loader, n_codes, n_words):
        q.out_of_memory = True
    return not q.out_of_memory and reserve_bins(q, n_bins)


cdef struct Cells:
    # Of one column at one node: where its sums are, and what a row adds to them.
    CellKind kind
    int64_t n_words
    int64_t* cells
    const uint64_t* item    # by position in the node, as the next three
    const int64_t* value
    const uint64_t* packed
    const uint16_t* label   # NULL: labels are those of the items
    const int64_t* weight   # by row, as the last; NULL: as in the bag
    const int64_t* target


cdef inline Cells cells_of(const ColumnLoader* loader, const Search* q,
                           const OpenNode* node) noexcept nogil:
    cdef Layout layout = layout_of(loader, q)
    cdef Cells c
    c.kind = layout.kind
    c.n_words = layout.n_words
    c.cells = loader.cells
    c.item = loader.partition.item + node.start
    c.value = NULL if loader.partition.value == NULL else loader.partition.value + node.start
    c.packed = loader.packed
    c.label = loader.label if q.criterion == &loader.local else NULL
    c.weight = loader.partition.weight
    c.target = loader.partition.target
    return c


cdef inline void add_item(const Cells* c, CellKind kind, bint plain, uint32_t code,
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
    w = times_of(x) if plain or c.weight == NULL else c.weight[<uint32_t>x]
    if has_classes(kind):
        add(cell, kind, w, label_of(x) if c.label == NULL else c.label[i])
    elif not plain and c.target != NULL:
        add(cell, kind, w, c.target[<uint32_t>x])
    else:
        add(cell, kind, w, w * (label_of(x) if c.value == NULL else c.value[i]))


cdef inline int64_t n_words_of(const Cells* c, CellKind kind) noexcept nogil:
    """A constant where there is no number for each class."""
    return c.n_words if has_classes(kind) else words_of(kind, 0)


cdef inline void count_as(const Cells* c, const code_t* codes, int64_t n, uint64_t* hit,
                          CellKind kind, bint plain) noexcept nogil:
    """Add n rows to the cells; unless `hit` is NULL, note which codes occur."""
    cdef uint32_t code
    cdef int64_t i
    for i in range(n):
        code = codes[<uint32_t>c.item[i]]
        add_item(c, kind, plain, code, i)
        if hit != NULL:
            hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef inline void count_codes(const ColumnLoader* loader, const Search* q, const code_t* codes,
                             const OpenNode* node, uint64_t* hit) noexcept nogil:
    """Pick the loop that was compiled for the kind of cells."""
    cdef Cells c = cells_of(loader, q, node)
    cdef int64_t n = node.totals.n
    cdef bint plain = c.weight == NULL and c.target == NULL
    if c.kind == PACKED:
        count_as(&c, codes, n, hit, PACKED, True)
    elif c.kind == CLASSES_PAIRED and plain:
        count_as(&c, codes, n, hit, CLASSES_PAIRED, True)
    elif c.kind == CLASSES_PAIRED:
        count_as(&c, codes, n, hit, CLASSES_PAIRED, False)
    elif c.kind == WEIGHTED_CLASSES:
        count_as(&c, codes, n, hit, WEIGHTED_CLASSES, False)
    elif c.kind == PAIRED and plain:
        count_as(&c, codes, n, hit, PAIRED, True)
    elif c.kind == PAIRED:
        count_as(&c, codes, n, hit, PAIRED, False)
    else:
        count_as(&c, codes, n, hit, WEIGHTED_SUM, False)


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
# columns with a common code

cdef void bins_of_uncommon(ColumnLoader* loader, Search* q, const narrow_t* codes,
                           const OpenNode* node, const Column* column) noexcept nogil:
    """The same for a column of which most rows hold one code: it gets what the others leave."""
    cdef uint32_t common = column.common
    cdef int64_t rest = 0
    cdef Layout layout = layout_of(loader, q)
    q.bins.count = 0
    if not reserve_histogram(loader, q, column.n_codes, layout.n_words,
                             min(node.totals.n, <int64_t>column.n_codes) + 2):
        return
    count_uncommon(loader, q, codes, node, common)
    loader.hit[common >> 6] |= <uint64_t>1 << (common & 63)
    q.bins.count = take_hit(loader, q, &layout, column.n_codes)
    while q.bins.rank[rest] != common:
        rest += 1
    rest_to_bin(q, rest)
    if q.bins.n[rest] == 0:
        drop_bin(q, rest)


cdef void count_uncommon(const ColumnLoader* loader, const Search* q, const narrow_t* codes,
                         const OpenNode* node, uint32_t common) noexcept nogil:
    """Add the rows of all codes but one, which most rows of the table hold."""
    cdef Cells c = cells_of(loader, q, node)
    cdef uint32_t* others = loader.codes
    cdef uint64_t* hit = loader.hit
    cdef int64_t m = 0
    cdef int64_t i
    cdef uint32_t code
    for i in range(node.totals.n):
        others[m] = <uint32_t>i
        m += codes[<uint32_t>c.item[i]] != <narrow_t>common
    for i in range(m):
        code = codes[<uint32_t>c.item[others[i]]]
        hit[code >> 6] |= <uint64_t>1 << (code & 63)
        add_item(&c, c.kind, False, code, others[i])
