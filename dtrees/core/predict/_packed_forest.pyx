"""Coded rows down many trees.

For a forest the numbers of a row are coded first: the code of a number is how many of the forest's
thresholds of its column are below it, so a test is a comparison of two 16-bit numbers, and a block
of rows fits the processor's cache with the tree that it walks::

    thresholds of column 3   0.5   1.25   7.0            1.25 <= threshold 1  <=>  code 1 <= 1
    number                 0.2  0.7   1.25  9.0  nan
    code                   0    1     1     3    65535   missing

A category is coded by the number that it has in its column, and a subset has a bit for each code.
What is missing and what was not there at fit have codes and bits of their own::

    code in a slot of categories   0        1 .. n          n + 1
    meaning                        missing  categories      not there at fit
    ditto, of a hybrid column      missing  1: any number   2 .. categories, then not there at fit

    code in a slot of numbers      0 .. m   65533       65534                 65535
    meaning                        number   a category  not there at fit      missing

So a test is a stretch of codes or a bit, and which of both is found without a branch that no
processor would guess; 65535 is next to 0, so a stretch that begins there has what is missing in it,
and one that begins at 65534 what was not there at fit as well. Subsets of more than 64 codes have
their bits elsewhere. Comparisons whose codes are no stretch are looked up on a way of their own.
Forests that test nothing but `<=` on columns of numbers do with half as large a node.

Blocks of rows are coded once and walk all trees, tree by tree; a row that is alone walks several
trees at the same time. Few rows of numbers cost the calls, so one call codes them and walks. Cost
of a row: O(used columns * log thresholds + trees * depth).
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint16_t

from dtrees.core.predict._forest_leaves cimport Totals, add_row, add_values, as_totals
from dtrees.core.predict._forest_nodes cimport ForestNodes
from dtrees.core.predict._walk cimport COMPLETE, GAPS, NARROW, RULES, ForestRow, ForestRows, walk

cdef enum:
    ROWS_ALONE = 4              # that walk one after the other, each down several trees

ctypedef fused number_t:
    float
    double

ctypedef fused rows_t:
    ForestRows
    ForestRow


cdef inline void walk_as(ForestNodes forest, const rows_t* rows, int64_t n,
                         bint with_missing) noexcept nogil:
    if forest.rules != NULL and forest.with_other:
        walk(rows, n, RULES)
    elif forest.rules != NULL:
        walk(rows, n, NARROW)
    elif with_missing:
        walk(rows, n, GAPS)
    else:
        walk(rows, n, COMPLETE)


cdef void walk_tree(ForestNodes forest, int64_t tree, const uint16_t* rows, int64_t n,
                    int32_t* leaves, bint with_missing) noexcept nogil:
    """Leaves of n rows in one tree: numbers among the leaves of the tree."""
    cdef int64_t first = forest.start[tree]
    cdef ForestRows walking
    walking.nodes = forest.nodes + first if forest.rules == NULL else NULL
    walking.rules = forest.rules + first if forest.rules != NULL else NULL
    walking.words, walking.root = forest.words, forest.root[tree]
    walking.codes, walking.width, walking.leaf = rows, forest.n_slots, leaves
    walk_as(forest, &walking, n, with_missing)


cdef void walk_row(ForestNodes forest, const uint16_t* row, int32_t* leaves,
                   bint with_missing) noexcept nogil:
    """Leaves of one row in all trees, OUT (n_trees,)."""
    cdef ForestRow walking
    walking.nodes, walking.rules, walking.words = forest.nodes, forest.rules, forest.words
    walking.first, walking.root = forest.start, forest.root
    walking.codes, walking.leaf = row, leaves
    walk_as(forest, &walking, forest.n_trees, with_missing)


cdef void walk_rows(ForestNodes forest, const uint16_t* rows, int64_t n, bint with_missing,
                    int32_t* leaves, const Totals* to) noexcept nogil:
    """Add the values of the leaves of n rows. leaves : scratch (max(n, n_trees),)."""
    cdef int64_t i, t
    if n <= ROWS_ALONE:
        for i in range(n):
            walk_row(forest, rows + i * forest.n_slots, leaves, with_missing)
            add_row(forest, leaves, i, to)
        return
    for t in range(forest.n_trees):
        walk_tree(forest, t, rows, n, leaves, with_missing)
        add_values(forest, t, leaves, n, to)


def walk_values(ForestNodes forest not None, const uint16_t[:, ::1] rows, bint with_missing,
                int32_t[::1] leaves, double[:, :] total, int64_t first_tree):
    """Add the values of the rows' leaves to `total`, tree by tree.

    ``leaves`` is scratch, at least as many as rows and as trees. ``total`` is (n_rows, width); or
    (n_rows, n_outputs) of any strides, of which trees of one value have one in turn, the first
    tree that with the number ``first_tree % n_outputs``.
    """
    cdef Totals to
    cdef int64_t n = rows.shape[0]
    if not (
        rows.shape[1] == forest.n_slots and total.shape[0] == n
        and leaves.shape[0] >= max(n, forest.n_trees)
    ):
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    to = as_totals(forest, total, first_tree)
    with nogil:
        walk_rows(forest, &rows[0, 0], n, with_missing, &leaves[0], &to)


def walk_leaves(ForestNodes forest not None, const uint16_t[:, ::1] rows, bint with_missing,
                int32_t[:, ::1] leaves):
    """Node numbers of the rows' leaves: OUT int32 (n_trees, n_rows)."""
    cdef int64_t n = rows.shape[0]
    cdef int64_t t
    if rows.shape[1] != forest.n_slots or leaves.shape[1] != n or leaves.shape[0] != forest.n_trees:
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    with nogil:
        if n == 1:
            walk_row(forest, &rows[0, 0], &leaves[0, 0], with_missing)
        for t in range(forest.n_trees):
            if n > 1:
                walk_tree(forest, t, &rows[0, 0], n, &leaves[t, 0], with_missing)
            to_nodes(forest, t, &leaves[t, 0], n)


cdef void to_nodes(ForestNodes forest, int64_t tree, int32_t* leaves, int64_t n) noexcept nogil:
    """Node numbers of leaves, in their place."""
    cdef const int32_t* node_of_leaf = forest.node_of_leaf + forest.first_leaf[tree]
    cdef int64_t i
    for i in range(n):
        leaves[i] = node_of_leaf[leaves[i]]


def code_numbers(const number_t[:, :] numbers, const int64_t[::1] columns,
                 const int64_t[::1] slots, const double[::1] thresholds, const int64_t[::1] first,
                 uint16_t[:, ::1] rows):
    """Code some columns of numbers.

    Parameters
    ----------
    numbers : float32 or float64 (n_rows, n_columns), any strides
    columns, slots : int64 (k,)
        Which column, and the slot that it is coded for.
    thresholds : float64, ascending within a slot
    first : int64 (n_slots + 1,)
        Where the thresholds of a slot begin.
    rows : OUT uint16 (n_rows, n_slots)

    Returns
    -------
    bool
        Whether a number is missing.
    """
    cdef bint missing = False
    if rows.shape[0] != numbers.shape[0]:
        raise ValueError("The rows do not fit the forest.")
    check_slots(numbers.shape[1], columns, slots, thresholds, first, rows.shape[1])
    if rows.shape[0] > 0 and rows.shape[1] > 0:
        with nogil:
            missing = code_block(numbers, columns, slots, thresholds, first, &rows[0, 0],
                                 rows.shape[1])
    return missing


cdef class FewRows:
    """Few rows of numbers down a forest that has slots of numbers only; arguments as above."""
    cdef ForestNodes forest
    cdef int64_t n_columns
    cdef const int64_t[::1] columns
    cdef const int64_t[::1] slots
    cdef const double[::1] thresholds
    cdef const int64_t[::1] first

    def __init__(self, ForestNodes forest not None, int64_t n_columns,
                 const int64_t[::1] columns, const int64_t[::1] slots,
                 const double[::1] thresholds, const int64_t[::1] first):
        if not first.shape[0] - 1 == columns.shape[0] == forest.n_slots:
            raise ValueError("The rows do not fit the forest.")
        check_slots(n_columns, columns, slots, thresholds, first, forest.n_slots)
        self.forest, self.n_columns = forest, n_columns
        self.columns, self.slots, self.thresholds, self.first = columns, slots, thresholds, first

    def add_values(self, const number_t[:, :] numbers, double[:, :] total, int64_t first_tree):
        """Add the values of the leaves of the rows, as `code_numbers` and `walk_values`."""
        cdef ForestNodes forest = self.forest
        cdef int64_t n = numbers.shape[0]
        cdef uint16_t* rows = NULL
        cdef int32_t* leaves = NULL
        cdef bint missing
        cdef Totals to
        if total.shape[0] != n or numbers.shape[1] != self.n_columns:
            raise ValueError("The rows do not fit the forest.")
        if n == 0:
            return
        to = as_totals(forest, total, first_tree)
        rows = <uint16_t*>PyMem_Malloc(n * forest.n_slots * sizeof(uint16_t))
        leaves = <int32_t*>PyMem_Malloc(max(n, forest.n_trees) * sizeof(int32_t))
        if rows == NULL or leaves == NULL:
            PyMem_Free(rows)
            PyMem_Free(leaves)
            raise MemoryError()
        with nogil:
            missing = code_block(numbers, self.columns, self.slots, self.thresholds, self.first,
                                 rows, forest.n_slots)
            walk_rows(forest, rows, n, missing, leaves, &to)
        PyMem_Free(rows)
        PyMem_Free(leaves)


cdef int check_slots(int64_t n_columns, const int64_t[::1] columns, const int64_t[::1] slots,
                     const double[::1] thresholds, const int64_t[::1] first,
                     int64_t n_slots) except -1:
    """Raise ValueError when a column, a slot or a threshold is not there."""
    cdef int64_t k
    if not (n_slots + 1 >= first.shape[0] and slots.shape[0] == columns.shape[0]):
        raise ValueError("The rows do not fit the forest.")
    for k in range(slots.shape[0]):
        if not (
            0 <= slots[k] < first.shape[0] - 1
            and 0 <= columns[k] < n_columns
            and 0 <= first[slots[k]] <= first[slots[k] + 1] <= thresholds.shape[0]
        ):
            raise ValueError("The rows do not fit the forest.")
    return 0


cdef bint code_block(const number_t[:, :] numbers, const int64_t[::1] columns,
                     const int64_t[::1] slots, const double[::1] thresholds,
                     const int64_t[::1] first, uint16_t* rows, int64_t n_slots) noexcept nogil:
    """Code columns of rows that have `n_slots`; whether a number is missing."""
    cdef bint missing = False
    cdef int64_t k, s, i, column, length
    cdef const double* base
    cdef double x
    for k in range(slots.shape[0]):
        s = slots[k]
        column = columns[k]
        base = &thresholds[0] + first[s]
        length = first[s + 1] - first[s]
        for i in range(numbers.shape[0]):
            x = numbers[i, column]
            rows[i * n_slots + s] = code_of(x, base, length)
            missing |= x != x
    return missing
