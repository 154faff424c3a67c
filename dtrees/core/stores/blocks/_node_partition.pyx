"""The rows of a node in one block go to its two children.

Training sets share a node as long as their tests look at the same column, so a row may belong to
some of the sets only. Rows of the same sets are of one *combination*, which is a number of their
mask. A row goes to both children where the sets differ, to each with the sets that sent it::

    rows             12  13  17  20  31 ...      ascending
    combination       0   1   0   2   1 ...      masks[combination]: a bit for each set
    code              4   0   4   9   3 ...      of the column of the tests
                      v
    sides[combination, code]                     combination on the left, and on the right

Sides are computed once for each combination and code. O(rows), O(rows + stored) for a sparse
column.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from dtrees.core.data._columns cimport read_codes
from dtrees.core.data._memory cimport claim, claim_zeros
from dtrees.core.stores._dataset cimport Dataset

cdef enum:
    NOBODY = -1             # no set sends a row to a side
    UNKNOWN = -2
    FIRST_ROOM = 64         # of combinations
    MOST_COMBINATIONS = 1 << 16


# ---------------------------------------------------------------------------------------------
# combinations: masks get numbers as they come

cdef struct Combinations:
    # Masks by number, and numbers by mask: open addressing.
    uint64_t* masks
    int64_t count
    uint64_t* keys          # 0: empty; no combination has nobody
    uint16_t* numbers
    int64_t size            # a power of two


cdef bint begin_combinations(Combinations* combinations, int64_t size) noexcept nogil:
    """Room for half of so many numbers; False where there is none. size : a power of two"""
    memset(combinations, 0, sizeof(Combinations))
    combinations.size = size
    return (claim(<void**>&combinations.masks, size * sizeof(uint64_t))
            and claim_zeros(<void**>&combinations.keys, size * sizeof(uint64_t))
            and claim(<void**>&combinations.numbers, size * sizeof(uint16_t)))


cdef void free_combinations(Combinations* combinations) noexcept nogil:
    free(combinations.masks)
    free(combinations.keys)
    free(combinations.numbers)


cdef inline int64_t slot_of(const Combinations* combinations, uint64_t mask) noexcept nogil:
    cdef int64_t last = combinations.size - 1
    cdef int64_t at = <int64_t>((mask * <uint64_t>0x9E3779B97F4A7C15) >> 40) & last
    while combinations.keys[at] != 0 and combinations.keys[at] != mask:
        at = (at + 1) & last
    return at


cdef bint widen_combinations(Combinations* combinations) noexcept nogil:
    """Twice the room; False where there is none."""
    cdef Combinations wide
    cdef int64_t k, at
    if not begin_combinations(&wide, 2 * combinations.size):
        free_combinations(&wide)
        return False
    for k in range(combinations.count):
        at = slot_of(&wide, combinations.masks[k])
        wide.masks[k] = wide.keys[at] = combinations.masks[k]
        wide.numbers[at] = <uint16_t>k
    wide.count = combinations.count
    free_combinations(combinations)
    combinations[0] = wide
    return True


cdef inline int64_t number_of(Combinations* combinations, uint64_t mask) noexcept nogil:
    """The number of a mask, which gets one when it is new; -1 when there are too many."""
    cdef int64_t at = slot_of(combinations, mask)
    if combinations.keys[at] == mask:
        return combinations.numbers[at]
    if combinations.count == MOST_COMBINATIONS:
        return -1
    if 2 * combinations.count >= combinations.size:
        if not widen_combinations(combinations):
            return -1
        at = slot_of(combinations, mask)
    combinations.keys[at] = mask
    combinations.masks[combinations.count] = mask
    combinations.numbers[at] = <uint16_t>combinations.count
    combinations.count += 1
    return combinations.count - 1


# ---------------------------------------------------------------------------------------------
# partition

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
        cdef uint64_t[::1] masks = np.zeros(max(self.masks.count, 1), dtype=np.uint64)
        cdef int64_t k
        arrays = [None if each is None else np.asarray(each)[:self.out.n].copy()
                  for each in self.arrays]
        for k in range(self.masks.count):
            masks[k] = self.masks.masks[k]
        return *arrays, np.asarray(masks)


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
