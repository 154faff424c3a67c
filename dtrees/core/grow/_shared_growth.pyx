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
the growth of a single tree (`_depth_first`), from the same rows; its tree is the tree of the set,
bit for bit, since every score comes from the same integers.

Nodes are processed depth first, so the records of each set are in preorder.
"""
from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dtrees.core.data._bits cimport count_bits, trailing_zeros
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.presorted._buffers cimport MAX_NARROW
from dtrees.core.stores._store cimport Member, begin_members
from dtrees.core.stores.shared._shared_nodes cimport (
    SharedNode, free_shared, free_shared_list, work_of
)
from dtrees.core.stores.shared._shared_entries cimport (
    forget_members, has_other_readers, next_copies, part_entries
)
from dtrees.core.stores.shared._shared_intervals cimport search_intervals
from dtrees.core.stores.shared._shared_state cimport SharedStore, cells_of
from dtrees.core.stores.shared._shared_store cimport (
    begin_search, begin_store, free_store, partition_members, search_columns, search_node,
    take_better, take_node
)
from dtrees.core.grow._arena cimport Arena
from dtrees.core.grow._depth_first cimport Growth, end_growth, grow_for
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, free_node_buffer, stand_for, write_record
)
from dtrees.core.grow._node_step cimport record_members, search_members, split_members
from dtrees.core.grow._set_records cimport SetRecords
from dtrees.core.grow._shared_root cimport shared_root
from dtrees.core.grow._single_member cimport begin_member, free_view, reserve_weights
from dtrees.core.grow._training_sets cimport TrainingSets

cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    NODE_COST = 50          # of a shared node for each set, in rows


cdef class SharedTask:
    """A node whose subtrees another thread grows."""

    def __dealloc__(self):
        if self.node != NULL:
            free_shared(self.node)


cdef class SharedGrowth:
    """What one thread needs to grow shared nodes, and those that wait for it."""

    def __cinit__(self, TrainingSets sets, Arena arena):
        cdef Dataset dataset = sets.dataset
        cdef SharedStore* store = &self.store
        self.sets, self.dataset = sets, dataset
        self.memory, self.arena, self.alone = arena.take(), arena, -1
        self.written = SetRecords(sets.n_sets, dataset.params.n_statistics, arena)
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
        free_view(&self.view)
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

    cdef void look_at(self, SharedGrowth top) noexcept nogil:
        """Begin with a large node, beside others who search it."""
        if self.searched != top.large:
            begin_members(take_node(&self.store, top.large), top.large.n_members)
            begin_search(&self.store, top.large)
            self.searched = top.large
        self.store.highest = top.store.own_highest

    cdef void search_block(self, SharedGrowth top, int64_t first, int64_t step) noexcept nogil:
        """Search some of the columns of a node, beside those that were searched before."""
        self.look_at(top)
        search_columns(&self.store, top.large, first, step)
        self.store.highest = self.store.own_highest

    cdef void search_block_inside(self, SharedGrowth top, const double* best, int64_t first,
                                  int64_t step) noexcept nogil:
        """The same, inside of intervals."""
        self.look_at(top)
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
            task.work = work_of(task.node)
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
