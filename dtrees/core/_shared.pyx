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
different columns part. A set that is alone, or no longer gains by company (`pays`), is finished by
the growth of a single tree (`_finish`), from the same rows; its tree is the tree of the set, bit
for bit, since every score comes from the same integers.

Nodes are taken up depth first, so the records of each set are in preorder.
"""
from functools import partial

import numpy as np

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dtrees._random cimport hash64
from dtrees.core._columns cimport Column, last_ordered
from dtrees.core._drawn cimport draw_columns
from dtrees.core._finish cimport Growth, begin_growth, end_growth, grow_for
from dtrees.core._groups cimport reserve_groups, search_groups
from dtrees.core._nodes cimport add_to_totals, clear_totals, describe, free_node
from dtrees.core._plan cimport Limits, Plan, gains_enough
from dtrees.core._reader cimport FIELD, LARGEST_FIELD
from dtrees.core._records cimport Records, free_records, subtree_of, write_record, write_test
from dtrees.core._route cimport route_of
from dtrees.core._search cimport (
    Search, begin_node, comes_first, finish_node, free_search, new_search
)
from dtrees.core._shared_classes cimport (
    MOST_ROWS, count_classes, free_classes, number_classes, search_classes, take_boundary
)
from dtrees.core._shared_counts cimport count_rows, count_some, numbers_of_some, rank_codes
from dtrees.core._shared_nodes cimport (
    MOST_CELLS, MOST_SETS, Parting, SharedNode, claimed, free_shared, free_shared_list,
    mark_codes_left, new_shared, part_shared, reserve_rows, work_of
)
from dtrees.core._structs cimport (
    ALL_ORDERED, CLASSES, COUNT, GINI, IN_SUBSET, LEAF, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode,
    Payload, Run, Totals
)
from dtrees.core._wide cimport is_wide
from dtrees.core._workspace cimport MAX_NARROW, OpenNode

from dtrees.typing import serial

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil
    int count_bits "__builtin_popcountll"(uint64_t) noexcept nogil

cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    SUBTREE = -3            # column of a record that stands for a piece (`dtrees.core.assembly`)
    TASKS = 4               # subtrees for each thread
    BLOCKS = 3              # of columns for each thread
    NODE_COST = 50          # of a shared node for each set, in rows


cdef class TrainingSets:
    """Sets of rows that lack a cell each, and what a growth does with each of them.

    Parameters
    ----------
    shard : Shard
        Of all rows. Columns are dense and of 8 or 16 bits (`can_share`), cuts are not random.
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
    counted_rows, shared_rows : int
        As in `dtrees.core.tuning.Tuning`.
    """

    def __cinit__(self, Shard shard, const uint16_t[::1] cell, const uint8_t[:, ::1] has,
                  const double[::1] total_weight, const int64_t[:, ::1] least,
                  const uint16_t[::1] times, int64_t counted_rows, int64_t shared_rows):
        cdef int s
        assert has.shape[0] <= MOST_SETS and has.shape[1] <= MOST_CELLS
        self.shard = shard
        self.cell = cell
        self.n_sets = <int>has.shape[0]
        self.has = has
        self.times = times
        self.shared_rows = shared_rows
        self.plans = <Plan*>calloc(self.n_sets, sizeof(Plan))
        if self.plans == NULL:
            raise MemoryError
        for s in range(self.n_sets):
            self.plans[s] = shard.plan
            self.plans[s].limits.total_weight = total_weight[s]
            self.plans[s].limits.min_samples_split = least[s, 0]
            self.plans[s].limits.min_rows = least[s, 1]
            self.plans[s].limits.min_weight = least[s, 2]
            self.plans[s].count_rule.least_rows = counted_rows
            self.plans[s].draws = shard.plan.limits.max_features < shard.plan.limits.n_columns
        self.choose_cells()

    def __dealloc__(self):
        free(self.plans)

    cdef choose_cells(self):
        """Two classes: all that a row adds is one number, where no sum overflows its field."""
        cdef const Payload* payload = &self.shard.payload
        cdef int64_t total = 0
        cdef int64_t i
        self.stride = self.shard.plan.stride
        if payload.value != NULL or self.shard.plan.mode not in (COUNT, WEIGHTED_SUM):
            return
        for i in range(self.shard.n_rows):
            total += self.shard.live[i] if payload.weight == NULL else payload.weight[i]
            if total > LARGEST_FIELD:
                return
        self.is_packed = True
        self.stride = 1

    def grow(self, Pool pool, run, int n_threads, cancelled, int64_t least_handed,
             int64_t least_divided, int64_t depth=0, uint64_t path=0):
        """Grow the tree of each set.

        Parameters
        ----------
        pool : Pool
        run : Runner
        n_threads : int
            Decides only how the work is cut.
        cancelled : callable () -> bool
        least_handed : int
            Rows times sets times columns of a table: less is grown by one thread.
        least_divided : int
            Rows times columns of a node: less is searched by one thread.
        depth, path : int, default=0
            Of the node that has all rows.

        Returns
        -------
        list of list of Subtree
            By set: pieces, as those of `dtrees.core._levels.Levels.grow`. Empty when the growth
            was cancelled.
        """
        cdef SharedGrowth top = SharedGrowth(self, pool)
        cdef int64_t n_columns = self.shard.plan.limits.n_columns
        idle = [top]
        top.open_root(depth, path)
        if n_threads > 1 and work_of(top.top) * n_columns >= least_handed:
            top.most_handed = work_of(top.top) // (TASKS * n_threads)
            if not self.plans[0].draws:
                top.least_divided = least_divided
        found = top.grow(cancelled, run, BLOCKS * n_threads, idle)
        if found is None:
            return []
        pieces = [[subtree] for subtree in found]
        tasks = top.take_handed()
        by_size = sorted(range(len(tasks)), key=lambda i: -(<SharedTask>tasks[i]).work)
        left = sum((<SharedTask>task).work for task in tasks) * n_columns
        carry = run if left >= least_handed // 2 else serial
        grown = carry([partial(self._grow_task, tasks[i], pool, idle, cancelled) for i in by_size])
        if cancelled():
            return []
        for i in np.argsort(by_size):  # each after those that were handed over before it
            for s, subtree in grown[i]:
                pieces[s].append(subtree)
        for worker in idle:
            pool.give_back((<SharedGrowth>worker).memory)
        return pieces

    def _grow_task(self, SharedTask task, Pool pool, list idle, cancelled):
        """Subtrees of a node, in the scratch of a thread that has none to do."""
        cdef SharedGrowth worker = idle.pop() if idle else SharedGrowth(self, pool)
        worker.most_handed = worker.least_divided = 0
        subtrees = worker.grow_task(task, cancelled)
        if subtrees is not None:
            idle.append(worker)
        return subtrees

    def _search_block(self, SharedGrowth top, int first, int step, list idle, list busy):
        """Search every `step`-th column of a large node."""
        cdef SharedGrowth worker = idle.pop() if idle else SharedGrowth(self, top.pool)
        with nogil:
            worker.search_block(top.large, first, step)
        busy.append(worker)
        idle.append(worker)


cdef class SharedTask:
    """A node whose subtrees another thread grows."""

    def __dealloc__(self):
        if self.node != NULL:
            free_shared(self.node)


cdef class SharedGrowth:
    """What one thread needs to grow shared nodes, and those that wait for it."""

    def __cinit__(self, TrainingSets sets, Pool pool):
        cdef Shard shard = sets.shard
        cdef int s
        cdef int64_t j
        cdef int64_t K = shard.plan.criterion.n_classes
        cdef int64_t n_columns = shard.plan.limits.n_columns
        cdef int64_t most_codes = 0
        self.sets = sets
        self.shard = shard
        self.n_sets = sets.n_sets
        self.plans = sets.plans
        self.memory = pool.take()
        self.pool = pool
        self.alone = -1
        self.searches = <Search**>calloc(self.n_sets, sizeof(Search*))
        self.records = <Records*>calloc(self.n_sets, sizeof(Records))
        self.n_handed = <int64_t*>calloc(self.n_sets, sizeof(int64_t))
        for s in range(self.n_sets):
            self.searches[s] = new_search(&self.plans[s].criterion, shard.plan.mode,
                                          shard.payload, &self.plans[s].limits)
        for j in range(n_columns):
            most_codes = max(most_codes, shard.columns[j].n_codes)
        self.view.n_rows = shard.n_rows
        self.view.payload = shard.payload
        if sets.times is not None and n_columns > 0:
            self.view.payload.times = <uint16_t*>&sets.times[0]
            self.view.payload.weight = NULL
            self.view.payload.target = shard.payload.value
        self.counting.payload = &shard.payload
        self.counting.mode = shard.plan.mode
        self.counting.stride = sets.stride
        self.order = <int32_t*>malloc((n_columns + 1) * sizeof(int32_t))
        self.swapped = <int32_t*>malloc((n_columns + 1) * sizeof(int32_t))
        if self.order == NULL or self.swapped == NULL:
            raise MemoryError
        for j in range(n_columns):
            self.order[j] = <int32_t>j
        self.code = <uint32_t*>malloc((most_codes + 2) * sizeof(uint32_t))
        self.rank = <uint32_t*>malloc((most_codes + 2) * sizeof(uint32_t))
        self.hit = <uint64_t*>calloc((most_codes >> 6) + 2, sizeof(uint64_t))
        self.left_of = <uint64_t*>malloc((most_codes + 2) * sizeof(uint64_t))
        self.sums = <int64_t*>malloc(MOST_CELLS * sizeof(int64_t))
        self.totals = <Totals*>malloc(MOST_CELLS * sizeof(Totals))
        self.class_totals = <int64_t*>malloc(MOST_CELLS * (K + 1) * sizeof(int64_t))
        if (self.code == NULL or self.rank == NULL or self.hit == NULL or self.left_of == NULL
                or self.sums == NULL or self.totals == NULL or self.class_totals == NULL):
            raise MemoryError

    def __dealloc__(self):
        cdef int s
        free_shared_list(self.top)
        free_shared_list(self.handed)
        if self.large != NULL:
            free_shared(self.large)
        for s in range(self.n_sets):
            free_search(self.searches[s])
            free_records(&self.records[s])
        free(self.searches)
        free(self.records)
        free(self.n_handed)
        free(self.view.number)
        free(self.view.rows)
        free(self.order)
        free(self.swapped)
        free(self.cells)
        free(self.added)
        free_classes(&self.classes)
        free(self.code)
        free(self.rank)
        free(self.hit)
        free(self.left_of)
        free(self.sums)
        free(self.totals)
        free(self.class_totals)

    cdef list grow(self, cancelled, run=serial, int n_blocks=1, list idle=None):
        """Grow what is on the stack; a subtree for every set, None when it was cancelled.

        The columns of large nodes are searched in blocks, by the threads of `run`.
        """
        cdef int s
        cdef bint more = True
        cdef list found = []
        while more:
            if cancelled():
                return None
            with nogil:
                more = self.go_on(SLICE)
            if self.starved:
                raise MemoryError
            if self.large != NULL:
                self.search_large(run, n_blocks, idle)
        for s in range(self.n_sets):
            found.append(subtree_of(&self.records[s], self.shard.plan.n_statistics))
            self.records[s].count = 0
            self.records[s].n_words = 0
        return found

    cdef search_large(self, run, int n_blocks, list idle):
        """Search a large node on several threads, and part it."""
        cdef SharedGrowth worker
        cdef int64_t block
        busy = []
        idle.remove(self)
        run([partial(self.sets._search_block, self, block, n_blocks, idle, busy)
             for block in range(n_blocks)])
        idle.append(self)
        with nogil:
            self.begin_search(self.large)
        for worker in {id(worker): worker for worker in busy}.values():
            self.take_better(worker)
            self.starved |= worker.starved
        if self.starved:
            raise MemoryError
        with nogil:
            self.end_search(self.large)
            self.part_node(self.large)
            free_shared(self.large)
            self.large = NULL
        if self.starved:
            raise MemoryError

    cdef void search_block(self, const SharedNode* node, int64_t first,
                           int64_t step) noexcept nogil:
        """Search some of the columns of a node, beside those that were searched before."""
        cdef int64_t j = first
        if self.searched != node:
            self.begin_search(node)
            self.searched = node
        while j < self.shard.plan.limits.n_columns:
            self.search_column(node, <int32_t>j, node.active)
            j += step

    cdef take_better(self, SharedGrowth other):
        """Take the splits that another thread has found, where they are better."""
        cdef Search* mine
        cdef const Search* found
        cdef int64_t n_bytes
        cdef int s
        other.searched = NULL
        for s in range(self.n_sets):
            mine = self.searches[s]
            found = other.searches[s]
            if found.split.test == LEAF or mine.split.test != LEAF and (
                    found.split.score < mine.split.score
                    or found.split.score == mine.split.score
                    and not comes_first(mine, found.split.column, mine.split.column)):
                continue
            mine.split = found.split
            if found.split.test == IN_SUBSET:
                n_bytes = found.split_subset_words * sizeof(uint64_t)
                mine.split_subset = <uint64_t*>realloc(mine.split_subset, n_bytes)
                mine.split_subset_words = found.split_subset_words
                memcpy(mine.split_subset, found.split_subset, n_bytes)

    cdef list grow_task(self, SharedTask task, cancelled):
        """Pairs of the number of a set and its subtree; None when it was cancelled."""
        cdef int m
        sets = [task.node.set_of[m] for m in range(task.node.n_members)
                if task.node.active >> m & 1]
        self.top = task.node
        task.node = NULL
        found = self.grow(cancelled)
        return None if found is None else [(s, found[s]) for s in sets]

    cdef list take_handed(self):
        """The nodes that were handed over, in this order."""
        cdef SharedTask task
        cdef list tasks = []
        while self.handed != NULL:
            task = SharedTask()
            task.node = self.handed
            self.handed = task.node.below
            task.node.below = NULL
            task.work = work_of(task.node)
            tasks.append(task)
        tasks.reverse()
        return tasks

    # -----------------------------------------------------------------------------------------
    # nodes

    cdef open_root(self, int64_t depth, uint64_t path):
        """All rows that count."""
        cdef int n_cells = <int>self.sets.has.shape[1]
        cdef SharedNode* node = new_shared(self.n_sets, n_cells, &self.shard.plan)
        cdef bint found = node != NULL
        cdef const uint16_t[::1] cell = self.sets.cell
        cdef const uint8_t[::1] live = self.shard.live
        cdef int64_t i
        cdef int s, c
        if not found:
            raise MemoryError
        self.top = node
        for s in range(self.n_sets):
            node.set_of[s] = s
            node.open[s].parent = -1
            node.open[s].depth = depth
            node.open[s].path = path
            for c in range(n_cells):
                if not self.sets.has[s, c]:
                    node.without[c] |= <uint64_t>1 << s
        with nogil:
            found = reserve_rows(node, self.shard.n_rows)
            for i in range(self.shard.n_rows if found else 0):
                node.rows[node.n] = <uint32_t>i
                node.cell[node.n] = <uint8_t>cell[i]
                node.n += live[i]
            if found:
                self.sum_cells(node)
                self.sum_members(node)
        if not found or self.starved:
            raise MemoryError

    cdef void sum_cells(self, const SharedNode* node) noexcept nogil:
        """What the rows of each cell add up to, in scratch."""
        cdef int64_t K = self.shard.plan.criterion.n_classes
        cdef int64_t i
        cdef int c
        if self.sets.is_packed:
            memset(self.sums, 0, node.n_cells * sizeof(int64_t))
            for i in range(node.n):
                self.sums[node.cell[i]] += packed(&self.shard.payload, node.rows[i])
            return
        memset(self.class_totals, 0, node.n_cells * K * sizeof(int64_t))
        for c in range(node.n_cells):
            clear_totals(&self.totals[c])
        for i in range(node.n):
            c = node.cell[i]
            add_to_totals(&self.shard.payload, &self.shard.plan, node.rows[i], &self.totals[c],
                          self.class_totals + c * K if K > 0 else NULL)

    cdef void sum_members(self, SharedNode* node) noexcept nogil:
        """Sums of each member, of the cells that it does not lack and of what only some have, and
        its description. Those of the cells are in scratch."""
        cdef int64_t K = self.shard.plan.criterion.n_classes
        cdef int64_t i, k
        cdef int c, m
        cdef uint64_t bits
        cdef OpenNode* open
        if self.sets.is_packed:
            self.unpack_members(node)
            if self.starved:
                return
        else:
            for m in range(node.n_members):
                open = &node.open[m]
                clear_totals(&open.totals)
                for c in range(node.n_cells):
                    if node.without[c] >> m & 1:
                        continue
                    add_totals(&open.totals, &self.totals[c])
                    for k in range(K):
                        open.class_totals[k] += self.class_totals[c * K + k]
            for i in range(node.n_some):
                bits = node.who[i]
                while bits != 0:
                    open = &node.open[trailing_zeros(bits)]
                    bits &= bits - 1
                    add_to_totals(&self.shard.payload, &self.shard.plan, node.some[i],
                                  &open.totals, open.class_totals)
        for m in range(node.n_members):
            describe(&node.open[m], &self.plans[node.set_of[m]])

    cdef void unpack_members(self, SharedNode* node) noexcept nogil:
        """The sums alone, where rows are packed."""
        cdef int64_t sums[MOST_SETS]
        cdef int64_t* added = <int64_t*>claimed(NULL, (node.n_some + 1) * sizeof(int64_t))
        cdef int64_t all = 0
        cdef int64_t i
        cdef int c, m
        cdef uint64_t bits
        cdef OpenNode* open
        if added == NULL:
            self.starved = True
            return
        for i in range(node.n_some):
            added[i] = packed(&self.shard.payload, node.some[i])
        for c in range(node.n_cells):
            all += self.sums[c]
        for m in range(node.n_members):
            sums[m] = all
        for c in range(node.n_cells):
            bits = node.without[c]
            while bits != 0:
                sums[trailing_zeros(bits)] -= self.sums[c]
                bits &= bits - 1
        for m in range(node.n_members):
            for i in range(node.n_some):
                sums[m] += added[i] & -<int64_t>(node.who[i] >> m & 1)
            open = &node.open[m]
            open.totals.n = sums[m] >> 2 * FIELD
            open.totals.weight = sums[m] >> FIELD & LARGEST_FIELD
            open.totals.target = sums[m] & LARGEST_FIELD
            open.class_totals[0] = open.totals.weight - open.totals.target
            if self.shard.plan.criterion.n_classes > 1:
                open.class_totals[1] = open.totals.target
        free(added)

    cdef bint go_on(self, int64_t work) noexcept nogil:
        """Grow until about `work` entries were looked at; False when all trees are complete."""
        cdef SharedNode* node
        cdef int64_t stop = self.work + work
        cdef int m
        while True:
            if self.alone >= 0:
                if grow_for(self.memory.growth, work):
                    return True
                self.end_alone()
            elif self.top == NULL:
                return False
            else:
                node = self.top
                if node.waiting == 0:
                    self.top = node.below
                    if self.take_up(node):
                        free_shared(node)
                else:  # its members go on alone, one after the other
                    m = trailing_zeros(node.waiting)
                    node.waiting &= node.waiting - 1
                    if node.waiting == 0:
                        self.top = node.below
                    self.begin_alone(node, m)
                    if node.waiting == 0:
                        free_shared(node)
            if self.work > stop or self.large != NULL or self.starved:
                return True

    cdef bint take_up(self, SharedNode* node) noexcept nogil:
        """Record a node, and split it, hand it over, or let its members go on alone.

        Returns whether it is done with.
        """
        cdef uint64_t active = 0
        cdef int64_t most = 0
        cdef int m, s
        for m in range(node.n_members):
            if not node.active >> m & 1:
                continue
            if node.open[m].is_leaf:
                s = node.set_of[m]
                write_record(&self.records[s], &self.plans[s], &node.open[m])
            else:
                active |= <uint64_t>1 << m
                if node.open[m].totals.n > most:
                    most = node.open[m].totals.n
        node.active = active
        if active == 0:
            return True
        if self.most_handed > 0 and work_of(node) <= self.most_handed:
            self.hand_over(node)
            return False
        if ((most <= MAX_NARROW or self.plans[0].draws)
                and (active & (active - 1) == 0 or not self.pays(node))):
            node.waiting = active
            node.below = self.top
            self.top = node
            return False
        for m in range(node.n_members):
            if active >> m & 1:
                s = node.set_of[m]
                node.record[m] = write_record(&self.records[s], &self.plans[s], &node.open[m])
        if self.least_divided > 0 and node.n * self.shard.plan.limits.n_columns \
                >= self.least_divided:
            self.large = node
            return False
        self.search_node(node)
        if not self.starved:
            self.part_node(node)
        return True

    cdef void hand_over(self, SharedNode* node) noexcept nogil:
        """Leave the subtrees to another thread; a record of each set stands for its own."""
        cdef int64_t record
        cdef int m, s
        for m in range(node.n_members):
            if node.active >> m & 1:
                s = node.set_of[m]
                record = write_record(&self.records[s], &self.plans[s], &node.open[m])
                self.n_handed[s] += 1
                self.records[s].nodes[record].column = SUBTREE
                self.records[s].nodes[record].left = self.n_handed[s]
                node.open[m].parent = -1
        node.below = self.handed
        self.handed = node

    cdef bint pays(self, const SharedNode* node) noexcept nogil:
        """Whether the sets of a node are better off together."""
        cdef int64_t others = count_bits(node.active) - 1
        return self.sets.shared_rows == 0 or (node.n - NODE_COST) * others >= self.sets.shared_rows

    # -----------------------------------------------------------------------------------------
    # a set that goes on alone

    cdef void begin_alone(self, SharedNode* node, int member) noexcept nogil:
        """Begin the subtree of one set."""
        cdef int s = node.set_of[member]
        cdef Plan* plan = &self.plans[s]
        cdef OpenNode root = node.open[member]
        cdef int64_t n = 0
        cdef int64_t i, j
        cdef int c
        cdef size_t n_bytes = plan.criterion.n_classes * sizeof(int64_t)
        cdef uint8_t has[MOST_CELLS]
        cdef Run* run
        if not self.reserve_alone(&root):
            self.starved = True
            return
        if root.class_totals != NULL:
            memcpy(root.class_totals, node.open[member].class_totals, n_bytes)
        for c in range(node.n_cells):
            has[c] = not node.without[c] >> member & 1
        for i in range(node.n):
            self.view.rows[n] = node.rows[i]
            n += has[node.cell[i]]
        for i in range(node.n_some):
            self.view.rows[n] = node.some[i]
            n += node.who[i] >> member & 1
        root.start = 0
        root.n_runs = 0
        if not plan.draws:
            for j in range(plan.limits.n_columns):
                if plan.columns[j].n_codes == 0 or node.constant[j]:
                    continue
                run = root.runs + root.n_runs
                memset(run, 0, sizeof(Run))
                run.column = <int32_t>j
                run.fill = plan.columns[j].fill
                run.fill_code = plan.columns[j].fill
                run.last_ordered = last_ordered(&plan.columns[j])
                run.offset = -1
                root.n_runs += 1
        if not begin_growth(self.memory.growth, plan, &self.view, &root):
            free_node(&root)
            self.starved = True
            return
        free_records(&self.memory.growth.out)  # what it held for its next growth
        self.memory.growth.out = self.records[s]
        memset(&self.records[s], 0, sizeof(Records))
        self.alone = s

    cdef bint reserve_alone(self, OpenNode* root) noexcept nogil:
        """Memory of its own for the root of a subtree, and for its rows; False without any."""
        cdef const Plan* plan = &self.shard.plan
        cdef bint has_classes = root.class_totals != NULL
        root.class_totals = NULL
        root.runs = NULL
        free(self.view.rows)
        self.view.rows = <uint32_t*>claimed(NULL, (root.totals.n + 1) * sizeof(uint32_t))
        if has_classes:
            root.class_totals = <int64_t*>claimed(
                NULL, plan.criterion.n_classes * sizeof(int64_t))
        if not plan.draws:
            root.runs = <Run*>claimed(NULL, (plan.limits.n_columns + 1) * sizeof(Run))
        if (self.view.rows != NULL and (root.class_totals != NULL or not has_classes)
                and (root.runs != NULL or plan.draws)):
            return True
        free(root.class_totals)
        free(root.runs)
        return False

    cdef void end_alone(self) noexcept nogil:
        cdef Growth* growth = self.memory.growth
        self.records[self.alone] = growth.out
        memset(&growth.out, 0, sizeof(Records))
        self.work += growth.work
        end_growth(growth)
        self.alone = -1

    # -----------------------------------------------------------------------------------------
    # search

    cdef void search_node(self, SharedNode* node) noexcept nogil:
        """The best split of every active member."""
        cdef const Plan* plan = &self.shard.plan
        cdef int64_t n_columns = plan.limits.n_columns
        cdef int64_t first = 0
        cdef int64_t count = plan.limits.max_features
        cdef uint64_t wanting = node.active
        cdef int64_t i
        cdef int32_t column
        cdef int m
        self.begin_search(node)
        if count >= n_columns:
            for i in range(n_columns):
                self.search_column(node, <int32_t>i, node.active)
        else:
            while first < n_columns and wanting != 0:
                count = draw_columns(plan, node.open[0].path, self.order, self.swapped, first,
                                     count)
                for i in range(first, first + count):
                    self.search_column(node, self.order[i], wanting)
                for m in range(node.n_members):
                    if self.searches[node.set_of[m]].split.test != LEAF:
                        wanting &= ~(<uint64_t>1 << m)
                first += count
                count = 1
            for i in range(first - 1, -1, -1):
                column = self.order[i]
                self.order[i] = self.order[self.swapped[i]]
                self.order[self.swapped[i]] = column
        self.end_search(node)

    cdef void begin_search(self, const SharedNode* node) noexcept nogil:
        cdef int m
        self.gather(node)
        for m in range(node.n_members):
            begin_node(self.searches[node.set_of[m]], &node.open[m].totals,
                       node.open[m].class_totals, node.open[m].path)
        self.begin_classes(node)

    cdef void begin_classes(self, const SharedNode* node) noexcept nogil:
        """Where ordered columns are searched for all members at once, prepare for it."""
        cdef const Plan* plan = &self.shard.plan
        cdef const Limits* limits
        cdef int64_t least
        cdef int m
        self.by_classes = (is_wide and plan.mode == CLASSES and plan.criterion.impurity == GINI
                           and node.n + node.n_some <= MOST_ROWS)
        if not self.by_classes:
            return
        if not number_classes(&self.classes, node, &self.shard.payload,
                              plan.criterion.n_classes):
            self.starved = True
            return
        for m in range(self.classes.lanes.width):
            least = INT32_MAX  # nobody there
            if m < node.n_members:
                limits = &self.plans[node.set_of[m]].limits
                least = limits.min_weight if limits.min_weight > limits.min_rows \
                    else limits.min_rows
            self.classes.lanes.least[m] = <int32_t>(least if least < INT32_MAX else INT32_MAX)
            self.classes.lanes.most[m] = self.classes.lanes.n[m] - self.classes.lanes.least[m]

    cdef void gather(self, const SharedNode* node) noexcept nogil:
        """What the rows of a node add, one behind the other, where they are packed."""
        cdef const Payload* payload = &self.shard.payload
        cdef int64_t n = node.n + node.n_some
        cdef int64_t* some
        cdef int64_t i
        if not self.sets.is_packed:
            return
        if n > self.n_added:
            free(self.added)
            self.added = <int64_t*>claimed(NULL, n * sizeof(int64_t))
            self.n_added = n if self.added != NULL else 0
            if self.added == NULL:
                self.starved = True
                return
        some = self.added + node.n
        for i in range(node.n):
            self.added[i] = packed(payload, node.rows[i])
        for i in range(node.n_some):
            some[i] = packed(payload, node.some[i])
        self.counting.added = self.added
        self.counting.some_added = some

    cdef void end_search(self, const SharedNode* node) noexcept nogil:
        cdef int m
        for m in range(node.n_members):
            finish_node(self.searches[node.set_of[m]])

    cdef void search_column(self, const SharedNode* node, int32_t number,
                            uint64_t members) noexcept nogil:
        cdef const Column* column = self.shard.columns + number
        cdef int64_t width
        cdef int m
        cdef Search* q
        cdef bint varies = members != node.active
        if column.n_codes == 0 or node.constant[number] or self.starved:
            return
        width = self.number_codes(node, column)
        self.work += node.n + width * node.n_members
        if self.by_classes and last_ordered(column) == ALL_ORDERED:
            if not count_classes(&self.classes, node, column, self.counting.rank, width):
                self.starved = True
                return
            search_classes(&self.classes, self.code[0] == 0)
            for m in range(node.n_members):
                if members >> m & 1:
                    varies |= self.classes.lanes.n_codes[m] > 1
                    take_boundary(&self.classes, self.searches[node.set_of[m]], number, m,
                                  self.code)
            node.constant[number] = not varies
            return
        if not self.count_column(node, column, width):
            return
        for m in range(node.n_members):
            if members >> m & 1:
                q = self.searches[node.set_of[m]]
                self.groups_of_member(q, node, m, width)
                if q.groups.count > 1:
                    varies = True
                    search_groups(q, number, last_ordered(column))
        node.constant[number] = not varies

    cdef int64_t number_codes(self, const SharedNode* node, const Column* column) noexcept nogil:
        """The codes that histograms of a column have, ascending in `code`; returns how many.

        All of them, or those that occur, where cells would cost more than the rows.
        """
        cdef int64_t width = column.n_codes + <int64_t>1
        cdef int64_t stride = self.classes.lanes.n_classes if self.by_classes else 1
        cdef int64_t code
        self.counting.rank = NULL
        if width * stride > 2 * (node.n + node.n_some):
            self.counting.rank = self.rank
            return rank_codes(node, column, self.hit, self.code, self.rank)
        for code in range(width):
            self.code[code] = <uint32_t>code
        return width

    cdef bint count_column(self, const SharedNode* node, const Column* column,
                           int64_t width) noexcept nogil:
        """Histograms of a column, cell by cell, of so many codes (`number_codes`); False without
        memory."""
        cdef int64_t stride = self.sets.stride
        cdef int n_blocks = node.n_cells + 2 + 2 * node.n_members + 3
        cdef int64_t size, n_more
        cdef int64_t* block
        cdef int c, m, n_lacking
        size = width * stride
        self.counting.size = size
        if n_blocks * size > self.n_cells_of_scratch:
            free(self.cells)
            self.cells = <int64_t*>claimed(NULL, n_blocks * size * sizeof(int64_t))
            self.n_cells_of_scratch = n_blocks * size if self.cells != NULL else 0
            if self.cells == NULL:
                self.starved = True
                return False
        memset(self.cells, 0, (node.n_cells + 2) * size * sizeof(int64_t))
        count_rows(node, column, &self.counting, self.cells)
        block = self.cells + node.n_cells * size
        self.all = block
        for c in range(node.n_cells):
            add_numbers(block, self.cells + c * size, size)
        block += size
        for m in range(node.n_members):
            self.lacking[m] = block  # nothing
        block += size
        for m in range(node.n_members):
            n_lacking = 0
            for c in range(node.n_cells):
                if not node.without[c] >> m & 1:
                    continue
                n_lacking += 1
                if n_lacking == 1:
                    self.lacking[m] = self.cells + c * size
                    continue
                if n_lacking == 2:
                    memcpy(block, self.lacking[m], size * sizeof(int64_t))
                    self.lacking[m] = block
                    block += size
                add_numbers(block - size, self.cells + c * size, size)
        self.more = NULL
        if node.n_some > 0:
            n_more = size * (node.n_members if not self.sets.is_packed else numbers_of_some(node))
            memset(block, 0, n_more * sizeof(int64_t))
            count_some(node, column, &self.counting, block)
            self.more = block
        return True

    cdef void groups_of_member(self, Search* q, const SharedNode* node, int member,
                               int64_t width) noexcept nogil:
        """The codes that occur in the rows of a member, as groups of its search."""
        cdef Mode mode = q.mode
        cdef int64_t stride = self.sets.stride
        cdef int64_t K = q.criterion.n_classes
        cdef const int64_t* own = self.lacking[member]
        cdef const int64_t* all = self.all
        cdef const int64_t* more = NULL
        cdef int64_t d, k, x, n, w
        cdef int64_t g = 0
        cdef int64_t* target
        cdef int64_t step = numbers_of_some(node)
        if self.more != NULL:
            more = self.more + (member if self.sets.is_packed else member * width * stride)
        if not reserve_groups(q, width + 1):
            q.groups.count = 0
            self.starved = True
            return
        target = q.groups.target
        for d in range(width):
            if self.sets.is_packed:
                x = all[d] - own[d]
                if more != NULL:
                    x += more[d * step]
                n = x >> 2 * FIELD
                w = x >> FIELD & LARGEST_FIELD
                target[g] = x & LARGEST_FIELD
            elif mode == COUNT:
                x = all[d] - own[d]
                if more != NULL:
                    x += more[d]
                n = w = <int64_t>(<uint64_t>x >> 32)
                target[g] = <uint32_t>x
            elif mode == SUM or mode == WEIGHTED_SUM:
                k = d * stride
                n = all[k] - own[k] + (more[k] if more != NULL else 0)
                w = n
                if mode == WEIGHTED_SUM:
                    k += 1
                    w = all[k] - own[k] + (more[k] if more != NULL else 0)
                k += 1
                target[g] = all[k] - own[k] + (more[k] if more != NULL else 0)
            else:
                n = w = 0
                x = d * stride
                if mode == WEIGHTED_CLASSES:
                    n = all[x] - own[x] + (more[x] if more != NULL else 0)
                    x += 1
                for k in range(K):
                    target[g * K + k] = all[x + k] - own[x + k] + (
                        more[x + k] if more != NULL else 0)
                    w += target[g * K + k]
                if mode != WEIGHTED_CLASSES:
                    n = w
            q.groups.rank[g] = self.code[d]
            q.groups.row[g] = -1
            q.groups.n[g] = n
            q.groups.weight[g] = w
            g += n > 0
        q.groups.count = g

    # -----------------------------------------------------------------------------------------
    # children

    cdef void part_node(self, SharedNode* node) noexcept nogil:
        """Members that have chosen the same column go on together, with their rows."""
        cdef uint64_t left = node.active
        cdef uint64_t together
        cdef int32_t column
        cdef int m, s
        for m in range(node.n_members):
            s = node.set_of[m]
            if left >> m & 1 and (
                    self.searches[s].split.test == LEAF
                    or not gains_enough(&self.plans[s].limits, self.searches[s].split.gain)):
                left &= ~(<uint64_t>1 << m)
        while left != 0 and not self.starved:
            together = 0
            column = self.searches[node.set_of[trailing_zeros(left)]].split.column
            for m in range(node.n_members):
                if left >> m & 1 and self.searches[node.set_of[m]].split.column == column:
                    together |= <uint64_t>1 << m
            self.part_members(node, together, column)
            left &= ~together

    cdef void part_members(self, SharedNode* node, uint64_t together,
                           int32_t number) noexcept nogil:
        """The children of members with tests on one column."""
        cdef const Column* column = self.shard.columns + number
        cdef int64_t width = column.n_codes + <int64_t>1
        cdef Parting p
        cdef int member[MOST_SETS]
        cdef int n = 0
        cdef int k, m
        cdef int64_t i
        cdef bint has_subset = False
        cdef SharedNode* left
        cdef SharedNode* right
        cdef Search* q
        cdef uint64_t* who = node.who
        for m in range(node.n_members):
            if together >> m & 1:
                q = self.searches[node.set_of[m]]
                has_subset |= q.split.test == IN_SUBSET
                p.route[n] = route_of(&q.split, last_ordered(column), q.split_subset,
                                      q.split_subset_words)
                member[n] = m
                n += 1
        p.n = n
        p.left_of = NULL
        if width <= 2 * node.n + 64:
            mark_codes_left(p.route, n, width, self.left_of)
            p.left_of = self.left_of
        left = new_shared(n, node.n_cells, &self.shard.plan)
        right = new_shared(n, node.n_cells, &self.shard.plan)
        if n < node.n_members:
            who = <uint64_t*>claimed(NULL, (node.n_some + 1) * sizeof(uint64_t))
        self.starved = left == NULL or right == NULL or who == NULL and node.n_some > 0
        if not self.starved:
            left.n_cells = right.n_cells = place_cells(node, together, &p, left.without)
            memcpy(right.without, left.without, left.n_cells * sizeof(uint64_t))
            memcpy(left.constant, node.constant, self.shard.plan.limits.n_columns)
            memcpy(right.constant, node.constant, self.shard.plan.limits.n_columns)
            for i in range(node.n_some if n < node.n_members else 0):
                who[i] = placed(node.who[i], together)
            self.starved = not part_shared(node, column, self.counting.added, who, &p, left, right)
        if n < node.n_members:
            free(who)
        if self.starved:
            free_shared(left)
            free_shared(right)
            return
        for k in range(n):
            left.set_of[k] = right.set_of[k] = node.set_of[member[k]]
        self.open_members(node, left, member, p.left_sums, True)
        self.open_members(node, right, member, p.right_sums, False)
        if has_subset:
            width = self.number_codes(node, column)
            self.count_column(node, column, width)
        for k in range(n if not self.starved else 0):
            m = member[k]
            q = self.searches[node.set_of[m]]
            if q.split.test == IN_SUBSET:
                self.groups_of_member(q, node, m, width)
            write_test(&self.records[node.set_of[m]], node.record[m],
                       &self.plans[node.set_of[m]], &self.view, q, &self.no_run,
                       &left.open[k].totals, &right.open[k].totals)
        right.below = self.top
        left.below = right
        self.top = left

    cdef void open_members(self, const SharedNode* node, SharedNode* child, const int* member,
                           const int64_t* sums, bint is_left) noexcept nogil:
        """Sums and descriptions of the members of a child; `sums` by cell where rows are packed."""
        cdef const OpenNode* parent
        cdef OpenNode* open
        cdef int k
        if self.sets.is_packed:
            memcpy(self.sums, sums, child.n_cells * sizeof(int64_t))
        else:
            self.sum_cells(child)
        for k in range(child.n_members):
            parent = &node.open[member[k]]
            open = &child.open[k]
            open.depth = parent.depth + 1
            open.path = hash64(parent.path, 1 if is_left else 2)
            open.parent = node.record[member[k]]
            open.is_left = is_left
        self.sum_members(child)


# ---------------------------------------------------------------------------------------------
# nodes

cdef inline uint64_t placed(uint64_t members, uint64_t together) noexcept nogil:
    """The bits of the members that are together, moved to their places among these."""
    cdef uint64_t moved = 0
    cdef uint64_t bit = 1
    while together != 0:
        if members & together & -together:
            moved |= bit
        together &= together - 1
        bit <<= 1
    return moved


cdef int place_cells(const SharedNode* node, uint64_t together, Parting* p,
                     uint64_t* without) noexcept nogil:
    """The cells of the children: those that the same members lack become one, and what all of them
    lack is left behind. Returns how many.

    p : `full` and `place` are filled here. without : by cell of the children, filled.
    """
    cdef uint64_t full = (<uint64_t>1 << p.n) - 1 if p.n < 64 else <uint64_t>-1
    cdef uint64_t lack
    cdef int n = 0
    cdef int c, k
    for c in range(node.n_cells):
        lack = placed(node.without[c], together)
        p.full[c] = full & ~lack
        p.place[c] = 0
        if lack == full:
            continue
        k = 0
        while k < n and without[k] != lack:
            k += 1
        without[k] = lack
        p.place[c] = <uint8_t>k
        n = k + 1 if k == n else n
    return n


cdef inline int64_t packed(const Payload* payload, uint32_t row) noexcept nogil:
    """Two classes: row, weight and weight of class 1 of a row that counts, in one number."""
    cdef int64_t w = 1 if payload.weight == NULL else payload.weight[row]
    return <int64_t>1 << 2 * FIELD | w << FIELD | w * payload.label[row]


cdef inline void add_numbers(int64_t* to, const int64_t* numbers, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        to[i] += numbers[i]


cdef inline void add_totals(Totals* to, const Totals* one) noexcept nogil:
    to.n += one.n
    to.weight += one.weight
    to.target += one.target
    to.moment += one.moment
    to.lowest = one.lowest if one.lowest < to.lowest else to.lowest
    to.highest = one.highest if one.highest > to.highest else to.highest
