"""The inner nodes of the trees of a forest, packed for the walk of coded rows.

Packing reads the arrays of each tree where they are (`_grown_trees`) and writes a record for each
inner node. Thresholds are written out by slot, with the node that has
them, to be ranked (`_forest_ranks`); the values of leaves come last (`_forest_leaves`)::

    tree      node    0   1   2   3   4             inner nodes   0     1
              test    <=  .   <=  .   .             slot          3     0
              left    1   .   3   .   .      ->     limit         (from the rank of the threshold)
              right   2   .   4   .   .             child         ~0 1  ~1 ~2
                                                    leaves        1, 3, 4 are leaves 0, 1, 2

    thresholds of slot 0        7.0 of node 1 of tree 0, 6.5 of node 12 of tree 1, ...

A child that is a leaf is the complement of the leaf's number in its tree.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libc.stdlib cimport free

import numpy as np

from dtrees.core.data._structs cimport ABOVE, IN_SUBSET
from dtrees.core.predict._grown_trees cimport Grown, GrownTrees, is_heavier_left, number_nodes


cdef class ForestNodes:
    """The inner nodes of a forest, and its leaves.

    ``n_words`` are those of all subsets, as slots have them; None: every test is `<=` on a column
    of numbers. ``is_dense``: leaves have all values, and not only those that are not zero.
    ``with_other``: there may be rules that are `IS_OTHER`.
    """

    def __cinit__(self, GrownTrees grown not None, int64_t n_slots, n_words, bint is_dense,
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
        self.width = 1 if grown.is_regression else grown.n_statistics
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
        if is_dense:
            self.value = <double*>PyMem_Malloc(n_leaves * self.width * sizeof(double))
        else:
            self.entries = <Entry**>PyMem_Calloc(n, sizeof(Entry*))
            self.first_entry = <int64_t*>PyMem_Malloc((n_leaves + n) * sizeof(int64_t))
        if (
            (self.nodes == NULL and (self.rules == NULL or self.words == NULL))
            or self.start == NULL or self.first_leaf == NULL or self.root == NULL
            or self.node_of_leaf == NULL
            or (self.value == NULL and (self.entries == NULL or self.first_entry == NULL))
        ):
            raise MemoryError()
        for t in range(n + 1):
            self.start[t] = start[t]
            self.first_leaf[t] = first_leaf[t]

    @property
    def with_rules(self):
        """Whether tests are of several kinds."""
        return self.rules != NULL

    def __dealloc__(self):
        cdef int64_t t
        PyMem_Free(self.nodes)
        PyMem_Free(self.rules)
        PyMem_Free(self.words)
        PyMem_Free(self.start)
        PyMem_Free(self.first_leaf)
        PyMem_Free(self.root)
        PyMem_Free(self.node_of_leaf)
        PyMem_Free(self.value)
        PyMem_Free(self.first_entry)
        if self.entries != NULL:
            for t in range(self.n_trees):
                free(self.entries[t])
            PyMem_Free(self.entries)


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


def fill_nodes(ForestNodes forest not None, GrownTrees grown not None,
               const int64_t[:, ::1] columns, int64_t[::1] cursor, double[::1] thresholds,
               int64_t[::1] node_of, bint second):
    """Write the inner nodes of the first or the second half of the trees, all but their ranks.

    The first half fills the places of thresholds and of words from their begin, the second one from
    their end; so both may be written at the same time.

    Parameters
    ----------
    columns : int64 (n_columns, 4)
        `ColumnSlots`: the slot of the column's numbers and of its codes, where nodes ask for them,
        ``n_codes`` and ``n_ordered``.
    cursor : int64 (n_number_slots,), IN and OUT
        Where the next threshold of each slot is written; of the second half one place behind it.
    thresholds, node_of : (n_compared,), OUT
        By slots; and the inner node of each.
    """
    cdef int64_t t, i, j, own, most, n_inner, size
    cdef int64_t half = grown.n_trees // 2
    cdef int64_t begin = half if second else 0
    cdef int64_t end = grown.n_trees if second else half
    cdef int64_t word = forest.n_words if second else 0
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
    most = max([grown.trees[t].n_nodes for t in range(begin, end)], default=0)
    number = <int32_t*>PyMem_Malloc((2 * most + 1) * sizeof(int32_t))
    if number == NULL:
        raise MemoryError()
    inner = number + most
    try:
        for t in range(begin, end):
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
                        cursor[column.number] -= second
                        own = cursor[column.number]
                        cursor[column.number] += not second
                        thresholds[own] = tree.threshold[i]
                        node_of[own] = forest.start[t] + j
                        continue
                    if not 0 <= tree.subset[i] <= tree.n_words - (column.n_codes // 64 + 1):
                        broken = i
                        break
                    size = last_code(column) // 64 + 1
                    word -= size * second
                    _subset_node(forest, tree, i, forest.start[t] + j, number, column, word)
                    word += size * (not second)
            if broken >= 0:
                raise ValueError(f"Tree {t} is broken: node {broken} has no subset.")
    finally:
        PyMem_Free(number)


cdef inline void _number_node(ForestNodes forest, const Grown* tree, int64_t i, int64_t k,
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


cdef inline void _subset_node(ForestNodes forest, const Grown* tree, int64_t i, int64_t k,
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
