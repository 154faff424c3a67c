"""Histograms of a column by cell, and what a member of the node has of them.

    cells      | H0 | H1 | ... | Hk |         counted: of dense columns, or of entries
    all          H0 + H1 + ... + Hk
    member i     all - what it lacks + what it has of the rows that only some have

Sums are integers, so nothing is lost.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport Column
from dtrees.core.data._memory cimport claim
from dtrees.core.histogram._layout cimport add_words, subtract_words
from dtrees.core.search._bins cimport bins_of_histogram, weigh_bins
from dtrees.core.search._search cimport Search
from dtrees.core.stores.shared._shared_histogram cimport (
    are_beside, count_rows, count_some, numbers_of_some
)
from dtrees.core.stores.shared._shared_nodes cimport SharedNode
from dtrees.core.stores.shared._shared_state cimport SharedStore, class_weights


cdef bint reserve_blocks(SharedStore* s, const SharedNode* node, int64_t width) noexcept nogil:
    """Histograms of so many codes, with zeros in those of the cells; False without memory."""
    cdef int n_blocks = node.n_cells + 2 + 2 * node.n_members + 4
    cdef int64_t size = width * s.counting.layout.n_words
    s.counting.size = size
    if n_blocks * size > s.n_scratch:
        s.n_scratch = 0
        if not claim(<void**>&s.histograms, n_blocks * size * sizeof(int64_t)):
            s.store.out_of_memory = True
            return False
        s.n_scratch = n_blocks * size
    memset(s.histograms, 0, (node.n_cells + 3) * size * sizeof(int64_t))
    return True


cdef void combine_cells(SharedStore* s, const SharedNode* node) noexcept nogil:
    """Add the histograms of the cells up, and those that a member lacks; `more` gets zeros."""
    cdef int64_t size = s.counting.size
    cdef int64_t* block = s.histograms + node.n_cells * size
    cdef int64_t n_more
    cdef int c, m, n_lacking
    s.all = block
    for c in range(node.n_cells):
        add_words(block, s.histograms + c * size, size)
    block += size
    s.own = block
    block += size
    for m in range(node.n_members):
        s.lacking[m] = block  # nothing
    block += size
    for m in range(node.n_members):
        n_lacking = 0
        for c in range(node.n_cells):
            if not node.without[c] >> m & 1:
                continue
            n_lacking += 1
            if n_lacking == 1:
                s.lacking[m] = s.histograms + c * size
                continue
            if n_lacking == 2:
                memcpy(block, s.lacking[m], size * sizeof(int64_t))
                s.lacking[m] = block
                block += size
            add_words(block - size, s.histograms + c * size, size)
    s.more = NULL
    s.beside = are_beside(&s.counting)
    if node.n_some > 0:
        n_more = size * (numbers_of_some(node) if s.beside else node.n_members)
        memset(block, 0, n_more * sizeof(int64_t))
        s.more = block


cdef bint count_by_cell(SharedStore* s, const SharedNode* node, const Column* column,
                        int64_t width) noexcept nogil:
    """Histograms of a column, cell by cell, of so many codes; False without memory."""
    if not reserve_blocks(s, node, width):
        return False
    count_rows(node, column, &s.counting, s.histograms)
    combine_cells(s, node)
    if s.more != NULL:
        count_some(node, column, &s.counting, s.more)
    return True


cdef void bins_of_member(SharedStore* s, Search* q, const SharedNode* node, int member,
                         int64_t width) noexcept nogil:
    """The codes that occur in the rows of a member, as bins of its search."""
    cdef int64_t size = s.counting.size
    cdef int64_t step = numbers_of_some(node)
    cdef int64_t i
    memcpy(s.own, s.all, size * sizeof(int64_t))
    subtract_words(s.own, s.lacking[member], size)
    if s.more != NULL and s.beside:
        for i in range(size):
            s.own[i] += s.more[i * step + member]
    elif s.more != NULL:
        add_words(s.own, s.more + member * size, size)
    bins_of_histogram(q, &s.counting.layout, s.own, width, s.code)
    if s.of_class != NULL:
        weigh_bins(q, class_weights(s, node, member))
    s.store.out_of_memory |= q.out_of_memory
