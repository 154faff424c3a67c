"""Rows down trees: raw numbers, binned rows, and rows that are coded for a forest.

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

Raw numbers are compared with thresholds in float64, to which float32 is widened exactly. A NaN
fails every comparison; whether that means left or right is a bit of the node. Left and right change
places where a test is `>`, so every test is `<=`.

Binned codes are read where they are, column by column, and nothing is copied: rows ascend, so the
lines of the columns that a tree tests are read once, and in order. A node is packed with the
address of its column. Of 8-bit codes it has a bit for each, missing (0) included, so that a step
does not branch by the kind of its test; of wider ones, a stretch (low, high] goes left, or a
subset::

    code <= 2    0110 0000 ..     (0, 2]
    code > 2     0001 1100 ..     (2, last ordered code]

For a forest the numbers of a row are coded first: the code of a number is how many of the forest's
thresholds of its column are below it, so a test is a comparison of two 16-bit numbers, and a block
of rows fits the processor's cache with the tree that it walks::

    thresholds of column 3   0.5   1.25   7.0            1.25 <= threshold 1  <=>  code 1 <= 1
    number                 0.2  0.7   1.25  9.0  nan
    code                   0    1     1     3    65535   missing

A category is coded by the number that it has in its column, and a subset has a bit for each code.
What is missing and what was not there at fit have codes and bits of their own::

    code in a slot of categories   0        1 .. n          n + 1
    meaning                        missing  categories      not there at fit
    ditto, of a hybrid column      missing  1: any number   2 .. categories, then not there at fit

    code in a slot of numbers      0 .. m   65533       65534                 65535
    meaning                        number   a category  not there at fit      missing

So a test is a stretch of codes or a bit, and which of both is found without a branch that no
processor would guess; 65535 is next to 0, so a stretch that begins there has what is missing in it,
and one that begins at 65534 what was not there at fit as well. Subsets of more than 64 codes have
their bits elsewhere. Comparisons whose codes are no stretch are looked up on a way of their own.
Forests that test nothing but `<=` on columns of numbers do with half as large a node.

Blocks of rows are coded once and walk all trees, tree by tree, small ones eight rows in a register
(`walk_simd.h`); a row that is alone walks several trees at the same time. Few rows of numbers cost
the calls, so one call codes them and walks. Cost of a row: O(used columns * log thresholds + trees
* depth).

The stored values of a sparse table are coded column by column, and put in the order of rows; a
value that has the code of zero is left out. Rows that walk, a few at a time, are written into codes
of zeros, which are put back afterwards: O(values stored in the columns of the forest)::

    column of slot 7   rows  3   5   9           row 5    slot  0   7   31
                       value 2.0 1.0 4.0    ->            code  1   3    2

    codes of zeros     [ 0 0 0 0 0 0 0 1 0 0 ... ]        (1 in slot 7: a threshold is below zero)
    row 5              [ 1 0 0 0 0 0 0 3 0 0 ... ]
"""
import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport NAN
from libc.stdint cimport (
    int32_t, int64_t, intptr_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
)
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dtrees.core.data._columns cimport (
    STORED_U8, Column, Columns, code_at, columns_of, first_at_least
)
from dtrees.core.data._cpu cimport is_wide
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport ABOVE, AT_MOST, IN_SUBSET
from dtrees.core.predict._packed_forest cimport (
    GONE_LEFT, IS_OTHER, IS_SUBSET, MISSING, MISSING_LEFT, UNSEEN, UNSEEN_LEFT, Grown,
    GrownTrees, LeafSums, Node, PackedTrees, Rule, add_row, add_values, number_nodes
)
from dtrees.core.stores._partition cimport Route, goes_left

cdef extern from "predict/walk_simd.h" nogil:
    int64_t walk_small(const int*, const uint16_t*, int64_t, int64_t, int32_t, int32_t*) noexcept

cdef enum:
    IN_FLIGHT = 12
    SMALL_TREE = 1024           # inner nodes
    LEAST_BY_EIGHT = 128        # rows
    ROWS_ALONE = 4              # that walk one after the other, each down several trees
    BLOCK_CELLS = 65_536        # of sparse rows that walk together
    BLOCK_ROWS = 256            # the same: at most
    MANY_TREES = 8              # down which sparse rows walk alone
    ALL_PACKED = -1
    NO_MEMORY = -2

ctypedef fused number_t:
    float
    double

ctypedef fused stored_t:
    float
    double
    uint32_t                    # a code of a coded table, whose number it is; 0 is missing

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
    int32_t* leaf           # OUT

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
    int32_t* leaf

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

ctypedef fused coded_t:
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


cdef class PackedTree:
    """The inner nodes of a tree that compares numbers, checked and packed.

    Parameters
    ----------
    tree : dtrees.core.model.tree.Tree
    slot : int32 (n_columns,)
        Where a column's number stands in a row of numbers; -1: nowhere.

    Raises
    ------
    ValueError
        The arrays are not those of a tree on such columns.
    """
    cdef RawNode* nodes
    cdef RawRows rows                   # all but the rows
    cdef readonly int64_t n_numbers     # least width of a row of numbers

    def __cinit__(self, tree, const int32_t[::1] slot):
        cdef GrownTrees trees = GrownTrees((tree,), slot.shape[0])
        cdef const Grown* grown = trees.trees
        cdef int64_t n_inner = trees.start[1]
        cdef int64_t i, k
        cdef int32_t* number
        cdef int32_t* inner
        cdef RawNode* node
        cdef bint is_above
        self.nodes = <RawNode*>PyMem_Malloc(n_inner * sizeof(RawNode))
        number = <int32_t*>PyMem_Malloc((grown.n_nodes + n_inner + 1) * sizeof(int32_t))
        try:
            if self.nodes == NULL or number == NULL:
                raise MemoryError()
            inner = number + grown.n_nodes
            number_nodes(grown, number, inner, NULL)
            self.rows.nodes, self.rows.root = self.nodes, number[0]
            for k in range(n_inner):
                i = inner[k]
                node = &self.nodes[k]
                node.slot = slot[grown.feature[i]]
                if grown.test[i] == IN_SUBSET or node.slot < 0:
                    raise ValueError(f"The tree is broken: node {i} compares what is not a number.")
                is_above = grown.test[i] == ABOVE
                node.threshold = grown.threshold[i]
                node.child[is_above] = number[grown.left[i]]
                node.child[not is_above] = number[grown.right[i]]
                node.missing_right = (grown.missing_left[i] != 0) == is_above
                self.n_numbers = max(self.n_numbers, node.slot + 1)
        finally:
            PyMem_Free(number)

    def __dealloc__(self):
        PyMem_Free(self.nodes)


def walk_numbers(PackedTree tree not None, const number_t[:, :] numbers, int32_t[::1] leaf):
    """OUT leaves of rows of numbers (n_rows, n), any strides."""
    cdef Py_ssize_t n = numbers.shape[0]
    cdef RawRows rows = tree.rows
    if leaf.shape[0] != n or numbers.shape[1] < tree.n_numbers:
        raise ValueError("The rows do not fit the tree.")
    if n == 0:
        return
    rows.leaf = &leaf[0]
    if numbers.shape[1] > 0:            # or the tree is a leaf
        rows.numbers = <const char*>&numbers[0, 0]
        rows.row_step, rows.slot_step = numbers.strides[0], numbers.strides[1]
    with nogil:
        if number_t is float:
            walk(&rows, n, FLOATS)
        else:
            walk(&rows, n, DOUBLES)


cdef inline uint64_t codes_up_to(uint32_t last, uint32_t k) noexcept nogil:
    """Word k of the bits of the codes 0, 1, ..., last."""
    if last >> 6 != k:
        return ~<uint64_t>0 if last >> 6 > k else 0
    return ~<uint64_t>0 >> (63 - (last & 63))


cdef void mark_codes_left(BinnedNode* node) noexcept nogil:
    """Say of every 8-bit code whether it goes left."""
    cdef uint32_t k
    for k in range(4):
        node.left[k] = 0
        if node.route.subset == NULL:
            node.left[k] = codes_up_to(node.route.high, k) & ~codes_up_to(node.route.low, k)
        elif k < node.route.subset_words:
            node.left[k] = node.route.subset[k]
    node.left[0] = node.left[0] & ~<uint64_t>1 | node.route.missing_left


cdef bint fill_node(BinnedNode* node, const Grown* tree, int64_t i, const Column* columns,
                    const int32_t* number) noexcept nogil:
    """Pack node i; whether it can be."""
    node.column = columns + tree.feature[i]
    node.codes = NULL
    node.child[0] = number[tree.right[i]]
    node.child[1] = number[tree.left[i]]
    node.route = Route(NULL, 0, 0, 0, tree.missing_left[i] != 0)
    if tree.test[i] == IN_SUBSET:
        node.route.subset_words = node.column.n_codes // 64 + 1
        if not 0 <= tree.subset[i] <= tree.n_words - node.route.subset_words:
            return False
        node.route.subset = tree.words + tree.subset[i]
    elif tree.test[i] == AT_MOST:
        node.route.high = min(tree.code[i], node.column.n_ordered)
    else:
        node.route.low = tree.code[i]
        node.route.high = node.column.n_ordered
    if node.column.storage == STORED_U8:
        node.codes = <const uint8_t*>node.column.codes
        mark_codes_left(node)
    return True


cdef int64_t find_binned(const Grown* tree, int64_t n_inner, const Column* columns,
                         const int64_t* row, int64_t n, int32_t* leaf) noexcept nogil:
    """OUT leaves of n rows; returns a node that cannot be, `ALL_PACKED` or `NO_MEMORY`."""
    cdef int32_t* number = <int32_t*>malloc((tree.n_nodes + n_inner + 1) * sizeof(int32_t))
    cdef int32_t* inner = number + tree.n_nodes
    cdef BinnedNode* nodes = <BinnedNode*>malloc((n_inner + 1) * sizeof(BinnedNode))
    cdef BinnedRows binned
    cdef int64_t fault = ALL_PACKED if number != NULL and nodes != NULL else NO_MEMORY
    cdef int64_t i
    if fault == ALL_PACKED:
        number_nodes(tree, number, inner, NULL)
        for i in range(n_inner):
            if not fill_node(&nodes[i], tree, inner[i], columns, number):
                fault = inner[i]
                break
    if fault == ALL_PACKED:
        binned = BinnedRows(nodes, row, number[0], leaf)
        walk(&binned, n, BINNED)
    free(number)
    free(nodes)
    return fault


def find_leaves(trees, coded, const int64_t[::1] rows not None, int32_t[:, ::1] leaf not None):
    """OUT leaves of rows of the coded table that trees are grown from, int32 (n_trees, n).

    O(nodes + n x depth) for a tree; in sparse columns a step takes O(log stored).
    """
    cdef Columns table = columns_of(coded)
    cdef GrownTrees grown = GrownTrees(tuple(trees), table.n_columns)
    cdef const int64_t[::1] start = grown.start
    cdef int64_t n = rows.shape[0]
    cdef int64_t n_rows = coded.n_rows
    cdef int64_t fault = ALL_PACKED
    cdef int64_t i, t
    if leaf.shape[0] != grown.n_trees or leaf.shape[1] != n:
        raise ValueError("There is not one leaf for each row and tree.")
    for i in range(n):
        if not 0 <= rows[i] < n_rows:
            raise ValueError(f"The table has no row {rows[i]}.")
    if n == 0:
        return
    with nogil:
        for t in range(grown.n_trees):
            fault = find_binned(grown.trees + t, start[t + 1] - start[t], table.columns, &rows[0],
                                n, &leaf[t, 0])
            if fault != ALL_PACKED:
                break
    if fault == NO_MEMORY:
        raise MemoryError()
    if fault != ALL_PACKED:
        raise ValueError(f"The tree is broken: node {fault} has no subset.")


cdef inline void walk_as(PackedTrees forest, const coded_t* rows, int64_t n,
                         bint with_missing) noexcept nogil:
    if forest.rules != NULL and forest.with_other:
        walk(rows, n, RULES)
    elif forest.rules != NULL:
        walk(rows, n, NARROW)
    elif with_missing:
        walk(rows, n, GAPS)
    else:
        walk(rows, n, COMPLETE)


cdef void walk_tree(PackedTrees forest, int64_t tree, const uint16_t* rows, int64_t n,
                    int32_t* leaves, bint with_missing) noexcept nogil:
    """Leaves of n rows in one tree: numbers among the leaves of the tree."""
    cdef int64_t first = forest.start[tree]
    cdef int64_t done = 0
    cdef ForestRows walking
    if (forest.rules == NULL and 0 < forest.start[tree + 1] - first <= SMALL_TREE
            and n >= LEAST_BY_EIGHT and is_wide and PATH_IS_ON("small_trees_by_eight")):
        done = walk_small(<const int*>(forest.nodes + first), rows, forest.n_slots, n,
                          forest.root[tree], leaves)
    walking.nodes = forest.nodes + first if forest.rules == NULL else NULL
    walking.rules = forest.rules + first if forest.rules != NULL else NULL
    walking.words, walking.root = forest.words, forest.root[tree]
    walking.width = forest.n_slots
    walking.codes, walking.leaf = rows + done * walking.width, leaves + done
    walk_as(forest, &walking, n - done, with_missing)


cdef void walk_row(PackedTrees forest, const uint16_t* row, int32_t* leaves,
                   bint with_missing) noexcept nogil:
    """Leaves of one row in all trees, OUT (n_trees,)."""
    cdef ForestRow walking
    walking.nodes, walking.rules, walking.words = forest.nodes, forest.rules, forest.words
    walking.first, walking.root = forest.start, forest.root
    walking.codes, walking.leaf = row, leaves
    walk_as(forest, &walking, forest.n_trees, with_missing)


cdef void values_of_rows(PackedTrees forest, const uint16_t* rows, int64_t n, bint with_missing,
                         int32_t* leaves, const LeafSums* to) noexcept nogil:
    """Add the values of the leaves of n rows. leaves : scratch (max(n, n_trees),)."""
    cdef int64_t i, t
    if n <= ROWS_ALONE:
        for i in range(n):
            walk_row(forest, rows + i * forest.n_slots, leaves, with_missing)
            add_row(forest, leaves, i, to)
        return
    for t in range(forest.n_trees):
        walk_tree(forest, t, rows, n, leaves, with_missing)
        add_values(forest, t, leaves, n, to)


cdef void leaves_of_rows(PackedTrees forest, const uint16_t* rows, int64_t n, bint with_missing,
                         int32_t* scratch, int32_t* leaves, int64_t step) noexcept nogil:
    """Node numbers of the leaves of n rows; those of a tree are `step` behind those before.

    scratch : (n_trees,)
    """
    cdef const int32_t* node_of_leaf
    cdef int32_t* own
    cdef int64_t i, t
    if n <= ROWS_ALONE:
        for i in range(n):
            walk_row(forest, rows + i * forest.n_slots, scratch, with_missing)
            for t in range(forest.n_trees):
                leaves[t * step + i] = forest.node_of_leaf[forest.first_leaf[t] + scratch[t]]
        return
    for t in range(forest.n_trees):
        node_of_leaf = forest.node_of_leaf + forest.first_leaf[t]
        own = leaves + t * step
        walk_tree(forest, t, rows, n, own, with_missing)
        for i in range(n):
            own[i] = node_of_leaf[own[i]]


cdef bint has_missing(const uint16_t* codes, int64_t n) noexcept nogil:
    """Whether one of n codes is that of a missing number."""
    cdef bint found = False
    cdef int64_t i
    for i in range(n):
        found |= codes[i] == MISSING
    return found


cdef int32_t* room_for_leaves(PackedTrees forest, int64_t n) except NULL:
    """Scratch of a walk of n rows."""
    cdef int32_t* leaves = <int32_t*>PyMem_Malloc(max(n, forest.n_trees) * sizeof(int32_t))
    if leaves == NULL:
        raise MemoryError()
    return leaves


def walk_values(PackedTrees forest not None, const uint16_t[:, ::1] rows, double[:, :] total,
                int64_t first_tree):
    """Add the values of the rows' leaves to `total`, tree by tree.

    ``total`` is (n_rows, width); or (n_rows, n_outputs) of any strides, of which trees of one value
    have one in turn, the first tree that with the number ``first_tree % n_outputs``.
    """
    cdef LeafSums to
    cdef int64_t n = rows.shape[0]
    cdef int32_t* leaves
    if rows.shape[1] != forest.n_slots or total.shape[0] != n:
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    to = forest.as_totals(total, first_tree)
    leaves = room_for_leaves(forest, n)
    with nogil:
        values_of_rows(forest, &rows[0, 0], n, has_missing(&rows[0, 0], n * forest.n_slots),
                       leaves, &to)
    PyMem_Free(leaves)


cdef inline int64_t step_of(const int32_t[:, :] leaves, PackedTrees forest, int64_t n) except -1:
    """Leaves from a tree to the next one; those of a tree are neighbours."""
    if leaves.shape[0] != forest.n_trees or leaves.shape[1] != n or (
            n > 1 and leaves.strides[1] != sizeof(int32_t)):
        raise ValueError("The rows do not fit the forest.")
    return leaves.strides[0] // <int64_t>sizeof(int32_t)


def walk_leaves(PackedTrees forest not None, const uint16_t[:, ::1] rows, int32_t[:, :] leaves):
    """Node numbers of the rows' leaves: OUT int32 (n_trees, n_rows), each tree's neighbours."""
    cdef int64_t n = rows.shape[0]
    cdef int64_t step = step_of(leaves, forest, n)
    cdef int32_t* scratch
    if rows.shape[1] != forest.n_slots:
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    scratch = room_for_leaves(forest, 1)
    with nogil:
        leaves_of_rows(forest, &rows[0, 0], n, has_missing(&rows[0, 0], n * forest.n_slots),
                       scratch, &leaves[0, 0], step)
    PyMem_Free(scratch)


cdef inline uint16_t code_of(double x, const double* thresholds, int64_t n) noexcept nogil:
    """How many thresholds are below x: binary search without a branch."""
    cdef int64_t low = 0
    cdef int64_t half
    while n > 0:
        half = (n + 1) >> 1
        low += half if thresholds[low + half - 1] < x else 0
        n -= half
    return <uint16_t>low if x == x else MISSING


cdef void code_block(PackedTrees forest, const number_t[:, :] numbers, const int64_t[::1] columns,
                     const int64_t[::1] slots, uint16_t* rows) noexcept nogil:
    """Code columns of rows; slots None: the first ones."""
    cdef int64_t k, s, i, n
    cdef const double* base
    for k in range(columns.shape[0]):
        s = k if slots is None else slots[k]
        base = &forest.thresholds[forest.first[s]]
        n = forest.first[s + 1] - forest.first[s]
        for i in range(numbers.shape[0]):
            rows[i * forest.n_slots + s] = code_of(numbers[i, columns[k]], base, n)


def code_numbers(PackedTrees forest not None, const number_t[:, :] numbers,
                 const int64_t[::1] columns not None, const int64_t[::1] slots not None,
                 uint16_t[:, ::1] rows):
    """Code some columns of numbers.

    Parameters
    ----------
    numbers : float32 or float64 (n_rows, n_columns), any strides
    columns, slots : int64 (k,)
        Which column, and the slot that it is coded for.
    rows : OUT uint16 (n_rows, n_slots)
    """
    cdef int64_t k
    if not (rows.shape[0] == numbers.shape[0] and rows.shape[1] == forest.n_slots
            and slots.shape[0] == columns.shape[0]):
        raise ValueError("The rows do not fit the forest.")
    for k in range(slots.shape[0]):
        if not (0 <= slots[k] < forest.columns.shape[0] and 0 <= columns[k] < numbers.shape[1]):
            raise ValueError("The rows do not fit the forest.")
    if rows.shape[0] > 0:
        with nogil:
            code_block(forest, numbers, columns, slots, &rows[0, 0])


def add_numbers(PackedTrees forest not None, const number_t[:, :] numbers, double[:, :] total,
                int64_t first_tree):
    """Add the values of the leaves of few rows of numbers, as `code_numbers` and `walk_values`.

    The forest has slots of numbers only.
    """
    cdef const int64_t[::1] in_order = None
    cdef int64_t n = numbers.shape[0]
    cdef uint16_t* rows
    cdef int32_t* leaves
    cdef LeafSums to
    if (total.shape[0] != n or numbers.shape[1] != forest.n_columns
            or forest.columns.shape[0] != forest.n_slots):
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    to = forest.as_totals(total, first_tree)
    leaves = room_for_leaves(forest, n)
    rows = <uint16_t*>PyMem_Malloc(n * forest.n_slots * sizeof(uint16_t))
    if rows == NULL:
        PyMem_Free(leaves)
        raise MemoryError()
    with nogil:
        code_block(forest, numbers, forest.columns, in_order, rows)
        values_of_rows(forest, rows, n, has_missing(rows, n * forest.n_slots), leaves, &to)
    PyMem_Free(rows)
    PyMem_Free(leaves)


cdef int64_t find_stretches(const int64_t[::1] indptr, const int32_t[::1] rows,
                            const int64_t[::1] columns, int64_t begin, int64_t end,
                            int64_t[:, ::1] stretch) except -1:
    """Where the stored values of some rows begin and end in each column; how many there are.

    stretch : OUT (n_columns, 2)
    """
    cdef int64_t s, low, high
    cdef int64_t n_stored = 0
    for s in range(columns.shape[0]):
        if not (
            0 <= columns[s] < indptr.shape[0] - 1
            and 0 <= indptr[columns[s]] <= indptr[columns[s] + 1] <= rows.shape[0]
        ):
            raise ValueError("The sparse matrix is broken: indptr does not ascend.")
        low, high = indptr[columns[s]], indptr[columns[s] + 1]
        if low < high:
            low = first_at_least(&rows[0], low, high, begin)
            high = first_at_least(&rows[0], low, high, end)
        stretch[s, 0], stretch[s, 1] = low, high
        n_stored += high - low
    return n_stored


cdef inline double number_in(stored_t cell) noexcept nogil:
    if stored_t is uint32_t:
        return <double>cell if cell > 0 else NAN
    else:
        return cell


cdef inline int64_t place_of(const int32_t[::1] place, int64_t row, int64_t n) noexcept nogil:
    """Which of n rows it is; -1: none."""
    if place is not None:
        if not 0 <= row < place.shape[0]:
            return -1
        row = place[row]
    return row if row < n else -1


def code_sparse(PackedTrees forest not None, const int64_t[::1] indptr, const int32_t[::1] rows,
                const stored_t[::1] data, int64_t begin, int64_t end,
                const int32_t[::1] place=None, const uint32_t[::1] fill=None):
    """Code the rows from begin to end of a table by columns, for a forest of numbers only.

    Parameters
    ----------
    indptr, rows, data : int64 (n_columns + 1,), int32 and numbers or codes (n_stored,)
        Where each column begins, and what is stored.
    place : int32 (end - begin,) or None
        Of each row among those that are coded, ascending; -1: it is left out. None: all are coded.
    fill : uint32 (k,) or None
        Code that is not stored, of the slots of coded tables; None: it is zero.

    Returns
    -------
    row_first : int64 (n_rows + 1,)
        Where the codes of a row begin.
    cells : uint32
        ``slot << 16 | code`` of values whose code is not that of zero.
    zeros : uint16 (k, but at least 1,)
        Codes of a row of zeros.
    """
    cdef const int64_t[::1] first = forest.first
    cdef const double[::1] thresholds = forest.thresholds
    cdef int64_t n = end - begin if place is None else 1 + np.max(place, initial=-1)
    cdef int64_t k = forest.columns.shape[0]
    cdef int64_t s, i, j, own
    cdef uint16_t code
    cdef int64_t[::1] cursor = np.zeros(n + 1, dtype=np.int64)
    cdef uint16_t[::1] zeros = np.zeros(max(1, k), dtype=np.uint16)
    cdef int64_t[:, ::1] stretch = np.empty((k, 2), dtype=np.int64)
    cdef uint32_t[::1] cells
    cdef uint16_t[::1] found
    if not (end >= begin >= 0 and rows.shape[0] == data.shape[0]
            and (fill is None or fill.shape[0] == k)):
        raise ValueError("The rows do not fit the forest.")
    found = np.empty(
        find_stretches(indptr, rows, forest.columns, begin, end, stretch), dtype=np.uint16)
    with nogil:
        j = 0
        for s in range(k):
            zeros[s] = code_of(0.0 if fill is None else number_in(fill[s]), &thresholds[first[s]],
                               first[s + 1] - first[s])
            for i in range(stretch[s, 0], stretch[s, 1]):
                code = code_of(number_in(data[i]), &thresholds[first[s]], first[s + 1] - first[s])
                found[j] = code
                j += 1
                own = place_of(place, rows[i] - begin, n)
                if own >= 0 and code != zeros[s]:
                    cursor[own + 1] += 1
        for i in range(n):
            cursor[i + 1] += cursor[i]
    row_first = np.array(cursor)
    cells = np.empty(cursor[n], dtype=np.uint32)
    with nogil:
        j = 0
        for s in range(k):
            for i in range(stretch[s, 0], stretch[s, 1]):
                own = place_of(place, rows[i] - begin, n)
                if own >= 0 and found[j] != zeros[s]:
                    cells[cursor[own]] = <uint32_t>(s << 16) | found[j]
                    cursor[own] += 1
                j += 1
    return row_first, np.asarray(cells), np.asarray(zeros)


def walk_sparse(PackedTrees forest not None, const int64_t[::1] row_first,
                const uint32_t[::1] cells, const uint16_t[::1] zeros,
                int32_t[:, :] leaves, double[:, :] total, int64_t first_tree):
    """Leaves of coded rows, or the sums of their values.

    ``leaves`` is OUT as for `walk_leaves`, or None; ``total`` is IN and OUT, or None, and with
    ``first_tree`` as for `walk_values`.
    """
    cdef int64_t n = row_first.shape[0] - 1
    cdef int64_t width = forest.n_slots
    cdef int64_t height = max(1, min(n, <int64_t>BLOCK_ROWS, BLOCK_CELLS // width))
    cdef int64_t begin = 0
    cdef int64_t i, j, some
    cdef int64_t step = 0 if leaves is None else step_of(leaves, forest, n)
    cdef int32_t* scratch
    cdef uint16_t* rows
    cdef LeafSums to
    cdef bint with_leaves = leaves is not None
    cdef bint with_total = total is not None
    cdef bint with_missing
    if forest.n_trees >= MANY_TREES:
        height = 1
    if not (
        zeros.shape[0] == width and 0 <= row_first[0] and row_first[n] <= cells.shape[0]
        and (not with_total or total.shape[0] == n)
    ):
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    if with_total:
        to = forest.as_totals(total, first_tree)
    scratch = room_for_leaves(forest, height)
    rows = <uint16_t*>PyMem_Malloc(height * width * sizeof(uint16_t))
    if rows == NULL:
        PyMem_Free(scratch)
        raise MemoryError()
    with nogil:
        with_missing = has_missing(&zeros[0], width)
        for j in range(row_first[0], row_first[n]):
            with_missing |= (cells[j] & 0xFFFF) == MISSING
        for i in range(height):
            memcpy(rows + i * width, &zeros[0], width * sizeof(uint16_t))
        while begin < n:
            some = min(height, n - begin)
            for i in range(some):
                for j in range(row_first[begin + i], row_first[begin + i + 1]):
                    rows[i * width + (cells[j] >> 16)] = <uint16_t>(cells[j] & 0xFFFF)
            if with_total:
                values_of_rows(forest, rows, some, with_missing, scratch, &to)
                to.cells += some * to.row_step
            if with_leaves:
                leaves_of_rows(forest, rows, some, with_missing, scratch, &leaves[0, begin],
                               step)
            for i in range(some):
                for j in range(row_first[begin + i], row_first[begin + i + 1]):
                    rows[i * width + (cells[j] >> 16)] = zeros[cells[j] >> 16]
            begin += some
    PyMem_Free(scratch)
    PyMem_Free(rows)
