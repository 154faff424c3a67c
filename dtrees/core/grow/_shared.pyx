"""Trees of several training sets on several threads: upper nodes first, and subtrees as they come.

One thread grows the upper nodes and leaves the subtrees below them in a queue (`work_queue`), where
the other threads find them at once. Large nodes are searched by all, in blocks of columns.
"""
from functools import partial

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from dtrees.core.stores.shared._shared_nodes cimport work_of
from dtrees.core.grow._arena cimport Arena
from dtrees.core.grow._set_records cimport Subtree
from dtrees.core.grow._shared_growth cimport SharedGrowth, SharedTask
from dtrees.core.grow._training_sets cimport TrainingSets

from dtrees.core.grow.work_queue import WorkQueue

cdef enum:
    TASKS = 4               # subtrees for each thread
    BLOCKS = 3              # of columns for each thread
    OFFLOADED = 48             # times the entries of a subtree that is worth a task


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
        By set: pieces, as those of `LevelWiseBuilder.grow`. Empty when the growth was cancelled.
    """
    cdef SharedGrowth top = SharedGrowth(sets, arena)
    cdef int64_t n_columns = sets.n_dense + sets.n_stored // (sets.dataset.n_rows + 1)  # of a row
    cdef SharedGrowth worker
    cdef Subtree subtree
    helpers = Helpers(sets, arena, cancelled, n_threads)
    top.open_root(depth, path)
    if n_threads == 1 or work_of(top.store.top) * n_columns < OFFLOADED * tuning.task_entries:
        found = top.grow(range(sets.n_sets), cancelled)
    else:
        top.written.use_pages()
        top.most_offloaded = work_of(top.store.top) // (TASKS * n_threads)
        if not sets.params_of[0].draws:
            top.least_divided = tuning.level_entries
        upper = partial(grow_upper, top, helpers)
        found = run([upper, *[helpers.queue.help] * (n_threads - 1)])[0]
    if found is None or cancelled():
        return []
    pieces = [[subtree] for subtree in found]
    for subtrees in helpers.left:  # each after those that were offloaded before it
        for s, subtree in subtrees:
            pieces[s].append(subtree)
    for worker in {top, *helpers.idle}:
        sets.n_bounded += worker.store.n_bounded
        sets.n_alive += worker.store.n_alive
        sets.n_shared_nodes += worker.n_shared_nodes
        sets.n_shared_rows += worker.n_shared_rows
        sets.n_known_nodes += worker.n_known_nodes
        arena.give_back(worker.memory)
        worker.written.lend()
    for of_set in pieces:
        for subtree in of_set:
            subtree.take_lease()
    return pieces


def grow_upper(SharedGrowth top, helpers):
    """What is above the subtrees that are left to whoever helps; then help."""
    try:
        found = top.grow(range(top.sets.n_sets), helpers.cancelled, helpers)
    finally:
        helpers.queue.close()
    helpers.idle.append(top)
    helpers.queue.help()
    return found


class Helpers:
    """Threads that search large nodes with the one that grows them, and grow subtrees below.

    Attributes
    ----------
    queue : WorkQueue
    idle : list of SharedGrowth
        Scratch of threads, without a task.
    left : list of list of (int, Subtree)
        Of each node that was left, in turn: sets and subtrees.
    """

    def __init__(self, TrainingSets sets, Arena arena, cancelled, int n_threads):
        self.sets, self.arena, self.cancelled, self.n_threads = sets, arena, cancelled, n_threads
        self.n_blocks = BLOCKS * n_threads
        self.queue, self.idle, self.left = WorkQueue(), [], []

    def take(self, list first=None):
        """Scratch that has no task: one of `first`, if there is any."""
        cdef SharedGrowth new
        for idle in (self.idle,) if first is None else (first, self.idle):
            try:
                return idle.pop()
            except IndexError:
                pass  # there is none, or another thread was faster
        new = SharedGrowth(self.sets, self.arena)
        new.written.use_pages()
        return new

    def leave(self, list tasks):
        """Leave subtrees to whoever helps."""
        for task in tasks:
            found = []
            self.left.append(found)
            self.queue.put(partial(self.grow, task, found))

    def relieve(self):
        """Grow subtrees that were left, whose nodes hold memory."""
        self.queue.help_while(1)

    def grow(self, SharedTask task, list found):
        """Subtrees of a node, which are added to `found`."""
        cdef SharedGrowth worker = self.take()
        worker.most_offloaded = worker.least_divided = 0
        subtrees = worker.grow_task(task, self.cancelled)
        if subtrees is not None:
            found.extend(subtrees)
            self.idle.append(worker)

    def search_large(self, SharedGrowth top):
        """Search a large node in blocks of columns: first the boundaries between intervals, then,
        with the best of all, what is inside of them."""
        searchers = [top]
        blocks = [partial(self.search_block, top, searchers, block)
                  for block in range(self.n_blocks)]
        best = np.max(self.queue.run(blocks), axis=0)
        if top.sets.intervals != NULL:
            self.queue.run([partial(block, best=best) for block in blocks])
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
            if best is None:
                worker.search_block(top, first, step)
            else:
                worker.search_block_inside(top, &of_all[0], first, step)
        searchers.append(worker)
        return [worker.store.best[m] for m in range(n)]
