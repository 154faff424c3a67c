"""Raw rows down a tree: numbers, or numbers and codes.

Numbers are compared with thresholds in float64, to which float32 is widened exactly. A NaN fails
every comparison; whether that means left or right is a bit of the node.

Trees come from outside (a file, another process): packing checks everything that a step relies on,
so a broken tree is an error and not a crash.
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport first_at_least
from dtrees.core.data._structs cimport ABOVE, IN_SUBSET
from dtrees.core.predict._grown_trees cimport Grown, GrownTrees, is_heavier_left, number_nodes
from dtrees.core.predict._walk cimport DOUBLES, FLOATS, MIXED, RawNode, RawRows, RawRule, walk

ctypedef fused number_t:
    float
    double


cdef class PackedTree:
    """The inner nodes of a tree, checked and packed. See `dtrees.core.predict.raw`.

    Parameters
    ----------
    tree : dtrees.core.model.tree.Tree
    number_slot : int32 (n_columns,)
        Where a column's number stands in a row of numbers; -1: nowhere.
    code_slot : int32 (n_columns,)
        Where a column's code stands in a row of codes; -1: the column has numbers only.
    n_codes, n_ordered : int64 (n_columns,)

    Raises
    ------
    ValueError
        The arrays are not those of a tree on such columns.
    """
    cdef RawNode* nodes
    cdef RawRule* rules
    cdef const uint64_t[::1] words
    cdef RawRows rows                   # all but the rows
    cdef readonly int64_t n_numbers     # least width of a row of numbers
    cdef readonly int64_t n_code_columns    # and of codes
    cdef readonly bint with_rules       # whether numbers and nodes alone do not do

    def __cinit__(self, tree, const int32_t[::1] number_slot, const int32_t[::1] code_slot,
                  const int64_t[::1] n_codes, const int64_t[::1] n_ordered):
        cdef int64_t n_columns = number_slot.shape[0]
        cdef GrownTrees trees = GrownTrees((tree,), n_columns)
        cdef const Grown* grown = trees.trees
        cdef int64_t n_inner = trees.start[1]
        cdef int64_t i, k
        cdef int32_t column
        cdef int32_t* number
        cdef int32_t* inner
        cdef RawNode* node
        cdef RawRule* rule
        if not code_slot.shape[0] == n_codes.shape[0] == n_ordered.shape[0] == n_columns:
            raise ValueError("The arrays of the columns differ in length.")
        self.words = tree.subset_words
        self.nodes = <RawNode*>PyMem_Malloc(n_inner * sizeof(RawNode))
        self.rules = <RawRule*>PyMem_Malloc(n_inner * sizeof(RawRule))
        number = <int32_t*>PyMem_Malloc((grown.n_nodes + n_inner + 1) * sizeof(int32_t))
        try:
            if self.nodes == NULL or self.rules == NULL or number == NULL:
                raise MemoryError()
            inner = number + grown.n_nodes
            number_nodes(grown, number, inner, NULL)
            self.rows.nodes, self.rows.rules, self.rows.words = self.nodes, self.rules, grown.words
            self.rows.root = number[0]
            for k in range(n_inner):
                i = inner[k]
                column = grown.feature[i]
                node = &self.nodes[k]
                rule = &self.rules[k]
                node.threshold = grown.threshold[i]
                node.child[0] = number[grown.left[i]]
                node.child[1] = number[grown.right[i]]
                node.slot = number_slot[column]
                node.missing_right = grown.missing_left[i] == 0
                rule.slot = code_slot[column]
                rule.test = grown.test[i]
                rule.heavier_left = is_heavier_left(grown, i)
                rule.n_codes = <uint32_t>n_codes[column]
                rule.n_ordered = <uint32_t>n_ordered[column]
                rule.subset = grown.subset[i]
                self.with_rules |= rule.test == ABOVE or rule.slot >= 0
                if rule.test == IN_SUBSET:
                    if not (
                        rule.slot >= 0
                        and 0 <= n_codes[column] < 0xFFFFFFFF
                        and 0 <= rule.subset <= grown.n_words - (n_codes[column] // 64 + 1)
                    ):
                        raise ValueError(f"The tree is broken: node {i} has no subset.")
                elif node.slot < 0:
                    raise ValueError(f"The tree is broken: node {i} compares what is not a number.")
                self.n_numbers = max(self.n_numbers, node.slot + 1)
                self.n_code_columns = max(self.n_code_columns, rule.slot + 1)
        finally:
            PyMem_Free(number)

    def __dealloc__(self):
        PyMem_Free(self.nodes)
        PyMem_Free(self.rules)


cdef void walk_block(RawRows rows, const number_t* numbers, Py_ssize_t row_step,
                     Py_ssize_t slot_step, Py_ssize_t n, Py_ssize_t* leaf) noexcept nogil:
    """Leaves of n rows of ordered numbers; steps in bytes."""
    rows.numbers, rows.row_step, rows.slot_step = <const char*>numbers, row_step, slot_step
    rows.leaf = leaf
    if number_t is float:
        walk(&rows, n, FLOATS)
    else:
        walk(&rows, n, DOUBLES)


def walk_numbers(PackedTree tree not None, const number_t[:, :] numbers, Py_ssize_t[::1] leaf):
    """OUT leaves of rows of numbers (n_rows, n), any strides, where all columns are ordered."""
    cdef Py_ssize_t n = numbers.shape[0]
    if leaf.shape[0] != n or numbers.shape[1] < tree.n_numbers or tree.with_rules:
        raise ValueError("The rows do not fit the tree.")
    if n == 0:
        return
    if numbers.shape[1] == 0:  # the tree is a leaf
        leaf[:] = 0
        return
    with nogil:
        walk_block(tree.rows, &numbers[0, 0], numbers.strides[0], numbers.strides[1], n, &leaf[0])


def walk_mixed(PackedTree tree not None, const double[:, ::1] numbers, const uint32_t[:, ::1] codes,
               Py_ssize_t[::1] leaf):
    """OUT leaves of rows that are numbers, nan where there is none, and codes.

    Code 0 is missing; codes above ``n_codes`` follow the heavier child.
    """
    cdef Py_ssize_t n = numbers.shape[0]
    cdef RawRows rows = tree.rows
    if not (
        leaf.shape[0] == codes.shape[0] == n
        and numbers.shape[1] >= tree.n_numbers
        and codes.shape[1] >= tree.n_code_columns
    ):
        raise ValueError("The rows do not fit the tree.")
    if n == 0:
        return
    if numbers.shape[1] > 0:
        rows.numbers, rows.row_step = <const char*>&numbers[0, 0], numbers.strides[0]
    if codes.shape[1] > 0:
        rows.codes, rows.code_step = &codes[0, 0], codes.shape[1]
    rows.leaf = &leaf[0]
    with nogil:
        walk(&rows, n, MIXED)


def walk_sparse(PackedTree tree not None, const int64_t[::1] indptr, const int32_t[::1] rows,
                const number_t[::1] data, number_t[:, ::1] block, Py_ssize_t first,
                Py_ssize_t[::1] leaf):
    """Leaves of rows of a sparse matrix, for trees whose columns are all ordered.

    The stored values of a few rows at a time are written into a block of zeros, the rows walk,
    and the zeros are put back: O(values stored in the columns that the tree uses + steps).

    Parameters
    ----------
    indptr, rows, data
        Compressed columns, rows ascending; NaN is missing.
    block : as data (a few rows, n_columns), IN and OUT all zero
    first : row of the matrix that ``leaf[0]`` stands for
    leaf : OUT
    """
    cdef Py_ssize_t n_columns = block.shape[1]
    cdef Py_ssize_t n = leaf.shape[0]
    cdef Py_ssize_t begin, count, j
    cdef int64_t i, low, high
    cdef int64_t* cursor
    cdef const number_t* base = &block[0, 0] if n_columns > 0 and block.shape[0] > 0 else NULL
    if not (
        indptr.shape[0] == n_columns + 1
        and n_columns >= tree.n_numbers
        and rows.shape[0] == data.shape[0]
        and block.shape[0] > 0
        and first >= 0
        and not tree.with_rules
    ):
        raise ValueError("The rows do not fit the tree.")
    for j in range(n_columns):
        if not 0 <= indptr[j] <= indptr[j + 1] <= data.shape[0]:
            raise ValueError("The sparse matrix is broken: indptr does not ascend.")
    if n == 0:
        return
    cursor = <int64_t*>PyMem_Malloc(2 * n_columns * sizeof(int64_t))
    if cursor == NULL:
        raise MemoryError()
    with nogil:
        for j in range(n_columns):
            low, high = indptr[j], indptr[j + 1]
            cursor[j] = first_at_least(&rows[0], low, high, first) if low < high else low
        begin = 0
        while begin < n:
            count = min(block.shape[0], n - begin)
            for j in range(n_columns):
                i = cursor[j]
                cursor[n_columns + j] = i
                while i < indptr[j + 1] and rows[i] < first + begin + count:
                    if rows[i] >= first + begin:
                        block[rows[i] - first - begin, j] = data[i]
                    i += 1
                cursor[j] = i
            walk_block(tree.rows, base, n_columns * sizeof(number_t), sizeof(number_t), count,
                       &leaf[begin])
            for j in range(n_columns):
                for i in range(cursor[n_columns + j], cursor[j]):
                    if rows[i] >= first + begin:
                        block[rows[i] - first - begin, j] = 0
            begin += count
    PyMem_Free(cursor)
