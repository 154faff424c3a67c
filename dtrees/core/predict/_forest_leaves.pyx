"""The values of the leaves of many trees, and their sums.

Values are those of `dtrees.core.model.tree.Tree`, bit for bit: shares of classes, or means. Leaves
of many classes have few that are not zero, as a rule one. Those alone are kept, since a sum of
shares is the same without its zeros::

    shares of 26 classes    0 0 0 1 0 ...            entries    (1.0, 3)
                            0 0 .25 0 0 .75 0 ...               (.25, 2)  (.75, 5)

Trees of one value may belong to several outputs in turn, as those of boosted models of classes::

    tree                    0  1  2  3  4  5         three outputs
    adds to output          0  1  2  0  1  2

A packed forest has the values of all leaves. Where rows and their leaves are given, the leaves that
they reach are numbered, and have values. So ten rows in a tree of 5,000 nodes cost ten leaves::

    leaf of rows  7 3 7 12 3    number  1 0 1 2 0    values of leaves 3, 7, 12
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from dtrees.core.data._bits cimport prefetch
from dtrees.core.data._structs cimport LEAF
from dtrees.core.predict._forest_nodes cimport (
    ForestNodes, Grown, GrownTrees, n_values_of, statistic, total_of, value_of
)

cdef enum:
    AHEAD = 32                  # rows whose values are asked for
    EIGHT = 8                   # statistics that are looked at together
    FEW_VALUES = 2              # of a leaf, of which zeros are kept
    TOGETHER = 256              # rows whose sums stay in the caches


cdef class LeafValues:
    """The values of leaves of trees of one kind, to be filled in tree by tree."""

    def __cinit__(self, GrownTrees grown not None):
        self.n_trees = grown.n_trees
        self.width = n_values_of(grown.trees)
        self.of_tree = <TreeValues*>calloc(self.n_trees, sizeof(TreeValues))
        if self.of_tree == NULL:
            raise MemoryError()

    def __dealloc__(self):
        cdef int64_t t
        if self.of_tree != NULL:
            for t in range(self.n_trees):
                free(self.of_tree[t].dense)
                free(self.of_tree[t].entries)
                free(self.of_tree[t].first)
        free(self.of_tree)

    cdef bint fill(self, const Grown* tree, int64_t t, const int32_t* node_of_leaf,
                   int64_t n_leaves, bint is_dense) noexcept nogil:
        """Write the values of some leaves of tree t, once; False without memory."""
        cdef TreeValues* own = self.of_tree + t
        if is_dense:
            own.dense = <double*>malloc(n_leaves * self.width * sizeof(double))
            if own.dense != NULL:
                dense_values(tree, node_of_leaf, n_leaves, own.dense)
            return own.dense != NULL
        own.first = <int64_t*>malloc((n_leaves + 1) * sizeof(int64_t))
        if own.first != NULL:
            own.entries = entries_of(tree, node_of_leaf, n_leaves, own.first)
        return own.entries != NULL

    cdef Totals as_totals(self, double[:, :] total, int64_t first_tree) except *:
        """Where the values of the leaves of at least one row are added.

        first_tree : of those that were added to the same totals, the number of the first one here
        """
        cdef int64_t n_outputs = total.shape[1]
        cdef Totals to
        if first_tree < 0 or not (
            n_outputs == self.width and total.strides[1] == sizeof(double)
            or n_outputs > 0 and self.width == 1
        ):
            raise ValueError("The totals do not fit the trees.")
        to.cells = &total[0, 0]
        to.row_step = total.strides[0] // <int64_t>sizeof(double)
        to.output_step = total.strides[1] // <int64_t>sizeof(double)
        to.n_outputs = n_outputs if self.width == 1 else 1
        to.output = first_tree % to.n_outputs
        return to


cdef void dense_values(const Grown* tree, const int32_t* node_of_leaf, int64_t n_leaves,
                       double* out) noexcept nogil:
    """Values of a tree's leaves, all of them."""
    cdef int64_t n_values = n_values_of(tree)
    cdef int64_t k, leaf, total
    for leaf in range(n_leaves):
        total = total_of(tree, node_of_leaf[leaf])
        for k in range(n_values):
            out[leaf * n_values + k] = value_of(tree, node_of_leaf[leaf], k, total)


cdef inline bint are_zero(const int32_t* some) noexcept nogil:
    return (some[0] | some[1] | some[2] | some[3] | some[4] | some[5] | some[6] | some[7]) == 0


cdef int64_t shares_of(const Grown* tree, int64_t node, Entry* out) noexcept nogil:
    """OUT shares of classes that are not zero, in room for all; how many."""
    cdef int64_t n_classes = tree.n_statistics
    cdef int64_t at = node * n_classes
    cdef int64_t n = 0
    cdef int64_t k = 0
    cdef uint64_t total = 0                         # as `total_of`: zeros add nothing
    cdef int64_t end
    while k < n_classes:
        end = min(k + EIGHT, n_classes)
        if tree.narrow != NULL and end == k + EIGHT and are_zero(tree.narrow + at + k):
            k = end
        while k < end:                              # no branch: nobody guesses which are zero
            out[n].output = k
            n += statistic(tree, at + k) != 0
            k += 1
    for k in range(n):
        total += <uint64_t>statistic(tree, at + out[k].output)
    if total == 0:                                  # a file may say anything: all are nan
        n = n_classes
        for k in range(n):
            out[k].output = k
    for k in range(n):
        out[k].value = value_of(tree, node, out[k].output, <int64_t>total)
    return n


cdef Entry* entries_of(const Grown* tree, const int32_t* node_of_leaf, int64_t n_leaves,
                       int64_t* first) noexcept nogil:
    """Shares that are not zero, and OUT first (n_leaves + 1,); NULL: no memory."""
    cdef int64_t most = tree.n_statistics           # of a leaf
    cdef int64_t room = 2 * n_leaves + most
    cdef int64_t n = 0
    cdef int64_t leaf
    cdef Entry* more
    cdef Entry* entries = <Entry*>malloc(room * sizeof(Entry))
    if entries == NULL:
        return NULL
    for leaf in range(n_leaves):
        if n + most > room:
            room = 2 * room
            more = <Entry*>realloc(entries, room * sizeof(Entry))
            if more == NULL:
                free(entries)
                return NULL
            entries = more
        first[leaf] = n
        n += shares_of(tree, node_of_leaf[leaf], entries + n)
    first[n_leaves] = n
    return entries


def are_dense(GrownTrees grown not None):
    """Whether leaves have few values, or most of those of the first tree are not zero."""
    cdef const Grown* tree = &grown.trees[0]
    cdef int64_t i, k
    cdef int64_t zeros = 0
    cdef int64_t n = 0
    if n_values_of(tree) <= FEW_VALUES:
        return True
    for i in range(tree.n_nodes):
        if tree.test[i] == LEAF:
            n += grown.n_statistics
            for k in range(i * grown.n_statistics, (i + 1) * grown.n_statistics):
                zeros += statistic(tree, k) == 0
    return 2 * zeros < n


def fill_leaves(LeafValues values not None, ForestNodes forest not None,
                GrownTrees grown not None, bint is_dense, int64_t begin, int64_t end):
    """Write the values of all leaves of some trees; callable from any thread.

    is_dense : whether all values are kept, and not only those that are not zero
    """
    cdef int64_t t
    cdef bint is_filled = True
    if not (0 <= begin <= end <= values.n_trees == forest.n_trees == grown.n_trees):
        raise ValueError("The trees are not those of the forest.")
    with nogil:
        for t in range(begin, end):
            is_filled = is_filled and values.fill(
                &grown.trees[t], t, forest.node_of_leaf + forest.first_leaf[t],
                forest.first_leaf[t + 1] - forest.first_leaf[t], is_dense)
    if not is_filled:
        raise MemoryError()


cdef inline void add_steps(double* total, int64_t step, const double* value,
                           const int32_t* leaves, int64_t n) noexcept nogil:
    """One value for each row."""
    cdef int64_t i
    for i in range(n):
        if i + AHEAD < n:
            prefetch(value + leaves[i + AHEAD])
        total[i * step] += value[leaves[i]]


cdef inline void add_pairs(double* total, int64_t step, const double* value,
                           const int32_t* leaves, int64_t n) noexcept nogil:
    """The values of two classes; both are read before one is written."""
    cdef int64_t i
    cdef const double* pair
    cdef double* own
    cdef double first, second
    for i in range(n):
        if i + AHEAD < n:
            prefetch(value + 2 * <int64_t>leaves[i + AHEAD])
        pair = value + 2 * <int64_t>leaves[i]
        own = total + i * step
        first = own[0] + pair[0]
        second = own[1] + pair[1]
        own[0] = first
        own[1] = second


cdef inline void add_leaf(const TreeValues* own, int64_t width, int64_t leaf,
                          double* total) noexcept nogil:
    """Add the values of one leaf to those of one row."""
    cdef int64_t k
    if own.dense != NULL:
        for k in range(width):
            total[k] += own.dense[leaf * width + k]
        return
    for k in range(own.first[leaf], own.first[leaf + 1]):
        total[own.entries[k].output] += own.entries[k].value


cdef void add_values(LeafValues values, int64_t tree, const int32_t* leaves, int64_t n,
                     const Totals* to) noexcept nogil:
    """Add the values of the leaves of n rows in one tree."""
    cdef const TreeValues* own = values.of_tree + tree
    cdef int64_t width = values.width
    cdef double* total = to.cells
    cdef int64_t i
    if own.dense != NULL:
        if width == 1:
            total += (to.output + tree) % to.n_outputs * to.output_step
            add_steps(total, to.row_step, own.dense, leaves, n)
            return
        if width == 2:
            add_pairs(total, to.row_step, own.dense, leaves, n)
            return
        for i in range(n):
            if i + AHEAD < n:
                prefetch(own.dense + leaves[i + AHEAD] * width)
            add_leaf(own, width, leaves[i], total + i * to.row_step)
        return
    for i in range(n):
        if i + 2 * AHEAD < n:
            prefetch(own.first + leaves[i + 2 * AHEAD])
        if i + AHEAD < n:
            prefetch(own.entries + own.first[leaves[i + AHEAD]])
        add_leaf(own, width, leaves[i], total + i * to.row_step)


cdef void add_row(LeafValues values, const int32_t* leaves, int64_t row,
                  const Totals* to) noexcept nogil:
    """Add the values of the leaves of one row in all trees, in their order."""
    cdef double* total = to.cells + row * to.row_step
    cdef int64_t output = to.output
    cdef int64_t t
    if values.width > 1:
        for t in range(values.n_trees):
            add_leaf(values.of_tree + t, values.width, leaves[t], total)
        return
    for t in range(values.n_trees):
        total[output * to.output_step] += values.of_tree[t].dense[leaves[t]]
        output = output + 1 if output + 1 < to.n_outputs else 0


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
    cdef LeafValues values
    cdef int32_t[:, ::1] of_row         # numbers of leaves, (n_trees, n)

    def __cinit__(self, trees, const Py_ssize_t[:, ::1] leaf not None):
        cdef GrownTrees grown = GrownTrees(tuple(trees), trees[0].n_columns)
        cdef int64_t n = leaf.shape[1]
        cdef int64_t most = max(tree.node_count for tree in trees)
        cdef int32_t[::1] number = np.empty(most, dtype=np.int32)
        cdef int32_t[::1] node_of_leaf = np.empty(most, dtype=np.int32)
        cdef int64_t t, n_leaves
        if leaf.shape[0] != grown.n_trees:
            raise ValueError("There is not one leaf for each row and tree.")
        self.of_row = np.empty((grown.n_trees, n), dtype=np.int32)
        self.values = LeafValues(grown)
        if n == 0:
            return
        with nogil:
            for t in range(grown.n_trees):
                n_leaves = number_reached(&leaf[t, 0], n, grown.trees[t].n_nodes, &number[0],
                                          &self.of_row[t, 0], &node_of_leaf[0])
                if n_leaves < 0:
                    with gil:
                        raise ValueError(f"A leaf is no node of tree {t}.")
                if not self.values.fill(&grown.trees[t], t, &node_of_leaf[0], n_leaves,
                                        self.values.width <= FEW_VALUES):
                    with gil:
                        raise MemoryError()

    def add_to(self, double[:, ::1] total not None, int64_t begin, int64_t end):
        """Add the values of some rows, [begin, end), in the order of the trees; on any thread.

        total : IN and OUT (n, n_values)
        """
        cdef int64_t n = total.shape[0]
        cdef int64_t first = begin
        cdef int64_t t
        cdef Totals to
        if n != self.of_row.shape[1] or total.shape[1] != self.values.width:
            raise ValueError("The totals do not fit the trees.")
        if not 0 <= begin <= end <= n:
            raise ValueError(f"There are no rows {begin} to {end}.")
        if n == 0:
            return
        to = self.values.as_totals(total, 0)
        with nogil:
            while first < end:
                to.cells = &total[first, 0]
                for t in range(self.values.n_trees):
                    add_values(self.values, t, &self.of_row[t, first],
                               min(<int64_t>TOGETHER, end - first), &to)
                first += TOGETHER
