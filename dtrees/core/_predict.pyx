"""Rows down a tree: the loop of prediction.

A tree is *packed* once: its inner nodes alone, one record each, so that a step reads one line of
memory; a child that is a leaf is written as the complement of its node number, so that no step
reads the leaf. Rows walk in blocks of 256, one level at a time, and the rows that are still on
their way are kept together:

    row    0  1  2  3  4  5          before the step
    at     3  3  4  3  4  3          number of the inner node
    next   5 ~8  6  5 ~9 ~8          after it; ~8: leaf 8
    row    0  2  3                   kept: the rows that are not in a leaf
    at     5  6  5

Steps of different rows do not depend on each other, so the processor has several rows in flight
while it waits for memory, and there is no branch to guess: which way a row goes and whether it is
kept are numbers that are added. Cost: O(rows x depth of their leaves), no copy of the table.

Numbers are compared with thresholds in float64, to which float32 is widened exactly. A NaN fails
every comparison; whether that means left or right is a bit of the node.

Trees come from outside (a file, another process): packing checks everything that a step relies on,
so a broken tree is an error and not a crash.
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.core._structs cimport ABOVE, AT_MOST, IN_SUBSET, LEAF

cdef enum:
    BLOCK = 256

ctypedef fused number_t:
    float
    double

ctypedef fused offset_t:
    int32_t
    int64_t

cdef struct Node:
    double threshold
    int32_t left            # inner node, or the complement of a leaf's node number
    int32_t right
    int32_t place           # of the number in a row of numbers; -1: the node sees codes only
    int32_t missing_right

cdef struct Rule:
    # What a node needs beside a Node when columns may hold categories.
    int64_t subset          # offset of its first word
    uint32_t n_codes
    uint32_t n_ordered
    int32_t place           # of the code in a row of codes; -1: the node sees numbers only
    uint8_t test
    uint8_t heavier_left


cdef class Walk:
    """The inner nodes of a tree, checked and packed. See `dtrees.core.predict`.

    Parameters
    ----------
    tree : dtrees.core.model.Tree
    number_place : int32 (n_columns,)
        Where a column's number stands in a row of numbers; -1: nowhere.
    code_place : int32 (n_columns,)
        Where a column's code stands in a row of codes; -1: the column has numbers only.
    n_codes, n_ordered : int64 (n_columns,)

    Raises
    ------
    ValueError
        The arrays are not those of a tree on such columns.
    """
    cdef Node* nodes
    cdef Rule* rules
    cdef const uint64_t[::1] words
    cdef int32_t root
    cdef readonly int64_t n_inner
    cdef readonly int64_t n_numbers     # least width of a row of numbers
    cdef readonly int64_t n_code_columns    # and of codes
    cdef readonly bint above            # whether any node asks `value > threshold`

    def __cinit__(self, tree, const int32_t[::1] number_place, const int32_t[::1] code_place,
                  const int64_t[::1] n_codes, const int64_t[::1] n_ordered):
        cdef const int32_t[::1] feature = tree.feature
        cdef const int32_t[::1] left = tree.children_left
        cdef const int32_t[::1] right = tree.children_right
        cdef const uint8_t[::1] test = tree.test
        cdef const double[::1] threshold = tree.threshold
        cdef const uint8_t[::1] missing_left = tree.missing_go_to_left
        cdef const int64_t[::1] subset = tree.subset_offset
        cdef const double[::1] weight = tree.weighted_n_node_samples
        cdef int64_t n_nodes = feature.shape[0]
        cdef int64_t n_columns = number_place.shape[0]
        cdef int64_t i, n_words
        cdef int32_t column
        cdef int32_t k = 0
        cdef Node* node
        cdef Rule* rule
        cdef int32_t* inner
        self.words = tree.subset_words
        n_words = self.words.shape[0]
        if not (
            0 < n_nodes < 0x7FFFFFFF
            and left.shape[0] == right.shape[0] == test.shape[0] == threshold.shape[0] == n_nodes
            and missing_left.shape[0] == subset.shape[0] == weight.shape[0] == n_nodes
            and code_place.shape[0] == n_codes.shape[0] == n_ordered.shape[0] == n_columns
        ):
            raise ValueError("The tree's arrays, or those of its columns, differ in length.")
        self.nodes = <Node*>PyMem_Malloc(n_nodes * sizeof(Node))
        self.rules = <Rule*>PyMem_Malloc(n_nodes * sizeof(Rule))
        inner = <int32_t*>PyMem_Malloc(n_nodes * sizeof(int32_t))
        try:
            if self.nodes == NULL or self.rules == NULL or inner == NULL:
                raise MemoryError()
            for i in range(n_nodes):
                inner[i] = ~<int32_t>i if test[i] == LEAF else k
                k += test[i] != LEAF
            self.root = inner[0]
            self.n_inner = k
            for i in range(n_nodes):
                if test[i] == LEAF:
                    continue
                column = feature[i]
                # Children stand behind their parent: every walk ends.
                if not (
                    test[i] <= IN_SUBSET
                    and 0 <= column < n_columns
                    and i < left[i] < n_nodes
                    and i < right[i] < n_nodes
                ):
                    raise ValueError(f"The tree is broken: node {i} cannot be.")
                node = &self.nodes[inner[i]]
                rule = &self.rules[inner[i]]
                node.threshold = threshold[i]
                node.left = inner[left[i]]
                node.right = inner[right[i]]
                node.place = number_place[column]
                node.missing_right = missing_left[i] == 0
                rule.place = code_place[column]
                rule.test = test[i]
                rule.heavier_left = weight[left[i]] >= weight[right[i]]
                rule.n_codes = <uint32_t>n_codes[column]
                rule.n_ordered = <uint32_t>n_ordered[column]
                rule.subset = subset[i]
                self.above |= test[i] == ABOVE
                if test[i] == IN_SUBSET:
                    if not (
                        rule.place >= 0
                        and 0 <= n_codes[column] < 0xFFFFFFFF
                        and 0 <= subset[i] <= n_words - (n_codes[column] // 64 + 1)
                    ):
                        raise ValueError(f"The tree is broken: node {i} has no subset.")
                elif node.place < 0:
                    raise ValueError(f"The tree is broken: node {i} compares what is not a number.")
                self.n_numbers = max(self.n_numbers, node.place + 1)
                self.n_code_columns = max(self.n_code_columns, rule.place + 1)
        finally:
            PyMem_Free(inner)

    def __dealloc__(self):
        PyMem_Free(self.nodes)
        PyMem_Free(self.rules)


cdef void _walk_numbers(const Node* nodes, const number_t* numbers, Py_ssize_t row_step,
                        Py_ssize_t place_step, Py_ssize_t n, Py_ssize_t* leaf) noexcept nogil:
    """Leaves of at most BLOCK rows; every column is ordered, every test `<=`; steps in bytes."""
    cdef int32_t[BLOCK] at
    cdef int32_t[BLOCK] row
    cdef const char* base = <const char*>numbers
    cdef const Node* node
    cdef Py_ssize_t i, kept
    cdef Py_ssize_t walking = n
    cdef int32_t r, next_node
    cdef double x
    for i in range(n):
        at[i] = 0
        row[i] = <int32_t>i
    while walking > 0:
        kept = 0
        for i in range(walking):
            r = row[i]
            node = &nodes[at[i]]
            x = (<const number_t*>(base + r * row_step + node.place * place_step))[0]
            next_node = (node.right if (x > node.threshold) | ((x != x) & node.missing_right)
                         else node.left)
            leaf[r] = ~next_node
            row[kept] = r
            at[kept] = next_node
            kept += next_node >= 0
        walking = kept


def walk_numbers(Walk walk, const number_t[:, :] X, Py_ssize_t[::1] leaf, Py_ssize_t first,
                 Py_ssize_t last):
    cdef Py_ssize_t i = first
    with nogil:
        while i < last:
            _walk_numbers(walk.nodes, &X[i, 0], X.strides[0], X.strides[1],
                          min(<Py_ssize_t>BLOCK, last - i), &leaf[i])
            i += BLOCK
