"""What the rows of a node add up to by code, as lists: of dense columns of many codes.

A column may have as many codes as rows. So what is sent is what occurs, as for sparse columns
(`_stored_counts`), and where the node can tell in which intervals a split may lie
(`_code_bounds`), of the codes of these only::

    codes of the rows           7  3  9  3 12 ...
    those in alive intervals    7     9    12        rows of others are passed over
    sorted, by training set     7: rows 1, sum 4;  9: ...

O(rows), and O(k log k) for k rows in alive intervals.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dtrees.core.data._bits cimport count_bits
from dtrees.core.histogram._layout cimport Layout, add
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.blocks._code_ways cimport cells_of, interval_of
from dtrees.core.stores.blocks._node_counts cimport layout_of_node, write_statistics
from dtrees.core.stores.blocks._node_partition cimport read_codes

cpdef enum:
    AT_ONCE = 1 << 14       # codes that are added up before they are made lists


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
    list of (int64 (n,), int64 (n,))
        Places, ascending, and values, as of `_stored_counts`; a pair for each set.
    """
    cdef const uint32_t[::1] rows = node.rows
    cdef const uint16_t[::1] times = node.times
    cdef int64_t n = len(rows)
    cdef int n_members = count_bits(members)
    cdef Layout layout = layout_of_node(dataset, node)
    cdef int64_t[::1] weight = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] target = np.empty(n, dtype=np.int64)
    cdef uint32_t[::1] codes = np.empty(n, dtype=np.uint32)
    cdef uint32_t[::1] chosen
    cdef const uint16_t* times_of = NULL
    cdef int64_t used = 0
    cdef int64_t k, n_chosen
    cdef int32_t j
    found = [[] for _ in range(n_members)]
    if n > 0 and n_members > 0 and len(columns) > 0:
        if times is not None:
            times_of = &times[0]
        write_statistics(&dataset.of_row, layout.kind, &rows[0], times_of, n, &weight[0],
                         &target[0])
        lists_of = lists_of_rows(node, members)
    for k in range(len(columns) if n > 0 and n_members > 0 else 0):
        j = columns[k]
        with nogil:
            read_codes(dataset.columns + j, &rows[0], n, &codes[0])
        if alive is None:
            order = np.argsort(codes).astype(np.uint32)
        else:
            chosen = np.empty(n, dtype=np.uint32)
            n_chosen = choose_rows(codes, ways[j], &alive[used], &chosen[0])
            used += cells_of(dataset.columns + j, ways[j]) // 64 + 1
            numbers = np.asarray(chosen)[:n_chosen]
            order = numbers[np.argsort(np.asarray(codes)[numbers])]
        list_sorted(found, &layout, first[j], np.asarray(codes)[order], order, lists_of,
                    weight, target)
    nothing = np.zeros(0, dtype=np.int64)
    return [tuple(np.concatenate([nothing, *parts]) for parts in zip((nothing, nothing), *of_set))
            for of_set in found]


cdef lists_of_rows(node, uint64_t members):
    """For each row a bit for each list that it is in; uint64 (n,)."""
    masks = np.array([bits_of(mask, members) for mask in node.masks.tolist()], dtype=np.uint64)
    if node.combination is None:
        return np.full(len(node.rows), masks[0], dtype=np.uint64)
    return masks[node.combination]


cdef uint64_t bits_of(uint64_t mask, uint64_t members) noexcept:
    """The sets of a mask that are asked for, by their number among these."""
    cdef uint64_t found = 0
    cdef int number = 0
    while members != 0:
        if mask & members & -members:
            found |= <uint64_t>1 << number
        members &= members - 1
        number += 1
    return found


cdef int64_t choose_rows(const uint32_t[::1] codes, uint8_t way, const uint64_t* alive,
                         uint32_t* chosen) noexcept nogil:
    """Number the rows whose interval is alive; returns how many there are."""
    cdef int64_t n = 0
    cdef int64_t i, interval
    for i in range(len(codes)):
        interval = interval_of(codes[i], way)
        chosen[n] = <uint32_t>i
        n += alive[interval >> 6] >> (interval & 63) & 1
    return n


cdef list_sorted(list found, const Layout* layout, int64_t first, const uint32_t[::1] codes,
                 const uint32_t[::1] order, const uint64_t[::1] lists_of,
                 const int64_t[::1] weight, const int64_t[::1] target):
    """Add the lists of a column to those of each set.

    first : cell of the column's code 0. codes : of the rows, ascending. order : these rows.
    """
    cdef int64_t n_words = layout.n_words
    cdef int64_t[::1] starts = np.concatenate(
        [[0], np.flatnonzero(np.diff(codes)) + 1, [len(codes)]]).astype(np.int64)
    cdef int64_t n_codes = len(starts) - 1 if len(codes) > 0 else 0
    cdef int64_t[:, ::1] cells
    cdef int64_t start, m, end, k
    for start in range(0, n_codes, AT_ONCE):
        end = min(start + AT_ONCE, n_codes)
        cells = np.zeros((len(found), (end - start) * n_words), dtype=np.int64)
        with nogil:
            for k in range(start, end):
                add_rows(layout, order[starts[k]:starts[k + 1]], lists_of, weight, target,
                         cells[:, (k - start) * n_words:])
        own = first + np.asarray(codes)[np.asarray(starts)[start:end]].astype(np.int64)
        for m in range(len(found)):
            values = np.asarray(cells[m])
            used = np.flatnonzero(values)
            found[m].append((own[used // n_words] * n_words + used % n_words, values[used]))


cdef void add_rows(const Layout* layout, const uint32_t[:] order, const uint64_t[::1] lists_of,
                   const int64_t[::1] weight, const int64_t[::1] target,
                   int64_t[:, :] cells) noexcept nogil:
    """Add the rows of a code to its cell, of each list that they are in."""
    cdef int64_t i, m
    cdef uint64_t bits
    cdef uint32_t row
    for i in range(len(order)):
        row = order[i]
        bits = lists_of[row]
        while bits != 0:
            m = count_bits((bits & -bits) - 1)
            bits &= bits - 1
            add(&cells[m, 0], layout.kind, weight[row], target[row])
