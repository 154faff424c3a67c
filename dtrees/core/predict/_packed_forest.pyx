"""The trees of a forest, packed for the walk of coded rows: inner nodes, and the values of leaves.

Packing reads the arrays of each tree where they are and writes a record for each inner node.
Trees come from outside (a file, another process). What a walk relies on is checked: the words of
subsets when their nodes are packed, all else before. Thresholds are written out by slot, with the
node that has them, to be ranked; the values of leaves come last::

    tree      node    0   1   2   3   4             inner nodes   0     1
              test    <=  .   <=  .   .             slot          3     0
              left    1   .   3   .   .      ->     limit         (from the rank of the threshold)
              right   2   .   4   .   .             child         ~0 1  ~1 ~2
                                                    leaves        1, 3, 4 are leaves 0, 1, 2

    thresholds of slot 0        7.0 of node 1 of tree 0, 6.5 of node 12 of tree 1, ...

A child that is a leaf is the complement of the leaf's number in its tree.

The limit of a node follows from the rank of its threshold among those of the slot, of which equal
ones have one rank::

    thresholds   7.0  0.5  1.25  0.5              of nodes 4, 9, 11, 30
    sorted       0.5  0.5  1.25  7.0
    rank         0    0    1     2                limits of nodes 9, 30: 1; of node 11: 2; of 4: 3

Values are those of `dtrees.core.model.tree.Tree`, bit for bit: shares of classes, or means. Leaves
of many classes have few that are not zero, as a rule one. Those alone are kept, since a sum of
shares is the same without its zeros::

    shares of 26 classes    0 0 0 1 0 ...            entries    (1.0, 3)
                            0 0 .25 0 0 .75 0 ...               (.25, 2)  (.75, 5)

Trees of one value may belong to several outputs in turn, as those of boosted models of classes::

    tree                    0  1  2  3  4  5         three outputs
    adds to output          0  1  2  0  1  2

A packed forest has the values of all leaves. Where rows and their leaves are given, values are
those of these leaves alone: ten rows in a tree of 5,000 nodes cost ten leaves.
"""
import numpy as np

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc

from dtrees.core.data._bits cimport prefetch
from dtrees.core.data._structs cimport ABOVE, IN_SUBSET, LEAF

cdef enum:
    AHEAD = 32                  # rows whose values are asked for
    EIGHT = 8                   # statistics that are looked at together
    FEW_VALUES = 2              # of a leaf, of which zeros are kept
    TOGETHER = 256              # rows whose sums stay in the caches

cdef struct ColumnSlots:
    # Of a column, as `fill_nodes` gets them.
    int64_t number
    int64_t code
    int64_t n_codes
    int64_t n_ordered


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
        cdef const double[::1] units, offsets
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
        grown.weight_unit, grown.n_outputs = tree.weight_unit, tree.n_outputs
        if not (tree.is_regression and tree.n_outputs > 1):
            grown.unit, grown.offset = tree.unit, tree.offset
            return
        units, offsets = np.array(tree.unit), np.array(tree.offset)
        if not len(units) == len(offsets) == tree.n_outputs:
            raise ValueError("There is not one unit for every output.")
        self.arrays += (units, offsets)
        grown.units, grown.offsets = &units[0], &offsets[0]

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


cdef inline int64_t statistic(const Grown* tree, int64_t at) noexcept nogil:
    """One of the statistics, which are (n_nodes, n_statistics)."""
    return tree.wide[at] if tree.narrow == NULL else tree.narrow[at]


cdef int64_t total_of(const Grown* tree, int64_t node) noexcept nogil:
    """Weight of a node in units of its fixed point; sums that overflow wrap around."""
    cdef int64_t k
    cdef int64_t first = tree.n_statistics * node
    cdef uint64_t total = 0
    if tree.is_regression:
        return statistic(tree, first)
    for k in range(first, first + tree.n_statistics):
        total += <uint64_t>statistic(tree, k)
    return <int64_t>total if tree.n_outputs == 1 else <int64_t>total // tree.n_outputs


cdef inline int64_t n_values_of(const Grown* tree) noexcept nogil:
    return tree.n_statistics - tree.is_regression


cdef inline double value_of(const Grown* tree, int64_t node, int64_t k,
                            int64_t total) noexcept nogil:
    """Share of class k, or the mean, as `Tree.value` has it; `total` is `total_of` the node."""
    cdef int64_t at = node * tree.n_statistics + k
    if tree.units != NULL:
        return (<double>statistic(tree, at + 1) * tree.units[k]) / (
            <double>total * tree.weight_unit) + tree.offsets[k]
    if tree.is_regression:
        return (<double>statistic(tree, at + 1) * tree.unit) / (
            <double>total * tree.weight_unit) + tree.offset
    return <double>statistic(tree, at) / <double>total


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


cdef class PackedTrees:
    """The inner nodes of trees, which nodes their leaves are, the values of these, and slots.

    ``n_words`` are those of all subsets, as slots have them; None: every test is `<=` on a column
    of numbers. ``with_other``: there may be rules that are `IS_OTHER`.
    """

    def __cinit__(self, GrownTrees grown not None, int64_t n_slots, n_words,
                  bint with_other):
        cdef int64_t n_inner = grown.start[grown.n_trees]
        cdef int64_t n_leaves = grown.first_leaf[grown.n_trees]
        cdef int64_t n = grown.n_trees
        cdef const int64_t[::1] start = grown.start
        cdef const int64_t[::1] first_leaf = grown.first_leaf
        cdef int64_t t
        self.n_trees = n
        self.with_other = with_other
        self.n_slots = n_slots
        self.width = n_values_of(grown.trees)
        if n_words is None:
            self.nodes = <Node*>PyMem_Malloc((n_inner + 1) * sizeof(Node))
        else:
            self.rules = <Rule*>PyMem_Malloc((n_inner + 1) * sizeof(Rule))
            self.n_words = n_words
            self.words = <uint64_t*>PyMem_Calloc(self.n_words + 1, sizeof(uint64_t))
        self.start = <int64_t*>PyMem_Malloc((n + 1) * sizeof(int64_t))
        self.first_leaf = <int64_t*>PyMem_Malloc((n + 1) * sizeof(int64_t))
        self.root = <int32_t*>PyMem_Malloc(n * sizeof(int32_t))
        self.node_of_leaf = <int32_t*>PyMem_Malloc((n_leaves + 1) * sizeof(int32_t))
        self.values = <TreeValues*>PyMem_Calloc(n, sizeof(TreeValues))
        if (
            (self.nodes == NULL and (self.rules == NULL or self.words == NULL))
            or self.start == NULL or self.first_leaf == NULL or self.root == NULL
            or self.node_of_leaf == NULL or self.values == NULL
        ):
            raise MemoryError()
        for t in range(n + 1):
            self.start[t] = start[t]
            self.first_leaf[t] = first_leaf[t]

    def set_thresholds(self, const int64_t[::1] columns not None,
                       const double[::1] thresholds not None, const int64_t[::1] first not None,
                       int64_t n_columns):
        """Tell the slots of numbers, which come first.

        Parameters
        ----------
        columns : int64 (n_number_slots,)
            Of each slot, of a table that has ``n_columns``.
        thresholds : float64, ascending within a slot
            One more than there are: an empty slot at the end begins with it.
        first : int64 (n_number_slots + 1,)
            Where the thresholds of a slot begin.
        """
        cdef int64_t k
        cdef int64_t n = columns.shape[0]
        if not (n <= self.n_slots and first.shape[0] == n + 1 and 0 <= first[0]
                and first[n] < thresholds.shape[0]):
            raise ValueError("The slots do not fit the forest.")
        for k in range(n):
            if not (0 <= columns[k] < n_columns and first[k] <= first[k + 1]):
                raise ValueError("The slots do not fit the forest.")
        self.n_columns = n_columns
        self.columns, self.thresholds, self.first = columns, thresholds, first

    cdef LeafSums as_totals(self, double[:, :] total, int64_t first_tree) except *:
        """Where the values of the leaves of at least one row are added.

        first_tree : of those that were added to the same totals, the number of the first one here
        """
        cdef int64_t n_outputs = total.shape[1]
        cdef LeafSums to
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

    def __dealloc__(self):
        cdef int64_t t
        if self.values != NULL:
            for t in range(self.n_trees):
                free(self.values[t].dense)
                free(self.values[t].entries)
                free(self.values[t].first)
        PyMem_Free(self.values)
        PyMem_Free(self.nodes)
        PyMem_Free(self.rules)
        PyMem_Free(self.words)
        PyMem_Free(self.start)
        PyMem_Free(self.first_leaf)
        PyMem_Free(self.root)
        PyMem_Free(self.node_of_leaf)


cdef inline int64_t last_code(const ColumnSlots* column) noexcept nogil:
    """Of categories that were not there at fit, in the column's slot of categories."""
    return column.n_codes - max(<int64_t>0, column.n_ordered - 1) + 1


cdef inline void put(uint64_t* words, int64_t k, bint value) noexcept nogil:
    """Set bit k."""
    words[k >> 6] = (words[k >> 6] & ~(<uint64_t>1 << (k & 63))) | (<uint64_t>value << (k & 63))


cdef void slot_subset(const uint64_t* words, const ColumnSlots* column, bint missing_left,
                      bint unseen_left, uint64_t* out) noexcept nogil:
    """A subset by the codes of its slot.

    words : ``n_codes // 64 + 1`` of them, by the codes of the codebook.
    out : IN all zero and OUT
    """
    cdef int64_t shift = max(<int64_t>0, column.n_ordered - 1)
    cdef int64_t k = last_code(column)
    cdef int64_t c
    cdef uint64_t bit
    if shift == 0:
        for c in range(column.n_codes // 64 + 1):
            out[c] = words[c]
    else:
        # the codes of numbers, of which one speaks for all, are one bit
        for c in range(1, k):
            bit = 1 if c == 1 else c + shift
            bit = (words[<int64_t>(bit >> 6)] >> (bit & 63)) & 1
            out[c >> 6] |= bit << (c & 63)
    put(out, 0, missing_left)
    put(out, k, unseen_left)


def fill_nodes(PackedTrees forest not None, GrownTrees grown not None,
               const int64_t[:, ::1] columns, int64_t[::1] cursor, double[::1] thresholds,
               int64_t[::1] node_of):
    """Write the inner nodes of the trees, all but their ranks.

    Parameters
    ----------
    columns : int64 (n_columns, 4)
        `ColumnSlots`: the slot of the column's numbers and of its codes, where nodes ask for them,
        ``n_codes`` and ``n_ordered``.
    cursor : int64 (n_number_slots,), IN and OUT
        Where the next threshold of each slot is written.
    thresholds, node_of : (n_compared,), OUT
        By slots; and the inner node of each.
    """
    cdef int64_t t, i, j, own, most, n_inner
    cdef int64_t word = 0
    cdef int64_t broken = -1
    cdef int32_t* number
    cdef int32_t* inner
    cdef const Grown* tree
    cdef const ColumnSlots* column
    if not (
        columns.shape[0] == len(grown.n_compared) and columns.shape[1] == 4
        and node_of.shape[0] == thresholds.shape[0] == np.sum(grown.n_compared)
    ):
        raise ValueError("The arrays of the forest differ in length.")
    most = max([grown.trees[t].n_nodes for t in range(grown.n_trees)])
    number = <int32_t*>PyMem_Malloc((2 * most + 1) * sizeof(int32_t))
    if number == NULL:
        raise MemoryError()
    inner = number + most
    try:
        for t in range(grown.n_trees):
            tree = &grown.trees[t]
            n_inner = forest.start[t + 1] - forest.start[t]
            with nogil:
                number_nodes(tree, number, inner, forest.node_of_leaf + forest.first_leaf[t])
                forest.root[t] = number[0]
                for j in range(n_inner):
                    i = inner[j]
                    column = <const ColumnSlots*>&columns[tree.feature[i], 0]
                    if tree.test[i] != IN_SUBSET:
                        _number_node(forest, tree, i, forest.start[t] + j, number, column)
                        own = cursor[column.number]
                        cursor[column.number] += 1
                        thresholds[own] = tree.threshold[i]
                        node_of[own] = forest.start[t] + j
                        continue
                    if not 0 <= tree.subset[i] <= tree.n_words - (column.n_codes // 64 + 1):
                        broken = i
                        break
                    _subset_node(forest, tree, i, forest.start[t] + j, number, column, word)
                    word += last_code(column) // 64 + 1
            if broken >= 0:
                raise ValueError(f"Tree {t} is broken: node {broken} has no subset.")
    finally:
        PyMem_Free(number)


cdef inline void _number_node(PackedTrees forest, const Grown* tree, int64_t i, int64_t k,
                              const int32_t* number, const ColumnSlots* column) noexcept nogil:
    """Write node i of a tree, which compares, as inner node k; its limit is not known yet."""
    cdef Node* node
    cdef Rule* rule
    if forest.rules == NULL:
        node = &forest.nodes[k]
        node.slot = <uint16_t>column.number | (MISSING_LEFT if tree.missing_left[i] else 0)
        node.child[0] = number[tree.right[i]]
        node.child[1] = number[tree.left[i]]
        return
    rule = &forest.rules[k]
    rule.bits = 0
    rule.slot = <uint16_t>column.number
    rule.child[0] = number[tree.right[i]]
    rule.child[1] = number[tree.left[i]]
    rule.kind = GONE_LEFT if tree.missing_left[i] else 0
    if tree.test[i] == ABOVE:
        rule.kind |= IS_ABOVE
    if tree.test[i] == ABOVE or column.n_ordered < column.n_codes:
        if is_heavier_left(tree, i):
            rule.kind |= UNSEEN_LEFT
        # what goes left is one stretch, unless it is UNSEEN without MISSING, which stands between
        if tree.test[i] == ABOVE or rule.kind & (UNSEEN_LEFT | GONE_LEFT) == UNSEEN_LEFT:
            rule.kind |= IS_OTHER


cdef inline void _subset_node(PackedTrees forest, const Grown* tree, int64_t i, int64_t k,
                              const int32_t* number, const ColumnSlots* column,
                              int64_t word) noexcept nogil:
    """Write node i, which has a subset, as inner node k, and its bits from `word` on."""
    cdef Rule* rule = &forest.rules[k]
    slot_subset(tree.words + tree.subset[i], column, tree.missing_left[i] != 0,
                is_heavier_left(tree, i), forest.words + word)
    rule.slot = <uint16_t>column.code
    rule.child[0] = number[tree.right[i]]
    rule.child[1] = number[tree.left[i]]
    rule.low = rule.limit = 0
    if last_code(column) < 64:
        rule.kind = 0
        rule.bits = forest.words[word]
    else:
        rule.kind = IS_OTHER | IS_SUBSET
        rule.bits = word


cdef inline void put_limit(PackedTrees forest, int64_t k, int64_t below,
                           int64_t n_distinct) noexcept nogil:
    """Say which codes of a number go left.

    below : how many of the thresholds are at most that of the node
    """
    cdef Rule* rule
    cdef int more
    if forest.rules == NULL:
        forest.nodes[k].limit = <uint16_t>below
        return
    rule = &forest.rules[k]
    rule.low = <uint16_t>below if rule.kind & IS_ABOVE else 0
    rule.limit = <uint16_t>(n_distinct + 1 - below if rule.kind & IS_ABOVE else below)
    if rule.kind & GONE_LEFT and not rule.kind & IS_OTHER:
        # a stretch that begins with what is missing, or with what was not there at fit
        more = 2 if rule.kind & UNSEEN_LEFT else 1
        rule.low = <uint16_t>(rule.low - more)
        rule.limit = <uint16_t>(rule.limit + more)


def set_limits(PackedTrees forest not None, const int64_t[::1] node_of not None,
               const int64_t[::1] n_below not None, const int64_t[::1] n_distinct not None):
    """Write the limits of inner nodes; callable from any thread.

    Parameters
    ----------
    node_of, n_below, n_distinct : int64 (n,)
        Nodes, how many thresholds of their slot are at most theirs, and how many it has.
    """
    cdef int64_t n_inner = forest.start[forest.n_trees]
    cdef int64_t i
    if not node_of.shape[0] == n_below.shape[0] == n_distinct.shape[0]:
        raise ValueError("The arrays of the forest differ in length.")
    with nogil:
        for i in range(node_of.shape[0]):
            if 0 <= node_of[i] < n_inner:
                put_limit(forest, node_of[i], n_below[i], n_distinct[i])


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
    if tree.n_outputs > 1:
        total = <uint64_t>(<int64_t>total // tree.n_outputs)
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
    if n_values_of(tree) <= FEW_VALUES or tree.is_regression:
        return True
    for i in range(tree.n_nodes):
        if tree.test[i] == LEAF:
            n += grown.n_statistics
            for k in range(i * grown.n_statistics, (i + 1) * grown.n_statistics):
                zeros += statistic(tree, k) == 0
    return 2 * zeros < n


cdef bint fill_values(TreeValues* own, const Grown* tree, const int32_t* node_of_leaf,
                      int64_t n_leaves, bint is_dense) noexcept nogil:
    """Write the values of a tree's leaves, once; False without memory."""
    if is_dense:
        own.dense = <double*>malloc(n_leaves * n_values_of(tree) * sizeof(double))
        if own.dense != NULL:
            dense_values(tree, node_of_leaf, n_leaves, own.dense)
        return own.dense != NULL
    own.first = <int64_t*>malloc((n_leaves + 1) * sizeof(int64_t))
    if own.first != NULL:
        own.entries = entries_of(tree, node_of_leaf, n_leaves, own.first)
    return own.entries != NULL


def fill_leaves(PackedTrees forest not None, GrownTrees grown not None, bint is_dense,
                int64_t begin, int64_t end):
    """Write the values of all leaves of some trees; callable from any thread.

    is_dense : whether all values are kept, and not only those that are not zero
    """
    cdef int64_t t
    cdef bint is_filled = True
    if not 0 <= begin <= end <= forest.n_trees == grown.n_trees:
        raise ValueError("The trees are not those of the forest.")
    with nogil:
        for t in range(begin, end):
            is_filled = is_filled and fill_values(
                &forest.values[t], &grown.trees[t], forest.node_of_leaf + forest.first_leaf[t],
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


cdef void add_values(PackedTrees forest, int64_t tree, const int32_t* leaves, int64_t n,
                     const LeafSums* to) noexcept nogil:
    """Add the values of the leaves of n rows in one tree."""
    cdef const TreeValues* own = forest.values + tree
    cdef int64_t width = forest.width
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


cdef void add_row(PackedTrees forest, const int32_t* leaves, int64_t row,
                  const LeafSums* to) noexcept nogil:
    """Add the values of the leaves of one row in all trees, in their order."""
    cdef double* total = to.cells + row * to.row_step
    cdef int64_t output = to.output
    cdef int64_t t
    if forest.width > 1:
        for t in range(forest.n_trees):
            add_leaf(forest.values + t, forest.width, leaves[t], total)
        return
    for t in range(forest.n_trees):
        total[output * to.output_step] += forest.values[t].dense[leaves[t]]
        output = output + 1 if output + 1 < to.n_outputs else 0


cdef bint add_nodes(const Grown* tree, const int32_t* node, int64_t n, double* total,
                    Entry* entries) noexcept nogil:
    """Add the values of n nodes to those of as many rows; False: one is no node of the tree."""
    cdef int64_t width = n_values_of(tree)
    cdef int64_t i, k, weight, n_entries
    for i in range(n):
        if not 0 <= node[i] < tree.n_nodes:
            return False
        if i + AHEAD < n and tree.narrow != NULL:
            prefetch(tree.narrow + node[i + AHEAD] * tree.n_statistics)
        if width <= FEW_VALUES or tree.is_regression:
            weight = total_of(tree, node[i])
            for k in range(width):
                total[i * width + k] += value_of(tree, node[i], k, weight)
            continue
        n_entries = shares_of(tree, node[i], entries)
        for k in range(n_entries):
            total[i * width + entries[k].output] += entries[k].value
    return True


def add_leaves(trees, const int32_t[:, ::1] leaf not None, double[:, ::1] total not None,
               int64_t begin, int64_t end):
    """Add the values of leaves of rows, [begin, end), in the order of the trees; on any thread.

    Parameters
    ----------
    trees : sequence of Tree
        Of one kind, with the same values.
    leaf : int32 (n_trees, n)
    total : float64 (n, n_values), IN and OUT

    Raises
    ------
    ValueError
        A leaf is no node of its tree.
    """
    cdef GrownTrees grown = GrownTrees(tuple(trees), trees[0].n_columns)
    cdef int64_t broken = -1
    cdef int64_t first = begin
    cdef int64_t t
    cdef Entry* entries
    if leaf.shape[0] != grown.n_trees:
        raise ValueError("There is not one leaf for each row and tree.")
    if total.shape[0] != leaf.shape[1] or total.shape[1] != n_values_of(grown.trees):
        raise ValueError("The totals do not fit the trees.")
    if not 0 <= begin <= end <= leaf.shape[1]:
        raise ValueError(f"There are no rows {begin} to {end}.")
    entries = <Entry*>PyMem_Malloc(grown.n_statistics * sizeof(Entry))
    if entries == NULL:
        raise MemoryError()
    with nogil:
        while first < end:
            for t in range(grown.n_trees):
                if not add_nodes(&grown.trees[t], &leaf[t, first],
                                 min(<int64_t>TOGETHER, end - first), &total[first, 0], entries):
                    broken = t
            first += TOGETHER
    PyMem_Free(entries)
    if broken >= 0:
        raise ValueError(f"A leaf is no node of tree {broken}.")
