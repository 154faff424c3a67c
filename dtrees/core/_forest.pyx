"""Coded rows down many trees.

For a forest the numbers of a row are coded first: the code of a number is how many of the forest's
thresholds of its column are below it, so a test is a comparison of two 16-bit numbers, and a block
of rows fits the processor's cache with the tree that it walks::

    thresholds of column 3   0.5   1.25   7.0            1.25 <= threshold 1  <=>  code 1 <= 1
    number                 0.2  0.7   1.25  9.0  nan
    code                   0    1     1     3    65535   missing

Blocks of rows are coded once and walk all trees, tree by tree. Several rows are on their way at
the same time, as in `dtrees.core._predict`. Cost of a row:
O(used columns * log thresholds + trees * depth).
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint16_t

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil

cdef enum:
    LANES = 12
    AHEAD = 32                  # rows whose values are asked for
    MISSING = 65535
    MISSING_LEFT = 1 << 15      # bit of a node's slot
    MOST_SLOTS = 1 << 15
    MOST_THRESHOLDS = 65534

ctypedef fused number_t:
    float
    double

cdef struct Node:
    uint16_t slot               # of the code in a row, and MISSING_LEFT
    uint16_t limit              # codes below go left
    int32_t[2] child            # right, left: an inner node, or the complement of a leaf

SLOT_LIMIT = MOST_SLOTS
THRESHOLD_LIMIT = MOST_THRESHOLDS


cdef class ForestNodes:
    """The inner nodes of the trees of a forest, checked and packed.

    Parameters
    ----------
    slot : uint16 (n_nodes,)
        Of the test of each node, all trees one behind the other; leaves: anything.
    limit : uint16 (n_nodes,)
    missing_left : uint8 (n_nodes,)
    left, right : int32 (n_nodes,)
        Node numbers within the tree; -1 in leaves.
    first : int64 (n_trees + 1,)
        Where each tree's nodes begin.
    value : float64 (n_nodes, width)
        Kept, not copied.
    n_slots : int

    Raises
    ------
    ValueError
        The arrays are not those of trees.
    """
    cdef Node* nodes
    cdef int64_t* start             # of a tree's inner nodes
    cdef int32_t* root
    cdef const int64_t[::1] first
    cdef const double[:, ::1] value
    cdef readonly int64_t n_trees
    cdef readonly int64_t n_slots
    cdef readonly int64_t width

    def __cinit__(self, const uint16_t[::1] slot, const uint16_t[::1] limit,
                  const unsigned char[::1] missing_left, const int32_t[::1] left,
                  const int32_t[::1] right, const int64_t[::1] first,
                  const double[:, ::1] value, int64_t n_slots):
        cdef int64_t n_nodes = slot.shape[0]
        cdef int64_t t, i, n
        cdef int64_t k = 0
        cdef int32_t inner
        cdef int32_t* number
        cdef Node* node
        self.n_trees = first.shape[0] - 1
        self.n_slots = n_slots
        self.first = first
        self.value = value
        self.width = value.shape[1]
        if not (
            self.n_trees > 0 and first[0] == 0 and first[self.n_trees] == n_nodes
            and limit.shape[0] == missing_left.shape[0] == left.shape[0] == n_nodes
            and right.shape[0] == value.shape[0] == n_nodes
        ):
            raise ValueError("The arrays of the forest differ in length.")
        self.nodes = <Node*>PyMem_Malloc((n_nodes + 1) * sizeof(Node))
        self.start = <int64_t*>PyMem_Malloc((self.n_trees + 1) * sizeof(int64_t))
        self.root = <int32_t*>PyMem_Malloc((self.n_trees + 1) * sizeof(int32_t))
        number = <int32_t*>PyMem_Malloc((n_nodes + 1) * sizeof(int32_t))
        try:
            if (self.nodes == NULL or self.start == NULL or self.root == NULL
                    or number == NULL):
                raise MemoryError()
            for t in range(self.n_trees):
                n = first[t + 1] - first[t]
                if not 0 < n < 0x7FFFFFFF:
                    raise ValueError(f"Tree {t} of the forest has {n} nodes.")
                inner = 0
                for i in range(n):
                    number[i] = ~<int32_t>i if left[first[t] + i] < 0 else inner
                    inner += left[first[t] + i] >= 0
                self.start[t] = k
                self.root[t] = number[0]
                for i in range(n):
                    if left[first[t] + i] < 0:
                        continue
                    # Children stand behind their parent: every walk ends.
                    if not (i < left[first[t] + i] < n and i < right[first[t] + i] < n
                            and slot[first[t] + i] < n_slots):
                        raise ValueError(f"Tree {t} of the forest is broken: node {i} cannot be.")
                    node = &self.nodes[k]
                    node.slot = slot[first[t] + i]
                    if missing_left[first[t] + i]:
                        node.slot |= MISSING_LEFT
                    node.limit = limit[first[t] + i]
                    node.child[0] = number[right[first[t] + i]]
                    node.child[1] = number[left[first[t] + i]]
                    k += 1
        finally:
            PyMem_Free(number)

    def __dealloc__(self):
        PyMem_Free(self.nodes)
        PyMem_Free(self.start)
        PyMem_Free(self.root)


cdef inline int32_t step(const Node* nodes, int32_t at, const uint16_t* row,
                         bint with_missing) noexcept nogil:
    cdef const Node* node = &nodes[at]
    cdef uint16_t code = row[node.slot & (MISSING_LEFT - 1)]
    if with_missing:
        return node.child[(code < node.limit) | ((code == MISSING) & (node.slot >> 15))]
    return node.child[code < node.limit]


cdef inline void walk_rows(const Node* nodes, int32_t root, const uint16_t* rows, int64_t n,
                           int64_t width, int32_t* leaves, bint with_missing) noexcept nogil:
    """Leaves of n rows in one tree; `with_missing` is a constant where this is inlined."""
    cdef int32_t[LANES] at
    cdef int64_t[LANES] row
    cdef const uint16_t* codes[LANES]
    cdef int64_t next_row = 0
    cdef int64_t live
    cdef int k
    if root < 0:
        for next_row in range(n):
            leaves[next_row] = ~root
        return
    live = LANES if n > LANES else n
    for k in range(live):
        row[k] = k
        codes[k] = rows + k * width
        at[k] = root
    next_row = live
    while live == LANES:
        for k in range(LANES):
            at[k] = step(nodes, at[k], codes[k], with_missing)
        for k in range(LANES):
            if at[k] < 0:
                leaves[row[k]] = ~at[k]
                if next_row < n:
                    row[k] = next_row
                    codes[k] = rows + next_row * width
                    at[k] = root
                    next_row += 1
                else:
                    live -= 1
                    row[k] = -1
        if live < LANES:
            break
    # the last rows, one by one
    for k in range(LANES if n > LANES else n):
        if row[k] >= 0 and at[k] >= 0:
            while at[k] >= 0:
                at[k] = step(nodes, at[k], codes[k], with_missing)
            leaves[row[k]] = ~at[k]


cdef void walk_tree(const Node* nodes, int32_t root, const uint16_t* rows, int64_t n,
                    int64_t width, int32_t* leaves, bint with_missing) noexcept nogil:
    if with_missing:
        walk_rows(nodes, root, rows, n, width, leaves, True)
    else:
        walk_rows(nodes, root, rows, n, width, leaves, False)


cdef inline void add_pairs(double* total, const double* value, const int32_t* leaves,
                           int64_t n) noexcept nogil:
    """The values of two classes; both are read before one is written."""
    cdef int64_t i
    cdef const double* pair
    cdef double first, second
    for i in range(n):
        if i + AHEAD < n:
            prefetch(value + 2 * <int64_t>leaves[i + AHEAD])
        pair = value + 2 * <int64_t>leaves[i]
        first = total[2 * i] + pair[0]
        second = total[2 * i + 1] + pair[1]
        total[2 * i] = first
        total[2 * i + 1] = second


def walk(ForestNodes forest, const uint16_t[:, ::1] rows, bint with_missing, int32_t[::1] leaves,
         double[:, ::1] total):
    """Add the values of the rows' leaves to `total`, tree by tree.

    Parameters
    ----------
    rows : uint16 (n_rows, n_slots)
    with_missing : bool
        Whether a code may be that of a missing number.
    leaves : OUT int32 (n_rows,), scratch
    total : IN and OUT float64 (n_rows, width)
    """
    cdef int64_t n = rows.shape[0]
    cdef int64_t width = forest.width
    cdef int64_t t, i, k
    cdef const double* value
    if rows.shape[1] != forest.n_slots or leaves.shape[0] != n or total.shape[0] != n:
        raise ValueError("The rows do not fit the forest.")
    if total.shape[1] != width:
        raise ValueError("The totals do not fit the forest.")
    if n == 0:
        return
    with nogil:
        for t in range(forest.n_trees):
            walk_tree(forest.nodes + forest.start[t], forest.root[t], &rows[0, 0], n,
                      forest.n_slots, &leaves[0], with_missing)
            value = &forest.value[forest.first[t], 0]
            if width == 2:
                add_pairs(&total[0, 0], value, &leaves[0], n)
            else:
                for i in range(n):
                    if i + AHEAD < n:
                        prefetch(value + leaves[i + AHEAD] * width)
                    for k in range(width):
                        total[i, k] += value[leaves[i] * width + k]


def walk_leaves(ForestNodes forest, const uint16_t[:, ::1] rows, bint with_missing,
                int32_t[:, ::1] leaves):
    """Node numbers of the rows' leaves: OUT int32 (n_trees, n_rows)."""
    cdef int64_t n = rows.shape[0]
    cdef int64_t t
    if rows.shape[1] != forest.n_slots or leaves.shape[1] != n or leaves.shape[0] != forest.n_trees:
        raise ValueError("The rows do not fit the forest.")
    if n == 0:
        return
    with nogil:
        for t in range(forest.n_trees):
            walk_tree(forest.nodes + forest.start[t], forest.root[t], &rows[0, 0], n,
                      forest.n_slots, &leaves[t, 0], with_missing)


def code_numbers(const number_t[:, :] numbers, const int64_t[::1] columns,
                 const double[::1] thresholds, const int64_t[::1] first, uint16_t[:, ::1] rows):
    """Code a block of numbers.

    Parameters
    ----------
    numbers : float32 or float64 (n_rows, n_columns), any strides
    columns : int64 (n_slots,)
        Which column a slot codes.
    thresholds : float64, ascending within a slot
    first : int64 (n_slots + 1,)
    rows : OUT uint16 (n_rows, n_slots)

    Returns
    -------
    bool
        Whether a number is missing.
    """
    cdef bint missing = False
    cdef int64_t n = numbers.shape[0]
    cdef int64_t n_slots = columns.shape[0]
    cdef int64_t s, i, column, length, half, low
    cdef const double* base
    cdef double x
    if rows.shape[0] != n or rows.shape[1] < n_slots or first.shape[0] != n_slots + 1:
        raise ValueError("The rows do not fit the forest.")
    with nogil:
        for s in range(n_slots):
            column = columns[s]
            base = &thresholds[first[s]]
            for i in range(n):
                x = numbers[i, column]
                # how many thresholds are below x: binary search without a branch
                low = 0
                length = first[s + 1] - first[s]
                while length > 0:
                    half = (length + 1) >> 1
                    low += half if base[low + half - 1] < x else 0
                    length -= half
                rows[i, s] = <uint16_t>low if x == x else MISSING
                missing |= x != x
    return missing
