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
processor would guess; 65535 is next to 0, so a stretch that begins there has what is missing in it.
Subsets of more than 64 codes and comparisons in hybrid columns are looked up on a way of their own.
Forests that test nothing but `<=` on columns of numbers do with half as large a node.

Blocks of rows are coded once and walk all trees, tree by tree. Several rows are on their way at
the same time, as in `dtrees.core.predict._raw`; a row that is alone walks several trees at the same
time. Cost of a row: O(used columns * log thresholds + trees * depth).
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t

from dtrees.core.predict._forest_leaves cimport add_row, add_values
from dtrees.core.predict._forest_nodes cimport (
    GONE_LEFT, IS_OTHER, IS_SUBSET, MISSING_LEFT, UNSEEN_LEFT, ForestNodes, Node, Rule
)

cdef enum:
    LANES = 12
    FEW_ROWS = 4                # that walk one after the other, each down several trees
    CATEGORY = 65533            # in the place of a number
    UNSEEN = 65534              # a category that was not there at fit, where it has a side

ctypedef fused number_t:
    float
    double

NO_NUMBER = CATEGORY
NEW = UNSEEN
GONE = MISSING


cdef bint other_left(const Rule* rule, const uint64_t* words, uint16_t code) noexcept nogil:
    """A wide subset, or a comparison in a hybrid column."""
    if rule.kind & IS_SUBSET:
        return (words[rule.bits + (code >> 6)] >> (code & 63)) & 1
    if code == MISSING:
        return (rule.kind & GONE_LEFT) != 0
    if code == UNSEEN:
        return (rule.kind & UNSEEN_LEFT) != 0
    return <uint16_t>(code - rule.low) < rule.limit


cdef inline int32_t step(const Node* nodes, const Rule* rules, const uint64_t* words, int32_t at,
                         const uint16_t* row, bint with_missing, bint with_rules) noexcept nogil:
    cdef const Node* node
    cdef const Rule* rule
    cdef uint16_t code
    if with_rules:
        rule = &rules[at]
        code = row[rule.slot]
        if rule.kind & IS_OTHER:
            return rule.child[other_left(rule, words, code)]
        # one of both is empty
        return rule.child[
            ((rule.bits >> (code & 63)) & 1) | (<uint16_t>(code - rule.low) < rule.limit)
        ]
    node = &nodes[at]
    code = row[node.slot & (MISSING_LEFT - 1)]
    if with_missing:
        return node.child[(code < node.limit) | ((code == MISSING) & (node.slot >> 15))]
    return node.child[code < node.limit]


cdef inline void walk_rows(const Node* nodes, const Rule* rules, const uint64_t* words,
                           int32_t root, const uint16_t* rows, int64_t n, int64_t width,
                           int32_t* leaves, bint with_missing, bint with_rules) noexcept nogil:
    """Leaves of n rows in one tree; flags are constants where this is inlined."""
    cdef int32_t[LANES] at
    cdef int64_t[LANES] row
    cdef const uint16_t* codes[LANES]
    cdef int64_t next_row = 0
    cdef int k, kept
    cdef int live
    if root < 0:
        for next_row in range(n):
            leaves[next_row] = ~root
        return
    live = <int>(LANES if n > LANES else n)
    for k in range(live):
        row[k] = k
        codes[k] = rows + k * width
        at[k] = root
    next_row = live
    while live == LANES:
        for k in range(LANES):
            at[k] = step(nodes, rules, words, at[k], codes[k], with_missing, with_rules)
        kept = LANES
        for k in range(LANES):
            if at[k] < 0:
                leaves[row[k]] = ~at[k]
                if next_row < n:
                    row[k] = next_row
                    codes[k] = rows + next_row * width
                    at[k] = root
                    next_row += 1
                else:
                    kept -= 1
        if kept < LANES:
            live = kept
            break
    # No row is left to come: the lanes that are still in use move together.
    kept = 0
    for k in range(LANES if n > LANES else <int>n):
        if at[k] >= 0:
            row[kept], codes[kept], at[kept] = row[k], codes[k], at[k]
            kept += 1
    live = kept
    while live > 0:
        kept = 0
        for k in range(live):
            at[k] = step(nodes, rules, words, at[k], codes[k], with_missing, with_rules)
            if at[k] < 0:
                leaves[row[k]] = ~at[k]
            else:
                row[kept], codes[kept], at[kept] = row[k], codes[k], at[k]
                kept += 1
        live = kept


cdef void walk_tree(ForestNodes forest, int64_t tree, const uint16_t* rows, int64_t n,
                    int32_t* leaves, bint with_missing) noexcept nogil:
    """Leaves of n rows in one tree: numbers among the leaves of the tree."""
    cdef const Node* nodes
    cdef int32_t root = forest.root[tree]
    if forest.rules != NULL:
        walk_rows(NULL, forest.rules + forest.start[tree], forest.words, root, rows, n,
                  forest.n_slots, leaves, True, True)
        return
    nodes = forest.nodes + forest.start[tree]
    if with_missing:
        walk_rows(nodes, NULL, NULL, root, rows, n, forest.n_slots, leaves, True, False)
    else:
        walk_rows(nodes, NULL, NULL, root, rows, n, forest.n_slots, leaves, False, False)


cdef inline void walk_trees(ForestNodes forest, const uint16_t* row, int32_t* leaves,
                            bint with_missing, bint with_rules) noexcept nogil:
    """Leaves of one row in all trees; flags are constants where this is inlined."""
    cdef int32_t[LANES] at
    cdef int64_t[LANES] tree
    cdef const Node* nodes[LANES]
    cdef const Rule* rules[LANES]
    cdef const uint64_t* words = forest.words
    cdef int64_t coming = 0
    cdef int live = 0
    cdef int k, kept
    cdef int32_t ended
    while True:
        while live < LANES and coming < forest.n_trees:
            if forest.root[coming] < 0:
                leaves[coming] = ~forest.root[coming]
            else:
                tree[live] = coming
                at[live] = forest.root[coming]
                if with_rules:
                    rules[live] = forest.rules + forest.start[coming]
                else:
                    nodes[live] = forest.nodes + forest.start[coming]
                live += 1
            coming += 1
        if live == 0:
            return
        ended = 0
        while live == LANES and ended >= 0:
            for k in range(LANES):
                if with_rules:
                    at[k] = step(NULL, rules[k], words, at[k], row, True, True)
                else:
                    at[k] = step(nodes[k], NULL, NULL, at[k], row, with_missing, False)
                ended |= at[k]
        while ended >= 0:
            for k in range(live):
                if with_rules:
                    at[k] = step(NULL, rules[k], words, at[k], row, True, True)
                else:
                    at[k] = step(nodes[k], NULL, NULL, at[k], row, with_missing, False)
                ended |= at[k]
        kept = 0
        for k in range(live):
            if at[k] < 0:
                leaves[tree[k]] = ~at[k]
                continue
            tree[kept], at[kept] = tree[k], at[k]
            if with_rules:
                rules[kept] = rules[k]
            else:
                nodes[kept] = nodes[k]
            kept += 1
        live = kept


cdef void walk_row(ForestNodes forest, const uint16_t* row, int32_t* leaves,
                   bint with_missing) noexcept nogil:
    """Leaves of one row in all trees.

    leaves : OUT (n_trees,)
    """
    if forest.rules != NULL:
        walk_trees(forest, row, leaves, True, True)
    elif with_missing:
        walk_trees(forest, row, leaves, True, False)
    else:
        walk_trees(forest, row, leaves, False, False)


def walk(ForestNodes forest not None, const uint16_t[:, ::1] rows, bint with_missing,
         int32_t[::1] leaves, double[:, ::1] total):
    """Add the values of the rows' leaves to `total`, tree by tree.

    Parameters
    ----------
    rows : uint16 (n_rows, n_slots)
    with_missing : bool
        Whether a code may be that of a missing number.
    leaves : OUT int32, at least as many as rows and as trees; scratch
    total : IN and OUT float64 (n_rows, width)
    """
    cdef int64_t n = rows.shape[0]
    cdef int64_t t, i
    if not (
        rows.shape[1] == forest.n_slots and total.shape[0] == n
        and leaves.shape[0] >= max(n, forest.n_trees)
    ):
        raise ValueError("The rows do not fit the forest.")
    if total.shape[1] != forest.width:
        raise ValueError("The totals do not fit the forest.")
    if n == 0:
        return
    with nogil:
        if n <= FEW_ROWS:
            for i in range(n):
                walk_row(forest, &rows[i, 0], &leaves[0], with_missing)
                add_row(forest, &leaves[0], &total[i, 0])
        else:
            for t in range(forest.n_trees):
                walk_tree(forest, t, &rows[0, 0], n, &leaves[0], with_missing)
                add_values(forest, t, &leaves[0], n, &total[0, 0])


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
    cdef int64_t n = numbers.shape[0]
    cdef int64_t k, s, i, column, length, half, low
    cdef const double* base
    cdef double x
    if not (
        rows.shape[0] == n and rows.shape[1] + 1 >= first.shape[0]
        and slots.shape[0] == columns.shape[0]
    ):
        raise ValueError("The rows do not fit the forest.")
    for k in range(slots.shape[0]):
        if not (
            0 <= slots[k] < first.shape[0] - 1
            and 0 <= columns[k] < numbers.shape[1]
            and 0 <= first[slots[k]] <= first[slots[k] + 1] <= thresholds.shape[0]
        ):
            raise ValueError("The rows do not fit the forest.")
    with nogil:
        for k in range(slots.shape[0]):
            s = slots[k]
            column = columns[k]
            base = &thresholds[0] + first[s]
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
