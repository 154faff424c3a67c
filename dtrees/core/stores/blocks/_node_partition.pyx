"""The rows of a node in one block go to its two children.

Training sets share a node as long as their tests look at the same column, so a row may belong to
some of the sets only. Rows of the same sets are of one *combination* (`_combinations`). A row goes
to both children where the sets differ, to each with the sets that sent it::

    rows             12  13  17  20  31 ...      ascending
    combination       0   1   0   2   1 ...      masks[combination]: a bit for each set
    code              4   0   4   9   3 ...      of the column of the tests
                      v
    sides[combination, code]                     combination on the left, and on the right

Sides are computed once for each combination and code. O(rows), O(rows + stored) for a sparse
column.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._columns cimport STORED_U16, STORED_U32, STORED_U8, Column, next_code
from dtrees.core.membership._combinations cimport (
    MOST_COMBINATIONS, Combinations, begin_combinations, free_combinations, masks_of, number_of
)
from dtrees.core.stores._dataset cimport Dataset

cdef enum:
    NOBODY = -1             # no set sends a row to a side
    UNKNOWN = -2
    FIRST_ROOM = 64         # of combinations


cdef struct Rows:
    # Of a node; times and combination are NULL where there are none.
    uint32_t* rows
    uint16_t* times
    uint16_t* combination
    int64_t n


cdef class Child:
    """Rows of a child, with room for all rows of its parent and one more."""
    cdef object arrays
    cdef Rows out
    cdef Combinations masks

    def __cinit__(self, int64_t n, bint has_times, bint is_shared):
        cdef uint32_t[::1] rows = np.empty(n + 1, dtype=np.uint32)
        cdef uint16_t[::1] times = np.empty(n + 1 if has_times else 1, dtype=np.uint16)
        cdef uint16_t[::1] combination = np.empty(n + 1 if is_shared else 1, dtype=np.uint16)
        self.arrays = (rows, times if has_times else None, combination if is_shared else None)
        self.out = Rows(&rows[0], &times[0], &combination[0], 0)
        if not begin_combinations(&self.masks, FIRST_ROOM):
            raise MemoryError

    def __dealloc__(self):
        free_combinations(&self.masks)

    cdef taken(self):
        """(rows, times, combination, masks), copies of what is used."""
        arrays = [None if each is None else np.asarray(each)[:self.out.n].copy()
                  for each in self.arrays]
        return *arrays, masks_of(&self.masks)


cdef struct Sides:
    # By combination and code: what the row's combination is on the left and on the right.
    int32_t* known          # pairs; of the row at hand only, where there is no table
    bint is_table
    int64_t n_codes
    const uint64_t* masks
    const uint64_t* left_of
    uint64_t members
    Combinations* left
    Combinations* right


def partition(Dataset dataset, node, int32_t column, const uint64_t[::1] left_of,
              uint64_t members, const uint32_t[::1] ends=None):
    """Partition the rows of a node by the tests of some sets, all on one column.

    Parameters
    ----------
    dataset : Dataset
    node : NodeRows
    column : int
    left_of : uint64 (n_codes + 1,), or (k,)
        A bit for each set that sends a code left.
    members : int
        A bit for each of these sets.
    ends : uint32 (k,) or None, default=None
        Last code of stretches of codes that the tests do not tell apart, ascending: `left_of` is
        by stretch then.

    Returns
    -------
    left, right : (rows, times, combination, masks)
        As the attributes of `NodeRows`.

    Raises
    ------
    MemoryError
        There are more than 65,536 combinations, or no memory.
    """
    cdef const uint32_t[::1] rows = node.rows
    cdef const uint16_t[::1] times = node.times
    cdef const uint16_t[::1] combination = node.combination
    cdef const uint64_t[::1] masks = node.masks
    cdef int64_t n = len(rows)
    cdef int64_t n_sides = len(masks) * len(left_of)
    cdef bint has_times = times is not None
    cdef bint is_shared = combination is not None
    cdef bint fits = True
    cdef Child left = Child(n, has_times, is_shared)
    cdef Child right = Child(n, has_times, is_shared)
    cdef uint32_t[::1] codes
    cdef int32_t[:, ::1] sides
    cdef Rows given
    cdef Sides found
    if n > 0:
        codes = np.empty(n, dtype=np.uint32)
        given = Rows(<uint32_t*>&rows[0], NULL, NULL, n)
        if has_times:
            given.times = <uint16_t*>&times[0]
        if is_shared:
            given.combination = <uint16_t*>&combination[0]
        # a table pays where there are many rows of a combination and a code
        sides = np.full((n_sides if n_sides <= n else 1, 2), UNKNOWN, dtype=np.int32)
        found = Sides(&sides[0, 0], n_sides <= n, len(left_of), &masks[0], &left_of[0], members,
                      &left.masks, &right.masks)
        with nogil:
            read_codes(dataset.columns + column, &rows[0], n, &codes[0])
            if ends is not None:
                number_stretches(ends, codes)
            fits = move_rows_of(&given, &codes[0], &found, &left.out, &right.out)
    if not fits and max(left.masks.count, right.masks.count) < MOST_COMBINATIONS:
        raise MemoryError
    if not fits:
        raise MemoryError("more than 65,536 combinations of training sets in a node")
    return left.taken(), right.taken()


cdef void number_stretches(const uint32_t[::1] ends, uint32_t[::1] codes) noexcept nogil:
    """Codes become the numbers of their stretches. O(codes x stretches): these are few."""
    cdef int64_t n = len(ends) - 1
    cdef int64_t i, k
    cdef uint32_t code, number
    for i in range(len(codes)):
        code = codes[i]
        number = 0
        for k in range(n):
            number += ends[k] < code
        codes[i] = number


cdef bint find_sides(Sides* sides, int64_t combination, uint32_t code,
                     int32_t* found) noexcept nogil:
    """Number the combinations that a row's sets make; False where there are too many."""
    cdef uint64_t who = sides.masks[combination] & sides.members
    cdef uint64_t left_of = sides.left_of[code]
    cdef int64_t number = 0
    cdef bint fits = True
    found[0] = found[1] = NOBODY
    if who & left_of != 0:
        number = number_of(sides.left, who & left_of)
        fits = number >= 0
        found[0] = <int32_t>number if fits else 0
    if who & ~left_of != 0:
        number = number_of(sides.right, who & ~left_of)
        fits &= number >= 0
        found[1] = <int32_t>number if number >= 0 else 0
    return fits


cdef inline void append(Rows* child, const Rows* given, int64_t i, int32_t side, bint has_times,
                        bint is_shared) noexcept nogil:
    """Write a row, and keep it if it is of the child: no branch, which codes would not foretell."""
    child.rows[child.n] = given.rows[i]
    if has_times:
        child.times[child.n] = given.times[i]
    if is_shared:
        child.combination[child.n] = <uint16_t>side
    child.n += side != NOBODY


cdef inline bint move_rows(const Rows* given, const uint32_t* codes, Sides* sides, Rows* to_left,
                           Rows* to_right, bint has_times, bint is_shared) noexcept nogil:
    """The last two arguments are constants where it is called."""
    cdef Rows left = to_left[0]
    cdef Rows right = to_right[0]
    cdef int32_t* known = sides.known
    cdef int32_t* found = known
    cdef int64_t n_codes = sides.n_codes
    cdef bint is_table = sides.is_table
    cdef int64_t i, combination = 0
    cdef bint fits = True
    if is_table and not is_shared:
        for i in range(n_codes):
            find_sides(sides, 0, <uint32_t>i, known + 2 * i)
    for i in range(given.n):
        if is_shared:
            combination = given.combination[i]
        if is_table:
            found = known + 2 * (combination * n_codes + codes[i])
        if not is_table or (is_shared and found[0] == UNKNOWN):
            fits &= find_sides(sides, combination, codes[i], found)
        append(&left, given, i, found[0], has_times, is_shared)
        append(&right, given, i, found[1], has_times, is_shared)
    to_left.n, to_right.n = left.n, right.n
    return fits


cdef bint move_rows_of(const Rows* given, const uint32_t* codes, Sides* sides, Rows* left,
                       Rows* right) noexcept nogil:
    """Pick the loop that was compiled for what rows have; False: too many combinations."""
    if given.times == NULL and given.combination == NULL:
        return move_rows(given, codes, sides, left, right, False, False)
    if given.combination == NULL:
        return move_rows(given, codes, sides, left, right, True, False)
    if given.times == NULL:
        return move_rows(given, codes, sides, left, right, False, True)
    return move_rows(given, codes, sides, left, right, True, True)


cdef void read_codes(const Column* column, const uint32_t* rows, int64_t n,
                     uint32_t* codes) noexcept nogil:
    """The codes of ascending rows, of a column of any width.

    A loop for each width (measured: .8 of the time of `code_at` for each row, 700,000 rows).
    """
    cdef int64_t i, at = 0
    if column.storage == STORED_U8:
        for i in range(n):
            codes[i] = (<const uint8_t*>column.codes)[rows[i]]
    elif column.storage == STORED_U16:
        for i in range(n):
            codes[i] = (<const uint16_t*>column.codes)[rows[i]]
    elif column.storage == STORED_U32:
        for i in range(n):
            codes[i] = (<const uint32_t*>column.codes)[rows[i]]
    else:
        for i in range(n):
            codes[i] = next_code(column, rows[i], &at)
