"""The arrays of trees as kernels read them, checked and counted, before trees are packed.

Trees come from outside (a file, another process). What a walk relies on is checked here, but for
subsets, whose words are checked when their nodes are packed.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc

import numpy as np

from dtrees.core.data._structs cimport ABOVE, IN_SUBSET, LEAF


cdef class GrownTrees:
    """The arrays of trees, checked as far as the walk relies on them, and counted.

    Attributes
    ----------
    start, first_leaf : int64 (n_trees + 1,)
        Inner nodes and leaves of the trees, one tree behind the other.
    n_compared, n_subsets : int64 (n_columns,)
        Nodes that compare numbers of a column, and nodes that have subsets of its categories.
    with_above : bool
        Whether a node asks for what is above a threshold.
    """

    def __cinit__(self, trees, int64_t n_columns):
        cdef int64_t t
        cdef int64_t[::1] start, first_leaf, n_compared, n_subsets
        self.n_trees = len(trees)
        self.n_statistics = trees[0].statistics.shape[1]
        self.is_regression = trees[0].is_regression
        self.trees = <Grown*>PyMem_Calloc(self.n_trees, sizeof(Grown))
        if self.trees == NULL:
            raise MemoryError()
        self.start = np.zeros(self.n_trees + 1, dtype=np.int64)
        self.first_leaf = np.zeros(self.n_trees + 1, dtype=np.int64)
        self.n_compared = np.zeros(n_columns, dtype=np.int64)
        self.n_subsets = np.zeros(n_columns, dtype=np.int64)
        self.arrays = tuple(trees)
        for t in range(self.n_trees):
            self._look_at(t, trees[t])
        start, first_leaf = self.start, self.first_leaf
        n_compared, n_subsets = self.n_compared, self.n_subsets
        for t in range(self.n_trees):
            self._count(t, n_compared, n_subsets, &start[t + 1])
            first_leaf[t + 1] = first_leaf[t] + self.trees[t].n_nodes - start[t + 1]
            start[t + 1] += start[t]

    cdef _look_at(self, int64_t t, tree):
        """Where a tree's arrays are."""
        cdef Grown* grown = &self.trees[t]
        cdef const int32_t[::1] feature = tree.feature
        cdef const int32_t[::1] left = tree.children_left
        cdef const int32_t[::1] right = tree.children_right
        cdef const uint8_t[::1] test = tree.test
        cdef const uint32_t[::1] code = tree.code
        cdef const double[::1] threshold = tree.threshold
        cdef const uint8_t[::1] missing_left = tree.missing_go_to_left
        cdef const int64_t[::1] subset = tree.subset_offset
        cdef const uint64_t[::1] words = tree.subset_words
        cdef const int32_t[:, ::1] narrow
        cdef const int64_t[:, ::1] wide
        cdef int64_t n = feature.shape[0]
        statistics = tree.statistics
        if not (
            left.shape[0] == right.shape[0] == test.shape[0] == threshold.shape[0] == n
            and code.shape[0] == missing_left.shape[0] == subset.shape[0] == n
            and statistics.shape[0] == n
            and statistics.shape[1] == self.n_statistics
            and tree.is_regression == self.is_regression
            and self.n_statistics >= 1 + self.is_regression
        ):
            raise ValueError("The arrays of the trees differ in length.")
        if not 0 < n < 0x7FFFFFFF:
            raise ValueError(f"Tree {t} has {n} nodes.")
        grown.n_nodes = n
        grown.feature, grown.test, grown.threshold = &feature[0], &test[0], &threshold[0]
        grown.code, grown.left, grown.right = &code[0], &left[0], &right[0]
        grown.n_statistics, grown.is_regression = self.n_statistics, self.is_regression
        grown.missing_left, grown.subset = &missing_left[0], &subset[0]
        grown.n_words = words.shape[0]
        if grown.n_words > 0:
            grown.words = &words[0]
        if statistics.dtype == np.int32:
            narrow = statistics
            grown.narrow = &narrow[0, 0]
        else:
            wide = statistics
            grown.wide = &wide[0, 0]
        grown.weight_unit, grown.unit, grown.offset = tree.weight_unit, tree.unit, tree.offset

    cdef _count(self, int64_t t, int64_t[::1] n_compared, int64_t[::1] n_subsets,
                int64_t* n_inner):
        """Count the inner nodes of a tree; `n_inner` is OUT."""
        cdef const Grown* tree = &self.trees[t]
        cdef int64_t n_columns = n_compared.shape[0]
        cdef int64_t i, j, n, column
        cdef int64_t broken = -1
        cdef bint with_above = False
        cdef int32_t* inner = <int32_t*>PyMem_Malloc((tree.n_nodes + 1) * sizeof(int32_t))
        if inner == NULL:
            raise MemoryError()
        with nogil:
            n = 0
            for i in range(tree.n_nodes):
                inner[n] = <int32_t>i               # no branch: half of the nodes are leaves
                n += tree.test[i] != LEAF
            for j in range(n):
                i = inner[j]
                column = tree.feature[i]
                # Children stand behind their parent: every walk ends.
                if not (
                    tree.test[i] <= IN_SUBSET and 0 <= column < n_columns
                    and i < tree.left[i] < tree.n_nodes and i < tree.right[i] < tree.n_nodes
                ):
                    broken = i
                    break
                if tree.test[i] == IN_SUBSET:
                    n_subsets[column] += 1
                else:
                    n_compared[column] += 1
                    with_above |= tree.test[i] == ABOVE
        PyMem_Free(inner)
        if broken >= 0:
            raise ValueError(f"Tree {t} is broken: node {broken} cannot be.")
        n_inner[0] = n
        self.with_above |= with_above

    def __dealloc__(self):
        PyMem_Free(self.trees)


cdef int64_t total_of(const Grown* tree, int64_t node) noexcept nogil:
    """Weight of a node in units of its fixed point; sums that overflow wrap around."""
    cdef int64_t k
    cdef int64_t first = tree.n_statistics * node
    cdef uint64_t total = 0
    if tree.is_regression:
        return statistic(tree, first)
    for k in range(first, first + tree.n_statistics):
        total += <uint64_t>statistic(tree, k)
    return <int64_t>total


cdef bint is_heavier_left(const Grown* tree, int64_t node) noexcept nogil:
    """Whether the left child has more weight, in the user's units."""
    cdef double left = total_of(tree, tree.left[node])
    cdef double right = total_of(tree, tree.right[node])
    return left * tree.weight_unit > right * tree.weight_unit


cdef void number_nodes(const Grown* tree, int32_t* number, int32_t* inner,
                       int32_t* node_of_leaf) noexcept nogil:
    """Number the inner nodes, and the leaves as complements: in their order, or by their nodes.

    number, inner : OUT (n_nodes,), and the nodes by number (n_inner + 1,)
    node_of_leaf : OUT (n_leaves,), the leaves in their order, or NULL
        The last node is a leaf, since children stand behind their parents: no more is written.
    """
    cdef int32_t n_inner = 0
    cdef int32_t n_leaves = 0
    cdef int32_t i, leaf, is_leaf
    for i in range(<int32_t>tree.n_nodes):          # no branch: half of the nodes are leaves
        is_leaf = tree.test[i] == LEAF
        leaf = i
        if node_of_leaf != NULL:
            leaf = n_leaves
            node_of_leaf[n_leaves] = i
            n_leaves += is_leaf
        number[i] = (n_inner & (is_leaf - 1)) | (~leaf & -is_leaf)
        inner[n_inner] = i
        n_inner += 1 - is_leaf
