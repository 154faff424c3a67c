"""Binned rows down a tree: the leaves of `dtrees.core.predict.binned`.

Codes are read where they are, column by column, and nothing is copied: rows ascend, so the lines of
the columns that a tree tests are read once, and in order. A node is packed with the address of its
column. Of 8-bit codes it has a bit for each, missing (0) included, so that a step does not branch
by the kind of its test; of wider ones, a stretch (low, high] goes left, or a subset::

    code <= 2    0110 0000 ..     (0, 2]
    code > 2     0001 1100 ..     (2, last ordered code]
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from dtrees.core.data._columns cimport STORED_U8, Columns, columns_of
from dtrees.core.data._structs cimport AT_MOST, IN_SUBSET
from dtrees.core.predict._grown_trees cimport Grown, GrownTrees, number_nodes
from dtrees.core.predict._walk cimport BINNED, BinnedNode, BinnedRows, walk
from dtrees.core.stores._partition cimport Route


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


cdef bint fill_node(BinnedNode* node, const Grown* tree, int64_t i, Columns table,
                    const int32_t* number) noexcept:
    """Pack node i; whether it can be."""
    node.column = &table.columns[tree.feature[i]]
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


def find_leaves(tree, coded, const int64_t[::1] rows, Py_ssize_t[::1] leaf):
    """OUT leaves of rows of the coded table that the tree is grown from.

    O(nodes + n x depth); in sparse columns a step takes O(log stored).
    """
    cdef Columns table = columns_of(coded)
    cdef GrownTrees trees = GrownTrees((tree,), table.n_columns)
    cdef const Grown* grown = trees.trees
    cdef int64_t n_inner = trees.start[1]
    cdef int64_t n_rows = coded.n_rows
    cdef Py_ssize_t n = rows.shape[0]
    cdef Py_ssize_t i
    cdef int32_t* number
    cdef int32_t* inner
    cdef BinnedNode* nodes
    cdef BinnedRows binned
    if leaf.shape[0] != n:
        raise ValueError("There is not one leaf for each row.")
    for i in range(n):
        if not 0 <= rows[i] < n_rows:
            raise ValueError(f"The table has no row {rows[i]}.")
    if n == 0:
        return
    nodes = <BinnedNode*>malloc((n_inner + 1) * sizeof(BinnedNode))
    number = <int32_t*>malloc((grown.n_nodes + n_inner + 1) * sizeof(int32_t))
    try:
        if nodes == NULL or number == NULL:
            raise MemoryError()
        inner = number + grown.n_nodes
        number_nodes(grown, number, inner, NULL)
        for i in range(n_inner):
            if not fill_node(&nodes[i], grown, inner[i], table, number):
                raise ValueError(f"The tree is broken: node {inner[i]} has no subset.")
        binned = BinnedRows(nodes, &rows[0], number[0], &leaf[0])
        with nogil:
            walk(&binned, n, BINNED)
    finally:
        free(nodes)
        free(number)
