"""Codes of columns by their distinct values, or by cuts where these are too many.

Rows that have been sorted to count the values of a column are in the order of its codes, too: where
all rows are in the sample, cuts and codes take one more look at each of them.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from dtrees.coding._cuts cimport cut_values, quantiles
from dtrees.coding._keys cimport code_t, value_t
from dtrees.coding._rank cimport (
    CODED, INFINITE, SORT, TOO_MANY, Ranked, Scratch, lay_out, rank, sort_rows, write_codes,
)

import numpy as np

STATUS_TOO_MANY = TOO_MANY
STATUS_INFINITE = INFINITE


def scratch_bytes(int64_t n_rows):
    """How much scratch the coding of a column takes; pages that are not touched cost nothing."""
    cdef Scratch scratch
    return lay_out(&scratch, n_rows, NULL)


cdef struct Sampled:
    const int64_t* rows     # in ascending order; NULL: all
    const int64_t* weights  # of all rows; NULL: one
    int64_t n


def rank_columns(const value_t[:, ::1] values, int64_t max_bins, const int64_t[::1] columns,
                 uint8_t[::1] room, blocks, value_t[:, ::1] low, value_t[:, ::1] high,
                 int64_t[::1] n_codes, uint8_t[::1] status, uint8_t[::1] is_binned,
                 const int64_t[::1] rows=None, const int64_t[::1] weights=None,
                 bint cuts_missing=True):
    """Codes of a tile; those of column p are written from ``p * n_rows`` on.

    Parameters
    ----------
    values : float32 or float64 (k, n_rows)
    max_bins : int
        Columns with more distinct values are cut at quantiles.
    columns : int64 (k,)
        Column k of the tile is column ``columns[k]`` of the table.
    room : uint8 (at least scratch_bytes(n_rows),)   SCRATCH
    blocks : tuple of uint8, uint16, uint32 and uint32 (n_columns * n_rows,)   OUT
        Codes of each width, and the rows of uint32 columns by (code, row), but for those that are
        cut. May be empty when no column can need them: ``min(max_bins, n_rows)`` decides.
    low, high : float32 or float64 (k, at least min(max_bins, n_rows))   OUT
        Least and greatest value of every code; the same array where no column can be cut.
    n_codes, status, is_binned : int64, uint8, uint8 (n_columns,)   OUT
        A column that was not cut, see below, has the status `STATUS_TOO_MANY` and no codes.
    rows : int64 or None, default=None
        That are sampled for cuts; None: all.
    weights : int64 (n_rows,) or None, default=None
        None: every row counts once.
    cuts_missing : bool, default=True
        False: columns with missing values have other samples, and are not cut.
    """
    cdef Scratch scratch
    cdef Ranked ranked
    cdef Sampled sample
    cdef int64_t n = values.shape[1], k, p
    cdef uint8_t[::1] u8 = blocks[0]
    cdef uint16_t[::1] u16 = blocks[1]
    cdef uint32_t[::1] u32 = blocks[2]
    cdef uint32_t[::1] order = blocks[3]
    cdef bint is_done = True
    if lay_out(&scratch, n, &room[0]) > len(room):
        raise ValueError("the room for scratch is too small")
    sample.rows = &rows[0] if rows is not None else NULL
    sample.weights = &weights[0] if weights is not None else NULL
    sample.n = n if rows is None else rows.shape[0]
    with nogil:
        for k in range(values.shape[0]):
            p = columns[k]
            rank(&values[k, 0], n, max_bins, &low[k, 0], &scratch, &ranked)
            status[p] = <uint8_t>ranked.status
            is_binned[p] = ranked.status == TOO_MANY
            if ranked.status == TOO_MANY and (cuts_missing or ranked.n_missing == 0):
                status[p] = CODED
                n_codes[p] = cut_sample(&values[k, 0], n, &sample, ranked.way == SORT, max_bins,
                                        &low[k, 0], &high[k, 0], &scratch)
                if n_codes[p] <= 0xFF:
                    is_done &= code_rows(&values[k, 0], n, &sample, &high[k, 0], n_codes[p],
                                         &scratch, &u8[p * n])
                elif n_codes[p] <= 0xFFFF:
                    is_done &= code_rows(&values[k, 0], n, &sample, &high[k, 0], n_codes[p],
                                         &scratch, &u16[p * n])
                else:
                    is_done &= code_rows(&values[k, 0], n, &sample, &high[k, 0], n_codes[p],
                                         &scratch, &u32[p * n])
                continue
            n_codes[p] = ranked.n_codes
            if ranked.status != CODED:
                continue
            if &high[k, 0] != &low[k, 0]:
                memcpy(&high[k, 0], &low[k, 0], ranked.n_codes * sizeof(value_t))
            if ranked.n_codes <= 0xFF:
                write_codes(n, &scratch, &ranked, &u8[p * n], NULL)
            elif ranked.n_codes <= 0xFFFF:
                write_codes(n, &scratch, &ranked, &u16[p * n], NULL)
            else:
                write_codes(n, &scratch, &ranked, &u32[p * n],
                            &order[p * n] if order.shape[0] else NULL)
    if not is_done:
        raise MemoryError("no memory for the scratch space of coding")


cdef int64_t cut_sample(const value_t* v, int64_t n, const Sampled* sample, bint is_sorted,
                        int64_t max_bins, value_t* low, value_t* high,
                        Scratch* scratch) noexcept nogil:
    """Least and greatest value of every code of a column; returns how many codes there are.

    is_sorted : `rank` has sorted the rows, and left missing ones out. The sampled values that are
    not missing are left in ``scratch.other``, ascending.
    """
    cdef value_t* ordered = <value_t*>scratch.other
    cdef value_t* sampled = <value_t*>scratch.table             # room for 16 bytes a row
    cdef int64_t* weights = <int64_t*>(scratch.table + 2 * n)
    cdef int64_t i, row, m = sample.n
    cdef const value_t* of_sample = v
    if sample.rows != NULL:
        for i in range(m):
            sampled[i] = v[sample.rows[i]]
        of_sample = sampled
        is_sorted = False
    if not is_sorted:
        m = sort_rows(of_sample, m, scratch)
    else:
        for i in range(n):
            m -= v[i] != v[i]
    for i in range(m):
        row = <uint32_t>scratch.pairs[i]
        ordered[i] = of_sample[row]
    if sample.weights != NULL:
        for i in range(m):
            row = <uint32_t>scratch.pairs[i]
            weights[i] = sample.weights[row if sample.rows == NULL else sample.rows[row]]
    return quantiles(ordered, weights if sample.weights != NULL else NULL, m, 0, max_bins, low,
                     high)


cdef bint code_rows(const value_t* v, int64_t n, const Sampled* sample, const value_t* high,
                    int64_t n_codes, Scratch* scratch, code_t* codes) noexcept nogil:
    """Codes of a column that `cut_sample` has cut; False without memory."""
    cdef const value_t* ordered = <const value_t*>scratch.other
    cdef int64_t i, m = n, code = 0
    if sample.rows != NULL:
        return cut_values(v, n, high, n_codes - 1, codes)
    for i in range(n):
        m -= v[i] != v[i]
    if m < n:
        memset(codes, 0, n * sizeof(code_t))
    for i in range(m):
        code += ordered[i] > high[code]
        codes[<uint32_t>scratch.pairs[i]] = <code_t>(code + 1)
    return True


def distinct_values(const value_t[::1] values, int64_t max_bins):
    """Distinct values, ascending, and the status of the column; no values but for status 0."""
    cdef Scratch scratch
    cdef Ranked ranked
    cdef int64_t n = values.shape[0]
    cdef uint8_t[::1] room = np.empty(scratch_bytes(n), dtype=np.uint8)
    found = np.empty(min(n, max_bins), dtype=np.float32 if value_t is float else np.float64)
    cdef value_t[::1] low = found
    lay_out(&scratch, n, &room[0])
    with nogil:
        rank(&values[0], n, max_bins, &low[0], &scratch, &ranked)
    return found[:ranked.n_codes], ranked.status


def rank_sparse(const value_t[::1] data, const int64_t[::1] indptr, int64_t first, int64_t last,
                int64_t n_rows, int64_t max_bins, out):
    """Codes of the stored values of sparse columns ``first .. last - 1``.

    Zero is a value of the column when a row is not stored or stores it.

    Parameters
    ----------
    data : float32 or float64 (nnz,)
    indptr : int64 (n_columns + 1,)
    out : `dtrees.coding.sparse_columns.SparseCodes`   OUT
    """
    cdef uint32_t[::1] codes = out.codes
    cdef value_t[::1] low = out.low
    cdef int64_t[::1] n_codes = out.n_codes
    cdef uint32_t[::1] fill = out.fill
    cdef uint8_t[::1] status = out.status
    cdef Scratch scratch
    cdef Ranked ranked
    cdef int64_t j, i, n, at, longest = 0, z, c
    cdef value_t* values
    cdef value_t[::1] own
    cdef uint8_t[::1] room
    cdef value_t* v
    for j in range(first, last):
        n = indptr[j + 1] - indptr[j]
        longest = n if n > longest else longest
    own = np.empty(longest + 1, dtype=np.float32 if value_t is float else np.float64)
    room = np.empty(scratch_bytes(longest), dtype=np.uint8)
    v = &own[0]
    lay_out(&scratch, longest, &room[0])
    with nogil:
        for j in range(first, last):
            at = indptr[j]
            n = indptr[j + 1] - at
            for i in range(n):
                v[i] = data[at + i] + <value_t>0.0
            values = &low[at + j]
            rank(v, n, max_bins, values, &scratch, &ranked)
            status[j] = <uint8_t>ranked.status
            n_codes[j] = ranked.n_codes
            fill[j] = 0
            if ranked.status != CODED:
                continue
            if n > 0:
                write_codes(n, &scratch, &ranked, &codes[at], NULL)
            # z values are below zero
            z = ranked.n_codes
            while z > 0 and values[z - 1] >= 0:
                z -= 1
            if z < ranked.n_codes and values[z] == 0:
                fill[j] = <uint32_t>(z + 1)
            elif n < n_rows:
                if ranked.n_codes == max_bins:
                    status[j] = TOO_MANY
                    continue
                for c in range(ranked.n_codes, z, -1):
                    values[c] = values[c - 1]
                values[z] = 0
                if z < ranked.n_codes:
                    for i in range(n):
                        codes[at + i] += codes[at + i] > <uint32_t>z
                fill[j] = <uint32_t>(z + 1)
                n_codes[j] = ranked.n_codes + 1
