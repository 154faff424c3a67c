"""Declarations of the search by bins; see _bins.pyx."""
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from dtrees.core.data._structs cimport PresortedFeature, entry_t
from dtrees.core.histogram._layout cimport PACKED, CellKind, Layout, decode, has_classes
from dtrees.core.search._search cimport Bins, Search

cdef bint reserve_bins(Search* q, int64_t count) noexcept nogil
cdef void bins_of_histogram(Search* q, const Layout* layout, const int64_t* cells,
                            int64_t n_cells, const uint32_t* code) noexcept nogil
cdef void weigh_bins(Search* q, const int64_t* of_class) noexcept nogil
cdef bint search_histogram(Search* q, const Layout* layout, const int64_t* cells,
                           int64_t n_codes, int32_t column, uint32_t last_ordered) noexcept nogil
cdef void bins_of_entries(Search* q, const entry_t* entries,
                          const PresortedFeature* feature) noexcept nogil
cdef void rest_to_bin(Search* q, int64_t rest) noexcept nogil
cdef void drop_bin(Search* q, int64_t gone) noexcept nogil
cdef void search_bins(Search* q, int32_t column, uint32_t last_ordered) noexcept nogil
cdef void keep_best(Search* q, int32_t column, int64_t first, int64_t last) noexcept nogil


cdef inline int64_t read_bin(Search* q, const int64_t* cell, CellKind kind, uint32_t code,
                             int64_t g) noexcept nogil:
    """Make a cell bin g; returns 1 if it has rows."""
    return read_cell(q, cell, kind, q.criterion.n_classes if has_classes(kind) else 0, code, g)


cdef inline int64_t read_cell(Search* q, const int64_t* cell, CellKind kind, int64_t n_classes,
                              uint32_t code, int64_t g) noexcept nogil:
    """Read a cell with `n_classes` weights of classes, which packed cells have of two; 0: none."""
    cdef Bins* bins = q.bins
    cdef int64_t n, weight, target
    bins.rank[g] = code
    bins.row[g] = -1
    if has_classes(kind):
        n = decode(cell, kind, n_classes, &weight, bins.target + g * n_classes)
    else:
        n = decode(cell, kind, n_classes, &weight, &target)
        if kind == PACKED and n_classes == 2:
            bins.target[2 * g] = weight - target
            bins.target[2 * g + 1] = target
        else:
            bins.target[g] = target
    bins.n[g] = n
    bins.weight[g] = weight
    return n > 0


cdef inline int64_t append_bin(Search* q, uint32_t rank, int64_t row) noexcept nogil:
    """An empty bin behind the last one; returns its number, -1 without memory."""
    cdef Bins* g = q.bins
    cdef int64_t i = g.count
    if i == g.capacity and not reserve_bins(q, i + 1):
        return -1
    g.rank[i] = rank
    g.row[i] = row
    g.n[i] = 0
    g.weight[i] = 0
    memset(g.target + i * q.n_columns_of_target, 0, q.n_columns_of_target * sizeof(int64_t))
    g.count = i + 1
    return i
