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
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.histogram._totals cimport sum_rows
from dtrees.core.search._open_node cimport describe
from dtrees.core.stores._dataset cimport Shard
from dtrees.core.stores.presorted._buffers cimport (
    MAX_NARROW, Counted, Relocation, Workspace, free_workspace, new_workspace,
    relocate_features, relocate_rows
)
from dtrees.core.stores.presorted._sorted_entries cimport sorted_entries
from dtrees.core.stores.sampled._sampled_store cimport ready_reader
from dtrees.core.grow._arena cimport Pool
from dtrees.core.grow._large_node cimport LargeNode

cdef enum:
    MOST_CELLS = 4          # of a histogram, for each row of the table
    KEPT_SHARE = 8          # rows per cell of a histogram that is kept with its node


cdef class PresortedRoot:
    """All rows of a shard as the root of one tree, its columns in blocks.

    Parameters
    ----------
    shard : Shard
    tuning : Tuning
    pool : Pool
        Of the trees before this one.
    """

    def __cinit__(self, Shard shard, tuning, Pool pool):
        self.shard = shard
        self.tuning = tuning
        self.pool = pool
        self.plan = shard.plan
        self.plan.count_rule.least_rows = tuning.counted_rows
        self.plan.draws = (self.plan.limits.max_features < self.plan.limits.n_columns
                           or self.plan.limits.random_cuts)
        self.columns = shard.columns
        self.n_rows = shard.n_rows
        self.workspace = new_workspace(0 if shard.rows_only else self.n_rows, 0, False)
        self.workspace.n_rows = self.n_rows
        self.workspace.of_row = shard.of_row
        if shard.rows_only:
            self.borrow_rows()

    def __dealloc__(self):
        free_workspace(self.workspace)
        free_workspace(self.wide)
        free(self.counted)

    cdef borrow_rows(self):
        """List the rows in the scratch of the growth that takes them over."""
        cdef Workspace* w = self.workspace
        self.memory = self.pool.take()
        if not ready_reader(&self.memory.growth.sampled, &self.plan, &w.of_row, self.shard.n_live,
                            self.n_rows):
            raise MemoryError
        free(w.rows)
        w.rows = self.memory.growth.sampled.reader.codes
        w.owns_rows = False

    # -----------------------------------------------------------------------------------------
    # the root

    def _sort_block(self, int64_t first, int64_t last):
        """Entries of those of columns first..last that are sorted; how many each has."""
        cdef int64_t j
        cdef Column* column
        cdef uint64_t* scratch
        cdef uint64_t* entries = <uint64_t*>self.workspace.entries
        cdef const uint8_t* live = &self.shard.live[0]
        cdef int64_t[::1] lengths = np.zeros(last - first, dtype=np.int64)
        cdef const int64_t* offsets = &self.offsets[0]
        if self.shard.rows_only:
            return np.asarray(lengths)
        with nogil:
            scratch = <uint64_t*>malloc((self.n_rows + 1) * sizeof(uint64_t))
            for j in range(first, last):
                column = self.columns + j
                if self.is_sorted(column):
                    lengths[j - first] = sorted_entries(column, live, entries + offsets[j],
                                                        scratch, self.n_rows)
            free(scratch)
        return np.asarray(lengths)

    cdef list column_blocks(self, int n_blocks):
        """Stretches of columns with about equal numbers of entries: [(first, last), ...]."""
        cdef int64_t j
        cost = np.empty(self.plan.limits.n_columns, dtype=np.float64)
        for j in range(self.plan.limits.n_columns):
            cost[j] = 16.0 + (self.columns[j].stored if self.columns[j].storage == STORED_SPARSE
                              else self.shard.n_live)
        total = np.cumsum(cost)
        edges = np.searchsorted(total, cost.sum() * np.arange(1, n_blocks) / n_blocks)
        edges = [0, *np.unique(edges[edges > 0]).tolist(), len(cost)]
        return list(zip(edges, edges[1:]))

    cdef LargeNode open_root(self, run, list blocks, int64_t depth, uint64_t path):
        cdef Workspace* w = self.workspace
        cdef LargeNode root = LargeNode(len(blocks))
        cdef int64_t i, m, j
        cdef int b
        cdef int64_t[::1] lengths
        cdef const int64_t[::1] offsets
        cdef PresortedFeature* feature_of
        sizes = np.zeros(self.plan.limits.n_columns + 1, dtype=np.int64)
        for j in range(0 if self.shard.rows_only else self.plan.limits.n_columns):
            if self.columns[j].storage == STORED_SPARSE:
                sizes[j + 1] = self.columns[j].stored
            elif self.is_sorted(&self.columns[j]):
                sizes[j + 1] = self.n_rows
        offsets = self.offsets = np.cumsum(sizes)
        free(w.entries)
        w.entries = malloc((offsets[self.plan.limits.n_columns] + 1) * sizeof(uint64_t))
        if w.entries == NULL:
            raise MemoryError
        all_lengths = run([partial(self._sort_block, first, last) for first, last in blocks])
        m = 0
        for i in range(self.n_rows):
            w.rows[m] = <uint32_t>i
            m += self.shard.live[i]
        self.counted = <Counted*>calloc(len(blocks), sizeof(Counted))
        for b, (first, last) in enumerate(blocks):
            lengths = all_lengths[b]
            root.features[b] = <PresortedFeature*>malloc((last - first + 1)
                                                         * sizeof(PresortedFeature))
            for j in range(first, last):
                feature_of = root.features[b] + root.n_features[b]
                feature_of[0] = without_entries(&self.columns[j], j)
                feature_of.offset = offsets[j]
                feature_of.length = <uint32_t>lengths[j - first]
                if feature_of.length == 0 and self.columns[j].storage < STORED_U32:
                    feature_of.offset = self.reserve_cells(&self.columns[j], m, b)
                if self.columns[j].n_codes > 0 and (feature_of.length > 0
                                                    or not self.is_sorted(&self.columns[j])):
                    root.n_features[b] += 1
        root.node.start = 0
        root.node.depth = depth
        root.node.parent = -1
        root.node.path = path
        if self.plan.criterion.n_classes > 0:
            root.node.class_totals = <int64_t*>calloc(self.plan.criterion.n_classes,
                                                      sizeof(int64_t))
        sum_rows(&w.of_row, &self.plan.layout, w.rows, m, &root.node.totals, root.node.class_totals)
        describe(&root.node, &self.plan)
        if (len(blocks) > 1 and m <= MAX_NARROW and not root.node.is_leaf
                and not self.plan.draws):
            self.relocate_root(run, root)
        return root

    cdef bint is_sorted(self, const Column* column) noexcept nogil:
        """Whether the column has entries from the start: wide, sparse, or of so many cells that a
        histogram of them is out of proportion to the rows."""
        cdef int64_t cells = (column.n_codes + <int64_t>1) * self.plan.layout.n_words
        return column.storage >= STORED_U32 or (self.shard.n_live > MAX_NARROW
                                                and cells > MOST_CELLS * self.shard.n_live)

    cdef int64_t reserve_cells(self, const Column* column, int64_t n, int block) noexcept:
        """Where the column's histogram stands in those of its block; -1: it is not kept."""
        cdef int64_t cells = (column.n_codes + <int64_t>1) * self.plan.count_rule.n_words
        cdef int64_t offset = self.counted[block].n_cells
        if cells == 0 or cells > n // KEPT_SHARE:
            return -1
        self.counted[block].n_cells += cells
        self.counted[block].least_rows = max(self.counted[block].least_rows, cells)
        return offset

    cdef relocate_root(self, run, LargeNode root):
        """Small tables: 32-bit entries for every column from the start, a task per block."""
        cdef Workspace* wide = self.workspace
        cdef int64_t[::1] start = np.zeros(root.n_blocks + 1, dtype=np.int64)
        cdef int b
        cdef int64_t r, cells
        for b in range(root.n_blocks):
            cells = 0
            for r in range(root.n_features[b]):
                cells += root.features[b][r].length if root.features[b][r].length > 0 \
                    else root.node.totals.n
            start[b + 1] = start[b] + cells
        self.wide = wide
        self.workspace = relocate_rows(wide, &root.node, start[root.n_blocks])
        self.workspace.shared = True
        root.node.start = 0
        run([partial(self._relocate_block, root, b, start[b]) for b in range(root.n_blocks)])
        self.wide = NULL
        free_workspace(wide)

    def _relocate_block(self, LargeNode root, int block, int64_t at):
        cdef uint32_t* scratch
        cdef Relocation move
        with nogil:
            memset(&self.counted[block], 0, sizeof(Counted))
            scratch = <uint32_t*>malloc((self.workspace.n_rows + 1) * sizeof(uint32_t))
            move = Relocation(self.wide, self.workspace, self.columns, &self.plan.count_rule,
                              scratch, &self.counted[block])
            root.n_features[block] = relocate_features(&move, <uint64_t*>self.wide.entries,
                                                       root.features[block], root.n_features[block],
                                                       at)
            free(scratch)
