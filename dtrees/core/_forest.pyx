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
the same time, as in `dtrees.core._predict`. Cost of a row:
O(used columns * log thresholds + trees * depth).
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core._structs cimport IN_SUBSET

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil

cdef enum:
    LANES = 12
    AHEAD = 32                  # rows whose values are asked for
    CATEGORY = 65533            # in the place of a number
    UNSEEN = 65534              # a category that was not there at fit, where it has a side
    MISSING = 65535
    MISSING_LEFT = 1 << 15      # bit of a node's slot
    MOST_SLOTS = 1 << 15
    MOST_THRESHOLDS = 65532
    MOST_CODES = 1 << 16        # in a slot of categories

ctypedef fused number_t:
    float
    double

cdef struct Node:
    uint16_t slot               # of the code in a row, and MISSING_LEFT
    uint16_t limit              # so many codes go left
    int32_t[2] child            # right, left: an inner node, or the complement of a leaf

cdef struct Rule:
    # The same where tests are of several kinds.
    uint64_t bits               # codes that go left, none of numbers; of wide ones: first word
    int32_t[2] child            # right, left
    uint16_t slot
    uint16_t low                # the first code that goes left
    uint16_t limit              # so many codes do, none of categories
    uint16_t kind

cdef enum:
    IS_SUBSET = 1
    IS_OTHER = 2                # a wide subset, or a comparison in a hybrid column
    GONE_LEFT = 4               # where other comparisons lead
    UNSEEN_LEFT = 8

SLOT_LIMIT = MOST_SLOTS
THRESHOLD_LIMIT = MOST_THRESHOLDS
CODE_LIMIT = MOST_CODES
NO_NUMBER = CATEGORY
NEW = UNSEEN
GONE = MISSING


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
    rules : (word, low, is_subset, unseen_left, is_hybrid, words, largest) or None, default=None
        Where not all tests are `<=` on numbers; by node: uint32, where its subset begins in
        ``words``; uint16; uint8, the next two as well. ``words``: uint64, at least one.
        ``largest``: int64 (n_slots,), the largest code of a slot.

    Raises
    ------
    ValueError
        The arrays are not those of trees.
    """
    cdef Node* nodes
    cdef Rule* rules                # NULL: every test is `<=` on numbers; otherwise nodes are
    cdef const uint64_t[::1] words
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
                  const double[:, ::1] value, int64_t n_slots, rules=None):
        cdef const uint32_t[::1] word
        cdef const uint16_t[::1] low
        cdef const uint8_t[::1] is_subset
        cdef const uint8_t[::1] unseen_left
        cdef const uint8_t[::1] is_hybrid
        cdef const int64_t[::1] largest
        cdef Rule* rule
        cdef int64_t n_nodes = slot.shape[0]
        cdef int64_t t, i, j, n
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
        if rules is not None:
            word, low, is_subset, unseen_left, is_hybrid, self.words, largest = rules
            if not (
                word.shape[0] == low.shape[0] == is_subset.shape[0] == n_nodes
                and unseen_left.shape[0] == is_hybrid.shape[0] == n_nodes
                and largest.shape[0] == n_slots
                and self.words.shape[0] > 0
            ):
                raise ValueError("The rules of the forest differ in length.")
            self.rules = <Rule*>PyMem_Malloc((n_nodes + 1) * sizeof(Rule))
            if self.rules == NULL:
                raise MemoryError()
        else:
            self.nodes = <Node*>PyMem_Malloc((n_nodes + 1) * sizeof(Node))
        self.start = <int64_t*>PyMem_Malloc((self.n_trees + 1) * sizeof(int64_t))
        self.root = <int32_t*>PyMem_Malloc((self.n_trees + 1) * sizeof(int32_t))
        number = <int32_t*>PyMem_Malloc((n_nodes + 1) * sizeof(int32_t))
        try:
            if ((self.nodes == NULL and self.rules == NULL) or self.start == NULL
                    or self.root == NULL or number == NULL):
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
                    j = first[t] + i
                    if self.rules == NULL:
                        node = &self.nodes[k]
                        node.slot = slot[j]
                        if missing_left[j]:
                            node.slot |= MISSING_LEFT
                        node.limit = limit[j]
                        node.child[0] = number[right[j]]
                        node.child[1] = number[left[j]]
                        k += 1
                        continue
                    rule = &self.rules[k]
                    rule.slot = slot[j]
                    rule.child[0] = number[right[j]]
                    rule.child[1] = number[left[j]]
                    rule.bits = 0
                    rule.low = low[j]
                    rule.limit = 0 if is_subset[j] else limit[j]
                    rule.kind = 0
                    if is_subset[j]:
                        if not (
                            0 <= largest[slot[j]] < MOST_CODES
                            and word[j] + (largest[slot[j]] >> 6) < self.words.shape[0]
                        ):
                            raise ValueError(
                                f"Tree {t} of the forest is broken: node {i} has no subset."
                            )
                        if largest[slot[j]] < 64:
                            rule.bits = self.words[word[j]]
                        else:
                            rule.kind = IS_OTHER | IS_SUBSET
                            rule.bits = word[j]
                    elif is_hybrid[j]:
                        rule.kind = IS_OTHER
                        if missing_left[j]:
                            rule.kind |= GONE_LEFT
                        if unseen_left[j]:
                            rule.kind |= UNSEEN_LEFT
                    elif missing_left[j]:       # a stretch that begins with what is missing
                        rule.low = <uint16_t>(low[j] - 1)
                        rule.limit = limit[j] + 1
                    k += 1
        finally:
            PyMem_Free(number)

    def __dealloc__(self):
        PyMem_Free(self.nodes)
        PyMem_Free(self.rules)
        PyMem_Free(self.start)
        PyMem_Free(self.root)


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
            at[k] = step(nodes, rules, words, at[k], codes[k], with_missing, with_rules)
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
                at[k] = step(nodes, rules, words, at[k], codes[k], with_missing, with_rules)
            leaves[row[k]] = ~at[k]


cdef void walk_tree(ForestNodes forest, int64_t tree, const uint16_t* rows, int64_t n,
                    int32_t* leaves, bint with_missing) noexcept nogil:
    cdef const Node* nodes
    cdef int32_t root = forest.root[tree]
    if forest.rules != NULL:
        walk_rows(NULL, forest.rules + forest.start[tree], &forest.words[0], root, rows, n,
                  forest.n_slots, leaves, True, True)
        return
    nodes = forest.nodes + forest.start[tree]
    if with_missing:
        walk_rows(nodes, NULL, NULL, root, rows, n, forest.n_slots, leaves, True, False)
    else:
        walk_rows(nodes, NULL, NULL, root, rows, n, forest.n_slots, leaves, False, False)


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
            walk_tree(forest, t, &rows[0, 0], n, &leaves[0], with_missing)
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
            walk_tree(forest, t, &rows[0, 0], n, &leaves[t, 0], with_missing)


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


def slot_subsets(const uint8_t[::1] test, const int32_t[::1] feature, const int64_t[::1] offset,
                 const uint64_t[::1] words, const uint8_t[::1] missing_left,
                 const uint8_t[::1] unseen_left, const int64_t[::1] n_codes,
                 const int64_t[::1] n_ordered, int64_t begin, uint32_t[::1] word,
                 uint64_t[::1] out):
    """Subsets of one tree, by the codes of slots.

    Parameters
    ----------
    test, feature, offset, missing_left : (n_nodes,)
        As of a `Tree`; ``words`` are its ``subset_words``.
    unseen_left : uint8 (n_nodes,)
        Where categories go that were not there at fit.
    n_codes, n_ordered : int64 (n_columns,)
        Of the codebook.
    begin : int
        Where the first subset is written to.
    word : uint32 (n_nodes,), OUT
        Where the subset of a node begins in ``out``; other nodes are left alone.
    out : uint64, IN all zero and OUT

    Returns
    -------
    int
        Where the next tree begins; O(codes of all subsets) steps.

    Raises
    ------
    ValueError
        The tree is broken.
    """
    cdef int64_t i, j, k, c, shift, own, n_own
    cdef uint64_t bit
    for i in range(test.shape[0]):
        if test[i] != IN_SUBSET:
            continue
        j = feature[i]
        own = n_codes[j] // 64 + 1
        shift = max(0, n_ordered[j] - 1)
        k = n_codes[j] - shift + 1                      # not there at fit
        n_own = k // 64 + 1
        if not (0 <= offset[i] <= words.shape[0] - own and begin + n_own <= out.shape[0]):
            raise ValueError(f"The tree is broken: node {i} has no subset.")
        word[i] = <uint32_t>begin
        if shift == 0:
            for c in range(own):
                out[begin + c] = words[offset[i] + c]
        else:
            # the codes of numbers, of which one speaks for all, are one bit
            for c in range(1, k):
                bit = 1 if c == 1 else c + shift
                bit = (words[offset[i] + <int64_t>(bit >> 6)] >> (bit & 63)) & 1
                out[begin + (c >> 6)] |= bit << (c & 63)
        put(&out[begin], 0, missing_left[i] != 0)
        put(&out[begin], k, unseen_left[i] != 0)
        begin += n_own
    return begin


cdef inline void put(uint64_t* words, int64_t k, bint value) noexcept nogil:
    """Set bit k."""
    words[k >> 6] = (words[k >> 6] & ~(<uint64_t>1 << (k & 63))) | (<uint64_t>value << (k & 63))
