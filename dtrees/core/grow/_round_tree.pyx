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
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, Record, free_node_buffer, partial_tree_of, stand_for, words_of_subset, write_record
)
from dtrees.core.grow._node_step cimport search_and_split

from dtrees.core.stores.blocks.messages import FoundSplit


cdef class RoundNode:
    """A node of one training set, which has no split yet.

    Parameters
    ----------
    depth, path : int
        Of a root. `path` is the key of its draws.
    """
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
    """A tree of a training set, grown in rounds.

    Parameters
    ----------
    dataset : Dataset
        Of a few rows: its columns and units are those of all.
    rules : GrowthRules
    scale : Scale

    Attributes
    ----------
    rules, scale
    """
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

    def record(self, RoundNode node, sums):
        """Record a node, whose sums are known now; returns whether it stays a leaf."""
        take_sums(&node.node, sums)
        describe(&node.node, self.params)
        write_record(&self.out, self.params, &node.node)
        return node.node.is_leaf

    def split(self, RoundNode node, const int64_t[::1] histogram, const int32_t[::1] columns,
              bint one_by_one):
        """Split a recorded node, if that gains enough.

        Parameters
        ----------
        node : RoundNode
        histogram : int64
            Of some columns, one behind the other.
        columns : int32 (k,), 0 < k
        one_by_one : bool
            Whether the first column that can be split is the last one to be looked at.

        Returns
        -------
        children : (RoundNode, RoundNode) or None
            Left and right, without sums. None: there is no split, or it gains too little.
        can_be_split : bool
        """
        cdef RoundNode left = RoundNode()
        cdef RoundNode right = RoundNode()
        cdef HistogramStore store
        cdef bint is_split, can_be_split
        cdef Search* q = new_search(&self.params.criterion, self.params.layout.kind,
                                    self.dataset.of_row, &self.params.limits)
        if q == NULL:
            raise MemoryError
        store = histogram_store(self.params, q)
        store.histogram = &histogram[0]
        store.columns = &columns[0]
        store.n_columns = len(columns)
        store.one_by_one = one_by_one
        with nogil:
            is_split = search_and_split(&store.store, &self.out, &node.node, &left.node,
                                        &right.node)
            can_be_split = q.split.test != LEAF
            free_search(q)
        if store.store.out_of_memory:
            raise MemoryError
        return (left, right) if is_split else None, can_be_split

    def test_of(self, RoundNode node):
        """The test of a node that is split; FoundSplit."""
        cdef const Record* record = self.out.nodes + node.node.record
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
        write_record(&self.out, self.params, &node.node)

    def graft(self, RoundNode node, subtree):
        """Let a finished subtree, in preorder, take the place of a node that is reserved."""
        self.subtrees.append(subtree)
        stand_for(&self.out, node.node.record, len(self.subtrees))

    def pieces(self):
        """The records and the grafted subtrees, for `dtrees.core.grow.assembly.join`."""
        return [partial_tree_of(&self.out, self.params.n_statistics), *self.subtrees]


cdef take_sums(OpenNode* node, sums):
    cdef const int64_t[::1] classes
    cdef int64_t k
    node.totals.n = sums.n
    node.totals.weight = sums.weight
    node.totals.target = sums.target
    node.totals.moment = (<int128_t><int64_t>(sums.moment >> 64)) << 64
    node.totals.moment |= <uint64_t>(sums.moment & 0xFFFFFFFFFFFFFFFF)
    node.totals.lowest = sums.lowest
    node.totals.highest = sums.highest
    if sums.classes is None:
        return
    classes = sums.classes
    if node.class_totals == NULL:
        node.class_totals = <int64_t*>malloc(len(classes) * sizeof(int64_t))
    if node.class_totals == NULL:
        raise MemoryError
    for k in range(len(classes)):
        node.class_totals[k] = classes[k]
