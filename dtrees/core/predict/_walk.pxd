"""Rows in flight: the one loop that brings rows down trees.

A tree is packed once: inner nodes alone, one record each, so that a step reads one line of memory;
a child that is a leaf is the complement of the leaf's number, so that no step reads the leaf.
Several rows are in flight at the same time; when one has reached its leaf, the next row takes its
place:

    in flight  0   1   2   3                     in flight  0   1   2   3
    row        0   1   2   3     one step        row        0   4   2   3
    node       5   6   5   9        ->           node       7   0  11  12     ~8: leaf 8 of row 1

Steps of different rows do not depend on each other, so the processor works on all of them while it
waits for memory, and no branch has to be guessed but the one that a row's walk ends. Measured on
1,000,000 x 30 float32 and a tree of 12,709 nodes: 55 ms with 8 rows in flight, 57 with 16, 180 to
210 with one; blocks of rows level by level: 110. 12 rows, whose ends are looked for after all have
made a step, take 0.76 to 0.87 of the time of 8 whose ends are found step by step (25,000 rows).
Cost: O(rows x depth of their leaves), no copy of the table.

What walks is a struct: raw rows, binned rows, or rows that are coded for a forest, down one tree or
one row down all trees. `step` has the test of each; the compiler makes a loop of each kind.
"""
from libc.stdint cimport (
    int32_t, int64_t, intptr_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
)

from dtrees.core.data._columns cimport Column, code_at
from dtrees.core.predict._forest_nodes cimport (
    GONE_LEFT, IS_OTHER, IS_SUBSET, MISSING, MISSING_LEFT, UNSEEN, UNSEEN_LEFT, Node, Rule
)
from dtrees.core.stores._partition cimport Route, goes_left

cdef enum:
    IN_FLIGHT = 12

cdef enum Kind:
    FLOATS                  # of raw rows: every test is `<=` on a number
    DOUBLES
    BINNED
    COMPLETE                # of coded rows: nodes, and no number is missing
    GAPS                    # nodes
    NARROW                  # rules, none of them `IS_OTHER`
    RULES                   # rules

cdef struct RawNode:
    double threshold
    int32_t[2] child        # left, right: an inner node, or the complement of a leaf's node number
    int32_t slot            # of the number in a row of numbers
    int32_t missing_right

cdef struct RawRows:
    const RawNode* nodes
    const char* numbers
    Py_ssize_t row_step     # in bytes, any sign
    Py_ssize_t slot_step
    int32_t root
    Py_ssize_t* leaf        # OUT

cdef struct BinnedNode:
    const uint8_t* codes    # NULL: not of 8 bits
    uint64_t[4] left        # bit c: code c of 8 bits goes left
    int32_t[2] child        # right, left
    const Column* column
    Route route             # of codes of any width

cdef struct BinnedRows:
    const BinnedNode* nodes
    const int64_t* rows
    int32_t root
    Py_ssize_t* leaf

cdef struct ForestRows:     # down one tree
    const Node* nodes
    const Rule* rules
    const uint64_t* words
    const uint16_t* codes
    int64_t width
    int32_t root
    int32_t* leaf

cdef struct ForestRow:      # down all trees
    const Node* nodes
    const Rule* rules
    const uint64_t* words
    const uint16_t* codes
    const int64_t* first    # node of each tree
    const int32_t* root
    int32_t* leaf

ctypedef fused rows_t:
    RawRows
    BinnedRows
    ForestRows
    ForestRow


cdef inline bint binned_left(const BinnedNode* node, int64_t row) noexcept nogil:
    cdef uint32_t code
    if node.codes != NULL:
        code = node.codes[row]
        return (node.left[code >> 6] >> (code & 63)) & 1
    return goes_left(&node.route, code_at(node.column, row))


cdef inline bint other_left(const Rule* rule, uint16_t code) noexcept nogil:
    """A comparison in a hybrid column, whose codes are no stretch."""
    if code == MISSING:
        return (rule.kind & GONE_LEFT) != 0
    if code == UNSEEN:
        return (rule.kind & UNSEEN_LEFT) != 0
    return <uint16_t>(code - rule.low) < rule.limit


cdef inline const uint64_t* word_of(const Rule* rule, const uint64_t* words,
                                    uint16_t code) noexcept nogil:
    """The word with the bit of a code: that of the rule, or of a wide subset elsewhere.

    Chosen without a branch: rows walk in .64 of the time (7 classes, a column of 200 categories).
    """
    cdef uintptr_t own = <uintptr_t>&rule.bits
    cdef uintptr_t wide = <uintptr_t>words + ((rule.bits + (code >> 6)) << 3)
    cdef uintptr_t chosen = -<uintptr_t>(rule.kind & IS_SUBSET)
    return <const uint64_t*>(own ^ ((own ^ wide) & chosen))


cdef inline int32_t rule_child(const Rule* rule, const uint64_t* words, const uint16_t* row,
                               Kind kind) noexcept nogil:
    cdef uint16_t code = row[rule.slot]
    cdef uint64_t bits = rule.bits
    if kind == RULES:
        if rule.kind & (IS_OTHER | IS_SUBSET) == IS_OTHER:
            return rule.child[other_left(rule, code)]
        bits = word_of(rule, words, code)[0]
    # one of both is empty
    return rule.child[((bits >> (code & 63)) & 1) | (<uint16_t>(code - rule.low) < rule.limit)]


cdef inline int32_t node_child(const Node* node, const uint16_t* row, Kind kind) noexcept nogil:
    cdef uint16_t code = row[node.slot & (MISSING_LEFT - 1)]
    if kind == GAPS:
        return node.child[(code < node.limit) | ((code == MISSING) & (node.slot >> 15))]
    return node.child[code < node.limit]


cdef inline intptr_t start_of(const rows_t* rows, int64_t i, Kind kind) noexcept nogil:
    """What a walk keeps of the row, or tree, that it begins with."""
    if rows_t is RawRows:
        return <intptr_t>(rows.numbers + i * rows.row_step)
    elif rows_t is BinnedRows:
        return rows.rows[i]
    elif rows_t is ForestRows:
        return <intptr_t>(rows.codes + i * rows.width)
    elif kind == NARROW or kind == RULES:
        return <intptr_t>(rows.rules + rows.first[i])
    else:
        return <intptr_t>(rows.nodes + rows.first[i])


cdef inline int32_t root_of(const rows_t* rows, int64_t i) noexcept nogil:
    if rows_t is ForestRow:
        return rows.root[i]
    else:
        return rows.root


cdef inline int32_t step(const rows_t* rows, int32_t at, intptr_t start,
                         Kind kind) noexcept nogil:
    """The child that a row goes to."""
    cdef const RawNode* node
    cdef double x
    if rows_t is RawRows:
        node = &rows.nodes[at]
        if kind == FLOATS:
            x = (<const float*>(start + node.slot * rows.slot_step))[0]
        else:
            x = (<const double*>(start + node.slot * rows.slot_step))[0]
        return node.child[(x > node.threshold) | ((x != x) & node.missing_right)]
    elif rows_t is BinnedRows:
        return rows.nodes[at].child[binned_left(&rows.nodes[at], start)]
    elif rows_t is ForestRows:
        if kind == NARROW or kind == RULES:
            return rule_child(&rows.rules[at], rows.words, <const uint16_t*>start, kind)
        return node_child(&rows.nodes[at], <const uint16_t*>start, kind)
    else:
        if at < 0:                              # a tree of one leaf
            return at
        if kind == NARROW or kind == RULES:
            return rule_child(<const Rule*>start + at, rows.words, rows.codes, kind)
        return node_child(<const Node*>start + at, rows.codes, kind)


cdef inline void walk(const rows_t* rows, int64_t n, Kind kind) noexcept nogil:
    """Leaves of n rows, or of one row in n trees; the kind is a constant where this is inlined."""
    cdef int64_t[IN_FLIGHT] number
    cdef intptr_t[IN_FLIGHT] start
    cdef int32_t[IN_FLIGHT] at
    cdef int64_t coming = min(n, <int64_t>IN_FLIGHT)
    cdef int live = <int>coming
    cdef int j, kept
    if rows_t is not ForestRow and rows.root < 0:
        for coming in range(n):
            rows.leaf[coming] = ~rows.root
        return
    for j in range(live):
        number[j], start[j], at[j] = j, start_of(rows, j, kind), root_of(rows, j)
    while live == IN_FLIGHT:
        for j in range(IN_FLIGHT):
            at[j] = step(rows, at[j], start[j], kind)
        for j in range(IN_FLIGHT):
            if at[j] < 0:
                rows.leaf[number[j]] = ~at[j]
                if coming < n:
                    number[j], start[j] = coming, start_of(rows, coming, kind)
                    at[j] = root_of(rows, coming)
                    coming += 1
                else:
                    live -= 1
    # No row is left to come: those that are still in flight move together.
    live = <int>min(n, <int64_t>IN_FLIGHT)
    while live > 0:
        kept = 0
        for j in range(live):
            if at[j] < 0:
                rows.leaf[number[j]] = ~at[j]
            else:
                number[kept], start[kept], at[kept] = number[j], start[j], at[j]
                kept += 1
        live = kept
        for j in range(live):
            at[j] = step(rows, at[j], start[j], kind)
