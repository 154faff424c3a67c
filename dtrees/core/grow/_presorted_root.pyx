"""The root of a tree whose columns are presorted: entries are sorted once, in blocks of columns.

Columns of few codes have no entries and are counted. Small tables get 32-bit entries for every
column from the start.
"""
from functools import partial

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core.data._columns cimport STORED_SPARSE, STORED_U32, Column, without_entries
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.histogram._totals cimport sum_rows
from dtrees.core.search._open_node cimport describe
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.presorted._buffers cimport (
    MAX_NARROW, Buffers, Counted, Relocation, entries_of_features, free_buffers, new_buffers,
    relocate_features, relocate_rows
)
from dtrees.core.stores.presorted._sorted_entries cimport sorted_entries
from dtrees.core.stores.sampled._sampled_store cimport ready_loader
from dtrees.core.grow._arena cimport Arena
from dtrees.core.grow._level_wise_node cimport LevelWiseNode

cdef enum:
    MOST_WORDS = 4          # of a histogram, for each row of the table
    KEPT_SHARE = 8          # rows per cell of a histogram that is kept with its node


cdef class PresortedRoot:
    """All rows of a dataset as the root of one tree, its columns in blocks.

    Parameters
    ----------
    dataset : Dataset
    tuning : Tuning
    arena : Arena
        Of the trees before this one.
    """

    def __cinit__(self, Dataset dataset, tuning, Arena arena):
        self.dataset = dataset
        self.tuning = tuning
        self.arena = arena
        self.params = dataset.params
        self.params.count_rule.least_rows = tuning.counted_rows
        self.params.draws = (self.params.limits.max_features < self.params.limits.n_columns
                             or self.params.limits.random_splits)
        self.columns = dataset.columns
        self.n_rows = dataset.n_rows
        self.buffers = new_buffers(0 if dataset.rows_only else self.n_rows)
        if self.buffers == NULL:
            raise MemoryError
        self.buffers.n_rows = self.n_rows
        self.buffers.of_row = dataset.of_row
        if dataset.rows_only:
            self.borrow_rows()

    def __dealloc__(self):
        free_buffers(self.buffers)
        free_buffers(self.wide)
        free(self.counted)

    cdef borrow_rows(self):
        """List the rows in the scratch of the growth that takes them over."""
        cdef Buffers* w = self.buffers
        self.memory = self.arena.take()
        if not ready_loader(&self.memory.growth.sampled, &self.params, &w.of_row,
                            self.dataset.n_live, self.n_rows):
            raise MemoryError
        free(w.rows)
        w.rows = self.memory.growth.sampled.loader.codes
        w.owns_rows = False

    # -----------------------------------------------------------------------------------------
    # the root

    def _sort_block(self, int64_t first, int64_t last):
        """Entries of those of columns first..last that are sorted; how many each has."""
        cdef int64_t j
        cdef Column* column
        cdef uint64_t* scratch
        cdef uint64_t* entries = <uint64_t*>self.buffers.entries
        cdef const uint8_t* live = &self.dataset.live[0]
        cdef int64_t[::1] lengths = np.zeros(last - first, dtype=np.int64)
        cdef const int64_t* offsets = &self.offsets[0]
        if self.dataset.rows_only:
            return np.asarray(lengths)
        with nogil:
            scratch = <uint64_t*>malloc((self.n_rows + 1) * sizeof(uint64_t))
            for j in range(first, last if scratch != NULL else first):
                column = self.columns + j
                if self.is_sorted(column):
                    lengths[j - first] = sorted_entries(column, live, entries + offsets[j],
                                                        scratch, self.n_rows)
            free(scratch)
        if scratch == NULL:
            raise MemoryError
        return np.asarray(lengths)

    cdef list column_blocks(self, int n_blocks):
        """Stretches of columns with about equal numbers of entries: [(first, last), ...].

        One that is empty where rows are all that is kept: a look at each column of a sparse table
        would cost more than a tree that draws some.
        """
        cdef int64_t n_columns = self.params.limits.n_columns
        cdef int64_t j
        cdef double[::1] cost
        if self.dataset.rows_only:
            return [(0, 0)]
        if n_blocks == 1:
            return [(0, n_columns)]
        cost = np.empty(n_columns, dtype=np.float64)
        for j in range(n_columns):
            cost[j] = 16.0 + (self.columns[j].stored if self.columns[j].storage == STORED_SPARSE
                              else self.dataset.n_live)
        total = np.cumsum(cost)
        edges = np.searchsorted(total, np.sum(cost) * np.arange(1, n_blocks) / n_blocks)
        edges = [0, *np.unique(edges[edges > 0]).tolist(), len(cost)]
        return list(zip(edges, edges[1:]))

    cdef LevelWiseNode open_root(self, run, list blocks, int64_t depth, uint64_t path):
        cdef Buffers* w = self.buffers
        cdef LevelWiseNode root = LevelWiseNode(len(blocks))
        cdef int64_t i, m, j
        cdef int b
        cdef int64_t[::1] lengths
        cdef const int64_t[::1] offsets
        cdef PresortedFeature* feature_of
        cdef int64_t n_columns = 0 if self.dataset.rows_only else self.params.limits.n_columns
        cdef int64_t[::1] sizes = np.zeros(n_columns + 1, dtype=np.int64)
        for j in range(n_columns):
            if self.columns[j].storage == STORED_SPARSE:
                sizes[j + 1] = self.columns[j].stored
            elif self.is_sorted(&self.columns[j]):
                sizes[j + 1] = self.dataset.n_live + 1  # what follows the last one is written to
        offsets = self.offsets = np.cumsum(sizes)
        if not claim(&w.entries, (offsets[n_columns] + 1) * sizeof(uint64_t)):
            raise MemoryError
        all_lengths = run([partial(self._sort_block, first, last) for first, last in blocks])
        m = 0
        for i in range(self.n_rows):
            w.rows[m] = <uint32_t>i
            m += self.dataset.live[i]
        self.counted = <Counted*>calloc(len(blocks), sizeof(Counted))
        if self.counted == NULL:
            raise MemoryError
        for b, (first, last) in enumerate(blocks):
            lengths = all_lengths[b]
            root.features[b] = <PresortedFeature*>malloc((last - first + 1)
                                                         * sizeof(PresortedFeature))
            if root.features[b] == NULL:
                raise MemoryError
            for j in range(first, last):
                feature_of = root.features[b] + root.n_features[b]
                feature_of[0] = without_entries(&self.columns[j], j)
                feature_of.offset = offsets[j]
                feature_of.length = <uint32_t>lengths[j - first]
                if feature_of.length == 0 and self.columns[j].storage < STORED_U32:
                    feature_of.offset = self.reserve_histogram(&self.columns[j], m, b)
                if self.columns[j].n_codes > 0 and (feature_of.length > 0
                                                    or not self.is_sorted(&self.columns[j])):
                    root.n_features[b] += 1
        root.node.start = 0
        root.node.depth = depth
        root.node.parent = -1
        root.node.path = path
        if self.params.criterion.n_classes > 0:
            root.node.class_totals = <int64_t*>calloc(self.params.criterion.n_classes,
                                                      sizeof(int64_t))
            if root.node.class_totals == NULL:
                raise MemoryError
        sum_rows(&w.of_row, &self.params.layout, w.rows, m, &root.node.totals,
                 root.node.class_totals)
        describe(&root.node, &self.params)
        if (len(blocks) > 1 and m <= MAX_NARROW and not root.node.is_leaf
                and not self.params.draws):
            self.relocate_root(run, root)
        return root

    cdef bint is_sorted(self, const Column* column) noexcept nogil:
        """Whether the column has entries from the start: wide, sparse, or of so many cells that a
        histogram of them is out of proportion to the rows."""
        cdef int64_t cells = (column.n_codes + <int64_t>1) * self.params.layout.n_words
        return column.storage >= STORED_U32 or (self.dataset.n_live > MAX_NARROW
                                                and cells > MOST_WORDS * self.dataset.n_live)

    cdef int64_t reserve_histogram(self, const Column* column, int64_t n, int block) noexcept:
        """Where the column's histogram stands in those of its block; -1: it is not kept."""
        cdef int64_t cells = (column.n_codes + <int64_t>1) * self.params.count_rule.n_words
        cdef int64_t offset = self.counted[block].n_words
        if cells == 0 or cells > n // KEPT_SHARE:
            return -1
        self.counted[block].n_words += cells
        self.counted[block].least_rows = max(self.counted[block].least_rows, cells)
        return offset

    cdef relocate_root(self, run, LevelWiseNode root):
        """Small tables: 32-bit entries for every column from the start, a task per block."""
        cdef Buffers* wide = self.buffers
        cdef int64_t[::1] start = np.zeros(root.n_blocks + 1, dtype=np.int64)
        cdef int b
        for b in range(root.n_blocks):
            start[b + 1] = start[b] + entries_of_features(root.features[b], root.n_features[b],
                                                          root.node.totals.n)
        self.wide = wide
        self.buffers = relocate_rows(wide, &root.node, start[root.n_blocks])
        if self.buffers == NULL:
            raise MemoryError
        self.buffers.shared = True
        root.node.start = 0
        run([partial(self._relocate_block, root, b, start[b]) for b in range(root.n_blocks)])
        self.wide = NULL
        free_buffers(wide)

    def _relocate_block(self, LevelWiseNode root, int block, int64_t at):
        cdef uint32_t* scratch
        cdef Relocation move
        with nogil:
            memset(&self.counted[block], 0, sizeof(Counted))
            scratch = <uint32_t*>malloc((self.buffers.n_rows + 1) * sizeof(uint32_t))
            move = Relocation(self.wide, self.buffers, self.columns, &self.params.count_rule,
                              scratch, &self.counted[block])
            if scratch != NULL:
                root.n_features[block] = relocate_features(
                    &move, <uint64_t*>self.wide.entries, root.features[block],
                    root.n_features[block], at)
            free(scratch)
        if scratch == NULL:
            raise MemoryError
