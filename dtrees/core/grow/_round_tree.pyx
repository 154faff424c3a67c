"""The tree of one training set whose rows are elsewhere: its records, and the node step on them.

    blocks ──▶ sums, histograms added up ──▶ `RoundTree` ──▶ FoundSplit ──▶ blocks

A node is recorded as soon as its sums are known, and split when its histogram is
(`_histogram_store`). Records are those of every other growth, in the order of the rounds.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._structs cimport IN_SUBSET, LEAF, int128_t
from dtrees.core.search._open_node cimport OpenNode, describe, free_node
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, free_search, new_search
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.blocks._histogram_store cimport HistogramStore, histogram_store
from dtrees.core.stores.blocks._node_counts cimport (
    CLASS_0, HIGHEST, LOWEST, MOMENT, N, TARGET, WEIGHT
)
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, Record, free_node_buffer, partial_tree_of, stand_for, words_of_subset, write_record
)
from dtrees.core.grow._node_step cimport SEARCH, grow_node

from dtrees.core.stores.blocks.messages import FoundSplit


cdef class RoundNode:
    """A node of one training set, which has no split yet; a root is given its depth and key."""
    cdef OpenNode node

    def __cinit__(self, int64_t depth=0, uint64_t path=0):
        self.node.depth = depth
        self.node.path = path
        self.node.parent = -1

    def __dealloc__(self):
        free_node(&self.node)

    @property
    def depth(self):
        return self.node.depth

    @property
    def path(self):
        return self.node.path

    @property
    def n(self):
        """Rows; of a root only when it is recorded."""
        return self.node.totals.n


cdef class RoundTree:
    """A tree of a training set. The dataset is of a few rows, with the columns and units of all."""
    cdef Dataset dataset
    cdef TrainParameters* params
    cdef NodeBuffer out
    cdef list subtrees
    cdef readonly object rules
    cdef readonly object scale

    def __cinit__(self, Dataset dataset, rules, scale):
        self.dataset = dataset
        self.params = &dataset.params
        self.subtrees = []
        self.rules = rules
        self.scale = scale

    def __dealloc__(self):
        free_node_buffer(&self.out)

    def record(self, RoundNode node, const int64_t[::1] sums):
        """Record a node whose sums are known (as `_node_counts.count`); whether it stays a leaf."""
        cdef OpenNode* open = &node.node
        cdef int64_t limb = <int64_t>1 << 32
        cdef size_t n_bytes = self.params.criterion.n_classes * sizeof(int64_t)
        open.totals.n = sums[N]
        open.totals.weight = sums[WEIGHT]
        open.totals.target = sums[TARGET]
        open.totals.moment = (<int128_t>sums[MOMENT] * limb + sums[MOMENT + 1]) * limb
        open.totals.moment += sums[MOMENT + 2]
        open.totals.lowest = sums[LOWEST]
        open.totals.highest = sums[HIGHEST]
        if n_bytes > 0:
            if open.class_totals == NULL:
                open.class_totals = <int64_t*>malloc(n_bytes)
            if open.class_totals == NULL:
                raise MemoryError
            memcpy(open.class_totals, &sums[CLASS_0], n_bytes)
        describe(open, self.params)
        self.write(open)
        return open.is_leaf

    cdef write(self, OpenNode* open):
        write_record(&self.out, self.params, open)
        if self.out.out_of_memory:
            raise MemoryError

    def split(self, RoundNode node, histogram, const int32_t[::1] dense_columns,
              const int64_t[::1] first, const int32_t[::1] one_by_one=None):
        """Split a recorded node, if that gains enough.

        Parameters
        ----------
        node : RoundNode
        histogram : Histogram
            Of some columns.
        dense_columns : int32 (k,)
            The dense ones, as the histogram has them.
        first : int64 (n_columns + 1,)
            Places of the columns before each one.
        one_by_one : int32 (k,) or None, default=None
            All of the columns, where the first one that can be split is the last to be looked at.

        Returns
        -------
        split : (FoundSplit, RoundNode, RoundNode) or None
            The test, and the children without sums. None: there is none, or it gains too little.
        can_be_split : bool
        """
        cdef RoundNode left = RoundNode()
        cdef RoundNode right = RoundNode()
        cdef const int64_t[::1] dense = histogram.dense
        cdef const int64_t[::1] places = histogram.places
        cdef const int64_t[::1] values = histogram.values
        cdef int64_t[::1] cell = np.empty(self.params.layout.n_words, dtype=np.int64)
        cdef HistogramStore store
        cdef bint is_split, can_be_split, lost
        cdef Search* q = new_search(&self.params.criterion, self.params.layout.kind,
                                    self.dataset.of_row, &self.params.limits)
        if q == NULL:
            raise MemoryError
        store = histogram_store(self.params, q)
        store.first = &first[0]
        store.cell = &cell[0]
        if len(dense) > 0:
            store.histogram = &dense[0]
            store.columns = &dense_columns[0]
            store.n_columns = len(dense_columns)
        if len(places) > 0:
            store.places = &places[0]
            store.values = &values[0]
            store.n_places = len(places)
        if one_by_one is not None:
            store.one_by_one = &one_by_one[0]
            store.n_one_by_one = len(one_by_one)
        with nogil:
            is_split = grow_node(&store.store, &self.out, &node.node, &left.node, &right.node,
                                 SEARCH)
            can_be_split = q.split.test != LEAF
            lost = store.store.out_of_memory or q.out_of_memory or self.out.out_of_memory
            free_search(q)
        if lost:
            raise MemoryError
        if not is_split:
            return None, can_be_split
        return (self.test_of(self.out.nodes + node.node.record), left, right), True

    cdef test_of(self, const Record* record):
        cdef int64_t n_words
        cdef uint64_t[::1] words
        subset = None
        if record.test == IN_SUBSET:
            n_words = words_of_subset(self.params.columns + record.column)
            subset = words = np.empty(n_words, dtype=np.uint64)
            memcpy(&words[0], self.out.words + record.subset, n_words * sizeof(uint64_t))
        return FoundSplit(record.column, record.test, record.boundary, bool(record.missing_left),
                          subset)

    def reserve(self, RoundNode node):
        """Record a node whose sums are not known; `graft` takes its place."""
        if node.node.class_totals != NULL:
            memset(node.node.class_totals, 0, self.params.n_statistics * sizeof(int64_t))
        self.write(&node.node)

    def graft(self, RoundNode node, subtree):
        """Let a finished subtree, in preorder, take the place of a node that is reserved."""
        self.subtrees.append(subtree)
        stand_for(&self.out, node.node.record, len(self.subtrees))

    def pieces(self):
        """The records and the grafted subtrees, for `dtrees.core.grow.assembly.join`."""
        return [partial_tree_of(&self.out, self.params.n_statistics), *self.subtrees]
