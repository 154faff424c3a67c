"""The records of grown nodes: one per node, in the order in which nodes are recorded.

A node is written as a leaf when it is processed, linked to its parent, and gets its test when it is
split. Tests are on codes; buffers may know ranks only, and a row that holds the rank leads to
its code. `dtrees.core.grow.node_record.RECORD` is the numpy twin of a record.

    nodes        record | record | record | ...
    statistics   what each of them adds up to: weight and target, or a weight per class
    words        subsets of codes, one bit each, at the offset in `Record.subset`
"""

import numpy as np

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from dtrees._random cimport hash64
from dtrees.core.data._columns cimport Column, words_of_subset
from dtrees.core.data._memory cimport free_room, resize, resize_in_pages
from dtrees.core.data._structs cimport GRADIENT, IN_SUBSET, LEAF, Split, Totals
from dtrees.core.search._open_node cimport OpenNode, key_of_child
from dtrees.core.search._parameters cimport SPLITS, TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._store cimport CodesOfRanks, code_of

from dtrees.core.grow.node_record import RECORD, PartialTree

cdef enum:
    FIRST_IN_PAGES = 1 << 13    # records in pages: to ask for more takes longer than to write them

NUMBER, WORD = np.dtype(np.int64), np.dtype(np.uint64)


cdef void free_node_buffer(NodeBuffer* out) noexcept nogil:
    free_room(out.nodes, out.paged_nodes)
    free_room(out.statistics, out.paged_statistics)
    free(out.words)
    memset(out, 0, sizeof(NodeBuffer))


cdef bint reserve_records(NodeBuffer* out, int64_t n, int64_t n_statistics) noexcept nogil:
    """Room for n more records; False without memory, which is noted."""
    cdef int64_t capacity = max(2 * out.capacity + 64, out.count + n)
    if out.count + n <= out.capacity:
        return True
    if out.in_pages and out.capacity > 0 and capacity < FIRST_IN_PAGES:
        capacity = FIRST_IN_PAGES
    if out.count + n > INT32_MAX or not resize_records(out, capacity, n_statistics):
        out.out_of_memory = True
        return False
    out.capacity = capacity
    return True


cdef bint resize_records(NodeBuffer* out, int64_t capacity, int64_t n_statistics) noexcept nogil:
    cdef size_t width = n_statistics * sizeof(int64_t)
    if not out.in_pages:
        return (resize(<void**>&out.nodes, capacity * sizeof(Record))
                and resize(<void**>&out.statistics, capacity * width))
    return (resize_in_pages(<void**>&out.nodes, &out.paged_nodes, out.count * sizeof(Record),
                            capacity * sizeof(Record))
            and resize_in_pages(<void**>&out.statistics, &out.paged_statistics, out.count * width,
                                capacity * width))


cdef int64_t append_record(NodeBuffer* out, int64_t n_statistics) noexcept nogil:
    """Room for one more record; returns its number, -1 without memory."""
    if out.count == out.capacity and not reserve_records(out, 1, n_statistics):
        return -1
    out.count += 1
    return out.count - 1


cdef int64_t write_record(NodeBuffer* out, const TrainParameters* params,
                          OpenNode* node) noexcept nogil:
    """Append a node as a leaf, linked to its parent; returns its number, which the node gets.

    Without memory it is -1.
    """
    cdef int64_t S = params.n_statistics
    cdef int64_t i = append_record(out, S)
    cdef int64_t o, k
    cdef Record* record
    cdef int64_t* sums
    node.record = i
    if i < 0:
        return -1
    record = out.nodes + i
    record.n = node.totals.n
    record.impurity = node.impurity
    make_leaf(record)
    sums = out.statistics + i * S
    if params.criterion.of_classes:
        memset(sums, 0, S * sizeof(int64_t))
        for o in range(params.criterion.n_outputs):
            k = params.criterion.place[o]
            sums[k] = node.class_totals[o]
            if sums[k] < node.totals.weight:  # there is a class before
                sums[k - 1] = node.totals.weight - sums[k]
    elif params.criterion.sums_numbers and params.criterion.impurity == GRADIENT:
        sums[0] = node.totals.weight
        memcpy(sums + 1, node.class_totals, (S - 1) * sizeof(int64_t))
    elif params.criterion.sums_numbers:
        sums[0] = node.totals.weight
        for o in range(S - 1):
            sums[1 + params.criterion.place[o]] = node.class_totals[o]
    elif node.class_totals != NULL:
        memcpy(sums, node.class_totals, S * sizeof(int64_t))
    else:
        sums[0] = node.totals.weight
        sums[1] = node.totals.target
    if node.parent >= 0:
        if node.is_left:
            out.nodes[node.parent].left = i
        else:
            out.nodes[node.parent].right = i
    return i


cdef int64_t reserve_words(NodeBuffer* out, int64_t count) noexcept nogil:
    """Room for a subset of `count` words, all zero; returns its offset, -1 without memory."""
    cdef int64_t offset = out.n_words
    cdef int64_t capacity = min(2 * (offset + count), <int64_t>INT32_MAX)
    if offset + count > out.words_capacity:
        if offset + count > capacity or not resize(<void**>&out.words, capacity * sizeof(uint64_t)):
            out.out_of_memory = True
            return -1
        out.words_capacity = capacity
    memset(out.words + offset, 0, count * sizeof(uint64_t))
    out.n_words = offset + count
    return offset


cdef int64_t copy_words(NodeBuffer* out, const uint64_t* words, int64_t count) noexcept nogil:
    """Append a subset; returns its offset, -1 without memory."""
    cdef int64_t offset = reserve_words(out, count)
    if offset >= 0:
        memcpy(out.words + offset, words, count * sizeof(uint64_t))
    return offset


cdef void write_test(NodeBuffer* out, int64_t index, const TrainParameters* params, const Search* q,
                     const CodesOfRanks* codes, const Totals* left,
                     const Totals* right) noexcept nogil:
    """Write the chosen split into a record, in codes.

    For a subset the bins of the search must be those of the chosen column: it gets a bit for each
    code. Missing values that the node has not seen go to the heavier child. Categories that it
    lacks go with them, or to the heavier child; in a hybrid column they go right.
    """
    cdef const Split* split = &q.split
    cdef Record* record = out.nodes + index
    cdef const Column* column = params.columns + split.column
    cdef bint heavier_left = left.weight > right.weight
    cdef bint absent_left
    cdef int64_t n_words = words_of_subset(column)
    cdef uint64_t* words
    cdef int64_t g
    cdef uint32_t code
    if out.out_of_memory:
        return
    record.column = split.column
    record.test = split.test
    record.gain = split.gain
    record.missing_left = split.missing_left if split.saw_missing else heavier_left
    if split.test != IN_SUBSET:
        record.boundary = code_of(column, codes, split.boundary, split.boundary_row)
        record.beyond = code_of(column, codes, split.beyond, split.beyond_row)
        return
    record.subset = reserve_words(out, n_words)
    if record.subset < 0:
        return
    words = out.words + record.subset
    absent_left = heavier_left if params.limits.unseen_by_majority else record.missing_left
    if absent_left and column.n_ordered == 0:
        memset(words, 0xFF, n_words * sizeof(uint64_t))
    for g in range(q.bins.count):
        code = code_of(column, codes, q.bins.rank[g], q.bins.row[g])
        if (q.split_subset[q.bins.rank[g] >> 6] >> (q.bins.rank[g] & 63)) & 1:
            words[code >> 6] |= <uint64_t>1 << (code & 63)
        else:
            words[code >> 6] &= ~(<uint64_t>1 << (code & 63))
    words[0] = (words[0] & ~(<uint64_t>1)) | record.missing_left
    # codes that do not exist: the same words whatever the column
    code = column.n_codes & 63
    if code < 63:
        words[n_words - 1] &= (<uint64_t>1 << (code + 1)) - 1


cdef object partial_tree_of(const NodeBuffer* out, int64_t n_statistics):
    """The records as arrays; MemoryError: there was none for them."""
    cdef RecordRange all = RecordRange(0, out.count, 0, out.n_words)
    if out.out_of_memory:
        raise MemoryError
    return piece_of(out, &all, n_statistics)


cdef object piece_of(const NodeBuffer* out, const RecordRange* some, int64_t n_statistics):
    """Some of the records as arrays that share a stretch of memory."""
    cdef int64_t n = some.end - some.first
    cdef size_t of_nodes = n * sizeof(Record)
    cdef size_t of_sums = n * n_statistics * sizeof(int64_t)
    cdef size_t of_words = (some.end_word - some.first_word) * sizeof(uint64_t)
    cdef size_t n_bytes = of_nodes + of_sums + of_words
    cdef uint8_t[::1] to
    room = np.empty(n_bytes, dtype=np.uint8)
    if n_bytes > 0:
        to = room
        with nogil:     # some megabytes, which other threads need not wait for
            put(&to[0], out.nodes + some.first, of_nodes)
            put(&to[0] + of_nodes, out.statistics + some.first * n_statistics, of_sums)
            put(&to[0] + of_nodes + of_sums, out.words + some.first_word, of_words)
    numbers = np.frombuffer(room, NUMBER, offset=of_nodes)
    n_sums = n * n_statistics
    return PartialTree(np.frombuffer(room, RECORD, n), numbers[:n_sums].reshape(n, n_statistics),
                       numbers[n_sums:].view(WORD))


cdef inline void put(uint8_t* to, const void* start, size_t n_bytes) noexcept nogil:
    if n_bytes > 0:     # else there may be no start
        memcpy(to, start, n_bytes)


def record_offsets():
    """Size of a record and offsets of its fields: {name: offset}, for the numpy twin's test."""
    cdef Record r
    cdef char* start = <char*>&r
    return sizeof(Record), {
        "n": <char*>&r.n - start, "subset": <char*>&r.subset - start,
        "impurity": <char*>&r.impurity - start, "gain": <char*>&r.gain - start,
        "left": <char*>&r.left - start, "right": <char*>&r.right - start,
        "column": <char*>&r.column - start, "boundary": <char*>&r.boundary - start,
        "beyond": <char*>&r.beyond - start, "test": <char*>&r.test - start,
        "missing_left": <char*>&r.missing_left - start,
    }


cdef enum:
    NO_FEATURE = -2
    FRACTIONS = -1          # of a draw in its gap: a number that no code has


# ---------------------------------------------------------------------------------------------
# pieces put together, and arrays of them

def arrays_of(nodes):
    """Arrays of a tree from its records, in one pass: numpy takes seven, one for each field
    (measured: forests 1.03 to 1.04 times as long).

    Returns arrays (n_nodes,) by name. feature, children_left, children_right : int32; test,
    missing_go_to_left : uint8; impurity, gain : float64.
    """
    cdef int64_t n = len(nodes)
    cdef const uint8_t[::1] raw = nodes.view(np.uint8)
    cdef const Record* records = <const Record*>&raw[0]
    cdef int32_t[::1] feature = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] left = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] right = np.empty(n, dtype=np.int32)
    cdef uint8_t[::1] test = np.empty(n, dtype=np.uint8)
    cdef uint8_t[::1] missing = np.empty(n, dtype=np.uint8)
    cdef double[::1] impurity = np.empty(n, dtype=np.float64)
    cdef double[::1] gain = np.empty(n, dtype=np.float64)
    cdef int64_t i
    cdef const Record* record
    with nogil:
        for i in range(n):
            record = records + i
            feature[i] = NO_FEATURE if record.test == LEAF else record.column
            left[i] = <int32_t>record.left
            right[i] = <int32_t>record.right
            test[i] = record.test
            missing[i] = record.missing_left
            impurity[i] = record.impurity
            gain[i] = record.gain
    return {
        "feature": np.asarray(feature), "children_left": np.asarray(left),
        "children_right": np.asarray(right), "test": np.asarray(test),
        "missing_go_to_left": np.asarray(missing),
        "impurity": np.asarray(impurity), "gain": np.asarray(gain),
    }


def fractions_of(nodes, uint64_t seed, uint64_t tree):
    """Where between its two neighbours each random split of a tree is.

    The key is that of the node and the column, as for the other draws of a split (`_random_split`).

    Nodes are records in preorder. Returns float64 (n_nodes,): 0 <= fraction < 1, in steps of
    2**-53; 0 in leaves.
    """
    cdef int64_t n = len(nodes)
    cdef const uint8_t[::1] raw = nodes.view(np.uint8)
    cdef const Record* records = <const Record*>&raw[0]
    cdef uint64_t[::1] path = np.zeros(n, dtype=np.uint64)
    cdef double[::1] fraction = np.zeros(n, dtype=np.float64)
    cdef uint64_t of_tree = hash64(seed, tree)
    cdef uint64_t key
    cdef int64_t i
    with nogil:
        for i in range(n):
            if records[i].test == LEAF:
                continue
            path[records[i].left] = key_of_child(path[i], True)
            path[records[i].right] = key_of_child(path[i], False)
            key = hash64(hash64(of_tree, path[i]), SPLITS)
            key = hash64(hash64(key, <uint64_t>records[i].column), <uint64_t>FRACTIONS)
            fraction[i] = <double>(key >> 11) * 1.1102230246251565e-16
    return np.asarray(fraction)


cdef copy_piece(nodes, int64_t[:, ::1] sums, int64_t position, piece,
                const int64_t[:, ::1] of_piece, int64_t words):
    """Copy records and sums of a piece to `position`; so many words of subsets stand before it."""
    cdef int64_t length = len(piece)
    cdef uint8_t[::1] raw = nodes[position:position + length].view(np.uint8)
    cdef const uint8_t[::1] raw_piece = piece.view(np.uint8)
    cdef Record* record
    cdef int64_t k
    with nogil:
        memcpy(&raw[0], &raw_piece[0], length * sizeof(Record))
        memcpy(&sums[position, 0], &of_piece[0, 0],
               length * of_piece.shape[1] * sizeof(int64_t))
        for k in range(length):
            record = <Record*>&raw[0] + k
            record.left += position if record.left >= 0 else 0
            record.right += position if record.right >= 0 else 0
            record.subset += words if record.subset >= 0 else 0


def join_records(list pieces, list statistics, list n_words):
    """The records of a tree in preorder, from those of its pieces. O(nodes).

    pieces : as for `dtrees.core.grow.assembly.join`. statistics : int64 (n_nodes, n_statistics)
    each. n_words : of the subsets of each, which stand one behind the other. Returns nodes and
    statistics.
    """
    cdef int64_t n_statistics = statistics[0].shape[1]
    cdef int64_t n_top = len(pieces[0])
    cdef int64_t[::1] start = np.empty(n_top, dtype=np.int64)
    cdef int64_t[::1] stack = np.empty(n_top + 1, dtype=np.int64)
    cdef int64_t[::1] first_word = np.cumsum([0] + n_words)
    cdef int64_t n = sum([len(piece) for piece in pieces]) - len(pieces) + 1
    if first_word[len(pieces)] > INT32_MAX or n > INT32_MAX:
        raise MemoryError("a tree has too many nodes, or subsets of too many categories")
    nodes = np.empty(n, dtype=pieces[0].dtype)
    sums = np.empty((n, n_statistics), dtype=np.int64)
    cdef uint8_t[::1] raw = nodes.view(np.uint8)
    cdef int64_t[:, ::1] of_node = sums
    cdef const uint8_t[::1] raw_top = pieces[0].view(np.uint8)
    cdef const int64_t[:, ::1] of_top = statistics[0]
    cdef const Record* top = <const Record*>&raw_top[0]
    cdef Record* out = <Record*>&raw[0]
    cdef size_t width = n_statistics * sizeof(int64_t)
    cdef int64_t position = 0
    cdef int64_t depth = 1
    cdef int64_t i, number
    stack[0] = 0
    while depth > 0:
        depth -= 1
        i = stack[depth]
        start[i] = position
        if top[i].column != SUBTREE:
            out[position] = top[i]
            memcpy(&of_node[position, 0], &of_top[i, 0], width)
            position += 1
            if top[i].left >= 0:
                stack[depth] = top[i].right
                stack[depth + 1] = top[i].left
                depth += 2
            continue
        number = top[i].left
        copy_piece(nodes, of_node, position, pieces[number], statistics[number], first_word[number])
        position += len(pieces[number])
    for i in range(n_top):
        if top[i].column != SUBTREE and top[i].left >= 0:
            out[start[i]].left = start[top[i].left]
            out[start[i]].right = start[top[i].right]
    assert position == n, (position, n)
    return nodes, sums
