"""Coded rows side by side, for many trees.

A walk that reads a table column by column touches a line of memory at each step. Rows that go down
many trees are copied first, with the columns that these test, so that a row is a line or two; and
the record of a node is a quarter as large, that of a packed forest (`_forest_nodes.Rule`). A copied
code is one less than that of the table, so missing (0) becomes 65535, next to the first code::

    test                  codes in a row that go left     as a rule
    code <= t             0 .. t - 1                      low 0, limit t
    ditto, missing left   65535, 0 .. t - 1               low 65535, limit t + 1
    code > t              t .. n_ordered - 1              low t, limit n_ordered - t
    a subset              a bit for each of 63 categories, and bit 63 for what is missing

Trees with other tests (`code > t` with missing left, subsets of more categories) walk as before.
10 trees of 1,500 tests, 10,000 rows, 16 columns: .7 of the time; 10 of 140, 24,000 rows: .75.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from dtrees.core.data._columns cimport STORED_U8, code_at
from dtrees.core.data._structs cimport ABOVE, IN_SUBSET
from dtrees.core.predict._forest_nodes cimport MISSING, MOST_SLOTS, Rule
from dtrees.core.predict._walk cimport NARROW, ForestRows, walk

cdef enum:
    MOST_CATEGORIES = 63        # of a subset in one word, beside what is missing
    TOGETHER = 512              # rows whose copies and leaves stay in the caches


cdef void free_rows(CodeRows* side_by_side) noexcept nogil:
    free(side_by_side.codes)
    free(side_by_side.slot)
    side_by_side.codes = NULL
    side_by_side.slot = NULL


cdef bint gather_rows(CodeRows* to, const Column* columns, const int64_t[::1] is_used,
                      const int64_t* rows, int64_t n) noexcept nogil:
    """Copy the codes of some rows; whether there are few enough codes, and memory.

    is_used : (n_columns,), not 0 for the columns that trees test
    """
    cdef int64_t n_columns = is_used.shape[0]
    cdef int64_t width = 0
    cdef int64_t j
    to.slot = <int32_t*>malloc((n_columns + 1) * sizeof(int32_t))
    if to.slot == NULL:
        return False
    for j in range(n_columns):
        to.slot[j] = <int32_t>width
        width += is_used[j] != 0
        if is_used[j] != 0 and (columns[j].n_codes >= MISSING or width >= MOST_SLOTS):
            free_rows(to)
            return False
    to.width = width
    to.codes = <uint16_t*>malloc((n * width + 1) * sizeof(uint16_t))
    if to.codes == NULL:
        free_rows(to)
        return False
    copy_codes(to, columns, is_used, rows, n)
    return True


cdef void copy_codes(CodeRows* to, const Column* columns, const int64_t[::1] is_used,
                     const int64_t* rows, int64_t n) noexcept nogil:
    cdef int64_t width = to.width
    cdef int64_t begin = 0
    cdef int64_t end, i, j
    cdef const uint8_t* narrow
    cdef uint16_t* own
    while begin < n:
        end = min(begin + TOGETHER, n)
        for j in range(is_used.shape[0]):
            if is_used[j] == 0:
                continue
            own = to.codes + to.slot[j]
            if columns[j].storage == STORED_U8:
                narrow = <const uint8_t*>columns[j].codes
                for i in range(begin, end):
                    own[i * width] = <uint16_t>(<int32_t>narrow[rows[i]] - 1)
            else:
                for i in range(begin, end):
                    own[i * width] = <uint16_t>(code_at(&columns[j], rows[i]) - 1)
        begin = end


cdef inline bint fill_rule(Rule* rule, const Grown* tree, int64_t i, const Column* column,
                           int32_t slot, const int32_t* number) noexcept nogil:
    """Pack node i; whether it is a rule of one word."""
    cdef bint missing_left = tree.missing_left[i] != 0
    cdef uint32_t code
    rule.bits = 0
    rule.child[0] = number[tree.right[i]]
    rule.child[1] = number[tree.left[i]]
    rule.slot = <uint16_t>slot
    rule.low = rule.limit = rule.kind = 0
    if tree.test[i] == IN_SUBSET:
        if column.n_codes > MOST_CATEGORIES or not 0 <= tree.subset[i] < tree.n_words:
            return False
        rule.bits = tree.words[tree.subset[i]] >> 1 | <uint64_t>missing_left << MOST_CATEGORIES
        return True
    code = min(tree.code[i], column.n_ordered)
    if tree.test[i] == ABOVE:
        rule.low = <uint16_t>code
        rule.limit = <uint16_t>(column.n_ordered - code)
        return not missing_left
    rule.low = MISSING if missing_left else 0
    rule.limit = <uint16_t>(code + missing_left)
    return True


cdef bint leaves_by_rules(const CodeRows* side_by_side, const Column* columns, const Grown* tree,
                          const int32_t* number, const int32_t* inner, int64_t n_inner, int64_t n,
                          Py_ssize_t* leaf) noexcept nogil:
    """OUT leaves of all rows; False where they have to walk otherwise, or there is no memory.

    number, inner : as `number_nodes` has them, leaves by their nodes
    """
    cdef Rule* rules = <Rule*>malloc((n_inner + 1) * sizeof(Rule))
    cdef int32_t[TOGETHER] found
    cdef ForestRows walking
    cdef int64_t begin = 0
    cdef int64_t k = 0
    cdef int64_t i, some, column
    cdef bint is_done = rules != NULL
    while is_done and k < n_inner:
        column = tree.feature[inner[k]]
        is_done = fill_rule(&rules[k], tree, inner[k], columns + column,
                            side_by_side.slot[column], number)
        k += 1
    if is_done:
        walking.nodes, walking.rules, walking.words = NULL, rules, NULL
        walking.root, walking.leaf, walking.width = number[0], found, side_by_side.width
        while begin < n:
            some = min(n - begin, <int64_t>TOGETHER)
            walking.codes = side_by_side.codes + begin * side_by_side.width
            walk(&walking, some, NARROW)
            for i in range(some):
                leaf[begin + i] = found[i]
            begin += some
    free(rules)
    return is_done
