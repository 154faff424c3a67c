"""Drawn columns by histogram; see _sampled_histogram.pyx."""

from dtrees.core.data._columns cimport Column
from dtrees.core.histogram._layout cimport (
    CLASSES_PAIRED, PACKED, PAIRED, WEIGHTED_CLASSES, WEIGHTED_SUM, Layout, words_of
)
from dtrees.core.search._open_node cimport OpenNode
from dtrees.core.search._search cimport Search, by_class
from dtrees.core.stores.sampled._column_loader cimport ColumnLoader


cdef inline Layout layout_of(const ColumnLoader* loader, const Search* q) noexcept nogil:
    """Of the cells of a node: as small as its sums allow."""
    cdef Layout layout
    layout.n_classes = q.criterion.n_classes
    if loader.is_packed:
        layout.kind = PACKED
    elif by_class(q):
        layout.kind = CLASSES_PAIRED if loader.is_paired else WEIGHTED_CLASSES
    else:
        layout.kind = PAIRED if loader.is_paired else WEIGHTED_SUM
    layout.n_words = words_of(layout.kind, layout.n_classes)
    return layout


cdef void bins_of_dense(ColumnLoader* loader, Search* q, const Column* column,
                        const OpenNode* node) noexcept nogil
