"""The rows of a growth that draws columns, and of one node after the other.

A reader holds the bag (`_row_partition`) and whatever scratch is needed to read a column of it. For
each node it prepares, once for all columns that are drawn there, what its rows add to a sum:

    several classes   the classes that the node holds, numbered anew
    two classes       rows, weight and weight of class 1 of a row in one number, so that a cell
                      takes one addition
    few rows          weight and target of each
    sorted columns    class, weight and target of each, when a column asks for them

Its memory serves the next growth, if that is of a like table. How columns are read is the matter of
`_sampled_columns` and the files that it names.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core.data._columns cimport RowLists
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.histogram._layout cimport (
    CLASSES, LARGEST_FIELD, LARGEST_HALF, PACKED, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind,
    encode
)
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._search cimport Search, by_class
from dtrees.core.stores.sampled._row_partition cimport (
    Bag, fill_bag, free_bag, label_of, new_bag, row_of, target_at, times_of, weight_at
)


cdef Reader* new_reader(const RowStatistics* of_row, int64_t n, int64_t n_places, CellKind kind,
                        const Criterion* criterion, const RowLists* lists,
                        bint random_cuts) noexcept nogil:
    """A reader for n rows of a table of n_places; NULL without memory.

    of_row : by row of the table. lists : of its sparse columns, NULL where there are none. Freed
    by `free_reader`.
    """
    cdef Reader* reader = <Reader*>calloc(1, sizeof(Reader))
    cdef int64_t n_rows = n + n // 8  # the next bag may be larger
    if reader == NULL:
        return NULL
    reader.room = n_rows
    reader.n_places = n_places
    reader.kind = kind
    reader.n_classes = criterion.n_classes
    reader.random_cuts = random_cuts
    reader.is_weighted = of_row.times != NULL or of_row.weight != NULL
    reader.has_target = kind == SUM or kind == WEIGHTED_SUM
    if not new_bag(&reader.bag, n_rows, of_row.value != NULL):
        free_reader(reader)
        return NULL
    if kind == CLASSES or kind == WEIGHTED_CLASSES:
        reader.local_totals = <int64_t*>malloc((criterion.n_classes + 1) * sizeof(int64_t))
        reader.local_number = <uint16_t*>malloc(criterion.n_classes * sizeof(uint16_t))
        reader.label = <uint16_t*>malloc((n_rows + 1) * sizeof(uint16_t))
    elif of_row.label != NULL:
        reader.packed = reader.bag.spare  # a node is searched before its items are parted
        if random_cuts:
            reader.small_weight = <uint8_t*>malloc(n_rows + 1)
            reader.small_target = <uint8_t*>malloc(n_rows + 1)
    reader.codes = <uint32_t*>malloc((n_rows + 1) * sizeof(uint32_t))
    if lists.start != NULL:
        reader.place = <uint32_t*>malloc((n_places + 1) * sizeof(uint32_t))
        reader.present = <uint64_t*>calloc(lists.n_words, sizeof(uint64_t))
    if not is_whole(reader, lists.start != NULL):
        free_reader(reader)
        return NULL
    reader.lists = lists[0]
    return reader


cdef bint is_whole(const Reader* reader, bint sparse) noexcept nogil:
    """Whether there was memory for everything that was asked for."""
    if reader.codes == NULL:
        return False
    if reader.kind == CLASSES or reader.kind == WEIGHTED_CLASSES:
        if reader.local_totals == NULL or reader.local_number == NULL or reader.label == NULL:
            return False
    if (reader.small_weight == NULL) != (reader.small_target == NULL):
        return False
    return not sparse or (reader.place != NULL and reader.present != NULL)


cdef bint serves(const Reader* reader, const RowStatistics* of_row, int64_t n, int64_t n_places,
                 CellKind kind, const Criterion* criterion, const RowLists* lists,
                 bint random_cuts) noexcept nogil:
    """Whether the reader of another growth has all that `new_reader` would give this one."""
    return (reader.kind == kind and reader.n_classes == criterion.n_classes
            and reader.is_weighted == (of_row.times != NULL or of_row.weight != NULL)
            and reader.room >= n and reader.n_places == n_places
            and reader.lists.n_words == lists.n_words and reader.random_cuts == random_cuts)


cdef void take_rows(Reader* reader, const RowStatistics* of_row, const uint32_t* rows, int64_t n,
                    const Criterion* criterion, const RowLists* lists) noexcept nogil:
    """The rows of a growth; `rows` may be the reader's own scratch (`codes`)."""
    cdef int64_t i
    reader.n_rows = n
    reader.lists = lists[0]
    reader.local = criterion[0]
    fill_bag(&reader.bag, of_row, rows, n)
    reader.most_times = 0
    for i in range(n if reader.random_cuts else 0):
        if times_of(reader.bag.item[i]) > reader.most_times:
            reader.most_times = times_of(reader.bag.item[i])
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
    free(reader.of_row.label)
    free(reader.of_row.weight)
    free(reader.of_row.target)
    free(reader.local_totals)
    free(reader.local_number)
    free(reader.label)
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
    reader.has_statistics = False
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
            reader.has_small = False
            reader.is_small = (reader.small_weight != NULL and reader.bag.weight == NULL
                               and reader.is_paired and reader.most_times < 256)


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


cdef void pack_rows(Reader* reader, const OpenNode* node) noexcept nogil:
    """Two classes: all that a row adds in one number, if that is not there yet."""
    cdef const Bag* bag = &reader.bag
    cdef const uint64_t* item = bag.item + node.start
    cdef int64_t n = node.totals.n
    cdef int64_t weight
    cdef int64_t i
    if reader.has_packed or not reader.is_packed:
        return
    reader.has_packed = True
    if bag.weight != NULL:
        for i in range(n):
            weight = bag.weight[row_of(item[i])]
            reader.packed[i] = <uint64_t>encode(PACKED, weight, label_of(item[i]))
        return
    for i in range(n):
        weight = times_of(item[i])
        reader.packed[i] = <uint64_t>encode(PACKED, weight, label_of(item[i]))


cdef void pack_small(Reader* reader, const OpenNode* node) noexcept nogil:
    """The same in two numbers of 8 bits, for random cuts."""
    cdef const uint64_t* item = reader.bag.item + node.start
    cdef uint64_t weight
    cdef int64_t i
    if reader.has_small:
        return
    reader.has_small = True
    for i in range(node.totals.n):
        weight = times_of(item[i])
        reader.small_weight[i] = <uint8_t>weight
        reader.small_target[i] = <uint8_t>(weight * <uint64_t>label_of(item[i]))


cdef void reserve_statistics(Reader* reader, int64_t count) noexcept nogil:
    if count <= reader.n_statistics:
        return
    free(reader.of_row.label)
    free(reader.of_row.weight)
    free(reader.of_row.target)
    reader.n_statistics = count = count + count // 2
    reader.of_row.label = <uint16_t*>malloc(count * sizeof(uint16_t))
    if reader.is_weighted:
        reader.of_row.weight = <int64_t*>malloc(count * sizeof(int64_t))
    if reader.has_target:
        reader.of_row.target = <int64_t*>malloc(count * sizeof(int64_t))


cdef void gather_statistics(Reader* reader, const OpenNode* node) noexcept nogil:
    """What the rows of the node hold, one by one, if that is not there yet."""
    cdef const Bag* bag = &reader.bag
    cdef int64_t start = node.start
    cdef int64_t i
    if reader.has_statistics:
        return
    reader.has_statistics = True
    reserve_statistics(reader, node.totals.n)
    for i in range(node.totals.n):
        reader.of_row.label[i] = <uint16_t>label_of(bag.item[start + i])
    if reader.is_weighted:
        for i in range(node.totals.n):
            reader.of_row.weight[i] = weight_at(bag, start + i)
    if reader.has_target:
        for i in range(node.totals.n):
            reader.of_row.target[i] = target_at(bag, start + i)


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
