"""Trees of several training sets of one table: one growth for all of them.

The rows of a table lie in cells, and a set holds all rows but those of some cells: in k-fold
cross-validation set i lacks fold i, and the last set nothing ([CV] 2.2.2). As long as the tests of
the sets look at the same column, their nodes are one node: its rows are read once and counted by
cell, and a set has the histogram of all rows less those of the cells that it lacks::

    rows of the node    | cell 0 | cell 1 | ... | cell k |      each row once
    one column          |   H0   |   H1   | ... |   Hk   |      one pass
    set i               H0 + H1 + ... + Hk - Hi                 exact: sums of integers

Sets that choose one column but different thresholds stay together ([CV] 3.4): a row on which they
differ goes to both children, there with the sets that sent it (*some* rows). Sets that choose
different columns part. A set that is alone, or no longer gains by company (`pays`), is finished by
the growth of a single tree (`_finish`), from the same rows; its tree is the tree of the set, bit
for bit, since every score comes from the same integers.

Nodes are taken up depth first, so the records of each set are in preorder.
"""
from functools import partial

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dtrees._random cimport hash64
from dtrees.core._columns cimport STORED_U8, Column, code_t, last_ordered
from dtrees.core._drawn cimport draw_columns
from dtrees.core._finish cimport Growth, begin_growth, end_growth, grow_for
from dtrees.core._groups cimport reserve_groups, search_groups
from dtrees.core._histogram cimport add_row
from dtrees.core._nodes cimport describe, free_node, sum_rows
from dtrees.core._plan cimport Plan, gains_enough
from dtrees.core._reader cimport FIELD, LARGEST_FIELD
from dtrees.core._records cimport Records, free_records, subtree_of, write_record, write_test
from dtrees.core._route cimport Route, goes_left, route_of
from dtrees.core._search cimport Search, begin_node, finish_node, free_search, new_search
from dtrees.core._structs cimport (
    COUNT, IN_SUBSET, LEAF, SUM, WEIGHTED_CLASSES, WEIGHTED_SUM, Mode, Payload, Run, Totals
)
from dtrees.core._workspace cimport MAX_NARROW, OpenNode

from dtrees.typing import serial

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t) noexcept nogil

cdef enum:
    SLICE = 1 << 24         # entries between two looks at signals
    SUBTREE = -3            # column of a record that stands for a piece (`dtrees.core.assembly`)
    TASKS = 4               # subtrees for each thread
    BLOCKS = 3              # of columns for each thread
    LEAST_SHARED = 300      # rows of a node whose sets stay together


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
    counted_rows : int
        As in `dtrees.core.tuning.Tuning`.
    """

    def __cinit__(self, Shard shard, const uint16_t[::1] cell, const uint8_t[:, ::1] has,
                  const double[::1] total_weight, const int64_t[:, ::1] least,
                  int64_t counted_rows):
        cdef int s
        assert has.shape[0] <= MOST_SETS and has.shape[1] <= MOST_CELLS
        self.shard = shard
        self.cell = cell
        self.n_sets = <int>has.shape[0]
        self.has = has
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
        self.pack_rows()

    def __dealloc__(self):
        free(self.plans)
        free(self.packed)

    cdef pack_rows(self):
        """Two classes: all that a row adds in one number, where no sum overflows its field."""
        cdef const Payload* payload = &self.shard.payload
        cdef int64_t total = 0
        cdef int64_t i, w
        self.stride = self.shard.plan.stride
        if payload.value != NULL or self.shard.plan.mode not in (COUNT, WEIGHTED_SUM):
            return
        self.packed = <int64_t*>malloc((self.shard.n_rows + 1) * sizeof(int64_t))
        if self.packed == NULL:
            raise MemoryError
        for i in range(self.shard.n_rows):
            w = self.shard.live[i] if payload.weight == NULL else payload.weight[i]
            total += w
            if total > LARGEST_FIELD:
                free(self.packed)
                self.packed = NULL
                return
            self.packed[i] = <int64_t>1 << 2 * FIELD | w << FIELD | w * payload.label[i]
        self.stride = 1

    def grow(self, Pool pool, run, int n_threads, cancelled, int64_t least_handed,
             int64_t least_divided):
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

        Returns
        -------
        list of list of Subtree
            By set: pieces, as those of `dtrees.core._levels.Levels.grow`. Empty when the growth
            was cancelled.
        """
        cdef SharedGrowth top = SharedGrowth(self, pool)
        cdef int64_t n_columns = self.shard.plan.limits.n_columns
        idle = [top]
        top.open_root()
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
                                          shard.payload, self.plans[s].limits.min_rows,
                                          self.plans[s].limits.min_weight)
        for j in range(n_columns):
            most_codes = max(most_codes, shard.columns[j].n_codes)
        self.view.n_rows = shard.n_rows
        self.view.payload = shard.payload
        self.order = <int32_t*>malloc(n_columns * sizeof(int32_t))
        self.swapped = <int32_t*>malloc(n_columns * sizeof(int32_t))
        for j in range(n_columns):
            self.order[j] = <int32_t>j
        self.code = <uint32_t*>malloc((most_codes + 2) * sizeof(uint32_t))
        self.rank = <uint32_t*>malloc((most_codes + 2) * sizeof(uint32_t))
        self.hit = <uint64_t*>calloc((most_codes >> 6) + 2, sizeof(uint64_t))
        self.left_of = <uint64_t*>malloc((most_codes + 2) * sizeof(uint64_t))
        self.sums = <int64_t*>malloc((K + 4) * sizeof(int64_t))
        self.totals = <Totals*>malloc(MOST_CELLS * sizeof(Totals))
        self.class_totals = <int64_t*>malloc(MOST_CELLS * (K + 1) * sizeof(int64_t))

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
        with nogil:
            self.end_search(self.large)
            self.part_node(self.large)
            free_shared(self.large)
            self.large = NULL

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
                    and found.split.column > mine.split.column):
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

    cdef open_root(self):
        """All rows that count, by cell."""
        cdef int n_cells = <int>self.sets.has.shape[1]
        cdef SharedNode* node = new_shared(self.n_sets, n_cells)
        cdef int64_t n_rows = self.shard.n_rows
        cdef const uint16_t[::1] cell = self.sets.cell
        cdef const uint8_t[::1] live = self.shard.live
        cdef int64_t[::1] next = np.zeros(n_cells + 1, dtype=np.int64)
        cdef int64_t i
        cdef int s, c
        self.top = node
        node.rows = <uint32_t*>malloc((n_rows + 1) * sizeof(uint32_t))
        for s in range(self.n_sets):
            node.set_of[s] = s
            for c in range(n_cells):
                if not self.sets.has[s, c]:
                    node.without[c] |= <uint64_t>1 << s
        with nogil:
            for i in range(n_rows):
                next[cell[i] + 1] += live[i]
            for c in range(n_cells):
                next[c + 1] += next[c]
                node.end[c] = next[c + 1]
            node.n = next[n_cells]
            for i in range(n_rows):
                if live[i]:
                    node.rows[next[cell[i]]] = <uint32_t>i
                    next[cell[i]] += 1
            self.sum_cells(node)
            for s in range(self.n_sets):
                node.open[s].parent = -1
                self.sum_member(node, s, &node.open[s])
                describe(&node.open[s], &self.plans[s])

    cdef void sum_cells(self, const SharedNode* node) noexcept nogil:
        """What the rows of each cell add up to, in scratch."""
        cdef int64_t K = self.shard.plan.criterion.n_classes
        cdef int64_t first = 0
        cdef int c
        for c in range(node.n_cells):
            sum_rows(&self.shard.payload, &self.shard.plan, node.rows + first,
                     node.end[c] - first, &self.totals[c],
                     self.class_totals + c * K if K > 0 else NULL)
            first = node.end[c]

    cdef void sum_member(self, const SharedNode* node, int member, OpenNode* open) noexcept nogil:
        """The sums of a member: of the cells that it does not lack, and of what only some have."""
        cdef int64_t K = self.shard.plan.criterion.n_classes
        cdef Totals* t = &open.totals
        cdef uint32_t* own
        cdef int64_t i, k, n_own
        cdef int c
        memset(t, 0, sizeof(Totals))
        t.lowest = 0x7FFFFFFFFFFFFFFF
        t.highest = -0x7FFFFFFFFFFFFFFF
        if K > 0:
            open.class_totals = <int64_t*>calloc(K, sizeof(int64_t))
        for c in range(node.n_cells):
            if node.without[c] >> member & 1 or self.totals[c].n == 0:
                continue
            add_totals(t, &self.totals[c])
            for k in range(K):
                open.class_totals[k] += self.class_totals[c * K + k]
        if node.n_some > 0:
            own = <uint32_t*>malloc(node.n_some * sizeof(uint32_t))
            n_own = 0
            for i in range(node.n_some):
                own[n_own] = node.some[i]
                n_own += (node.who[i] >> member) & 1
            if n_own > 0:
                sum_rows(&self.shard.payload, &self.shard.plan, own, n_own, &self.one, self.sums
                         if K > 0 else NULL)
                add_totals(t, &self.one)
                for k in range(K):
                    open.class_totals[k] += self.sums[k]
            free(own)

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
            if self.work > stop or self.large != NULL:
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
        return node.n >= LEAST_SHARED

    # -----------------------------------------------------------------------------------------
    # a set that goes on alone

    cdef void begin_alone(self, SharedNode* node, int member) noexcept nogil:
        """Begin the subtree of one set."""
        cdef int s = node.set_of[member]
        cdef Plan* plan = &self.plans[s]
        cdef OpenNode root = node.open[member]
        cdef int64_t n = 0
        cdef int64_t i, j, first
        cdef int c
        cdef Run* run
        node.open[member].class_totals = NULL  # taken over
        free(self.view.rows)
        self.view.rows = <uint32_t*>malloc((root.totals.n + 1) * sizeof(uint32_t))
        first = 0
        for c in range(node.n_cells):
            if not node.without[c] >> member & 1:
                memcpy(self.view.rows + n, node.rows + first,
                       (node.end[c] - first) * sizeof(uint32_t))
                n += node.end[c] - first
            first = node.end[c]
        for i in range(node.n_some):
            if node.who[i] >> member & 1:
                self.view.rows[n] = node.some[i]
                n += 1
        root.start = 0
        if not plan.draws:
            root.runs = <Run*>malloc((plan.limits.n_columns + 1) * sizeof(Run))
            root.n_runs = 0
            for j in range(plan.limits.n_columns):
                if plan.columns[j].n_codes == 0:
                    continue
                run = root.runs + root.n_runs
                memset(run, 0, sizeof(Run))
                run.column = <int32_t>j
                run.fill = plan.columns[j].fill
                run.fill_code = plan.columns[j].fill
                run.last_ordered = last_ordered(&plan.columns[j])
                run.offset = -1
                root.n_runs += 1
        begin_growth(self.memory.growth, plan, &self.view, &root)
        free_records(&self.memory.growth.out)  # what it held for its next growth
        self.memory.growth.out = self.records[s]
        memset(&self.records[s], 0, sizeof(Records))
        self.alone = s

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
        for m in range(node.n_members):
            begin_node(self.searches[node.set_of[m]], &node.open[m].totals,
                       node.open[m].class_totals)

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
        if column.n_codes == 0:
            return
        width = self.count_column(node, column)
        self.work += node.n + width * node.n_members
        for m in range(node.n_members):
            if members >> m & 1:
                q = self.searches[node.set_of[m]]
                self.groups_of_member(q, node, m, width)
                if q.groups.count > 1:
                    search_groups(q, number, last_ordered(column))

    cdef int64_t count_column(self, const SharedNode* node, const Column* column) noexcept nogil:
        """Histograms of a column, cell by cell; returns how many codes they have.

        Their codes are in `code`, ascending.
        """
        cdef int64_t stride = self.sets.stride
        cdef int64_t width = column.n_codes + <int64_t>1
        cdef int n_blocks = node.n_cells + 2 + 2 * node.n_members
        cdef int64_t size, first, i, word, code
        cdef uint64_t bits
        cdef int64_t* block
        cdef const uint32_t* rank = NULL
        cdef int c, m, n_lacking
        if width > 2 * (node.n + node.n_some):  # most codes are not there
            mark_hits(column, node.rows, node.n, self.hit)
            mark_hits(column, node.some, node.n_some, self.hit)
            i = 0
            for word in range((width >> 6) + 1):
                bits = self.hit[word]
                self.hit[word] = 0
                while bits != 0:
                    code = (word << 6) + trailing_zeros(bits)
                    bits &= bits - 1
                    self.code[i] = <uint32_t>code
                    self.rank[code] = <uint32_t>i
                    i += 1
            width = i
            rank = self.rank
        else:
            for code in range(width):
                self.code[code] = <uint32_t>code
        size = width * stride
        if n_blocks * size > self.n_cells_of_scratch:
            free(self.cells)
            self.n_cells_of_scratch = n_blocks * size
            self.cells = <int64_t*>malloc(self.n_cells_of_scratch * sizeof(int64_t))
        memset(self.cells, 0, (node.n_cells + 2) * size * sizeof(int64_t))
        first = 0
        for c in range(node.n_cells):
            if self.sets.packed != NULL:
                count_packed(column, self.sets.packed, rank, node.rows + first,
                             node.end[c] - first, self.cells + c * size)
            else:
                count_rows(column, &self.shard.payload, self.shard.plan.mode, stride, rank,
                           node.rows + first, node.end[c] - first, self.cells + c * size)
            first = node.end[c]
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
            memset(block, 0, node.n_members * size * sizeof(int64_t))
            count_some(column, &self.shard.payload, self.shard.plan.mode, stride,
                       self.sets.packed, rank, node.some, node.who, node.n_some, block, size)
            self.more = block
        return width

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
        if self.more != NULL:
            more = self.more + member * width * stride
        reserve_groups(q, width + 1)
        target = q.groups.target
        for d in range(width):
            if self.sets.packed != NULL:
                x = all[d] - own[d]
                if more != NULL:
                    x += more[d]
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
        while left != 0:
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
        cdef Route route[MOST_SETS]
        cdef int member[MOST_SETS]
        cdef int place[MOST_SETS]
        cdef uint64_t without[MOST_CELLS]
        cdef int n = 0
        cdef int m, c, k, s
        cdef int64_t i
        cdef uint64_t full, mask, who
        cdef bint by_table = width <= 2 * node.n + 64
        cdef bint has_subset = False
        cdef SharedNode* left
        cdef SharedNode* right
        cdef Search* q
        for m in range(node.n_members):
            if together >> m & 1:
                q = self.searches[node.set_of[m]]
                has_subset |= q.split.test == IN_SUBSET
                route[n] = route_of(&q.split, last_ordered(column), q.split_subset,
                                    q.split_subset_words)
                member[n] = m
                place[m] = n
                n += 1
        full = (<uint64_t>1 << n) - 1 if n < 64 else <uint64_t>-1
        if by_table:
            for i in range(width):
                self.left_of[i] = left_members(route, n, <uint32_t>i)
        left = new_shared(n, node.n_cells)
        right = new_shared(n, node.n_cells)
        left.rows = <uint32_t*>malloc((node.n + 1) * sizeof(uint32_t))
        right.rows = <uint32_t*>malloc((node.n + 1) * sizeof(uint32_t))
        # cells that the same members lack become one; what all of them lack is left behind
        left.n_cells = 0
        for c in range(node.n_cells):
            without[c] = placed(node.without[c] & together, place)
        for c in range(node.n_cells):
            mask = without[c]
            if mask == full or is_among(without, c, mask):
                continue
            for k in range(c, node.n_cells):
                if without[k] == mask:
                    self.part_rows(node, column, route, n, by_table,
                                   0 if k == 0 else node.end[k - 1], node.end[k], full & ~mask,
                                   left, right)
            left.without[left.n_cells] = right.without[left.n_cells] = mask
            left.end[left.n_cells] = left.n
            right.end[left.n_cells] = right.n
            left.n_cells += 1
        right.n_cells = left.n_cells
        for i in range(node.n_some):
            who = placed(node.who[i] & together, place)
            if who == 0:
                continue
            mask = self.left_of[code_in(column, node.some[i])] if by_table else left_members(
                route, n, code_in(column, node.some[i]))
            if who & mask:
                add_some(left, node.some[i], who & mask)
            if who & ~mask:
                add_some(right, node.some[i], who & ~mask)
        left.rows = <uint32_t*>realloc(left.rows, (left.n + 1) * sizeof(uint32_t))
        right.rows = <uint32_t*>realloc(right.rows, (right.n + 1) * sizeof(uint32_t))
        for k in range(n):
            left.set_of[k] = right.set_of[k] = node.set_of[member[k]]
        self.open_members(node, left, member, True)
        self.open_members(node, right, member, False)
        if has_subset:
            width = self.count_column(node, column)
        for k in range(n):
            m = member[k]
            s = node.set_of[m]
            q = self.searches[s]
            if q.split.test == IN_SUBSET:
                self.groups_of_member(q, node, m, width)
            write_test(&self.records[s], node.record[m], &self.plans[s], &self.view, q,
                       &self.no_run, &left.open[k].totals, &right.open[k].totals)
        right.below = self.top
        left.below = right
        self.top = left

    cdef void part_rows(self, const SharedNode* node, const Column* column, const Route* route,
                        int n, bint by_table, int64_t first, int64_t last, uint64_t full,
                        SharedNode* left, SharedNode* right) noexcept nogil:
        """Rows of a cell: where all members go that train on them (`full`), or to both sides."""
        cdef int64_t i
        cdef uint32_t row, code
        cdef uint64_t mask
        for i in range(first, last):
            row = node.rows[i]
            code = code_in(column, row)
            mask = full & (self.left_of[code] if by_table else left_members(route, n, code))
            left.rows[left.n] = row
            right.rows[right.n] = row
            left.n += mask == full
            right.n += mask == 0
            if mask != full and mask != 0:
                add_some(left, row, mask)
                add_some(right, row, full & ~mask)

    cdef void open_members(self, const SharedNode* node, SharedNode* child, const int* member,
                           bint is_left) noexcept nogil:
        """Sums and descriptions of the members of a child."""
        cdef const OpenNode* parent
        cdef OpenNode* open
        cdef int k
        self.sum_cells(child)
        for k in range(child.n_members):
            parent = &node.open[member[k]]
            open = &child.open[k]
            open.depth = parent.depth + 1
            open.path = hash64(parent.path, 1 if is_left else 2)
            open.parent = node.record[member[k]]
            open.is_left = is_left
            self.sum_member(child, k, open)
            describe(open, &self.plans[child.set_of[k]])


# ---------------------------------------------------------------------------------------------
# nodes

cdef SharedNode* new_shared(int n_members, int n_cells) noexcept nogil:
    """A node without rows. Freed by `free_shared`."""
    cdef SharedNode* node = <SharedNode*>calloc(1, sizeof(SharedNode))
    node.n_members = n_members
    node.active = (<uint64_t>1 << n_members) - 1 if n_members < 64 else <uint64_t>-1
    node.set_of = <int*>calloc(n_members, sizeof(int))
    node.open = <OpenNode*>calloc(n_members, sizeof(OpenNode))
    node.record = <int64_t*>calloc(n_members, sizeof(int64_t))
    node.n_cells = n_cells
    node.without = <uint64_t*>calloc(n_cells, sizeof(uint64_t))
    node.end = <int64_t*>calloc(n_cells, sizeof(int64_t))
    return node


cdef void free_shared(SharedNode* node) noexcept nogil:
    cdef int m
    for m in range(node.n_members):
        free_node(&node.open[m])
    free(node.set_of)
    free(node.open)
    free(node.record)
    free(node.without)
    free(node.end)
    free(node.rows)
    free(node.some)
    free(node.who)
    free(node)


cdef void free_shared_list(SharedNode* node) noexcept nogil:
    cdef SharedNode* next
    while node != NULL:
        next = node.below
        free_shared(node)
        node = next


cdef inline int64_t work_of(const SharedNode* node) noexcept nogil:
    """What the subtrees below a node cost, about."""
    return node.n * node.n_members


cdef void add_some(SharedNode* node, uint32_t row, uint64_t who) noexcept nogil:
    """A row that only some of the members have."""
    if node.n_some == node.room:
        node.room = 2 * node.room + 64
        node.some = <uint32_t*>realloc(node.some, node.room * sizeof(uint32_t))
        node.who = <uint64_t*>realloc(node.who, node.room * sizeof(uint64_t))
    node.some[node.n_some] = row
    node.who[node.n_some] = who
    node.n_some += 1


cdef inline uint64_t placed(uint64_t members, const int* place) noexcept nogil:
    """Bits of members, moved to their places."""
    cdef uint64_t moved = 0
    while members != 0:
        moved |= <uint64_t>1 << place[trailing_zeros(members)]
        members &= members - 1
    return moved


cdef inline bint is_among(const uint64_t* masks, int n, uint64_t mask) noexcept nogil:
    cdef int i
    for i in range(n):
        if masks[i] == mask:
            return True
    return False


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


# ---------------------------------------------------------------------------------------------
# codes

cdef inline uint32_t code_in(const Column* column, uint32_t row) noexcept nogil:
    """The code of a row in a column of 8 or 16 bits."""
    if column.storage == STORED_U8:
        return (<const uint8_t*>column.codes)[row]
    return (<const uint16_t*>column.codes)[row]


cdef inline uint64_t left_members(const Route* route, int n, uint32_t code) noexcept nogil:
    """A bit for each of n members whose test sends a code left."""
    cdef uint64_t mask = 0
    cdef int k
    for k in range(n):
        mask |= <uint64_t>goes_left(&route[k], code) << k
    return mask


cdef void mark_hits(const Column* column, const uint32_t* rows, int64_t n,
                    uint64_t* hit) noexcept nogil:
    cdef int64_t i
    cdef uint32_t code
    for i in range(n):
        code = code_in(column, rows[i])
        hit[code >> 6] |= <uint64_t>1 << (code & 63)


cdef inline void count_in(const code_t* codes, const Payload* payload, Mode mode, int64_t stride,
                          const uint32_t* rank, const uint32_t* rows, int64_t n,
                          int64_t* cells) noexcept nogil:
    cdef int64_t i
    if rank == NULL:
        for i in range(n):
            add_row(cells + codes[rows[i]] * stride, rows[i], payload, mode)
    else:
        for i in range(n):
            add_row(cells + rank[codes[rows[i]]] * stride, rows[i], payload, mode)


cdef inline void count_codes(const code_t* codes, const Payload* payload, Mode mode,
                             int64_t stride, const uint32_t* rank, const uint32_t* rows,
                             int64_t n, int64_t* cells) noexcept nogil:
    if mode == COUNT:
        count_in(codes, payload, COUNT, 1, rank, rows, n, cells)
    elif mode == SUM:
        count_in(codes, payload, SUM, 2, rank, rows, n, cells)
    elif mode == WEIGHTED_SUM:
        count_in(codes, payload, WEIGHTED_SUM, 3, rank, rows, n, cells)
    else:
        count_in(codes, payload, mode, stride, rank, rows, n, cells)


cdef void count_rows(const Column* column, const Payload* payload, Mode mode, int64_t stride,
                     const uint32_t* rank, const uint32_t* rows, int64_t n,
                     int64_t* cells) noexcept nogil:
    """Add rows to the histogram of a column; rank : places of codes, NULL: the codes."""
    if column.storage == STORED_U8:
        count_codes(<const uint8_t*>column.codes, payload, mode, stride, rank, rows, n, cells)
    else:
        count_codes(<const uint16_t*>column.codes, payload, mode, stride, rank, rows, n, cells)


cdef inline void count_packed_in(const code_t* codes, const int64_t* packed, const uint32_t* rank,
                                 const uint32_t* rows, int64_t n, int64_t* cells) noexcept nogil:
    cdef int64_t i
    if rank == NULL:
        for i in range(n):
            cells[codes[rows[i]]] += packed[rows[i]]
    else:
        for i in range(n):
            cells[rank[codes[rows[i]]]] += packed[rows[i]]


cdef void count_packed(const Column* column, const int64_t* packed, const uint32_t* rank,
                       const uint32_t* rows, int64_t n, int64_t* cells) noexcept nogil:
    """The same of rows that are packed into a number."""
    if column.storage == STORED_U8:
        count_packed_in(<const uint8_t*>column.codes, packed, rank, rows, n, cells)
    else:
        count_packed_in(<const uint16_t*>column.codes, packed, rank, rows, n, cells)


cdef void count_some(const Column* column, const Payload* payload, Mode mode, int64_t stride,
                     const int64_t* packed, const uint32_t* rank, const uint32_t* some,
                     const uint64_t* who, int64_t n, int64_t* cells,
                     int64_t size) noexcept nogil:
    """Add rows to the histograms of the members that have them, `size` numbers apart."""
    cdef int64_t i, at
    cdef uint64_t bits
    for i in range(n):
        at = code_in(column, some[i])
        if rank != NULL:
            at = rank[at]
        bits = who[i]
        while bits != 0:
            if packed != NULL:
                cells[trailing_zeros(bits) * size + at] += packed[some[i]]
            else:
                add_row(cells + trailing_zeros(bits) * size + at * stride, some[i], payload, mode)
            bits &= bits - 1
