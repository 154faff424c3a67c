"""The values of the leaves of a packed forest.

Values are those of `dtrees.core.model.tree.Tree`, bit for bit: shares of classes, or means. Leaves
of many classes have few that are not zero, as a rule one. Those alone are kept, since a sum of
shares is the same without its zeros::

    shares of 26 classes    0 0 0 1 0 ...            entries    (1.0, 3)
                            0 0 .25 0 0 .75 0 ...               (.25, 2)  (.75, 5)

Trees of one value may belong to several outputs in turn, as those of boosted models of classes::

    tree                    0  1  2  3  4  5         three outputs
    adds to output          0  1  2  0  1  2
"""
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc

from dtrees.core.data._bits cimport prefetch
from dtrees.core.data._structs cimport LEAF
from dtrees.core.predict._forest_nodes cimport Entry, ForestNodes
from dtrees.core.predict._grown_trees cimport (
    Grown, GrownTrees, n_values_of, statistic, total_of, value_of
)

cdef enum:
    AHEAD = 32                  # rows whose values are asked for
    EIGHT = 8                   # statistics that are looked at together


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
    """Values that are not zero, or means, and OUT first (n_leaves + 1,); NULL: no memory."""
    cdef int64_t most = n_values_of(tree)           # of a leaf
    cdef int64_t room = 2 * n_leaves + most
    cdef int64_t n = 0
    cdef int64_t leaf, i
    cdef Entry* more
    cdef Entry* entries = <Entry*>malloc(room * sizeof(Entry))
    if entries == NULL:
        return NULL
    for leaf in range(n_leaves):
        i = node_of_leaf[leaf]
        if n + most > room:
            room = 2 * room
            more = <Entry*>realloc(entries, room * sizeof(Entry))
            if more == NULL:
                free(entries)
                return NULL
            entries = more
        first[leaf] = n
        if tree.is_regression:
            entries[n] = Entry(value_of(tree, i, 0, total_of(tree, i)), 0)
            n += 1
        else:
            n += shares_of(tree, i, entries + n)
    first[n_leaves] = n
    return entries


def share_of_zeros(GrownTrees grown not None):
    """How many of the values of the first tree's leaves are zero, between 0 and 1."""
    cdef const Grown* tree = &grown.trees[0]
    cdef int64_t i, k
    cdef int64_t zeros = 0
    cdef int64_t n = 0
    for i in range(tree.n_nodes):
        if tree.test[i] == LEAF:
            n += grown.n_statistics
            for k in range(i * grown.n_statistics, (i + 1) * grown.n_statistics):
                zeros += statistic(tree, k) == 0
    return <double>zeros / <double>n


def fill_leaves(ForestNodes forest not None, GrownTrees grown not None, int64_t begin,
                int64_t end):
    """Write the values of the leaves of some trees; callable from any thread."""
    cdef int64_t t, n_leaves
    cdef const int32_t* node_of_leaf
    cdef bint failed = False
    if not (0 <= begin <= end <= forest.n_trees == grown.n_trees):
        raise ValueError("The trees are not those of the forest.")
    with nogil:
        for t in range(begin, end):
            n_leaves = forest.first_leaf[t + 1] - forest.first_leaf[t]
            node_of_leaf = forest.node_of_leaf + forest.first_leaf[t]
            if forest.value != NULL:
                dense_values(&grown.trees[t], node_of_leaf, n_leaves,
                             forest.value + forest.first_leaf[t] * forest.width)
                continue
            free(forest.entries[t])
            forest.entries[t] = entries_of(&grown.trees[t], node_of_leaf, n_leaves,
                                           forest.first_entry + forest.first_leaf[t] + t)
            if forest.entries[t] == NULL:
                failed = True
                break
    if failed:
        raise MemoryError()


cdef Totals as_totals(ForestNodes forest, double[:, :] total, int64_t first_tree) except *:
    """Where the values of the leaves of at least one row are added.

    first_tree : of those that were added to the same totals, the number of the first one here
    """
    cdef int64_t n_outputs = total.shape[1]
    cdef Totals to
    if first_tree < 0 or not (
        n_outputs == forest.width and total.strides[1] == sizeof(double)
        or n_outputs > 0 and forest.width == 1
    ):
        raise ValueError("The totals do not fit the forest.")
    to.cells = &total[0, 0]
    to.row_step = total.strides[0] // <int64_t>sizeof(double)
    to.output_step = total.strides[1] // <int64_t>sizeof(double)
    to.n_outputs = n_outputs if forest.width == 1 else 1
    to.output = first_tree % to.n_outputs
    return to


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


cdef inline void add_leaf(ForestNodes forest, int64_t tree, int64_t leaf,
                          double* total) noexcept nogil:
    """Add the values of one leaf to those of one row."""
    cdef int64_t width = forest.width
    cdef int64_t k
    cdef const double* value
    cdef const int64_t* first
    if forest.value != NULL:
        value = forest.value + (forest.first_leaf[tree] + leaf) * width
        for k in range(width):
            total[k] += value[k]
        return
    first = forest.first_entry + forest.first_leaf[tree] + tree + leaf
    add_entries(forest.entries[tree], first[0], first[1], total)


cdef void add_values(ForestNodes forest, int64_t tree, const int32_t* leaves, int64_t n,
                     const Totals* to) noexcept nogil:
    """Add the values of the leaves of n rows in one tree."""
    cdef int64_t width = forest.width
    cdef double* total = to.cells
    cdef int64_t i
    cdef const int64_t* first
    cdef const double* value
    if forest.value != NULL:
        value = forest.value + forest.first_leaf[tree] * width
        if width == 1:
            total += (to.output + tree) % to.n_outputs * to.output_step
            add_steps(total, to.row_step, value, leaves, n)
            return
        if width == 2:
            add_pairs(total, to.row_step, value, leaves, n)
            return
        for i in range(n):
            if i + AHEAD < n:
                prefetch(value + leaves[i + AHEAD] * width)
            add_leaf(forest, tree, leaves[i], total + i * to.row_step)
        return
    first = forest.first_entry + forest.first_leaf[tree] + tree
    for i in range(n):
        if i + 2 * AHEAD < n:
            prefetch(first + leaves[i + 2 * AHEAD])
        if i + AHEAD < n:
            prefetch(forest.entries[tree] + first[leaves[i + AHEAD]])
        add_leaf(forest, tree, leaves[i], total + i * to.row_step)


cdef void add_row(ForestNodes forest, const int32_t* leaves, int64_t row,
                  const Totals* to) noexcept nogil:
    """Add the values of the leaves of one row in all trees, in their order."""
    cdef double* total = to.cells + row * to.row_step
    cdef int64_t output = to.output
    cdef int64_t t
    if forest.width > 1:
        for t in range(forest.n_trees):
            add_leaf(forest, t, leaves[t], total)
        return
    for t in range(forest.n_trees):
        total[output * to.output_step] += forest.value[forest.first_leaf[t] + leaves[t]]
        output = output + 1 if output + 1 < to.n_outputs else 0
