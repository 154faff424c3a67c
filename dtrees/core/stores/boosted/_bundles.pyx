"""Bundles of columns: in a row, at most one of them has another code than nearly all rows.

Columns of indicators are such, and others of which most rows have the same code. A row adds to one
cell for all columns of a bundle, where it would add to one for each::

    row             0   1   2   3
    soil 1          0   1   0   0       cells  0        : no column has another code
    soil 2          0   0   0   1              1 .. 3   : codes 0, 1, 2 of soil 1
    rain            0   0   7   0              4 .. 6   : codes 0, 1, 2 of soil 2
    byte            0   3  14   6              7 .. 20  : codes of rain

Each column keeps all of its cells. That of its common code is what the node has beyond the others,
and is computed when the column is searched, as the fill cell of a sparse column is. Sums are
integers, so they are those that counting gives. LightGBM (Ke and others 2017, section 4) bundles
columns that exclude each other, too, and lets some rows be wrong; here none is.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

import numpy as np

from dtrees.core.data._columns cimport Column
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport NO_RANK, Totals

cdef enum:
    CELL = 2                # words
    MOST_CELLS = 256        # of a bundle, numbered by a byte
    MOST_OPEN = 32          # bundles that a column is tried with


cdef void mark_others(const Column* column, int64_t n_rows, uint64_t* bits) noexcept nogil:
    """A bit for each row that has another code than the common one, OUT."""
    cdef const uint8_t* codes = <const uint8_t*>column.codes
    cdef int64_t i
    memset(bits, 0, (n_rows // 64 + 1) * sizeof(uint64_t))
    for i in range(n_rows):
        bits[i >> 6] |= <uint64_t>(codes[i] != column.common) << (i & 63)


cdef bint are_apart(const uint64_t* bits, const uint64_t* others, int64_t n_words) noexcept nogil:
    cdef int64_t i
    for i in range(n_words):
        if bits[i] & others[i]:
            return False
    return True


cdef list bundles_of(const Column* columns, list narrow, int64_t n_rows):
    """Columns of 8 bits in bundles, in the order of their first columns; most are alone.

    A column joins the first bundle that it fits, of the last `MOST_OPEN`. O(rows x columns with a
    common code); columns that do not exclude each other are told apart by their first such row.
    """
    cdef int64_t n_words = n_rows // 64 + 1
    cdef list found = []
    cdef list open_ones = []        # (columns, cells, rows that are taken)
    cdef uint64_t[::1] own = np.empty(n_words, dtype=np.uint64)
    cdef uint64_t[::1] taken
    cdef int64_t n_cells, j, i, k
    for j in narrow:
        if columns[j].common == NO_RANK or not PATH_IS_ON("bundles"):
            found.append([j])
            continue
        n_cells = columns[j].n_codes + 1
        mark_others(columns + j, n_rows, &own[0])
        for k in range(len(open_ones)):
            taken = open_ones[k][2]
            if (open_ones[k][1] + n_cells <= MOST_CELLS
                    and are_apart(&own[0], &taken[0], n_words)):
                open_ones[k][0].append(j)
                open_ones[k][1] += n_cells
                for i in range(n_words):
                    taken[i] |= own[i]
                break
        else:
            columns_of_it = [j]
            found.append(columns_of_it)
            open_ones.append([columns_of_it, 1 + n_cells, np.array(own)])
            if len(open_ones) > MOST_OPEN:
                del open_ones[0]
    return found


cdef void add_codes(const Column* column, int64_t first, int64_t n_rows, uint8_t* codes,
                    int64_t stride) noexcept nogil:
    """Let rows have the cells of a column, where it has another code.

    first : cell of its code 0, in the bundle. codes : of row 0, `stride` bytes a row.
    """
    cdef const uint8_t* own = <const uint8_t*>column.codes
    cdef int64_t i
    for i in range(n_rows):
        if own[i] != column.common:
            codes[i * stride] = <uint8_t>(first + own[i])


cdef bint complete_bundled(const Column* column, const Totals* totals, int shift, int64_t min_rows,
                           int64_t* cells) noexcept nogil:
    """Compute the cell of the common code; whether the column may have a split in the node.

    It has none where fewer than `min_rows` rows have other codes. O(codes).
    """
    cdef int64_t* common = cells + CELL * <int64_t>column.common
    cdef uint64_t first = 0
    cdef uint64_t second = 0
    cdef int64_t code
    common[0] = 0
    common[1] = 0
    for code in range(<int64_t>column.n_codes + 1):
        first += <uint64_t>cells[CELL * code]
        second += <uint64_t>cells[CELL * code + 1]
    if <int64_t>(first >> shift) < min_rows:
        return False
    common[0] = <int64_t>((<uint64_t>totals.n << shift) + <uint64_t>totals.weight - first)
    common[1] = <int64_t>(<uint64_t>totals.target - second)
    return True
