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

The stored values of a sparse table are coded column by column, and put in the order of rows; a
value that has the code of zero is left out. Rows that walk, a few at a time, are written into codes
of zeros, which are put back afterwards: O(values stored in the columns of the forest)::

    column of slot 7   rows  3   5   9           row 5    slot  0   7   31
                       value 2.0 1.0 4.0    ->            code  1   3    2

    codes of zeros     [ 0 0 0 0 0 0 0 1 0 0 ... ]        (1 in slot 7: a threshold is below zero)
    row 5              [ 1 0 0 0 0 0 0 3 0 0 ... ]
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from dtrees.core.data._columns cimport first_at_least
from dtrees.core.predict._forest_leaves cimport LeafValues, Totals, add_row, add_values
from dtrees.core.predict._forest_nodes cimport MISSING, ForestNodes
from dtrees.core.predict._walk cimport COMPLETE, GAPS, NARROW, RULES, ForestRow, ForestRows, walk

cdef enum:
    ROWS_ALONE = 4              # that walk one after the other, each down several trees
    BLOCK_CELLS = 65_536        # of sparse rows that walk together
    BLOCK_ROWS = 256            # the same: at most
    MANY_TREES = 8              # down which sparse rows walk alone

ctypedef fused number_t:
    float
    double

ctypedef fused stored_t:
    float
    double
    uint32_t                    # a code of a coded table, whose number it is; 0 is missing

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


cdef void values_of_rows(ForestNodes forest, LeafValues values, const uint16_t* rows, int64_t n,
                         bint with_missing, int32_t* leaves, const Totals* to) noexcept nogil:
    """Add the values of the leaves of n rows. leaves : scratch (max(n, n_trees),)."""
    cdef int64_t i, t
    if n <= ROWS_ALONE:
        for i in range(n):
            walk_row(forest, rows + i * forest.n_slots, leaves, with_missing)
            add_row(values, leaves, i, to)
        return
    for t in range(forest.n_trees):
        walk_tree(forest, t, rows, n, leaves, with_missing)
        add_values(values, t, leaves, n, to)


cdef void leaves_of_rows(ForestNodes forest, const uint16_t* rows, int64_t n, bint with_missing,
                         int32_t* scratch, int32_t* leaves, int64_t step) noexcept nogil:
    """Node numbers of the leaves of n rows; those of a tree are `step` behind those before.

    scratch : (n_trees,)
    """
    cdef const int32_t* node_of_leaf
    cdef int32_t* own
    cdef int64_t i, t
    if n <= ROWS_ALONE:
        for i in range(n):
            walk_row(forest, rows + i * forest.n_slots, scratch, with_missing)
            for t in range(forest.n_trees):
                leaves[t * step + i] = forest.node_of_leaf[forest.first_leaf[t] + scratch[t]]
        return
    for t in range(forest.n_trees):
        node_of_leaf = forest.node_of_leaf + forest.first_leaf[t]
        own = leaves + t * step
        walk_tree(forest, t, rows, n, own, with_missing)
        for i in range(n):
            own[i] = node_of_leaf[own[i]]


cdef bint has_missing(const uint16_t* codes, int64_t n) noexcept nogil:
    """Whether one of n codes is that of a missing number."""
    cdef bint found = False
    cdef int64_t i
    for i in range(n):
        found |= codes[i] == MISSING
    return found


cdef int32_t* room_for_leaves(ForestNodes forest, int64_t n) except NULL:
    """Scratch of a walk of n rows."""
    cdef int32_t* leaves = <int32_t*>PyMem_Malloc(max(n, forest.n_trees) * sizeof(int32_t))
    if leaves == NULL:
        raise MemoryError()
    return leaves


def walk_values(ForestNodes forest not None, LeafValues values not None,
                const uint16_t[:, ::1] rows, double[:, :] total, int64_t first_tree):
    """Add the values of the rows' leaves to `total`, tree by tree.

    ``total`` is (n_rows, width); or (n_rows, n_outputs) of any strides, of which trees of one value
    have one in turn, the first tree that with the number ``first_tree % n_outputs``.
    """
    cdef Totals to
    cdef int64_t n = rows.shape[0]
    cdef int32_t* leaves
    if rows.shape[1] != forest.n_slots or total.shape[0] != n:
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    to = values.as_totals(total, first_tree)
    leaves = room_for_leaves(forest, n)
    with nogil:
        values_of_rows(forest, values, &rows[0, 0], n,
                       has_missing(&rows[0, 0], n * forest.n_slots), leaves, &to)
    PyMem_Free(leaves)


def walk_leaves(ForestNodes forest not None, const uint16_t[:, ::1] rows,
                int32_t[:, ::1] leaves):
    """Node numbers of the rows' leaves: OUT int32 (n_trees, n_rows)."""
    cdef int64_t n = rows.shape[0]
    cdef int32_t* scratch
    if rows.shape[1] != forest.n_slots or leaves.shape[1] != n or leaves.shape[0] != forest.n_trees:
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    scratch = room_for_leaves(forest, 1)
    with nogil:
        leaves_of_rows(forest, &rows[0, 0], n, has_missing(&rows[0, 0], n * forest.n_slots),
                       scratch, &leaves[0, 0], n)
    PyMem_Free(scratch)


cdef inline uint16_t code_of(double x, const double* thresholds, int64_t n) noexcept nogil:
    """How many thresholds are below x: binary search without a branch."""
    cdef int64_t low = 0
    cdef int64_t half
    while n > 0:
        half = (n + 1) >> 1
        low += half if thresholds[low + half - 1] < x else 0
        n -= half
    return <uint16_t>low if x == x else MISSING


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
    """
    if rows.shape[0] != numbers.shape[0]:
        raise ValueError("The rows do not fit the forest.")
    check_slots(numbers.shape[1], columns, slots, thresholds, first, rows.shape[1])
    if rows.shape[0] > 0 and rows.shape[1] > 0:
        with nogil:
            code_block(numbers, columns, slots, thresholds, first, &rows[0, 0], rows.shape[1])


cdef class FewRows:
    """Few rows of numbers down a forest that has slots of numbers only; arguments as above."""
    cdef ForestNodes forest
    cdef LeafValues values
    cdef int64_t n_columns
    cdef const int64_t[::1] columns
    cdef const int64_t[::1] slots
    cdef const double[::1] thresholds
    cdef const int64_t[::1] first

    def __init__(self, ForestNodes forest not None, LeafValues values not None,
                 int64_t n_columns, const int64_t[::1] columns, const int64_t[::1] slots,
                 const double[::1] thresholds, const int64_t[::1] first):
        if not first.shape[0] - 1 == columns.shape[0] == forest.n_slots:
            raise ValueError("The rows do not fit the forest.")
        check_slots(n_columns, columns, slots, thresholds, first, forest.n_slots)
        self.forest, self.values, self.n_columns = forest, values, n_columns
        self.columns, self.slots, self.thresholds, self.first = columns, slots, thresholds, first

    def add_values(self, const number_t[:, :] numbers, double[:, :] total, int64_t first_tree):
        """Add the values of the leaves of the rows, as `code_numbers` and `walk_values`."""
        cdef ForestNodes forest = self.forest
        cdef int64_t n = numbers.shape[0]
        cdef uint16_t* rows
        cdef int32_t* leaves
        cdef Totals to
        if total.shape[0] != n or numbers.shape[1] != self.n_columns:
            raise ValueError("The rows do not fit the forest.")
        if n == 0:
            return
        to = self.values.as_totals(total, first_tree)
        leaves = room_for_leaves(forest, n)
        rows = <uint16_t*>PyMem_Malloc(n * forest.n_slots * sizeof(uint16_t))
        if rows == NULL:
            PyMem_Free(leaves)
            raise MemoryError()
        with nogil:
            code_block(numbers, self.columns, self.slots, self.thresholds, self.first, rows,
                       forest.n_slots)
            values_of_rows(forest, self.values, rows, n, has_missing(rows, n * forest.n_slots),
                           leaves, &to)
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


cdef void code_block(const number_t[:, :] numbers, const int64_t[::1] columns,
                     const int64_t[::1] slots, const double[::1] thresholds,
                     const int64_t[::1] first, uint16_t* rows, int64_t n_slots) noexcept nogil:
    """Code columns of rows that have `n_slots`."""
    cdef int64_t k, s, i, column, length
    cdef const double* base
    for k in range(slots.shape[0]):
        s = slots[k]
        column = columns[k]
        base = &thresholds[0] + first[s]
        length = first[s + 1] - first[s]
        for i in range(numbers.shape[0]):
            rows[i * n_slots + s] = code_of(numbers[i, column], base, length)


cdef int64_t find_stretches(const int64_t[::1] indptr, const int32_t[::1] rows,
                            const int64_t[::1] columns, int64_t begin, int64_t end,
                            int64_t[:, ::1] stretch) except -1:
    """Where the stored values of some rows begin and end in each column; how many there are.

    stretch : OUT (n_columns, 2)
    """
    cdef int64_t s, low, high
    cdef int64_t n_stored = 0
    for s in range(columns.shape[0]):
        if not (
            0 <= columns[s] < indptr.shape[0] - 1
            and 0 <= indptr[columns[s]] <= indptr[columns[s] + 1] <= rows.shape[0]
        ):
            raise ValueError("The sparse matrix is broken: indptr does not ascend.")
        low, high = indptr[columns[s]], indptr[columns[s] + 1]
        if low < high:
            low = first_at_least(&rows[0], low, high, begin)
            high = first_at_least(&rows[0], low, high, end)
        stretch[s, 0], stretch[s, 1] = low, high
        n_stored += high - low
    return n_stored


cdef inline double number_in(stored_t cell) noexcept nogil:
    if stored_t is uint32_t:
        return <double>cell if cell > 0 else NAN
    else:
        return cell


cdef inline int64_t place_of(const int32_t[::1] place, int64_t row, int64_t n) noexcept nogil:
    """Which of n rows it is; -1: none."""
    if place is not None:
        if not 0 <= row < place.shape[0]:
            return -1
        row = place[row]
    return row if row < n else -1


def code_sparse(const int64_t[::1] indptr, const int32_t[::1] rows, const stored_t[::1] data,
                const int64_t[::1] columns, const double[::1] thresholds,
                const int64_t[::1] first, int64_t begin, int64_t end,
                const int32_t[::1] place=None, const uint32_t[::1] fill=None):
    """Code the rows from begin to end; arguments as for `code_numbers`, but by slots.

    There is one threshold more than the last that ``first`` names.

    Parameters
    ----------
    place : int32 (end - begin,) or None
        Of each row among those that are coded, ascending; -1: it is left out. None: all are coded.
    fill : uint32 (k,) or None
        Code that is not stored, of coded tables; None: it is zero.

    Returns
    -------
    row_first : int64 (n_rows + 1,)
        Where the codes of a row begin.
    cells : uint32
        ``slot << 16 | code`` of values whose code is not that of zero.
    zeros : uint16 (k, but at least 1,)
        Codes of a row of zeros.
    """
    cdef int64_t n = end - begin if place is None else 1 + np.max(place, initial=-1)
    cdef int64_t k = columns.shape[0]
    cdef int64_t s, i, j, own
    cdef uint16_t code
    cdef int64_t[::1] cursor = np.zeros(n + 1, dtype=np.int64)
    cdef uint16_t[::1] zeros = np.zeros(max(1, k), dtype=np.uint16)
    cdef int64_t[:, ::1] stretch = np.empty((k, 2), dtype=np.int64)
    cdef uint32_t[::1] cells
    cdef uint16_t[::1] found
    if not (
        end >= begin >= 0 and k == first.shape[0] - 1
        and rows.shape[0] == data.shape[0]
        and (fill is None or fill.shape[0] == k)
    ):
        raise ValueError("The rows do not fit the forest.")
    for s in range(k):
        if not 0 <= first[s] <= first[s + 1] < thresholds.shape[0]:
            raise ValueError("The rows do not fit the forest.")
    found = np.empty(find_stretches(indptr, rows, columns, begin, end, stretch), dtype=np.uint16)
    with nogil:
        j = 0
        for s in range(k):
            zeros[s] = code_of(0.0 if fill is None else number_in(fill[s]), &thresholds[first[s]],
                               first[s + 1] - first[s])
            for i in range(stretch[s, 0], stretch[s, 1]):
                code = code_of(number_in(data[i]), &thresholds[first[s]], first[s + 1] - first[s])
                found[j] = code
                j += 1
                own = place_of(place, rows[i] - begin, n)
                if own >= 0 and code != zeros[s]:
                    cursor[own + 1] += 1
        for i in range(n):
            cursor[i + 1] += cursor[i]
    row_first = np.array(cursor)
    cells = np.empty(cursor[n], dtype=np.uint32)
    with nogil:
        j = 0
        for s in range(k):
            for i in range(stretch[s, 0], stretch[s, 1]):
                own = place_of(place, rows[i] - begin, n)
                if own >= 0 and found[j] != zeros[s]:
                    cells[cursor[own]] = <uint32_t>(s << 16) | found[j]
                    cursor[own] += 1
                j += 1
    return row_first, np.asarray(cells), np.asarray(zeros)


def walk_sparse(ForestNodes forest not None, LeafValues values, const int64_t[::1] row_first,
                const uint32_t[::1] cells, const uint16_t[::1] zeros,
                int32_t[:, ::1] leaves, double[:, :] total, int64_t first_tree):
    """Leaves of coded rows, or the sums of their values.

    ``leaves`` is OUT (n_trees, n_rows), or None; ``total`` is IN and OUT, or None, and with
    ``first_tree`` as for `walk_values`.
    """
    cdef int64_t n = row_first.shape[0] - 1
    cdef int64_t width = forest.n_slots
    cdef int64_t height = max(1, min(n, <int64_t>BLOCK_ROWS, BLOCK_CELLS // width))
    cdef int64_t begin = 0
    cdef int64_t i, j, some
    cdef int32_t* scratch
    cdef uint16_t* rows
    cdef Totals to
    cdef bint with_leaves = leaves is not None
    cdef bint with_total = total is not None
    cdef bint with_missing
    if forest.n_trees >= MANY_TREES:
        height = 1
    if not (
        zeros.shape[0] == width and 0 <= row_first[0] and row_first[n] <= cells.shape[0]
        and (not with_leaves or leaves.shape[0] == forest.n_trees and leaves.shape[1] == n)
        and (not with_total or total.shape[0] == n)
    ):
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    if with_total:
        to = values.as_totals(total, first_tree)
    scratch = room_for_leaves(forest, height)
    rows = <uint16_t*>PyMem_Malloc(height * width * sizeof(uint16_t))
    if rows == NULL:
        PyMem_Free(scratch)
        raise MemoryError()
    with nogil:
        with_missing = has_missing(&zeros[0], width)
        for j in range(row_first[0], row_first[n]):
            with_missing |= (cells[j] & 0xFFFF) == MISSING
        for i in range(height):
            memcpy(rows + i * width, &zeros[0], width * sizeof(uint16_t))
        while begin < n:
            some = min(height, n - begin)
            for i in range(some):
                for j in range(row_first[begin + i], row_first[begin + i + 1]):
                    rows[i * width + (cells[j] >> 16)] = <uint16_t>(cells[j] & 0xFFFF)
            if with_total:
                values_of_rows(forest, values, rows, some, with_missing, scratch, &to)
                to.cells += some * to.row_step
            if with_leaves:
                leaves_of_rows(forest, rows, some, with_missing, scratch, &leaves[0, begin],
                               n)
            for i in range(some):
                for j in range(row_first[begin + i], row_first[begin + i + 1]):
                    rows[i * width + (cells[j] >> 16)] = zeros[cells[j] >> 16]
            begin += some
    PyMem_Free(scratch)
    PyMem_Free(rows)
