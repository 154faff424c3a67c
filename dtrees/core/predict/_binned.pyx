"""Binned rows down a tree: the leaves of `dtrees.core.predict.binned`.

Codes are read where they are, column by column, and nothing is copied: rows ascend, so the lines of
the columns that a tree tests are read once, and in order. A node is packed with the address of its
column. Of 8-bit codes it has a bit for each, missing (0) included, so that a step does not branch
by the kind of its test; of wider ones, a stretch (low, high] goes left, or a subset::

    code <= 2    0110 0000 ..     (0, 2]
    code > 2     0001 1100 ..     (2, last ordered code]

Many rows of 8-bit codes do not walk down trees of at most 64 leaves, but look their leaves up. A
test that a row fails rules out the leaves below its left child. Leaves have a bit each, from left
to right. Those that no test of a row rules out begin with the leaf that the row reaches::

    0 ─┬─ x <= 3 ──▶ leaf 0              x = 5 fails the first test      110
       └─ y <= 1 ─┬─▶ leaf 1             y = 1 passes the second         111
                  └─▶ leaf 2             both                            110: leaf 1

A column has a table: for each code what all tests of the column rule out together. So a row costs
one look-up for each column that the tree tests, and no branch: of 2,064 rows and 8 columns a fourth
of the time of a walk to 31 leaves. Codes of the rows are gathered once for all trees. Source:
Lucchese and others (2015), *QuickScorer*, with tables in place of sorted thresholds.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._columns cimport STORED_U8, Column, Columns, columns_of
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport AT_MOST, IN_SUBSET, LEAF
from dtrees.core.predict._forest_nodes cimport (
    Grown, GrownTrees, number_nodes, total_of, value_of
)
from dtrees.core.predict._walk cimport BINNED, BinnedNode, BinnedRows, walk
from dtrees.core.stores._partition cimport Route

cdef enum:
    ALL_PACKED = -1
    NO_MEMORY = -2

cdef enum:
    MOST_INNER = 63             # nodes of a tree whose leaves are looked up
    MOST_NODES = 2 * MOST_INNER + 1
    CODES = 256
    LEAST_ROWS = 256            # for which tables pay
    TOGETHER = 8                # rows

cdef struct LeafMasks:
    # Rows that are asked for, and room for the masks of a tree.
    const Column* columns
    int64_t n_columns           # of the table
    const int64_t* rows
    int64_t n
    uint8_t** codes             # (n_columns,): of these rows, once a tree tests the column; or NULL
    int32_t* slot               # (n_columns,): of the masks of a column; -1: not tested
    uint64_t* masks             # (columns that are tested, 256)


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


cdef void free_masks(LeafMasks* asked) noexcept nogil:
    cdef int64_t j
    if asked.codes != NULL:
        for j in range(asked.n_columns):
            free(asked.codes[j])
    free(asked.codes)
    free(asked.slot)
    free(asked.masks)
    asked.codes = NULL
    asked.slot = NULL
    asked.masks = NULL


cdef bint reserve_masks(LeafMasks* asked) noexcept nogil:
    """Room for rows that are asked for, once; False without memory."""
    cdef int64_t j
    if asked.masks != NULL:
        return True
    asked.codes = <uint8_t**>calloc(asked.n_columns + 1, sizeof(uint8_t*))
    asked.slot = <int32_t*>malloc((asked.n_columns + 1) * sizeof(int32_t))
    if asked.codes == NULL or asked.slot == NULL:
        free_masks(asked)
        return False
    for j in range(asked.n_columns):
        asked.slot[j] = -1
    asked.masks = <uint64_t*>malloc(
        min(asked.n_columns, <int64_t>MOST_INNER) * CODES * sizeof(uint64_t))
    if asked.masks == NULL:
        free_masks(asked)
    return asked.masks != NULL


cdef int number_leaves(const Grown* tree, int32_t* begin, int32_t* node_of_leaf) noexcept nogil:
    """Leaves from left to right.

    begin : OUT (n_nodes,), leaves before each node; -1: no walk reaches it
    node_of_leaf : OUT (n_leaves,)

    Returns how many; 0 where they are no binary tree of at most 64 leaves.
    """
    cdef int32_t[MOST_NODES + 2] stack
    cdef int depth = 1
    cdef int n_leaves = 0
    cdef int32_t i
    for i in range(<int32_t>tree.n_nodes):
        begin[i] = -1
    stack[0] = 0
    while depth > 0:
        depth -= 1
        i = stack[depth]
        if begin[i] >= 0 or n_leaves > MOST_INNER:
            return 0
        begin[i] = n_leaves
        if tree.test[i] == LEAF:
            node_of_leaf[n_leaves] = i
            n_leaves += 1
        else:
            stack[depth] = tree.right[i]
            stack[depth + 1] = tree.left[i]
            depth += 2
    return n_leaves


cdef inline uint64_t bits_up_to(int end) noexcept nogil:
    return (<uint64_t>1 << end) - 1


cdef void rule_out(const BinnedNode* node, uint64_t left, uint64_t* masks) noexcept nogil:
    """Take the leaves below a left child from all codes that do not go there."""
    cdef uint32_t code
    cdef uint64_t others = ~left
    if not node.route.missing_left:
        masks[0] &= others
    if node.route.subset == NULL:
        for code in range(1, min(node.route.low, <uint32_t>CODES - 1) + 1):
            masks[code] &= others
        for code in range(node.route.high + 1, CODES):
            masks[code] &= others
    else:
        for code in range(1, CODES):
            if not (node.left[code >> 6] >> (code & 63)) & 1:
                masks[code] &= others


cdef bint gather_codes(LeafMasks* asked, int32_t column) noexcept nogil:
    """The codes of the rows in a column, once; False without memory."""
    cdef const uint8_t* codes = <const uint8_t*>asked.columns[column].codes
    cdef uint8_t* own = asked.codes[column]
    cdef int64_t i
    if own != NULL:
        return True
    own = <uint8_t*>malloc(asked.n)
    if own == NULL:
        return False
    for i in range(asked.n):
        own[i] = codes[asked.rows[i]]
    asked.codes[column] = own
    return True


cdef int fill_masks(LeafMasks* asked, const Grown* tree, const BinnedNode* nodes,
                    const int32_t* inner, int64_t n_inner, const int32_t* begin,
                    int32_t* used) noexcept nogil:
    """The tables of the columns that a tree tests, which are `used`; how many, 0 without memory."""
    cdef uint64_t* masks
    cdef int n_used = 0
    cdef int32_t column, i
    cdef int64_t k, code
    for k in range(n_inner):
        i = inner[k]
        if begin[i] < 0:
            continue
        column = tree.feature[i]
        if asked.slot[column] < 0:
            asked.slot[column] = n_used
            used[n_used] = column
            masks = asked.masks + CODES * n_used
            n_used += 1
            for code in range(CODES):
                masks[code] = ~<uint64_t>0
        rule_out(&nodes[k], bits_up_to(begin[tree.right[i]]) & ~bits_up_to(begin[i]),
                 asked.masks + CODES * asked.slot[column])
    for k in range(n_used):
        asked.slot[used[k]] = -1
        if not gather_codes(asked, used[k]):
            n_used = 0
    return n_used


cdef inline void look_up(const uint64_t* masks, const uint8_t** codes, int n_used, int64_t first,
                         int n, const int32_t* node_of_leaf, Py_ssize_t* leaf) noexcept nogil:
    """OUT leaves of some rows side by side; n is a constant where this is inlined."""
    cdef uint64_t[TOGETHER] left
    cdef const uint8_t* own
    cdef int j, u
    for j in range(n):
        left[j] = ~<uint64_t>0
    for u in range(n_used):
        own = codes[u] + first
        for j in range(n):
            left[j] &= masks[CODES * u + own[j]]
    for j in range(n):
        leaf[first + j] = node_of_leaf[trailing_zeros(left[j])]


cdef bint leaves_by_masks(LeafMasks* asked, const Grown* tree, const BinnedNode* nodes,
                          const int32_t* inner, int64_t n_inner, Py_ssize_t* leaf) noexcept nogil:
    """OUT leaves of all rows; False where they have to walk. O(nodes + n x columns of the tree).

    nodes, inner : packed inner nodes (n_inner,), and their numbers in the tree
    """
    cdef int32_t[MOST_NODES] begin
    cdef int32_t[MOST_INNER + 1] node_of_leaf
    cdef int32_t[MOST_INNER] used
    cdef const uint8_t* codes[MOST_INNER]
    cdef int64_t k
    cdef int n_used, u
    if asked.n < LEAST_ROWS or not 0 < n_inner <= MOST_INNER or tree.n_nodes > MOST_NODES:
        return False
    if not PATH_IS_ON("leaf_masks"):
        return False
    for k in range(n_inner):
        if nodes[k].codes == NULL:
            return False
    if number_leaves(tree, begin, node_of_leaf) == 0 or not reserve_masks(asked):
        return False
    n_used = fill_masks(asked, tree, nodes, inner, n_inner, begin, used)
    if n_used == 0:
        return False
    for u in range(n_used):
        codes[u] = asked.codes[used[u]]
    for k in range(asked.n // TOGETHER):
        look_up(asked.masks, codes, n_used, TOGETHER * k, TOGETHER, node_of_leaf, leaf)
    for k in range(asked.n % TOGETHER):
        look_up(asked.masks, codes, n_used, asked.n - 1 - k, 1, node_of_leaf, leaf)
    return True


cdef class AskedRows:
    """Rows of a coded table that go down trees.

    Parameters
    ----------
    coded : CodedMatrix
        That the trees are grown from.
    rows : int64 (n,)
    """
    cdef Columns table
    cdef const int64_t[::1] rows
    cdef int64_t n
    cdef LeafMasks masks

    def __cinit__(self, coded, const int64_t[::1] rows not None):
        cdef int64_t n_rows = coded.n_rows
        cdef int64_t i
        self.table = columns_of(coded)
        self.rows = rows
        self.n = rows.shape[0]
        for i in range(self.n):
            if not 0 <= rows[i] < n_rows:
                raise ValueError(f"The table has no row {rows[i]}.")
        self.masks.columns = self.table.columns
        self.masks.n_columns = self.table.n_columns
        self.masks.n = self.n
        self.masks.rows = &rows[0] if self.n > 0 else NULL

    def __dealloc__(self):
        free_masks(&self.masks)

    cdef int64_t go_down(self, const Grown* tree, int64_t n_inner,
                         Py_ssize_t* leaf) noexcept nogil:
        """OUT leaves of all rows; returns a node that cannot be, `ALL_PACKED` or `NO_MEMORY`."""
        cdef int32_t* number = <int32_t*>malloc((tree.n_nodes + n_inner + 1) * sizeof(int32_t))
        cdef int32_t* inner = number + tree.n_nodes
        cdef BinnedNode* nodes = <BinnedNode*>malloc((n_inner + 1) * sizeof(BinnedNode))
        cdef BinnedRows binned
        cdef int64_t fault = ALL_PACKED if number != NULL and nodes != NULL else NO_MEMORY
        cdef int64_t i
        if fault == ALL_PACKED:
            number_nodes(tree, number, inner, NULL)
            for i in range(n_inner):
                if not fill_node(&nodes[i], tree, inner[i], self.masks.columns, number):
                    fault = inner[i]
                    break
        if fault == ALL_PACKED and not leaves_by_masks(&self.masks, tree, nodes, inner, n_inner,
                                                       leaf):
            binned = BinnedRows(nodes, self.masks.rows, number[0], leaf)
            walk(&binned, self.n, BINNED)
        free(number)
        free(nodes)
        return fault


cdef raise_fault(int64_t fault):
    if fault == NO_MEMORY:
        raise MemoryError()
    if fault != ALL_PACKED:
        raise ValueError(f"The tree is broken: node {fault} has no subset.")


def find_leaves(trees, coded, const int64_t[::1] rows, Py_ssize_t[:, ::1] leaf not None):
    """OUT leaves of rows of the coded table that trees are grown from, (n_trees, n).

    O(nodes + n x depth) for a tree; in sparse columns a step takes O(log stored).
    """
    cdef AskedRows asked = AskedRows(coded, rows)
    cdef GrownTrees grown = GrownTrees(tuple(trees), asked.table.n_columns)
    cdef const int64_t[::1] start = grown.start
    cdef int64_t fault = ALL_PACKED
    cdef int64_t t
    if leaf.shape[0] != grown.n_trees or leaf.shape[1] != asked.n:
        raise ValueError("There is not one leaf for each row and tree.")
    if asked.n == 0:
        return
    with nogil:
        for t in range(grown.n_trees):
            fault = asked.go_down(grown.trees + t, start[t + 1] - start[t], &leaf[t, 0])
            if fault != ALL_PACKED:
                break
    raise_fault(fault)


def find_means(trees, coded, const int64_t[::1] rows, double[:, ::1] mean not None):
    """OUT means of the leaves of rows, of regression trees, float64 (n_trees, n).

    As `find_leaves`, and ``Tree.value`` of the leaves.
    """
    cdef AskedRows asked = AskedRows(coded, rows)
    cdef GrownTrees grown = GrownTrees(tuple(trees), asked.table.n_columns)
    cdef const int64_t[::1] start = grown.start
    cdef Py_ssize_t[::1] leaf = np.empty(asked.n, dtype=np.intp)
    cdef double[::1] of_node
    cdef const Grown* tree
    cdef int64_t fault = ALL_PACKED
    cdef int64_t most = 0
    cdef int64_t t, i
    if not grown.is_regression or mean.shape[0] != grown.n_trees or mean.shape[1] != asked.n:
        raise ValueError("There is not one mean for each row and tree.")
    if asked.n == 0:
        return
    for t in range(grown.n_trees):
        most = max(most, grown.trees[t].n_nodes)
    of_node = np.empty(most)
    with nogil:
        for t in range(grown.n_trees):
            tree = grown.trees + t
            fault = asked.go_down(tree, start[t + 1] - start[t], &leaf[0])
            if fault != ALL_PACKED:
                break
            for i in range(tree.n_nodes):
                of_node[i] = value_of(tree, i, 0, total_of(tree, i))
            for i in range(asked.n):
                mean[t, i] = of_node[leaf[i]]
    raise_fault(fault)
