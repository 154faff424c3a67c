"""Trees of several training sets of one table: one growth for all of them.

The rows of a table lie in cells, and a set holds all rows but those of some cells: in k-fold
cross-validation set i lacks fold i, and the last set nothing ([CV] 2.2.2). As long as the tests of
the sets look at the same column, their nodes are one node: its rows are read once and counted by
cell, and a set has the histogram of all rows less those of the cells that it lacks::

    rows of the node    12  13  17  20  ...            each row once
    cell of each         3   0   k   3  ...
    one column          | H0 | H1 | ... | Hk |         one pass
    set i               H0 + H1 + ... + Hk - Hi        exact: sums of integers

Sets that choose one column but different thresholds stay together ([CV] 3.4): a row on which they
differ goes to both children, there with the sets that sent it (*some* rows). Sets that choose
different columns go apart. A set that is alone, or no longer gains by company (`pays`), is grown by
the growth of a single tree (`_single_tree`), from the same rows; its tree is the tree of the set,
bit for bit, since every score comes from the same integers.

Nodes are processed depth first, so the records of each set are in preorder.
"""
from functools import partial

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dtrees.core.data._bits cimport count_bits, trailing_zeros
from dtrees.core.data._columns cimport MOST_INTERVALS, STORED_SPARSE, Intervals, without_entries
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport BY_FUNCTION, PresortedFeature
from dtrees.core.grow._single_tree cimport (
    Arena, Growth, GrowthMemory, allow, begin_growth, end_growth, grow_for
)
from dtrees.core.grow._node_buffer cimport (
    SUBTREE, NodeBuffer, Record, RecordRange, free_node_buffer, piece_of, stand_for,
    write_record
)
from dtrees.core.grow._node_step cimport record_members, search_members, split_members
from dtrees.core.histogram._layout cimport (
    WEIGHTED_CLASSES, WEIGHTED_SUM, has_classes, words_of
)
from dtrees.core.histogram._totals cimport weigh_row
from dtrees.core.search._intervals cimport MOST_CLASSES
from dtrees.core.search._open_node cimport OpenNode, free_node
from dtrees.core.search._parameters cimport TrainParameters, may_use
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores._store cimport Member, begin_members
from dtrees.core.stores.presorted._buffers cimport (
    MAX_NARROW, Buffers, Relocation, entries_of_features, free_buffers, relocate_features,
    relocate_rows, reserve_entries
)
from dtrees.core.stores.shared._shared_entries cimport (
    forget_members, has_other_readers, keep_marked, likely_entries, next_copies, open_entries,
    part_entries, reserve_own
)
from dtrees.core.stores.shared._shared_nodes cimport (
    MOST_CELLS, MOST_SETS, SharedNode, SharedStore, cells_of, class_weights, free_shared,
    free_shared_list, new_shared, reserve_rows, work_of
)
from dtrees.core.stores.shared._shared_store cimport (
    begin_search, begin_store, free_store, partition_members, search_columns, search_intervals,
    search_node, sum_cells, sum_members, take_better, take_node
)

from dtrees.core.grow._team import Team

cdef enum:
    EARLIER = 11            # times as many rows more, where all columns have intervals


WIDTH_OF_INTERVALS = MOST_INTERVALS + 1     # of a column, with that of missing values


def has_intervals(bint draws, bint has_bounds, int64_t n_rows, int n_classes, tuning):
    """Whether columns of many codes are searched by intervals.

    has_bounds : the criterion has some, and no values have to rise or fall along a column.
    """
    return (not draws and has_bounds and n_rows >= tuning.interval_rows
            and n_classes <= MOST_CLASSES)


cdef class TrainingSets:
    """Sets of rows that lack a cell each, and what a growth does with each of them.

    Parameters
    ----------
    dataset : Dataset
        Of all rows.
    cell : uint16 (n_rows,)
    has : uint8 (n_sets, n_cells)
        1 where a set has the rows of a cell. At most `MOST_SETS` sets, each of which has rows, and
        `MOST_CELLS` cells.
    total_weight : float64 (n_sets,)
        In the user's units.
    least : int64 (n_sets, 3)
        Rows of a node that is split, rows of a leaf, and its weight in units of the weights.
    times : uint16 (n_rows,) or None
        The weights, where rows count a whole number of times and columns are drawn.
    tuning : Tuning
    weights_of_classes : (int64 (n_sets, n_classes), float64 (n_sets, 3)) or None
        What each class weighs in each set, and units: of the weights, of gains, and the scale of
        x log x. The dataset counts rows, or their own weights, and these are multiplied by the
        class weights when they are read. None: the dataset has the weights, the same in all sets.

    Attributes
    ----------
    n_bounded, n_alive : int
        Columns of nodes that were searched by intervals, and those of which some were alive.
    n_shared_nodes, n_shared_rows : int
        Nodes that were searched for two sets or more at once, and rows that they hold together.
    """
    cdef Dataset dataset
    cdef int n_sets
    cdef TrainParameters* params_of        # by set
    cdef const uint8_t[:, ::1] has  # (n_sets, n_cells)
    cdef const uint16_t[::1] cell
    cdef const uint16_t[::1] times  # of a bag, or None
    cdef const int64_t[:, ::1] of_class     # class weights by set, or None
    cdef readonly int64_t shared_rows   # of a node whose sets stay together
    cdef int64_t interval_rows, interval_codes  # as in `Tuning`
    cdef readonly int64_t n_bounded, n_alive    # of the growths that have ended
    cdef readonly int64_t n_shared_nodes, n_shared_rows
    cdef object above       # by set, as `Above`; None: anything is allowed
    cdef const Intervals* intervals     # of the columns; NULL: none
    cdef int32_t* dense         # columns that are, ascending,
    cdef int64_t n_dense
    cdef int32_t* slot          # and by column its number among them
    cdef int64_t n_stored       # entries of the sparse columns

    def __cinit__(self, Dataset dataset, const uint16_t[::1] cell, const uint8_t[:, ::1] has,
                  const double[::1] total_weight, const int64_t[:, ::1] least,
                  const uint16_t[::1] times, tuning, weights_of_classes):
        cdef int s
        cdef bint draws = (dataset.params.limits.random_splits or
                           dataset.params.limits.max_features < dataset.params.limits.n_columns)
        assert has.shape[0] <= MOST_SETS and has.shape[1] <= MOST_CELLS
        self.dataset = dataset
        self.cell = cell
        self.n_sets = <int>has.shape[0]
        self.has = has
        self.times = times
        self.of_class = None
        self.shared_rows = tuning.shared_rows
        self.interval_rows = tuning.interval_rows
        self.interval_codes = tuning.interval_codes
        self.params_of = <TrainParameters*>calloc(self.n_sets, sizeof(TrainParameters))
        if self.params_of == NULL:
            raise MemoryError
        for s in range(self.n_sets):
            self.params_of[s] = dataset.params
            self.params_of[s].limits.total_weight = total_weight[s]
            self.params_of[s].limits.min_samples_split = least[s, 0]
            self.params_of[s].limits.min_rows = least[s, 1]
            self.params_of[s].limits.min_weight = least[s, 2]
            self.params_of[s].count_rule.least_rows = tuning.counted_rows
            self.params_of[s].draws = draws
        if weights_of_classes is not None:
            self.bind_class_weights(weights_of_classes[0], weights_of_classes[1])
        self.list_dense()
        has_bounds = (dataset.params.limits.monotonic == NULL
                      and dataset.params.criterion.impurity != BY_FUNCTION
                      and dataset.params.criterion.n_outputs == 1)
        if has_intervals(draws, has_bounds, dataset.n_rows, dataset.params.criterion.n_classes,
                         tuning):
            self.intervals = dataset.bound.intervals(dataset.n_rows, tuning.interval_codes)
            if self.intervals != NULL:
                self.part_earlier()

    def __dealloc__(self):
        free(self.params_of)
        free(self.dense)
        free(self.slot)

    def inherit(self, above):
        """Take what the ancestors of the node that has all rows allow it, by set, as `Above`."""
        self.above = above

    cdef list_dense(self):
        """Which columns are dense; the others have entries."""
        cdef int64_t n_columns = self.dataset.params.limits.n_columns
        cdef int64_t j
        if not (claim(<void**>&self.dense, (n_columns + 1) * sizeof(int32_t))
                and claim(<void**>&self.slot, (n_columns + 1) * sizeof(int32_t))):
            raise MemoryError
        for j in range(n_columns):
            self.slot[j] = -1
            if self.dataset.columns[j].storage == STORED_SPARSE:
                self.n_stored += self.dataset.columns[j].stored
                continue
            self.slot[j] = <int32_t>self.n_dense
            self.dense[self.n_dense] = <int32_t>j
            self.n_dense += 1

    cdef void describe(self, SharedStore* store):
        """Tell the store of a thread what it has to know of the sets."""
        cdef Dataset dataset = self.dataset
        store.n_sets = self.n_sets
        store.store.params = &dataset.params
        store.params_of = self.params_of
        store.of_row = &dataset.of_row
        store.of_class = NULL if self.of_class is None else &self.of_class[0, 0]
        store.layout = dataset.params.layout
        store.intervals = self.intervals
        store.interval_rows, store.interval_codes = self.interval_rows, self.interval_codes
        store.dense, store.n_dense, store.slot = self.dense, self.n_dense, self.slot
        store.n_rows, store.n_stored = dataset.n_rows, self.n_stored

    cdef bind_class_weights(self, const int64_t[:, ::1] of_class, const double[:, ::1] units):
        """Parameters of sets whose rows have weights."""
        cdef TrainParameters* params
        cdef int s
        assert of_class.shape[0] == self.n_sets and units.shape[0] == self.n_sets
        self.of_class = of_class
        for s in range(self.n_sets):
            params = &self.params_of[s]
            params.criterion.weight_unit = units[s, 0]
            params.criterion.gain_unit = units[s, 1]
            params.criterion.fixed_point = params.layout.fixed_point = units[s, 2]
            params.criterion.xlogx = NULL
            params.criterion.xlogx_size = 0
            params.layout.kind = (WEIGHTED_CLASSES if has_classes(params.layout.kind)
                                  else WEIGHTED_SUM)
            params.layout.n_words = words_of(params.layout.kind, params.layout.n_classes)
            if params.count_rule.n_words > 0:
                params.count_rule.n_words = params.layout.n_words

    cdef part_earlier(self):
        """Columns of many codes are cheaper to sort once for each set than to count in small nodes:
        the more of them there are, the larger are the nodes whose sets go on alone."""
        cdef int64_t n_columns = self.dataset.params.limits.n_columns
        cdef int64_t many = 0
        cdef int64_t j
        for j in range(n_columns):
            many += self.intervals[j].column.codes != NULL
        self.shared_rows += self.shared_rows * EARLIER * many // n_columns


cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    NODE_COST = 50          # of a shared node for each set, in rows
    TASKS = 4               # subtrees for each thread
    BLOCKS = 3              # of columns for each thread
    OFFLOADED = 48             # times the entries of a subtree that is worth a task


# ---------------------------------------------------------------------------------------------
# What a thread records of several sets: one subtree behind the other, where they stay.
#
#     set 0    | subtree of node A | subtree of node C | ...
#     set 1    | subtree of node A | subtree of node B | subtree of node C | ...
#
# Nothing is copied until a tree is put together. The trees are made one after the other, and the
# records of a set are given back as soon as its pieces are copied.

cdef class Subtree


cdef class SetRecords:
    """Records of a thread, by set; where there are several, in pages of their own: what is freed in
    the heap of a thread, only this thread can use."""
    cdef NodeBuffer* of_set
    cdef RecordRange* begun     # by set: where the subtree that grows begins
    cdef int64_t* n_left        # and subtrees that have ended, and no piece was made of
    cdef int n_sets
    cdef int n_statistics

    def __cinit__(self, int n_sets, int n_statistics, bint in_pages):
        cdef int s
        self.of_set = <NodeBuffer*>calloc(n_sets, sizeof(NodeBuffer))
        self.begun = <RecordRange*>calloc(n_sets, sizeof(RecordRange))
        self.n_left = <int64_t*>calloc(n_sets, sizeof(int64_t))
        self.n_sets, self.n_statistics = n_sets, n_statistics
        if self.of_set == NULL or self.begun == NULL or self.n_left == NULL:
            raise MemoryError
        for s in range(n_sets):
            self.of_set[s].in_pages = in_pages

    def __dealloc__(self):
        cdef int s
        for s in range(self.n_sets if self.of_set != NULL else 0):
            free_node_buffer(&self.of_set[s])
        free(self.of_set)
        free(self.begun)
        free(self.n_left)

    cdef begin(self):
        """Begin a subtree of each set."""
        cdef int s
        for s in range(self.n_sets):
            self.begun[s].first = self.of_set[s].count
            self.begun[s].first_word = self.of_set[s].n_words

    cdef Subtree end(self, int s):
        """The subtree that a set has got since; MemoryError where there was none for it."""
        cdef NodeBuffer* out = &self.of_set[s]
        cdef Subtree found = Subtree()
        if out.out_of_memory:
            raise MemoryError
        found.records, found.s, found.extent = self, s, self.begun[s]
        found.extent.end, found.extent.end_word = out.count, out.n_words
        with nogil:
            count_from(out.nodes, &found.extent)
        self.n_left[s] += 1
        return found


cdef class Subtree:
    """Of a set, in its records."""
    cdef SetRecords records
    cdef int s
    cdef RecordRange extent

    def piece(self):
        """The subtree as a `PartialTree`, once; the last one of a set gives its records back."""
        cdef SetRecords records = self.records
        found = piece_of(&records.of_set[self.s], &self.extent, records.n_statistics)
        records.n_left[self.s] -= 1
        if records.n_left[self.s] == 0:
            free_node_buffer(&records.of_set[self.s])
        return found


cdef void count_from(Record* nodes, const RecordRange* some) noexcept nogil:
    """Let the numbers in the records of a subtree count from its first record, and word."""
    cdef int32_t first = <int32_t>some.first
    cdef int32_t first_word = <int32_t>some.first_word
    cdef int64_t i
    if first == 0 and first_word == 0:
        return
    for i in range(some.first, some.end):
        if nodes[i].column != SUBTREE and nodes[i].left >= 0:
            nodes[i].left -= first
            nodes[i].right -= first
        if nodes[i].subset >= 0:
            nodes[i].subset -= first_word


# ---------------------------------------------------------------------------------------------
# the root

cdef SharedNode* shared_root(TrainingSets sets, SharedStore* s, int64_t depth,
                             uint64_t path) except NULL:
    """All rows that count; freed by `free_shared`.

    depth, path : of the root, which has no parent.
    """
    cdef Dataset dataset = sets.dataset
    cdef int n_cells = <int>sets.has.shape[1]
    cdef SharedNode* node = new_shared(s.n_sets, n_cells, &dataset.params, s.n_dense)
    cdef bint found = node != NULL
    cdef const uint16_t[::1] cell = sets.cell
    cdef const uint8_t[::1] live = dataset.live
    cdef int64_t i
    cdef int m, c
    if not found:
        raise MemoryError
    try:
        for m in range(s.n_sets if sets.above is not None else 0):
            allow(&node.open[m], sets.above[m])
    except MemoryError:
        free_shared(node)
        raise
    bar_columns(s, node)
    for m in range(s.n_sets):
        node.set_of[m] = m
        node.open[m].parent = -1
        node.open[m].depth = depth
        node.open[m].path = path
        for c in range(n_cells):
            if not sets.has[m, c]:
                node.without[c] |= <uint64_t>1 << m
    with nogil:
        found = reserve_rows(node, dataset.n_rows)
        for i in range(dataset.n_rows if found else 0):
            node.rows[node.n] = <uint32_t>i
            node.cell[node.n] = <uint8_t>cell[i]
            node.n += live[i]
        if found:
            sum_cells(s, node)
            sum_members(s, node)
            found = open_entries(s, node, &live[0])
    if not found or s.store.out_of_memory:
        free_shared(node)
        raise MemoryError
    return node


cdef void bar_columns(const SharedStore* s, SharedNode* root) noexcept nogil:
    """Dense columns that tests above do not allow are passed over, as if they were constant."""
    cdef const uint64_t* sets = root.open[0].above.sets
    cdef int64_t i
    for i in range(s.n_dense if s.store.params.limits.n_set_words > 0 else 0):
        root.constant[i] = not may_use(&s.store.params.limits, sets, s.dense[i])


# ---------------------------------------------------------------------------------------------
# One set of a shared node, as the root of a subtree that grows by itself.
#
#     rows of the node       12  13  17  20  21  ...
#     of set 2               12      17  20      ...     relocated to the set's own buffers
#     columns                those that vary in the node; dense ones are counted
#     entries of sparse ones those whose rows the set has
#
# Where sets have their own class weights, the rows get what they weigh in the set as they are
# relocated; where columns are drawn, they stay where they are, and get it by row of the table.

cdef struct Moving:
    # A set that moves to buffers of its own, feature by feature.
    Relocation move
    int64_t room            # for entries there
    int64_t at              # where the next ones go
    int64_t n_moved         # features


cdef bint begin_member(Growth* growth, Buffers* view, SharedStore* s, const SharedNode* node,
                       int member) noexcept nogil:
    """Begin the subtree of one set of a node, which inherits what it may do; False without memory.

    view : gets the rows of the set.
    """
    cdef const TrainParameters* params = &s.params_of[node.set_of[member]]
    cdef Buffers* own = NULL
    cdef bint found
    cdef OpenNode root = node.open[member]  # from here on with the node's sets of columns
    cdef size_t n_bytes = params.criterion.n_classes * sizeof(int64_t)
    node.open[member].above.sets = NULL
    if not reserve_root(params, view, &root, s.n_dense + node.n_features):
        return False
    if root.class_totals != NULL:
        memcpy(root.class_totals, node.open[member].class_totals, n_bytes)
    list_rows(view, s, node, member)
    root.start = 0
    root.n_features = 0
    if params.draws:
        found = begin_growth(growth, params, view, &root)
    else:
        own = relocated(s, node, params, view, &root)
        found = own != NULL and begin_growth(growth, params, own, &root)
        growth.frames[0].has_own = found
    if not found:
        free_buffers(own)
        free_node(&root)
    return found


cdef bint reserve_root(const TrainParameters* params, Buffers* view, OpenNode* root,
                       int64_t n_features) noexcept nogil:
    """Memory of its own for a root that was copied, and for its rows; False without any."""
    cdef bint sums_classes = root.class_totals != NULL
    cdef size_t n_bytes = (n_features + 1) * sizeof(PresortedFeature)
    cdef bint found = claim(<void**>&view.rows, (root.totals.n + 1) * sizeof(uint32_t))
    root.class_totals = NULL
    root.features = NULL
    if sums_classes:
        found &= claim(<void**>&root.class_totals, params.criterion.n_classes * sizeof(int64_t))
    if not params.draws:
        found &= claim(<void**>&root.features, n_bytes)
    if not found:
        free_node(root)
    return found


cdef void list_rows(Buffers* view, const SharedStore* s, const SharedNode* node,
                    int member) noexcept nogil:
    """List the rows of a member; where its classes have weights of their own, they get these."""
    cdef uint8_t has[MOST_CELLS]
    cdef int64_t n = 0
    cdef int64_t i
    cdef int c
    for c in range(node.n_cells):
        has[c] = not node.without[c] >> member & 1
    for i in range(node.n):
        view.rows[n] = node.rows[i]
        n += has[node.cell[i]]
    for i in range(node.n_some):
        view.rows[n] = node.some[i]
        n += node.who[i] >> member & 1
    if view.owns_statistics:
        for i in range(node.open[member].totals.n):
            weigh_row(s.of_row, class_weights(s, node, member), view.rows[i], &view.of_row,
                      view.rows[i])
    elif s.of_class != NULL:
        view.classes.of_class = class_weights(s, node, member)


cdef bint reserve_weights(Buffers* view, const SharedStore* s) noexcept nogil:
    """Where classes have weights of their own in each set, room for those of its rows, if columns
    are drawn; False without memory."""
    cdef size_t n_bytes = (view.n_rows + 1) * sizeof(int64_t)
    view.classes.has_target = not has_classes(s.layout.kind)
    view.owns_statistics = s.of_class != NULL and s.params_of[0].draws
    if not view.owns_statistics:
        return True
    view.of_row = s.of_row[0]
    view.of_row.weight = NULL
    view.of_row.target = NULL
    return (claim(<void**>&view.of_row.weight, n_bytes)
            and (not view.classes.has_target or claim(<void**>&view.of_row.target, n_bytes)))


cdef Buffers* relocated(SharedStore* s, const SharedNode* node, const TrainParameters* params,
                        Buffers* view, OpenNode* root) noexcept nogil:
    """The rows of a set in buffers of their own, with the columns that vary, ascending: dense ones,
    and sparse ones with the entries of the set, a few columns at a time. NULL without memory."""
    cdef Buffers* own = relocate_rows(view, root, 0)
    cdef Moving to
    cdef int64_t i = 0
    cdef int64_t r = 0
    cdef int64_t n_listed = 0  # entries that have not moved yet
    cdef int64_t n
    cdef int32_t j
    cdef bint found
    if own == NULL:
        return NULL
    to.move = Relocation(view, own, params.columns, &params.count_rule,
                         <uint32_t*>own.scratch, &own.counted)
    to.room = to.at = to.n_moved = 0
    found = reserve_entries(own, &to.room, likely_entries(node, root.totals.n))
    mark_listed(s, view, root, 1)
    while found and (i < s.n_dense or r < node.n_features):
        if r == node.n_features or i < s.n_dense and s.dense[i] < node.features[r].column:
            j = s.dense[i]
            if params.columns[j].n_codes > 0 and not node.constant[i]:
                root.features[root.n_features] = without_entries(&params.columns[j], j)
                root.n_features += 1
            i += 1
            continue
        if not may_use(&params.limits, root.above.sets, node.features[r].column):
            r += 1
            continue
        if n_listed + node.features[r].length >= s.n_own_entries:
            found = move_listed(&to, s.own_entries, root) and reserve_own(s, &node.features[r])
            n_listed = 0
            if not found:
                break
        n = keep_marked(node.entries, &node.features[r], s.side, s.own_entries + n_listed)
        if n > 0:
            root.features[root.n_features] = node.features[r]
            root.features[root.n_features].offset = n_listed
            root.features[root.n_features].length = <uint32_t>n
            root.n_features += 1
            n_listed += n
        r += 1
    found = found and move_listed(&to, s.own_entries, root)
    mark_listed(s, view, root, 0)
    if not found:
        free_buffers(own)
        return NULL
    return own


cdef bint move_listed(Moving* to, const uint64_t* entries, OpenNode* root) noexcept nogil:
    """Move the features of a root that were listed since the last time; False without memory."""
    cdef PresortedFeature* listed = root.features + to.n_moved
    cdef int64_t n = root.n_features - to.n_moved
    cdef int64_t r
    if n == 0:
        return True
    if not reserve_entries(to.move.new, &to.room,
                           to.at + entries_of_features(listed, n, root.totals.n)):
        return False
    n = relocate_features(&to.move, entries, listed, n, to.at)
    root.n_features = to.n_moved
    if n < 0:
        return False
    for r in range(n):
        to.at += listed[r].length
    root.n_features += n
    to.n_moved += n
    return True


cdef inline void mark_listed(SharedStore* s, const Buffers* view, const OpenNode* root,
                             uint8_t mark) noexcept nogil:
    """Mark the rows of a root, where columns are sparse; 0: take that back."""
    cdef int64_t i
    for i in range(root.totals.n if s.side != NULL else 0):
        s.side[view.rows[i]] = mark


# ---------------------------------------------------------------------------------------------
# one thread

cdef class SharedTask:
    """A node whose subtrees another thread grows."""
    cdef SharedNode* node

    def __dealloc__(self):
        if self.node != NULL:
            free_shared(self.node)


cdef class SharedGrowth:
    """What one thread needs to grow shared nodes, and those that wait for it."""
    cdef TrainingSets sets
    cdef Dataset dataset
    cdef Arena arena
    cdef GrowthMemory memory
    cdef SetRecords written
    cdef NodeBuffer* records    # by set: those of `written`
    cdef SharedStore store
    cdef SharedNode* offloaded     # to other threads, the last one first
    cdef int64_t* n_offloaded  # by set
    cdef int64_t most_offloaded    # work of a node that is
    cdef int64_t least_divided  # rows times columns of a node that several threads search
    cdef SharedNode* large  # such a node, which waits for them
    cdef const SharedNode* searched     # of which some columns were searched
    cdef int alone          # the set whose subtree grows; -1: none
    cdef Buffers view     # rows of a set that goes on alone
    cdef int64_t n_shared_nodes     # nodes that were searched for two sets or more,
    cdef int64_t n_shared_rows      # and their rows, each once

    def __cinit__(self, TrainingSets sets, Arena arena, bint is_one_of_several):
        cdef Dataset dataset = sets.dataset
        cdef SharedStore* store = &self.store
        self.sets, self.dataset = sets, dataset
        self.memory, self.arena, self.alone = arena.take(), arena, -1
        self.written = SetRecords(sets.n_sets, dataset.params.n_statistics, is_one_of_several)
        self.records = self.written.of_set
        self.n_offloaded = <int64_t*>calloc(sets.n_sets, sizeof(int64_t))
        self.view.n_rows = dataset.n_rows
        self.view.of_row = dataset.of_row
        if sets.times is not None and dataset.params.limits.n_columns > 0:
            self.view.of_row.times = <uint16_t*>&sets.times[0]
            self.view.of_row.weight = NULL
            self.view.of_row.target = dataset.of_row.value
        sets.describe(store)
        store.store.search_node = search_node
        store.store.partition = partition_members
        if (self.n_offloaded == NULL or not reserve_weights(&self.view, store)
                or not begin_store(store)):
            raise MemoryError
        self.view.number = store.code_of    # for sets that go on alone, when no node is split

    def __dealloc__(self):
        if self.view.number == self.store.code_of:
            self.view.number = NULL
        free_shared_list(self.store.top)
        free_shared_list(self.offloaded)
        if self.large != NULL:
            free_shared(self.large)
        free(self.n_offloaded)
        free(self.view.number)
        free(self.view.rows)
        if self.view.owns_statistics:
            free(self.view.of_row.weight)
            free(self.view.of_row.target)
        free_store(&self.store)

    cdef list grow(self, sets, cancelled, team=None):
        """Grow what is on the stack; a `Subtree` for each of some sets, None when it was cancelled.

        team : `SharedTeam`, which searches large nodes, and to which subtrees are left.
        """
        cdef bint more = True
        self.written.begin()
        while more:
            if cancelled():
                return None
            with nogil:
                more = self.go_on(SLICE)
            if self.store.store.out_of_memory:
                raise MemoryError
            if self.large != NULL:
                team.search_large(self)
            if self.offloaded != NULL:
                team.leave(self.take_offloaded())
                if next_copies(&self.store, self.most_offloaded):
                    team.do_tasks()
        return [self.written.end(s) for s in sets]

    cdef split_large(self, list searchers):
        """Partition a large node by the best of what some threads have found."""
        cdef SharedGrowth worker
        cdef Member* members = take_node(&self.store, self.large)
        cdef int n = self.large.n_members
        if self.searched != self.large:
            with nogil:
                begin_members(members, n)
                begin_search(&self.store, self.large)
        self.searched = NULL
        for worker in searchers:
            if worker is not self:
                worker.searched = NULL
                take_better(&self.store, &worker.store)
            with nogil:
                forget_members(&worker.store, self.large)
        if self.store.store.out_of_memory:
            raise MemoryError
        with nogil:
            split_members(&self.store.store, self.records, members, n)
            self.note_lost(self.large)
            free_shared(self.large)
            self.large = NULL
        if self.store.store.out_of_memory:
            raise MemoryError

    cdef void search_block(self, SharedGrowth top, const double* best, int64_t first,
                           int64_t step) noexcept nogil:
        """Search some of the columns of a large node, beside others who search it.

        best : of each member, the best boundary of all columns, if intervals are searched inside.
        """
        if self.searched != top.large:
            begin_members(take_node(&self.store, top.large), top.large.n_members)
            begin_search(&self.store, top.large)
            self.searched = top.large
        self.store.highest = top.store.own_highest
        if best == NULL:
            search_columns(&self.store, top.large, first, step)
        else:
            search_intervals(&self.store, top.large, best, first, step)
        self.store.highest = self.store.own_highest

    cdef list grow_task(self, SharedTask task, cancelled):
        """Pairs of the number of a set and its `Subtree`; None when it was cancelled."""
        cdef int m
        sets = [task.node.set_of[m] for m in range(task.node.n_members)
                if task.node.active >> m & 1]
        self.store.top = task.node
        task.node = NULL
        found = self.grow(sets, cancelled)
        return None if found is None else list(zip(sets, found))

    cdef list take_offloaded(self):
        """The nodes that were offloaded, in this order."""
        cdef SharedTask task
        cdef list tasks = []
        while self.offloaded != NULL:
            task = SharedTask()
            task.node = self.offloaded
            self.offloaded = task.node.below
            task.node.below = NULL
            tasks.append(task)
        tasks.reverse()
        return tasks

    # -----------------------------------------------------------------------------------------
    # nodes

    cdef open_root(self, int64_t depth, uint64_t path):
        """All rows that count."""
        self.store.top = shared_root(self.sets, &self.store, depth, path)

    cdef bint go_on(self, int64_t work) noexcept nogil:
        """Grow until about `work` entries were looked at; False when all trees are complete."""
        cdef SharedNode* node
        cdef int64_t stop = self.store.store.work + work
        cdef int m
        while True:
            if self.alone >= 0:
                if grow_for(self.memory.growth, work):
                    return True
                self.end_alone()
            elif self.store.top == NULL:
                return False
            else:
                node = self.store.top
                if node.waiting == 0:
                    self.store.top = node.below
                    if self.process_node(node):
                        free_shared(node)
                else:  # its members go on alone, one after the other
                    m = trailing_zeros(node.waiting)
                    node.waiting &= node.waiting - 1
                    if node.waiting == 0:
                        self.store.top = node.below
                    self.begin_alone(node, m)
                    if node.waiting == 0:
                        free_shared(node)
            if (self.store.store.work > stop or self.large != NULL or self.offloaded != NULL
                    or self.store.store.out_of_memory):
                return True

    cdef bint process_node(self, SharedNode* node) noexcept nogil:
        """Record a node, and split it, offload it, or let its members go on alone.

        Returns whether it is done with.
        """
        cdef Member* members = take_node(&self.store, node)
        cdef uint64_t active = 0
        cdef int64_t most = 0
        cdef bint leaves, go_alone
        cdef int m
        for m in range(node.n_members):
            if node.active >> m & 1 and not node.open[m].is_leaf:
                active |= <uint64_t>1 << m
                most = max(most, node.open[m].totals.n)
        record_members(self.records, members, node.n_members, node.active & ~active)
        self.note_lost(node)
        node.active = active
        if active == 0:
            return True
        leaves = self.most_offloaded > 0 and work_of(node) <= self.most_offloaded
        go_alone = (not leaves and (most <= MAX_NARROW or self.store.params_of[0].draws)
                    and (active & (active - 1) == 0 or not self.pays(node)))
        if not (has_other_readers(&self.store, node) if leaves
                else go_alone and active & (active - 1) == 0):
            part_entries(&self.store, node)
            if self.store.store.out_of_memory:
                return True
        if leaves:
            self.offload(node)
        elif go_alone:
            node.waiting = active
            node.below = self.store.top
            self.store.top = node
        else:
            record_members(self.records, members, node.n_members, active)
            return self.split_node(node, members)
        return False

    cdef bint split_node(self, SharedNode* node, Member* members) noexcept nogil:
        """Search a node and split it, or leave that to all threads; returns whether it is done
        with."""
        if node.active & (node.active - 1):
            self.n_shared_nodes += 1
            self.n_shared_rows += node.n + node.n_some
        if self.least_divided > 0 and cells_of(&self.store, node) >= self.least_divided:
            self.large = node
            return False
        search_members(&self.store.store, members, node.n_members)
        split_members(&self.store.store, self.records, members, node.n_members)
        self.note_lost(node)
        return True

    cdef void note_lost(self, const SharedNode* node) noexcept nogil:
        """Look whether records of the node's sets, or what its children inherit, were lost without
        memory."""
        cdef int m
        for m in range(node.n_members):
            self.store.store.out_of_memory |= (
                self.records[node.set_of[m]].out_of_memory
                or self.store.searches[node.set_of[m]].out_of_memory)

    cdef void offload(self, SharedNode* node) noexcept nogil:
        """Leave the subtrees to another thread; a record of each set stands for its own."""
        cdef int64_t record
        cdef int m, s
        for m in range(node.n_members):
            if node.active >> m & 1:
                s = node.set_of[m]
                record = write_record(&self.records[s], &self.store.params_of[s], &node.open[m])
                if record < 0:
                    self.store.store.out_of_memory = True
                    break
                self.n_offloaded[s] += 1
                stand_for(&self.records[s], record, self.n_offloaded[s])
                node.open[m].parent = -1
        node.below, node.is_left = self.offloaded, False
        self.offloaded = node

    cdef bint pays(self, const SharedNode* node) noexcept nogil:
        """Whether the sets of a node are better off together."""
        cdef int64_t others = count_bits(node.active) - 1
        return (self.sets.shared_rows == 0
                or (node.n - NODE_COST) * others >= self.sets.shared_rows)

    # -----------------------------------------------------------------------------------------
    # a set that goes on alone

    cdef void begin_alone(self, SharedNode* node, int member) noexcept nogil:
        """Begin the subtree of one set, which writes the records of the set."""
        cdef int s = node.set_of[member]
        if not begin_member(self.memory.growth, &self.view, &self.store, node, member):
            self.store.store.out_of_memory = True
            return
        free_node_buffer(&self.memory.growth.out)  # what it held for its next growth
        self.memory.growth.out = self.records[s]
        memset(&self.records[s], 0, sizeof(NodeBuffer))
        self.alone = s

    cdef void end_alone(self) noexcept nogil:
        cdef Growth* growth = self.memory.growth
        self.records[self.alone] = growth.out
        memset(&growth.out, 0, sizeof(NodeBuffer))
        self.store.store.work += growth.store.work
        end_growth(growth)
        self.alone = -1


# ---------------------------------------------------------------------------------------------
# Several threads: one leads a team, grows the upper nodes, and leaves the subtrees below them as
# tasks, which the others find at once. Large nodes are searched by all, in blocks of columns.

def grow_together(TrainingSets sets, Arena arena, run, int n_threads, cancelled, tuning,
                  int64_t depth=0, uint64_t path=0):
    """Grow the tree of each set.

    Parameters
    ----------
    sets : TrainingSets
    arena : Arena
    run : Runner
    n_threads : int
        Decides only how the work is divided.
    cancelled : callable () -> bool
    tuning : Tuning
        `task_entries` decides which tables one thread grows, `level_entries` which nodes it
        searches.
    depth, path : int, default=0
        Of the node that has all rows.

    Returns
    -------
    list of list of Subtree
        By set: pieces, as `dtrees.core.grow.assembly.join` takes them. Empty when the growth was
        cancelled.
    """
    cdef SharedGrowth top = SharedGrowth(sets, arena, n_threads > 1)
    cdef int64_t n_columns = sets.n_dense + sets.n_stored // (sets.dataset.n_rows + 1)  # of a row
    cdef SharedGrowth worker
    cdef Subtree subtree
    team = SharedTeam(sets, arena, cancelled, n_threads)
    top.open_root(depth, path)
    if n_threads == 1 or work_of(top.store.top) * n_columns < OFFLOADED * tuning.task_entries:
        found = top.grow(range(sets.n_sets), cancelled)
    else:
        top.most_offloaded = work_of(top.store.top) // (TASKS * n_threads)
        if not sets.params_of[0].draws:
            top.least_divided = tuning.level_entries
        upper = partial(team.lead, partial(team.grow_upper, top))
        try:
            found = run([upper, *[team.help] * (n_threads - 1)])[0]
        finally:
            team.dismiss()  # where nobody has come to lead
    if found is None or cancelled():
        return []
    pieces = [[subtree] for subtree in found]
    for subtrees in team.left:  # each after those that were offloaded before it
        for s, subtree in subtrees:
            pieces[s].append(subtree)
    for worker in {top, *team.idle}:
        sets.n_bounded += worker.store.n_bounded
        sets.n_alive += worker.store.n_alive
        sets.n_shared_nodes += worker.n_shared_nodes
        sets.n_shared_rows += worker.n_shared_rows
        arena.take_back(worker.memory)
    return pieces


class SharedTeam(Team):
    """Threads that search large nodes with the one that grows them, and grow subtrees below.

    Attributes
    ----------
    idle : list of SharedGrowth
        Scratch of threads, without a task.
    left : list of list of (int, Subtree)
        Of each node that was left, in turn: sets and subtrees.
    """

    def __init__(self, TrainingSets sets, Arena arena, cancelled, int n_threads):
        self.sets, self.arena, self.cancelled = sets, arena, cancelled
        self.n_blocks = BLOCKS * n_threads
        self.idle, self.left = [], []

    def grow_upper(self, SharedGrowth top):
        """Grow what is above the subtrees that are left to whoever helps."""
        found = top.grow(range(top.sets.n_sets), self.cancelled, self)
        self.idle.append(top)
        return found

    def take(self, list first=None):
        """Scratch that has no task: one of `first`, if there is any."""
        for idle in (self.idle,) if first is None else (first, self.idle):
            try:
                return idle.pop()
            except IndexError:
                pass  # there is none, or another thread was faster
        return SharedGrowth(self.sets, self.arena, True)

    def leave(self, list subtrees):
        """Leave subtrees to whoever helps."""
        for subtree in subtrees:
            found = []
            self.left.append(found)
            self.put(partial(self.grow, subtree, found))

    def grow(self, SharedTask subtree, list found):
        """Subtrees of a node, which are added to `found`."""
        cdef SharedGrowth worker = self.take()
        worker.most_offloaded = worker.least_divided = 0
        subtrees = worker.grow_task(subtree, self.cancelled)
        if subtrees is not None:
            found.extend(subtrees)
            self.idle.append(worker)

    def search_large(self, SharedGrowth top):
        """Search a large node in blocks of columns: first the boundaries between intervals, then,
        with the best of all, what is inside of them."""
        searchers = [top]
        search = partial(self.search_block, top, searchers)
        best = np.max(self.share(search, self.n_blocks), axis=0)
        if top.sets.intervals != NULL:
            self.share(partial(search, best=best), self.n_blocks)
        top.split_large(searchers)
        self.idle += [worker for worker in searchers if worker is not top]

    def search_block(self, SharedGrowth top, list searchers, int first, best=None):
        """Search every so many columns; the best boundary of each member.

        searchers : those that have looked at the node, and have no task.
        """
        cdef SharedGrowth worker = self.take(searchers)
        cdef const double[::1] of_all = best
        cdef int n = top.large.n_members
        cdef int step = self.n_blocks
        cdef int m
        with nogil:
            worker.search_block(top, NULL if best is None else &of_all[0], first, step)
        searchers.append(worker)
        return [worker.store.best[m] for m in range(n)]
