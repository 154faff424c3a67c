"""One tree on several threads: large nodes level by level, small ones as tasks.

While nodes are large, all threads work on one level together, each on its own block of columns:
partition the features by the marks of the level above, search the new nodes. As soon as nodes are
small, each is a task of its own and its whole subtree is grown by one call (`_depth_first`). A
level of few entries is not given to threads: it takes less time than to wake them.

    large nodes     level 0   [block 0 | block 1 | block 2 | block 3]     columns in blocks
                    level 1   [block 0 | block 1 | block 2 | block 3]
    small nodes     subtree   subtree   subtree   subtree   subtree        nodes as tasks

Both phases use the same search and the same marks; which of them a node meets, and which thread,
cannot change a split.
"""
from functools import partial

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dtrees.core.data._structs cimport LEAF
from dtrees.core.search._search cimport is_better
from dtrees.core.stores.presorted._buffers cimport MAX_NARROW, Buffers
from dtrees.core.stores.presorted._presorted_store cimport PresortedStore, presorted_store
from dtrees.core.grow._arena cimport ArenaLease, GrowthMemory
from dtrees.core.grow._depth_first cimport Growth, begin_growth, end_growth, grow_for
from dtrees.core.grow._level_wise_node cimport (
    LevelWiseNode, SearchOfBlock, allow, entries_of, partition_block, search_block, sets_of
)
from dtrees.core.grow._node_buffer cimport (
    SUBTREE, NodeBuffer, free_node_buffer, partial_tree_of, write_record
)
from dtrees.core.grow._node_step cimport SPLIT, grow_node
from dtrees.core.grow._presorted_root cimport PresortedRoot

from dtrees.core.grow._level_wise_node import work_of
from dtrees.core.stores.sampled._sampled_columns import drawn_columns, n_first_draws
from dtrees.typing import serial

cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    BUSY = 1 << 17          # entries: a larger one always is, on several threads
    BLOCKS = 6              # of columns for each thread
    FEW_LEVELS = 8          # levels of nodes in between


cdef class LevelWiseBuilder(PresortedRoot):
    """Growth of one tree from the rows of a dataset."""

    # -----------------------------------------------------------------------------------------
    # large nodes, blocks of columns

    def _advance_block(self, list partitioned, list open_nodes, int block):
        """Partition the features of the nodes that were split, search the nodes that are open.

        Returns the best split of each open node in this block of columns.
        """
        cdef Buffers* w = self.buffers
        cdef void* scratch
        cdef LevelWiseNode node
        cdef list found = []
        cdef bint complete
        with nogil:
            scratch = malloc((w.n_rows + 1) * sizeof(uint64_t))
            complete = scratch != NULL
        for node in partitioned if complete else ():
            with nogil:
                complete &= partition_block(&self.params, w, &self.counted[block], node, block,
                                            scratch)
        free(scratch)
        if not complete:
            raise MemoryError
        for node in open_nodes:
            found.append(search_block(&self.params, w, &self.counted[block], node, block))
        return found

    cdef object draw(self, LevelWiseNode node, int64_t first, int64_t count):
        """Sorted draws first..first+count of a node."""
        if self.params.limits.max_features >= self.params.limits.n_columns:
            return None
        if first == 0:
            node.n_drawn = count = n_first_draws(self.dataset, node.node.path,
                                                 sets_of(&node.node, &self.params))
        return np.sort(drawn_columns(self.dataset, node.node.path, first, count))

    cdef SearchOfBlock best_of(self, LevelWiseNode node, list searches):
        """The best split over the blocks; draws on, one by one, while no drawn column varies."""
        cdef SearchOfBlock best = searches[0]
        cdef SearchOfBlock other
        cdef int64_t first
        for other in searches[1:]:
            best = other if is_better(best.q, &other.q.split) else best
        first = node.n_drawn
        while best.q.split.test == LEAF and first < self.params.limits.n_columns:
            node.drawn = self.draw(node, first, 1)
            for block in range(node.n_blocks):
                other = search_block(&self.params, self.buffers, &self.counted[block], node, block)
                best = other if is_better(best.q, &other.q.split) else best
            first += 1
        return best

    cdef bint split_large(self, LevelWiseNode node, SearchOfBlock best,
                          NodeBuffer* out) except -1:
        """Partition the rows of a large node; open its children."""
        cdef PresortedStore store = presorted_store()
        cdef bint is_split
        cdef int b
        cdef int64_t r
        store.store.params = &self.params
        store.store.search = best.q
        store.w = self.buffers
        for b in range(node.n_blocks):
            for r in range(node.n_features[b]):
                if node.features[b][r].column == best.q.split.column:
                    store.chosen = &node.features[b][r]
                    store.histogram = node.histogram[b]
        node.left = LevelWiseNode(node.n_blocks)
        node.right = LevelWiseNode(node.n_blocks)
        with nogil:
            is_split = grow_node(&store.store, out, &node.node, &node.left.node,
                                 &node.right.node, SPLIT)
        if best.q.out_of_memory:
            raise MemoryError
        return is_split

    # -----------------------------------------------------------------------------------------
    # the whole tree

    def _grow_subtree(self, LevelWiseNode node, cancelled):
        """Grow the subtree of a small node, in slices."""
        cdef Growth* growth
        cdef GrowthMemory memory = self.memory if self.dataset.rows_only else self.arena.take()
        cdef Buffers view = self.buffers[0]
        cdef bint more = True
        cdef bint begun
        lease = None
        view.number = NULL
        growth = memory.growth
        with nogil:
            begun = begin_growth(growth, &self.params, &view, &node.node)
        if not begun:
            raise MemoryError
        # taken over by the growth
        node.node.features = NULL
        node.node.class_totals = NULL
        node.node.above.sets = NULL
        try:
            while more:
                if cancelled():
                    return None
                with nogil:
                    more = grow_for(growth, SLICE)
            if self.dataset.rows_only:
                lease = ArenaLease(self.arena, memory)
            return partial_tree_of(&growth.out, self.params.n_statistics, lease)
        finally:
            with nogil:
                end_growth(growth)
            free(view.number)

    cdef bint is_small(self, LevelWiseNode node, double entries, int n_threads, int64_t share,
                       int64_t levels):
        """Whether a node's subtree is a task of its own.

        A level costs about half a millisecond of scheduling. It pays when nodes are so large that
        tasks would be uneven, and for few levels unless they are much larger than that: a tree
        may be a long chain.
        """
        if self.dataset.rows_only:
            return True
        if node.node.totals.n > MAX_NARROW:
            return False
        if n_threads == 1 or entries <= max(share, self.tuning.task_entries):
            return True
        return levels >= FEW_LEVELS and entries <= BUSY

    def grow(self, run, int n_threads, cancelled, int64_t depth=0, uint64_t path=0,
             above=(None, None, None)):
        """Grow the tree of all rows.

        Parameters
        ----------
        run : Runner
        n_threads : int
            Decides only how the work is divided.
        cancelled : callable () -> bool
            Asked between slices of work; True ends the growth.
        depth, path : int
            Of the root, when it is a node of a larger tree.
        above : Above
            What its ancestors allow it, as `dtrees.core.grow.source` has it.

        Returns
        -------
        list of PartialTree
            Piece 0 holds the large nodes, in the order they were recorded; a record of it whose
            column is -3 stands for the piece numbered in its ``left``. The others are in
            preorder. Empty when the growth was cancelled.
        """
        cdef LevelWiseNode node
        cdef list small = []
        cdef list pieces = self.grow_large(run, n_threads, cancelled, depth, path, above, small)
        small.sort(key=lambda node: -(<LevelWiseNode>node).node.totals.n)  # what costs most first
        for node in small:
            node.concatenate()
            node.node.parent = -1
        grown = run([partial(self._grow_subtree, node, cancelled) for node in small])
        if cancelled():
            return []
        for node, subtree in zip(small, grown):
            pieces[0].nodes["column"][node.node.record] = SUBTREE
            pieces[0].nodes["left"][node.node.record] = len(pieces)
            pieces.append(subtree)
        if self.dataset.rows_only and not small:
            self.arena.give_back(self.memory)
        return pieces

    cdef list grow_large(self, run, int n_threads, cancelled, int64_t depth, uint64_t path, above,
                         list small):
        """Grow the large nodes, as one piece; fills `small` with the others."""
        cdef NodeBuffer out
        cdef LevelWiseNode root, node, child
        cdef list blocks = self.column_blocks(
            min(self.params.limits.n_columns, 1 if n_threads == 1 else BLOCKS * n_threads))
        cdef list level = []
        cdef list partitioned = []
        cdef int64_t levels = 0
        cdef int64_t share
        cdef double entries
        memset(&out, 0, sizeof(NodeBuffer))
        root = self.open_root(run, blocks, depth, path)
        allow(&root.node, above)
        try:
            write_record(&out, &self.params, &root.node)
            share = entries_of(root) // (4 * n_threads)
            if not root.node.is_leaf:
                is_small = self.is_small(root, entries_of(root), n_threads, share, levels)
                (small if is_small else level).append(root)
            while level or partitioned:
                if out.out_of_memory:
                    raise MemoryError
                for node in level:
                    node.drawn = self.draw(node, 0, self.params.limits.max_features)
                # open nodes have no features yet: they are partitioned first
                work = sum(map(work_of, partitioned or level))
                advance = run if work >= self.tuning.level_entries else serial
                found = advance([partial(self._advance_block, partitioned, level, block)
                                 for block in range(len(blocks))])
                if cancelled():
                    small.clear()
                    break
                partitioned = []
                next_level = []
                for i, node in enumerate(level):
                    if not self.split_large(node, self.best_of(node, [f[i] for f in found]), &out):
                        continue
                    for child in (node.left, node.right):
                        write_record(&out, &self.params, &child.node)
                        if child.node.is_leaf:
                            continue
                        # its share of the node's entries, by rows
                        entries = (<double>entries_of(node) * child.node.totals.n
                                   / node.node.totals.n)
                        if self.is_small(child, entries, n_threads, share, levels + 1):
                            small.append(child)
                        else:
                            child.is_large = True
                            next_level.append(child)
                    partitioned.append(node)
                level = next_level
                levels += 1
            return [partial_tree_of(&out, self.params.n_statistics)]
        finally:
            free_node_buffer(&out)
