"""Nodes whose rows are elsewhere: described from their sums, searched in their histograms.

    blocks ──▶ sums, histograms added up ──▶ `RoundSearch` ──▶ FoundSplit ──▶ blocks

The search is that of every other node, and so are the rules of a test (`_node_step`,
`_node_buffer.write_subset`): the split has the same bits as where the rows are in one place.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from dtrees._random cimport hash64
from dtrees.core.data._columns cimport Column, last_ordered
from dtrees.core.data._structs cimport IN_SUBSET, LEAF, int128_t
from dtrees.core.search._bins cimport bins_of_histogram, search_histogram
from dtrees.core.search._open_node cimport OpenNode, describe
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, begin_node, finish_node, free_search, new_search
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores._partition cimport Route, goes_left, route_of
from dtrees.core.stores._store cimport CodesOfRanks
from dtrees.core.stores.sampled._random_split cimport search_random
from dtrees.core.stores.sampled._sampled_columns cimport draw_columns
from dtrees.core.grow._node_buffer cimport words_of_subset, write_subset
from dtrees.core.grow._node_step cimport has_split

from dtrees.core.stores.blocks.messages import FoundSplit


cdef class RoundSearch:
    """Searches the histograms of a tree.

    Parameters
    ----------
    dataset : Dataset
        Of a few rows: its columns and units are those of all.
    """
    cdef Dataset dataset
    cdef TrainParameters* params

    def __init__(self, Dataset dataset):
        self.dataset = dataset
        self.params = &dataset.params

    def describe(self, sums, int64_t depth):
        """(impurity, is a leaf) of a node with these sums."""
        cdef OpenNode node
        cdef int64_t[::1] classes
        open_sums(sums, &node)
        if sums.classes is not None:
            classes = np.ascontiguousarray(sums.classes, dtype=np.int64)
            node.class_totals = &classes[0]
        node.depth = depth
        describe(&node, self.params)
        return node.impurity, node.is_leaf

    def histogram_sizes(self):
        """Numbers in the histogram of every column; int64 (n_columns,)."""
        return np.array([self.n_words(j) for j in range(self.params.limits.n_columns)],
                        dtype=np.int64)

    def columns_at(self, uint64_t path, int64_t first, int64_t count):
        """Draws first .. first+count of a node's columns, in their order; int32 (<= count,)."""
        cdef int64_t n_columns = self.params.limits.n_columns
        cdef int32_t[::1] order = np.arange(n_columns, dtype=np.int32)
        if first + count > n_columns:
            count = n_columns - first
        if self.params.limits.max_features < n_columns:
            draw_columns(self.params, path, &order[0], NULL, 0, first + count)
        return np.asarray(order)[first:first + count].copy()

    def search(self, const int64_t[::1] histogram, const int32_t[::1] columns, sums, uint64_t path,
               bint one_by_one):
        """The best split of a node, from the histogram of all its rows.

        Parameters
        ----------
        histogram : int64
            Of some columns, one behind the other.
        columns : int32 (k,)
        sums : Sums
        path : int
        one_by_one : bool
            Whether the first column that can be split is the last one to be looked at.

        Returns
        -------
        found : FoundSplit or None
            None: there is no split, or it gains too little.
        can_be_split : bool
        """
        cdef int64_t[::1] classes
        cdef OpenNode node
        cdef Search* q
        cdef int64_t i, at = 0
        open_sums(sums, &node)
        if sums.classes is not None:
            classes = np.ascontiguousarray(sums.classes, dtype=np.int64)
            node.class_totals = &classes[0]
        q = new_search(&self.params.criterion, self.params.layout.kind, self.dataset.of_row,
                       &self.params.limits)
        if q == NULL:
            raise MemoryError
        try:
            begin_node(q, &node.totals, node.class_totals, path)
            for i in range(len(columns)):
                self.search_column(q, &histogram[at], columns[i])
                at += self.n_words(columns[i])
                if one_by_one and q.split.test != LEAF:
                    break
            finish_node(q)
            if q.out_of_memory:
                raise MemoryError
            if not has_split(q, &self.params.limits):
                return None, q.split.test != LEAF
            at = 0
            for i in range(len(columns)):
                if columns[i] == q.split.column:
                    break
                at += self.n_words(columns[i])
            return self.found(q, &histogram[at]), True
        finally:
            free_search(q)

    cdef int64_t n_words(self, int32_t column):
        """Numbers in the histogram of a column."""
        return (self.params.columns[column].n_codes + <int64_t>1) * self.params.layout.n_words

    cdef void search_column(self, Search* q, const int64_t* histogram, int32_t j):
        cdef const Column* column = self.params.columns + j
        if not self.params.limits.random_splits:
            search_histogram(q, &self.params.layout, histogram, column.n_codes, j,
                             last_ordered(column))
            return
        bins_of_histogram(q, &self.params.layout, histogram, column.n_codes + <int64_t>1, NULL)
        if q.bins.count > 1:
            search_random(q, j, last_ordered(column),
                          self.params.values + self.params.first_value[j])

    cdef found(self, Search* q, const int64_t* histogram):
        """The chosen split as a Python object. histogram : of its column."""
        cdef const Column* column = self.params.columns + q.split.column
        cdef Route route = route_of(&q.split, last_ordered(column), q.split_subset,
                                    q.split_subset_words)
        cdef CodesOfRanks codes = CodesOfRanks(True, 0, NULL)
        cdef uint64_t[::1] words
        cdef int64_t n_left = 0
        cdef int64_t w_left = 0
        cdef int64_t g
        bins_of_histogram(q, &self.params.layout, histogram, column.n_codes + <int64_t>1, NULL)
        for g in range(q.bins.count):
            if goes_left(&route, q.bins.rank[g]):
                n_left += q.bins.n[g]
                w_left += q.bins.weight[g]
        heavier_left = 2 * w_left > q.totals.weight
        subset = None
        if q.split.test == IN_SUBSET:
            subset = np.zeros(words_of_subset(column), dtype=np.uint64)
            words = subset
            write_subset(&words[0], self.params, q, &codes, heavier_left)
        return FoundSplit(
            column=q.split.column, test=q.split.test, boundary=q.split.boundary,
            beyond=q.split.beyond, gain=q.split.gain, subset=subset, n_left=n_left,
            missing_left=bool(q.split.missing_left if q.split.saw_missing else heavier_left),
        )


def child_path(uint64_t path, bint is_left):
    """Key of a child's draws from that of its parent."""
    return hash64(path, 1 if is_left else 2)


cdef open_sums(sums, OpenNode* node):
    """The totals of a node without rows."""
    memset(node, 0, sizeof(OpenNode))
    node.totals.n = sums.n
    node.totals.weight = sums.weight
    node.totals.target = sums.target
    node.totals.moment = (<int128_t><int64_t>(sums.moment >> 64)) << 64
    node.totals.moment |= <uint64_t>(sums.moment & 0xFFFFFFFFFFFFFFFF)
    node.totals.lowest = sums.lowest
    node.totals.highest = sums.highest
