"""Coded rows down a tree: the loop of `dtrees.core.predict.binned`.

Codes are read where they are, column by column, and nothing is copied: rows ascend, so the lines of
the columns that a tree tests are read once, and in order. A node is packed with the address of its
column. Of 8-bit codes it has a bit for each, missing (0) included, so that a step does not branch
by the kind of its test; of wider ones, a stretch (low, high] goes left, or a subset::

    code <= 2    0110 0000 ..     (0, 2]
    code > 2     0001 1100 ..     (2, last ordered code]

As in `_raw`, several rows are on their way at the same time, each in a lane.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from dtrees.core.data._columns cimport STORED_U8, Column, Columns, code_at, columns_of
from dtrees.core.data._structs cimport AT_MOST, IN_SUBSET, LEAF
from dtrees.core.stores._partition cimport Route, goes_left

cdef enum:
    LANES = 8

cdef struct Step:
    const uint8_t* codes    # NULL: not of 8 bits
    uint64_t[4] left        # bit c: code c of 8 bits goes left
    int32_t[2] child        # right, left: an inner node, or the complement of a leaf's node number
    const Column* column
    Route route             # of codes of any width


cdef inline bint leads_left(const Step* step, int64_t row) noexcept nogil:
    cdef uint32_t code
    if step.codes != NULL:
        code = step.codes[row]
        return (step.left[code >> 6] >> (code & 63)) & 1
    return goes_left(&step.route, code_at(step.column, row))


cdef inline uint64_t codes_up_to(uint32_t last, uint32_t k) noexcept nogil:
    """Word k of the bits of the codes 0, 1, ..., last."""
    if last >> 6 != k:
        return ~<uint64_t>0 if last >> 6 > k else 0
    return ~<uint64_t>0 >> (63 - (last & 63))


cdef void mark_codes_left(Step* step) noexcept nogil:
    """Say of every 8-bit code whether it goes left."""
    cdef uint32_t k
    for k in range(4):
        step.left[k] = 0
        if step.route.subset == NULL:
            step.left[k] = codes_up_to(step.route.high, k) & ~codes_up_to(step.route.low, k)
        elif k < step.route.subset_words:
            step.left[k] = step.route.subset[k]
    step.left[0] = step.left[0] & ~<uint64_t>1 | step.route.missing_left


cdef void walk(const Step* steps, const int64_t* rows, Py_ssize_t n,
               Py_ssize_t* leaf) noexcept nogil:
    """Leaves of n rows; step 0 is the root."""
    cdef Py_ssize_t place[LANES]
    cdef int64_t row[LANES]
    cdef int32_t at[LANES]
    cdef Py_ssize_t coming = min(n, <Py_ssize_t>LANES)
    cdef int live = <int>coming
    cdef int j, kept
    cdef int32_t child
    cdef const Step* step
    for j in range(live):
        place[j] = j
        row[j] = rows[j]
        at[j] = 0
    while live > 0:
        kept = 0
        for j in range(live):
            step = &steps[at[j]]
            child = step.child[leads_left(step, row[j])]
            at[j] = child
            if child < 0:
                leaf[place[j]] = ~child
                if coming < n:
                    place[j] = coming
                    row[j] = rows[coming]
                    at[j] = 0
                    coming += 1
                else:
                    kept += 1
        if kept > 0:
            # No row is left to come: the lanes that are still in use move together.
            kept = 0
            for j in range(live):
                if at[j] >= 0:
                    place[kept] = place[j]
                    row[kept] = row[j]
                    at[kept] = at[j]
                    kept += 1
            live = kept


def walk_codes(tree, coded, const int64_t[::1] rows, Py_ssize_t[::1] leaf):
    """Leaves of rows of a coded table.

    Parameters
    ----------
    tree : dtrees.core.model.tree.Tree
        Grown from this table.
    coded : dtrees.coding.coded.CodedMatrix
    rows : int64 (n,)
    leaf : intp (n,), OUT
        Node numbers.

    Raises
    ------
    ValueError
        The tree is none on such columns, or there are no such rows.

    Notes
    -----
    O(nodes + n x depth); in sparse columns a step takes O(log stored).
    """
    cdef Columns table = columns_of(coded)
    cdef const int32_t[::1] feature = tree.feature
    cdef const int32_t[::1] left = tree.children_left
    cdef const int32_t[::1] right = tree.children_right
    cdef const uint8_t[::1] test = tree.test
    cdef const uint32_t[::1] code = tree.code
    cdef const uint8_t[::1] missing_left = tree.missing_go_to_left
    cdef const int64_t[::1] offset = tree.subset_offset
    cdef const uint64_t[::1] words = tree.subset_words
    cdef int64_t n_nodes = feature.shape[0]
    cdef int64_t n_words = words.shape[0]
    cdef int64_t n_rows = coded.n_rows
    cdef Py_ssize_t n = rows.shape[0]
    cdef Py_ssize_t i
    cdef int32_t n_inner = 0
    cdef int32_t* inner
    cdef Step* steps
    cdef Step* step
    if leaf.shape[0] != n:
        raise ValueError("There is not one leaf for each row.")
    for i in range(n):
        if not 0 <= rows[i] < n_rows:
            raise ValueError(f"The table has no row {rows[i]}.")
    steps = <Step*>malloc(n_nodes * sizeof(Step))
    inner = <int32_t*>malloc(n_nodes * sizeof(int32_t))
    try:
        if steps == NULL or inner == NULL:
            raise MemoryError()
        for i in range(n_nodes):
            inner[i] = ~<int32_t>i if test[i] == LEAF else n_inner
            n_inner += test[i] != LEAF
        for i in range(n_nodes):
            if test[i] == LEAF:
                continue
            if not (
                0 <= feature[i] < table.n_columns
                and i < left[i] < n_nodes
                and i < right[i] < n_nodes
            ):
                raise ValueError(f"The tree is broken: node {i} cannot be.")
            step = &steps[inner[i]]
            step.column = &table.columns[feature[i]]
            step.codes = NULL
            step.child[0] = inner[right[i]]
            step.child[1] = inner[left[i]]
            step.route = Route(NULL, 0, 0, 0, missing_left[i] != 0)
            if test[i] == IN_SUBSET:
                step.route.subset_words = step.column.n_codes // 64 + 1
                if not 0 <= offset[i] <= n_words - step.route.subset_words:
                    raise ValueError(f"The tree is broken: node {i} has no subset.")
                step.route.subset = &words[offset[i]]
            elif test[i] == AT_MOST:
                step.route.high = min(code[i], step.column.n_ordered)
            else:
                step.route.low = code[i]
                step.route.high = step.column.n_ordered
            if step.column.storage == STORED_U8:
                step.codes = <const uint8_t*>step.column.codes
                mark_codes_left(step)
        if n_inner == 0:
            leaf[:] = 0
        elif n > 0:
            with nogil:
                walk(steps, &rows[0], n, &leaf[0])
    finally:
        free(steps)
        free(inner)
