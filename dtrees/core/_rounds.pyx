"""The rows of an open node in one block: parted between its children, and counted.

In a round (`dtrees.core.rounds`) a node's rows lie in several blocks, and each block does its part
of the work alone. Trees of several training sets share nodes as long as their tests look at the
same column, so a row may belong to some of the sets only. Rows of the same sets are of one *kind*
(`_kinds`)::

    rows     12  13  17  20  31 ...      ascending
    kind      0   1   0   2   1 ...      masks[kind]: a bit for each set that has the row here

A column is counted by kind, and a set has the sum of the kinds that it is in: integers, exact.
Blocks add up in the same way.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core._columns cimport STORED_U16, STORED_U32, STORED_U8, Column, code_t
from dtrees.core._criterion cimport moment_of
from dtrees.core._histogram cimport stride_of
from dtrees.core._kinds cimport Kinds, begin_kinds, free_kinds, masks_of, number_of
from dtrees.core._nodes cimport clear_totals
from dtrees.core._shard cimport Shard
from dtrees.core._structs cimport (
    CLASSES, COUNT, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode, Payload, Totals
)

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil
    int count_bits "__builtin_popcountll"(uint64_t) noexcept nogil

cdef enum:
    LIMB = 32               # bits of a part of a moment
    NOBODY = -1             # no set sends a row to a side
    UNKNOWN = -2

# Places of a node's sums: the moment in three parts, which add up without a carry.
N, WEIGHT, TARGET, MOMENT, LOWEST, HIGHEST, CLASS_0 = 0, 1, 2, 3, 6, 7, 8


# ---------------------------------------------------------------------------------------------
# parting

cdef void read_codes(const Column* column, const uint32_t* rows, int64_t n,
                     uint32_t* codes) noexcept nogil:
    """The codes of ascending rows, of a column of any width. O(n + stored)."""
    cdef int64_t i
    cdef int64_t at = 0
    cdef const uint32_t* wide = <const uint32_t*>column.codes
    if column.storage == STORED_U8:
        for i in range(n):
            codes[i] = (<const uint8_t*>column.codes)[rows[i]]
    elif column.storage == STORED_U16:
        for i in range(n):
            codes[i] = (<const uint16_t*>column.codes)[rows[i]]
    elif column.storage == STORED_U32:
        for i in range(n):
            codes[i] = wide[rows[i]]
    else:
        for i in range(n):
            while at < column.stored and <uint32_t>column.rows[at] < rows[i]:
                at += 1
            codes[i] = column.fill
            if at < column.stored and <uint32_t>column.rows[at] == rows[i]:
                codes[i] = wide[at]


def part(Shard shard, const uint32_t[::1] rows, const uint16_t[::1] times, int32_t column,
         const uint8_t[::1] goes_left):
    """Rows of a single set, parted by their codes.

    Parameters
    ----------
    shard : Shard
    rows : uint32 (n,), ascending
    times : uint16 (n,) or None
    column : int
    goes_left : uint8 (n_codes + 1,)

    Returns
    -------
    left, right : (rows, times)
    """
    cdef int64_t n = len(rows)
    cdef int64_t n_left = 0
    cdef int64_t n_right = 0
    cdef int64_t i
    cdef uint8_t is_left
    cdef bint counts = times is not None
    cdef uint32_t[::1] left = np.empty(n + 1, dtype=np.uint32)
    cdef uint32_t[::1] right = np.empty(n + 1, dtype=np.uint32)
    cdef uint32_t[::1] codes = np.empty(n + 1, dtype=np.uint32)
    cdef uint16_t[::1] left_times = np.empty(n + 1 if counts else 0, dtype=np.uint16)
    cdef uint16_t[::1] right_times = np.empty(n + 1 if counts else 0, dtype=np.uint16)
    if n > 0:
        with nogil:
            read_codes(shard.columns + column, &rows[0], n, &codes[0])
            for i in range(n):
                is_left = goes_left[codes[i]]
                left[n_left] = rows[i]
                right[n_right] = rows[i]
                if counts:
                    left_times[n_left] = times[i]
                    right_times[n_right] = times[i]
                n_left += is_left
                n_right += 1 - is_left
    return (
        (first(left, n_left), first(left_times, n_left) if counts else None),
        (first(right, n_right), first(right_times, n_right) if counts else None),
    )


cdef first(array, int64_t n):
    """A copy of the first numbers of an array."""
    return np.asarray(array)[:n].copy()


cdef inline bint part_kind(uint64_t who, uint64_t left_of, Kinds* left, Kinds* right,
                           int32_t* sides) noexcept nogil:
    """Numbers of the kinds that sets make left and right; False where there are too many."""
    cdef int64_t number = 0
    cdef bint fits = True
    sides[0] = sides[1] = NOBODY
    if who & left_of != 0:
        number = number_of(left, who & left_of)
        fits = number >= 0
        sides[0] = <int32_t>number if fits else 0
    if who & ~left_of != 0:
        number = number_of(right, who & ~left_of)
        fits &= number >= 0
        sides[1] = <int32_t>number if number >= 0 else 0
    return fits


def part_kinds(Shard shard, const uint32_t[::1] rows, const uint16_t[::1] times,
               const uint16_t[::1] kind, const uint64_t[::1] masks, int32_t column,
               const uint64_t[::1] left_of, uint64_t members):
    """Rows of several sets, parted by the tests of some of them, all on one column.

    A row goes to both children where the sets differ, to each with the sets that sent it.

    Parameters
    ----------
    shard, rows, times, column
        As for `part`.
    kind : uint16 (n,)
    masks : uint64 (n_kinds,)
    left_of : uint64 (n_codes + 1,)
        A bit for each set that sends a code left.
    members : int
        A bit for each of these sets.

    Returns
    -------
    left, right : (rows, times, kind, masks)

    Raises
    ------
    MemoryError
        There are more than 65,536 kinds, or no memory.
    """
    cdef int64_t n = len(rows)
    cdef int64_t n_left = 0
    cdef int64_t n_right = 0
    cdef int64_t n_codes = len(left_of)
    cdef int64_t i
    cdef int64_t at = 0
    cdef int32_t[2] sides
    cdef bint failed = False
    cdef bint counts = times is not None
    # what becomes of a kind and a code, once it is known; pays where there are many rows of each
    cdef bint is_known = len(masks) * n_codes <= n
    cdef int32_t[:, ::1] known = np.full((len(masks) * n_codes if is_known else 1, 2), UNKNOWN,
                                         dtype=np.int32)
    cdef uint32_t[::1] left = np.empty(n + 1, dtype=np.uint32)
    cdef uint32_t[::1] right = np.empty(n + 1, dtype=np.uint32)
    cdef uint16_t[::1] left_kind = np.empty(n + 1, dtype=np.uint16)
    cdef uint16_t[::1] right_kind = np.empty(n + 1, dtype=np.uint16)
    cdef uint16_t[::1] left_times = np.empty(n + 1 if counts else 0, dtype=np.uint16)
    cdef uint16_t[::1] right_times = np.empty(n + 1 if counts else 0, dtype=np.uint16)
    cdef uint32_t[::1] codes = np.empty(n + 1, dtype=np.uint32)
    cdef Kinds left_kinds
    cdef Kinds right_kinds
    memset(&left_kinds, 0, sizeof(Kinds))
    memset(&right_kinds, 0, sizeof(Kinds))
    try:
        with nogil:
            failed = not begin_kinds(&left_kinds) or not begin_kinds(&right_kinds)
            if n > 0 and not failed:
                read_codes(shard.columns + column, &rows[0], n, &codes[0])
                for i in range(n):
                    if is_known:
                        at = kind[i] * n_codes + codes[i]
                    if not is_known or known[at, 0] == UNKNOWN:
                        failed |= not part_kind(masks[kind[i]] & members, left_of[codes[i]],
                                                &left_kinds, &right_kinds, sides)
                        known[at, 0], known[at, 1] = sides[0], sides[1]
                    # without a branch, which the codes would not foretell
                    left[n_left] = rows[i]
                    right[n_right] = rows[i]
                    left_kind[n_left] = <uint16_t>known[at, 0]
                    right_kind[n_right] = <uint16_t>known[at, 1]
                    if counts:
                        left_times[n_left] = times[i]
                        right_times[n_right] = times[i]
                    n_left += known[at, 0] != NOBODY
                    n_right += known[at, 1] != NOBODY
        if failed:
            raise MemoryError("more than 65,536 combinations of training sets in a node")
        return (
            (first(left, n_left), first(left_times, n_left) if counts else None,
             first(left_kind, n_left), masks_of(&left_kinds)),
            (first(right, n_right), first(right_times, n_right) if counts else None,
             first(right_kind, n_right), masks_of(&right_kinds)),
        )
    finally:
        free_kinds(&left_kinds)
        free_kinds(&right_kinds)


# ---------------------------------------------------------------------------------------------
# counting

cdef inline void count_codes(const code_t* codes, const uint32_t* rows, const uint16_t* kind,
                             int64_t n, Mode mode, int64_t stride, int64_t size,
                             const int64_t* weight, const int64_t* target,
                             int64_t* cells) noexcept nogil:
    """Add rows to the cells of their codes, by kind.

    weight, target : of the rows, one behind the other; `target` is the class where rows are counted
    by class.
    """
    cdef int64_t i
    cdef int64_t* cell
    for i in range(n):
        cell = cells + <int64_t>codes[rows[i]] * stride
        if kind != NULL:
            cell += kind[i] * size
        if mode == COUNT:
            cell[0] += target[i]
        elif mode == SUM:
            cell[0] += 1
            cell[1] += target[i]
        elif mode == WEIGHTED_SUM:
            cell[0] += 1
            cell[1] += weight[i]
            cell[2] += target[i]
        elif mode == WEIGHTED_CLASSES:
            cell[0] += 1
            cell[1 + target[i]] += weight[i]
        else:
            cell[target[i]] += 1


cdef void count_in(const code_t* codes, const uint32_t* rows, const uint16_t* kind, int64_t n,
                   Mode mode, int64_t stride, int64_t size, const int64_t* weight,
                   const int64_t* target, int64_t* cells) noexcept nogil:
    """Pick the loop that was compiled for the mode."""
    if mode == COUNT:
        count_codes(codes, rows, kind, n, COUNT, 1, size, weight, target, cells)
    elif mode == SUM:
        count_codes(codes, rows, kind, n, SUM, 2, size, weight, target, cells)
    elif mode == WEIGHTED_SUM:
        if kind == NULL:
            count_codes(codes, rows, NULL, n, WEIGHTED_SUM, 3, size, weight, target, cells)
        else:
            count_codes(codes, rows, kind, n, WEIGHTED_SUM, 3, size, weight, target, cells)
    else:
        count_codes(codes, rows, kind, n, mode, stride, size, weight, target, cells)


cdef void gather(Shard shard, Mode mode, const uint32_t* rows, const uint16_t* times,
                 const int64_t* multiplier, int64_t n, int64_t* weight,
                 int64_t* target) noexcept nogil:
    """What each row adds, one behind the other."""
    cdef const Payload* payload = &shard.payload
    cdef int64_t i, w, row
    cdef int64_t many = 1
    for i in range(n):
        row = rows[i]
        w = 1 if payload.weight == NULL else payload.weight[row]
        if times != NULL:
            many = times[i]
            w *= many
        if multiplier != NULL:
            w *= multiplier[payload.label[row]]
        weight[i] = w
        if payload.label == NULL:
            target[i] = payload.target[row] * many
        elif mode == COUNT:
            target[i] = <int64_t>1 << 32 | payload.label[row]
        elif mode == WEIGHTED_SUM:
            target[i] = w * payload.label[row]
        else:
            target[i] = payload.label[row]


cdef Mode mode_of(Mode mode, bint weighs) noexcept nogil:
    """How rows are counted that also count a number of times."""
    if not weighs or mode == WEIGHTED_SUM or mode == WEIGHTED_CLASSES:
        return mode
    return WEIGHTED_CLASSES if mode == CLASSES else WEIGHTED_SUM


def count(Shard shard, const uint32_t[::1] rows, const uint16_t[::1] times,
          const uint16_t[::1] kind, const uint64_t[::1] masks, uint64_t members,
          const int32_t[::1] columns, const int64_t[::1] multiplier, double fixed_point):
    """What the rows of a node add up to, for some of its sets, and by code of some columns.

    Parameters
    ----------
    shard : Shard
        Of the rows as they are, without bags.
    rows : uint32 (n,), ascending
    times : uint16 (n,) or None
        How often each of them is in the bag; None: there are no bags.
    kind : uint16 (n,) or None
        None: one kind.
    masks : uint64 (n_kinds,)
    members : int
        A bit for each of the sets that are asked for.
    columns : int32 (k,)
    multiplier : int64 (n_classes,) or None
        Of the weight of each class, of a bag.
    fixed_point : float
        `Scale.fixed_point` of the tree, for moments that are logarithms.

    Returns
    -------
    sums : int64 (n_members, 8 + n_classes)
    histogram : int64 (n_members, cells of the columns)
        Column behind column.
    """
    cdef int64_t n = len(rows)
    cdef int64_t n_kinds = len(masks)
    cdef int64_t K = shard.plan.criterion.n_classes
    cdef Mode mode = mode_of(shard.plan.mode, times is not None or multiplier is not None)
    cdef int64_t stride = stride_of(mode, <int>K)
    cdef int n_members = count_bits(members)
    cdef int64_t n_cells = 0
    cdef int64_t most = 0
    cdef int64_t i, j, k, m, size
    cdef uint64_t bits
    for j in range(len(columns)):
        size = (shard.columns[columns[j]].n_codes + <int64_t>1) * stride
        n_cells += size
        most = max(most, size)
    cdef int64_t[:, ::1] sums = np.zeros((n_members, CLASS_0 + K), dtype=np.int64)
    cdef int64_t[:, ::1] histogram = np.zeros((n_members, n_cells), dtype=np.int64)
    sums[:, 6] = 0x7FFFFFFFFFFFFFFF
    sums[:, 7] = -0x7FFFFFFFFFFFFFFF
    found = np.asarray(sums), np.asarray(histogram)
    if n == 0 or n_members == 0:
        return found
    cdef bint is_alone = n_kinds == 1 and n_members == 1 and masks[0] & members != 0
    cdef int64_t[::1] weight = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] target = np.empty(n, dtype=np.int64)
    cdef uint32_t[::1] codes = np.empty(n, dtype=np.uint32)
    cdef uint32_t[::1] numbers = np.arange(n, dtype=np.uint32)
    cdef int64_t[::1] cells = np.empty(1 if is_alone else n_kinds * most + 1, dtype=np.int64)
    cdef Totals* totals = <Totals*>malloc(n_kinds * sizeof(Totals))
    cdef int64_t* classes = <int64_t*>calloc(n_kinds * K + 1, sizeof(int64_t))
    cdef const uint16_t* kind_of = NULL
    cdef const uint16_t* times_of = NULL
    cdef const int64_t* multiplier_of = NULL
    cdef const Column* column
    cdef int64_t* of_kind
    cdef int64_t start = 0
    if kind is not None:
        kind_of = &kind[0]
    if times is not None:
        times_of = &times[0]
    if multiplier is not None:
        multiplier_of = &multiplier[0]
    if totals == NULL or classes == NULL:
        free(totals)
        free(classes)
        raise MemoryError
    with nogil:
        gather(shard, mode, &rows[0], times_of, multiplier_of, n, &weight[0], &target[0])
        sum_kinds(shard, &rows[0], kind_of, n, &weight[0], &target[0], fixed_point, n_kinds,
                  totals, classes)
        for k in range(n_kinds):
            bits = masks[k] & members
            while bits != 0:
                m = count_bits(members & ((bits & -bits) - 1))
                bits &= bits - 1
                add_sums(&sums[m, 0], &totals[k], classes + k * K, K)
        for j in range(len(columns)):
            column = shard.columns + columns[j]
            size = (column.n_codes + <int64_t>1) * stride
            if is_alone:
                of_kind = &histogram[0, start]
            else:
                of_kind = &cells[0]
                memset(of_kind, 0, n_kinds * size * sizeof(int64_t))
            if column.storage == STORED_U8:
                count_in(<const uint8_t*>column.codes, &rows[0], kind_of, n, mode, stride, size,
                         &weight[0], &target[0], of_kind)
            elif column.storage == STORED_U16:
                count_in(<const uint16_t*>column.codes, &rows[0], kind_of, n, mode, stride, size,
                         &weight[0], &target[0], of_kind)
            elif column.storage == STORED_U32:
                count_in(<const uint32_t*>column.codes, &rows[0], kind_of, n, mode, stride, size,
                         &weight[0], &target[0], of_kind)
            else:
                read_codes(column, &rows[0], n, &codes[0])
                count_in(<const uint32_t*>&codes[0], &numbers[0], kind_of, n, mode, stride, size,
                         &weight[0], &target[0], of_kind)
            if not is_alone:
                for k in range(n_kinds):
                    bits = masks[k] & members
                    while bits != 0:
                        m = count_bits(members & ((bits & -bits) - 1))
                        bits &= bits - 1
                        for i in range(size):
                            histogram[m, start + i] += of_kind[k * size + i]
            start += size
    free(totals)
    free(classes)
    return found


cdef void sum_kinds(Shard shard, const uint32_t* rows, const uint16_t* kind, int64_t n,
                    const int64_t* weight, const int64_t* target, double fixed_point,
                    int64_t n_kinds, Totals* totals, int64_t* classes) noexcept nogil:
    """Sums of the rows of each kind. weight, target : as `gather` leaves them."""
    cdef const Payload* payload = &shard.payload
    cdef int64_t K = shard.plan.criterion.n_classes
    cdef int64_t i, k, y
    cdef Totals* t
    for k in range(n_kinds):
        clear_totals(&totals[k])
    for i in range(n):
        k = 0 if kind == NULL else kind[i]
        t = totals + k
        t.n += 1
        t.weight += weight[i]
        if K > 0:
            classes[k * K + payload.label[rows[i]]] += weight[i]
            continue
        y = payload.value[rows[i]]
        t.target += target[i]
        t.lowest = y if y < t.lowest else t.lowest
        t.highest = y if y > t.highest else t.highest
        t.moment += moment_of(shard.plan.criterion.impurity, fixed_point, weight[i], target[i], y)
    if K > 1:
        for k in range(n_kinds):
            totals[k].target = classes[k * K + 1]


cdef inline void add_sums(int64_t* sums, const Totals* totals, const int64_t* classes,
                          int64_t K) noexcept nogil:
    """Add the sums of a kind to those of a set."""
    cdef int64_t k
    sums[0] += totals.n
    sums[1] += totals.weight
    sums[2] += totals.target
    sums[3] += <int64_t>(totals.moment >> 2 * LIMB)
    sums[4] += <int64_t>(<uint32_t>(totals.moment >> LIMB))
    sums[5] += <int64_t>(<uint32_t>totals.moment)
    sums[6] = totals.lowest if totals.lowest < sums[6] else sums[6]
    sums[7] = totals.highest if totals.highest > sums[7] else sums[7]
    for k in range(K):
        sums[8 + k] += classes[k]
