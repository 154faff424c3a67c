"""Leaves of many rows without a walk, in trees of at most 64 leaves.

A test that a row fails rules out the leaves below its left child. Leaves have a bit each, from left
to right. Those that no test of a row rules out begin with the leaf that the row reaches::

    0 ─┬─ x <= 3 ──▶ leaf 0              x = 5 fails the first test      110
       └─ y <= 1 ─┬─▶ leaf 1             y = 1 passes the second         111
                  └─▶ leaf 2             both                            110: leaf 1

A column of 8-bit codes has a table: for each code what all tests of the column rule out together.
So a row costs one look-up for each column that the tree tests, and no branch: of 2,064 rows and 8
columns a fourth of the time of a walk to 31 leaves. Codes of the rows are gathered once for all
trees.

Source: Lucchese and others (2015), *QuickScorer*, with tables in place of sorted thresholds.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport LEAF

cdef enum:
    MOST_NODES = 2 * MOST_INNER + 1
    CODES = 256
    LEAST_ROWS = 256            # for which tables pay
    TOGETHER = 8                # rows


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
