"""Binned rows down a tree: the leaves of `dtrees.core.predict.binned`.

Codes are read where they are, column by column, and nothing is copied: rows ascend, so the lines of
the columns that a tree tests are read once, and in order. A node is packed with the address of its
column. Of 8-bit codes it has a bit for each, missing (0) included, so that a step does not branch
by the kind of its test; of wider ones, a stretch (low, high] goes left, or a subset::

    code <= 2    0110 0000 ..     (0, 2]
    code > 2     0001 1100 ..     (2, last ordered code]
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from dtrees.core.data._columns cimport STORED_U8, Column, Columns, columns_of
from dtrees.core.data._structs cimport AT_MOST, IN_SUBSET
from dtrees.core.predict._forest_nodes cimport (
    Grown, GrownTrees, number_nodes, total_of, value_of
)
from dtrees.core.predict._walk cimport BINNED, BinnedNode, BinnedRows, walk
from dtrees.core.stores._partition cimport Route

cdef enum:
    ALL_PACKED = -1
    NO_MEMORY = -2


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

    def __cinit__(self, coded, const int64_t[::1] rows not None):
        cdef int64_t n_rows = coded.n_rows
        cdef int64_t i
        self.table = columns_of(coded)
        self.rows = rows
        self.n = rows.shape[0]
        for i in range(self.n):
            if not 0 <= rows[i] < n_rows:
                raise ValueError(f"The table has no row {rows[i]}.")

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
                if not fill_node(&nodes[i], tree, inner[i], self.table.columns, number):
                    fault = inner[i]
                    break
        if fault == ALL_PACKED:
            binned = BinnedRows(nodes, &self.rows[0], number[0], leaf)
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
