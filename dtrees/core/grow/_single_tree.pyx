"""One tree from the rows of a dataset: the root, and the growth of all that is below it.

Where columns are drawn, nothing but the rows of a node is kept. Else every column is sorted once.
Columns of few codes have no entries and are counted. Small tables get 32-bit entries at once.

The growth is depth first (`_depth_first`). One thread leads a team: the others share the columns of
large nodes (`_column_chunks`), and grow subtrees that are left to them::

    leader    node | node | node | leaves a subtree | node ...          upper nodes, in preorder
    helpers   columns of these   | grow the subtree | columns ...
"""
from functools import partial

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dtrees.core.data._columns cimport STORED_SPARSE, STORED_U32, Column, without_entries
from dtrees.core.data._memory cimport claim, claim_zeros
from dtrees.core.data._structs cimport PresortedFeature
from dtrees.core.grow._depth_first cimport Arena, ArenaLease, GrowthMemory
from dtrees.core.grow._column_chunks cimport Chunk, Sharing, divide, relocate_in_chunks
from dtrees.core.grow._depth_first cimport (
    Growth, allow, begin_growth, end_growth, entries_of, grow_for, share_growth
)
from dtrees.core.grow._node_buffer cimport partial_tree_of
from dtrees.core.grow._team cimport Team, lead
from dtrees.core.histogram._totals cimport sum_rows
from dtrees.core.search._open_node cimport OpenNode, describe, free_node
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.presorted._buffers cimport (
    MAX_NARROW, Buffers, Counted, free_buffers, new_buffers
)
from dtrees.core.stores.presorted._sorted_entries cimport sorted_entries
from dtrees.core.stores.sampled._column_loader cimport list_rows
from dtrees.core.stores.sampled._sampled_store cimport ready_loader

from dtrees.core.grow.assembly import join

cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    CHUNKS = 6              # of columns for each thread
    SUBTREES = 4            # that are left for each thread, about
    SMALLEST = 8            # parts of a usual subtree, below which nobody is asked to grow one
    MOST_WORDS = 4          # of a histogram, for each row of the table
    KEPT_SHARE = 8          # rows per cell of a histogram that is kept with its node


def grow_piece(Dataset dataset, tuning, Arena arena, run, int n_threads, cancelled,
               int64_t depth=0, uint64_t path=0, above=(None, None, None)):
    """Grow the tree of all rows.

    Parameters
    ----------
    dataset : Dataset
    tuning : Tuning
    arena : Arena
        Has the memory of trees before this one.
    run : Runner
    n_threads : int
        Decides only how the work is divided.
    cancelled : callable () -> bool
        Asked between slices of work; True ends the growth.
    depth, path : int, default=0
        Of the root, where it is a node of a larger tree.
    above : Above
        What its ancestors allow it, as `dtrees.core.grow.source` has it.

    Returns
    -------
    PartialTree or None
        In preorder; None when the growth was cancelled.
    """
    cdef SingleTree tree = SingleTree(dataset, tuning, arena, n_threads, cancelled)
    grow = partial(tree.grow, depth, path, above)
    if n_threads == 1:
        return grow()
    try:
        upper = run([partial(tree.team.lead, grow), *[tree.team.help] * (n_threads - 1)])[0]
    finally:
        tree.team.dismiss()     # where nobody has come to lead
    if upper is None or cancelled():
        return None
    return join([upper, *[tree.pieces[i + 1] for i in range(len(tree.pieces))]], run)


cdef class LeftSubtree:
    """A node whose subtree is left to the team, and a view of its rows."""
    cdef OpenNode root
    cdef Buffers buffers
    cdef int64_t number         # the record of the root stands for this piece

    def __dealloc__(self):
        free_node(&self.root)
        free(self.buffers.number)
        if self.buffers.owns_rows:
            free(self.buffers.rows)


cdef struct Sorting:
    # Columns that chunks sort; a chunk that found no memory begins at -1.
    const Column* columns
    const uint8_t* live
    Buffers* w
    PresortedFeature* features
    Chunk* chunks


cdef class SingleTree:
    """What the threads of a growth share."""
    cdef Dataset dataset
    cdef Arena arena
    cdef Team team
    cdef Sharing sharing
    cdef int n_threads
    cdef GrowthMemory memory    # of the upper nodes
    cdef Buffers rows           # where columns are drawn; they are in that memory
    cdef Buffers* presorted     # else
    cdef TrainParameters params
    cdef object tuning, cancelled
    cdef dict pieces            # subtrees that were left, by their numbers

    def __cinit__(self, Dataset dataset, tuning, Arena arena, int n_threads, cancelled):
        self.dataset, self.arena, self.tuning, self.cancelled = dataset, arena, tuning, cancelled
        self.team, self.memory, self.pieces = Team(), arena.take(), {}
        self.n_threads = n_threads
        self.sharing = Sharing(&self.team.jobs, 1 if n_threads == 1 else CHUNKS * n_threads)
        self.params = dataset.params
        self.params.count_rule.least_rows = tuning.counted_rows
        self.params.draws = dataset.rows_only

    def __dealloc__(self):
        free_buffers(self.presorted)

    # -----------------------------------------------------------------------------------------
    # growth

    def grow(self, int64_t depth, uint64_t path, above):
        """Grow the tree, but for subtrees that are left to the team; None: it was cancelled."""
        cdef Growth* growth = self.memory.growth
        cdef Buffers* w
        cdef OpenNode root
        cdef int64_t entries
        cdef bint begun
        memset(&root, 0, sizeof(OpenNode))
        root.depth, root.path, root.parent = depth, path, -1
        try:
            allow(&root, above)
            w = self.open_root(&root)
            entries = entries_of(&self.params, &root)
            with nogil:
                begun = begin_growth(growth, &self.params, w, &root)
            if not begun:
                raise MemoryError
            memset(&root, 0, sizeof(OpenNode))  # which is the growth's now
        finally:
            free_node(&root)
        if self.n_threads > 1:
            share_growth(growth, &self.sharing, self.tuning.level_entries,
                         self.tuning.task_entries // SMALLEST,
                         max(self.tuning.task_entries, entries // (SUBTREES * self.n_threads)))
        return self.finish(self.memory)

    def grow_left(self, LeftSubtree subtree):
        """Grow a subtree that was left."""
        cdef GrowthMemory memory = self.arena.take()
        cdef bint begun
        with nogil:
            begun = begin_growth(memory.growth, &self.params, &subtree.buffers, &subtree.root)
        if not begun:
            raise MemoryError
        memset(&subtree.root, 0, sizeof(OpenNode))  # which is the growth's now
        self.pieces[subtree.number] = self.finish(memory)

    cdef finish(self, GrowthMemory memory):
        """Go on with a growth that has begun to its end; None: it was cancelled."""
        cdef Growth* growth = memory.growth
        cdef bint more = True
        lease = None
        try:
            while more:
                if self.cancelled():
                    return None
                with nogil:
                    more = grow_for(growth, SLICE)
                if growth.has_left:
                    self.team.put(partial(self.grow_left, self.take_left(growth)))
            if growth.out.out_of_memory:
                raise MemoryError
            if self.params.draws:
                lease = ArenaLease(self.arena, memory)
            return partial_tree_of(&growth.out, self.params.n_statistics, lease)
        finally:
            with nogil:
                end_growth(growth)

    cdef LeftSubtree take_left(self, Growth* growth):
        """A node that a growth has left, and its rows."""
        cdef LeftSubtree subtree = LeftSubtree()
        subtree.root = growth.left
        growth.has_left = False
        subtree.number = growth.n_left
        if self.params.draws:
            subtree.buffers = self.rows
            subtree.buffers.rows = list_rows(growth.sampled.loader, &subtree.root)
            if subtree.buffers.rows == NULL:
                raise MemoryError
            subtree.buffers.owns_rows = True
            subtree.root.start = 0
        else:
            subtree.buffers = self.presorted[0]
            subtree.buffers.owns_rows = False
            subtree.buffers.shared = True
            subtree.buffers.number = NULL
        return subtree

    # -----------------------------------------------------------------------------------------
    # the root

    cdef Buffers* open_root(self, OpenNode* root) except NULL:
        """List the rows and sum them up, and sort the columns; returns where the rows are."""
        cdef Dataset dataset = self.dataset
        cdef Buffers* w = &self.rows
        cdef Buffers* moved
        cdef int64_t n = 0
        cdef int64_t i
        if self.params.draws:
            if not ready_loader(&self.memory.growth.sampled, &self.params, &dataset.of_row,
                                dataset.n_live, dataset.n_rows):
                raise MemoryError
            w.rows = self.memory.growth.sampled.loader.codes
        else:
            w = self.presorted = new_buffers(dataset.n_rows)
            if w == NULL:
                raise MemoryError
        w.n_rows = dataset.n_rows
        w.of_row = dataset.of_row
        with nogil:
            for i in range(dataset.n_rows):
                w.rows[n] = <uint32_t>i
                n += dataset.live[i]
        if self.params.criterion.n_classes > 0 and not claim_zeros(
                <void**>&root.class_totals, self.params.criterion.n_classes * sizeof(int64_t)):
            raise MemoryError
        with nogil:
            sum_rows(&w.of_row, &self.params.layout, w.rows, n, &root.totals, root.class_totals)
        describe(root, &self.params)
        if self.params.draws or root.is_leaf:
            return w
        self.sort_columns(root)
        if n <= MAX_NARROW:
            with nogil:  # others join, and other Python threads go on
                moved = relocate_in_chunks(&self.sharing, w, root, dataset.columns,
                                           &self.params.count_rule)
            self.presorted = moved
            free_buffers(w)
            if self.presorted == NULL:
                raise MemoryError
        return self.presorted

    cdef sort_columns(self, OpenNode* root):
        """The features of the root: entries in order, or none where a column is counted."""
        cdef Buffers* w = self.presorted
        cdef Sorting sorting
        cdef const Column* column
        cdef PresortedFeature* feature
        cdef int64_t at = 0
        cdef int64_t k, n, r
        cdef bint found
        if not claim(<void**>&root.features,
                     (self.params.limits.n_columns + 1) * sizeof(PresortedFeature)):
            raise MemoryError
        for r in range(self.params.limits.n_columns):
            column = self.dataset.columns + r
            if column.n_codes == 0:
                continue
            feature = root.features + root.n_features
            root.n_features += 1
            feature[0] = without_entries(column, r)
            feature.offset = -1
            if column.storage == STORED_SPARSE or self.is_sorted(column):
                feature.offset = at
                feature.length = <uint32_t>(column.stored if column.storage == STORED_SPARSE
                                            else root.totals.n)
                at += feature.length + 1    # what follows the last one is written to
        found = claim(&w.entries, (at + 1) * sizeof(uint64_t))
        sorting = Sorting(self.dataset.columns, &self.dataset.live[0], w, root.features,
                          <Chunk*>calloc(self.sharing.n_chunks, sizeof(Chunk)))
        found &= sorting.chunks != NULL
        if found:
            divide(sorting.chunks, self.sharing.n_chunks, root)
            with nogil:
                lead(self.sharing.jobs, sort_chunk, &sorting, self.sharing.n_chunks, False)
            for k in range(self.sharing.n_chunks):
                found &= sorting.chunks[k].first >= 0
        free(sorting.chunks)
        if not found:
            raise MemoryError
        n = 0
        for r in range(root.n_features):
            feature = root.features + r
            if feature.offset < 0:
                feature.offset = self.reserve_histogram(feature.column, root.totals.n)
            elif feature.length == 0:
                continue    # it is constant
            root.features[n] = feature[0]
            n += 1
        root.n_features = n

    cdef bint is_sorted(self, const Column* column) noexcept:
        """Whether a dense column has entries from the start: it is wide, or of so many cells that a
        histogram of them is out of proportion to the rows."""
        cdef int64_t cells = (column.n_codes + <int64_t>1) * self.params.layout.n_words
        return column.storage >= STORED_U32 or (self.dataset.n_live > MAX_NARROW
                                                and cells > MOST_WORDS * self.dataset.n_live)

    cdef int64_t reserve_histogram(self, int32_t column, int64_t n) noexcept:
        """Where the histogram of a column stands in those of a node; -1: it is not kept."""
        cdef Counted* counted = &self.presorted.counted
        cdef int64_t cells = ((self.dataset.columns[column].n_codes + <int64_t>1)
                              * self.params.count_rule.n_words)
        cdef int64_t offset = counted.n_words
        if cells == 0 or cells > n // KEPT_SHARE:
            return -1
        counted.n_words += cells
        # smaller nodes move to other buffers
        counted.least_rows = max(counted.least_rows, max(cells, MAX_NARROW + <int64_t>1))
        return offset


cdef void sort_chunk(void* shared, int64_t k) noexcept nogil:
    """Sort the columns of a chunk that have entries."""
    cdef const Sorting* job = <Sorting*>shared
    cdef Chunk* chunk = job.chunks + k
    cdef uint64_t* entries = <uint64_t*>job.w.entries
    cdef uint64_t* scratch = <uint64_t*>malloc((job.w.n_rows + 1) * sizeof(uint64_t))
    cdef PresortedFeature* feature
    cdef int64_t r
    for r in range(chunk.first, chunk.last if scratch != NULL else chunk.first):
        feature = job.features + r
        if feature.offset >= 0:
            feature.length = <uint32_t>sorted_entries(
                job.columns + feature.column, job.live, entries + feature.offset, scratch,
                job.w.n_rows)
    if scratch == NULL:
        chunk.first = -1
    free(scratch)
