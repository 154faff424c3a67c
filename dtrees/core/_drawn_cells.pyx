"""Dense drawn columns by histogram: rows are added to cells, cells become groups.

A cell is as small as the sums of the node allow (`Reader.is_packed`, `is_paired`):

                one number per row                            K classes
    packed      rows << 42 | weight << 21 | weight of 1       -
    paired      rows << 32 | weight, target                   rows << 32 | weight, of each class
    else        rows, weight, target                          rows, weight of each class

Those of `_histogram` are kept with a node and subtracted from each other; these are used up at
once.
The cells are all zero between two columns. With few rows a bit per code tells which occur, and only
these are visited and cleared. Of a column of which most rows hold one common code the others are
counted; that code gets what they leave of the node.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core._bag cimport label_of, times_of
from dtrees.core._columns cimport STORED_U16, STORED_U8, Column, code_t
from dtrees.core._groups cimport drop_group, reserve_groups, rest_to_group
from dtrees.core._reader cimport (
    FIELD, LARGEST_FIELD, Reader, pack_rows, reserve_cells, trailing_zeros
)
from dtrees.core._search cimport Groups, Search, by_class
from dtrees.core._structs cimport NO_RANK
from dtrees.core._workspace cimport OpenNode

ctypedef fused narrow_t:
    uint8_t
    uint16_t

cdef enum:
    LOW_HALF = 0xFFFFFFFF

cdef enum CellKind:
    PACKED                  # as in the table above
    PAIRED
    WIDE
    CLASSES_PAIRED
    CLASSES_WIDE


cdef void read_groups(Reader* reader, Search* q, const Column* column,
                      const OpenNode* node) noexcept nogil:
    """The codes of a dense column in the node, as groups of the search."""
    pack_rows(reader, node)
    if column.common != NO_RANK and column.storage == STORED_U8:
        groups_of_uncommon(reader, q, <const uint8_t*>column.codes, node, column)
    elif column.common != NO_RANK and column.storage == STORED_U16:
        groups_of_uncommon(reader, q, <const uint16_t*>column.codes, node, column)
    elif column.storage == STORED_U8:
        groups_of_codes(reader, q, <const uint8_t*>column.codes, node, column.n_codes)
    elif column.storage == STORED_U16:
        groups_of_codes(reader, q, <const uint16_t*>column.codes, node, column.n_codes)
    else:
        groups_of_codes(reader, q, <const uint32_t*>column.codes, node, column.n_codes)


cdef void groups_of_codes(Reader* reader, Search* q, const code_t* codes, const OpenNode* node,
                          int64_t n_codes) noexcept nogil:
    """The codes of n rows as groups. O(n + codes that occur), or all codes when they are fewer."""
    cdef int64_t n = node.totals.n
    cdef int64_t g = 0
    cdef int64_t code
    cdef bint sparsely = n < n_codes
    reserve_cells(reader, n_codes, stride_of_reader(reader, q))
    if sparsely:
        reserve_groups(q, n + 1)
        count_codes(reader, q, codes, node, reader.hit)
        g = take_hit(reader, q, n_codes)
    else:
        reserve_groups(q, n_codes + 2)
        count_codes(reader, q, codes, node, NULL)
        for code in range(n_codes + 1):
            g += take_cell(reader, q, code, g)
    q.groups.count = g


cdef struct Cells:
    # Of one column at one node: where its sums are, and what a row adds to them.
    CellKind kind
    int64_t* cells
    int64_t n_classes
    const uint64_t* item    # by place in the node, as the next three
    const int64_t* value
    const uint64_t* packed
    const uint16_t* label   # NULL: labels are those of the items
    const int64_t* weight   # by row, as the last; NULL: as in the bag
    const int64_t* target


cdef inline Cells cells_of(const Reader* reader, const Search* q,
                           const OpenNode* node) noexcept nogil:
    cdef Cells c
    c.kind = kind_of(reader, q)
    c.cells = reader.cells
    c.n_classes = q.criterion.n_classes
    c.item = reader.bag.item + node.start
    c.value = NULL if reader.bag.value == NULL else reader.bag.value + node.start
    c.packed = reader.packed
    c.label = reader.label if q.criterion == &reader.local else NULL
    c.weight = reader.bag.weight
    c.target = reader.bag.target
    return c


cdef inline CellKind kind_of(const Reader* reader, const Search* q) noexcept nogil:
    """How the cells of the node are laid out."""
    if reader.is_packed:
        return PACKED
    if by_class(q):
        return CLASSES_PAIRED if reader.is_paired else CLASSES_WIDE
    return PAIRED if reader.is_paired else WIDE


cdef inline void add_to_cell(const Cells* c, CellKind kind, bint plain, uint32_t code,
                             int64_t i) noexcept nogil:
    """Add row i of the node to the cell of its code.

    plain : weights are times, and targets their products with the values. `kind` and `plain` are
    constants in loops over many rows.
    """
    cdef int64_t one = <int64_t>1 << 32
    cdef uint64_t x = c.item[i]
    cdef int64_t* cell
    cdef int64_t w, k, s
    if kind == PACKED:
        c.cells[code] += c.packed[i]
        return
    w = times_of(x) if plain or c.weight == NULL else c.weight[<uint32_t>x]
    if kind == CLASSES_PAIRED or kind == CLASSES_WIDE:
        k = label_of(x) if c.label == NULL else c.label[i]
        if kind == CLASSES_PAIRED:
            c.cells[code * c.n_classes + k] += one + w
        else:
            cell = c.cells + code * (1 + c.n_classes)
            cell[0] += 1
            cell[1 + k] += w
        return
    if not plain and c.target != NULL:
        s = c.target[<uint32_t>x]
    else:
        s = w * (label_of(x) if c.value == NULL else c.value[i])
    if kind == PAIRED:
        cell = c.cells + 2 * <int64_t>code
        cell[0] += one + w
        cell[1] += s
    else:
        cell = c.cells + 3 * <int64_t>code
        cell[0] += 1
        cell[1] += w
        cell[2] += s


cdef inline void count_as(const Cells* c, const code_t* codes, int64_t n, uint64_t* hit,
                          CellKind kind, bint plain) noexcept nogil:
    """Add n rows to the cells; unless `hit` is NULL, note which codes occur."""
    cdef uint32_t code
    cdef int64_t i
    for i in range(n):
        code = codes[<uint32_t>c.item[i]]
        add_to_cell(c, kind, plain, code, i)
        if hit != NULL:
            hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef inline void count_codes(const Reader* reader, const Search* q, const code_t* codes,
                             const OpenNode* node, uint64_t* hit) noexcept nogil:
    """Pick the loop that was compiled for the kind of cells."""
    cdef Cells c = cells_of(reader, q, node)
    cdef int64_t n = node.totals.n
    cdef bint plain = c.weight == NULL and c.target == NULL
    if c.kind == PACKED:
        count_as(&c, codes, n, hit, PACKED, True)
    elif c.kind == CLASSES_PAIRED and plain:
        count_as(&c, codes, n, hit, CLASSES_PAIRED, True)
    elif c.kind == CLASSES_PAIRED:
        count_as(&c, codes, n, hit, CLASSES_PAIRED, False)
    elif c.kind == CLASSES_WIDE:
        count_as(&c, codes, n, hit, CLASSES_WIDE, False)
    elif c.kind == PAIRED and plain:
        count_as(&c, codes, n, hit, PAIRED, True)
    elif c.kind == PAIRED:
        count_as(&c, codes, n, hit, PAIRED, False)
    else:
        count_as(&c, codes, n, hit, WIDE, False)


cdef inline int64_t take_cell(Reader* reader, Search* q, int64_t code, int64_t g) noexcept nogil:
    """Move the sums of a code to group g and clear them; returns 1 if the code occurs."""
    cdef Groups* groups = &q.groups
    cdef int64_t K = q.criterion.n_classes
    cdef CellKind kind = kind_of(reader, q)
    cdef int64_t* cell = reader.cells + code * stride_of_reader(reader, q)
    cdef uint64_t packed
    cdef int64_t k, w, n, sums
    groups.rank[g] = <uint32_t>code
    groups.row[g] = -1
    if kind == PACKED:
        packed = <uint64_t>cell[0]
        cell[0] = 0
        n = packed >> 2 * FIELD
        w = (packed >> FIELD) & LARGEST_FIELD
        groups.target[g] = packed & LARGEST_FIELD
    elif kind == CLASSES_PAIRED:
        sums = 0
        for k in range(K):
            sums += cell[k]
            groups.target[g * K + k] = cell[k] & LOW_HALF
            cell[k] = 0
        n = sums >> 32
        w = sums & LOW_HALF
    elif kind == CLASSES_WIDE:
        n = cell[0]
        w = 0
        for k in range(K):
            groups.target[g * K + k] = cell[1 + k]
            w += cell[1 + k]
            cell[1 + k] = 0
        cell[0] = 0
    elif kind == PAIRED:
        n = cell[0] >> 32
        w = cell[0] & LOW_HALF
        groups.target[g] = cell[1]
        cell[0] = cell[1] = 0
    else:
        n = cell[0]
        w = cell[1]
        groups.target[g] = cell[2]
        cell[0] = cell[1] = cell[2] = 0
    groups.n[g] = n
    groups.weight[g] = w
    return n > 0


cdef inline int64_t take_hit(Reader* reader, Search* q, int64_t n_codes) noexcept nogil:
    """Move the codes that occur to groups, ascending, and clear the bits; returns how many."""
    cdef int64_t g = 0
    cdef int64_t word
    cdef uint64_t bits
    for word in range((n_codes >> 6) + 1):
        bits = reader.hit[word]
        reader.hit[word] = 0
        while bits != 0:
            take_cell(reader, q, (word << 6) + trailing_zeros(bits), g)
            bits &= bits - 1
            g += 1
    return g


# ---------------------------------------------------------------------------------------------
# columns with a common code

cdef void groups_of_uncommon(Reader* reader, Search* q, const narrow_t* codes,
                             const OpenNode* node, const Column* column) noexcept nogil:
    """The same for a column of which most rows hold one code: it gets what the others leave."""
    cdef uint32_t common = column.common
    cdef int64_t rest = 0
    reserve_cells(reader, column.n_codes, stride_of_reader(reader, q))
    reserve_groups(q, (node.totals.n if node.totals.n < column.n_codes else column.n_codes) + 2)
    count_uncommon(reader, q, codes, node, common)
    reader.hit[common >> 6] |= <uint64_t>1 << (common & 63)
    q.groups.count = take_hit(reader, q, column.n_codes)
    while q.groups.rank[rest] != common:
        rest += 1
    rest_to_group(q, rest)
    if q.groups.n[rest] == 0:
        drop_group(q, rest)


cdef void count_uncommon(const Reader* reader, const Search* q, const narrow_t* codes,
                         const OpenNode* node, uint32_t common) noexcept nogil:
    """Add the rows of all codes but one, which most rows of the table hold."""
    cdef Cells c = cells_of(reader, q, node)
    cdef uint32_t* place = reader.codes
    cdef uint64_t* hit = reader.hit
    cdef int64_t m = 0
    cdef int64_t i
    cdef uint32_t code
    for i in range(node.totals.n):
        place[m] = <uint32_t>i
        m += codes[<uint32_t>c.item[i]] != <narrow_t>common
    for i in range(m):
        code = codes[<uint32_t>c.item[place[i]]]
        hit[code >> 6] |= <uint64_t>1 << (code & 63)
        add_to_cell(&c, c.kind, False, code, place[i])
