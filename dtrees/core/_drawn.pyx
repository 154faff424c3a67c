"""Columns that are read afresh: for nodes that search a few columns drawn from many.

Keeping every column in order for every node (`_workspace`) pays when all of them are searched.
Where a node draws a few, as in a random forest, its rows are all that is kept (`_bag`), and a
drawn column is read from the codes of these rows:

    a handful     codes are sorted and scored as they come
    many rows     a histogram, all cells cleared and visited
    few rows      a histogram with a bit per code, so that only codes that occur are visited
    few for the   of codes, or of classes, each with a number in a cell: rows are sorted by code
      cells
    sparse        the stored rows of the column that are in the node, found by the place of every
                  row or by binary search, whichever is cheaper ([SP] 3.2, eq. 8)

Two classes fit one number per row, and a cell takes one addition.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core._bag cimport (
    Bag, fill_bag, free_bag, label_of, new_bag, row_of, target_at, times_of, weight_at
)
from dtrees.core._criterion cimport Criterion, squared_score
from dtrees.core._groups cimport (
    collect_groups, cut_at, drop_group, reserve_groups, rest_to_group, search_groups, search_random,
    toss_missing
)
from dtrees.core._search cimport (
    NONE, Groups, Search, add_to_class, beats, begin_pass, by_class, consider, heavy_enough
)
from dtrees.core._sort cimport merge_sort
from dtrees.core._splitter cimport search_run
from dtrees.core._structs cimport (
    ALL_ORDERED, AT_MOST, CLASSES, NO_RANK, SQUARED, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode,
    Payload, Run, Split
)
from dtrees.core._workspace cimport (
    STORED_SPARSE, STORED_U16, STORED_U8, Column, OpenNode, RowLists, last_ordered
)

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused narrow_t:
    uint8_t
    uint16_t

cdef enum:
    FIELD = 21              # bits of a field of a packed row or cell
    LARGEST_FIELD = (1 << 21) - 1
    LARGEST_HALF = 0x7FFFFFFF
    LOW_HALF = 0xFFFFFFFF
    LEAST_COUNTED = 16      # rows: so few are sorted by comparison
    SORT_COST = 4           # of an entry against that of a number in a cell
    MOST_CELLS = 16         # numbers in the histogram of a column, for each row of the growth
    SEARCH_COST = 4         # steps of a binary search against one of a scan
    MOST_MARKED = 1 << 13   # cells of a node whose columns are marked


cdef Reader* new_reader(const Payload* payload, const uint32_t* rows, int64_t n,
                        int64_t n_places, Mode mode, const Criterion* criterion,
                        const RowLists* lists, bint random_cuts) noexcept nogil:
    """A reader of n rows of a table of n_places; NULL without memory.

    payload : by row of the table. lists : of its sparse columns, NULL where there are none. Freed
    by `free_reader`.
    """
    cdef Reader* reader = <Reader*>calloc(1, sizeof(Reader))
    cdef int64_t n_rows = n + n // 8  # the next bag may be larger
    if reader == NULL:
        return NULL
    reader.room = n_rows
    reader.n_places = n_places
    reader.mode = mode
    reader.is_weighted = payload.times != NULL or payload.weight != NULL
    reader.has_target = mode == SUM or mode == WEIGHTED_SUM
    if not new_bag(&reader.bag, n_rows, payload.value != NULL):
        free_reader(reader)
        return NULL
    if mode == CLASSES or mode == WEIGHTED_CLASSES:
        reader.local_totals = <int64_t*>malloc((criterion.n_classes + 1) * sizeof(int64_t))
        reader.local_number = <uint16_t*>malloc(criterion.n_classes * sizeof(uint16_t))
        reader.label = <uint16_t*>malloc((n_rows + 1) * sizeof(uint16_t))
    elif payload.label != NULL:
        reader.packed = <uint64_t*>malloc((n_rows + 1) * sizeof(uint64_t))
        if random_cuts:
            reader.small_weight = <uint8_t*>malloc(n_rows + 1)
            reader.small_target = <uint8_t*>malloc(n_rows + 1)
    reader.codes = <uint32_t*>malloc((n_rows + 1) * sizeof(uint32_t))
    if lists.start != NULL:
        reader.lists = lists[0]
        reader.place = <uint32_t*>malloc((n_places + 1) * sizeof(uint32_t))
        reader.present = <uint64_t*>calloc(lists.n_words, sizeof(uint64_t))
    take_rows(reader, payload, rows, n, criterion)
    return reader


cdef bint has_room(const Reader* reader, Mode mode, int64_t n, int64_t n_places) noexcept nogil:
    """Whether the reader of another growth of the same table serves one of n rows."""
    return reader.mode == mode and reader.room >= n and reader.n_places == n_places


cdef void take_rows(Reader* reader, const Payload* payload, const uint32_t* rows, int64_t n,
                    const Criterion* criterion) noexcept nogil:
    """The rows of a growth."""
    cdef int64_t i
    reader.n_rows = n
    reader.local = criterion[0]
    fill_bag(&reader.bag, payload, rows, n)
    if reader.place != NULL:
        memset(reader.place, 0xFF, reader.n_places * sizeof(uint32_t))
        for i in range(n):
            reader.place[rows[i]] = <uint32_t>i


cdef void place_rows(Reader* reader, const OpenNode* node) noexcept nogil:
    """Note where the rows of a node are, after they were parted."""
    cdef int64_t i
    if reader.place != NULL:
        for i in range(node.start, node.start + node.totals.n):
            reader.place[row_of(reader.bag.item[i])] = <uint32_t>i


cdef void free_reader(Reader* reader) noexcept nogil:
    if reader == NULL:
        return
    free_bag(&reader.bag)
    free(reader.payload.label)
    free(reader.payload.weight)
    free(reader.payload.target)
    free(reader.local_totals)
    free(reader.local_number)
    free(reader.label)
    free(reader.packed)
    free(reader.small_weight)
    free(reader.small_target)
    free(reader.cells)
    free(reader.hit)
    free(reader.counts)
    free(reader.entries)
    free(reader.scratch)
    free(reader.codes)
    free(reader.place)
    free(reader.present)
    free(reader)


cdef void read_rows(Reader* reader, const Search* q, const OpenNode* node) noexcept nogil:
    """Take the rows of a node: what they add to a histogram. O(rows)."""
    cdef const Bag* bag = &reader.bag
    cdef int64_t start = node.start
    cdef int64_t n = node.totals.n
    cdef int64_t i
    reader.has_payload = False
    reader.is_packed = False
    reader.is_paired = node.totals.weight <= LARGEST_HALF
    reader.is_small = False
    if by_class(q):
        number_classes(reader, node, q.criterion.n_classes)
    else:
        if n <= FEW:
            for i in range(n):
                reader.few_weight[i] = weight_at(bag, start + i)
                reader.few_target[i] = target_at(bag, start + i)
        if q.criterion.n_classes > 0:
            reader.is_packed = node.totals.weight <= LARGEST_FIELD
            reader.has_packed = False
            if reader.small_weight != NULL and reader.bag.weight == NULL:
                pack_small(reader, node)


cdef void number_classes(Reader* reader, const OpenNode* node, int64_t n_classes) noexcept nogil:
    """Number the classes that the node holds; cells and sums of the others are zero anyway."""
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef int n_local = 0
    cdef int64_t i
    for i in range(n_classes):
        reader.local_number[i] = <uint16_t>n_local
        reader.local_totals[n_local] = node.class_totals[i]
        n_local += node.class_totals[i] > 0
    reader.local.n_classes = n_local
    for i in range(node.totals.n):
        reader.label[i] = reader.local_number[label_of(item[i])]


cdef inline void see_local(Reader* reader, Search* q) noexcept nogil:
    """Let the search see the classes of the node only; until `see_all`.

    For columns without categories, whose scores are sums over classes.
    """
    q.criterion = &reader.local
    q.class_totals = reader.local_totals
    q.n_columns_of_target = reader.local.n_classes
    q.side_is_clear = False


cdef inline void see_all(Search* q, const Criterion* criterion,
                         const OpenNode* node) noexcept nogil:
    q.criterion = criterion
    q.class_totals = node.class_totals
    q.n_columns_of_target = criterion.n_classes
    q.side_is_clear = False


cdef void pack_rows(Reader* reader, const OpenNode* node) noexcept nogil:
    """Two classes: all that a row adds in one number, if that is not there yet."""
    cdef const Bag* bag = &reader.bag
    cdef const uint64_t* item = bag.item + node.start
    cdef int64_t n = node.totals.n
    cdef uint64_t one = <uint64_t>1 << 2 * FIELD
    cdef uint64_t weight
    cdef int64_t i
    if reader.has_packed or not reader.is_packed:
        return
    reader.has_packed = True
    if bag.weight != NULL:
        for i in range(n):
            weight = bag.weight[row_of(item[i])]
            reader.packed[i] = one + (weight << FIELD) + weight * <uint64_t>label_of(item[i])
        return
    for i in range(n):
        weight = times_of(item[i])
        reader.packed[i] = one + (weight << FIELD) + weight * <uint64_t>label_of(item[i])


cdef void pack_small(Reader* reader, const OpenNode* node) noexcept nogil:
    """The same in two numbers of 8 bits, for random cuts."""
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef uint64_t seen = 0
    cdef uint64_t weight
    cdef int64_t i
    for i in range(node.totals.n):
        weight = times_of(item[i])
        seen |= weight
        reader.small_weight[i] = <uint8_t>weight
        reader.small_target[i] = <uint8_t>(weight * <uint64_t>label_of(item[i]))
    reader.is_small = seen < 256


cdef void reserve_payload(Reader* reader, int64_t count) noexcept nogil:
    if count <= reader.n_payload:
        return
    free(reader.payload.label)
    free(reader.payload.weight)
    free(reader.payload.target)
    reader.n_payload = count = count + count // 2
    reader.payload.label = <uint16_t*>malloc(count * sizeof(uint16_t))
    if reader.is_weighted:
        reader.payload.weight = <int64_t*>malloc(count * sizeof(int64_t))
    if reader.has_target:
        reader.payload.target = <int64_t*>malloc(count * sizeof(int64_t))


cdef void gather_payload(Reader* reader, const OpenNode* node) noexcept nogil:
    """What the rows of the node hold, one by one, if that is not there yet."""
    cdef const Bag* bag = &reader.bag
    cdef int64_t start = node.start
    cdef int64_t i
    if reader.has_payload:
        return
    reader.has_payload = True
    reserve_payload(reader, node.totals.n)
    for i in range(node.totals.n):
        reader.payload.label[i] = <uint16_t>label_of(bag.item[start + i])
    if reader.is_weighted:
        for i in range(node.totals.n):
            reader.payload.weight[i] = weight_at(bag, start + i)
    if reader.has_target:
        for i in range(node.totals.n):
            reader.payload.target[i] = target_at(bag, start + i)


cdef void reserve_entries(Reader* reader, int64_t count) noexcept nogil:
    if count <= reader.n_entries:
        return
    free(reader.entries)
    free(reader.scratch)
    reader.entries = <uint64_t*>malloc(count * sizeof(uint64_t))
    reader.scratch = <uint64_t*>malloc(count * sizeof(uint64_t))
    reader.n_entries = count


cdef void reserve_cells(Reader* reader, int64_t n_codes, int64_t stride) noexcept nogil:
    """A histogram of zeros and bits for codes 0..n_codes."""
    cdef int64_t n_cells = (n_codes + 1) * stride
    cdef int64_t n_words = (n_codes >> 6) + 1
    if n_cells > reader.n_cells:
        free(reader.cells)
        reader.cells = <int64_t*>calloc(n_cells, sizeof(int64_t))
        reader.n_cells = n_cells
    if n_words > reader.n_words:
        free(reader.hit)
        reader.hit = <uint64_t*>calloc(n_words, sizeof(uint64_t))
        reader.n_words = n_words


# ---------------------------------------------------------------------------------------------
# a handful of rows

cdef inline int64_t sort_few(uint64_t* keys, const code_t* codes, const uint64_t* item,
                             int64_t n) noexcept nogil:
    """Keys code | place of n rows, ascending, by insertion."""
    cdef uint64_t key
    cdef int64_t i, j
    for i in range(n):
        key = <uint64_t>codes[<uint32_t>item[i]] << 8 | <uint64_t>i
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key
    return n


cdef bint search_few(Reader* reader, Search* q, const OpenNode* node, const Column* column,
                     int32_t number, bint* varies) noexcept nogil:
    """Search a dense column of at most FEW rows, of squared error; False: the column has missing
    values, and nothing was done."""
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef int64_t n = node.totals.n
    cdef int64_t w = 0
    cdef int64_t s = 0
    cdef int64_t best_at = -1
    cdef int64_t i
    cdef double best = NONE
    cdef double score
    cdef uint64_t keys[FEW]
    cdef uint64_t code, previous
    cdef Split* split = &q.split
    if column.storage == STORED_U8:
        sort_few(keys, <const uint8_t*>column.codes, item, n)
    elif column.storage == STORED_U16:
        sort_few(keys, <const uint16_t*>column.codes, item, n)
    else:
        sort_few(keys, <const uint32_t*>column.codes, item, n)
    varies[0] = keys[0] >> 8 != keys[n - 1] >> 8
    if not varies[0]:
        return True
    if keys[0] >> 8 == 0:
        return False
    previous = keys[0] >> 8
    for i in range(n):
        code = keys[i] >> 8
        if code != previous:
            previous = code
            if i >= q.min_rows and n - i >= q.min_rows and heavy_enough(q, w):
                score = squared_score(q.W, q.S, <double>w, <double>(q.totals.weight - w),
                                      <double>s)
                if score > best:
                    best = score
                    best_at = i
        w += reader.few_weight[keys[i] & 0xFF]
        s += reader.few_target[keys[i] & 0xFF]
    q.best = best
    if beats(q, number):
        split.score = best
        split.column = number
        split.test = AT_MOST
        split.missing_left = False
        split.saw_missing = False
        split.boundary = <uint32_t>(keys[best_at - 1] >> 8)
        split.beyond = <uint32_t>(keys[best_at] >> 8)
        split.boundary_row = -1
        split.beyond_row = -1
    return True


# ---------------------------------------------------------------------------------------------
# dense columns by histogram

cdef inline int64_t stride_of_reader(const Reader* reader, const Search* q) noexcept nogil:
    """Numbers in a cell: one when packed, else rows, weight and target, or rows and classes; rows
    and weights share a number when paired."""
    if reader.is_packed:
        return 1
    if by_class(q):
        return q.criterion.n_classes + (not reader.is_paired)
    return 2 if reader.is_paired else 3


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
    elif reader.is_paired and plain:
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


cdef void read_groups(Reader* reader, Search* q, const Column* column,
                      const OpenNode* node) noexcept nogil:
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


# ---------------------------------------------------------------------------------------------
# sorted entries: few rows of several classes, and sparse columns

cdef void sort_by_counts(Reader* reader, const code_t* codes, const uint64_t* item, int64_t n,
                         int64_t n_codes) noexcept nogil:
    """Entries of n rows, by counting their codes. O(n + n_codes / 64)."""
    cdef code_t* own = <code_t*>reader.codes
    cdef int64_t n_words = (n_codes >> 6) + 1
    cdef int64_t i, word
    cdef uint64_t bits
    cdef uint32_t code, count
    cdef uint32_t total = 0
    reserve_cells(reader, n_codes, 0)
    if n_codes >= reader.n_counts:
        free(reader.counts)
        reader.counts = <uint32_t*>calloc(n_codes + 1, sizeof(uint32_t))
        reader.n_counts = n_codes + 1
    for i in range(n):
        code = codes[<uint32_t>item[i]]
        own[i] = <code_t>code
        reader.counts[code] += 1
        reader.hit[code >> 6] |= <uint64_t>1 << (code & 63)
    for word in range(n_words):
        bits = reader.hit[word]
        while bits != 0:
            code = <uint32_t>((word << 6) + trailing_zeros(bits))
            bits &= bits - 1
            count = reader.counts[code]
            reader.counts[code] = total
            total += count
    for i in range(n):
        code = own[i]
        reader.entries[reader.counts[code]] = <uint64_t>code << 32 | <uint64_t>i
        reader.counts[code] += 1
    for word in range(n_words):
        bits = reader.hit[word]
        reader.hit[word] = 0
        while bits != 0:
            reader.counts[(word << 6) + trailing_zeros(bits)] = 0
            bits &= bits - 1


cdef inline void sorted_codes(Reader* reader, const code_t* codes, const uint64_t* item,
                              int64_t n, int64_t n_codes) noexcept nogil:
    cdef int64_t i
    if n > LEAST_COUNTED and n > n_codes >> 6:
        sort_by_counts(reader, codes, item, n, n_codes)
        return
    for i in range(n):
        reader.entries[i] = <uint64_t>codes[<uint32_t>item[i]] << 32 | <uint64_t>i
    merge_sort(reader.entries, reader.scratch, n)


cdef void read_dense_entries(Reader* reader, const Column* column,
                             const OpenNode* node) noexcept nogil:
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef int64_t n = node.totals.n
    if column.storage == STORED_U8:
        sorted_codes(reader, <const uint8_t*>column.codes, item, n, column.n_codes)
    elif column.storage == STORED_U16:
        sorted_codes(reader, <const uint16_t*>column.codes, item, n, column.n_codes)
    else:
        sorted_codes(reader, <const uint32_t*>column.codes, item, n, column.n_codes)
    reader.run.length = <uint32_t>n
    reader.run.fill = NO_RANK


cdef int64_t find_row(const Column* column, uint32_t row, int64_t low) noexcept nogil:
    """Index of the first stored row at or above `row`, from `low` on."""
    cdef int64_t high = column.stored
    cdef int64_t middle
    while low < high:
        middle = (low + high) >> 1
        if <uint32_t>column.rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


cdef int64_t bits_of(int64_t x) noexcept nogil:
    cdef int64_t bits = 0
    while x > 0:
        bits += 1
        x >>= 1
    return bits


cdef int64_t find_entries(Reader* reader, const OpenNode* node,
                          const Column* column) noexcept nogil:
    """Stored rows of the column that are in the node, whose rows ascend: entries of code and
    place. Returns how many there are."""
    cdef const uint32_t* codes = <const uint32_t*>column.codes
    cdef const uint64_t* item = reader.bag.item
    cdef int64_t start = node.start
    cdef int64_t n = node.totals.n
    cdef int64_t m = 0
    cdef int64_t i, at
    cdef uint32_t row, place
    if n * SEARCH_COST * bits_of(column.stored) < column.stored:
        at = 0
        for i in range(n):
            row = row_of(item[start + i])
            at = find_row(column, row, at)
            if at == column.stored:
                break
            if <uint32_t>column.rows[at] == row:
                reader.entries[m] = <uint64_t>codes[at] << 32 | <uint64_t>i
                m += 1
    else:
        for at in range(column.stored):
            place = reader.place[column.rows[at]] - <uint32_t>start
            reader.entries[m] = <uint64_t>codes[at] << 32 | place
            m += place < <uint32_t>n
    return m


cdef void sort_sparse_entries(Reader* reader, const Column* column, int64_t m) noexcept nogil:
    """Sort m entries that were found; codes equal to the fill code are left out."""
    cdef int64_t kept = 0
    cdef int64_t i
    for i in range(m):
        reader.entries[kept] = reader.entries[i]
        kept += reader.entries[i] >> 32 != column.fill
    merge_sort(reader.entries, reader.scratch, kept)
    reader.run.length = <uint32_t>kept
    reader.run.fill = column.fill


cdef void mark_present(Reader* reader, const OpenNode* node) noexcept nogil:
    """Note which sparse columns have stored rows in a node of few rows; O(cells of its rows).

    Then `drop_absent` knows without a look at the column. Taken back by `forget_present`.
    """
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef const RowLists* lists = &reader.lists
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
    reader.knows_present = True
    for i in range(node.totals.n):
        row = row_of(item[i])
        for at in range(lists.start[row], lists.start[row + 1]):
            column = lists.column[at]
            reader.present[column >> 6] |= <uint64_t>1 << (column & 63)


cdef void forget_present(Reader* reader, const OpenNode* node) noexcept nogil:
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef const RowLists* lists = &reader.lists
    cdef int64_t i, at
    cdef uint32_t row
    if not reader.knows_present:
        return
    reader.knows_present = False
    for i in range(node.totals.n):
        row = row_of(item[i])
        for at in range(lists.start[row], lists.start[row + 1]):
            reader.present[<uint32_t>lists.column[at] >> 6] = 0


cdef int64_t drop_absent(const Reader* reader, int32_t* columns, int64_t n) noexcept nogil:
    """Keep the columns that are not known to be constant in the node; returns how many."""
    cdef int64_t kept = 0
    cdef int64_t i
    cdef uint32_t column
    if not reader.knows_present:
        return n
    for i in range(n):
        column = columns[i]
        columns[kept] = column
        kept += (reader.present[column >> 6] | reader.lists.dense[column >> 6]) >> (
            column & 63) & 1
    return kept


cdef bint by_entries(const Reader* reader, const Search* q, const Column* column,
                     int64_t n) noexcept nogil:
    """Whether a column is sorted rather than counted.

    Its histogram would be mostly empty: fewer rows than words of a bit per code, fewer than
    numbers in the cells that they hit, or more cells than a growth of so many rows should hold.
    """
    cdef int64_t n_cells = (column.n_codes + <int64_t>1) * stride_of_reader(reader, q)
    cdef int64_t n_hit = column.n_codes if column.n_codes < n else n
    if column.storage == STORED_SPARSE or n < column.n_codes >> 6:
        return True
    if by_class(q) and n * SORT_COST <= n_hit * q.criterion.n_classes:
        return True
    return n_cells > MOST_CELLS * (reader.n_rows + 4096)


cdef void read_entries(Reader* reader, const OpenNode* node, const Column* column,
                       int32_t number) noexcept nogil:
    """The run of one column."""
    cdef Run* run = &reader.run
    cdef int64_t m = 0
    reserve_entries(reader, node.totals.n + 1)
    run.length = 0
    if column.storage == STORED_SPARSE:
        m = find_entries(reader, node, column)
        if m == 0:
            return
    gather_payload(reader, node)
    memset(run, 0, sizeof(Run))
    run.column = number
    run.fill_code = column.fill
    run.last_ordered = last_ordered(column)
    if column.storage == STORED_SPARSE:
        sort_sparse_entries(reader, column, m)
    else:
        read_dense_entries(reader, column, node)


cdef bint search_drawn(Reader* reader, Search* q, const OpenNode* node, const Column* column,
                       int32_t number) noexcept nogil:
    """Read and search one column; False when it is constant in the node."""
    cdef const Criterion* criterion
    cdef bint varies
    if (node.totals.n <= FEW and q.criterion.impurity == SQUARED
            and column.storage != STORED_SPARSE and last_ordered(column) == ALL_ORDERED
            and search_few(reader, q, node, column, number, &varies)):
        return varies
    if by_class(q) and last_ordered(column) == ALL_ORDERED:
        criterion = q.criterion
        see_local(reader, q)
        varies = search_read(reader, q, node, column, number)
        see_all(q, criterion, node)
        return varies
    return search_read(reader, q, node, column, number)


cdef bint search_read(Reader* reader, Search* q, const OpenNode* node, const Column* column,
                      int32_t number) noexcept nogil:
    """The same by sorted entries or by a histogram, whichever is cheaper."""
    cdef Payload payload
    cdef bint varies
    if by_entries(reader, q, column, node.totals.n):
        read_entries(reader, node, column, number)
        if reader.run.length == 0:
            return False
        payload = q.payload
        q.payload = reader.payload
        if q.criterion == &reader.local:
            q.payload.label = reader.label
        varies = search_run(q, <const uint64_t*>reader.entries, &reader.run)
        q.payload = payload
        return varies
    read_groups(reader, q, column, node)
    if q.groups.count <= 1:
        return False
    search_groups(q, number, last_ordered(column))
    return True


cdef void groups_of_drawn(Reader* reader, Search* q, const OpenNode* node, const Column* column,
                          int32_t number) noexcept nogil:
    """The codes of a column in the node, as groups of the search."""
    cdef Payload payload
    if by_entries(reader, q, column, node.totals.n):
        read_entries(reader, node, column, number)
        if reader.run.length == 0:
            q.groups.count = 0
            return
        payload = q.payload
        q.payload = reader.payload
        collect_groups(q, <const uint64_t*>reader.entries, &reader.run)
        q.payload = payload
    else:
        read_groups(reader, q, column, node)


cdef const uint32_t* codes_to_part(Reader* reader, const OpenNode* node, const Column* column,
                                   bint is_subset) noexcept nogil:
    """The codes of the node's rows, in their order; NULL where a dense column tells them as well.
    """
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef int64_t n = node.totals.n
    cdef int64_t i, m
    if column.storage == STORED_SPARSE:
        reserve_entries(reader, n + 1)
        m = find_entries(reader, node, column)
        for i in range(n):
            reader.codes[i] = column.fill
        for i in range(m):
            reader.codes[<uint32_t>reader.entries[i]] = <uint32_t>(reader.entries[i] >> 32)
        return reader.codes
    if not is_subset:
        return NULL
    if column.storage == STORED_U8:
        for i in range(n):
            reader.codes[i] = (<const uint8_t*>column.codes)[row_of(item[i])]
    elif column.storage == STORED_U16:
        for i in range(n):
            reader.codes[i] = (<const uint16_t*>column.codes)[row_of(item[i])]
    else:
        for i in range(n):
            reader.codes[i] = (<const uint32_t*>column.codes)[row_of(item[i])]
    return reader.codes


# ---------------------------------------------------------------------------------------------
# random cuts

cdef struct Cut:
    uint32_t at             # codes 1 .. at go left
    bint has_above          # some codes are greater
    bint saw_missing
    bint missing_left


cdef inline bint draw_cut(Reader* reader, Search* q, const code_t* codes, const uint64_t* item,
                          int64_t n, int32_t number, const double* value,
                          Cut* cut) noexcept nogil:
    """Draw the cut and sum up its left side; False when the column is constant.

    Loops are apart and without branches, so that codes of 8 bits are compared many at a time. A
    code less one wraps to the top when it is missing.
    """
    cdef code_t* own = <code_t*>reader.codes
    cdef code_t top = <code_t>0 - <code_t>1
    cdef code_t least = top
    cdef code_t most = 0
    cdef code_t lowest = top
    cdef code_t at, code, less
    cdef uint32_t low, high
    cdef uint32_t n_left = 0
    cdef uint32_t w = 0
    cdef uint32_t s = 0
    cdef uint64_t sums = 0
    cdef uint8_t mask
    cdef uint8_t missing_left
    cdef const uint8_t* weight = reader.small_weight
    cdef const uint8_t* target = reader.small_target
    cdef int64_t i
    for i in range(n):
        own[i] = codes[<uint32_t>item[i]]
    for i in range(n):
        code = own[i]
        less = <code_t>(code - 1)
        least = less if less < least else least
        most = code if code > most else most
        lowest = code if code < lowest else lowest
    low = <uint32_t>least + 1
    high = most
    cut.saw_missing = lowest == 0
    if high == 0 or (low == high and not cut.saw_missing):
        return False
    cut.missing_left = toss_missing(q, number, cut.saw_missing and low < high)
    missing_left = cut.missing_left
    at = <code_t>(low if low == high else cut_at(q, number, low, high, value))
    cut.at = at
    cut.has_above = most > at
    begin_pass(q, AT_MOST, cut.missing_left)
    q.best = NONE
    q.floor = NONE
    if reader.is_small:
        for i in range(n):
            less = <code_t>(own[i] - 1)
            mask = <uint8_t>0 - <uint8_t>((less < at) | (missing_left & (own[i] == 0)))
            n_left += mask & 1
            w += mask & weight[i]
            s += mask & target[i]
        q.n = n_left
        q.w = w
        q.s = s
    elif reader.is_packed:
        for i in range(n):
            less = <code_t>(own[i] - 1)
            sums += reader.packed[i] & (0 - <uint64_t>(
                (less < at) | (missing_left & (own[i] == 0))))
        q.n = sums >> 2 * FIELD
        q.w = (sums >> FIELD) & LARGEST_FIELD
        q.s = sums & LARGEST_FIELD
    else:
        for i in range(n):
            less = <code_t>(own[i] - 1)
            if less < at or (missing_left and own[i] == 0):
                add_item(reader, q, item - reader.bag.item + i)
    return True


cdef inline void add_item(const Reader* reader, Search* q, int64_t i) noexcept nogil:
    """Move an item of the bag to the side, for statistics that are not packed."""
    cdef const Bag* bag = &reader.bag
    q.n += 1
    if by_class(q):
        add_to_class(q, <int>label_of(bag.item[i]), weight_at(bag, i))
    else:
        q.w += weight_at(bag, i)
        q.s += target_at(bag, i)


cdef inline void neighbours(Reader* reader, const code_t* codes, const uint64_t* item,
                            int64_t n, Split* split) noexcept nogil:
    """The codes beside the cut that occur in the node, for the test that is recorded."""
    cdef code_t* own = <code_t*>reader.codes
    cdef code_t at = <code_t>split.boundary
    cdef code_t left = 0
    cdef code_t right = <code_t>0 - <code_t>1
    cdef code_t mask, code
    cdef int64_t i
    for i in range(n):
        own[i] = codes[<uint32_t>item[i]]
    for i in range(n):
        mask = <code_t>0 - <code_t>(own[i] <= at)
        code = own[i] & mask
        left = code if code > left else left
    for i in range(n):
        mask = <code_t>0 - <code_t>(own[i] <= at)
        code = own[i] | mask
        right = code if code < right else right
    split.boundary = left
    if split.beyond > 0:
        split.beyond = right


cdef void finish_cut(Reader* reader, Search* q, const OpenNode* node,
                     const Column* column) noexcept nogil:
    """Complete the split that `search_cut` has chosen. O(rows)."""
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef int64_t n = node.totals.n
    if not is_cut(column):
        return
    if column.storage == STORED_U8:
        neighbours(reader, <const uint8_t*>column.codes, item, n, &q.split)
    elif column.storage == STORED_U16:
        neighbours(reader, <const uint16_t*>column.codes, item, n, &q.split)
    else:
        neighbours(reader, <const uint32_t*>column.codes, item, n, &q.split)


cdef inline bint is_cut(const Column* column) noexcept nogil:
    return column.storage != STORED_SPARSE and last_ordered(column) == ALL_ORDERED


cdef bint search_cut(Reader* reader, Search* q, const OpenNode* node, const Column* column,
                     int32_t number, const double* value) noexcept nogil:
    """One cut of a column, drawn at random (`search_random`); False when it is constant.

    A dense column of numbers needs no histogram: its range, then the sums on one side. The split
    holds the cut until `finish_cut`. O(rows).
    """
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef int64_t n = node.totals.n
    cdef Cut cut
    cdef bint varies
    cdef Split* split = &q.split
    if not is_cut(column):
        groups_of_drawn(reader, q, node, column, number)
        if q.groups.count <= 1:
            return False
        search_random(q, number, last_ordered(column), value)
        return True
    if not reader.is_small:
        pack_rows(reader, node)
    if column.storage == STORED_U8:
        varies = draw_cut(reader, q, <const uint8_t*>column.codes, item, n, number, value, &cut)
    elif column.storage == STORED_U16:
        varies = draw_cut(reader, q, <const uint16_t*>column.codes, item, n, number, value, &cut)
    else:
        varies = draw_cut(reader, q, <const uint32_t*>column.codes, item, n, number, value, &cut)
    if not varies:
        return False
    consider(q, cut.at, False)
    if not beats(q, number):
        return True
    split.boundary = cut.at
    split.beyond = cut.has_above
    split.score = q.best
    split.column = number
    split.test = AT_MOST
    split.missing_left = cut.missing_left
    split.saw_missing = cut.saw_missing
    split.boundary_row = -1
    split.beyond_row = -1
    return True
