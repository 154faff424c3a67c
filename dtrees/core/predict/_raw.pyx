"""Raw numbers down a tree.

Numbers are compared with thresholds in float64, to which float32 is widened exactly. A NaN fails
every comparison; whether that means left or right is a bit of the node. Left and right change
places where a test is `>`, so every test is `<=`.

Trees come from outside (a file, another process): packing checks everything that a step relies on,
so a broken tree is an error and not a crash.
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t

from dtrees.core.data._structs cimport ABOVE, IN_SUBSET
from dtrees.core.predict._forest_nodes cimport Grown, GrownTrees, number_nodes
from dtrees.core.predict._walk cimport DOUBLES, FLOATS, RawNode, RawRows, walk

ctypedef fused number_t:
    float
    double


cdef class PackedTree:
    """The inner nodes of a tree that compares numbers, checked and packed.

    Parameters
    ----------
    tree : dtrees.core.model.tree.Tree
    slot : int32 (n_columns,)
        Where a column's number stands in a row of numbers; -1: nowhere.

    Raises
    ------
    ValueError
        The arrays are not those of a tree on such columns.
    """
    cdef RawNode* nodes
    cdef RawRows rows                   # all but the rows
    cdef readonly int64_t n_numbers     # least width of a row of numbers

    def __cinit__(self, tree, const int32_t[::1] slot):
        cdef GrownTrees trees = GrownTrees((tree,), slot.shape[0])
        cdef const Grown* grown = trees.trees
        cdef int64_t n_inner = trees.start[1]
        cdef int64_t i, k
        cdef int32_t* number
        cdef int32_t* inner
        cdef RawNode* node
        cdef bint is_above
        self.nodes = <RawNode*>PyMem_Malloc(n_inner * sizeof(RawNode))
        number = <int32_t*>PyMem_Malloc((grown.n_nodes + n_inner + 1) * sizeof(int32_t))
        try:
            if self.nodes == NULL or number == NULL:
                raise MemoryError()
            inner = number + grown.n_nodes
            number_nodes(grown, number, inner, NULL)
            self.rows.nodes, self.rows.root = self.nodes, number[0]
            for k in range(n_inner):
                i = inner[k]
                node = &self.nodes[k]
                node.slot = slot[grown.feature[i]]
                if grown.test[i] == IN_SUBSET or node.slot < 0:
                    raise ValueError(f"The tree is broken: node {i} compares what is not a number.")
                is_above = grown.test[i] == ABOVE
                node.threshold = grown.threshold[i]
                node.child[is_above] = number[grown.left[i]]
                node.child[not is_above] = number[grown.right[i]]
                node.missing_right = (grown.missing_left[i] != 0) == is_above
                self.n_numbers = max(self.n_numbers, node.slot + 1)
        finally:
            PyMem_Free(number)

    def __dealloc__(self):
        PyMem_Free(self.nodes)


def walk_numbers(PackedTree tree not None, const number_t[:, :] numbers, Py_ssize_t[::1] leaf):
    """OUT leaves of rows of numbers (n_rows, n), any strides."""
    cdef Py_ssize_t n = numbers.shape[0]
    cdef RawRows rows = tree.rows
    if leaf.shape[0] != n or numbers.shape[1] < tree.n_numbers:
        raise ValueError("The rows do not fit the tree.")
    if n == 0:
        return
    rows.leaf = &leaf[0]
    if numbers.shape[1] > 0:            # or the tree is a leaf
        rows.numbers = <const char*>&numbers[0, 0]
        rows.row_step, rows.slot_step = numbers.strides[0], numbers.strides[1]
    with nogil:
        if number_t is float:
            walk(&rows, n, FLOATS)
        else:
            walk(&rows, n, DOUBLES)
