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

from dtrees.core._bag cimport Bag, label_of, row_of, target_at, times_of, weight_at
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
    cdef int64_t code, word
    cdef uint64_t bits
    cdef bint sparsely = n < n_codes
    reserve_cells(reader, n_codes, stride_of_reader(reader, q))
    if sparsely:
        reserve_groups(q, n + 1)
        count_codes(reader, q, codes, node, True)
        for word in range((n_codes >> 6) + 1):
            bits = reader.hit[word]
            reader.hit[word] = 0
            while bits != 0:
                code = (word << 6) + trailing_zeros(bits)
                bits &= bits - 1
                take_cell(reader, q, code, g)
                g += 1
    else:
        reserve_groups(q, n_codes + 2)
        count_codes(reader, q, codes, node, False)
        for code in range(n_codes + 1):
            g += take_cell(reader, q, code, g)
    q.groups.count = g


cdef inline void count_codes(const Reader* reader, const Search* q, const code_t* codes,
                             const OpenNode* node, bint sparsely) noexcept nogil:
    """Add the rows to the cells; `sparsely`: and note which codes occur."""
    cdef const Bag* bag = &reader.bag
    cdef const uint64_t* item = bag.item + node.start
    cdef const int64_t* value = bag.value + node.start
    cdef const uint64_t* packed = reader.packed
    cdef const uint16_t* label = reader.label
    cdef bint is_local = q.criterion == &reader.local
    cdef int64_t* cells = reader.cells
    cdef uint64_t* hit = reader.hit
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t n = node.totals.n
    cdef int64_t one = <int64_t>1 << 32
    cdef bint plain = bag.weight == NULL and bag.target == NULL
    cdef int64_t* cell
    cdef uint64_t x
    cdef uint32_t code
    cdef int64_t i, k, w
    if reader.is_packed:
        for i in range(n):
            code = codes[<uint32_t>item[i]]
            cells[code] += packed[i]
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)
    elif by_class(q) and reader.is_paired:
        for i in range(n):
            x = item[i]
            code = codes[<uint32_t>x]
            k = label[i] if is_local else label_of(x)
            w = times_of(x) if plain else weight_at(bag, node.start + i)
            cells[code * K + k] += one + w
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)
    elif by_class(q):
        for i in range(n):
            x = item[i]
            code = codes[<uint32_t>x]
            cell = cells + code * (1 + K)
            cell[0] += 1
            k = label[i] if is_local else label_of(x)
            cell[1 + k] += times_of(x) if plain else weight_at(bag, node.start + i)
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)
    elif reader.is_paired and plain and bag.value != NULL:
        for i in range(n):
            x = item[i]
            code = codes[<uint32_t>x]
            cell = cells + 2 * <int64_t>code
            w = times_of(x)
            cell[0] += one + w
            cell[1] += w * value[i]
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)
    elif reader.is_paired:
        for i in range(n):
            code = codes[<uint32_t>item[i]]
            cell = cells + 2 * <int64_t>code
            cell[0] += one + weight_at(bag, node.start + i)
            cell[1] += target_at(bag, node.start + i)
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)
    else:
        for i in range(n):
            code = codes[<uint32_t>item[i]]
            cell = cells + 3 * <int64_t>code
            cell[0] += 1
            cell[1] += weight_at(bag, node.start + i)
            cell[2] += target_at(bag, node.start + i)
            if sparsely:
                hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef inline int64_t take_cell(Reader* reader, Search* q, int64_t code, int64_t g) noexcept nogil:
    """Move the sums of a code to group g and clear them; returns 1 if the code occurs."""
    cdef Groups* groups = &q.groups
    cdef int64_t K = q.criterion.n_classes
    cdef int64_t* cell
    cdef uint64_t packed
    cdef int64_t k, w, n, sums
    groups.rank[g] = <uint32_t>code
    groups.row[g] = -1
    if reader.is_packed:
        packed = <uint64_t>reader.cells[code]
        reader.cells[code] = 0
        groups.n[g] = packed >> 2 * FIELD
        groups.weight[g] = (packed >> FIELD) & LARGEST_FIELD
        groups.target[g] = packed & LARGEST_FIELD
        return packed > 0
    if by_class(q) and reader.is_paired:
        cell = reader.cells + code * K
        sums = 0
        for k in range(K):
            sums += cell[k]
            groups.target[g * K + k] = cell[k] & LOW_HALF
            cell[k] = 0
        groups.n[g] = sums >> 32
        groups.weight[g] = sums & LOW_HALF
        return sums > 0
    if by_class(q):
        cell = reader.cells + code * (1 + K)
        n = cell[0]
        w = 0
        for k in range(K):
            groups.target[g * K + k] = cell[1 + k]
            w += cell[1 + k]
            cell[1 + k] = 0
        cell[0] = 0
        groups.n[g] = n
        groups.weight[g] = w
        return n > 0
    if reader.is_paired:
        cell = reader.cells + 2 * code
        n = cell[0] >> 32
        groups.n[g] = n
        groups.weight[g] = cell[0] & LOW_HALF
        groups.target[g] = cell[1]
        cell[0] = cell[1] = 0
        return n > 0
    cell = reader.cells + 3 * code
    n = cell[0]
    groups.n[g] = n
    groups.weight[g] = cell[1]
    groups.target[g] = cell[2]
    cell[0] = cell[1] = cell[2] = 0
    return n > 0


# ---------------------------------------------------------------------------------------------
# columns with a common code

cdef void groups_of_uncommon(Reader* reader, Search* q, const narrow_t* codes,
                             const OpenNode* node, const Column* column) noexcept nogil:
    """The same for a column of which most rows hold one code: it gets what the others leave."""
    cdef uint32_t common = column.common
    cdef int64_t g = 0
    cdef int64_t rest = -1
    cdef int64_t code, word
    cdef uint64_t bits
    reserve_cells(reader, column.n_codes, stride_of_reader(reader, q))
    reserve_groups(q, (node.totals.n if node.totals.n < column.n_codes else column.n_codes) + 2)
    count_uncommon(reader, q, codes, node, common)
    reader.hit[common >> 6] |= <uint64_t>1 << (common & 63)
    for word in range((column.n_codes >> 6) + 1):
        bits = reader.hit[word]
        reader.hit[word] = 0
        while bits != 0:
            code = (word << 6) + trailing_zeros(bits)
            bits &= bits - 1
            take_cell(reader, q, code, g)
            if code == common:
                rest = g
            g += 1
    q.groups.count = g
    rest_to_group(q, rest)
    if q.groups.n[rest] == 0:
        drop_group(q, rest)


cdef void count_uncommon(const Reader* reader, const Search* q, const narrow_t* codes,
                         const OpenNode* node, uint32_t common) noexcept nogil:
    """Add the rows of all codes but one, which most rows of the table hold."""
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef uint32_t* place = reader.codes
    cdef int64_t stride = stride_of_reader(reader, q)
    cdef int64_t m = 0
    cdef int64_t i, at, k, w
    cdef uint32_t code
    cdef int64_t* cell
    for i in range(node.totals.n):
        place[m] = <uint32_t>i
        m += codes[<uint32_t>item[i]] != <narrow_t>common
    for i in range(m):
        at = node.start + place[i]
        code = codes[row_of(reader.bag.item[at])]
        reader.hit[code >> 6] |= <uint64_t>1 << (code & 63)
        cell = reader.cells + code * stride
        w = weight_at(&reader.bag, at)
        if reader.is_packed:
            cell[0] += reader.packed[place[i]]
        elif by_class(q):
            k = label_of(reader.bag.item[at])
            if q.criterion == &reader.local:
                k = reader.local_number[k]
            if reader.is_paired:
                cell[k] += (<int64_t>1 << 32) + w
            else:
                cell[0] += 1
                cell[1 + k] += w
        elif reader.is_paired:
            cell[0] += (<int64_t>1 << 32) + w
            cell[1] += target_at(&reader.bag, at)
        else:
            cell[0] += 1
            cell[1] += w
            cell[2] += target_at(&reader.bag, at)
