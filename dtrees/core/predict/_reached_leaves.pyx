"""The values of the leaves that rows reach, added up over trees.

The leaves of a tree that rows reach are numbered, and only their values that are not zero are kept
(`_forest_leaves`)::

    leaf of rows  7 3 7 12 3    number  1 0 1 2 0    values of leaves 3, 7, 12

So ten rows in a tree of 5,000 nodes cost ten leaves, and a leaf of 26 classes as a rule one value.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core.data._bits cimport prefetch
from dtrees.core.predict._forest_leaves cimport add_entries, entries_of
from dtrees.core.predict._forest_nodes cimport Entry
from dtrees.core.predict._grown_trees cimport GrownTrees, n_values_of

cdef enum:
    AHEAD = 16                  # rows whose values are asked for
    TOGETHER = 256              # rows whose sums stay in the caches

cdef struct LeafEntries:
    Entry* entries
    int64_t* first              # of each leaf, and their end


cdef int64_t number_reached(const Py_ssize_t* leaf, int64_t n, int64_t n_nodes, int32_t* number,
                            int32_t* of_row, int32_t* node_of_leaf) noexcept nogil:
    """Number the leaves that rows reach; how many, or -1 where a row has no node of the tree.

    They are numbered in the order of the nodes, so that statistics are read in order.

    number : scratch (n_nodes,)
    of_row : OUT (n,)
    node_of_leaf : OUT (n_nodes,)
    """
    cdef int32_t n_leaves = 0
    cdef int64_t i
    cdef int32_t is_reached
    memset(number, 0, n_nodes * sizeof(int32_t))
    for i in range(n):
        if not 0 <= leaf[i] < n_nodes:
            return -1
        number[leaf[i]] = 1
    for i in range(n_nodes):                        # no branch: half of the nodes are leaves
        is_reached = number[i]
        number[i] = n_leaves
        node_of_leaf[n_leaves] = <int32_t>i
        n_leaves += is_reached
    for i in range(n):
        of_row[i] = number[leaf[i]]
    return n_leaves


cdef class ReachedLeaves:
    """Leaves of rows in trees, and what is to be added of them.

    Parameters
    ----------
    trees : sequence of Tree
        Of one kind, with the same values.
    leaf : intp (n_trees, n)

    Raises
    ------
    ValueError
        A leaf is no node of its tree.
    """
    cdef LeafEntries* of_tree
    cdef int32_t[:, ::1] of_row         # numbers of leaves, (n_trees, n)
    cdef int64_t n_trees
    cdef int64_t n_values

    def __cinit__(self, trees, const Py_ssize_t[:, ::1] leaf not None):
        cdef GrownTrees grown = GrownTrees(tuple(trees), trees[0].n_columns)
        cdef int64_t n = leaf.shape[1]
        cdef int64_t most = max(tree.node_count for tree in trees)
        cdef int32_t[::1] number = np.empty(most, dtype=np.int32)
        cdef int32_t[::1] node_of_leaf = np.empty(most, dtype=np.int32)
        cdef int64_t t, n_leaves
        cdef LeafEntries* own
        if leaf.shape[0] != grown.n_trees:
            raise ValueError("There is not one leaf for each row and tree.")
        self.of_row = np.empty((grown.n_trees, n), dtype=np.int32)
        self.n_values = n_values_of(&grown.trees[0])
        self.of_tree = <LeafEntries*>calloc(grown.n_trees, sizeof(LeafEntries))
        if self.of_tree == NULL:
            raise MemoryError()
        self.n_trees = grown.n_trees
        if n == 0:
            return
        with nogil:
            for t in range(self.n_trees):
                own = self.of_tree + t
                n_leaves = number_reached(&leaf[t, 0], n, grown.trees[t].n_nodes, &number[0],
                                          &self.of_row[t, 0], &node_of_leaf[0])
                if n_leaves < 0:
                    with gil:
                        raise ValueError(f"A leaf is no node of tree {t}.")
                own.first = <int64_t*>malloc((n_leaves + 1) * sizeof(int64_t))
                if own.first != NULL:
                    own.entries = entries_of(grown.trees + t, &node_of_leaf[0], n_leaves,
                                             own.first)
                if own.entries == NULL:
                    with gil:
                        raise MemoryError()

    def __dealloc__(self):
        cdef int64_t t
        if self.of_tree != NULL:
            for t in range(self.n_trees):
                free(self.of_tree[t].entries)
                free(self.of_tree[t].first)
        free(self.of_tree)

    def add_to(self, double[:, ::1] total not None, int64_t begin, int64_t end):
        """Add the values of some rows, [begin, end), in the order of the trees; on any thread.

        total : IN and OUT (n, n_values)
        """
        cdef int64_t first = begin
        cdef int64_t last, t
        if total.shape[0] != self.of_row.shape[1] or total.shape[1] != self.n_values:
            raise ValueError("The totals do not fit the trees.")
        if not 0 <= begin <= end <= total.shape[0]:
            raise ValueError(f"There are no rows {begin} to {end}.")
        with nogil:
            while first < end:
                last = min(first + TOGETHER, end)
                for t in range(self.n_trees):
                    add_rows(self.of_tree + t, &self.of_row[t, 0], first, last, &total[0, 0],
                             self.n_values)
                first = last


cdef inline void add_rows(const LeafEntries* own, const int32_t* leaf, int64_t begin, int64_t end,
                          double* total, int64_t n_values) noexcept nogil:
    cdef int64_t i
    for i in range(begin, end):
        if i + 2 * AHEAD < end:
            prefetch(own.first + leaf[i + 2 * AHEAD])
        if i + AHEAD < end:
            prefetch(own.entries + own.first[leaf[i + AHEAD]])
        add_entries(own.entries, own.first[leaf[i]], own.first[leaf[i] + 1], total + i * n_values)
