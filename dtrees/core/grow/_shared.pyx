"""Trees of several training sets on several threads: upper nodes first, and subtrees as they come.

One thread leads a team (`_team`): it grows the upper nodes and leaves the subtrees below them as
tasks, which the other threads find at once. Large nodes are searched by all, in blocks of columns.
"""
from functools import partial

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from dtrees.core.stores.shared._shared_nodes cimport work_of
from dtrees.core.grow._arena cimport Arena
from dtrees.core.grow._set_records cimport Subtree
from dtrees.core.grow._shared_growth cimport SharedGrowth, SharedTask
from dtrees.core.grow._training_sets cimport TrainingSets

from dtrees.core.grow._team import Team

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
    team = SharedTeam(sets, arena, cancelled, n_threads)
    top.open_root(depth, path)
    if n_threads == 1 or work_of(top.store.top) * n_columns < OFFLOADED * tuning.task_entries:
        found = top.grow(range(sets.n_sets), cancelled)
    else:
        top.written.use_pages()
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
        arena.give_back(worker.memory)
        worker.written.lend()
    for of_set in pieces:
        for subtree in of_set:
            subtree.take_lease()
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
        cdef SharedGrowth new
        for idle in (self.idle,) if first is None else (first, self.idle):
            try:
                return idle.pop()
            except IndexError:
                pass  # there is none, or another thread was faster
        new = SharedGrowth(self.sets, self.arena)
        new.written.use_pages()
        return new

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
            if best is None:
                worker.search_block(top, first, step)
            else:
                worker.search_block_inside(top, &of_all[0], first, step)
        searchers.append(worker)
        return [worker.store.best[m] for m in range(n)]
