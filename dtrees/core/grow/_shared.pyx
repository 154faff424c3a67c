"""Trees of several training sets on several threads: large nodes first, then subtrees as tasks."""
from functools import partial

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from dtrees.core.stores.shared._shared_nodes cimport work_of
from dtrees.core.grow._arena cimport Arena
from dtrees.core.grow._shared_growth cimport SharedGrowth, SharedTask
from dtrees.core.grow._training_sets cimport TrainingSets

from dtrees.typing import serial

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
    list of list of PartialTree
        By set: pieces, as those of `LevelWiseBuilder.grow`. Empty when the growth was cancelled.
    """
    cdef SharedGrowth top = SharedGrowth(sets, arena)
    cdef int64_t least_offloaded = OFFLOADED * tuning.task_entries
    cdef int64_t n_columns = sets.n_dense + sets.n_stored // (sets.dataset.n_rows + 1)  # of a row
    idle = [top]
    top.open_root(depth, path)
    if n_threads > 1 and work_of(top.store.top) * n_columns >= least_offloaded:
        top.most_offloaded = work_of(top.store.top) // (TASKS * n_threads)
        if not sets.params_of[0].draws:
            top.least_divided = tuning.level_entries
    found = top.grow(cancelled, run, BLOCKS * n_threads, idle)
    if found is None:
        return []
    pieces = [[subtree] for subtree in found]
    tasks = top.take_offloaded()
    by_size = sorted(range(len(tasks)), key=lambda i: -(<SharedTask>tasks[i]).work)
    left = sum((<SharedTask>task).work for task in tasks) * n_columns
    run_tasks = run if left >= least_offloaded // 2 else serial
    grown = run_tasks([partial(grow_task, sets, tasks[i], arena, idle, cancelled) for i in by_size])
    if cancelled():
        return []
    for i in np.argsort(by_size):  # each after those that were offloaded before it
        for s, subtree in grown[i]:
            pieces[s].append(subtree)
    for worker in idle:
        sets.n_bounded += (<SharedGrowth>worker).store.n_bounded
        sets.n_alive += (<SharedGrowth>worker).store.n_alive
        sets.n_shared_nodes += (<SharedGrowth>worker).n_shared_nodes
        sets.n_shared_rows += (<SharedGrowth>worker).n_shared_rows
        sets.n_known_nodes += (<SharedGrowth>worker).n_known_nodes
        arena.give_back((<SharedGrowth>worker).memory)
    return pieces


def grow_task(TrainingSets sets, SharedTask task, Arena arena, list idle, cancelled):
    """Subtrees of a node, in the scratch of a thread that has none to do."""
    cdef SharedGrowth worker = idle.pop() if idle else SharedGrowth(sets, arena)
    worker.most_offloaded = worker.least_divided = 0
    subtrees = worker.grow_task(task, cancelled)
    if subtrees is not None:
        idle.append(worker)
    return subtrees
