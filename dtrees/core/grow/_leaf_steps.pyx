"""What the leaves of a tree of derivatives add to raw predictions, without the interpreter.

    sums of leaves ──newton_steps──▶ steps ──add_leaf_steps──▶ weights and weighted steps of nodes
                                                  └──────────▶ rows are moved

The records of the trees of a model stand tree behind tree, until it has grown. A tree is recorded
in the order in which its leaves were split. Here it is put in preorder at once, behind those before
it. The arrays of all trees are made in one go, so that a tree which has grown costs a copy of its
records and no object::


    trees       0                1            2
    nodes       0 1 2 3 4 5 6    0 1 2        0 1 2 3 4      children: numbers in their tree
    words       ──────────────────────▶                      subsets: offsets in all words
"""
import numpy as np

from libc.math cimport fabs, frexp, ldexp, rint
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from dtrees.core.data._memory cimport resize
from dtrees.core.grow._leaf_wise cimport Leaf, LeafWiseGrower
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, Record, copy_words, free_node_buffer, reserve_records
)

from dtrees.core.grow.node_record import RECORD, RecordsOfTrees

cdef enum:
    STEP_BITS = 61              # of the sum of weighted steps

cdef struct Place:
    # Of a tree among the others.
    int64_t n_nodes
    double unit


def newton_steps(const int64_t[:, ::1] sums not None, const double[::1] n_rounded not None,
                 double l2, int shift, double most):
    """``- gradient / (hessian + l2)`` of some nodes; 0 where nothing is below the line, and where
    the gradients may add up to 0, each of them being rounded by half a unit.

    So where they would by construction, as at the root of balanced classes, the classes tie.

    Parameters
    ----------
    sums : int64 (n, 2)
        Hessians and gradients.
    n_rounded : float64 (n,)
        Gradients that were rounded: rows, or counts of them.
    l2 : float
        In units of the hessians.
    shift : int
        Bits of a unit of gradients, in those of a unit of hessians.
    most : float
        No step is larger.

    Returns
    -------
    float64 (n,)
    """
    cdef double[::1] steps = np.zeros(sums.shape[0])
    cdef int64_t i
    cdef double below
    for i in range(sums.shape[0]):
        below = <double>sums[i, 0] + l2
        if below > 0 and 2 * fabs(<double>sums[i, 1]) > n_rounded[i]:
            steps[i] = min(max(-ldexp(<double>sums[i, 1], -shift) / below, -most), most)
    return np.asarray(steps)


cdef int64_t weight_of_leaf(LeafWiseGrower grower, int64_t i, const int64_t* weight) noexcept nogil:
    """Of the rows of a leaf, in units; without weights, their number."""
    cdef const Leaf* leaf = grower.leaves + i
    cdef const uint32_t* rows = grower.store.rows + leaf.node.start
    cdef int64_t sum = leaf.node.totals.n
    cdef int64_t k
    if weight != NULL:
        sum = 0
        for k in range(leaf.node.totals.n):
            sum += weight[rows[k]]
    return sum


cdef const int64_t* first_weight(LeafWiseGrower grower, const int64_t[::1] weight) except? NULL:
    if weight is None:
        return NULL
    assert weight.shape[0] == grower.blocks.n_rows
    return &weight[0]


def weights_of_leaves(LeafWiseGrower grower not None, const int64_t[::1] weight):
    """Weight of each leaf of the tree that was grown last, in units: int64 (n_leaves,).

    weight : int64 (rows of the table,) or None
        None: the number of rows.
    """
    cdef int64_t[::1] found = np.empty(grower.n_leaves, dtype=np.int64)
    cdef const int64_t* first = first_weight(grower, weight)
    cdef int64_t i
    with nogil:
        for i in range(grower.n_leaves):
            found[i] = weight_of_leaf(grower, i, first)
    return np.asarray(found)


def add_leaf_steps(LeafWiseGrower grower not None, const double[::1] steps not None,
                   const int64_t[::1] weights not None, double weight_unit,
                   double[::1] raw not None):
    """Move the rows of the tree that was grown last, and give its records their statistics.

    These are weights and weighted steps. A weighted step is rounded to an integer, and rows are
    moved by the quotient of that and the weight: by the very number that the stored tree gives.

    Parameters
    ----------
    steps : float64 (n_leaves,)
    weights : int64 (n_leaves,)
    weight_unit : float
        What one unit of the weights is for the user.
    raw : float64 (rows of the table,), IN and OUT

    Returns
    -------
    unit : float
        Of weighted steps.
    """
    cdef int64_t n = grower.n_leaves
    cdef double[::1] stored = np.array(steps)
    cdef int64_t[:, ::1] sums = np.empty((n, 2), dtype=np.int64)
    cdef double largest = 0
    cdef int64_t weight = 0
    cdef double unit, of_leaf
    cdef int64_t i
    cdef int exponent
    assert steps.shape[0] == n and weights.shape[0] == n
    assert raw.shape[0] == grower.blocks.n_rows
    with nogil:
        for i in range(n):
            largest = max(largest, fabs(steps[i]))
            weight += weights[i]
        frexp(largest * (<double>weight * weight_unit), &exponent)
        unit = ldexp(1.0, exponent - STEP_BITS)
        for i in range(n):
            of_leaf = <double>weights[i] * weight_unit
            sums[i, 0] = weights[i]
            sums[i, 1] = <int64_t>rint(ldexp(steps[i] * of_leaf, STEP_BITS - exponent))
            stored[i] = <double>sums[i, 1] * unit / of_leaf
        grower.move_rows(&stored[0], &raw[0])
        grower.sum_up(&sums[0, 0])
    return unit


cdef class GrownRecords:
    """Trees that were grown leaf by leaf.

    Attributes
    ----------
    n_trees : int
    """
    cdef int n_statistics
    cdef NodeBuffer out
    cdef Place* trees
    cdef readonly int64_t n_trees
    cdef int64_t capacity
    cdef int64_t* stack
    cdef int64_t* position      # of the records of a tree
    cdef int64_t room           # of both

    def __cinit__(self):
        self.n_statistics = 2

    def __dealloc__(self):
        free_node_buffer(&self.out)
        free(self.trees)
        free(self.stack)
        free(self.position)

    def append(self, LeafWiseGrower grower not None, double unit=1.0):
        """The tree that was grown last, as its records are now; `unit` of its second statistic."""
        cdef bint has_memory
        with nogil:
            has_memory = self.add(&grower.out, unit)
        if not has_memory:
            raise MemoryError

    cdef bint add(self, const NodeBuffer* tree, double unit) noexcept nogil:
        """Copy the records of a tree in preorder; False without memory. O(nodes)."""
        cdef int64_t S = self.n_statistics
        cdef int64_t first = self.out.count
        cdef int64_t n_words = self.out.n_words
        cdef int64_t depth = 1
        cdef int64_t n = 0
        cdef int64_t i
        cdef Record* record
        if not self._has_room(tree):
            return False
        if tree.n_words > 0 and copy_words(&self.out, tree.words, tree.n_words) < 0:
            return False
        self.stack[0] = 0
        while depth > 0:
            depth -= 1
            i = self.stack[depth]
            self.position[i] = n
            self.out.nodes[first + n] = tree.nodes[i]
            memcpy(self.out.statistics + S * (first + n), tree.statistics + S * i,
                   S * sizeof(int64_t))
            n += 1
            if tree.nodes[i].left >= 0:
                self.stack[depth] = tree.nodes[i].right
                self.stack[depth + 1] = tree.nodes[i].left
                depth += 2
        for i in range(first, first + n):
            record = self.out.nodes + i
            if record.left >= 0:
                record.left = self.position[record.left]
                record.right = self.position[record.right]
            if record.subset >= 0:
                record.subset += n_words
        self.out.count += n
        self.trees[self.n_trees] = Place(n, unit)
        self.n_trees += 1
        return True

    cdef bint _has_room(self, const NodeBuffer* tree) noexcept nogil:
        """Room for one more tree."""
        cdef int64_t room = 2 * tree.count + 64
        cdef int64_t capacity = 2 * self.n_trees + 64
        if tree.count > self.room:
            if not (resize(<void**>&self.stack, room * sizeof(int64_t))
                    and resize(<void**>&self.position, room * sizeof(int64_t))):
                return False
            self.room = room - 1            # the stack has a place more
        if self.n_trees == self.capacity:
            if not resize(<void**>&self.trees, capacity * sizeof(Place)):
                return False
            self.capacity = capacity
        return reserve_records(&self.out, tree.count, self.n_statistics)

    def take(self):
        """All trees so far, as `RecordsOfTrees`; there are none then."""
        cdef int64_t n = self.out.count
        nodes = np.empty(n, dtype=RECORD)
        statistics = np.empty((n, self.n_statistics), dtype=np.int64)
        words = np.empty(self.out.n_words, dtype=np.uint64)
        cdef uint8_t[::1] raw_nodes = nodes.view(np.uint8)
        cdef int64_t[:, ::1] of_node = statistics
        cdef uint8_t[::1] raw_words = words.view(np.uint8)
        cdef int64_t[::1] n_nodes = np.empty(self.n_trees, dtype=np.int64)
        cdef double[::1] units = np.empty(self.n_trees)
        cdef int64_t i
        for i in range(self.n_trees):
            n_nodes[i], units[i] = self.trees[i].n_nodes, self.trees[i].unit
        if n > 0:
            memcpy(&raw_nodes[0], self.out.nodes, n * sizeof(Record))
            memcpy(&of_node[0, 0], self.out.statistics, statistics.nbytes)
        if self.out.n_words > 0:
            memcpy(&raw_words[0], self.out.words, words.nbytes)
        self.out.count = self.out.n_words = self.n_trees = 0
        return RecordsOfTrees(nodes, statistics, words, np.asarray(n_nodes), np.asarray(units))
