"""One tree on several threads: large nodes level by level, small ones as tasks.

While nodes are large, all threads work on one level together, each on its own block of columns:
part the runs by the marks of the level above, search the new nodes. As soon as nodes are small,
each is a task of its own and its whole subtree is grown by one call (`_finish`). A level of few
entries is not handed out: it takes less time than to wake the threads.

    large nodes     level 0   [block 0 | block 1 | block 2 | block 3]     columns in blocks
                    level 1   [block 0 | block 1 | block 2 | block 3]
    small nodes     subtree   subtree   subtree   subtree   subtree        nodes as tasks

Both phases use the same search and the same marks; which of them a node meets, and which thread,
cannot change a split.
"""
from functools import partial

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core._columns cimport STORED_SPARSE, STORED_U32, Column, last_ordered
from dtrees.core._drawn cimport draw_columns
from dtrees.core._finish cimport Growth, begin_growth, end_growth, grow_for, ready_reader
from dtrees.core._large_node cimport (
    LargeNode, SearchOfBlock, better, entries_of, expected_entries, groups_of_run, part_block,
    search_block
)
from dtrees.core._nodes cimport describe, open_children, sum_rows
from dtrees.core._plan cimport Plan, gains_enough
from dtrees.core._pool cimport Lease, Memory, Pool
from dtrees.core._records cimport Records, free_records, subtree_of, write_record, write_test
from dtrees.core._route cimport Route, mark_codes, mark_run, route_of
from dtrees.core._search cimport Search, finish_node
from dtrees.core._shard cimport Shard
from dtrees.core._structs cimport IN_SUBSET, LEAF, Run
from dtrees.core._workspace cimport (
    MAX_NARROW, Counted, Workspace, free_workspace, new_workspace, relocate_rows, relocate_runs,
    sorted_entries
)

from dtrees.core._large_node import record_of, rows_of, work_of
from dtrees.typing import serial

cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    BUSY = 1 << 17          # entries: a larger one always is, on several threads
    BLOCKS = 6              # of columns for each thread
    FEW_LEVELS = 8          # levels of nodes in between
    MOST_CELLS = 4          # of a histogram, for each row of the table
    KEPT_SHARE = 8          # rows per cell of a histogram that is kept with its node


cdef class Levels:
    """Growth of one tree from the rows of a shard.

    Parameters
    ----------
    shard : Shard
    tuning : Tuning
    pool : Pool
        Of the trees before this one.
    """
    cdef Shard shard
    cdef object tuning
    cdef Pool pool
    cdef Memory memory       # rows only: of the growth, which also lists them
    cdef Plan plan
    cdef Column* columns
    cdef Workspace* workspace
    cdef Workspace* wide    # while the root is relocated
    cdef Counted* counted   # by block of columns
    cdef int64_t n_rows
    cdef const int64_t[::1] offsets

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
        self.workspace.payload = shard.payload
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
        if not ready_reader(self.memory.growth, &self.plan, &w.payload, self.shard.n_live,
                            self.n_rows):
            raise MemoryError
        free(w.rows)
        w.rows = self.memory.growth.reader.codes
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
        cdef Run* run_of
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
            root.runs[b] = <Run*>malloc((last - first + 1) * sizeof(Run))
            for j in range(first, last):
                run_of = root.runs[b] + root.n_runs[b]
                run_of.column = <int32_t>j
                run_of.fill = self.columns[j].fill
                run_of.fill_code = self.columns[j].fill
                run_of.last_ordered = last_ordered(&self.columns[j])
                run_of.distinct = False
                run_of.offset = offsets[j]
                run_of.length = <uint32_t>lengths[j - first]
                if run_of.length == 0 and self.columns[j].storage < STORED_U32:
                    run_of.offset = self.reserve_cells(&self.columns[j], m, b)
                if self.columns[j].n_codes > 0 and (run_of.length > 0
                                                    or not self.is_sorted(&self.columns[j])):
                    root.n_runs[b] += 1
        root.node.start = 0
        root.node.depth = depth
        root.node.parent = -1
        root.node.path = path
        if self.plan.criterion.n_classes > 0:
            root.node.class_totals = <int64_t*>calloc(self.plan.criterion.n_classes,
                                                      sizeof(int64_t))
        sum_rows(&w.payload, &self.plan, w.rows, m, &root.node.totals, root.node.class_totals)
        describe(&root.node, &self.plan)
        if (len(blocks) > 1 and m <= MAX_NARROW and not root.node.is_leaf
                and not self.plan.draws):
            self.relocate_root(run, root)
        return root

    cdef bint is_sorted(self, const Column* column) noexcept nogil:
        """Whether the column has entries from the start: wide, sparse, or of so many cells that a
        histogram of them is out of proportion to the rows."""
        cdef int64_t cells = (column.n_codes + <int64_t>1) * self.plan.stride
        return column.storage >= STORED_U32 or (self.shard.n_live > MAX_NARROW
                                                and cells > MOST_CELLS * self.shard.n_live)

    cdef int64_t reserve_cells(self, const Column* column, int64_t n, int block) noexcept:
        """Where the column's histogram stands in those of its block; -1: it is not kept."""
        cdef int64_t cells = (column.n_codes + <int64_t>1) * self.plan.count_rule.stride
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
            for r in range(root.n_runs[b]):
                cells += root.runs[b][r].length if root.runs[b][r].length > 0 \
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
        with nogil:
            memset(&self.counted[block], 0, sizeof(Counted))
            scratch = <uint32_t*>malloc((self.workspace.n_rows + 1) * sizeof(uint32_t))
            root.n_runs[block] = relocate_runs(
                self.wide, <uint64_t*>self.wide.entries, self.workspace, root.runs[block],
                root.n_runs[block], at, self.columns, scratch, &self.plan.count_rule,
                &self.counted[block])
            free(scratch)

    # -----------------------------------------------------------------------------------------
    # large nodes, blocks of columns

    def _advance_block(self, list parted, list open_nodes, int block):
        """Part the runs of the nodes that were split, search the nodes that are open.

        Returns the best split of each open node in this block of columns.
        """
        cdef Workspace* w = self.workspace
        cdef void* scratch
        cdef LargeNode node
        cdef list found = []
        with nogil:
            scratch = malloc((w.n_rows + 1) * sizeof(uint64_t))
        for node in parted:
            with nogil:
                part_block(&self.plan, w, &self.counted[block], node, block, scratch)
        free(scratch)
        for node in open_nodes:
            found.append(search_block(&self.plan, w, &self.counted[block], node, block))
        return found

    cdef object draw(self, LargeNode node, int64_t first, int64_t count):
        """Sorted draws first..first+count of a node."""
        cdef int32_t[::1] order
        if self.plan.limits.max_features >= self.plan.limits.n_columns:
            return None
        order = np.arange(self.plan.limits.n_columns, dtype=np.int32)
        draw_columns(&self.plan, node.node.path, &order[0], NULL, 0, first + count)
        return np.sort(np.asarray(order)[first:first + count])

    cdef SearchOfBlock best_of(self, LargeNode node, list searches):
        """The best split over the blocks; draws on, one by one, while no drawn column varies."""
        cdef SearchOfBlock best = searches[0]
        cdef SearchOfBlock other
        cdef int64_t first
        for other in searches[1:]:
            best = better(best, other)
        first = self.plan.limits.max_features
        while best.q.split.test == LEAF and first < self.plan.limits.n_columns:
            node.drawn = self.draw(node, first, 1)
            for block in range(node.n_blocks):
                best = better(best, search_block(&self.plan, self.workspace,
                                                 &self.counted[block], node, block))
            first += 1
        finish_node(best.q)
        return best

    cdef bint split_node(self, LargeNode node, SearchOfBlock best, Records* out):
        """Mark and part the rows of a large node; open its children."""
        cdef Workspace* w = self.workspace
        cdef Search* q = best.q
        cdef const Column* column
        cdef Run* run = NULL
        cdef int64_t* histogram = NULL
        cdef Route route
        cdef int b
        cdef int64_t r
        if q.split.test == LEAF or not gains_enough(&self.plan.limits, q.split.gain):
            return False
        for b in range(node.n_blocks):
            for r in range(node.n_runs[b]):
                if node.runs[b][r].column == q.split.column:
                    run = &node.runs[b][r]
                    histogram = node.histogram[b]
        column = self.columns + q.split.column
        node.left = LargeNode(node.n_blocks)
        node.right = LargeNode(node.n_blocks)
        with nogil:
            route = route_of(&q.split, run.last_ordered, q.split_subset, q.split_subset_words)
            if q.split.test == IN_SUBSET:
                groups_of_run(q, &self.plan, w, &node.node, histogram, run)
            if run.length == 0:
                mark_codes(&route, column, w.row_id, w.rows + node.node.start,
                           node.node.totals.n, w.side)
            elif w.narrow:
                mark_run(&route, <uint32_t*>w.entries, run, w.rows + node.node.start,
                         node.node.totals.n, w.side)
            else:
                mark_run(&route, <uint64_t*>w.entries, run, w.rows + node.node.start,
                         node.node.totals.n, w.side)
            open_children(&self.plan, w, &node.node, node.record, &node.left.node,
                          &node.right.node)
            write_test(out, node.record, &self.plan, w, q, run, &node.left.node.totals,
                       &node.right.node.totals)
        return True

    # -----------------------------------------------------------------------------------------
    # the whole tree

    def _grow_subtree(self, LargeNode node, cancelled):
        """Grow the subtree of a small node, in slices."""
        cdef Growth* growth
        cdef Memory memory = self.memory if self.shard.rows_only else self.pool.take()
        cdef Workspace view = self.workspace[0]
        cdef bint more = True
        cdef bint begun
        lease = None
        view.number = NULL
        growth = memory.growth
        with nogil:
            begun = begin_growth(growth, &self.plan, &view, &node.node)
        if not begun:
            raise MemoryError
        # taken over by the growth
        node.node.runs = NULL
        node.node.class_totals = NULL
        try:
            while more:
                if cancelled():
                    return None
                with nogil:
                    more = grow_for(growth, SLICE)
            if self.shard.rows_only:
                lease = Lease(self.pool, memory)
            return subtree_of(&growth.out, self.plan.n_statistics, lease)
        finally:
            with nogil:
                end_growth(growth)
            free(view.number)

    cdef bint is_small(self, LargeNode node, double entries, int n_threads, int64_t share,
                       int64_t levels):
        """Whether a node's subtree is a task of its own.

        A level costs about half a millisecond of scheduling. It pays when nodes are so large that
        tasks would be uneven, and for few levels unless they are much larger than that: a tree
        may be a long chain.
        """
        if self.shard.rows_only:
            return True
        if node.node.totals.n > MAX_NARROW:
            return False
        if n_threads == 1 or entries <= max(share, self.tuning.task_entries):
            return True
        return levels >= FEW_LEVELS and entries <= BUSY

    def grow(self, run, int n_threads, cancelled, int64_t depth=0, uint64_t path=0):
        """Grow the tree of all rows.

        Parameters
        ----------
        run : Runner
        n_threads : int
            Decides only how the work is cut.
        cancelled : callable () -> bool
            Asked between slices of work; True ends the growth.
        depth, path : int
            Of the root, when it is a node of a larger tree.

        Returns
        -------
        list of Subtree
            Piece 0 holds the large nodes, in the order they were recorded; a record of it whose
            column is -3 stands for the piece numbered in its ``left``. The others are in
            preorder. Empty when the growth was cancelled.
        """
        cdef Records out
        cdef LargeNode root, node, child
        cdef list blocks = self.column_blocks(
            min(self.plan.limits.n_columns, 1 if n_threads == 1 else BLOCKS * n_threads))
        cdef list level, parted, small = []
        cdef int64_t levels = 0
        cdef int64_t share
        memset(&out, 0, sizeof(Records))
        root = self.open_root(run, blocks, depth, path)
        try:
            root.record = write_record(&out, &self.plan, &root.node)
            level = [] if root.node.is_leaf else [root]
            share = entries_of(root) // (4 * n_threads)
            if level and self.is_small(root, entries_of(root), n_threads, share, levels):
                small, level = level, []
            parted = []
            while level or parted:
                for node in level:
                    node.drawn = self.draw(node, 0, self.plan.limits.max_features)
                # open nodes have no runs yet: they are parted first
                work = sum(map(work_of, parted or level))
                advance = run if work >= self.tuning.level_entries else serial
                found = advance([partial(self._advance_block, parted, level, block)
                                 for block in range(len(blocks))])
                if cancelled():
                    return []
                parted = []
                next_level = []
                for i, node in enumerate(level):
                    if not self.split_node(node, self.best_of(node, [f[i] for f in found]), &out):
                        node.forget()
                        continue
                    for child in (node.left, node.right):
                        child.record = write_record(&out, &self.plan, &child.node)
                        if child.node.is_leaf:
                            continue
                        if self.is_small(child, expected_entries(node, child), n_threads, share,
                                         levels + 1):
                            small.append(child)
                        else:
                            child.is_large = True
                            next_level.append(child)
                    parted.append(node)
                level = next_level
                levels += 1
            pieces = [subtree_of(&out, self.plan.n_statistics)]
        finally:
            free_records(&out)
        small.sort(key=rows_of, reverse=True)
        for node in small:
            node.concatenate()
            node.node.parent = -1
        grown = run([partial(self._grow_subtree, node, cancelled) for node in small])
        if cancelled():
            return []
        for node, subtree in zip(small, grown):
            pieces[0].nodes["column"][record_of(node)] = -3
            pieces[0].nodes["left"][record_of(node)] = len(pieces)
            pieces.append(subtree)
        if self.shard.rows_only and not small:
            self.pool.give_back(self.memory)
        return pieces
