"""The node step where the rows are elsewhere: the histograms of a node are given.

    blocks ──▶ histograms added up ──▶ search, split ──▶ the test ──▶ blocks partition rows

The search is that of every other node, so the split has the same bits as where the rows are in one
place. No row is moved here: the rows and the weight of both children are read from the bins of the
chosen column, and blocks count the rest.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from dtrees.core.data._columns cimport last_ordered
from dtrees.core.data._structs cimport LEAF
from dtrees.core.search._bins cimport bins_of_histogram, search_bins
from dtrees.core.search._open_node cimport OpenNode, open_children
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores._partition cimport goes_left
from dtrees.core.stores._store cimport Member, Store
from dtrees.core.stores.sampled._random_split cimport search_random


def histogram_sizes(Dataset dataset):
    """Numbers in the histogram of every column; int64 (n_columns,)."""
    cdef int64_t n_columns = dataset.params.limits.n_columns
    return np.array([size_of(&dataset.params, j) for j in range(n_columns)], dtype=np.int64)


cdef HistogramStore histogram_store(const TrainParameters* params, Search* q) noexcept nogil:
    """A store without histograms."""
    cdef HistogramStore s
    memset(&s, 0, sizeof(HistogramStore))
    s.store.params = params
    s.store.search = q
    s.store.codes.same = True
    s.store.search_node = search_node
    s.store.choose = choose
    s.store.partition = partition
    return s


cdef int64_t size_of(const TrainParameters* params, int32_t column) noexcept nogil:
    return (params.columns[column].n_codes + <int64_t>1) * params.layout.n_words


cdef void search_node(Store* store, Member* member) noexcept nogil:
    cdef HistogramStore* s = <HistogramStore*>store
    cdef const TrainParameters* params = store.params
    cdef const int64_t* histogram = s.histogram
    cdef Search* q = store.search
    cdef int32_t j
    cdef int64_t i
    for i in range(s.n_columns):
        j = s.columns[i]
        bins_of(store, histogram, j)
        if q.bins.count > 1 and params.limits.random_splits:
            search_random(q, j, last_ordered(params.columns + j),
                          params.values + params.first_value[j])
        elif q.bins.count > 1:
            search_bins(q, j, last_ordered(params.columns + j))
        if q.split.test != LEAF and q.split.column == j:
            s.chosen = histogram
        if s.one_by_one and q.split.test != LEAF:
            break
        histogram += size_of(params, j)


cdef void bins_of(Store* store, const int64_t* histogram, int32_t column) noexcept nogil:
    bins_of_histogram(store.search, &store.params.layout, histogram,
                      store.params.columns[column].n_codes + <int64_t>1, NULL)


cdef void choose(Store* store, Member* member, uint64_t together) noexcept nogil:
    cdef int32_t column = store.search.split.column
    store.last_ordered = last_ordered(store.params.columns + column)
    bins_of(store, (<HistogramStore*>store).chosen, column)


cdef void partition(Store* store, Member* member, uint64_t together) noexcept nogil:
    cdef const Search* q = store.search
    cdef OpenNode* left = member.left
    cdef OpenNode* right = member.right
    cdef int64_t n = 0
    cdef int64_t weight = 0
    cdef int64_t g
    for g in range(q.bins.count):
        if goes_left(&member.route, q.bins.rank[g]):
            n += q.bins.n[g]
            weight += q.bins.weight[g]
    store.out_of_memory = not open_children(member.node, n, store.params.layout.n_classes, left,
                                            right)
    left.totals.weight = weight
    right.totals.weight = member.node.totals.weight - weight
