"""The rows of an open node in one block: partitioned between its children, and counted.

In a round (`dtrees.core.grow.rounds`) a node's rows lie in several blocks, and each block does its
part of the work alone. Trees of several training sets share nodes as long as their tests look at
the same column, so a row may belong to some of the sets only. Rows of the same sets are of one
*combination* (`_combinations`)::

    rows     12  13  17  20  31 ...      ascending
    combination      0   1   0   2   1 ...      masks[combination]: a bit for each set that has the
    row here

A column is counted by combination, and a set has the sum of the combinations that it is in:
integers, exact. Blocks add up in the same way.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core.data._bits cimport count_bits
from dtrees.core.data._columns cimport STORED_U16, STORED_U32, STORED_U8, Column, next_code
from dtrees.core.data._fixed_point cimport moment_of
from dtrees.core.data._structs cimport RowStatistics, Totals
from dtrees.core.membership._combinations cimport (
    Combinations, begin_combinations, free_combinations, masks_of, number_of
)
from dtrees.core.histogram._count cimport NodeRows, count_column
from dtrees.core.histogram._layout cimport (
    CLASSES, WEIGHTED_CLASSES, WEIGHTED_SUM, CellKind, Layout, add_words, encode, words_of
)
from dtrees.core.histogram._totals cimport clear_totals
from dtrees.core.stores._dataset cimport Dataset

cdef enum:
    LIMB = 32               # bits of a part of a moment
    NOBODY = -1             # no set sends a row to a side
    UNKNOWN = -2

# Places of a node's sums: the moment in three parts, which add up without a carry.
N, WEIGHT, TARGET, MOMENT, LOWEST, HIGHEST, CLASS_0 = 0, 1, 2, 3, 6, 7, 8


# ---------------------------------------------------------------------------------------------
# partitioning

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
            codes[i] = next_code(column, rows[i], &at)


def part(Dataset dataset, const uint32_t[::1] rows, const uint16_t[::1] times, int32_t column,
         const uint8_t[::1] goes_left):
    """Rows of a single set, partitioned by their codes.

    Parameters
    ----------
    dataset : Dataset
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
            read_codes(dataset.columns + column, &rows[0], n, &codes[0])
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


cdef inline bint part_combination(uint64_t who, uint64_t left_of, Combinations* left,
                                  Combinations* right, int32_t* sides) noexcept nogil:
    """Numbers of the combinations that sets make left and right; False where there are too many."""
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


def partition_shared(Dataset dataset, const uint32_t[::1] rows, const uint16_t[::1] times,
                     const uint16_t[::1] combination, const uint64_t[::1] masks, int32_t column,
                     const uint64_t[::1] left_of, uint64_t members):
    """Rows of several sets, partitioned by the tests of some of them, all on one column.

    A row goes to both children where the sets differ, to each with the sets that sent it.

    Parameters
    ----------
    dataset, rows, times, column
        As for `part`.
    combination : uint16 (n,)
    masks : uint64 (n_combinations,)
    left_of : uint64 (n_codes + 1,)
        A bit for each set that sends a code left.
    members : int
        A bit for each of these sets.

    Returns
    -------
    left, right : (rows, times, combination, masks)

    Raises
    ------
    MemoryError
        There are more than 65,536 combinations, or no memory.
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
    # what becomes of a combination and a code, once it is known; pays where there are many rows of
    # each
    cdef bint is_known = len(masks) * n_codes <= n
    cdef int32_t[:, ::1] known = np.full((len(masks) * n_codes if is_known else 1, 2), UNKNOWN,
                                         dtype=np.int32)
    cdef uint32_t[::1] left = np.empty(n + 1, dtype=np.uint32)
    cdef uint32_t[::1] right = np.empty(n + 1, dtype=np.uint32)
    cdef uint16_t[::1] left_combination = np.empty(n + 1, dtype=np.uint16)
    cdef uint16_t[::1] right_combination = np.empty(n + 1, dtype=np.uint16)
    cdef uint16_t[::1] left_times = np.empty(n + 1 if counts else 0, dtype=np.uint16)
    cdef uint16_t[::1] right_times = np.empty(n + 1 if counts else 0, dtype=np.uint16)
    cdef uint32_t[::1] codes = np.empty(n + 1, dtype=np.uint32)
    cdef Combinations left_masks
    cdef Combinations right_masks
    memset(&left_masks, 0, sizeof(Combinations))
    memset(&right_masks, 0, sizeof(Combinations))
    try:
        with nogil:
            failed = not begin_combinations(&left_masks) or not begin_combinations(&right_masks)
            if n > 0 and not failed:
                read_codes(dataset.columns + column, &rows[0], n, &codes[0])
                for i in range(n):
                    if is_known:
                        at = combination[i] * n_codes + codes[i]
                    if not is_known or known[at, 0] == UNKNOWN:
                        failed |= not part_combination(
                            masks[combination[i]] & members, left_of[codes[i]], &left_masks,
                            &right_masks, sides)
                        known[at, 0], known[at, 1] = sides[0], sides[1]
                    # without a branch, which the codes would not foretell
                    left[n_left] = rows[i]
                    right[n_right] = rows[i]
                    left_combination[n_left] = <uint16_t>known[at, 0]
                    right_combination[n_right] = <uint16_t>known[at, 1]
                    if counts:
                        left_times[n_left] = times[i]
                        right_times[n_right] = times[i]
                    n_left += known[at, 0] != NOBODY
                    n_right += known[at, 1] != NOBODY
        if failed:
            raise MemoryError("more than 65,536 combinations of training sets in a node")
        return (
            (first(left, n_left), first(left_times, n_left) if counts else None,
             first(left_combination, n_left), masks_of(&left_masks)),
            (first(right, n_right), first(right_times, n_right) if counts else None,
             first(right_combination, n_right), masks_of(&right_masks)),
        )
    finally:
        free_combinations(&left_masks)
        free_combinations(&right_masks)


# ---------------------------------------------------------------------------------------------
# counting

cdef void gather(Dataset dataset, CellKind kind, const uint32_t* rows, const uint16_t* times,
                 const int64_t* multiplier, int64_t n, int64_t* weight,
                 int64_t* target) noexcept nogil:
    """What each row adds, one behind the other."""
    cdef const RowStatistics* of_row = &dataset.of_row
    cdef int64_t i, w, row
    cdef int64_t many = 1
    for i in range(n):
        row = rows[i]
        w = 1 if of_row.weight == NULL else of_row.weight[row]
        if times != NULL:
            many = times[i]
            w *= many
        if multiplier != NULL:
            w *= multiplier[of_row.label[row]]
        weight[i] = w
        if of_row.label == NULL:
            target[i] = of_row.target[row] * many
        elif kind == WEIGHTED_SUM:
            target[i] = w * of_row.label[row]
        else:
            target[i] = encode(kind, w, of_row.label[row])


cdef CellKind weighted_kind(CellKind kind, bint weighs) noexcept nogil:
    """How rows are counted that also count a number of times."""
    if not weighs or kind == WEIGHTED_SUM or kind == WEIGHTED_CLASSES:
        return kind
    return WEIGHTED_CLASSES if kind == CLASSES else WEIGHTED_SUM


def count(Dataset dataset, const uint32_t[::1] rows, const uint16_t[::1] times,
          const uint16_t[::1] combination, const uint64_t[::1] masks, uint64_t members,
          const int32_t[::1] columns, const int64_t[::1] multiplier, double fixed_point):
    """What the rows of a node add up to, for some of its sets, and by code of some columns.

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    rows : uint32 (n,), ascending
    times : uint16 (n,) or None
        How often each of them is in the bag; None: there are no bags.
    combination : uint16 (n,) or None
        None: one combination.
    masks : uint64 (n_combinations,)
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
    cdef int64_t n_combinations = len(masks)
    cdef int64_t K = dataset.params.criterion.n_classes
    cdef int n_members = count_bits(members)
    cdef int64_t n_cells = 0
    cdef int64_t most = 0
    cdef int64_t j, size
    cdef Layout layout = dataset.params.layout
    layout.kind = weighted_kind(layout.kind, times is not None or multiplier is not None)
    layout.n_words = words_of(layout.kind, K)
    layout.fixed_point = fixed_point
    for j in range(len(columns)):
        size = (dataset.columns[columns[j]].n_codes + <int64_t>1) * layout.n_words
        n_cells += size
        most = max(most, size)
    cdef int64_t[:, ::1] sums = np.zeros((n_members, CLASS_0 + K), dtype=np.int64)
    cdef int64_t[:, ::1] histogram = np.zeros((n_members, n_cells), dtype=np.int64)
    sums[:, 6] = 0x7FFFFFFFFFFFFFFF
    sums[:, 7] = -0x7FFFFFFFFFFFFFFF
    found = np.asarray(sums), np.asarray(histogram)
    if n == 0 or n_members == 0:
        return found
    cdef bint is_alone = n_combinations == 1 and n_members == 1 and masks[0] & members != 0
    cdef int64_t[::1] weight = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] target = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] cells = np.empty(1 if is_alone else n_combinations * most + 1,
                                       dtype=np.int64)
    cdef const uint16_t* times_of = NULL
    cdef const int64_t* multiplier_of = NULL
    cdef NodeRows of_node
    cdef int64_t* to
    cdef int64_t start = 0
    memset(&of_node, 0, sizeof(NodeRows))
    of_node.n = n
    of_node.rows = &rows[0]
    of_node.weight = &weight[0]
    of_node.target = &target[0]
    if combination is not None:
        of_node.combination = &combination[0]
    if times is not None:
        times_of = &times[0]
    if multiplier is not None:
        multiplier_of = &multiplier[0]
    gather(dataset, layout.kind, &rows[0], times_of, multiplier_of, n, &weight[0], &target[0])
    sum_members(dataset, &of_node, masks, members, fixed_point, sums)
    with nogil:
        for j in range(len(columns)):
            of_node.size = ((dataset.columns[columns[j]].n_codes + <int64_t>1)
                            * layout.n_words)
            to = &histogram[0, start] if is_alone else &cells[0]
            if not is_alone:
                memset(to, 0, n_combinations * of_node.size * sizeof(int64_t))
            count_column(dataset.columns + columns[j], &of_node, &layout, to)
            if not is_alone:
                add_to_members(masks, members, to, of_node.size, histogram, start)
            start += of_node.size
    return found


cdef void add_to_members(const uint64_t[::1] masks, uint64_t members, const int64_t* cells,
                         int64_t size, int64_t[:, ::1] histogram, int64_t start) noexcept nogil:
    """Add the histogram of each combination to those of the sets that are in it."""
    cdef int64_t k, m
    cdef uint64_t bits
    for k in range(len(masks)):
        bits = masks[k] & members
        while bits != 0:
            m = count_bits(members & ((bits & -bits) - 1))
            bits &= bits - 1
            add_words(&histogram[m, start], cells + k * size, size)


cdef sum_members(Dataset dataset, const NodeRows* rows, const uint64_t[::1] masks, uint64_t members,
                 double fixed_point, int64_t[:, ::1] sums):
    """What the rows of a node add up to, by set."""
    cdef int64_t K = dataset.params.criterion.n_classes
    cdef int64_t n_combinations = len(masks)
    cdef Totals* totals = <Totals*>malloc(n_combinations * sizeof(Totals))
    cdef int64_t* classes = <int64_t*>calloc(n_combinations * K + 1, sizeof(int64_t))
    cdef int64_t k, m
    cdef uint64_t bits
    if totals == NULL or classes == NULL:
        free(totals)
        free(classes)
        raise MemoryError
    with nogil:
        sum_combinations(dataset, rows, fixed_point, n_combinations, totals, classes)
        for k in range(n_combinations):
            bits = masks[k] & members
            while bits != 0:
                m = count_bits(members & ((bits & -bits) - 1))
                bits &= bits - 1
                add_sums(&sums[m, 0], &totals[k], classes + k * K, K)
        free(totals)
        free(classes)


cdef void sum_combinations(Dataset dataset, const NodeRows* rows, double fixed_point,
                           int64_t n_combinations, Totals* totals,
                           int64_t* classes) noexcept nogil:
    """Sums of the rows of each combination."""
    cdef const RowStatistics* of_row = &dataset.of_row
    cdef int64_t K = dataset.params.criterion.n_classes
    cdef int64_t i, k, w, y
    cdef Totals* t
    for k in range(n_combinations):
        clear_totals(&totals[k])
    for i in range(rows.n):
        k = 0 if rows.combination == NULL else rows.combination[i]
        w = rows.weight[i]
        t = totals + k
        t.n += 1
        t.weight += w
        if K > 0:
            classes[k * K + of_row.label[rows.rows[i]]] += w
            continue
        y = of_row.value[rows.rows[i]]
        t.target += rows.target[i]
        t.lowest = y if y < t.lowest else t.lowest
        t.highest = y if y > t.highest else t.highest
        t.moment += moment_of(dataset.params.criterion.impurity, fixed_point, w,
                              rows.target[i], y)
    if K > 1:
        for k in range(n_combinations):
            totals[k].target = classes[k * K + 1]


cdef inline void add_sums(int64_t* sums, const Totals* totals, const int64_t* classes,
                          int64_t K) noexcept nogil:
    """Add the sums of a combination to those of a set."""
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
