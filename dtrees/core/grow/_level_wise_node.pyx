"""Large nodes: all threads work on one, each on its own blocks of columns.

The features of a large node lie in blocks, and so do its histograms, if it keeps any:

    features         block 0 | block 1 | block 2 | ...        a task each: partition, search
    search       best    | best    | best    | ...        the best of them is the node's split

A node that becomes small gets its features as one list and is finished by one call
(`_depth_first`).
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.search._open_node cimport free_node
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport (
    begin_node, free_scratch, free_search, new_search
)
from dtrees.core.stores._partition cimport ChildFeatures, partition_features
from dtrees.core.stores.presorted._buffers cimport Buffers, Counted, entries_of_features
from dtrees.core.stores.presorted._histogram cimport Counters, count_features, partition_histogram
from dtrees.core.stores.presorted._presorted_store cimport (
    PresortedStore, presorted_store, search_presorted
)

cdef enum:
    FEATURE_COST = 8        # what a feature costs beside its entries, in entries


cdef class LevelWiseNode:
    """An open node of the first phase: its features lie in blocks of columns."""

    def __cinit__(self, int n_blocks):
        self.n_blocks = n_blocks
        self.features = <PresortedFeature**>calloc(n_blocks, sizeof(PresortedFeature*))
        self.n_features = <int64_t*>calloc(n_blocks, sizeof(int64_t))
        self.histogram = <int64_t**>calloc(n_blocks, sizeof(int64_t*))
        if self.features == NULL or self.n_features == NULL or self.histogram == NULL:
            self.n_blocks = 0
            raise MemoryError

    def __dealloc__(self):
        cdef int b
        for b in range(self.n_blocks):
            free(self.features[b])
            free(self.histogram[b])
        free(self.features)
        free(self.n_features)
        free(self.histogram)
        free_node(&self.node)

    cdef concatenate(self):
        """The features of all blocks as one list, for `_depth_first`."""
        cdef int b
        cdef int64_t count = 0
        for b in range(self.n_blocks):
            count += self.n_features[b]
        self.node.features = <PresortedFeature*>malloc((count + 1) * sizeof(PresortedFeature))
        if self.node.features == NULL:
            raise MemoryError
        count = 0
        for b in range(self.n_blocks):
            memcpy(self.node.features + count, self.features[b],
                   self.n_features[b] * sizeof(PresortedFeature))
            count += self.n_features[b]
        self.node.n_features = count


cdef class SearchOfBlock:
    """The search of one node over one block of columns."""

    def __cinit__(self):
        self.q = NULL

    def __dealloc__(self):
        free_search(self.q)


cdef allow(OpenNode* node, above):
    """Let a root that is a node of a larger tree have what its ancestors allow it."""
    cdef const uint8_t[::1] words
    lower, upper, sets = above
    node.above.has_lower, node.above.has_upper = lower is not None, upper is not None
    node.above.lower = 0.0 if lower is None else lower
    node.above.upper = 0.0 if upper is None else upper
    if sets is not None:
        words = sets
        node.above.sets = <uint64_t*>malloc(len(sets))
        if node.above.sets == NULL:
            raise MemoryError
        memcpy(node.above.sets, &words[0], len(sets))


cdef sets_of(const OpenNode* node, const TrainParameters* params):
    """The sets of columns that a node has from its ancestors, as bytes; None: all."""
    cdef int64_t n = params.limits.n_set_words * <int64_t>sizeof(uint64_t)
    if node.above.sets == NULL:
        return None
    return PyBytes_FromStringAndSize(<char*>node.above.sets, n)


cdef int64_t entries_of(LevelWiseNode node):
    """Cells of the node that do not hold a majority value: what its subtree costs, about."""
    cdef int64_t entries = 0
    cdef int b
    for b in range(node.n_blocks):
        entries += entries_of_features(node.features[b], node.n_features[b], node.node.totals.n)
    return entries


def work_of(LevelWiseNode node):
    """What searching or partitioning the node costs, in entries."""
    cdef int b
    cdef int64_t features = 0
    for b in range(node.n_blocks):
        features += node.n_features[b]
    return entries_of(node) + FEATURE_COST * features


cdef SearchOfBlock search_block(const TrainParameters* params, Buffers* w, const Counted* counted,
                                LevelWiseNode node, int block):
    """The best split of an open node in one block of columns; constant columns are dropped."""
    cdef SearchOfBlock search = SearchOfBlock()
    cdef PresortedStore s = presorted_store()
    cdef Counters counters = Counters(node.features[block], node.n_features[block], counted.n_words)
    cdef const int32_t[::1] drawn = node.drawn
    cdef int64_t n_drawn = 0 if node.drawn is None else len(drawn)
    cdef bint all_columns = node.drawn is None
    cdef PresortedFeature* features = node.features[block]
    cdef int64_t kept = 0
    cdef int64_t d = 0
    cdef int64_t r
    search.q = new_search(&params.criterion, params.layout.kind, w.of_row, &params.limits)
    if search.q == NULL:
        raise MemoryError
    s.store.params = params
    s.store.search = search.q
    s.w = w
    with nogil:
        begin_node(search.q, &node.node.totals, node.node.class_totals, node.node.path,
                   &node.node.above)
        if (counted.n_words > 0 and node.histogram[block] == NULL
                and keeps_histogram(node, counted)):
            node.histogram[block] = <int64_t*>calloc(counted.n_words, sizeof(int64_t))
            if node.histogram[block] != NULL:
                count_features(w, params, &counters, &node.node, node.histogram[block])
            else:
                search.q.out_of_memory = True
        s.histogram = node.histogram[block]
        for r in range(node.n_features[block]):
            while d < n_drawn and drawn[d] < features[r].column:
                d += 1
            if (not (all_columns or d < n_drawn and drawn[d] == features[r].column)
                    or search_presorted(&s, &node.node, &features[r])):
                features[kept] = features[r]
                kept += 1
        node.n_features[block] = kept
        free_scratch(search.q)
    if search.q.out_of_memory:
        raise MemoryError
    return search


cdef inline bint keeps_histogram(LevelWiseNode node, const Counted* counted) noexcept nogil:
    """Whether the node is worth the memory of the block's histograms."""
    return node.node.totals.n >= counted.least_rows


cdef inline int64_t** histogram_of_child(LevelWiseNode child, const Counted* counted,
                                         int block) noexcept nogil:
    """Where the histogram of a child goes; NULL: it keeps none."""
    if not child.is_large or not keeps_histogram(child, counted):
        return NULL
    return &child.histogram[block]


cdef bint partition_block(const TrainParameters* params, Buffers* w, const Counted* counted,
                          LevelWiseNode node, int block, void* scratch) noexcept nogil:
    """The children of a split node get the features and the histograms of one block; False without
    memory."""
    cdef bint found = True
    cdef int64_t n = node.n_features[block]
    cdef Counters counters
    cdef ChildFeatures children
    if not node.left.node.is_leaf:
        node.left.features[block] = <PresortedFeature*>malloc((n + 1) * sizeof(PresortedFeature))
        found = node.left.features[block] != NULL
    if not node.right.node.is_leaf:
        node.right.features[block] = <PresortedFeature*>malloc((n + 1) * sizeof(PresortedFeature))
        found &= node.right.features[block] != NULL
    children = ChildFeatures(node.left.features[block], &node.left.n_features[block],
                             node.right.features[block], &node.right.n_features[block],
                             params.limits.min_rows)
    if w.narrow:
        partition_features(<uint32_t*>w.entries, node.features[block], n, w.side,
                           <uint32_t*>scratch, &children)
    else:
        partition_features(<uint64_t*>w.entries, node.features[block], n, w.side,
                           <uint64_t*>scratch, &children)
    if node.histogram[block] != NULL:
        counters = Counters(node.features[block], n, counted.n_words)
        found &= partition_histogram(
            w, params, &counters, &node.left.node, &node.right.node, &node.histogram[block],
            histogram_of_child(node.left, counted, block),
            histogram_of_child(node.right, counted, block))
        free(node.histogram[block])
        node.histogram[block] = NULL
    return found
