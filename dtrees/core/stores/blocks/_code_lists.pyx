"""What the rows of a node add up to by code, as lists: of dense columns of many codes.

A column may have as many codes as rows. So what is sent is what occurs, as for sparse columns
(`_stored_counts`), and where the node can tell in which intervals a split may lie
(`_code_bounds`), of the codes of these only::

    codes of the rows           7  3  9  3 12 ...
    those in alive intervals    7     9    12        rows of others are passed over
    sorted                      7: rows 1, sum 4;  9: ...        and which training sets have them

O(rows) for a column, and O(numbers of the lists).
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dtrees.coding._radix_sort cimport sort_pairs
from dtrees.core.data._bits cimport count_bits
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.blocks._cell_lists cimport CellLists, Cells, end_cell, take
from dtrees.core.stores.blocks._code_ways cimport cells_of, interval_of
from dtrees.core.stores.blocks._node_partition cimport read_codes


def list_codes(Dataset dataset, node, uint64_t members, const int32_t[::1] columns,
               const int64_t[::1] first, const uint8_t[::1] ways=None,
               const uint64_t[::1] alive=None):
    """The histograms of dense columns as lists.

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    node : NodeRows
    members : int
        A bit for each of the sets that are asked for.
    columns : int32 (k,)
        Ascending.
    first : int64 (n_columns + 1,)
        Cells of the columns before each one, if each code has one.
    ways, alive : uint8 (n_columns,), uint64 (n,), or None
        Intervals of the columns (`_code_ways`), and a bit for each whose codes are listed
        (`HistogramRequest`). None: all codes are.

    Returns
    -------
    places, values : int64 (n,)
    who : uint64 (n,) or None
        A list (`_stored_lists`), whose places are as of `_stored_counts`.

    Raises
    ------
    MemoryError
    """
    cdef const uint32_t[::1] rows = node.rows
    cdef int64_t n = len(rows)
    cdef CellLists lists
    cdef uint32_t[::1] codes
    cdef uint64_t[::1] pairs
    cdef const uint64_t* alive_of = NULL
    cdef uint8_t way = 0
    cdef bint fits
    cdef int64_t k, n_pairs
    cdef int32_t j
    if n == 0 or members == 0 or len(columns) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing.view(np.uint64) if count_bits(members) > 1 else None
    lists = CellLists(dataset, node, members)
    codes = np.empty(n, dtype=np.uint32)
    pairs = np.empty(2 * n, dtype=np.uint64)
    if alive is not None:
        alive_of = &alive[0]
    for k in range(len(columns)):
        j = columns[k]
        if alive is not None:
            way = ways[j]
        with nogil:
            read_codes(dataset.columns + j, &rows[0], n, &codes[0])
            n_pairs = choose_rows(codes, way, alive_of, &pairs[0])
            sort_pairs(&pairs[0], &pairs[n], n_pairs, bits_of(dataset.columns[j].n_codes))
            fits = list_sorted(&lists.cells, &pairs[0], n_pairs, first[j])
        if not fits:
            raise MemoryError
        if alive is not None:
            alive_of += cells_of(dataset.columns + j, way) // 64 + 1
    return lists.found()


cdef int bits_of(uint64_t largest) noexcept nogil:
    """Bits of a number."""
    cdef int found = 0
    while largest >> found != 0:
        found += 1
    return found


cdef int64_t choose_rows(const uint32_t[::1] codes, uint8_t way, const uint64_t* alive,
                         uint64_t* pairs) noexcept nogil:
    """Codes and numbers of the rows whose interval is alive; returns how many there are.

    alive : NULL: all are.
    """
    cdef int64_t n = 0
    cdef int64_t i, interval
    for i in range(len(codes)):
        pairs[n] = <uint64_t>codes[i] << 32 | <uint64_t>i
        if alive == NULL:
            n += 1
            continue
        interval = interval_of(codes[i], way)
        n += alive[interval >> 6] >> (interval & 63) & 1
    return n


cdef bint list_sorted(Cells* cells, const uint64_t* pairs, int64_t n,
                      int64_t first) noexcept nogil:
    """Add the rows of a column, sorted by code, to the lists; False without memory.

    first : cell of the column's code 0.
    """
    cdef int64_t i
    for i in range(n):
        if not take(cells, first + <int64_t>(pairs[i] >> 32), <int64_t><uint32_t>pairs[i]):
            return False
    return end_cell(cells)
