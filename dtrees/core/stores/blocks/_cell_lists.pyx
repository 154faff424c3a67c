"""Cells of histograms that are added up one after the other, and listed.

Rows come in the order of cells. Training sets of a node share most of its rows, so a number is
listed once for all sets that have it, with a bit for each (`_stored_lists`)::

    cell    row, combination of sets        list    place   value   who
    7       3, 0      9, 2      4, 0                7       2       0 1 2
                                                    7       1         1 2
    8       1, 0                                    8       1       0 1 2

O(rows + numbers of the list).
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free

from dtrees.core.data._bits cimport count_bits, trailing_zeros
from dtrees.core.data._memory cimport claim_zeros
from dtrees.core.histogram._layout cimport Layout
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.blocks._node_counts cimport layout_of_node, write_statistics
from dtrees.core.stores.blocks._stored_lists cimport append, arrays_of


cdef class CellLists:
    """The list of a node that has a row and is asked for a set, at least.

    Parameters
    ----------
    dataset : Dataset
        Of the rows as they are, without bags.
    node : NodeRows
    members : int
        A bit for each of the sets that are asked for.
    """

    def __cinit__(self, Dataset dataset, node, uint64_t members):
        cdef const uint32_t[::1] rows = node.rows
        cdef const uint16_t[::1] times = node.times
        cdef const uint16_t[::1] combination = node.combination
        cdef int64_t n = len(rows)
        cdef int64_t[::1] weight = np.empty(n, dtype=np.int64)
        cdef int64_t[::1] target = np.empty(n, dtype=np.int64)
        cdef const uint16_t* times_of = NULL
        cdef Layout layout = layout_of_node(dataset, node)
        cdef Cells* c = &self.cells
        parts, number = np.unique(sets_of(node.masks, members), return_inverse=True)
        has_nobody = parts[0] == 0
        cdef const int32_t[::1] part_of = number.astype(np.int32) - np.int32(has_nobody)
        cdef const uint64_t[::1] who = parts[1 if has_nobody else 0:]
        cdef int64_t n_parts = max(1, len(who))
        if times is not None:
            times_of = &times[0]
        write_statistics(&dataset.of_row, layout.kind, &rows[0], times_of, n, &weight[0],
                         &target[0])
        self.arrays = [weight, target, combination, part_of, who]
        c.kind = layout.kind
        c.n_words = layout.n_words
        c.width = (layout.n_words + 63) // 64
        c.weight = &weight[0]
        c.target = &target[0]
        if combination is not None:
            c.combination = &combination[0]
        c.part_of = &part_of[0]
        if len(who) > 0:
            c.who = &who[0]
        c.place = -1
        c.numbers.has_who = count_bits(members) > 1
        if not (claim_zeros(<void**>&c.words, n_parts * c.n_words * sizeof(int64_t))
                and claim_zeros(<void**>&c.used, n_parts * c.width * sizeof(uint64_t))
                and claim_zeros(<void**>&c.seen, n_parts * sizeof(int32_t))
                and claim_zeros(<void**>&c.is_seen, n_parts * sizeof(bint))):
            raise MemoryError

    def __dealloc__(self):
        free(self.cells.numbers.place)
        free(self.cells.numbers.value)
        free(self.cells.numbers.who)
        free(self.cells.words)
        free(self.cells.used)
        free(self.cells.seen)
        free(self.cells.is_seen)

    cdef found(self):
        """The list, once all cells are over: places, values and who has them."""
        return arrays_of(&self.cells.numbers)


cdef sets_of(const uint64_t[::1] masks, uint64_t members):
    """By combination a bit for each of the sets that are asked for, numbered from 0 on."""
    cdef uint64_t[::1] found = np.zeros(len(masks), dtype=np.uint64)
    cdef int64_t k
    cdef uint64_t bits
    for k in range(len(masks)):
        bits = masks[k] & members
        while bits != 0:
            found[k] |= <uint64_t>1 << count_bits(members & ((bits & -bits) - 1))
            bits &= bits - 1
    return np.asarray(found)


cdef bint end_cell(Cells* c) noexcept nogil:
    """Write the cell that is added up to the list; False without memory."""
    cdef int64_t t, i
    cdef uint64_t bits
    if c.n_seen > 1:
        sort_seen(c)
    for t in range(c.width if c.n_seen > 0 else 0):
        bits = 0
        for i in range(c.n_seen):
            bits |= c.used[c.seen[i] * c.width + t]
            c.used[c.seen[i] * c.width + t] = 0
        while bits != 0:
            if not list_word(c, 64 * t + trailing_zeros(bits)):
                return False
            bits &= bits - 1
    for i in range(c.n_seen):
        c.is_seen[c.seen[i]] = False
    c.n_seen = 0
    return True


cdef void sort_seen(Cells* c) noexcept nogil:
    """Parts ascend, as do their sets as numbers."""
    cdef int64_t i, k
    cdef int32_t part
    for i in range(1, c.n_seen):
        part = c.seen[i]
        k = i
        while k > 0 and c.seen[k - 1] > part:
            c.seen[k] = c.seen[k - 1]
            k -= 1
        c.seen[k] = part


cdef bint list_word(Cells* c, int64_t w) noexcept nogil:
    """Write a word of all parts that have rows in the cell."""
    cdef int64_t i
    cdef int64_t* word
    for i in range(c.n_seen):
        word = c.words + c.seen[i] * c.n_words + w
        if not append(&c.numbers, c.place + w, word[0], c.who[c.seen[i]]):
            return False
        word[0] = 0
    return True
