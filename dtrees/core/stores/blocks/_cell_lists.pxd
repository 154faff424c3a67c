"""Cells that are added up one after the other, and listed; see _cell_lists.pyx."""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t

from dtrees.core.histogram._layout cimport CLASSES, COUNT, SUM, WEIGHTED_CLASSES, CellKind, add
from dtrees.core.stores.blocks._stored_lists cimport Numbers


cdef struct Cells:
    # Of a node: its rows, the cell that is added up, and the list.
    CellKind kind
    int64_t n_words             # of a cell
    int64_t width               # words of a bit for each of them
    const int64_t* weight       # by number of the row in the node
    const int64_t* target
    const uint16_t* combination     # or NULL
    const int32_t* part_of      # by combination: sets that are asked for and have it, by number;
    const uint64_t* who         # -1: none. A bit for each of these sets
    int64_t place               # of the cell that is added up; -1: none
    int32_t* seen               # parts that have rows in the cell
    int64_t n_seen
    int64_t* words              # (n_parts, n_words) of it,
    uint64_t* used              # (n_parts, width): a bit for each of them that was added to
    bint* is_seen
    Numbers numbers


cdef class CellLists:
    cdef Cells cells
    cdef list arrays            # whose memory it points to
    cdef found(self)


cdef bint end_cell(Cells* c) noexcept nogil


cdef inline bint take(Cells* c, int64_t cell, int64_t i) noexcept nogil:
    """Add row i of the node to a cell, whose cells come in ascending order; False: no memory."""
    cdef int32_t part = c.part_of[0 if c.combination == NULL else c.combination[i]]
    cdef int64_t word = 0
    cdef uint64_t first = 1
    if cell * c.n_words != c.place:
        if not end_cell(c):
            return False
        c.place = cell * c.n_words
    if part < 0:
        return True
    if not c.is_seen[part]:
        c.is_seen[part] = True
        c.seen[c.n_seen] = part
        c.n_seen += 1
    if c.kind == CLASSES:
        first = 0
        word = c.target[i]
    elif c.kind == WEIGHTED_CLASSES:
        word = 1 + c.target[i]
    elif c.kind == SUM:
        first = 3
    elif c.kind != COUNT:
        first = 7
    add(c.words + part * c.n_words, c.kind, c.weight[i], c.target[i])
    c.used[part * c.width] |= first
    c.used[part * c.width + (word >> 6)] |= <uint64_t>(word > 0 or first == 0) << (word & 63)
    return True
