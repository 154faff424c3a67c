"""The layout of statistics: what a row adds to a cell of a histogram, in 64-bit words.

    kind of cell       words                             serves
    COUNT              rows << 32 | rows of class 1                two classes, no weights
    SUM                rows, sum of targets                        regression, no weights
    WEIGHTED_SUM       rows, weight, weighted sum of targets       two classes or regression
    CLASSES            rows of each class                          three classes or more
    WEIGHTED_CLASSES   rows, weight of each class                  the same with weights
    OUTPUTS            rows, weight, a field of each output: the   several outputs
                         sum of targets, or the weight of each
                         class; output behind output
    GRADIENTS          rows << shift | hessian, gradient           boosting

    PACKED             rows << 42 | weight << 21 | weight of 1     two classes, small sums
    PAIRED             rows << 32 | weight, target                 WEIGHTED_SUM, smaller sums
    CLASSES_PAIRED     rows << 32 | weight, of each class          WEIGHTED_CLASSES, smaller sums

The last three (PACKED, PAIRED, CLASSES_PAIRED) are for cells whose sums fit their fields
(`LARGEST_FIELD`, `LARGEST_HALF`). Every
kind is linear: words of cells are added and subtracted, whatever they mean. `encode`, `add` and
`decode` know what they mean, and nothing else does.

`kind` is a constant in loops over rows, so that the compiler keeps one case of each function.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dtrees.core.data._structs cimport Impurity, RowStatistics

cdef enum CellKind:
    COUNT
    SUM
    WEIGHTED_SUM
    CLASSES
    WEIGHTED_CLASSES
    OUTPUTS
    PACKED
    PAIRED
    CLASSES_PAIRED
    GRADIENTS

cdef enum:
    FIELD = 21              # bits of a field of a packed row or cell
    LARGEST_FIELD = (1 << 21) - 1
    LARGEST_HALF = 0x7FFFFFFF
    LOW_HALF = 0xFFFFFFFF


cdef struct Layout:
    # Of all histograms of a growth.
    CellKind kind
    int n_classes           # 0 for regression; of several outputs: fields
    int64_t n_words         # of a cell
    Impurity impurity       # what the second moment of a node is made of
    double fixed_point
    # GRADIENTS: bits of the sum of hessians; absolute errors: `Criterion.shift_of_products`
    int shift
    int64_t to_next_output  # GRADIENTS: words from a histogram to that of the next output


cdef inline int64_t words_of(CellKind kind, int64_t n_classes) noexcept nogil:
    """Words of a cell."""
    if kind == COUNT or kind == PACKED:
        return 1
    if kind == SUM or kind == PAIRED or kind == GRADIENTS:
        return 2
    if kind == WEIGHTED_SUM:
        return 3
    if kind == WEIGHTED_CLASSES:
        return 1 + n_classes
    if kind == OUTPUTS:
        return 2 + n_classes
    return n_classes


cdef inline bint has_classes(CellKind kind) noexcept nogil:
    """Whether fields are summed, a weight per class, rather than one number per row."""
    return (kind == CLASSES or kind == WEIGHTED_CLASSES or kind == CLASSES_PAIRED
            or kind == OUTPUTS)


cdef inline bint has_weights(CellKind kind) noexcept nogil:
    """Whether rows add a weight of their own."""
    return kind != COUNT and kind != SUM and kind != CLASSES


cdef inline int64_t encode(CellKind kind, int64_t weight, int64_t target) noexcept nogil:
    """What `add` takes as the target of a row: in cells of one word, all that the row adds.

    target : the class, or the weighted target.
    """
    if kind == COUNT:
        return <int64_t>1 << 32 | target
    if kind == PACKED:
        return <int64_t>1 << 2 * FIELD | weight << FIELD | weight * target
    return target


cdef inline void add(int64_t* cell, CellKind kind, int64_t weight,
                     int64_t target) noexcept nogil:
    """Add a row to a cell; target : as `encode` gives it."""
    if kind == COUNT or kind == PACKED:
        cell[0] += target
    elif kind == SUM:
        cell[0] += 1
        cell[1] += target
    elif kind == WEIGHTED_SUM:
        cell[0] += 1
        cell[1] += weight
        cell[2] += target
    elif kind == CLASSES:
        cell[target] += 1
    elif kind == WEIGHTED_CLASSES:
        cell[0] += 1
        cell[1 + target] += weight
    elif kind == PAIRED:
        cell[0] += (<int64_t>1 << 32) + weight
        cell[1] += target
    else:
        cell[target] += (<int64_t>1 << 32) + weight


cdef inline void add_outputs(int64_t* fields, const RowStatistics* rows, int64_t row,
                             int64_t weight) noexcept nogil:
    """Several outputs: add a row of a weight to the fields."""
    cdef int64_t first = row * rows.n_outputs
    cdef int64_t o
    if rows.label == NULL:
        for o in range(rows.n_outputs):
            fields[o] += rows.target[first + o]
    elif rows.zero_one:
        for o in range(rows.n_outputs):
            fields[o] += weight & -<int64_t>rows.label[first + o]
    else:
        for o in range(rows.n_outputs):
            fields[rows.label[first + o]] += weight


cdef inline void add_row(int64_t* cell, CellKind kind, const RowStatistics* rows,
                         int64_t row) noexcept nogil:
    """Add a row to a cell, of one of the first six layouts."""
    cdef int64_t weight
    if kind == OUTPUTS:
        weight = 1 if rows.weight == NULL else rows.weight[row]
        cell[0] += 1
        cell[1] += weight
        add_outputs(cell + 2, rows, row, weight)
        return
    weight = rows.weight[row] if has_weights(kind) else 1
    if kind == SUM or kind == WEIGHTED_SUM:
        add(cell, kind, weight, rows.target[row])
    else:
        add(cell, kind, weight, encode(kind, weight, rows.label[row]))


cdef inline int64_t decode_gradients(const int64_t* cell, int shift, int64_t* hessian,
                                     int64_t* gradient) noexcept nogil:
    """Read a cell of GRADIENTS. Returns how many rows it has."""
    hessian[0] = cell[0] & ((<int64_t>1 << shift) - 1)
    gradient[0] = cell[1]
    return <int64_t>(<uint64_t>cell[0] >> shift)


cdef inline void add_words(int64_t* to, const int64_t* words, int64_t n) noexcept nogil:
    """Add cells, n words of them. Packed ones fill all 64 bits, so there is no sign."""
    cdef int64_t i
    for i in range(n):
        to[i] = <int64_t>(<uint64_t>to[i] + <uint64_t>words[i])


cdef inline void subtract_words(int64_t* to, const int64_t* words, int64_t n) noexcept nogil:
    """Subtract cells, n words of them; as `add_words`."""
    cdef int64_t i
    for i in range(n):
        to[i] = <int64_t>(<uint64_t>to[i] - <uint64_t>words[i])


cdef inline int64_t decode(const int64_t* cell, CellKind kind, int64_t n_classes,
                           int64_t* weight, int64_t* target) noexcept nogil:
    """Read a cell. Returns how many rows it has.

    target : weighted sum of the targets; fields where `has_classes`.
    """
    cdef int64_t sums = 0
    cdef int64_t k
    if kind == COUNT:
        target[0] = <uint32_t>cell[0]
        weight[0] = <int64_t>(<uint64_t>cell[0] >> 32)
        return weight[0]
    if kind == PACKED:
        target[0] = cell[0] & LARGEST_FIELD
        weight[0] = <int64_t>(<uint64_t>cell[0] >> FIELD) & LARGEST_FIELD
        return <int64_t>(<uint64_t>cell[0] >> 2 * FIELD)
    if kind == SUM:
        target[0] = cell[1]
        weight[0] = cell[0]
        return cell[0]
    if kind == WEIGHTED_SUM:
        target[0] = cell[2]
        weight[0] = cell[1]
        return cell[0]
    if kind == PAIRED:
        target[0] = cell[1]
        weight[0] = cell[0] & LOW_HALF
        return cell[0] >> 32
    if kind == OUTPUTS:
        for k in range(n_classes):
            target[k] = cell[2 + k]
        weight[0] = cell[1]
        return cell[0]
    if kind == WEIGHTED_CLASSES:
        for k in range(n_classes):
            target[k] = cell[1 + k]
            sums += cell[1 + k]
        weight[0] = sums
        return cell[0]
    if kind == CLASSES:
        for k in range(n_classes):
            target[k] = cell[k]
            sums += cell[k]
        weight[0] = sums
        return sums
    for k in range(n_classes):
        target[k] = cell[k] & LOW_HALF
        sums += cell[k]
    weight[0] = sums & LOW_HALF
    return sums >> 32
